"""A diagnosis as Markdown that can be pasted into an issue."""

from __future__ import annotations

from collections import Counter

from envdoctor.findings import Certainty, Diagnosis, Finding, Outcome
from envdoctor.report.layout import counted_severities, finding_depths
from envdoctor.report.markup import cell, code, details, fenced, prose, table
from envdoctor.report.summary import fact_rows, key_packages, version_words


def render_markdown(diagnosis: Diagnosis) -> str:
    """Return the whole report: findings, facts, packages, checks."""
    sections = (
        f"# envdoctor: {counted_severities(diagnosis.findings)}\n",
        findings_section(diagnosis.findings),
        f"## Facts\n\n{facts_section(diagnosis)}",
        f"## Packages\n\n{packages_section(diagnosis)}",
        f"## Checks\n\n{checks_section(diagnosis)}",
    )
    return "\n".join(section for section in sections if section)


def findings_section(findings: tuple[Finding, ...]) -> str:
    """Return each finding under its own heading, consequences named as such."""
    if not findings:
        return "No check found anything wrong.\n"
    depths = finding_depths(findings)
    return "\n".join(finding_section(finding, depths[finding.id]) for finding in findings)


def finding_section(finding: Finding, depth: int = 0) -> str:
    """Return one finding: what, why, what was seen, what mends it, and the sources."""
    doubt = "" if finding.certainty is Certainty.CERTAIN else f", {finding.certainty.value}"
    heading = "###" if depth == 0 else "####"
    parts = [f"{heading} {code(finding.id)}: {prose(finding.summary)}\n"]
    parts.append(f"*{finding.severity.value}{doubt}*\n")
    if depth and finding.consequence_of:
        parts.append(f"Follows from {code(finding.consequence_of)}.\n")
    parts.append(f"{prose(finding.cause)}\n")
    if finding.evidence:
        seen = [(e.fact, e.value, e.source) for e in finding.evidence]
        parts.append(table(("fact", "value", "read from"), seen))
    parts += [_remedy(i, text, commands) for i, (text, commands) in enumerate(_remedies(finding))]
    if finding.sources:
        parts.append("Sources: " + ", ".join(prose(source) for source in finding.sources) + "\n")
    return "\n".join(parts)


def _remedies(finding: Finding) -> list[tuple[str, str]]:
    return [
        (r.text, "\n".join(r.commands) or " ".join(f"{name}{spec}" for name, spec in r.pins.items()))
        for r in finding.remedies
    ]


def _remedy(index: int, text: str, commands: str) -> str:
    lead = "Remedy" if index == 0 else "Or"
    block = f"\n{fenced(commands, 'sh')}" if commands else ""
    return f"{lead}: {prose(text)}\n{block}"


def facts_section(diagnosis: Diagnosis) -> str:
    """Return the table of what a person looks at first."""
    rows = [(row.label, row.value, row.source) for row in fact_rows(diagnosis.facts)]
    return table(("fact", "value", "read from"), rows)


def packages_section(diagnosis: Diagnosis, whole: bool = True) -> str:
    """Return the key packages, and all of them folded unless `whole` is false."""
    installed = diagnosis.facts.environment.distributions
    if not installed:
        return "None known.\n"
    rows = [(d.name, version_words(d)) for d in key_packages(diagnosis.facts)]
    key = table(("package", "version"), rows) if rows else ""
    if not whole:
        return key
    listed = "\n".join(f"{name}=={d.version}" if d.version else name for name, d in sorted(installed.items()))
    return f"{key}\n{details(f'All {len(installed)} packages', fenced(listed))}"


def checks_section(diagnosis: Diagnosis) -> str:
    """Return how many checks passed, and each one that broke or could not tell."""
    counts = Counter(check.outcome for check in diagnosis.checks)
    words = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome if counts[outcome])
    broken = "".join(
        f"- {code(check.rule)} broke: {prose(check.reason or '')}\n"
        for check in diagnosis.checks
        if check.outcome is Outcome.CRASHED
    )
    matrix = f"matrix {diagnosis.matrix_version} of {diagnosis.matrix_date}"
    return f"{words or 'none'}\n\n{broken}\nenvdoctor {cell(diagnosis.tool_version)}, {cell(matrix)}\n"
