"""Tables whose heads name a column of users, hosts or serial numbers: squeue, ps, top, lsblk, kubectl."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envdoctor.bundling.hosts import COMMON_HOSTS
from envdoctor.bundling.sought import Searched
from envdoctor.bundling.spans import Span
from envdoctor.bundling.users import COMMON_ACCOUNTS

_HEADS = {
    "user": "user", "uid": "user", "owner": "user", "username": "user", "account": "user", "login": "user",
    "nodelist": "host", "nodelist(reason)": "host", "node": "host", "nodes": "", "hostname": "host",
    "hostnames": "host", "host": "host", "from": "host", "nodename": "host", "exec_host": "host",
    "serial": "serial", "sn": "serial", "wwn": "serial", "guid": "guid", "partuuid": "serial",
}  # fmt: skip
_HEAD_HINTS = (
    " user", "\tuser", "|user", "user ", "uid ", "owner", "account", "nodelist", "hostname", " node ",
    "serial", " sn ", " wwn", "guid", "exec_host", "nodename", " from ", "partuuid",
)  # fmt: skip
_BESIDE_WORDS = """
jobid pid partition state st time command cmd tty pr ppid name jobname fd type model size namespace
ready status job id queue index device nodes restarts age ip avail timelimit login@ what fstype label
uuid s
"""
_BESIDE = frozenset(_BESIDE_WORDS.split())
_WORD = re.compile(r"[^\s|,]{1,64}(?: ID\b)?")
_CELL = re.compile(r"[^|,]{1,200}")
_LEAST_HEADS = 3
_ROWS = 400
_ACCOUNT = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]{0,31}")
_HOST = re.compile(r"[A-Za-z][A-Za-z0-9.,\[\]-]{1,400}")
_SERIAL = re.compile(r"(?:0x)?[A-Za-z0-9][A-Za-z0-9:._-]{5,63}")
_SHAPES = {"user": _ACCOUNT, "host": _HOST, "serial": _SERIAL, "guid": _SERIAL}


def find_columns(searched: Searched) -> Iterator[Span]:
    """Find the cells under a head that names users, hosts or serial numbers."""
    text = searched.text
    for start, end in searched.lines_with(_HEAD_HINTS):
        line = text[start:end].rstrip("\n")
        if wanted := _read_head(line):
            yield from _find_cells(text, line, end, wanted)


def _read_head(line: str) -> dict[int, str]:
    """Return which columns of a table's head are wanted, by place; none for a line that is no head."""
    words = [word.lower() for word in _words(line)]
    wanted = {i: kind for i, word in enumerate(words) if (kind := _HEADS.get(word))}
    beside = sum(word in _BESIDE or "%" in word for word in words)
    return wanted if wanted and len(words) >= _LEAST_HEADS and beside >= 2 else {}


def _words(line: str) -> list[str]:
    separator = _separator(line)
    if separator:
        return [cell.strip() for cell in line.strip("| \t").split(separator)]
    return _WORD.findall(line)


def _separator(line: str) -> str:
    return "|" if line.count("|") >= 2 else "," if line.count(",") >= 2 else ""


def _find_cells(text: str, head: str, start: int, wanted: dict[int, str]) -> Iterator[Span]:
    separator, heads = _separator(head), [m.span() for m in _WORD.finditer(head)]
    for _ in range(_ROWS):
        newline = text.find("\n", start, start + 4096)
        end = newline if newline >= 0 else min(len(text), start + 4096)
        line = text[start:end]
        if not line.strip():
            return
        for place, kind in wanted.items():
            cell = _separated(line, separator, place) if separator else _under(line, heads, place)
            if cell and _is_one(line[cell[0] : cell[1]], kind):
                yield Span(start + cell[0], start + cell[1], kind)
        if newline < 0:
            return
        start = end + 1


def _separated(line: str, separator: str, place: int) -> tuple[int, int] | None:
    offset = len(line) - len(line.lstrip("| \t"))
    cells = line[offset:].split(separator)
    if place >= len(cells):
        return None
    start = offset + sum(len(cell) + 1 for cell in cells[:place])
    cell = cells[place]
    begin = start + len(cell) - len(cell.lstrip())
    return begin, begin + len(cell.strip())


def _under(line: str, heads: list[tuple[int, int]], place: int) -> tuple[int, int] | None:
    """Return the word that stands under a head: under its letters, or the one at its place."""
    words = [m.span() for m in re.finditer(r"\S{1,200}", line)]
    start, end = heads[place]
    under = [span for span in words if span[0] < end and span[1] > start]
    if len(under) == 1:
        return under[0]
    return words[place] if len(words) >= len(heads) and place < len(words) else None


def _is_one(word: str, kind: str) -> bool:
    shape = _SHAPES[kind]
    if not shape.fullmatch(word):
        return False
    if kind == "user":
        return word.lower() not in COMMON_ACCOUNTS
    if kind == "host":
        return word.lower() not in COMMON_HOSTS and any(c.isdigit() or c in "-." for c in word)
    return any(c.isdigit() for c in word)
