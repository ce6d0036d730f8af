"""Other ways to read a text, and the way back: lines joined, escapes decoded, a table's cells united."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from envdoctor.bundling.secret_values import is_continuation, is_mixed
from envdoctor.bundling.spans import left_of

TOKEN_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.~+/=%")
_BARS = "|\u2502\u2503\u2551\u2016"
_BEFORE_BREAK = frozenset(" \t\r\u00a0\\" + _BARS)
_AFTER_BREAK = frozenset(" \t\r\u00a0>" + _BARS)
_REACH = 120
# A launcher's mark before each line: `[rank0]: `, `(EngineCore pid=312) `.
_MARK = re.compile(r"(?:\[[A-Za-z0-9_.-]{1,24}\]:?[ ]{1,2}|\([A-Za-z0-9_=, -]{1,60}\)[ ])")


@dataclass(frozen=True, slots=True)
class View:
    """A text made of pieces of another, and where each piece came from.

    A piece as long as its origin stands for it character by character, another one as a whole.
    """

    text: str
    starts: tuple[int, ...]
    """Where each piece begins in `text`."""
    origins: tuple[tuple[int, int], ...]
    """Where it lay in the other text."""

    def pieces(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the spans in the other text that `start:end` is made of, in order, touching ones as one."""
        found: list[tuple[int, int]] = []
        at = bisect_right(self.starts, start) - 1
        while at < len(self.starts) and (begin := self.starts[at]) < end:
            stop = self.starts[at + 1] if at + 1 < len(self.starts) else len(self.text)
            first, last = self.origins[at]
            if last - first == stop - begin:
                first, last = first + max(start - begin, 0), last - max(stop - end, 0)
            if found and found[-1][1] == first:
                found[-1] = (found[-1][0], last)
            else:
                found.append((first, last))
            at += 1
        return found

    def is_split(self, start: int, end: int) -> bool:
        """True when `start:end` comes from more than one place."""
        return len(self.pieces(start, end)) > 1


@dataclass(slots=True)
class _Builder:
    """A text in the making, each part with where it came from."""

    parts: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    origins: list[tuple[int, int]] = field(default_factory=list)
    length: int = 0

    def add(self, part: str, start: int, end: int) -> None:
        if part:
            self.parts.append(part)
            self.starts.append(self.length)
            self.origins.append((start, end))
            self.length += len(part)

    def view(self) -> View:
        return View("".join(self.parts), tuple(self.starts), tuple(self.origins))


def joined(text: str, every: bool = False) -> View | None:
    """Return the lines of `text` that a token may go on over, without their breaks; None without any.

    The line before such lines is with them, for it may name what follows. With `every`, a break counts
    whatever stands around it: for values that are known.
    """
    builder, done = _Builder(), 0
    for start, end in _breaks(text, every):
        line = text.rfind("\n", done, start) + 1
        if line > done:
            if builder.parts:
                close = text.find("\n", done) + 1
                builder.add(text[done:close], done, close)
                done = close
            done = max(done, text.rfind("\n", done, line - 1) + 1)
        builder.add(text[done:start], done, start)
        done = end
    if not builder.parts:
        return None
    close = (text.find("\n", done) + 1) or len(text)
    builder.add(text[done:close], done, close)
    return builder.view()


def _breaks(text: str, every: bool) -> Iterator[tuple[int, int]]:
    """Yield the line breaks, with what stands around them, that a token may go on over."""
    done, newline = 0, text.find("\n")
    while newline >= 0:
        start, end = _break_around(text, newline, done)
        if (
            start > done
            and end < len(text)
            and (_joinable(text, start, end) and (every or _may_go_on(text, start, end, newline)))
        ):
            yield start, end
            done = end
        newline = text.find("\n", max(newline + 1, end))


_LAST_RUN, _FIRST_RUN = re.compile(r"[A-Za-z0-9_.~+/=%-]{1,64}$"), re.compile(r"[A-Za-z0-9_.~+/=%-]{1,64}")
_RUN = 64
_TERMINAL_WIDTHS = frozenset((79, 80, 100, 120, 132))


def _joinable(text: str, start: int, end: int) -> bool:
    return text[start - 1] in TOKEN_CHARACTERS and text[end] in TOKEN_CHARACTERS


