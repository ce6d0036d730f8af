"""Where a run states a setting: words of its command, lines of its files; and writing another value there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envdoctor import lazy_re as re
from envdoctor.diagnosis import read_facts
from envdoctor.inputs import read_input_text
from envdoctor.matrix import Matrix, tables
from envdoctor.pastes.settings import KeyTable, fold_key, key_table, setting_sightings
from envdoctor.values import dataclass
from envdoctor.watch.moment import Header

KEYS = ("batch", "grad_accum", "grad_ckpt")
ADDED = {"grad_accum": "gradient_accumulation_steps", "grad_ckpt": "gradient_checkpointing"}
"""What is written beside the micro batch where it is not stated; all trainers below spell it so."""
_BESIDE = ("per_device_train_batch_size", "micro_batch_size")
"""The names of the micro batch in transformers, TRL, LLaMA-Factory, ms-swift and axolotl."""
_OPPOSITE = {
    "false": "true", "False": "True", "FALSE": "TRUE", "no": "yes", "off": "on", "0": "1",
    "true": "false", "True": "False", "TRUE": "FALSE", "yes": "no", "on": "off", "1": "0",
}  # fmt: skip
_LINE = re.compile(r"line ([0-9]{1,7})$")
_OPTION = re.compile(r"(?P<head>-{0,2}(?P<name>[A-Za-z][\w.-]{0,80}))(?:=(?P<value>.{0,300}))?", re.DOTALL)
_VALUE = (
    r"(?P<head>(?<![\w.-])[\"']?-{0,2}%s[\"']?(?:\s{0,8}[:=]\s{0,8}|\s{1,8})[\"']?)(?P<value>[\w.]{1,40})"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A statement of a setting: its common and its native key, in a file's line or (no file) the command."""

    key: str
    native: str
    value: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class _Option:
    """A value on the command line, and the word that holds it."""

    place: Place
    at: int
    """The word that holds the value."""
    head: str
    """What of that word stands before it."""


def read_text(path: Path) -> str:
    """Return a settings file's text; raises InputError."""
    return read_input_text(path, 1 << 20)


def places_of(header: Header, files: Mapping[str, str], matrix: Matrix) -> Iterator[Place]:
    """Yield where a command and its files state the settings that may move."""
    for name in files:
        for setting in read_facts([name], None, matrix).settings:
            line = _LINE.search(setting.source)
            if setting.key in KEYS and setting.native_key and line:
                native = setting.native_key.rpartition(".")[2]
                yield Place(setting.key, native, setting.value, name, int(line[1]))
    table = key_table(matrix.rows(tables.KeyRow))
    yield from (option.place for option in _options(header.argv, table))


def _options(words: Sequence[str], table: KeyTable | None, places: Sequence[Place] = ()) -> Iterator[_Option]:
    """Yield the options of a command that the table knows, or, without one, those of these places."""
    for at, word in enumerate(words):
        match = _OPTION.fullmatch(word)
        if match is None or not (word.startswith("--") or match["value"] is not None):
            continue
        if match["value"] is not None:
            found = _option(match["name"], match["value"], at, f"{match['head']}=", table, places)
        elif at + 1 < len(words):
            found = _option(match["name"], words[at + 1], at + 1, "", table, places)
        else:
            found = None
        if found is not None:
            yield found


def _option(
    name: str, value: str, at: int, head: str, table: KeyTable | None, places: Sequence[Place]
) -> _Option | None:
    if table is None:
        known = next((p for p in places if not p.file and p.native == name), None)
        return _Option(known, at, head) if known else None
    for sighting in setting_sightings(table, name, value, "the command"):
        setting = sighting.value
        if getattr(setting, "key", "") in KEYS:
            return _Option(Place(setting.key, name, setting.value), at, head)
    return None


def edited_words(
    words: Sequence[str], places: Sequence[Place], changes: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the command with the changed values, those added that are stated nowhere."""
    new = list(words)
    options = list(_options(words, None, places))
    for option in options:
        if (value := changes.get(option.place.key)) is not None:
            old = words[option.at][len(option.head) :]
            new[option.at] = option.head + _spelled(option.place, value, old)
    anchor = next((o for o in options if _is_anchor(o.place, places)), None)
    if anchor is not None:
        extra = [
            word for key in _missing(places, changes) for word in _words(anchor, key, changes[key], words)
        ]
        new[anchor.at + 1 : anchor.at + 1] = extra
    return tuple(new)


def _words(anchor: _Option, key: str, value: str, words: Sequence[str]) -> list[str]:
    """Return an option in the manner of the anchor's."""
    name = ADDED[key].replace("_", "-") if "-" in anchor.place.native else ADDED[key]
    text = value.capitalize() if value in ("true", "false") else value
    if anchor.head:
        dashes = anchor.head[: len(anchor.head) - len(anchor.head.lstrip("-"))]
        return [f"{dashes}{name}={text}"]
    return [f"--{name}", text]


def edited_text(name: str, text: str, places: Sequence[Place], changes: Mapping[str, str]) -> str:
    """Return a file's text with the changed values, those added beside the micro batch that are nowhere."""
    lines = text.splitlines(keepends=True)
    for place in (p for p in places if p.file == name and p.key in changes and p.line <= len(lines)):
        lines[place.line - 1] = _edited_line(lines[place.line - 1], place, changes[place.key])
    anchor = next((p for p in places if p.file == name and _is_anchor(p, places)), None)
    if anchor is not None and anchor.line <= len(lines):
        for key in _missing(places, changes):
            lines[anchor.line - 1] = _with(lines[anchor.line - 1], anchor, ADDED[key], changes[key])
    return "".join(lines)


def _edited_line(line: str, place: Place, value: str) -> str:
    def put(match: re.Match[str]) -> str:
        return f"{match['head']}{_spelled(place, value, match['value'])}"

    return _statement(place).sub(put, line, count=1)


def _statement(place: Place) -> re.Pattern[str]:
    return re.compile(_VALUE % re.escape(place.native))


def _with(line: str, anchor: Place, key: str, value: str) -> str:
    """Return a line with one more setting before the anchor's, in the file's own manner."""
    match = _statement(anchor).search(line)
    if match is None:
        return line
    before, rest = line[: match.start()], line[match.start() :]
    suffix = Path(anchor.file).suffix
    if suffix == ".sh":
        return f"{before}--{key} {value.capitalize()} {rest}"
    if suffix == ".json":
        gap = " " if before.strip() else f"\n{before}"
        return f'{before}"{key}": {value},{gap}{rest}'
    if before.strip():
        return line
    return f"{before}{key}{' = ' if suffix == '.toml' else ': '}{value}\n{before}{rest}"


def _is_anchor(place: Place, places: Sequence[Place]) -> bool:
    """True for the one place beside which what is missing is written: the last that names the micro batch."""
    named = [p for p in places if p.key == "batch" and fold_key(p.native) in _BESIDE]
    return bool(named) and named[-1] == place


def _missing(places: Sequence[Place], changes: Mapping[str, str]) -> list[str]:
    return [key for key in ADDED if key in changes and not any(p.key == key for p in places)]


def _spelled(place: Place, value: str, old: str) -> str:
    """Return a value as that place spells it: a switch by the word opposite to the one that stands there."""
    if value not in ("true", "false"):
        return value
    return old if place.value == value else _OPPOSITE.get(old, old)
