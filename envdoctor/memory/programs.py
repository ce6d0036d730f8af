"""What a layer and a loss ask of the allocator, in order: recorded once, played for every layer and step."""

from __future__ import annotations

from functools import lru_cache

from envdoctor.memory.caching import TOUCHED, Events, granules
from envdoctor.memory.loss import compute_loss, hold, tell
from envdoctor.memory.recipes import Recipe
from envdoctor.memory.settings import Settings
from envdoctor.memory.shape import ModelShape
from envdoctor.memory.tape import Gradient, Heap, Tape, Tensor
from envdoctor.memory.towers import run_layer, tower_ending
from envdoctor.memory.vision import Vision
from envdoctor.values import NamedTuple

INPUT = 0


class Recorder(Heap):
    """Writes down what a tape asks for; slot 0 is the input, which is there before."""

    def __init__(self) -> None:
        self.slots = 0
        self.events: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        """Note a request, and return its slot."""
        self.events.append((self.slots, granules(size)))
        self.slots += 1
        return self.slots - 1

    def give(self, block: int) -> None:
        """Note that a slot is free again."""
        slot, size = self.events[-1] if self.events else (TOUCHED, 0)
        if slot == block and size:
            self.events[-1] = (TOUCHED, size)
        else:
            self.events.append((block, 0))

    def foreign(self) -> int:
        """Return a slot that something else fills."""
        self.slots += 1
        return self.slots - 1

    def cut(self) -> Events:
        """Return what was noted since the last cut."""
        events = tuple(self.events)
        self.events.clear()
        return events


class Program(NamedTuple):
    """What runs forward and what runs backward, and the slots that others share.

    `arriving` is the gradient of the output, `leaving` that of the input; `casts` stay until the forward pass
    ends, `gradients` until the optimizer's step.
    """

    forward: Events
    backward: Events
    slots: int
    output: int
    arriving: int
    leaving: int
    casts: tuple[int, ...]
    gradients: tuple[int, ...]


@lru_cache(maxsize=1024)
def layer_program(
    shape: ModelShape | Vision, s: Settings, checkpoint: bool, moe: bool, windowed: bool, accumulating: bool
) -> Program:
    """Return what a layer of that kind asks for."""
    recorder = Recorder()
    tape = Tape(keep=not checkpoint, accumulating=accumulating, heap=recorder)
    x = tape.new(s.tokens * shape.hidden, s.stream, needs=True)
    recorder.cut()
    if checkpoint:
        x.refs += 1
    out = run_layer(tape, s, shape, x, moe, windowed)
    forward, output, casts = recorder.cut(), out.block, tuple(copy.block for copy in tape.casts)
    arriving = Gradient(0, recorder.foreign())
    if checkpoint:
        tape, x = _recompute(tape, s, shape, moe, windowed, arriving, recorder)
    else:
        tape.backward(out, arriving)
    leaving = x.gradient.block if x.gradient else arriving.block
    return Program(
        forward, recorder.cut(), recorder.slots, output, arriving.block, leaving, casts, tuple(tape.trained)
    )


def _recompute(
    first: Tape,
    s: Settings,
    shape: ModelShape | Vision,
    moe: bool,
    windowed: bool,
    arriving: Gradient,
    recorder: Recorder,
) -> tuple[Tape, Tensor]:
    """Run a checkpointed layer again, up to the last tensor that is saved, and backward."""
    stop = 0 if s.reentrant else _saves(s, shape, moe, windowed)
    tape = Tape(accumulating=first.accumulating, heap=recorder, stop=stop)
    x = Tensor(s.tokens * shape.hidden, s.stream, needs=True)
    x.block, x.refs = INPUT, 2
    out = run_layer(tape, s, shape, x, moe, windowed)
    if not s.reentrant:
        tape.drop(out)
    if s.reentrant:  # its own backward call holds what it was given
        arriving.refs += 1
    tape.backward(out, arriving)
    if s.reentrant:
        tape.drop(out)
        tape.release(arriving)
    tape.drop(x)
    first.drop(*first.pins)
    return tape, x


