"""What an optimizer's step asks for: its loop over tensors, in which a name holds a tensor until the next.

Read from the packages' own `step`: galore-torch 1.0, apollo-torch 1.0.3, adam-mini 1.1.1, lomo-optim 0.1.1,
LLaMA-Factory 0.9.5's Muon, and transformers' Adafactor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeVar

from envdoctor.memory.caching import Events, granules
from envdoctor.memory.layout import Elements
from envdoctor.memory.optimizer import of_matrices, sides, state_blocks
from envdoctor.memory.tape import rounded
from envdoctor.values import NamedTuple

if TYPE_CHECKING:
    from envdoctor.matrix import tables
    from envdoctor.memory.shape import ModelShape

Rest = TypeVar("Rest")
ASIDE, ASIDE_SQUARE = 400, 80
"""Elements for each of the longer side that a decomposition works on beside matrices of its own: those of
`torch.linalg.svd` were traced with torch 2.11 on an H200, ten sizes from 512 to 14,336."""


class Room(Protocol):
    """What gives and takes blocks."""

    def take(self, *sizes: int) -> list[int]:
        """Return blocks for requests of so many bytes."""

    def give(self, *blocks: int) -> None:
        """Take blocks back."""


class Counter:
    """Only counts what is taken, and how high it reached."""

    def __init__(self) -> None:
        self.live = self.peak = 0

    def take(self, *sizes: int) -> list[int]:
        """Count requests."""
        blocks = [rounded(size) for size in sizes]
        self.live += sum(blocks)
        self.peak = max(self.peak, self.live)
        return blocks

    def give(self, *blocks: int) -> None:
        """Count what comes back."""
        self.live -= sum(blocks)


class Loop:
    """The tensors that a step's code has under names, which it gives anew for the next weight."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.named: dict[str, list[int]] = {}

    def name(self, name: str, *sizes: float) -> None:
        """Take tensors under a name; what it named before goes once they are there."""
        blocks = self.room.take(*(int(size) for size in sizes if size))
        self.room.give(*self.named.pop(name, ()))
        self.named[name] = blocks

    def touch(self, *sizes: float) -> None:
        """Take tensors that nobody names."""
        self.room.give(*self.room.take(*(int(size) for size in sizes if size)))

    def drop(self, *names: str) -> None:
        """Let names go; without any, all."""
        for name in names or tuple(self.named):
            self.room.give(*self.named.pop(name, ()))


def _adam(loop: Loop, n: int, width: int) -> None:
    """Adam in Python, one tensor after the other: a root and a quotient."""
    loop.name("root", width * n)
    loop.name("update", width * n)


def _projected(loop: Loop, n: Elements, width: int, rank: int, first: bool) -> None:
    """GaLore: Adam on the projection; back, and scaled."""
    _, low = sides(n, rank)
    loop.name("gradient", width * low)
    _adam(loop, low, width)
    whole = loop.room.take(width * n)
    loop.name("update", width * n)
    loop.room.give(*whole)


def decompose(loop: Loop, optimizer: tables.OptimizerRow, n: int, width: int) -> None:
    """GaLore's decomposition in fp32 of the first gradient, before there are states of the weight."""
    matrix = of_matrices(optimizer, n)
    if matrix is not None and optimizer.matrices == "projected":
        loop.touch(4 * n if width < 4 else 0, *_decomposed(matrix))


def _decomposed(n: Elements) -> tuple[int, ...]:
    """Bytes of both results, of a copy, and of a block to work in, where a wide matrix is turned as well."""
    small, large = sorted((n.rows, n.columns))
    aside = (ASIDE if large > small else ASIDE_SQUARE) * large
    worked = n * (2 if n.rows < n.columns else 1) + small**2 + aside
    return 4 * n.rows * small, 4 * small * n.columns, 4 * n, 4 * worked


