"""Error signatures: found in one pass over a text, in time linear in its length."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, chain

from envdoctor import lazy_re as re
from envdoctor.facts import Symptom
from envdoctor.matrix import tables
from envdoctor.pastes.sightings import line_templates
from envdoctor.pastes.sizes import with_sizes
from envdoctor.patterns import row_pattern
from envdoctor.values import dataclass

MATCHES_PER_SYMPTOM = 8
AGAIN = 16
"""Lines kept of one signature that recurs."""
TRIES_PER_SYMPTOM = 500
_SUPPOSED = re.compile(
    r"(?i)\b(?:may|might|could|can|would|if you \w{2,12}|(?:to )?avoid|to prevent)\s(?:\w{1,12}\s){0,2}$"
)
"""What stands before words of what has not happened: `This may cause OOM errors`."""
_LISTED = re.compile(r"[ \t]{0,12}(\d{1,5})[ \t]")
_RAN = re.compile(r"[ \t]{0,4}-{1,12}> ?(\d{1,5})\b")
WINDOW = 4096
"""Characters around a needle that a pattern may look at."""
AMID = 4
"""Bytes from the middle of a template by which it is looked up."""
_Sought = tuple[str, bytes, tables.SymptomRow]
"""A needle, its line's template, and the row that it leads to."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A signature met: its first line (0-based), the columns it matched by line, and its captures."""

    line: int
    spans: tuple[tuple[int, int, int], ...]
    text: str
    captured: Mapping[str, str]
    pattern: tables.SymptomRow
    again: tuple[int, ...] = ()
    """Further lines that hold the same words with the same captures."""

    def symptom(self, source: str) -> Symptom:
        """Return the symptom with its source."""
        return Symptom(self.pattern.id, self.text, source, self.captured)


def met_within(sights: Iterable[Sight], first: int, last: int) -> tuple[str, ...]:
    """Return the ids of the signatures that stand in the lines from `first` to `last`."""
    within = (s for s in sights if any(first <= line <= last for line in (s.line, *s.again)))
    return tuple(dict.fromkeys(sight.pattern.id for sight in within))


def scan(
    lines: Sequence[str], patterns: Iterable[tables.SymptomRow], templates: Iterable[bytes] | None = None
) -> list[Sight]:
    """Return the signatures met in `lines`, in the order of the lines, the same captures once.

    `templates` are the lines' templates where the caller has them already.
    """
    text = "\n".join(lines)
    folded = _fold(text)
    vocabulary = b"\n".join(set(line_templates(lines) if templates is None else templates))
    starts = [0, *accumulate(len(line) + 1 for line in lines[:-1])]
    met: dict[tables.SymptomRow, list[str]] = {}
    for needle, template, pattern in _near(vocabulary, _sought(tuple(patterns))):
        if template in vocabulary and needle in folded:
            met.setdefault(pattern, []).append(needle)
    found = [
        one for pattern, needles in met.items() for one in _sights(pattern, needles, text, folded, starts)
    ]
    return sorted(found, key=lambda sight: sight.line)


def _fold(text: str) -> str:
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


@lru_cache(maxsize=2)
def _sought(patterns: tuple[tables.SymptomRow, ...]) -> dict[bytes, list[tuple[int, _Sought]]]:
    """Return the needles with their templates, rows and places, by what stands amid a template."""
    told = [(needle, pattern) for pattern in patterns for needle in pattern.needles]
    templates = line_templates([needle for needle, _ in told]) if told else ()
    sought: dict[bytes, list[tuple[int, _Sought]]] = {}
    for place, ((needle, pattern), template) in enumerate(zip(told, templates, strict=True)):
        start = len(template) - AMID >> 1
        amid = template[start : start + AMID] if start >= 0 else b""
        sought.setdefault(amid, []).append((place, (needle, template, pattern)))
    return sought


