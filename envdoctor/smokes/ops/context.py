"""What an op is given: the device it runs on, torch, and inputs drawn fresh."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from .trial import Trial


class Context:
    """The device (`cpu` or `cuda:N`) of one run of one op, and a random generator of its own."""

    def __init__(
        self, torch: Any, device: str, gpus: tuple[int, ...] = (), build: bool = False, scratch: str = "."
    ) -> None:
        self.torch = torch
        self.device = device
        self.gpus = gpus
        self.build = build
        self.scratch = scratch
        self.seed = random.SystemRandom().randrange(2**31)
        self._generator: Any = None

    @property
    def on_gpu(self) -> bool:
        """True when the op runs on a CUDA device."""
        return self.device != "cpu"

    @property
    def generator(self) -> Any:
        """The generator that inputs are drawn from, seeded by `seed`."""
        if self._generator is None:
            self._generator = self.torch.Generator().manual_seed(self.seed)
        return self._generator

    @property
    def sm(self) -> int:
        """The card's compute capability as one number (89), 0 on the CPU."""
        if not self.on_gpu:
            return 0
        major, minor = self.torch.cuda.get_device_capability(self.device)
        return int(major * 10 + minor)

    def randn(self, *shape: int, dtype: Any = None, scale: float = 1.0) -> Any:
        """Return normal numbers of `dtype` (default bf16) on the device, times `scale`."""
        drawn = self.torch.randn(*shape, generator=self.generator) * scale
        return drawn.to(dtype or self.torch.bfloat16).to(self.device)

    def randint(self, low: int, high: int, shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Return whole numbers from `low` to below `high` on the device."""
        drawn = self.torch.randint(low, high, shape, generator=self.generator)
        return drawn.to(dtype or self.torch.int64).to(self.device)

    def exact(self, tensor: Any) -> Any:
        """Return the tensor's very values in float64 on the CPU."""
        return tensor.detach().to("cpu").to(self.torch.float64)

    def plain(self, numpy: Any, tensor: Any) -> Any:
        """Return the tensor's very values as NumPy's float64 (whole numbers as such)."""
        whole = not (tensor.is_floating_point() or tensor.is_complex())
        return numpy.array(self.exact(tensor).tolist(), dtype=numpy.int64 if whole else numpy.float64)

    def differentiable(
        self,
        function: Callable[..., Any],
        *inputs: Any,
        reference: Callable[..., Any] | None = None,
        plain: Callable[..., Any] | None = None,
    ) -> Trial:
        """Return a Trial of `function(*inputs)` forward and backward; `reference` may be another function.

        `plain(numpy, *inputs, upstream)` returns the output and the gradients in NumPy's float64.
        """
        compute_exactly = reference or function
        exact = [self.exact(tensor) for tensor in inputs]
        shape = compute_exactly(*exact).shape
        upstream = self.randn(*shape, dtype=inputs[0].dtype) if len(shape) else None
        exact_upstream = None if upstream is None else self.exact(upstream)
        told = inputs if upstream is None else (*inputs, upstream)
        return Trial(
            lambda: _forward_backward(function, inputs, upstream),
            lambda: _forward_backward(compute_exactly, exact, exact_upstream),
            plain and (lambda numpy: plain(numpy, *(self.plain(numpy, tensor) for tensor in told))),
        )


def _forward_backward(function: Callable[..., Any], inputs: Any, upstream: Any) -> Any:
    """Return the output and the gradient of every input."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    output = function(*leaves)
    output.backward(upstream)
    return (output.detach(), *[leaf.grad for leaf in leaves])
