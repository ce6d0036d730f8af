"""What an ELF file asks of the loader, read from its dynamic section by a few small reads."""

from __future__ import annotations

import struct

from .files import Unreadable, open_file
from .typed import BinaryIO, Dict, List, NamedTuple, Optional, Tuple

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_STRSZ, DT_RPATH, DT_RUNPATH = 1, 5, 10, 15, 29
MAX_HEADERS, MAX_DYNAMIC_BYTES, MAX_STRING, MAX_STRINGS = 64, 1 << 16, 4096, 8 << 20


class Dynamic(NamedTuple):
    """The libraries a file needs and where it has them looked for; None where it does not say."""

    needed: Tuple[str, ...]
    rpath: Optional[str]
    runpath: Optional[str]


def read_dynamic(path: str) -> Optional[Dynamic]:
    """Return a 64-bit little-endian ELF file's dynamic section, or None when it has none.

    Raises Unreadable.
    """
    stream = open_file(path)
    if stream is None:
        return None
    with stream:
        try:
            opened = _open(stream)
            return _dynamic(stream, *opened) if opened else None
        except (struct.error, ValueError):
            return None
        except OSError as error:
            raise Unreadable("%s: %s" % (path, error.strerror)) from None


def read_strings(path: str) -> bytes:
    """Return the table of a file's dynamic symbol names; empty when it has none or it is over 8 MiB.

    Raises Unreadable.
    """
    stream = open_file(path)
    if stream is None:
        return b""
    with stream:
        try:
            return _strings(stream)
        except (struct.error, ValueError):
            return b""
        except OSError as error:
            raise Unreadable("%s: %s" % (path, error.strerror)) from None


def _strings(stream: BinaryIO) -> bytes:
    opened = _open(stream)
    if not opened:
        return b""
    entries, start = opened
    size = next((value for tag, value in entries if tag == DT_STRSZ), 0)
    stream.seek(start)
    return stream.read(size) if size <= MAX_STRINGS else b""


def _open(stream: BinaryIO) -> Optional[Tuple[List[Tuple[int, int]], int]]:
    """Return the dynamic entries and the file offset of their strings."""
    header = stream.read(64)
    if header[:6] != b"\x7fELF\x02\x01":
        return None
    headers_at, size, count = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
    stream.seek(headers_at)
    table = stream.read(size * min(count, MAX_HEADERS))
    segments = [struct.unpack_from("<IIQQQQQQ", table, at) for at in range(0, len(table) - 55, size)]
    dynamic = next((one for one in segments if one[0] == PT_DYNAMIC), None)
    if dynamic is None:
        return None
    stream.seek(dynamic[2])
    entries = list(struct.iter_unpack("<QQ", stream.read(min(dynamic[5], MAX_DYNAMIC_BYTES) // 16 * 16)))
    strings = next((value for tag, value in entries if tag == DT_STRTAB), 0)
    for kind, _, offset, address, _, length, _, _ in segments:
        if kind == PT_LOAD and address <= strings < address + length:
            return entries, strings - address + offset
    return None


def _dynamic(stream: BinaryIO, entries: List[Tuple[int, int]], start: int) -> Dynamic:
    found: Dict[int, List[str]] = {DT_NEEDED: [], DT_RPATH: [], DT_RUNPATH: []}
    for tag, value in entries:
        if tag in found:
            stream.seek(start + value)
            found[tag].append(stream.read(MAX_STRING).split(b"\0", 1)[0].decode("utf-8", "replace"))
    rpath, runpath = found[DT_RPATH], found[DT_RUNPATH]
    return Dynamic(tuple(found[DT_NEEDED]), rpath[0] if rpath else None, runpath[0] if runpath else None)
