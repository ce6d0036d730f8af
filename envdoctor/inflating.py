"""Unpacking gzip piece by piece, so that no few bytes become many at once."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

PIECE = 1 << 16
_MAGIC = b"\x1f\x8b"
_GZIP = 31


def inflate(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what gzip data unpacks to, in pieces of at most 64 KiB; raises zlib.error for what is no gzip.

    Members may follow one another; what follows the last and is none is let alone.
    """
    engine = zlib.decompressobj(_GZIP)
    for chunk in chunks:
        rest = chunk
        while rest:
            if piece := engine.decompress(rest, PIECE):
                yield piece
            rest = engine.unconsumed_tail
            if engine.eof:
                rest = engine.unused_data
                if not rest.startswith(_MAGIC):
                    return
                engine = zlib.decompressobj(_GZIP)
    if piece := engine.flush():
        yield piece
    if not engine.eof:
        raise zlib.error("it ends too early")
