"""A paste made plain (colours, quotes, HTML, full-width digits), and what one of its lines told."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envdoctor import lazy_re as re
from envdoctor.facts import Distribution, Gpu
from envdoctor.facts.names import normalise
from envdoctor.matrix.card_names import CardNames
from envdoctor.matrix.lexicon import PackageNames
from envdoctor.pastes.distributions import Told, parse_told

REPEATED = 64
"""A line whose words recur more often than this is a log's, and tells nothing of the machine by itself."""

HEAD, TAIL = 800, 500
"""Lines of a long paste within which loose statements and settings are looked for."""

LINE_LIMIT = 4096
"""Characters of a line that are read; what follows is cut (log lines of binary junk)."""

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\-_])|\x9b[0-?]*[ -/]*[@-~]"
)
_BLANK = " " * 64
"""The longest run of blanks that is kept, so that no pattern meets thousands."""
_BLANKS = re.compile(r"[ \t]{64,}")
_LOST_ESCAPES = re.compile(r"\[\d{1,3}(?:;\d{1,3}){0,4}m")
_IN_A_STRING = "Traceback (most recent call last):\\n"
"""How a traceback begins that a program logged as a string with its line ends written out."""
_HEADED = "Traceback (most recent call last): File"
"""How a traceback begins that a page shows on one line."""
_JOINTS = re.compile(
    r'(?<=\S) (?=File "[^"\n]{1,400}", line \d{1,7}\b|Traceback \(most recent call last\)|'
    r"(?:During handling of|The above exception was) )"
)
_JOINED_FRAME = re.compile(
    r'^(File "[^"\n]{1,400}", line \d{1,7}(?:, in \S{1,120})?)(?: (.{0,900}?))??'
    r"(?: ((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit|Iteration)(?:: .*)?))?$"
)
"""A frame with its code, and behind the last one the exception that it ends in."""
_UNICODE = "\\u00"
_UNICODE_CHARACTER = re.compile(r"\\u00([2-7][0-9a-f])")
"""How JSON writes a quote."""
_SERVICE = re.compile(r"(?m)^([a-z][a-z0-9_.-]{2,60}) {1,40}\| ?")
_SERVED = 3
"""Lines that begin by one name before it is taken for a service's."""
_ESCAPED_BLANK = "%20"
_QUOTED_LINE = re.compile(r"(?m)^(?!.{0,400}://).{0,2000}%20.{0,2000}$")
"""A line of words whose blanks are written as in a link, and that holds none."""
_QUOTED_CHARACTER = re.compile(r"%([2-7][0-9A-Fa-f])")
_QUOTES = re.compile(r"(?m)^[ \t]{0,3}(?:>[ \t]?)+")
_CELLS = re.compile(r"(?i)</?t[dh]\b[^<>\n]{0,200}>")
_TAGS = re.compile(
    r"(?i)</?(?:details|summary|pre|code|p|br|hr|div|span|b|i|strong|em|ul|ol|li|table|tr|tbody|thead|sub|sup|kbd|h\d)"
    r"\b[^<>\n]{0,200}>"
)
_BOLD = re.compile(r"(?m)^([ \t]{0,8})\*\*([^*\n]{1,400})\*\*[ \t]{0,8}$")
"""A line of which all is printed bold."""
_ENTITIES = {"&gt;": ">", "&lt;": "<", "&quot;": '"', "&#39;": "'", "&nbsp;": " ", "&amp;": "&"}
_PUNCTUATION = {
    "：": ":", "，": ",", "（": "(", "）": ")", "＝": "=", "；": ";", "｜": "|",
    "／": "/", "＋": "+", "、": ",",
    "【": "[", "】": "]", "。": ". ", "“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "×": "x",
    "│": "|", "┃": "|", "\u3000": " ", "\u00a0": " ", "\u202f": " ", "\u200b": "", "\u200c": "",
    "\u200d": "", "\u2060": "", "\ufeff": "", "\u2028": "\n", "\u2029": "\n", "\u0085": "\n",
}  # fmt: skip
_NO_ASCII_DIGIT = re.compile(r"[^\D0-9]")


@dataclass(frozen=True, slots=True)
class Sighting:
    """A value seen. `place` is a field of Facts (`driver.version`) or a collection (`gpus`)."""

    place: str
    value: Any
    source: str = ""


