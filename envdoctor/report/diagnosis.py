"""A diagnosis as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from envdoctor.facts import NOTHING_READ, Facts
from envdoctor.facts.quantities import counted
from envdoctor.findings import (
    UNREAD,
    Certainty,
    CheckResult,
    Diagnosis,
    Finding,
    Outcome,
    Remedy,
    Severity,
)
from envdoctor.report.document import (
    OPEN,
    Block,
    Code,
    Document,
    Fold,
    Row,
    Rows,
    Section,
    Span,
    Text,
    Tone,
    Words,
    severities,
    trees,
)
from envdoctor.report.facts import examined_rows, host_rows, key_packages, version_words
from envdoctor.values import replace

TONES: Mapping[Severity, Tone] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "note",
}
_REASONS = 3


def document(diagnosis: Diagnosis, unfold: bool = False) -> Document:
    """Return the report: the answer, what was examined, the plan, findings, machine, packages, checks."""
    findings, broken = diagnosis.findings, _count(diagnosis, Outcome.CRASHED)
    blocks: list[Block] = [Rows(examined_rows(diagnosis.facts, diagnosis.examined))]
    if broken:
        unread = all(check.rule == UNREAD for check in diagnosis.checks if check.outcome is Outcome.CRASHED)
        what = "not all was read" if unread else f"{counted(broken, 'check')} broke"
        told = Text(Span(f"! {what}: the answer is not whole", "warning"))
        blocks += [told, Rows(tuple(broken_rows(diagnosis.checks)))]
    blocks += plan_blocks(diagnosis)
    blocks += finding_blocks(findings, unfold)
    blocks += [*surroundings(diagnosis, unfold), Rows(tuple(check_rows(diagnosis.checks)))]
    if findings or broken:
        causes = len(root_causes(findings))
        note = f"  from {counted(causes, 'cause')}" if causes < len(findings) else ""
        worst = min((f.severity for f in findings), key=lambda severity: severity.rank, default=None)
        answer, tone = severities(findings), TONES[worst] if worst else "warning"
        if not findings and NOTHING_READ in diagnosis.facts.unread.values():
            answer = "nothing was recognised"
    else:
        answer, note, tone = _nothing_found(diagnosis)
    return Document((answer, Span(note, "dim")), tone, tuple(blocks), foot(diagnosis))


def _count(diagnosis: Diagnosis, outcome: Outcome) -> int:
    return sum(check.outcome is outcome for check in diagnosis.checks)


def _nothing_found(diagnosis: Diagnosis) -> tuple[str, str, Tone]:
    """Return answer, note and tone where nothing was found: sound as far as something was judged."""
    passed = _count(diagnosis, Outcome.PASSED)
    if not passed:
        return "nothing was judged", "  no check was told what it needs", TONES[Severity.NOTE]
    beside = replace(diagnosis.facts, settings=(), symptoms=())
    if beside == Facts(origin="paste"):
        note = "  no card, package or error is told"
        return "nothing found in the settings told", note, TONES[Severity.NOTE]
    return "nothing found", f"  {counted(passed, 'check')} passed", "ok"


def plan_blocks(diagnosis: Diagnosis) -> list[Block]:
    """Return the plan, where there is something to do or to ask for, or packages that no change mends."""
    plan = diagnosis.plan
    if plan is None:
        return []
    of_packages = plan.unsolved and any(r.pins for f in diagnosis.findings for r in f.remedies)
    if not (plan.moves or plan.settings or plan.commands or plan.host or of_packages):
        return []
    from envdoctor.report.plan import plan_section

    return [plan_section(plan, here=diagnosis.examined.here)]


def foot(diagnosis: Diagnosis) -> str:
    """Return who judged, with what knowledge."""
    matrix = f"matrix {diagnosis.matrix_version} of {diagnosis.matrix_date}"
    return f"envdoctor {diagnosis.tool_version}, {matrix}"


def root_causes(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that follow from no other one here."""
    known = {finding.id for finding in findings}
    return [finding for finding in findings if finding.consequence_of not in known]


