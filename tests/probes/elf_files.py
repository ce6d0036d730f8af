"""Small ELF files with a dynamic section, for tests of what the loader is asked."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def make_elf(
    needed: Sequence[str] = (), rpath: str | None = None, runpath: str | None = None, symbols: bytes = b""
) -> bytes:
    """Return a 64-bit ELF file of one segment whose strings hold `symbols` too."""
    strings, entries = b"\0", []
    for tag, text in [(1, one) for one in needed] + [(15, rpath), (29, runpath)]:
        if text is not None:
            entries.append((tag, len(strings)))
            strings += text.encode() + b"\0"
    strings += symbols
    headers, dynamic = 64, 64 + 2 * 56
    start = dynamic + (len(entries) + 3) * 16
    entries += [(5, start), (10, len(strings)), (0, 0)]
    table = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    total = start + len(strings)
    header = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, headers, 0, 0, 64, 56, 2, 0, 0, 0)
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, total, total, 4096)
    section = struct.pack("<IIQQQQQQ", 2, 6, dynamic, dynamic, dynamic, len(table), len(table), 8)
    return header + load + section + table + strings