def _near(vocabulary: bytes, sought: Mapping[bytes, list[tuple[int, _Sought]]]) -> Iterator[_Sought]:
    """Yield what may stand in the vocabulary, as the rows are ordered."""
    there = {vocabulary[at : at + AMID] for at in range(len(vocabulary) - AMID + 1)} | {b""}
    yield from (one for _, one in sorted(chain.from_iterable(sought[amid] for amid in sought.keys() & there)))


def _sights(
    pattern: tables.SymptomRow, needles: Iterable[str], text: str, folded: str, starts: Sequence[int]
) -> Iterator[Sight]:
    compiled = row_pattern(pattern.pattern)
    seen: dict[tuple[tuple[str, str], ...], Sight] = {}
    done = 0
    for line, begin, end in sorted(set(_windows(needles, text, folded, starts, pattern.wrapped))):
        begin = max(begin, done)
        match = compiled.search(text[begin:end])
        if match is None:
            continue
        if "\n" not in match[0] and _is_beside_code(text, starts, begin + match.start()):
            continue
        if not pattern.wrapped and _SUPPOSED.search(text[begin : begin + match.start()][-40:]):
            continue
        done = begin + match.end()
        captured = with_sizes({k: v.strip() for k, v in match.groupdict().items() if v is not None})
        key = tuple(sorted(captured.items()))
        first, last = begin + match.start(), begin + match.end()
        quoted = _quoted(text, first, last, starts[line])
        if (met := seen.get(key)) is not None:
            seen[key] = _once_more(met, line, quoted)
            continue
        spans = tuple(_spans(starts, first, last))
        seen[key] = Sight(line, spans, quoted, captured, pattern)
        if len(seen) >= MATCHES_PER_SYMPTOM:
            break
    yield from seen.values()


def _once_more(met: Sight, line: int, quoted: str) -> Sight:
    """Return a signature that recurs; a title's words give way to the line itself."""
    if len(met.again) >= AGAIN:
        return met
    if not met.text.startswith("# "):
        return replace(met, again=(*met.again, line))
    return replace(met, line=line, text=quoted, again=(met.line, *met.again))


def _is_beside_code(text: str, starts: Sequence[int], position: int) -> bool:
    """True within a numbered line of code that IPython shows around the one that ran: it printed nothing."""
    line = bisect_right(starts, position) - 1
    number = _LISTED.match(text, starts[line])
    if number is None:
        return False
    for other, step in ((line - 1, -1), (line + 1, 1)):
        start = starts[other] if 0 <= other < len(starts) else len(text)
        near = _RAN.match(text, start) or _LISTED.match(text, start)
        if near and int(near[1]) == int(number[1]) + step:
            return True
    return False


def _windows(
    needles: Iterable[str], text: str, folded: str, starts: Sequence[int], wrapped: bool
) -> Iterator[tuple[int, int, int]]:
    """Yield the line and the bounds in which to try a pattern, for each place where a needle stands."""
    for needle in needles:
        position = folded.find(needle)
        for _ in range(TRIES_PER_SYMPTOM):
            if position < 0:
                break
            line = bisect_right(starts, position) - 1
            begin, end = _window(text, starts, line, position, wrapped)
            yield line, begin, end
            position = folded.find(needle, max(0 if wrapped else end, position + len(needle)))


def _spans(starts: Sequence[int], begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield line, first and last column of what lies between two positions."""
    line = bisect_right(starts, begin) - 1
    while line < len(starts) and starts[line] < end:
        yield line, max(0, begin - starts[line]), end - starts[line]
        line += 1


def _window(text: str, starts: Sequence[int], line: int, position: int, wrapped: bool) -> tuple[int, int]:
    """Return the bounds within which the pattern is tried: the needle's line, or also its neighbours."""
    first = max(0, line - 1) if wrapped else line
    last = min(len(starts), line + (5 if wrapped else 1))
    end = starts[last] - 1 if last < len(starts) else len(text)
    return max(starts[first], position - WINDOW // 2), min(end, position + WINDOW // 2)


def _quoted(text: str, first: int, last: int, line_start: int) -> str:
    end = text.find("\n", last)
    line = text[min(line_start, first) : len(text) if end < 0 else end]
    return " ".join(line.split())[:400]
