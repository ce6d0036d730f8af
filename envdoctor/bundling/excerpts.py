"""The telling part of a log of any size: tracebacks, the lines before them, errors, head and tail."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from envdoctor.errors import InputError
from envdoctor.inputs import open_input

HEAD_LINES = 30
TAIL_LINES = 60
BEFORE_LINES = 15
TRACEBACK_LINES = 250
KEPT_TRACEBACKS = 3
AFTER_LINES = 5
ERROR_KINDS = 60
LINE_LIMIT = 4096
LARGEST = 64 << 30
"""Bytes of a log that are read; so many take a minute."""
_BLOCK = 1 << 18
_LONGEST_CARRY = 1 << 17
_TRACEBACK = b"Traceback (most recent call last)"
_TELLING = (
    b"Error", b"ERROR", b"error:", b"error ", b"FATAL", b"CRITICAL", b"fatal", b"Exception", b"Killed",
    b"Aborted", b"core dumped", b"Segmentation fault", b"out of memory", b"Xid", b"NCCL WARN", b"panic",
    b"undefined symbol", b"cannot open shared object", b"Traceback",
)  # fmt: skip
_PREFIX = rb"(?:\[[^\]\n]{1,40}\][: ]{0,2}|[0-9A-Za-z_.-]{1,40}: |\([A-Za-z0-9_=, .-]{1,60}\)[ ]?){0,3}"
_IN_TRACEBACK = re.compile(
    _PREFIX + rb"(?:\s+\S|\s*$|During handling|The above exception|Traceback|[|+]| {2})"
)
_DIGITS = re.compile(rb"0x[0-9a-fA-F]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class LogExcerpt:
    """The kept lines with their numbers, and how long the log was."""

    lines: tuple[tuple[int, str], ...]
    line_count: int
    byte_count: int

    def text(self) -> str:
        """Return the kept lines; a gap says how many lines are left out."""
        parts: list[str] = []
        last = 0
        for number, line in self.lines:
            if number > last + 1:
                parts.append(f"[… {number - last - 1:,} lines left out …]")
            parts.append(line)
            last = number
        if self.line_count > last:
            parts.append(f"[… {self.line_count - last:,} lines left out …]")
        return "\n".join(parts) + "\n" if parts else ""


@dataclass(slots=True)
class _Keeper:
    """What is kept while the lines go by; bounded whatever goes by."""

    kept: dict[int, bytes] = field(default_factory=dict)
    before: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))
    seen: set[bytes] = field(default_factory=set)
    open_lines: int = 0
    last: tuple[int, bytes] | None = None
    """The block with the last traceback, once enough of the first are kept, and its line's number."""

    @property
    def full(self) -> bool:
        """True when the first tracebacks are kept and of the later ones only the last is wanted."""
        return len(self.kept) >= HEAD_LINES + KEPT_TRACEBACKS * TRACEBACK_LINES

    def take(self, number: int, line: bytes) -> None:
        """Look at one line."""
        if number <= HEAD_LINES:
            self.kept[number] = line
        if _TRACEBACK in line and not self.full:
            self.kept.update(list(self.before)[-BEFORE_LINES:])
            self.open_lines = TRACEBACK_LINES
        elif not self.open_lines and any(word in line for word in _TELLING):
            self._take_telling(number, line)
        if self.open_lines:
            self._keep_open(number, line)
        self.before.append((number, line))

    def skip(self, number: int, block: bytes) -> int:
        """Pass over a block without looking at its lines; return the number of its last line."""
        count = block.count(b"\n")
        last = block.removesuffix(b"\n").rsplit(b"\n", TAIL_LINES)[-TAIL_LINES:]
        first = number + count - len(last) + 1
        self.before.extend((first + i, _visible_part(line)) for i, line in enumerate(last))
        return number + count

    def remember(self, number: int, block: bytes) -> None:
        """Note that the last traceback so far lies in `block`, which follows line `number`."""
        start = _lines_before(block, block.rfind(_TRACEBACK), BEFORE_LINES)
        self.last = (number + block.count(b"\n", 0, start), block[start:])

    def _keep_open(self, number: int, line: bytes) -> None:
        self.kept[number] = line
        self.open_lines -= 1
        if _TRACEBACK not in line and not _IN_TRACEBACK.match(line):
            self.open_lines = min(self.open_lines, AFTER_LINES)

    def _take_telling(self, number: int, line: bytes) -> None:
        kind = _DIGITS.sub(b"0", line[:200])
        if kind in self.seen or len(self.seen) >= ERROR_KINDS:
            return
        self.seen.add(kind)
        self.kept.update(list(self.before)[-3:])
        self.kept[number] = line

    def lines(self) -> dict[int, bytes]:
        """Return the kept lines by number, the last traceback and the log's end among them."""
        latest = _Keeper()
        if self.last:
            number, block = self.last
            for i, line in enumerate(block.split(b"\n")[: BEFORE_LINES + TRACEBACK_LINES], 1):
                latest.take(number + i, _visible_part(line))
        return {**self.kept, **latest.kept, **dict(self.before)}