def _drawn(loop: Loop, n: Elements, width: int, rank: int, first: bool) -> None:
    """APOLLO: a projection drawn by lot; Adam on it scales the whole gradient, twice after the first step."""
    small, low = sides(n, rank)
    if first:
        loop.touch(4 * n if width < 4 else 0, 4 * min(rank, small) * small, 4 * min(rank, small) * small)
    loop.name("gradient", width * low)
    _adam(loop, low, width)
    loop.name("scaled", width * n)
    if not first:
        loop.name("scaled", width * n)


def _rows(loop: Loop, n: Elements, width: int, rank: int, first: bool) -> None:
    """Adam-mini: the gradient's square, the update, and what is taken off."""
    loop.touch(width * n)
    loop.name("update", width * n)
    loop.touch(width * n)


def _momentum(loop: Loop, n: Elements, width: int, rank: int, first: bool) -> None:
    """Muon: Nesterov's sum, then Newton and Schulz's iterations in 16 bits."""
    small, _ = sides(n, 1)
    loop.drop("gradient")
    loop.name("gradient", width * n)
    half, square = 2 * n, 2 * small * small
    cast = loop.room.take(half if width > 2 else 1)
    loop.touch(*(half,) * 4, *(square,) * 2)
    loop.name("orthogonal", half)
    loop.room.give(*cast)


_OF_MATRICES: Mapping[str, Callable[[Loop, Elements, int, int, bool], None]] = {
    "projected": _projected,
    "drawn": _drawn,
    "rows": _rows,
    "momentum": _momentum,
}


def _factored(loop: Loop, n: int, width: int) -> None:
    """Adafactor: gradient and weight in fp32, the square, the update in two forms."""
    wide = loop.room.take(*(4 * n, 4 * n) if width < 4 else ())
    square, update = loop.room.take(4 * n, 4 * n)
    loop.room.give(*loop.named.pop("update", ()), square)
    (scaled,) = loop.room.take(4 * n)
    loop.room.give(update)
    loop.touch(4 * n)
    loop.named["update"] = [*wide, scaled]


def _beside_momentum(loop: Loop, n: int, width: int) -> None:
    """Muon's own Adam: the gradient's square, then a root and what is made of it."""
    loop.drop("gradient")
    loop.touch(width * n)
    loop.touch(width * n, width * n)
    loop.name("gradient", width * n)


def _fused(loop: Loop, optimizer: tables.OptimizerRow, n: int) -> None:
    """LOMO: gradient and weight in fp32; with sums of rows and columns also the square, then the update.

    The gradient as it came goes once it is widened.
    """
    loop.name("wide", 4 * n)
    loop.drop("gradient")
    for _ in range(3 if optimizer.kept == "factored" else 0):  # the square, with epsilon, the update
        loop.name("update", 4 * n)
    loop.touch(4 * n)
    loop.drop("update", "wide")


def step_weight(
    loop: Loop, optimizer: tables.OptimizerRow, n: int, width: int, rank: int, first: bool
) -> None:
    """Step one weight of `n` elements of `width` bytes; `first` in the first step."""
    matrix = of_matrices(optimizer, n)
    if matrix is not None:
        _OF_MATRICES[optimizer.matrices](loop, matrix, width, rank or optimizer.rank, first)
    elif optimizer.matrices == "rows":
        loop.name("update", width * n)
    elif optimizer.matrices == "momentum":
        _beside_momentum(loop, n, width)
    elif optimizer.matrices:
        _adam(loop, n, width)
    elif optimizer.layerwise:
        _fused(loop, optimizer, n)
    elif optimizer.kept == "factored":
        _factored(loop, n, width)


def in_order(optimizer: tables.OptimizerRow, tensors: Iterable[tuple[int, Rest]]) -> list[tuple[int, Rest]]:
    """Return weights (elements and something) as they are stepped: Muon takes its matrices first."""
    if optimizer.matrices != "momentum":
        return list(tensors)
    return sorted(tensors, key=lambda one: of_matrices(optimizer, one[0]) is None)


class Stepped(NamedTuple):
    """What a step asks for, the slots that it needs, and those of the states that it makes."""

    events: Events
    slots: int
    states: tuple[int, ...]


