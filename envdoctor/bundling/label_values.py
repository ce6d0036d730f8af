"""What follows a telling word: where its value begins and ends, beside it or under it in a table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from envdoctor.bundling.secret_values import is_drawn

VALUE_LIMIT = 2048
_JUDGED = 128
LONG_RUN = re.compile(r"[A-Za-z0-9_+=~.-]{16,}")
_QUOTES = {
    '"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u201e": "\u201c", "\u2018": "\u2019",
    "\u201a": "\u2018", "\u00ab": "\u00bb", "\u300c": "\u300d", "\u300e": "\u300f", "\u3010": "\u3011",
    "\uff02": "\uff02",
}  # fmt: skip
# Punctuation with which a value may begin, right after a quote, an assignment or a space.
_VALUE_START = frozenset("/+-_.~$#*!^&?%@")
_BARE_END = re.compile(
    r"(?:[\s\"'`,;&|)}\]><("
    "\u2018-\u201f\u2026\u3000-\u303f\uff01-\uff1f\uff3d\uff5d\u00ab\u00bb\u2500-\u257f]"
    r"|\\[nrt\"'\\u]|%26)"
)
_VARIABLE_END = re.compile(r"[\s\"'`]|\\[nrt\"'\\u]")


@dataclass(frozen=True)
class Value:
    """What stands after a label: its place, its beginning, the gap before it, its closing quote."""

    start: int
    text: str
    gap: str
    closing: str
    variable: bool

    @classmethod
    def read(cls, text: str, floor: int, end: int, variable: bool) -> Value | None:
        """Return the value whose gap goes from `floor` to `end`; None where nothing follows.

        A `variable`'s value ends at white space only.
        """
        start = _value_start(text, floor, end)
        gap = text[floor:start]
        if not gap and text[floor - 1 : floor].isascii():
            return None
        closing = _closing_of(text, start, floor)
        variable = variable and gap.startswith("=")
        begin, stop = extent(text, start, closing, variable, _JUDGED)
        return cls(begin, text[begin:stop], gap, closing, variable)

    def whole(self, text: str) -> tuple[int, int]:
        """Return where the value lies, followed to its end."""
        return extent(text, self.start, self.closing, self.variable, VALUE_LIMIT)


def _value_start(text: str, floor: int, end: int) -> int:
    start = end
    while start > floor and text[start - 1] in _VALUE_START:
        start -= 1
    before = text[start - 1 : start]
    if start > floor and (before in _QUOTES or before in "=:\uff1a\uff1d" or before.isspace()):
        return start
    return end


def _closing_of(text: str, start: int, floor: int) -> str:
    quote = text[start - 1 : start]
    if start <= floor or quote not in _QUOTES:
        return ""
    slashes = 0
    while slashes < 8 and text[start - 2 - slashes : start - 1 - slashes] == "\\":
        slashes += 1
    return "\\" * slashes + _QUOTES[quote]


def extent(text: str, start: int, closing: str, variable: bool, limit: int) -> tuple[int, int]:
    """Return where the value that begins at `start` lies: to its `closing` quote, or to where words end."""
    furthest = min(len(text), start + limit)
    newline = text.find("\n", start, furthest)
    if closing:
        line_end = newline if newline >= 0 else furthest
        end = text.find(closing, start, line_end)
        while end > 0 and len(closing) == 1 and text[end - 1] == "\\" and text[end - 2 : end] != "\\\\":
            end = text.find(closing, end + 1, line_end)
        if end >= 0:
            return start, end
    stop = (_VARIABLE_END if variable else _BARE_END).search(text, start, furthest)
    end = stop.start() if stop else furthest
    while end > start and text[end - 1] in ",;.:!?\u3002\uff0c":
        end -= 1
    return start, end


_BORDER = re.compile(r"[\s|+:=" "\u2500-\u257f-]*")
_BARS = re.compile("[|,;\u2502\u2503\u2551]")
_CELL = re.compile(r"[^\s,;|\"'`<>" "\u2502\u2503\u2551]{16,}")
_LINE = 400


def find_below(text: str, start: int, label_end: int) -> tuple[int, int] | None:
    """Find a drawn value under the label at `start:label_end` that heads its column."""
    begin = text.rfind("\n", max(0, start - _LINE), start) + 1
    end = text.find("\n", label_end, label_end + _LINE)
    if end < 0 or (begin == 0 and start > _LINE) or text[label_end : label_end + 1] not in " \t|,;\n\u2502":
        return None
    for _ in range(2):
        begin_below, end_below = end + 1, text.find("\n", end + 1, end + _LINE)
        end_below = end_below if end_below >= 0 else min(len(text), end + _LINE)
        line = text[begin_below:end_below]
        if not _BORDER.fullmatch(line):
            column = _column(text[begin:start], line)
            found = _CELL.match(line, column) if column is not None else None
            if found and is_drawn(found[0], 16):
                return begin_below + found.start(), begin_below + found.end()
            return None
        end = end_below
    return None


def _column(before: str, line: str) -> int | None:
    bars = len(_BARS.findall(before))
    if bars:
        places = [m.end() for m in _BARS.finditer(line)]
        if len(places) < bars:
            return None
        start = places[bars - 1]
        return start + len(line[start:]) - len(line[start:].lstrip())
    column = len(before) - len(re.search(r"[\w.-]{0,64}$", before)[0])  # type: ignore[index]
    return column if column < len(line) and (column == 0 or line[column - 1].isspace()) else None
