"""From what is allocated to what is reserved: how much the caching allocator may hold in pieces."""

from __future__ import annotations

from typing import NamedTuple

from envdoctor.memory.constants import Constants, ReservedBound

SEGMENT = 2 << 20  # segments are multiples of this
UNCALIBRATED = ReservedBound()


class Churn(NamedTuple):
    """Bytes that come and go in a step, by what they are; see ReservedBound."""

    logits: int
    layer: int
    gradients: int
    kept: int
    table: int
    buffers: int
    scores: int = 0
    stacks: int = 0


def sharding_kind(parallel: str) -> str:
    """The kind of bound that a way of sharding has."""
    if parallel in ("zero1", "zero2"):
        return "zero12"
    return parallel if parallel in ("zero3", "fsdp") else "plain"


def reserved_bound(allocated: int, churn: Churn, parallel: str, constants: Constants) -> int:
    """Return an upper bound of the reserved bytes at an allocated peak.

    Blocks that were split, or freed in other sizes, cannot always serve the next request; how much of each
    part is lost so was measured (rows MEM-RESERVED-*).
    """
    bound = constants.reserved.get(sharding_kind(parallel), UNCALIBRATED)
    slack = (
        bound.logits * churn.logits
        + bound.layer * churn.layer
        + bound.gradients * churn.gradients
        + bound.kept * churn.kept
        + bound.table * churn.table
        + bound.buffers * churn.buffers
        + bound.scores * churn.scores
        + bound.stacks * churn.stacks
        + bound.allocated * allocated
    )
    return -(-int((allocated + slack) * (1 + bound.margin)) // SEGMENT) * SEGMENT