class Watched(NamedTuple):
    """What runs forward with no graph: the events, the slots, that of the output, and casts that stay."""

    events: Events
    slots: int
    output: int
    casts: tuple[int, ...]


@lru_cache(maxsize=256)
def idle_program(watched: Watched, held: bool) -> Program:
    """Return the program of a layer that no gradient reaches: on its way back it only passes.

    A checkpoint's input is `held` all the same.
    """
    passing = watched.slots
    forward = tuple(event for event in watched.events if not (held and event == (INPUT, 0)))
    backward = ((INPUT, 0),) if held else ()
    return Program(forward, backward, passing + 1, watched.output, passing, passing, watched.casts, ())


@lru_cache(maxsize=1024)
def watched_layer(shape: ModelShape | Vision, s: Settings, moe: bool, windowed: bool) -> Watched:
    """Return what a layer asks for where nothing is to be trained."""
    recorder = Recorder()
    tape = Tape(keep=False, heap=recorder)
    x = tape.new(s.tokens * shape.hidden, s.stream)
    recorder.cut()
    out = run_layer(tape, s, shape, x, moe, windowed)
    return Watched(recorder.cut(), recorder.slots, out.block, tuple(copy.block for copy in tape.casts))


@lru_cache(maxsize=1024)
def watched_loss(shape: ModelShape, s: Settings, upcast: bool, recipe: Recipe, scored: int) -> Watched:
    """Return what everything after the last layer asks for where nothing is to be trained."""
    recorder = Recorder()
    tape = Tape(keep=False, heap=recorder)
    out = compute_loss(tape, shape, s, upcast, recipe, scored)
    return Watched(recorder.cut()[1:], recorder.slots, out.block, tuple(copy.block for copy in tape.casts))


def _saves(s: Settings, shape: ModelShape | Vision, moe: bool, windowed: bool) -> int:
    """How many times a layer's forward pass saves tensors."""
    tape = Tape()
    x = tape.new(s.tokens * shape.hidden, s.stream, needs=True)
    run_layer(tape, s, shape, x, moe, windowed)
    return tape.saves


class Recording(Tape):
    """A tape that remembers the first tensor made: what comes in."""

    __slots__ = ("first",)
    first: Tensor

    def new(self, numel: int, width: int, needs: bool = False) -> Tensor:
        """Allocate a tensor held by one name."""
        tensor = super().new(numel, width, needs)
        if tensor.block == INPUT:
            self.first = tensor
        return tensor


@lru_cache(maxsize=1024)
def loss_program(
    shape: ModelShape, s: Settings, accumulating: bool, upcast: bool, recipe: Recipe, scored: int
) -> Program:
    """Return what everything after the last layer asks for; a reference is asked before the way back."""
    recorder = Recorder()
    tape = Recording(accumulating=accumulating, heap=recorder)
    out = compute_loss(tape, shape, s, upcast, recipe, scored)
    held = hold(tape, shape, s, recipe, scored)
    tape.drop(out)
    forward = recorder.cut()[1:]
    tell(tape, shape, s, recipe, scored)
    tape.drop(*held)
    tape.backward(out)
    leaving = tape.first.gradient.block if tape.first.gradient else INPUT
    return Program(forward, recorder.cut(), recorder.slots, out.block, -1, leaving, (), tuple(tape.trained))


@lru_cache(maxsize=256)
def ending_program(v: Vision, s: Settings, tokens: int, accumulating: bool, graph: bool) -> Program:
    """Return what leads from a tower's last block to the decoder's `tokens`, recorded for autograd or not."""
    recorder = Recorder()
    tape = Tape(keep=graph, accumulating=accumulating, heap=recorder)
    x = tape.new(s.tokens * v.hidden, s.stream, needs=graph)
    recorder.cut()
    out = tower_ending(tape, s, v, x, tokens)
    forward, arriving = recorder.cut(), Gradient(0, recorder.foreign())
    if graph:
        tape.backward(out, arriving)
    leaving = x.gradient.block if x.gradient else arriving.block
    return Program(
        forward, recorder.cut(), recorder.slots, out.block, arriving.block, leaving, (), tuple(tape.trained)
    )
