"""Reading what `--from` names: files, standard input, bundles; large logs in bounded memory."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from envdoctor.errors import InputError
from envdoctor.facts import Facts
from envdoctor.inputs import is_lock, open_input
from envdoctor.matrix.lexicon import Lexicon
from envdoctor.pastes.reader import parse_paste

WHOLE = 4 << 20
"""Bytes up to which a text is read whole."""
HEAD = 1 << 20
TAIL = 1 << 20
KEPT = 1 << 20
"""Bytes kept of a longer text: its head, its tail, and of the middle the lines that look like errors."""
LIMIT = 2 << 30
CHUNK = 1 << 20

_TELLING = (
    *(b"rror", b"ERROR", b"arning", b"undefined symbol", b"ot found", b"annot", b"ailed", b"out of memory"),
    *(b"not supported", b"unsupported", b"incompatible", b"no kernel", b"not implemented", b"not compatible"),
    *(b"NVIDIA-SMI", b"orch version", b"return code", b"not compiled", b"too old", b"mismatch", b"Xid"),
)
"""What a line in the middle of a huge log must contain to be kept."""


def read_files(paths: Sequence[str], lexicon: Lexicon) -> Facts:
    """Return the facts that the texts at `paths` tell together; `-` is standard input, `*.zip` a bundle.

    Raises InputError naming the file when one is missing, a folder, empty or binary.
    """
    if len(paths) == 1:
        return _read_one(paths[0], False, lexicon)
    from envdoctor.pastes.merge import merge_facts

    return merge_facts([_read_one(path, True, lexicon) for path in paths])


def _read_one(path: str, several: bool, lexicon: Lexicon) -> Facts:
    name = "<stdin>" if path == "-" else path
    if path.endswith(".zip"):
        from envdoctor.bundling import read_bundle

        return read_bundle(Path(path))
    if is_lock(path):
        from envdoctor.pastes.locks import read_lock_facts

        return read_lock_facts(path, Path(path).name if several else "")
    text, notes = read_text(path)
    shown = Path(name).name if several else ""
    try:
        facts = parse_paste(text, shown, lexicon, Path(name).name, None if path == "-" else Path(path).parent)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    return replace(facts, notes=(*facts.notes, *notes)) if notes else facts


def read_text(path: str) -> tuple[str, list[str]]:
    """Return the text at `path` (`-`: standard input), shortened when it is huge, and notes of that.

    Raises InputError naming the file when it cannot be read, is empty or no text.
    """
    name = "<stdin>" if path == "-" else path
    try:
        if path == "-":
            data, left_out = read_window(sys.stdin.buffer)
        else:
            with open_input(path) as stream:
                data, left_out = read_window(stream)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or 'cannot be read'}") from None
    text = decode(data)
    _check_text(text, name)
    notes = (
        [f"{name}: {left_out:,} bytes in the middle were only searched for error lines"] if left_out else []
    )
    return text, notes


def parse_text(text: str, name: str, lexicon: Lexicon, folder: Path | None = None) -> Facts:
    """Return the facts that a text in hand tells, of a huge one what a file of it would tell.

    `name` is the name of its file, if it has one, and `folder` holds what it names. Raises InputError when
    the text is empty or none.
    """
    data, left_out = read_window(io.BytesIO(text.encode("utf-8", "replace")))
    text = decode(data)
    _check_text(text, name or "the text")
    facts = parse_paste(text, "", lexicon, Path(name).name, folder)
    note = f"{left_out:,} bytes in the middle were only searched for error lines"
    return replace(facts, notes=(*facts.notes, note)) if left_out else facts


def _check_text(text: str, name: str) -> None:
    if not text.strip():
        raise InputError(f"{name}: empty")
    if "\x00" in text or _looks_binary(text):
        raise InputError(f"{name}: not a text")


def decode(data: bytes) -> str:
    """Return the text of `data`: UTF-16 with a byte-order mark, else UTF-8 with what is invalid replaced."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def _looks_binary(text: str) -> bool:
    sample = text[:65536]
    strange = sample.count("\ufffd") + sum(sample.count(chr(c)) for c in (*range(1, 8), *range(14, 27)))
    return strange * 10 > len(sample)


def read_window(stream: BinaryIO) -> tuple[bytes, int]:
    """Return the bytes of `stream`, of a huge one only a part, and how many were left out."""
    head = _read_up_to(stream, WHOLE + 1)
    wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if len(head) <= WHOLE or wide or b"\x00" in head:
        return head, 0
    middle = _Middle()
    middle.feed(head[HEAD:])
    total = len(head)
    while total < LIMIT and (chunk := stream.read(CHUNK)):
        total += len(chunk)
        middle.feed(chunk)
    data = b"\n".join((head[:HEAD], middle.telling(), middle.tail()))
    return data, total - len(data)


def _read_up_to(stream: BinaryIO, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (chunk := stream.read(min(size, CHUNK))):
        parts.append(chunk)
        size -= len(chunk)
    return b"".join(parts)


class _Middle:
    """The telling lines of a stream fed in chunks, and its last bytes."""

    def __init__(self) -> None:
        self._kept: dict[bytes, None] = {}
        self._size = 0
        self._last: list[bytes] = []

    def feed(self, chunk: bytes) -> None:
        """Take in the next chunk; the one before the last is searched, the last two are the tail."""
        self._last.append(chunk)
        while sum(map(len, self._last[1:])) >= TAIL:
            self._search(self._last.pop(0))

    def _search(self, chunk: bytes) -> None:
        for word in _TELLING:
            position = chunk.find(word)
            while position >= 0 and self._size < KEPT:
                start = max(chunk.rfind(b"\n", 0, position) + 1, position - 2048)
                end = chunk.find(b"\n", position, position + 2048)
                end = min(position + 2048, len(chunk)) if end < 0 else end
                line = chunk[start:end]
                if line not in self._kept:
                    self._kept[line] = None
                    self._size += len(line)
                position = chunk.find(word, end)

    def telling(self) -> bytes:
        """Return the telling lines, each once."""
        return b"\n".join(self._kept)

    def tail(self) -> bytes:
        """Return the last bytes, from a whole line on."""
        data = b"".join(self._last)[-TAIL:]
        return data[data.find(b"\n") + 1 :]
