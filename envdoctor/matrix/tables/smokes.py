"""Rows about smoke operations."""

from typing import Annotated, ClassVar, Literal

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


@fact
class CardSpeedRow(Row):
    """What a card can do by the book; left out where the book tells nothing."""

    KIND: ClassVar = "card_speed"

    cards: tuple[str, ...]
    """Names as torch and NVML report them, `*` for any letters."""
    pcie: float
    """10⁹ bytes a second one way over its PCIe link, its widest and fastest."""
    memory: float
    """10⁹ bytes a second of its memory."""
    matmul: float
    """10¹² operations a second of a 16-bit matrix product, summed in fp32, without sparsity."""
    nvlink: float | None = None
    """10⁹ bytes a second one way over one NVLink."""
    nvlinks: int | None = None
    """How many NVLinks it has."""


@fact
class SpeedShareRow(Row):
    """Which share of the book's figure a sound card reaches; the first row for op and card counts."""

    KIND: ClassVar = "speed_share"

    ops: Annotated[str, forms.OPERATION]
    """The operations."""
    cards: tuple[str, ...] = ("*",)
    """Names as torch and NVML report them, `*` for any letters."""
    of: Literal["pcie", "memory", "matmul", "nvlink"]
    """The figure of the card that it is a share of."""
    share: float
    """Of that figure, 0 to 1 (more where a switch adds up for the cards)."""
    tolerance: float
    """By which share of the expected figure a sound card may stay below it."""
    remedy: Text
    """Where to look when it is slow and nothing that was seen explains it."""
