"""A difference between nodes: its values, the nodes that have each, and what it follows from."""

from __future__ import annotations

from envdoctor.findings import Severity
from envdoctor.matrix import tables
from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class DriftValue:
    """One of the values of a fact, and the nodes that have it; None is unknown, with the reason."""

    value: str | None
    nodes: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Drift:
    """A fact that should agree and does not; its values stand with the most frequent one first."""

    fact: str
    values: tuple[DriftValue, ...]
    severity: Severity
    row: tables.AgreementRow
    consequence_of: str | None = None
    accepted: bool = False
    tied: bool = False
    """True where no value is the most frequent: then no node is the odd one."""
    pool: str = ""
    """The nodes among which it differs; empty for all."""

    @property
    def odd_nodes(self) -> tuple[str, ...]:
        """The nodes that do not have the most frequent value; none where there is no such value."""
        return () if self.tied else self.other_nodes

    @property
    def other_nodes(self) -> tuple[str, ...]:
        """The nodes that do not have the first value."""
        return tuple(node for value in self.values[1:] for node in value.nodes)
