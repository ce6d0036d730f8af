"""What every emitter is given."""

from __future__ import annotations

from envdoctor.memory.catalogue import hub_id
from envdoctor.profile.keys import Names
from envdoctor.profile.workload import Choice, Workload
from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """What is written: the setting, what it is for, and the key names of the versions at hand."""

    choice: Choice
    work: Workload
    names: Names

    @property
    def model(self) -> str:
        """The model as a framework finds it: the Hub's id of a catalogue name, else as the user named it."""
        return hub_id(self.work.model or self.work.shape.name)
