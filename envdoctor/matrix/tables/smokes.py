"""Rows about smoke operations."""

from typing import Annotated, ClassVar

from envdoctor.matrix import forms
from envdoctor.matrix.tables.row import Capability, Row, Text, fact


@fact
class SmokeCauseRow(Row):
    """What the reason of a failed smoke operation means."""

    KIND: ClassVar = "smoke_cause"

    reason: Annotated[str, forms.REGEX]
    """Found in the reason, in any case of letters; the first row that is found counts."""
    cause: Text
    """What it means."""
    remedy: Text
    """What to do."""


@fact
class SmokeClaimRow(Row):
    """Smoke operations that need a compute capability."""

    KIND: ClassVar = "smoke_claim"

    ops: Annotated[str, forms.OPERATION]
    """The operations."""
    compute_capability: Capability
    """The lowest that computes them."""
    what: Text
    """What they are."""
    emulated_from: Capability | None = None
    """From here on they are emulated, so that a passing kernel contradicts nothing."""