class Noted:
    """A room that writes down what is asked for; its blocks are slots."""

    def __init__(self) -> None:
        self.events: list[tuple[int, int]] = []
        self.slots = 0

    def take(self, *sizes: int) -> list[int]:
        """Note requests, and return their slots."""
        slots = list(range(self.slots, self.slots + len(sizes)))
        self.events += zip(slots, map(granules, sizes), strict=True)
        self.slots += len(sizes)
        return slots

    def give(self, *blocks: int) -> None:
        """Note that slots are free again."""
        self.events += [(slot, 0) for slot in blocks]


@lru_cache(maxsize=64)
def step_through(
    optimizer: tables.OptimizerRow,
    shape: ModelShape,
    trained: tuple[tuple[int, int], ...],
    rank: int,
    first: bool,
    table: int,
) -> Stepped:
    """Return a step through a model's weights (elements and bytes of one) in their order, of which the one at
    `table` is the embedding; `first` makes their states."""
    room, sizes, states = Noted(), list[int](), list[int]()
    loop, python = Loop(room), steps_in_python(optimizer)
    for place, (n, width) in enumerate(trained):
        if first:
            decompose(loop, optimizer, n, width)
            sizes += filter(None, state_blocks(optimizer, n, width, place == table, rank))
        if python:
            states += room.take(*sizes)
            sizes.clear()
            step_weight(loop, optimizer, n, width, rank, first)
    states += room.take(*sizes)
    loop.drop()
    return Stepped(tuple(room.events), room.slots, tuple(states))


def steps_in_python(optimizer: tables.OptimizerRow) -> bool:
    """True for a loop over the weights that asks for room of its own."""
    return bool(optimizer.matrices) or optimizer.layerwise or optimizer.kept == "factored"


def step_bytes(
    optimizer: tables.OptimizerRow, groups: Iterable[tuple[Iterable[tuple[int, int]], int]], rank: int = 0
) -> int:
    """Bytes of scratch at the height of a step through groups of weights (elements, occurrences) of a width,
    one after the other."""
    sizes = [(n, (count, width)) for tensors, width in groups for n, count in tensors]
    if optimizer.foreach:
        return optimizer.foreach * sum(count * rounded(width * n) for n, (count, width) in sizes)
    if not steps_in_python(optimizer):
        return 0
    return max(_height(optimizer, sizes, rank, first) for first in (True, False))


def _height(
    optimizer: tables.OptimizerRow, sizes: list[tuple[int, tuple[int, int]]], rank: int, first: bool
) -> int:
    counter = Counter()
    loop = Loop(counter)
    for n, (count, width) in in_order(optimizer, sizes):
        for _ in range(min(count, 2)):
            decompose(loop, optimizer, n, width)
            step_weight(loop, optimizer, n, width, rank, first)
    return counter.peak


def largest_step(optimizer: tables.OptimizerRow, sizes: Iterable[int], width: int, rank: int = 0) -> int:
    """Bytes at the height of stepping one weight of those on its own, its gradient among them."""
    highest = 0
    for n in sizes:
        for first in (True, False):
            counter = Counter()
            made = step_alone(Loop(counter), optimizer, n, width, rank, first)
            highest = max(highest, counter.peak - sum(made))
    return highest


def step_alone(
    loop: Loop,
    optimizer: tables.OptimizerRow,
    n: int,
    width: int,
    rank: int,
    first: bool,
    gradient: int | None = None,
) -> list[int]:
    """Step one weight as soon as its gradient is there, in that block or a new one; it goes after it at the
    latest. Returns the blocks of states that the first step makes."""
    name = "its own" if optimizer.matrices else "gradient"
    if gradient is None:
        loop.name(name, width * n)
    else:
        loop.named[name] = [gradient]
    if first:
        decompose(loop, optimizer, n, width)
    states = state_blocks(optimizer, n, width, rank=rank) if first else ()
    made = loop.room.take(*filter(None, states))
    step_weight(loop, optimizer, n, width, rank, first)
    loop.drop()
    return made
