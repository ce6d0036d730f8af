"""Runs the checks: each guarded, each with an outcome; then weighs causes that rival."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial

from envdoctor import lazy_re as re
from envdoctor.errors import InputError, nearest
from envdoctor.facts import MENDED, REPORTED, WISH, ErrorSeen, Facts, FactUnavailable
from envdoctor.findings import UNREAD, Certainty, CheckResult, Finding, Outcome, Severity, order
from envdoctor.matrix import Matrix, tables
from envdoctor.patterns import fitting, glob_matches
from envdoctor.rules.base import (
    AFTERWARDS,
    FOREIGN,
    NO_LINE,
    SENTENCES,
    UNEXPLAINED,
    Listed,
    NotWhole,
    Skip,
)
from envdoctor.rules.view import View
from envdoctor.values import replace

_WARNED = re.compile(
    r"^[^A-Za-z\n]{0,60}(?:\([^()\n]{1,60}\) ?)?(?:[\w.]{1,40}[: -]{1,3})?\[?(?:WARNING|WARN)\b|"
    r"^W\d{4} \d\d:\d\d:\d\d"
)
"""How a logger begins a line by which a program warns."""
_BEGINNING = 60
"""Letters by which an exception's words are known again."""


def run_checks(
    facts: Facts,
    matrix: Matrix,
    rules: Sequence[Listed],
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> tuple[tuple[CheckResult, ...], tuple[Finding, ...]]:
    """Judge the facts by the rules and the matrix's rows.

    `select` and `ignore` are ids or globs; raises InputError for one that names no check.
    """
    view = View(facts, matrix)
    of_rows = [head.id for head in matrix.heads]
    chosen = choose([*(rule.id for rule in rules), *of_rows, *(one[0] for one in AFTERWARDS)], select, ignore)
    if facts.unread and UNREAD not in _matching([UNREAD], ignore):
        chosen.add(UNREAD)  # whatever was selected: its answer may hang on the unread part
    results: list[CheckResult] = []
    findings: list[Finding] = []
    found_by: dict[str, set[str]] = {}
    for identity, check in _checks(view, rules, chosen):
        result, found = _run(identity, check) if check else (_silent(identity), ())
        results.append(result)
        if found:
            findings.extend(found)
            found_by[identity] = {finding.id for finding in found}
    kept = _weighed(_said_once(findings), facts)
    if FOREIGN in chosen:
        kept = _on_its_accelerator(view, kept)
    standing = {finding.id for finding in kept}
    gone = {identity for identity, ids in found_by.items() if ids.isdisjoint(standing)}
    settled = [_given_way(r) if r.rule in gone else r for r in results] if gone else results
    end = _decisive(view)
    if UNEXPLAINED in chosen:
        result, left = _run(UNEXPLAINED, lambda: _unexplained(view, end, kept, settled))
        settled.append(result)
        kept.extend(left)
    kept = _as_before(view, kept)
    if SENTENCES in chosen:
        result, left = _run(SENTENCES, lambda: _sentences(view, kept))
        settled.append(result)
        kept.extend(left)
    if facts.origin == "paste":
        kept = _as_shown(view, end, kept)
    if UNEXPLAINED in chosen and end and end.frames and all(one.severity is Severity.NOTE for one in kept):
        kept.extend(_unexplained(view, end, kept, settled))  # what accounted for it has been outlived
    kept = [_as_warned(facts, finding) for finding in kept]
    if UNEXPLAINED in chosen and facts.errors and not any(f.severity is Severity.ERROR for f in kept):
        kept = _as_printed(view, kept, settled)
    if REPORTED in facts.notes:
        kept = _as_reported(kept)
    if WISH in facts.notes:
        kept = [_as_hint(finding) for finding in kept]
    if MENDED in facts.notes:
        kept = [_as_history(finding) for finding in kept]
    return tuple(settled), order(_link(_placed(view, kept)), end.symptoms if end and facts.errors[1:] else ())


def _weighed(findings: list[Finding], facts: Facts) -> list[Finding]:
    """Return what is left of causes that rival for one symptom."""
    if not findings:
        return findings
    from envdoctor.rules.weighing import weigh

    return weigh(findings, facts)


def _on_its_accelerator(view: View, findings: list[Finding]) -> list[Finding]:
    """Return what holds on the accelerator that the facts tell of."""
    from envdoctor.rules.foreign import foreign_backend, without_cuda

    backend = foreign_backend(view)
    return without_cuda(backend, findings) if backend else findings


def _unexplained(
    view: View, end: ErrorSeen | None, findings: Sequence[Finding], checks: Sequence[CheckResult]
) -> Iterable[Finding]:
    if not (view.facts.errors or view.facts.symptoms):
        return ()
    from envdoctor.rules.unexplained import find_unexplained

    return find_unexplained(view, end, findings, checks)


def _as_printed(view: View, findings: list[Finding], checks: Sequence[CheckResult]) -> list[Finding]:
    """Return the findings with an error for the last error line that a program printed."""
    from envdoctor.rules.unexplained import as_printed

    return as_printed(view, findings, checks)


def _as_shown(view: View, end: ErrorSeen | None, findings: list[Finding]) -> list[Finding]:
    if not any(finding.severity is Severity.ERROR for finding in findings):
        return findings
    from envdoctor.rules.course import as_shown

    return as_shown(view, end, findings)


def _placed(view: View, findings: Sequence[Finding]) -> Sequence[Finding]:
    if not view.facts.errors:
        return findings
    from envdoctor.rules.raisers import with_raisers

    return with_raisers(view, findings)


def _decisive(view: View) -> ErrorSeen | None:
    """Return the error that the text ends in; None where it shows none."""
    if not view.facts.errors:
        return None
    from envdoctor.rules.unexplained import decisive

    return decisive(view)


def _as_before(view: View, findings: list[Finding]) -> list[Finding]:
    """Return the findings with the way back to what the text says worked."""
    if not any(symptom.id.startswith("SYM-TOLD-") for symptom in view.facts.symptoms):
        return findings
    from envdoctor.rules.blamed import with_working

    return with_working(view, findings)


def _sentences(view: View, findings: Sequence[Finding]) -> Iterable[Finding]:
    if not view.facts.notes:
        return ()
    from envdoctor.rules.sentences import find_sentences

    return find_sentences(view, findings)


def _as_reported(findings: list[Finding]) -> list[Finding]:
    """Return findings of which those that answer a reported failure are errors, where none is one."""
    if any(finding.severity is Severity.ERROR for finding in findings):
        return findings
    return [
        replace(one, severity=Severity.ERROR) if one.explains and one.severity is Severity.WARNING else one
        for one in findings
    ]


def _as_warned(facts: Facts, finding: Finding) -> Finding:
    """What a program logs as a warning, and no traceback ends in, did not stop it."""
    if finding.severity is not Severity.ERROR or not finding.explains:
        return finding
    if finding.certainty is Certainty.CERTAIN:  # it holds, whatever the program makes of it
        return finding
    lines = [symptom.text for symptom in facts.symptoms if symptom.id in finding.explains]
    framed = any(
        error.frames and set(error.symptoms) & set(finding.explains) and not _is_in(error.text, lines)
        for error in facts.errors
    )
    if framed or not lines or not all(map(_WARNED.search, lines)):
        return finding
    return replace(finding, severity=Severity.WARNING)


def _is_in(text: str, lines: Sequence[str]) -> bool:
    """True where a line, logged as a warning, holds what an exception says."""
    return any(text[:_BEGINNING] in line for line in lines)


def _as_hint(finding: Finding) -> Finding:
    """An error that a text gives as an example did not happen to its writer."""
    severity = Severity.WARNING if finding.severity is Severity.ERROR else finding.severity
    return replace(finding, severity=severity, certainty=Certainty.UNCERTAIN)


def _as_history(finding: Finding) -> Finding:
    """What explains an error that is told as mended happened all the same: it is told as what it is."""
    if not (finding.explains or finding.id == UNEXPLAINED):
        return finding
    told = f"{finding.cause} The text tells that this was mended."
    return replace(finding, cause=told)


def _given_way(result: CheckResult) -> CheckResult:
    """A check whose guess gave way to a closer cause has not failed."""
    return result._replace(outcome=Outcome.PASSED, reason="a closer cause accounts for what was seen")


def choose(identities: Sequence[str], select: Sequence[str], ignore: Sequence[str]) -> set[str]:
    """Return the ids that are selected and not ignored; raises InputError when a pattern names none."""
    chosen = _matching(identities, select, "--select") if select else set(identities)
    chosen -= _matching(identities, ignore, "--ignore")
    if not chosen:
        raise InputError("--select: nothing is left to check")
    return chosen


def _matching(identities: Sequence[str], patterns: Sequence[str], option: str = "") -> set[str]:
    """Return the ids that patterns name; with an option, raises InputError when one names none."""
    found: set[str] = set()
    for pattern in patterns:
        asked = pattern.upper()
        within = f"{asked}-"
        matched = {i for i in identities if i.startswith(within)} | fitting(identities, asked)
        if not matched and option:
            near = nearest(pattern, identities) or " (see `envdoctor rules`)"
            raise InputError(f"{option} {pattern}: no check has this id{near}")
        found |= matched
    return found


def _checks(
    view: View, rules: Sequence[Listed], chosen: set[str]
) -> Iterator[tuple[str, Callable[[], Iterable[Finding]] | None]]:
    """Yield the chosen checks; of the rows those are read that can speak, and None stands for the others."""
    yield from ((rule.id, partial(rule.check, view)) for rule in rules if rule.id in chosen)
    able = view.matrix.speaking({symptom.id for symptom in view.facts.symptoms}) & chosen
    rows = view.matrix.conditions_of(able) if able else {}
    for head in view.matrix.heads:
        if head.id in chosen:
            yield head.id, _bind_row(rows[head.id], view) if head.id in able else None


@cache
def _silent(identity: str) -> CheckResult:
    """Return the outcome of a row that speaks of error lines none of which is told."""
    return CheckResult(identity, Outcome.SKIPPED, NO_LINE)


def _bind_row(row: tables.ConditionRow, view: View) -> Callable[[], Iterable[Finding]]:
    def check() -> Iterable[Finding]:
        from envdoctor.rules.rows import check_row

        finding = check_row(view, row)
        return (finding,) if finding else ()

    return check


def _run(identity: str, check: Callable[[], Iterable[Finding]]) -> tuple[CheckResult, tuple[Finding, ...]]:
    start = time.perf_counter()
    reason: str | None = None
    found: tuple[Finding, ...] = ()
    try:
        found = tuple(check())
        outcome = Outcome.FAILED if found else Outcome.PASSED
    except (Skip, FactUnavailable) as skipped:
        outcome, reason = Outcome.SKIPPED, str(skipped)
    except NotWhole as error:
        outcome, reason = Outcome.CRASHED, str(error)
    except Exception as error:
        outcome, reason = Outcome.CRASHED, f"{type(error).__name__}: {error}"
    return CheckResult(identity, outcome, reason, (time.perf_counter() - start) * 1000), found


def _said_once(findings: Iterable[Finding]) -> list[Finding]:
    """Join findings that say the same of two lines."""
    once: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = finding.id, finding.summary
        before = once.get(key)
        explains = tuple(dict.fromkeys((*before.explains, *finding.explains))) if before else ()
        once[key] = replace(before, explains=explains) if before else finding
    return list(once.values())


def _link(findings: Sequence[Finding]) -> list[Finding]:
    """Point each consequence at the finding that it follows from."""
    ids = tuple(dict.fromkeys(finding.id for finding in findings))

    @cache
    def cause(identity: str, follows: tuple[str, ...]) -> str | None:
        causes = (i for pattern in follows for i in ids if glob_matches(i, pattern))
        return next((i for i in causes if i != identity), None)

    linked = [
        replace(f, consequence_of=f.consequence_of or cause(f.id, f.follows)) if f.follows else f
        for f in findings
    ]
    first = {f.id: f.remedies[0].pins for f in reversed(linked) if f.remedies}
    return [_with_cause(f, first.get(f.consequence_of or "", {})) for f in linked]


def _with_cause(finding: Finding, pins: Mapping[str, str]) -> Finding:
    """Put first what moves the packages that the cause's first remedy moves: the two never pull apart."""
    ways = sorted(finding.remedies, key=lambda one: not (one.pins and one.pins.keys() <= pins.keys()))
    return replace(finding, remedies=tuple(ways)) if pins else finding
