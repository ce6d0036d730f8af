"""Judging a fleet: distinct facts by the rules for one machine, then what the mixture forbids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from envdoctor.diagnosis import complete_findings, diagnose_facts
from envdoctor.facts import ComputeCapability
from envdoctor.findings import Evidence, Finding, Outcome, Remedy, Severity
from envdoctor.fleet.answer import NodeFinding
from envdoctor.fleet.merge import Group
from envdoctor.fleet.nodeset import fold, natural_key
from envdoctor.matrix import Matrix, tables

_COMPLETED_GROUPS = 4


def judge_groups(
    groups: Sequence[Group], matrix: Matrix, select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> tuple[tuple[NodeFinding, ...], dict[str, str]]:
    """Return the findings with their nodes, worst first, and the checks that crashed with their reasons.

    The remedies of the first few kinds of nodes that bring findings are completed by the solver.
    """
    found: dict[tuple[str, str], Finding] = {}
    nodes: dict[tuple[str, str], list[str]] = {}
    crashed: dict[str, str] = {}
    completed = 0
    for group in groups:
        diagnosis = diagnose_facts(group.facts, matrix, select=select, ignore=ignore, complete=False)
        broken = (check for check in diagnosis.checks if check.outcome is Outcome.CRASHED)
        for check in broken:
            told = f"on {fold(group.nodes)}: {check.reason or 'it broke'}"
            crashed[check.rule] = f"{crashed[check.rule]}; {told}" if check.rule in crashed else told
        for finding in diagnosis.findings:
            nodes.setdefault(_key(finding), []).extend(group.nodes)
        fresh: Sequence[Finding] = [f for f in diagnosis.findings if _key(f) not in found]
        if fresh and completed < _COMPLETED_GROUPS:
            completed += 1
            fresh = complete_findings(fresh, group.facts, matrix)
        found.update({_key(finding): finding for finding in fresh})
    findings = [NodeFinding(f, tuple(sorted(nodes[key], key=natural_key))) for key, f in found.items()]
    findings.sort(key=lambda f: f.finding.severity.rank)
    return tuple(findings), crashed


def _key(finding: Finding) -> tuple[str, str]:
    return finding.id, finding.summary


def mixed_capability(groups: Iterable[Group], matrix: Matrix) -> NodeFinding | None:
    """Return what GPUs of unlike compute capability forbid a job over all nodes; None where all are alike."""
    nodes = nodes_by_capability(groups)
    rows = matrix.rows(tables.FleetMixtureRow)
    if len(nodes) < 2 or not rows:
        return None
    lowest, highest = min(nodes), max(nodes)
    lost = [r for r in matrix.rows(tables.HardwareFeatureRow) if r.covers(highest) and not r.covers(lowest)]
    words = {
        "capabilities": ", ".join(str(capability) for capability in sorted(nodes)),
        "lowest": f"{lowest} ({lowest.sm})",
        "forbidden": "no " + ", no ".join(row.feature for row in lost) if lost else "its kernels alone",
        "split": "; ".join(f"{where} ({capability})" for capability, where in _folded(nodes)),
    }
    row = rows[0]
    finding = Finding(
        id=row.id,
        severity=Severity(row.severity),
        summary=row.summary.format_map(words),
        cause=row.cause.format_map(words),
        evidence=tuple(Evidence("compute capability", str(c), where) for c, where in _folded(nodes)),
        remedies=(Remedy(row.remedy.format_map(words)),),
        rows=(row.id, *(one.id for one in lost)),
        sources=(row.source, *dict.fromkeys(one.source for one in lost)),
    )
    return NodeFinding(finding, tuple(node for where in nodes.values() for node in where))


def nodes_by_capability(groups: Iterable[Group]) -> dict[ComputeCapability, list[str]]:
    """Return the nodes by the lowest compute capability of their GPUs, where it is known."""
    nodes: dict[ComputeCapability, list[str]] = {}
    for group in groups:
        capabilities = {g.compute_capability for g in group.facts.gpus.get() or () if g.compute_capability}
        if capabilities:
            nodes.setdefault(min(capabilities), []).extend(group.nodes)
    return nodes


def _folded(nodes: Mapping[ComputeCapability, list[str]]) -> list[tuple[ComputeCapability, str]]:
    return [(capability, fold(nodes[capability])) for capability in sorted(nodes)]
