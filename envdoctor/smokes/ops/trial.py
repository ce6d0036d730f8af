"""What an op measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Trial:
    """What an op measures: `call()` on the device, and `reference()`, the same in float64 on the CPU.

    Both return a tensor or a tuple of tensors; `call` starts from the same inputs each time. `plain(numpy)`
    computes the same once more, in NumPy's float64: on the CPU torch must not be its own judge.
    """

    def __init__(
        self,
        call: Callable[[], Any],
        reference: Callable[[], Any],
        plain: Callable[[Any], Any] | None = None,
    ) -> None:
        self.call = call
        self.reference = reference
        self.plain = plain
