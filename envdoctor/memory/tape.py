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
    if granted >= OWN_SEGMENT and (rest := -granted % SEGMENT) <= SPLIT:
        return granted + rest
    return granted


class Heap:
    """Where a tape's requests go; this one only counts, others place them."""

    def take(self, size: int) -> int:
        """Return the name of a block of so many bytes."""
        return NOWHERE

    def give(self, block: int) -> None:
        """Take a block back."""


NOWHERE = -1
COUNTED = Heap()


class Gradient:
    """A gradient in flight; shared by inputs that receive the very same tensor.

    `over` is the tensor whose storage it was written over.
    """

    __slots__ = ("block", "over", "refs", "size")

    def __init__(self, size: int, block: int = NOWHERE, over: Tensor | None = None) -> None:
        self.size = size
        self.block = block
        self.over = over
        self.refs = 1


class Tensor:
    """A tensor's storage: its elements, bytes an element, and who holds it."""

    __slots__ = ("block", "gradient", "needs", "numel", "refs", "size", "spread", "width")

    def __init__(self, numel: int, width: int, needs: bool) -> None:
        self.numel = numel
        self.width = width
        self.size = self.spread = rounded(numel * width)  # of the storage, and of its gradient
        self.refs = 1
        self.block = NOWHERE
        self.needs = needs
        self.gradient: Gradient | None = None

    @property
    def requested(self) -> int:
        """Bytes that torch asks the allocator for."""
        return self.numel * self.width


class Node:
    """An operation of the backward pass."""

    __slots__ = ("inputs", "out", "over", "parameter", "partners", "saved", "temporary", "through")

    def __init__(
        self,
        out: Tensor,
        inputs: tuple[Tensor, ...],
        saved: tuple[Tensor, ...],
        temporary: tuple[int, ...],
        parameter: int,
        through: bool,
    ) -> None:
        self.out = out
        self.inputs = inputs
        self.saved = saved
        self.temporary = temporary
        self.parameter = parameter
        self.through = through
        self.over = False
        self.partners: tuple[Tensor, ...] = ()


