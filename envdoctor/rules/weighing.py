"""Weighs causes that rival for one symptom or one failure: the general gives way to the close."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from envdoctor import lazy_re as re
from envdoctor.facts import ErrorSeen, Facts
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.values import replace

_RIVALS_SHOWN = 3
_CROWD = 3
"""So many causes of one line cannot each be likely."""
_OUTSTANDING = 0.96
"""What arithmetic or the facts make all but sure is not lost in a crowd."""
_WENT_ON = re.compile(r"(?:[(\[][^)\]\n]{1,60}[)\]]\s?){0,2}(?:WARNING|WARN|INFO|DEBUG)\b")
"""How a line begins that a logger does not call an error."""
_QUOTES = re.compile(r"(?!ModuleNotFound)\b\w+(?:Error|Exception)\b")
_OF_ITS_OWN = 0.8
"""What is the cause this often, whenever its line is seen, is no mere report of another line's."""
KILLS = frozenset({"SYM-HOST-KILLED", "SYM-SIGKILL", "SYM-SIGKILL-CODE"})
"""Lines by which a shell or a launcher tells that a process was killed."""
_DOUBT = {Certainty.CERTAIN: 0, Certainty.LIKELY: 1, Certainty.UNCERTAIN: 2}


def weigh(findings: Sequence[Finding], facts: Facts) -> list[Finding]:
    """Where the facts choose a cause of a symptom, drop the guesses at it; else keep the likeliest few."""
    findings = [finding for finding in findings if not _is_end_of_another(finding, facts)]
    findings = _without_crowds([_as_warned(finding, facts) for finding in findings])
    answered = {s for f in findings if not _is_guess(f) for s in f.explains}
    kept = [f for f in findings if not (_is_guess(f) and f.explains and set(f.explains) <= answered)]
    likely = {s for f in kept if f.certainty is not Certainty.UNCERTAIN for s in f.explains}
    kept = [f for f in kept if not (f.is_last_resort and f.explains and set(f.explains) <= likely)]
    for failure in failures(facts):
        kept = _closest(kept, failure)
    surplus: set[str] = set()
    for symptom in {s for finding in kept for s in finding.explains}:
        rivals = sorted((f for f in kept if symptom in f.explains), key=_rank)
        surplus |= {f.id for f in rivals[_RIVALS_SHOWN:] if f.certainty is Certainty.UNCERTAIN}
    return _said_once([finding for finding in kept if finding.id not in surplus])


def _said_once(findings: Sequence[Finding]) -> list[Finding]:
    """Keep the surest of what answers the same line by the same pins: the others say it again."""
    kept: dict[tuple[object, ...], list[Finding]] = {}
    again: set[int] = set()
    for finding in sorted((f for f in findings if f.explains), key=_rank):
        pins = finding.remedies[0].pins if finding.remedies else {}
        surer = kept.setdefault((finding.severity, *sorted(pins.items())), []) if pins else []
        if any(set(finding.explains) <= set(other.explains) for other in surer):
            again.add(id(finding))
        else:
            surer.append(finding)
    return [finding for finding in findings if id(finding) not in again]


def _is_end_of_another(finding: Finding, facts: Facts) -> bool:
    """True for a guess about a killed process whose own traceback stands above: its launcher ended it."""
    if not finding.explains or not KILLS.issuperset(finding.explains) or not finding.fallback:
        return False
    told = [error for error in facts.errors if set(error.symptoms) & set(finding.explains)]
    return bool(told) and all(error.frames or was_killed_after(facts, error) for error in told)


def was_killed_after(facts: Facts, error: ErrorSeen) -> bool:
    """True where an exception with a traceback stands above the line that tells of a killed process."""
    return any(one.frames and one.kind == "exception" and one.line < error.line for one in facts.errors)


def _as_warned(finding: Finding, facts: Facts) -> Finding:
    """Take for a warning what only lines tell that a logger does not call errors, beside an exception.

    A line that itself quotes an exception may be the reason of the one that ends the run.
    """
    if finding.severity is not Severity.ERROR or not finding.explains:
        return finding
    ended = [error for error in facts.errors if error.kind == "exception"]
    if not ended or any(set(finding.explains) & set(error.symptoms) for error in ended):
        return finding
    texts = [symptom.text for symptom in facts.symptoms if symptom.id in finding.explains]
    if not texts or not all(_WENT_ON.match(text) and not _QUOTES.search(text) for text in texts):
        return finding
    certainty = finding.certainty if finding.certainty is Certainty.UNCERTAIN else Certainty.LIKELY
    return replace(finding, severity=Severity.WARNING, certainty=certainty)


def _without_crowds(findings: Sequence[Finding]) -> list[Finding]:
    """Take for uncertain what is one of many likely causes of each line, but for the one that stands out."""
    likely = [f for f in findings if f.certainty is Certainty.LIKELY and f.explains]
    counted = Counter(s for f in likely for s in f.explains)
    crowded = {symptom for symptom, count in counted.items() if count >= _CROWD}
    lost = [f for f in likely if crowded.issuperset(f.explains)]
    ahead = [f for f in lost if f.prior >= _OUTSTANDING]
    left = ahead if len(ahead) == 1 else []
    return [replace(f, certainty=Certainty.UNCERTAIN) if f in lost and f not in left else f for f in findings]


def failures(facts: Facts) -> list[frozenset[str]]:
    """Return the symptoms of each failure that a text shows: errors that share a symptom report the same one.

    An exception, the library's own line below it and the call that failed are printed as several errors.
    """
    known = {symptom.id for symptom in facts.symptoms}
    joined: list[frozenset[str]] = []
    for error in facts.errors:
        one = frozenset(error.symptoms) & known
        apart = [other for other in joined if not other & one]
        joined = [*apart, one.union(*(other for other in joined if other & one))]
    return [symptoms for symptoms in joined if len(symptoms) > 1]


def _closest(findings: Sequence[Finding], failure: frozenset[str]) -> list[Finding]:
    """Drop a failure's general answers where a closer one is at least likely, else all but the strongest.

    What is left accounts for the failure's other lines as well.
    """
    general = sorted((f for f in findings if _is_general(f) and failure.issuperset(f.explains)), key=_rank)
    close = [f for f in findings if _is_close(f) and failure.intersection(f.explains)]
    heirs, surplus = (close, general) if close else (general[:1], general[1:])
    told = tuple(symptom for one in surplus for symptom in one.explains)
    kept = (f for f in findings if f not in surplus)
    return [
        replace(f, explains=tuple(dict.fromkeys((*f.explains, *told)))) if f in heirs else f for f in kept
    ]


def _is_general(finding: Finding) -> bool:
    return finding.fallback and bool(finding.explains) and finding.prior < _OF_ITS_OWN


def _is_close(finding: Finding) -> bool:
    return not _is_guess(finding) and finding.severity is Severity.ERROR


def _rank(finding: Finding) -> tuple[int, float]:
    return _DOUBT[finding.certainty], -finding.prior


def _is_guess(finding: Finding) -> bool:
    return finding.certainty is Certainty.UNCERTAIN or finding.fallback