@dataclass(slots=True)
class Paste:
    """The plain lines of one paste, and which of them a reader has already understood."""

    lines: list[str]
    name: str = ""
    file_name: str = ""
    cards: CardNames = field(default_factory=CardNames)
    packages: PackageNames = field(default_factory=PackageNames)
    folder: Path | None = None
    """Where the file lies, for what it names beside it."""
    claimed: set[int] = field(default_factory=set)
    templates: list[bytes] = field(init=False)
    """Each line without its digits."""
    passed_over: int = 0
    """Lines that `loose` left out the last time."""
    _repeated: set[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.templates = line_templates(self.lines)
        counts = Counter(self.templates) if len(self.lines) > REPEATED else {}
        self._repeated = {
            template for template, count in counts.items() if count > REPEATED and len(template) > 3
        }

    def at(self, kind: str, index: int) -> str:
        """Return the source to cite for the line of that index (0-based)."""
        place = f"{kind}, line {index + 1}" if kind else f"line {index + 1}"
        return f"{self.name}: {place}" if self.name else place

    def blank(self, spans: Iterable[tuple[int, int, int]]) -> None:
        """Take out what an error signature matched, so that its versions are not read as facts."""
        for line, begin, end in spans:
            text = self.lines[line]
            self.lines[line] = text[:begin] + " " * (min(end, len(text)) - begin) + text[end:]

    def loose(self) -> Iterable[tuple[int, str]]:
        """Yield the unclaimed lines that a person may have written: of a long paste its head and its tail."""
        if len(self.lines) <= HEAD + TAIL:
            return self.unclaimed()
        lines = list(self.unclaimed())
        self.passed_over = max(0, len(lines) - HEAD - TAIL)
        return lines[:HEAD] + lines[-TAIL:] if self.passed_over else lines

    def unclaimed(self) -> Iterable[tuple[int, str]]:
        """Yield index and text of the lines that no reader has understood, but empty and repeated ones."""
        claimed, repeated, templates = self.claimed, self._repeated, self.templates
        return (
            (i, line)
            for i, line in enumerate(self.lines)
            if line and i not in claimed and templates[i] not in repeated
        )


def card_sighting(source: str, **told: Any) -> Sighting:
    """Return the sighting of one card, of which this much is told."""
    return Sighting("gpus", (Gpu(0, source, **told),))


def distribution_sightings(name: str, text: str, source: str, exact: bool = False) -> list[Sighting]:
    """Return what `text` tells of the distribution `name`: `2.3.1+cu121`, `<0.46`, `0.14.x`, `2.1 (CPU)`.

    `exact`: `2.4` is the whole version (a listing), not a prefix that someone typed.
    """
    told = parse_told(text, exact)
    return [] if told is None else told_sightings(name, told, source)


def told_sightings(name: str, told: Told, source: str, **extra: Any) -> list[Sighting]:
    """Return the sightings that a version as told makes for the distribution `name`."""
    key = normalise(name)
    found = []
    if told.version or told.specifier or not told.build:
        distribution = Distribution(key, source, version=told.version, specifier=told.specifier, **extra)
        found.append(Sighting("distribution", distribution, source))
    if told.build:
        found.append(build_sighting(key, told.build, source))
    return found


def build_sighting(name: str, build: Mapping[str, Any], source: str) -> Sighting:
    """Return the sighting of build facts (`{"cuda": "12.1"}`) of the distribution `name`."""
    return Sighting("build", (name, dict(build)), source)


_BUILDKIT = re.compile(
    r"(?m)^(?:#\d{1,4} )?\d{1,5}\.\d{1,3} (?=(?:ERROR|WARNING|INFO|error|note|Traceback|Collecting|Looking"
    r" in|[A-Z]\w{2,40}Error)\b|\s{2,8}File \"|\s{0,8}[×╰│])"
)
"""What docker's builder puts before each line of a step: its number and the seconds since it began."""


_FIELDS = (
    "level=",
    "lvl=",
    "severity=",
    "levelname=",
    '"level"',
    '"lvl"',
    '"severity"',
    '"levelname"',
    '"stream"',
)
"""What stands in a line that is written by fields."""
_TELLING = 20
"""Letters of a message by which it is known again."""


def plain_lines(text: str) -> list[str]:
    """Return the lines of `text` as plain text, one for each line of the original (universal newlines)."""
    text = _unify(text)
    if _IN_A_STRING in text:
        text = _unescaped(text)
    if _UNICODE in text:
        text = _UNICODE_CHARACTER.sub(lambda code: chr(int(code[1], 16)), text)
    if _HEADED in text:
        text = "\n".join(_unfolded(line) if _HEADED in line else line for line in text.split("\n"))
    if _ESCAPED_BLANK in text:
        text = _QUOTED_LINE.sub(_unquoted, text)
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    if "[0m" in text:
        text = _LOST_ESCAPES.sub("", text)
    if ">" in text:
        text = _QUOTES.sub("", text)
    if "<" in text:
        text = _TAGS.sub("", _CELLS.sub("|", text))
    if "**" in text:
        text = _BOLD.sub(r"\1\2", text)
    if "&" in text:
        text = _entities(text)
    if ("-" in text and "  | " in text) or "1 | " in text:
        text = _without_services(text)
    if _BUILDKIT.search(text):
        text = _BUILDKIT.sub("", text)
    if _BLANK in text:
        text = _BLANKS.sub(_BLANK, text)
    lines = [line[:LINE_LIMIT] for line in text.split("\n")]
    if any(sign in text for sign in _FIELDS):
        from envdoctor.pastes.log_fields import without_fields

        lines = [without_fields(line) if any(sign in line for sign in _FIELDS) else line for line in lines]
    return _completed(lines)


def _completed(lines: list[str]) -> list[str]:
    """Return the lines, the last one whole where a text is cut off in a message that its first line has."""
    last = next((index for index in reversed(range(len(lines))) if lines[index].strip("`~ \t")), 0)
    said = lines[last].strip()
    message = said.partition(": ")[2] or said
    place = lines[0].find(message) if last and len(message) >= _TELLING else -1
    rest = lines[0][place + len(message) :] if place >= 0 else ""
    if rest and not rest[0].isspace():
        lines[last] += rest
    return lines


def _without_services(text: str) -> str:
    """Return a text without the names of services that `docker compose logs` puts before each line."""
    counted = Counter(_SERVICE.findall(text))
    named = {name for name, count in counted.items() if count >= _SERVED and ("-" in name or "_" in name)}
    return _SERVICE.sub(lambda match: "" if match[1] in named else match[0], text) if named else text


def _unquoted(line: re.Match[str]) -> str:
    """Return a line with its characters in place of how a link writes them."""
    return _QUOTED_CHARACTER.sub(lambda code: chr(int(code[1], 16)), line[0])


def _unfolded(line: str) -> str:
    """Return a traceback that stands on one line as its lines."""
    parts = []
    for part in _JOINTS.split(line):
        frame = _JOINED_FRAME.match(part)
        shown = ("  ", "    ", "") if frame else ("",)
        parts += [
            f"{lead}{text}"
            for lead, text in zip(shown, frame.groups() if frame else [part], strict=False)
            if text
        ]
    return "\n".join(parts)


def _unescaped(text: str) -> str:
    """Return a text whose tracebacks stand in strings (JSON of a log) with their lines as lines."""
    lines = text.split("\n")
    told = (line.replace("\\n", "\n").replace('\\"', '"') if _IN_A_STRING in line else line for line in lines)
    return "\n".join(told)


def _unify(text: str) -> str:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return text
    for character, plain in _PUNCTUATION.items():
        if character in text:
            text = text.replace(character, plain)
    for digit in set(_NO_ASCII_DIGIT.findall(text)):
        text = text.replace(digit, str(unicodedata.decimal(digit)))
    return text


def apart_from_blocks(lines: Iterable[str]) -> Iterator[tuple[int, str, bool]]:
    """Yield each line with its number from 0, and whether it stands in a block of code; no block's marks."""
    inside = False
    for number, line in enumerate(lines):
        if line.lstrip().startswith(("```", "~~~")):
            inside = not inside
        else:
            yield number, line, inside


def fenced_lines(lines: Iterable[str]) -> frozenset[int]:
    """Return the numbers of the lines, from 0, that stand in a block of code or of output."""
    return frozenset(number for number, _, inside in apart_from_blocks(lines) if inside)


def line_templates(lines: Sequence[str]) -> list[bytes]:
    """Return each line in lower case without its digits: what lines of a log have in common."""
    return "\n".join(lines).lower().encode("utf-8", "replace").translate(None, b"0123456789").split(b"\n")


def _entities(text: str) -> str:
    for entity, character in _ENTITIES.items():
        text = text.replace(entity, character)
    return text
