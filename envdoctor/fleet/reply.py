"""What a transport hands over for each node: its facts as text, or why there are none."""

from __future__ import annotations

from collections.abc import Callable

from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Reply:
    """One node's reply. `text` is facts JSON as the node wrote it, None with a reason."""

    node: str
    text: bytes | None
    reason: str = ""


Take = Callable[[Reply], None]
"""Where a transport hands its replies, one a node, as they come."""
