"""Rows about cards: what they can do, and how they fail."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, ClassVar

from envdoctor.facts import ComputeCapability, Gpu
from envdoctor.matrix import forms
from envdoctor.matrix.tables.row import Capability, Match, Row, SettingName, Severity, SymptomGlob, Text, fact


def _check_gpu_field(text: str) -> str | None:
    return None if text in {f.name for f in fields(Gpu)} else f"{text!r} is no field of a GPU's facts"


GPU_FIELD = forms.Form("GPU's field", "a field of `envdoctor.facts.Gpu`", _check_gpu_field)


@fact
class GpuStateRow(Row):
    """A state that a card reports of itself and that means trouble."""

    KIND: ClassVar = "gpu_state"

    field: Annotated[str, GPU_FIELD]
    """The field of `Gpu`."""
    value: Match
    """What it then is."""
    severity: Severity
    """How grave it is."""
    summary: Text
    """What is said after the card's name."""
    cause: Text
    """Why."""
    remedies: tuple[Text, ...]
    """What to do."""
    commands: tuple[str, ...] = ()
    """What to type; `{index}` is the card's number."""
    servers_only: bool = False
    """True: a workstation's card is often in that state rightly."""


@fact
class XidRow(Row):
    """An error number that the kernel logs for a card."""

    KIND: ClassVar = "xid"

    number: int
    """The Xid."""
    severity: Severity
    """How grave it is."""
    meaning: Text
    """What the driver reports with it."""
    remedy: Text
    """What to do."""
    of_programs: bool = False
    """True: a program's own fault, history once it has ended; the card is well."""


@fact
class HardwareFeatureRow(Row):
    """A number format or a kernel that only some cards have."""

    KIND: ClassVar = "hardware_feature"

    feature: Text
    """What people call it."""
    capability: Capability
    """The lowest compute capability that has it."""
    below: Capability | None = None
    """The first that no longer has it."""
    asked: Mapping[SettingName, Match]
    """Settings by which a run asks for it."""
    symptoms: tuple[SymptomGlob, ...] = ()
    """Error lines by which it is refused."""
    leads_to: tuple[SymptomGlob, ...] = ()
    """Error lines that follow where software falls back in silence."""
    refused: Severity
    """How grave it is where nothing was refused yet."""
    because: Text
    """Why other cards lack it."""
    remedies: tuple[Text, ...]
    """What to do instead."""
    commands: tuple[str, ...] = ()
    """What to type for each remedy, in their order."""

    def covers(self, capability: ComputeCapability) -> bool:
        """True when a card of that capability has the feature."""
        return self.capability <= capability and not (self.below and capability >= self.below)
