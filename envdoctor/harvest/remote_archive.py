"""Members of archives that stay where they are: wheels by ranged reads, sdists by streaming.

A wheel's directory stands at its end and its metadata just before, so that the tail usually answers in one
read. Sizes are capped before anything is inflated, and every whole member is checked against its CRC.
"""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from envdoctor.errors import Unavailable
from envdoctor.fetch import Fetcher, TooLarge
from envdoctor.inflating import inflate
from envdoctor.inputs import MEBIBYTE

TAIL = 32 * 1024
LARGEST_DIRECTORY = 32 * MEBIBYTE
LARGEST_MEMBER = 16 * MEBIBYTE
LARGEST_SDIST = 64 * MEBIBYTE
GAP = 128 * 1024
WINDOW = 8 * MEBIBYTE
LARGEST_UNPACKED = 192 * MEBIBYTE
MOST_MEMBERS = 50_000
_EOCD = b"PK\x05\x06"
_LOCAL_HEADER = 30


class BadArchive(Unavailable):
    """The bytes are no archive that can be trusted, or lack the member asked for."""


@contextmanager
def naming(filename: str) -> Iterator[None]:
    """Name the file in what is raised while its members are read; raises BadArchive for what is none."""
    try:
        yield
    except (BadArchive, zipfile.BadZipFile, zlib.error) as error:
        raise BadArchive(f"{filename}: {error}") from None


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of a zip directory: sizes and the offset of its local header, in bytes."""

    name: str
    method: int
    crc: int
    packed: int
    size: int
    offset: int


@dataclass(slots=True)
class RemoteZip:
    """A zip archive behind a URL; opening it reads its directory alone."""

    fetcher: Fetcher
    url: str
    members: dict[str, Member] = field(init=False)
    _tail: bytes = field(init=False, default=b"")
    _tail_start: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        """Read the directory; raises BadArchive or what the fetcher raises."""
        tail = self.fetcher.get_range(self.url, -TAIL, TAIL)
        self._tail, self._tail_start = tail.body, tail.start
        start, size = self._directory_place(tail.total)
        if size > LARGEST_DIRECTORY:
            raise BadArchive(f"its directory claims {size} bytes")
        self.members = parse_directory(self._bytes(start, size))

    def read(self, name: str) -> bytes:
        """Return a member's content, checked; raises BadArchive."""
        member = self._member(name)
        if member.size > LARGEST_MEMBER or member.packed > LARGEST_MEMBER:
            raise BadArchive(f"{name} claims {member.size} bytes")
        start = member.offset
        slack = 512 + len(member.name.encode())
        raw = self._bytes(start, _LOCAL_HEADER + slack + member.packed, short=True)
        skip = _local_skip(raw)
        if len(raw) < skip + member.packed:
            raw = self._bytes(start, skip + member.packed)
        return _inflated(raw[skip : skip + member.packed], member)

    def read_many(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield members with their content, near ones fetched at once; raises BadArchive."""
        for window in _windows([self._member(name) for name in names]):
            start = window[0].offset
            last = window[-1]
            slack = _LOCAL_HEADER + 512 + len(last.name.encode())
            raw = self._bytes(start, last.offset - start + slack + last.packed, short=True)
            for member in window:
                piece = raw[member.offset - start :]
                skip = _local_skip(piece)
                yield member.name, _inflated(piece[skip : skip + member.packed], member)

    def stream(self, name: str) -> Generator[bytes, None, None]:
        """Give a member's content piece by piece as it is inflated; a reader that has enough just stops."""
        member = self._member(name)
        skip = _local_skip(self._bytes(member.offset, _LOCAL_HEADER))
        with self.fetcher.stream(self.url, member.offset + skip, member.packed) as chunks:
            inflate = zlib.decompressobj(-15)
            for chunk in chunks:
                yield chunk if member.method == 0 else inflate.decompress(chunk)

    def _member(self, name: str) -> Member:
        if name not in self.members:
            raise BadArchive(f"has no member {name}")
        member = self.members[name]
        if member.method not in (0, 8):
            raise BadArchive(f"{name} is packed by method {member.method}")
        return member

    def _directory_place(self, total: int) -> tuple[int, int]:
        at = self._tail.rfind(_EOCD)
        if at < 0 or len(self._tail) < at + 22:
            raise BadArchive("not a zip archive, or cut short")
        size, start = struct.unpack_from("<II", self._tail, at + 12)
        if start == 0xFFFFFFFF or size == 0xFFFFFFFF:
            size, start = self._zip64_place(at)
        if start + size > total:
            raise BadArchive("its directory points outside the file")
        return start, size

    def _zip64_place(self, at: int) -> tuple[int, int]:
        locator = self._tail[at - 20 : at] if at >= 20 else b""
        if locator[:4] != b"PK\x06\x07":
            raise BadArchive("its zip64 record is missing")
        record = self._bytes(struct.unpack_from("<Q", locator, 8)[0], 56)
        if record[:4] != b"PK\x06\x06":
            raise BadArchive("its zip64 record is malformed")
        size, start = struct.unpack_from("<QQ", record, 40)
        return int(size), int(start)

    def _bytes(self, start: int, length: int, short: bool = False) -> bytes:
        """Return a stretch of the file, from the tail where it covers it; `short` accepts the file's end."""
        if start >= self._tail_start:
            kept = self._tail[start - self._tail_start :][:length]
        else:
            missing = min(length, self._tail_start - start)
            kept = self.fetcher.get_range(self.url, start, missing).body + self._tail[: length - missing]
        if len(kept) < length and not short:
            raise BadArchive("cut short")
        return kept


def _windows(members: Sequence[Member]) -> Iterator[list[Member]]:
    """Yield members in runs of at most 8 MiB whose gaps are not worth a request of their own."""
    window: list[Member] = []
    for member in sorted(members, key=lambda m: m.offset):
        if window:
            end = window[-1].offset + window[-1].packed
            if member.offset - end > GAP or member.offset + member.packed - window[0].offset > WINDOW:
                yield window
                window = []
        window.append(member)
    if window:
        yield window


def parse_directory(data: bytes) -> dict[str, Member]:
    """Return the members that a zip's central directory lists; raises BadArchive."""
    members: dict[str, Member] = {}
    at = 0
    while at + 46 <= len(data):
        if data[at : at + 4] != b"PK\x01\x02":
            raise BadArchive("its directory is malformed")
        method, crc, packed, size, name_length, extra, comment, offset = struct.unpack_from(
            "<10xH4xIIIHHH8xI", data, at
        )
        name = data[at + 46 : at + 46 + name_length].decode("utf-8", "replace")
        packed, size, offset = _zip64_sizes(
            data[at + 46 + name_length : at + 46 + name_length + extra], packed, size, offset
        )
        members[name] = Member(name, method, crc, packed, size, offset)
        at += 46 + name_length + extra + comment
    return members


def _zip64_sizes(extra: bytes, packed: int, size: int, offset: int) -> tuple[int, int, int]:
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            numbers = iter(struct.unpack_from(f"<{length // 8}Q", extra, at + 4))
            size, packed, offset = (
                next(numbers, value) if value == 0xFFFFFFFF else value for value in (size, packed, offset)
            )
        at += 4 + length
    return packed, size, offset


def _local_skip(header: bytes) -> int:
    if len(header) < _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
        raise BadArchive("a member's header is malformed")
    name, extra = struct.unpack_from("<HH", header, 26)
    return _LOCAL_HEADER + int(name) + int(extra)


def _inflated(packed: bytes, member: Member) -> bytes:
    try:
        content = (
            packed if member.method == 0 else zlib.decompressobj(-15).decompress(packed, member.size + 1)
        )
    except zlib.error as error:
        raise BadArchive(f"{member.name} cannot be unpacked: {error}") from None
    if len(content) != member.size or zlib.crc32(content) != member.crc:
        raise BadArchive(f"{member.name} is damaged: wrong length or checksum")
    return content


def read_sdist_members(
    fetcher: Fetcher, url: str, wanted: Callable[[str], bool], enough: Callable[[dict[str, bytes]], bool]
) -> dict[str, bytes]:
    """Return the wanted members of an sdist, read in order until `enough` of them are there.

    Raises BadArchive for what is no tar or zip, TooLarge past 64 MiB.
    """
    if url.partition("#")[0].endswith(".zip"):
        archive = RemoteZip(fetcher, url)
        return {name: archive.read(name) for name in archive.members if wanted(name)}
    found: dict[str, bytes] = {}
    try:
        with fetcher.stream(url) as chunks, tarfile.open(fileobj=_Pipe(chunks), mode="r|") as archive_:
            for number, entry in enumerate(archive_):
                if number == MOST_MEMBERS:
                    raise BadArchive(f"the sdist has more than {MOST_MEMBERS} members")
                if entry.isfile() and entry.size <= LARGEST_MEMBER and wanted(entry.name):
                    stream = archive_.extractfile(entry)
                    found[entry.name] = stream.read() if stream else b""
                    if enough(found):
                        break
    except (tarfile.TarError, zlib.error, EOFError, OSError, AttributeError, TypeError) as error:
        # tarfile raises TypeError where a gzip header ends too early.
        # AttributeError: Python 3.10's tarfile trips over its own attribute in a damaged stream.
        raise BadArchive(f"not a readable sdist: {error}") from None
    return found


def _weighed(chunks: Iterator[bytes], limit: int) -> Iterator[bytes]:
    """Yield the chunks; raises TooLarge once they pass `limit` bytes."""
    seen = 0
    for chunk in chunks:
        seen += len(chunk)
        if seen > limit:
            raise TooLarge(f"the sdist passes {limit} bytes")
        yield chunk


class _Pipe(io.RawIOBase):
    """Lets `tarfile` read a packed stream, and no more of it than an sdist may weigh, packed and unpacked."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = _weighed(inflate(_weighed(chunks, LARGEST_SDIST)), LARGEST_UNPACKED)
        self._kept = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._kept) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._kept += chunk
        size = len(self._kept) if size < 0 else size
        given, self._kept = self._kept[:size], self._kept[size:]
        return given
