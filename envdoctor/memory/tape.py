"""A tape that allocates and frees as torch's autograd does, without torch.

Sizes are exact: an operation allocates its result, autograd keeps what the operation saves, the backward
pass visits the operations in reverse, allocates gradients and lets go of what it used. From this follow
what a layer keeps and how high it reaches in each direction.
"""

from __future__ import annotations

ROUND = 512  # the caching allocator's granule, in bytes
OWN_SEGMENT = 10 << 20  # requests from here on get a segment of their own ...
SEGMENT = 2 << 20  # ... of a multiple of this ...
SPLIT = 1 << 20  # ... whose rest is cut off only when it is larger than this


def rounded(size: float) -> int:
    """Return the bytes that the caching allocator counts for a request of `size`."""
    granted = -(-int(size) // ROUND) * ROUND
    if granted >= OWN_SEGMENT:
        rest = -granted % SEGMENT
        if rest <= SPLIT:
            return granted + rest
    return granted


class Gradient:
    """A gradient in flight; shared by inputs that receive the very same tensor."""

    __slots__ = ("refs", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.refs = 1


class Tensor:
    """A tensor's storage: its elements, bytes an element, and who holds it."""

    __slots__ = ("gradient", "needs", "numel", "refs", "size", "spread", "width")

    def __init__(self, numel: int, width: int, needs: bool) -> None:
        self.numel = numel
        self.width = width
        self.size = self.spread = rounded(numel * width)  # of the storage, and of its gradient
        self.refs = 1
        self.needs = needs
        self.gradient: Gradient | None = None


class Node:
    """An operation of the backward pass."""

    __slots__ = ("inputs", "out", "parameter", "partner", "saved", "temporary", "through")

    def __init__(
        self,
        out: Tensor,
        inputs: tuple[Tensor, ...],
        saved: tuple[Tensor, ...],
        temporary: int,
        parameter: int,
        through: bool,
    ) -> None:
        self.out = out
        self.inputs = inputs
        self.saved = saved
        self.temporary = temporary
        self.parameter = parameter
        self.through = through
        self.partner: Tensor | None = None


class Tape:
    """Bytes live and their peak since the tape began; `keep` False records nothing, as a checkpoint does."""

    __slots__ = (
        "accumulating", "cached", "grads", "keep", "live", "nodes", "peak", "pinned", "pins", "reached",
    )  # fmt: skip

    def __init__(self, keep: bool = True, accumulating: bool = False) -> None:
        self.keep = keep
        self.accumulating = accumulating
        self.live = 0
        self.peak = 0
        self.grads = 0
        self.pinned = 0  # kept until the backward pass, checkpoint or not
        self.cached = 0  # kept until the forward pass ends: autocast's copies of weights
        self.pins: list[Tensor] = []
        self.reached = 0  # the peak when the last tensor was saved: where a checkpoint stops to recompute
        self.nodes: list[Node] = []

    def new(self, numel: int, width: int, needs: bool = False) -> Tensor:
        """Allocate a tensor held by one name."""
        tensor = Tensor(numel, width, needs)
        self.live += tensor.size
        if self.live > self.peak:
            self.peak = self.live
        return tensor

    def pin(self, tensor: Tensor) -> None:
        """Keep a tensor through a checkpoint."""
        if not self.keep and not any(held is tensor for held in self.pins):
            self.pins.append(tensor)
            tensor.refs += 1
            self.pinned += tensor.size

    def touch(self, temporary: int) -> None:
        """Allocate and free scratch."""
        if self.live + temporary > self.peak:
            self.peak = self.live + temporary

    def drop(self, *tensors: Tensor) -> None:
        """One name of each tensor goes out of scope."""
        for tensor in tensors:
            tensor.refs -= 1
            if tensor.refs == 0:
                self.live -= tensor.size

    def op(
        self,
        numel: int,
        width: int,
        inputs: tuple[Tensor, ...],
        saved: tuple[Tensor, ...] = (),
        temporary: int = 0,
        parameter: int = 0,
        through: bool = False,
    ) -> Tensor:
        """Allocate the result of an operation on `inputs` that saves `saved` for its backward pass.

        `temporary` is the backward pass's scratch, `parameter` the bytes of the weight gradient it makes,
        `through` says that the inputs' gradient is the output's own tensor.
        """
        needs = parameter > 0 or any(t.needs for t in inputs)
        if self.keep and needs and saved:
            self.reached = self.peak
        out = self.new(numel, width, needs)
        self.record(out, inputs, saved, temporary, parameter, through)
        return out

    def record(
        self,
        out: Tensor,
        inputs: tuple[Tensor, ...],
        saved: tuple[Tensor, ...] = (),
        temporary: int = 0,
        parameter: int = 0,
        through: bool = False,
    ) -> None:
        """Note an operation whose result is already there."""
        if self.keep and out.needs:
            for tensor in saved:
                tensor.refs += 1
            self.nodes.append(Node(out, inputs, saved, temporary, parameter, through))

    def save_result(self, out: Tensor) -> None:
        """The operation that just made `out` saves it as well."""
        if self.keep and out.needs:
            node = self.nodes[-1]
            node.saved = (*node.saved, out)
            out.refs += 1
            self.reached = self.peak

    def halves(self, whole: Tensor) -> tuple[Tensor, Tensor]:
        """Two views of one tensor; their gradients are joined into one tensor. They own no storage."""
        first, second = (Tensor(whole.numel // 2, whole.width, whole.needs) for _ in range(2))
        first.size = second.size = 0
        self.record(first, (whole,), (whole,))
        if self.keep and whole.needs:
            self.nodes[-1].partner = second
        return first, second

    def backward(self, out: Tensor) -> None:
        """Run the backward pass from `out`, whose gradient arrives from outside (not counted here)."""
        out.gradient = Gradient(0)
        for node in reversed(self.nodes):
            gradient = node.out.gradient
            node.out.gradient = None
            if gradient is not None:
                self._apply(node, gradient)
            if node.partner is not None and node.partner.gradient is not None:
                self.release(node.partner.gradient)
                node.partner.gradient = None
            self.drop(*node.saved)
        self.nodes.clear()

    def _apply(self, node: Node, gradient: Gradient) -> None:
        self.live += node.temporary
        self.touch(0)
        for tensor in node.inputs:
            if tensor.needs:
                self._receive(tensor, gradient if node.through else None)
        if node.parameter:
            self._weight_gradient(node.parameter)
        self.live -= node.temporary
        self.release(gradient)

    def _weight_gradient(self, size: int) -> None:
        if self.accumulating:
            self.touch(size)
        else:
            self.live += size
            self.grads += size
            if self.live > self.peak:
                self.peak = self.live

    def _receive(self, tensor: Tensor, shared: Gradient | None) -> None:
        if shared is None:
            given = Gradient(tensor.spread)
            self.live += tensor.spread
            if self.live > self.peak:
                self.peak = self.live
        else:
            given = shared
            given.refs += 1
        held = tensor.gradient
        if held is None:
            tensor.gradient = given
            return
        if held.refs > 1:
            self.touch(tensor.spread)
            total = Gradient(tensor.spread)
            self.live += total.size
            self.release(held)
            tensor.gradient = total
        self.release(given)

    def release(self, gradient: Gradient) -> None:
        """One holder lets go of a gradient."""
        gradient.refs -= 1
        if gradient.refs == 0:
            self.live -= gradient.size
