"""Fragments of training and serving files (YAML, JSON with comments, TOML), cut or re-laid as they may be.

Read line by line with a stack of open keys, not by the formats' own parsers: people paste parts, and a part
is no valid file. So there is no alias to expand and no nesting to exhaust.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from envdoctor import lazy_re as re
from envdoctor.facts import Setting
from envdoctor.pastes.settings import KeyTable, setting_sightings
from envdoctor.pastes.sightings import Paste, Sighting

DEPTH = 12
"""Levels of nesting that are followed."""
FILES = (".yaml", ".yml", ".json", ".jsonc", ".json5", ".toml")
"""A text of such a name is a whole file: its keys are told even where no common key stands for them."""
OTHER = "other."
"""What such a setting's key begins with; the native key follows."""

_TOKEN = re.compile(
    r"([{}])|[\"']?(?<![A-Za-z])([A-Za-z][\w.-]{0,80})[\"']?\s{0,8}[:=]\s{0,8}(?:([{\[])|(\"[^\"]{0,500}\"|'[^']{0,500}'|[^\s,{}\[\]\"'#][^,{}\[\]\"'#]{0,300}))?"
)
_START = re.compile(
    r"^(\s{0,60})(?:- )?[{\"']{0,2}\s{0,4}[\"']?[A-Za-z][\w.-]{0,80}[\"']?\s{0,8}[:=](?!=|:)(?"
    r":\s|[\"'{\[\w]|$)|^(\s{0,60})[{}\]]"
)
_LOOSE = re.compile(r"[^{\"'#]*")
_STATEMENT = re.compile(r"[ ;,][A-Za-z][\w.-]{1,40}\s?[:=] ")
_ASSIGNS = re.compile(r"[:=] ")
_SECTION = re.compile(r"^\[([A-Za-z][\w.-]{0,80})\]\s*$")
_PARAMETER = re.compile(r"^\s{1,60}[a-z_]\w{0,60}: (?:[A-Z]\w{2,60}|[a-z]\w{0,20}\[)[^'\"{}]{0,120},$")
"""A parameter of a function in code, and the class that it is of."""
_COMMENT = re.compile(r"(?:^|\s)(?://|#).*")
_DIVISION = re.compile(r"=[^:#\n]{0,80}?\b\d{1,9} ?// ?\w[\w.()\[\]]{0,80}\s*(?:[,)#]|$)")
"""A quotient that Python assigns, whose sign begins a comment in other languages."""
_REMARK = re.compile(r"(?:^|\s)#.*")

_LISTS = re.compile(r"[^{}\[\]\"':=]*: [^{}\[\]\"'=]*, ")
"""A value that says more than its label asks: `method: LoRA, ZeRO-3, length 4096`."""


@dataclass(slots=True)
class _Open:
    """The keys that are open at a line: name, indentation, and whether a brace opened it."""

    keys: list[tuple[str, int, bool]] = field(default_factory=list)
    section: str = ""

    def path(self, key: str) -> str:
        names = [name for name, _, _ in self.keys if name]
        return ".".join([*([self.section] if self.section else []), *names, key])

    def dedent(self, indent: int) -> None:
        while self.keys and not self.keys[-1][2] and indent <= self.keys[-1][1]:
            self.keys.pop()

    def push(self, name: str, indent: int, brace: bool) -> None:
        if len(self.keys) < DEPTH:
            self.keys.append((name, indent, brace))

    def close(self) -> None:
        while self.keys and not self.keys.pop()[2]:
            pass


def parse_configs(paste: Paste, table: KeyTable) -> Iterator[Sighting]:
    """Yield the settings under known keys of configuration fragments."""
    state = _Open()
    whole = paste.file_name.lower().endswith(FILES)
    for index, line in paste.loose():
        if _PARAMETER.match(line):
            paste.claimed.add(index)
        elif match := _SECTION.match(line):
            state = _Open(section=match[1])
        elif _START.match(line) and not _several(line):
            found = list(_line(line, state, table, paste.at("", index), whole))
            if found and (whole or not _LISTS.match(line)):
                paste.claimed.add(index)
            yield from found
        elif not line.startswith((" ", "\t", "#", "//", "]")):
            state = _Open()


def _several(line: str) -> bool:
    """True for several loose statements on a line, which is no configuration."""
    loose = _LOOSE.match(line)
    first = _ASSIGNS.search(loose[0]) if loose else None
    return bool(loose and first and _STATEMENT.search(loose[0], first.end()))


def _line(line: str, state: _Open, table: KeyTable, source: str, whole: bool) -> Iterator[Sighting]:
    stripped = line.lstrip(" \t-")
    indent = len(line) - len(stripped)
    text = (_REMARK if "//" in line and _DIVISION.search(line) else _COMMENT).sub("", line)
    state.dedent(indent)
    for position, token in enumerate(_TOKEN.finditer(text)):
        brace, key, opened, value = token.groups()
        if brace == "{":
            state.push("", indent, True)
        elif brace == "}":
            state.close()
        elif opened == "{":
            state.push(key, indent, True)
        elif value is not None and not (position and "{" not in text and '"' not in text):
            path = state.path(key)
            known = list(setting_sightings(table, path, value.strip(), source))
            yield from known
            if not known and (whole or (path != key and table.find(key))):
                text = value.strip().strip("'\"")
                yield Sighting("setting", Setting(OTHER + path.lower(), text, source, path), source)
        elif value is None and opened is None and position == 0:
            state.push(key, indent, False)
