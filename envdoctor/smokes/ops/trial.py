"""What an op measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Trial:
    """What an op measures: `call()` on the device, and `reference()`, the same in float64 on the CPU.

    Both return a tensor or a tuple of tensors; `call` starts from the same inputs each time.
    """

    def __init__(self, call: Callable[[], Any], reference: Callable[[], Any]) -> None:
        self.call = call
        self.reference = reference
