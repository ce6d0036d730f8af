"""A fleet: probes carried to many nodes, their facts merged, and one answer for all of them."""

from __future__ import annotations

from envdoctor.fleet.answer import FleetAnswer
from envdoctor.fleet.assembly import answer
from envdoctor.fleet.merge import Group, Merge, Unreached

__all__ = ["FleetAnswer", "Group", "Merge", "Unreached", "answer"]