def _may_go_on(text: str, start: int, end: int, newline: int) -> bool:
    last, first = _LAST_RUN.search(left_of(text, start, _RUN)), _FIRST_RUN.match(text, end)
    if last is None or first is None:
        return False
    if is_mixed(last[0]) and (len(last[0]) >= 6 or is_mixed(first[0])):
        return True
    if newline - (text.rfind("\n", max(0, newline - 133), newline) + 1) in _TERMINAL_WIDTHS:
        return True
    return is_continuation(first[0], text[first.end() : first.end() + 2])


def _break_around(text: str, newline: int, floor: int) -> tuple[int, int]:
    start, end = newline, newline + 1
    while start > max(floor, newline - _REACH) and text[start - 1] in _BEFORE_BREAK:
        start -= 1
    if mark := _MARK.match(text, end):
        end = mark.end()
    while end < min(len(text), newline + _REACH) and text[end] in _AFTER_BREAK:
        end += 1
    if start > floor and text[start - 1] in "\"'" and text[end : end + 1] == text[start - 1]:
        # Adjacent literals: `"hf_abc"` on one line goes on as `"def"` on the next.
        start, end = start - 1, end + 1
    return start, end


_ESCAPE = re.compile(
    r"\\{1,32}(?P<plain>[\"'/])|\\{1,32}(?:u00|x)(?P<code>[0-9a-fA-F]{2})|\\{1,32}(?P<control>[nrt])|"
    r"&(?:amp;){0,3}(?:(?P<entity>quot|apos|lt|gt|amp|nbsp)|#(?P<decimal>[0-9]{2,3})|#x(?P<hex>[0-9a-fA-F]{2}));|"
    r"%(?:25){0,3}(?P<percent>[0-9A-Fa-f]{2})"
)
_ENTITIES = {"quot": '"', "apos": "'", "lt": "<", "gt": ">", "amp": "&", "nbsp": " "}
_CONTROLS = {"n": "\n", "r": "\n", "t": "\t"}


def decoded(text: str) -> View | None:
    """Return the lines of `text` that spell characters out, with these as characters; None without any.

    However deep they are nested: `\\\\\\"`, `%253D` and `&amp;quot;` are a quote, an equals sign and a quote.
    """
    if not any(mark in text for mark in ("\\", "%", "&")):
        return None
    builder, start = _Builder(), 0
    for line in text.split("\n"):
        done, end = start, start + len(line)
        for match in _ESCAPE.finditer(text, start, end):
            builder.add(text[done : match.start()], done, match.start())
            builder.add(_decode(match), match.start(), match.end())
            done = match.end()
        if done > start:
            builder.add(text[done : end + 1], done, min(end + 1, len(text)))
        start = end + 1
    return builder.view() if builder.parts else None


def _decode(match: re.Match[str]) -> str:
    if plain := match["plain"]:
        return plain
    if control := match["control"]:
        return _CONTROLS[control]
    if entity := match["entity"]:
        return _ENTITIES[entity]
    if match["decimal"]:
        return chr(int(match["decimal"]))
    return chr(int(match["code"] or match["hex"] or match["percent"], 16))


_CELL_BAR = re.compile("[|\u2502\u2503\u2551]")
_LEAST_BARS = 3


def cells(text: str) -> View | None:
    """Return the rows of tables whose cells go on over several lines, put together; None without any."""
    if not any(bar in text for bar in "|\u2502\u2503\u2551"):
        return None
    builder = _Builder()
    for rows in _wrapped_rows(text):
        for column in range(len(rows[0]) - 1):
            for row in rows:
                first, last = row[column] + 1, row[column + 1]
                cell = text[first:last]
                start = first + len(cell) - len(cell.lstrip())
                builder.add(cell.strip(), start, start + len(cell.strip()))
            builder.add(" | ", rows[0][column + 1], rows[0][column + 1] + 1)
        builder.add("\n", rows[-1][-1], rows[-1][-1] + 1)
    return builder.view() if builder.parts else None


def _wrapped_rows(text: str) -> Iterator[list[list[int]]]:
    """Yield the lines, as their bars' places, of each row that goes on over more than one."""
    group: list[list[int]] = []
    shape: list[int] = []
    start = 0
    for line in text.split("\n"):
        bars = [m.start() for m in _CELL_BAR.finditer(line)] if line else []
        goes_on = (
            bool(group)
            and bars == shape
            and len(bars) >= _LEAST_BARS
            and not line[bars[0] + 1 : bars[1]].strip()
        )
        if not goes_on:
            if len(group) > 1:
                yield group
            group, shape = ([], bars)
        if len(bars) >= _LEAST_BARS:
            group.append([start + bar for bar in bars])
        start += len(line) + 1
    if len(group) > 1:
        yield group
