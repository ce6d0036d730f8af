"""The answer for a cluster: equal nodes, drift, unreached nodes, findings. One value for every report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envdoctor.findings import Finding, Severity, finding_json
from envdoctor.fleet.differing import Drift
from envdoctor.fleet.merge import Group, Unreached
from envdoctor.fleet.nodeset import fold, natural_key
from envdoctor.values import dataclass

SCHEMA = "envdoctor.fleet/1"


@dataclass(frozen=True, slots=True)
class NodeFinding:
    """A finding and the nodes it was made on."""

    finding: Finding
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What a node's fact was in the accepted state and is now; None is unknown."""

    fact: str
    was: str | None
    now: str | None
    nodes: tuple[str, ...]
    severity: Severity


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference from an accepted state."""

    file: str
    changes: tuple[Change, ...]
    missing: tuple[str, ...]
    """Nodes of the accepted state that were not asked or not known now."""
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Collective:
    """How an all-reduce over all nodes ended, each of them a rank."""

    outcome: str
    """`passed`, `failed` or `skipped`."""
    reason: str | None
    ranks: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Partial:
    """Nodes of which a part could not be read: what it would have told is unknown."""

    nodes: tuple[str, ...]
    part: str
    reason: str


@dataclass(frozen=True, slots=True)
class FleetAnswer:
    """Everything one run of `fleet` knows."""

    groups: tuple[Group, ...]
    drift: tuple[Drift, ...]
    unreached: tuple[Unreached, ...]
    findings: tuple[NodeFinding, ...]
    crashed_checks: Mapping[str, str]
    fail_on: Severity
    tool_version: str
    matrix_version: str
    matrix_date: str
    pools: tuple[tuple[str, int], ...] = ()
    """Kinds of nodes that were each judged in itself, with their sizes; none where all are one."""
    comparison: Comparison | None = None
    collective: Collective | None = None
    pins: Mapping[str, Any] | None = None
    profile: Mapping[str, Any] | None = None

    @property
    def node_count(self) -> int:
        """All nodes that were asked, reached or not."""
        return self.reached_count + sum(len(one.nodes) for one in self.unreached)

    @property
    def reached_count(self) -> int:
        """The nodes that answered with facts."""
        return sum(len(group.nodes) for group in self.groups)

    @property
    def exit_code(self) -> int:
        """1 for drift, an unreached node, a change or a finding that counts; 3 for what was not read.

        Drift that is only worth knowing (`note`) counts when notes do; accepted drift never does.
        """
        if self.unreached or self._failing():
            return 1
        return 3 if self.crashed_checks or self.partial else 0

    @property
    def partial(self) -> tuple[Partial, ...]:
        """What could not be read, and on which nodes."""
        found: dict[tuple[str, str], list[str]] = {}
        for group in self.groups:
            for part, reason in group.facts.unread.items():
                found.setdefault((part, reason), []).extend(group.nodes)
        return tuple(Partial(tuple(sorted(n, key=natural_key)), *key) for key, n in found.items())

    def _failing(self) -> bool:
        threshold = self.fail_on.rank
        drifting = max(threshold, Severity.WARNING.rank)
        comparison = self.comparison
        return (
            any(d.severity.rank <= drifting for d in self.drift if not d.accepted)
            or any(f.finding.severity.rank <= threshold for f in self.findings)
            or bool(comparison and comparison.missing)
            or any(c.severity.rank <= drifting for c in (comparison.changes if comparison else ()))
            or (self.collective is not None and self.collective.outcome == "failed")
            or any(not plan.get("holds", True) for plan in (self.pins or {}, self.profile or {}))
        )

    def to_json(self) -> dict[str, Any]:
        """Return the answer in the plain terms of `envdoctor.fleet/1`."""
        return {
            "schema": SCHEMA,
            "tool": {
                "version": self.tool_version,
                "matrix": {"version": self.matrix_version, "date": self.matrix_date},
            },
            "nodes": self.node_count,
            "groups": [{"nodes": fold(g.nodes), "facts": dict(g.json)} for g in self.groups],
            "drift": [drift_json(one) for one in self.drift],
            "partial": [{"nodes": fold(p.nodes), "part": p.part, "reason": p.reason} for p in self.partial],
            "pools": [{"name": name, "nodes": count} for name, count in self.pools],
            "unreached": [{"nodes": fold(u.nodes), "reason": u.reason} for u in self.unreached],
            "findings": [{**finding_json(f.finding), "nodes": fold(f.nodes)} for f in self.findings],
            "crashed": dict(self.crashed_checks),
            **self._optional_json(),
            "exit_code": self.exit_code,
        }

    def _optional_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.comparison is not None:
            found["baseline"] = comparison_json(self.comparison)
        if self.collective is not None:
            found["collective"] = {
                "op": "nccl.all_reduce",
                "outcome": self.collective.outcome,
                "reason": self.collective.reason,
                "ranks": self.collective.ranks,
                "nodes": fold(self.collective.nodes),
            }
        if self.pins is not None:
            found["pins"] = dict(self.pins)
        if self.profile is not None:
            found["profile"] = dict(self.profile)
        return found


def drift_json(drift: Drift) -> dict[str, Any]:
    """Return one drift in the terms of `envdoctor.fleet/1`."""
    return {
        "fact": drift.fact,
        "values": [
            {"value": v.value, "nodes": fold(v.nodes), **({"reason": v.reason} if v.value is None else {})}
            for v in drift.values
        ],
        "severity": drift.severity.value,
        "why": drift.row.why,
        "row": drift.row.id,
        "source": drift.row.source,
        "consequence_of": drift.consequence_of,
        "accepted": drift.accepted,
        **({"tied": True} if drift.tied else {}),
        **({"pool": drift.pool} if drift.pool else {}),
    }


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return the difference from an accepted state in the terms of `envdoctor.fleet/1`."""
    return {
        "file": comparison.file,
        "changes": [
            {"fact": c.fact, "was": c.was, "now": c.now, "nodes": fold(c.nodes), "severity": c.severity.value}
            for c in comparison.changes
        ],
        "missing": fold(comparison.missing),
        "new": fold(comparison.new),
    }
