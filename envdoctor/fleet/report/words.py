"""Words that every report of a fleet shares."""

from __future__ import annotations

from collections import Counter

from envdoctor.findings import Severity
from envdoctor.fleet.answer import FleetAnswer
from envdoctor.fleet.merge import Group
from envdoctor.report.summary import gpu_rows


def counted(number: int, noun: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def headline(answer: FleetAnswer) -> str:
    """Return the answer in one line."""
    parts = [counted(answer.node_count, "node")]
    missing = answer.node_count - answer.reached_count
    if missing:
        parts.append(f"{missing} unreached")
    drifting = [d for d in answer.drift if d.consequence_of is None and not d.accepted]
    parts.append(f"{counted(len(drifting), 'fact')} in drift" if drifting else "no drift")
    severities = Counter(f.finding.severity for f in answer.findings)
    parts += [counted(n, s.value) for s in Severity if (n := severities[s])]
    return ", ".join(parts)


def group_words(group: Group) -> str:
    """Return what a kind of node is: its GPUs, driver and torch."""
    facts = group.facts
    parts = [row.value for row in gpu_rows(facts)]
    driver, torch = facts.driver.version.get(), facts.distribution("torch")
    if driver is not None:
        parts.append(f"driver {driver}")
    if torch is not None and torch.version:
        parts.append(f"torch {torch.version}")
    return "; ".join(parts)