def _lines_before(block: bytes, position: int, count: int) -> int:
    for _ in range(count + 1):
        position = block.rfind(b"\n", 0, max(0, position))
        if position < 0:
            return 0
    return position + 1


def read_excerpt(path: Path) -> LogExcerpt:
    """Read the log at `path`, never whole; raises InputError naming it when it cannot be read."""
    try:
        with open_input(path) as stream:
            if os.fstat(stream.fileno()).st_size > LARGEST:
                raise _too_large(path)
            return excerpt(stream)
    except _Endless:
        raise _too_large(path) from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'cannot be read'}") from None


def _too_large(path: Path) -> InputError:
    return InputError(f"{path}: more than {LARGEST >> 30} GiB: cut what matters out of it first")


class _Endless(Exception):
    """More than the largest log came."""


def excerpt(stream: BinaryIO) -> LogExcerpt:
    """Return the telling part of a log in bounded memory; lines are cut at 4,096 bytes."""
    keeper = _Keeper()
    number = byte_count = 0
    for size, block in _line_blocks(stream):
        byte_count += size
        if byte_count > LARGEST:
            raise _Endless
        number = _take_block(keeper, number, block)
    lines = tuple((n, line.decode("utf-8", "replace")) for n, line in sorted(keeper.lines().items()))
    return LogExcerpt(lines, number, byte_count)


def _take_block(keeper: _Keeper, number: int, block: bytes) -> int:
    failing = keeper.full and _TRACEBACK in block
    if failing:
        keeper.remember(number, block)
    telling = number < HEAD_LINES or keeper.open_lines or any(word in block for word in _TELLING)
    if failing or not telling:
        return keeper.skip(number, block)
    first = number
    for line in block.removesuffix(b"\n").split(b"\n"):
        number += 1
        keeper.take(number, _visible_part(line))
    if keeper.full and _TRACEBACK in block:
        keeper.remember(first, block)
    return number


def _line_blocks(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines and the bytes read for each; of an endless line both ends are kept."""
    carry, read = b"", 0
    while data := stream.read(_BLOCK):
        whole, newline, rest = (carry + data).rpartition(b"\n")
        if newline:
            yield read + len(data), whole + newline
            read = 0
        else:
            read += len(data)
        carry = rest
        if len(carry) > _LONGEST_CARRY:
            carry = carry[: 2 * LINE_LIMIT] + carry[-2 * LINE_LIMIT :]
    if carry:
        yield read, carry + b"\n"


def _visible_part(line: bytes) -> bytes:
    # A progress bar rewrites its line with carriage returns: what stands there at last is what was seen.
    line = line.rstrip(b"\r\n")
    if b"\r" in line:
        line = line.rpartition(b"\r")[2]
    if len(line) > LINE_LIMIT:
        return line[:LINE_LIMIT] + b" [... cut]"
    return line