def finding_blocks(findings: Sequence[Finding], unfold: bool = False) -> list[Block]:
    """Return the worst findings open, causes before consequences, and the others in a fold."""
    known = {finding.id for finding in findings}
    places = sorted(
        range(len(findings)),
        key=lambda p: findings[p].consequence_of in known and 1 + findings[p].severity.rank,
    )
    chosen = set(places if unfold else places[:OPEN])
    rest = [finding for place, finding in enumerate(findings) if place not in chosen]
    shown = finding_trees([finding for place, finding in enumerate(findings) if place in chosen])
    fold = Fold(f"{len(rest)} more: {severities(rest)}", tuple(finding_trees(rest)))
    return [*shown, *([fold] if rest else ())]


def finding_trees(findings: Sequence[Finding]) -> Iterator[Section]:
    """Yield each finding with those that follow from it inside."""
    known = {finding.id for finding in findings}

    def section(finding: Finding, following: tuple[Section, ...]) -> Section:
        apart = finding.consequence_of and finding.consequence_of not in known
        return finding_section(
            finding, f"  follows from {finding.consequence_of}" if apart else "", following
        )

    return trees(findings, lambda f: f.id, lambda f: f.consequence_of, section)


def finding_section(finding: Finding, more: str = "", following: tuple[Section, ...] = ()) -> Section:
    """Return one finding: what, why, what mends it, what was seen, and the sources."""
    doubt = "" if finding.certainty is Certainty.CERTAIN else f"  {finding.certainty.value}"
    tone = TONES[finding.severity]
    title = (Span(tone, tone), "  ", Span(finding.id, "code"), Span(doubt, "doubt"), Span(more, "dim"))
    rows = [Row("why", finding.cause)]
    rows += [_remedy_row("or" if i else "do", remedy) for i, remedy in enumerate(finding.remedies)]
    seen = {e.value: e for e in reversed(finding.evidence)}
    rows += [
        Row("" if i else "seen", e.value if e.fact.startswith("SYM-") else f"{e.fact} {e.value}", e.source)
        for i, e in enumerate(reversed(seen.values()))
    ]
    rows += [Row("" if i else "see", Span(source, "dim")) for i, source in enumerate(finding.sources)]
    return Section(title, (Text(Span(finding.summary, "strong")), Rows(tuple(rows)), *following), tone)


def _remedy_row(label: str, remedy: Remedy) -> Row:
    text = remedy.text
    if label == "or" and text.startswith("Or "):
        text = text[3:4].upper() + text[4:]
    pins = "" if remedy.commands else "".join(f" {name}{spec}" for name, spec in remedy.pins.items())
    words: Words = (text, Span(pins, "code")) if pins else text
    return Row(label, words, commands=remedy.commands)


def key_rows(diagnosis: Diagnosis) -> list[Row]:
    """Return the packages that maintainers ask for, a row each."""
    return [Row(d.name, version_words(d), d.source) for d in key_packages(diagnosis.facts)]


def surroundings(diagnosis: Diagnosis, unfold: bool = False) -> Iterator[Block]:
    """Yield the rest of the machine and all packages, folded."""
    machine, installed = host_rows(diagnosis.facts), diagnosis.facts.environment.distributions
    blocks: list[Block] = [Rows(tuple(machine))] if machine else []
    if installed:
        blocks.append(package_list(diagnosis.facts))
    if blocks:
        title = f"The machine, all {counted(len(installed), 'package')}"
        yield Section(title, tuple(blocks)) if unfold else Fold(title, tuple(blocks))


def package_list(facts: Facts) -> Code:
    """Return every package with its version."""
    installed = sorted(facts.environment.distributions.items())
    return Code("\n".join(f"{name}=={d.version}" if d.version else name for name, d in installed))


def broken_rows(checks: Sequence[CheckResult]) -> Iterator[Row]:
    """Yield the checks that broke, with why."""
    for check in checks:
        if check.outcome is Outcome.CRASHED:
            yield Row(check.rule, f"{'' if check.rule == UNREAD else 'broke: '}{check.reason}")


def check_rows(checks: Sequence[CheckResult]) -> Iterator[Row]:
    """Yield how many checks passed, and what most of the skipped lacked."""
    counts = Counter(check.outcome for check in checks)
    words = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome if counts[outcome])
    yield Row("Checks", words or "none")
    reasons = Counter(c.reason for c in checks if c.outcome is Outcome.SKIPPED and c.reason)
    for reason, count in reasons.most_common(_REASONS):
        yield Row("", Span(f"{count} skipped: {reason}", "dim"))
