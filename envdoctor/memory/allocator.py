"""From what is allocated to what is reserved, and from there to what the card must hold."""

from __future__ import annotations

from envdoctor.memory.constants import Constants

SEGMENT = 2 << 20  # large segments are rounded to this


def reserved_bound(allocated: int, largest: int, churn: int, constants: Constants) -> int:
    """Return an upper bound of the reserved bytes at an allocated peak.

    `largest` is the largest single tensor of the step and `churn` the bytes that come and go in it:
    blocks that were split or freed in other sizes cannot always serve the next request.
    """
    bound = (
        allocated + allocated * constants.reserved_factor_percent // 100 + churn + constants.reserved_slack
    )
    return -(-max(bound, allocated + largest) // SEGMENT) * SEGMENT
