"""Where each key of a TOML text stands, so that a complaint about a row can name its line."""

from __future__ import annotations

import json
import re
from functools import lru_cache

Path = tuple[str | int, ...]

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|\n|[\[\]{},=.]|[^\s\[\]{},=.#]+',
    re.DOTALL,
)


@lru_cache(maxsize=32)
def key_lines(text: str) -> dict[Path, int]:
    """Return the line (from 1) of every table, key and list item of a well-formed TOML text, by its path."""
    walker = _Walker(text)
    walker.walk()
    return walker.lines


class _Walker:
    """Goes through the tokens of one text; `tables` counts the tables of each list of them."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, int]] = []
        line, end = 1, 0
        for match in _TOKEN.finditer(text):
            line += text.count("\n", end, match.start())
            if not match[0].startswith("#"):
                self.tokens.append((match[0], line))
            line += match[0].count("\n")
            end = match.end()
        self.place = 0
        self.lines: dict[Path, int] = {}
        self.tables: dict[Path, int] = {}

    def walk(self) -> None:
        table: Path = ()
        while self.place < len(self.tokens):
            if self.peek() == "\n":
                self.place += 1
            elif self.peek() == "[":
                table = self.header()
            else:
                self.assignment(table)

    def peek(self) -> str:
        return self.tokens[self.place][0] if self.place < len(self.tokens) else ""

    def take(self) -> str:
        self.place += 1
        return self.tokens[self.place - 1][0]

    def skip(self, *passed: str) -> None:
        while self.peek() in passed:
            self.place += 1

    def header(self) -> Path:
        start, line = self.place, self.tokens[self.place][1]
        self.skip("[")
        listed = self.place - start == 2
        *parents, last = self.key("]")
        self.skip("]")
        path: Path = ()
        for part in parents:
            path = self.newest((*path, part))
        path = (*path, last)
        if listed:
            self.tables[path] = self.tables.get(path, 0) + 1
        path = self.newest(path)
        self.lines[path] = line
        return path

    def newest(self, path: Path) -> Path:
        return (*path, self.tables[path] - 1) if path in self.tables else path

    def key(self, end: str) -> list[str]:
        parts = []
        while self.peek() != end:
            part = self.take()
            if part != ".":
                parts.append(json.loads(part) if part[0] == '"' else part.strip("'"))
        return parts

    def assignment(self, table: Path) -> None:
        line = self.tokens[self.place][1]
        path = (*table, *self.key("="))
        self.lines[path] = line
        self.skip("=")
        self.value(path)

    def value(self, path: Path) -> None:
        opened = self.take()
        if opened == "[":
            self.items(path)
        elif opened == "{":
            self.skip("\n", ",")
            while self.peek() != "}":
                self.assignment(path)
                self.skip("\n", ",")
            self.place += 1
        else:
            while self.peek() not in ("\n", ",", "]", "}", ""):
                self.place += 1

    def items(self, path: Path) -> None:
        self.skip("\n", ",")
        number = 0
        while self.peek() != "]":
            self.lines[(*path, number)] = self.tokens[self.place][1]
            self.value((*path, number))
            self.skip("\n", ",")
            number += 1
        self.place += 1
