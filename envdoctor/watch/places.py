"""Where a run states a setting: words of its command, lines of its files; and writing another value there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envdoctor import lazy_re as re
from envdoctor.diagnosis import read_facts
from envdoctor.inputs import read_input_text
from envdoctor.matrix import Matrix, tables
from envdoctor.pastes.settings import KeyTable, fold_key, key_table, setting_sightings
from envdoctor.target.stack import Stack
from envdoctor.values import dataclass
from envdoctor.watch.moment import Header
from envdoctor.watch.told import framework_run, stack_of_run

KEYS = (
    "batch", "grad_accum", "grad_ckpt", "optim", "liger", "offload_optimizer", "vllm_utilization",
    "max_num_seqs", "max_model_len",
)  # fmt: skip
Changes = Mapping[str, str]
"""New values by common keys."""
_ADDED = {"grad_accum": "gradient_accumulation_steps", "grad_ckpt": "gradient_checkpointing"}
"""What is written beside the micro batch where it is not stated; all trainers below spell it so."""
_MAY_BE_ADDED = {"vllm": ("vllm_utilization", "max_num_seqs", "max_model_len")}
_BESIDE = ("per_device_train_batch_size", "micro_batch_size")
"""The names of the micro batch in transformers, TRL, LLaMA-Factory, ms-swift and axolotl."""
_OPPOSITE = {
    "false": "true", "False": "True", "FALSE": "TRUE", "no": "yes", "off": "on", "0": "1",
    "true": "false", "True": "False", "TRUE": "FALSE", "yes": "no", "on": "off", "1": "0",
    "none": "cpu",
}  # fmt: skip
_SWITCHES = ("true", "false")
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


@dataclass(frozen=True, slots=True)
class Places:
    """Where a run states the settings that may move, and by which names others may be added."""

    stated: tuple[Place, ...]
    names: Mapping[str, str]
    """By common key the framework's own, for what is stated nowhere."""
    at_the_end: bool = False
    """True where the command takes an option anywhere, so that one is added at its end."""

    def states(self, key: str) -> bool:
        """True where a setting is stated."""
        return any(place.key == key for place in self.stated)

    def missing(self, changes: Changes) -> list[str]:
        """Return the keys of changes that must be added, and can be."""
        return [key for key in changes if key in self.names and not self.states(key)]

    def is_anchor(self, place: Place) -> bool:
        """True for the one place beside which what is missing is written: the last of the micro batch."""
        named = [p for p in self.stated if p.key == "batch" and fold_key(p.native) in _BESIDE]
        return bool(named) and named[-1] == place


def places_of(header: Header, files: Mapping[str, str], matrix: Matrix) -> Places:
    """Return where a command and its files state the settings that may move."""
    framework = framework_run(header)
    names = _names(framework, matrix, stack_of_run(header))
    return Places(tuple(_stated(header, files, matrix)), names, framework == "vllm")


def _names(framework: str | None, matrix: Matrix, stack: Stack) -> Mapping[str, str]:
    """Return the names of settings that may be added: those that this framework's release has on record."""
    if framework is None:
        return _ADDED
    wanted = _MAY_BE_ADDED.get(framework, ("liger", "optim"))
    found: dict[str, str] = {} if framework in _MAY_BE_ADDED else dict(_ADDED)
    for owner in matrix.frameworks.with_bases(framework):
        for row in matrix.rows(tables.KeyRow):
            plain = row.framework == owner and row.canonical in wanted and not row.values
            if plain and "." not in row.native and stack.within(owner, row.versions) is not False:
                found.setdefault(row.canonical, row.native)
    return found


def _stated(header: Header, files: Mapping[str, str], matrix: Matrix) -> Iterator[Place]:
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


def edited_words(words: Sequence[str], places: Places, changes: Changes) -> tuple[str, ...]:
    """Return the command with the changed values, those added that are stated nowhere."""
    new = list(words)
    options = list(_options(words, None, places.stated))
    for option in options:
        if (value := changes.get(option.place.key)) is not None:
            old = words[option.at][len(option.head) :]
            new[option.at] = option.head + _spelled(option.place, value, old)
    missing = [(places.names[key], changes[key]) for key in places.missing(changes)]
    anchor = next((o for o in options if places.is_anchor(o.place)), None)
    if places.at_the_end:
        new += [word for name, value in missing for word in (f"--{name.replace('_', '-')}", value)]
    elif anchor is not None:
        new[anchor.at + 1 : anchor.at + 1] = [
            word for name, value in missing for word in _words(anchor, name, value)
        ]
    return tuple(new)


def _words(anchor: _Option, name: str, value: str) -> list[str]:
    """Return an option in the manner of the anchor's."""
    name = name.replace("_", "-") if "-" in anchor.place.native else name
    text = _word(value)
    if anchor.head:
        dashes = anchor.head[: len(anchor.head) - len(anchor.head.lstrip("-"))]
        return [f"{dashes}{name}={text}"]
    return [f"--{name}", text]


def edited_text(name: str, text: str, places: Places, changes: Changes) -> str:
    """Return a file's text with the changed values, those added beside the micro batch that are nowhere."""
    lines = text.splitlines(keepends=True)
    here = [p for p in places.stated if p.file == name and p.line <= len(lines)]
    for place in here:
        if place.key in changes:
            lines[place.line - 1] = _edited_line(lines[place.line - 1], place, changes[place.key])
    for anchor in filter(places.is_anchor, here):
        for key in places.missing(changes):
            lines[anchor.line - 1] = _with(lines[anchor.line - 1], anchor, places.names[key], changes[key])
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
        return f"{before}--{key} {_word(value)} {rest}"
    literal = value if value in _SWITCHES or value.replace(".", "").isdigit() else f'"{value}"'
    if suffix == ".json":
        gap = " " if before.strip() else f"\n{before}"
        return f'{before}"{key}": {literal},{gap}{rest}'
    if before.strip():
        return line
    return f"{before}{key}{f' = {literal}' if suffix == '.toml' else f': {value}'}\n{before}{rest}"


def _word(value: str) -> str:
    """Return a value as a command has it: trainers' switches are Python's."""
    return value.capitalize() if value in _SWITCHES else value


def _spelled(place: Place, value: str, old: str) -> str:
    """Return a value as that place spells it: a switch by the word opposite to the one that stands there."""
    if value not in _SWITCHES:
        return value
    return old if place.value == value else _OPPOSITE.get(old, old)
