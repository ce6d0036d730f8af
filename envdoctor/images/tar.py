"""Tar archives read forwards: names and kinds of all members, contents of those that are asked for.

Nothing is written anywhere, and no member is held that is not asked for; the standard library's reader keeps
an object for each of hundreds of thousands of members.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from envdoctor.values import dataclass

BLOCK = 512
MAX_NAME = 1 << 16
MAX_MEMBERS = 5_000_000
_LINKS = {b"1": "hard", b"2": "link"}


class Broken(ValueError):
    """What is no tar archive, or ends too early."""


class Source(Protocol):
    """Bytes in order: `read` gives as many as asked for unless they end, `skip` passes over some."""

    def read(self, size: int) -> bytes:
        """Return that many bytes, fewer at the end."""

    def skip(self, size: int) -> None:
        """Pass over that many bytes; raises Broken where they end before."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member: its path without leading `./`, its kind (`file`, `folder`, `link`, `hard`, `other`)."""

    path: str
    kind: str
    size: int
    target: str
    read: Callable[[int], bytes]
    """Returns its first bytes, at most so many; only before the next member is asked for."""


def members(source: Source) -> Iterator[Member]:
    """Yield the members of a tar archive in order; raises Broken."""
    path = target = ""
    size: int | None = None
    for _ in range(MAX_MEMBERS):
        header = source.read(BLOCK)
        if len(header) < BLOCK:
            if header.strip(b"\0"):
                raise Broken("it ends too early")
            return
        if header[0] == 0 and not header.strip(b"\0"):
            return
        kind = header[156:157]
        length = _number(header[124:136])
        if kind in b"xgLK":
            text = _meta(source, length)
            if kind == b"x":
                told = _pax(text)
                path, target = told.get("path", path), told.get("linkpath", target)
                size = _whole(told["size"]) if "size" in told else size
            elif kind == b"L":
                path = _text(text)
            elif kind == b"K":
                target = _text(text)
            continue
        _check(header)
        length = length if size is None else size
        left = _Left(source, length)
        yield Member(
            _clean(path or _name(header)),
            "file"
            if kind in (b"0", b"\0", b"7")
            else _LINKS.get(kind, "folder" if kind == b"5" else "other"),
            length,
            target or _text(header[157:257]),
            left.read,
        )
        left.pass_over()
        path, target, size = "", "", None
    raise Broken(f"more than {MAX_MEMBERS:,} members")


class _Left:
    """What is left of a member, and the padding after it."""

    def __init__(self, source: Source, length: int) -> None:
        self._source, self._left = source, length
        self._padding = -length % BLOCK

    def read(self, size: int) -> bytes:
        data = self._source.read(min(size, self._left))
        self._left -= len(data)
        return data

    def pass_over(self) -> None:
        if self._left + self._padding:
            self._source.skip(self._left + self._padding)


def _meta(source: Source, length: int) -> bytes:
    if length > MAX_NAME:
        raise Broken(f"a name of {length:,} bytes")
    data = source.read(length + -length % BLOCK)
    if len(data) < length:
        raise Broken("it ends too early")
    return data[:length]


def _check(header: bytes) -> None:
    told = _number(header[148:156])
    if told != _sum(header[:256]) + _sum(header[256:]) - _sum(header[148:156]) + 8 * 32:
        raise Broken("a header's checksum is wrong")


def _sum(data: bytes) -> int:
    """Return the sum of at most 256 bytes: Adler's lower half, exact for so few, in a tenth of the time."""
    return (zlib.adler32(data) & 0xFFFF) - 1


def _number(field: bytes) -> int:
    """Return an octal number, or one in base 256 as GNU tar writes large ones."""
    if field[0] & 0x80:
        number = int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
        if field[0] & 0x40 or number >> 62:
            raise Broken("a size that cannot be")
        return number
    try:
        return int(field.partition(b"\0")[0].strip() or b"0", 8)
    except ValueError:
        raise Broken("it is no tar archive") from None


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise Broken("a size that cannot be")
    return int(text)


def _pax(data: bytes) -> dict[str, str]:
    """Read `LENGTH KEY=VALUE` records."""
    found: dict[str, str] = {}
    while data:
        digits, blank, _ = data.partition(b" ")
        if not blank or not digits.isdigit() or not len(digits) < int(digits[:9]) <= len(data):
            break
        record = data[len(digits) + 1 : int(digits) - 1]
        key, _, value = record.partition(b"=")
        found[_text(key)] = _text(value)
        data = data[int(digits) :]
    return found


def _name(header: bytes) -> str:
    prefix = _text(header[345:500]) if header[257:262] == b"ustar" and header[263:265] == b"00" else ""
    return f"{prefix}/{_text(header[:100])}" if prefix else _text(header[:100])


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "replace")


def _clean(path: str) -> str:
    """Return a path with neither `.` nor `..` nor doubled slashes, which lead nowhere but here."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return "" if ".." in parts else "/".join(parts)
