"""What uv and poetry write of a conflict: sentences that run over lines, each saying who asks for what.

pip's own lines are signatures of the matrix; these are wrapped to a terminal's width and read as one text.
"""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor import lazy_re as re
from envdoctor.facts import Symptom
from envdoctor.pastes.sightings import Paste, Sighting

ASKED, WISHED, PART = "SYM-PIP-DEPENDS", "SYM-PIP-WISH", "SYM-UV-PART"
LINES = 120
"""Lines of one resolver's explanation that are read."""
SENTENCES = 40
_BEGINS = re.compile(r"(?i)\b(?:because|no solution found when resolving|version solving failed)\b")
_MARKER = re.compile(r"\{[^{}]{0,200}\}")
_SPEC = r"(?P<spec>[<>=!~]=?[\w.*+!]{1,40}(?:, ?[<>=!~]=?[\w.*+!]{1,40}){0,6})"
_WHO = r"(?P<who>[A-Za-z][\w.-]{0,60})"
_NEED = r"(?P<need>[A-Za-z][\w.-]{0,60})(?:\[[\w,-]{1,60}\])?"
_UV_WHO = r"(?P<who>[A-Za-z][\w.<>=!~*+,:\[\]-]{0,100}|your (?:project|workspace))"
_ANOTHER = r"(?![\w.*+!]|,\S| (?:depend|require|cannot|has|have|was|were|is|are|must)s?\b)"
"""What follows a second wish: not the words that make it the subject of the next clause."""
_UV = re.compile(rf"{_UV_WHO} depends? on {_NEED}{_SPEC}")
_UV_BOTH = re.compile(rf"{_UV_WHO} depends? on [^\s,]\S{{0,160}} and {_NEED}{_SPEC}{_ANOTHER}")
_UV_WISH = re.compile(rf"you require {_NEED}{_SPEC}")
_UV_WISHES = re.compile(rf"you require [^\s,]\S{{0,160}} and {_NEED}{_SPEC}{_ANOTHER}")
_CONCLUDED = re.compile(
    r"(?:we can conclude that|we know from \(\d{1,3}\) that) .{1,600}?"
    r"(?=,? (?:and |And )?because |, we can| Because | hint: |$)"
)
"""What follows from the clauses before it: no wish of anyone's own."""
_UV_PART = re.compile(
    r"(?<![\w.\[:-])(?P<project>[A-Za-z][\w.-]{0,60})"
    r"(?:\[(?P<extra>[A-Za-z][\w.-]{0,60})\]|:(?P<group>[A-Za-z][\w.-]{0,60}))"
    r"(?= (?:depends|and|are|cannot)\b|,|'s)"
)
_UV_SAYS = "we can conclude that"
_UV_HINT = re.compile(r"^[\s|]{0,12}hint: ")
_RANGE = r"(?P<spec>[\^~]?\d[\w.*+!]{0,40}|[<>=!~]=?[\w.*+!]{1,40}(?:, ?[<>=!~]=?[\w.*+!]{1,40}){0,6})"
_POETRY = re.compile(rf"(?P<who>[A-Za-z][\w.-]{{0,60}} \([^()]{{1,120}}\)) depends on {_NEED} \({_RANGE}\)")
_POETRY_OWN = re.compile(rf"{_WHO} depends on (?:both )?{_NEED} \({_RANGE}\)")
_POETRY_BOTH = re.compile(
    rf"{_WHO} depends on both [^()]{{1,80}} \([^()]{{1,120}}\) and {_NEED} \({_RANGE}\)"
)
_CARET = re.compile(r"([\^~]?)(\d{1,9})((?:\.\d{1,9}){0,4})")
_FORMS = (
    *((ASKED, _UV), (ASKED, _UV_BOTH), (WISHED, _UV_WISH), (WISHED, _UV_WISHES)),
    *((ASKED, _POETRY), (ASKED, _POETRY_OWN), (ASKED, _POETRY_BOTH)),
)


def parse_resolvers(paste: Paste) -> Iterator[Sighting]:
    """Yield who asks for what in the explanations of uv and poetry; they take the place of a signature.

    What uv explains is not installed: its lines tell of no distribution.
    """
    index, found = 0, 0
    while index < len(paste.lines):
        if _BEGINS.search(paste.lines[index]) is None:
            index += 1
            continue
        end = _end(paste.lines, index)
        text = _joined(paste.lines[index:end])
        if _UV_SAYS in text:
            paste.claimed.update(range(index, end))
            paste.claimed.update(i for i in range(end, len(paste.lines)) if _UV_HINT.match(paste.lines[i]))
        for symptom in (
            *_sentences(_CONCLUDED.sub("", text), paste.at("", index)),
            *_parts(text, paste.at("", index)),
        ):
            yield Sighting("symptom", symptom)
            found += 1
        if found >= SENTENCES:
            return
        index = end


def _end(lines: list[str], start: int) -> int:
    stop = min(len(lines), start + LINES)
    return next((i for i in range(start + 1, stop) if not _bare(lines[i]) and not _goes_on(lines, i)), stop)


def _goes_on(lines: list[str], blank: int) -> bool:
    """True where the line after a blank one goes on in the middle of a sentence that uv always ends."""
    after = _bare(lines[blank + 1]) if blank + 1 < len(lines) else ""
    return after.startswith("and ") and _bare(lines[blank - 1]).endswith(",")


def _bare(line: str) -> str:
    return line.strip(" │|╰─▶>`")


def _joined(lines: list[str]) -> str:
    text = " ".join(map(_bare, lines))
    return _MARKER.sub("", " ".join(text.split()))


def _sentences(text: str, source: str) -> Iterator[Symptom]:
    taken: set[tuple[int, int]] = set()
    for identity, pattern in _FORMS:
        for match in pattern.finditer(text):
            if match.span("need") in taken:
                continue
            taken.add(match.span("need"))
            captured = {key: value for key, value in match.groupdict().items() if value}
            captured["spec"] = _as_clauses(captured["spec"].rstrip("."))
            yield Symptom(identity, match[0][:400], source, captured)


def _parts(text: str, source: str) -> Iterator[Symptom]:
    """Yield the extras and groups of the project that uv names: those without a version beside them."""
    for match in _UV_PART.finditer(text) if _UV_SAYS in text else ():
        captured = {key: value for key, value in match.groupdict().items() if value}
        yield Symptom(PART, match[0], source, captured)


def _as_clauses(spec: str) -> str:
    """Return poetry's `2.4.0`, `^2.5` and `~2.5` as clauses: a release, its major or its minor series."""
    match = _CARET.fullmatch(spec)
    if match is None:
        return spec
    sign, major, rest = match.groups()
    if not sign:
        return f"=={major}{rest}"
    minor = rest.split(".")[1] if rest else ""
    series = f"{major}.{minor}" if minor and (sign == "~" or major == "0") else major
    head, _, last = series.rpartition(".")
    return f">={major}{rest},<{head + '.' if head else ''}{int(last) + 1}"