class Tape:
    """Bytes live and their peak since the tape began; `keep` False records nothing, as a checkpoint does.

    `heap` is asked for every block; `stop` is how many times tensors are saved before a checkpoint stops to
    recompute: what would follow is not asked for.
    """

    __slots__ = (
        "accumulating", "cached", "casts", "grads", "heap", "keep", "live", "nodes", "peak", "pinned", "pins",
        "reached", "saves", "stop", "trained",
    )  # fmt: skip

    def __init__(
        self, keep: bool = True, accumulating: bool = False, heap: Heap = COUNTED, stop: int = 0
    ) -> None:
        self.keep = keep
        self.accumulating = accumulating
        self.heap = heap
        self.stop = stop
        self.saves = 0
        self.live = 0
        self.peak = 0
        self.grads = 0
        self.trained: list[int] = []  # blocks of weights' gradients, which stay
        self.pinned = 0  # kept until the backward pass, checkpoint or not
        self.cached = 0  # kept until the forward pass ends: autocast's copies of weights
        self.casts: list[Tensor] = []
        self.pins: list[Tensor] = []
        self.reached = 0  # the peak when the last tensor was saved: where a checkpoint stops to recompute
        self.nodes: list[Node] = []

    def _take(self, counted: int, requested: int) -> int:
        """Ask for a block; the allocator counts `counted` bytes for it."""
        self.live = live = self.live + counted
        if live > self.peak:
            self.peak = live
        if self.heap is COUNTED or not requested or (self.stop and self.saves >= self.stop):
            return NOWHERE
        return self.heap.take(requested)

    def _give(self, counted: int, block: int) -> None:
        self.live -= counted
        if block != NOWHERE:
            self.heap.give(block)

    def new(self, numel: int, width: int, needs: bool = False) -> Tensor:
        """Allocate a tensor held by one name."""
        tensor = Tensor(numel, width, needs)
        tensor.block = self._take(tensor.size, numel * width)
        return tensor

    def pin(self, tensor: Tensor) -> None:
        """Keep a tensor through a checkpoint."""
        if not self.keep and not any(held is tensor for held in self.pins):
            self.pins.append(tensor)
            tensor.refs += 1
            self.pinned += tensor.size

    def cast(self, copy: Tensor) -> None:
        """Keep autocast's copy of a weight until the forward pass ends."""
        self.cached += copy.size
        self.casts.append(copy)

    def touch(self, *temporary: int) -> None:
        """Allocate and free scratch."""
        for size, block in self._scratch(temporary):
            self._give(size, block)

    def _scratch(self, sizes: tuple[int, ...]) -> list[tuple[int, int]]:
        return [(size, self._take(size, size)) for size in sizes]

    def drop(self, *tensors: Tensor) -> None:
        """One name of each tensor goes out of scope."""
        for tensor in tensors:
            tensor.refs -= 1
            if not tensor.refs:
                self.live -= tensor.size
                if tensor.block != NOWHERE:
                    self.heap.give(tensor.block)

    def op(
        self,
        numel: int,
        width: int,
        inputs: tuple[Tensor, ...],
        saved: tuple[Tensor, ...] = (),
        temporary: int | tuple[int, ...] = (),
        parameter: int = 0,
        through: bool = False,
    ) -> Tensor:
        """Allocate the result of an operation on `inputs` that saves `saved` for its backward pass.

        `temporary` is the backward pass's scratch, `parameter` the bytes of the weight gradient it makes,
        `through` says that the inputs' gradient is the output's own tensor.
        """
        needs = parameter > 0
        for tensor in inputs:
            needs = needs or tensor.needs
        recorded = self.keep and needs
        if recorded and saved:
            self._saving()
        out = self.new(numel, width, needs)
        if recorded:
            self.record(out, inputs, saved, temporary, parameter, through)
        return out

    def _saving(self) -> None:
        self.reached = self.peak
        self.saves += 1

    def record(
        self,
        out: Tensor,
        inputs: tuple[Tensor, ...],
        saved: tuple[Tensor, ...] = (),
        temporary: int | tuple[int, ...] = (),
        parameter: int = 0,
        through: bool = False,
    ) -> None:
        """Note an operation whose result is already there."""
        if self.keep and out.needs:
            for tensor in saved:
                tensor.refs += 1
            scratch = temporary if isinstance(temporary, tuple) else (temporary,) if temporary else ()
            self.nodes.append(Node(out, inputs, saved, scratch, parameter, through))

    def save_result(self, out: Tensor) -> None:
        """The operation that just made `out` saves it as well."""
        if self.keep and out.needs:
            node = self.nodes[-1]
            node.saved = (*node.saved, out)
            out.refs += 1
            self._saving()

    def overwrites(self) -> None:
        """The last operation's backward pass writes its inputs' gradients over the inputs, which it saved."""
        if self.nodes:
            self.nodes[-1].over = True

    def halves(self, whole: Tensor) -> tuple[Tensor, Tensor]:
        """Two views of one tensor; their gradients are joined into one tensor. They own no storage."""
        first, second = self.parts(whole, 2, (whole,))
        return first, second

    def parts(self, whole: Tensor, count: int, saved: tuple[Tensor, ...] = ()) -> tuple[Tensor, ...]:
        """So many views of one tensor, which own no storage; their gradients are joined into one tensor."""
        views = tuple(Tensor(whole.numel // count, whole.width, whole.needs) for _ in range(count))
        for view in views:
            view.size = 0
        self.record(views[0], (whole,), saved)
        if self.keep and whole.needs:
            self.nodes[-1].partners = views[1:]
        return views

    def backward(self, out: Tensor, gradient: Gradient | None = None) -> None:
        """Run the backward pass from `out`, whose gradient arrives from outside (not counted here)."""
        self.stop = 0
        out.gradient = gradient or Gradient(0)
        for node in reversed(self.nodes):
            arrived = node.out.gradient
            node.out.gradient = None
            if arrived is not None:
                self._apply(node, arrived)
            for partner in node.partners:
                if partner.gradient is not None:
                    self.release(partner.gradient)
                    partner.gradient = None
            self.drop(*node.saved)
        self.nodes.clear()

    def _apply(self, node: Node, gradient: Gradient) -> None:
        scratch = self._scratch(node.temporary)
        if node.parameter:
            self.weight_gradient(node.parameter)
        for tensor in node.inputs:
            if node.over:
                tensor.refs += 1
                tensor.gradient = Gradient(0, over=tensor)
            elif tensor.needs:
                self._receive(tensor, gradient if node.through else None)
        for size, block in scratch:
            self._give(size, block)
        self.release(gradient)

    def weight_gradient(self, size: int) -> None:
        """Make the gradient of a weight, which stays unless it is added to an older one."""
        if self.accumulating:
            self.touch(size)
        else:
            self.trained.append(self._take(size, size))
            self.grads += size

    def _receive(self, tensor: Tensor, shared: Gradient | None) -> None:
        if shared is None:
            given = self._gradient(tensor)
        else:
            given = shared
            given.refs += 1
        held = tensor.gradient
        if held is None:
            tensor.gradient = given
            return
        if held.refs > 1:
            total = self._gradient(tensor)
            self.release(held)
            tensor.gradient = total
        self.release(given)

    def _gradient(self, tensor: Tensor) -> Gradient:
        return Gradient(tensor.spread, self._take(tensor.spread, tensor.requested))

    def release(self, gradient: Gradient) -> None:
        """One holder lets go of a gradient."""
        gradient.refs -= 1
        if gradient.refs == 0:
            self._give(gradient.size, gradient.block)
            if gradient.over is not None:
                self.drop(gradient.over)
