"""A run under fully_shard, replayed: three streams, and for each a pool of the caching allocator.

As torch.distributed.fsdp's `fully_shard` and accelerate's `fsdp2_prepare_model` go about it: a unit is an
embedding, a layer, or the last norm with the head (a tied table belongs to it). The stream that copies in
holds a unit's shard in 16 bits and the whole, until the next has been copied out; the main one holds what was
copied out, and a copy of a unit's gradients until the next unit's; the one that reduces holds the gradients'
shards in fp32 until the step is done.
"""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import groupby
from math import inf

from envdoctor.memory.activations import LayerKind
from envdoctor.memory.adapters import adapts_experts, expert_factors
from envdoctor.memory.caching import Block, Events, granules
from envdoctor.memory.growing import allocator_of
from envdoctor.memory.layout import dense_layer, moe_layer, outer_tensors
from envdoctor.memory.programs import Program
from envdoctor.memory.replay import Replay
from envdoctor.memory.run import TrainingRun
from envdoctor.memory.turns import Frame
from envdoctor.memory.weights import quantised_blocks, trained_tensors, weight_blocks
from envdoctor.values import NamedTuple

FP32, LOW = 4, 2
WIDENED = 0.003
"""By what share large requests are widened in the second replay."""
DOUBTED = 1.15
"""What one play reserves of another where both are held against two more."""


class Plays:
    """The replays that agree with what is known of a run, each played once and no further than is asked.

    Which free block serves turns on sizes that lie close together: so once to the letter, layer by layer,
    with cuBLAS's second workspace asked for early, and once late with requests that are a little larger.
    Where these lie far apart, one of them met what the card does not: two more are made, and that side of the
    middle counts where the play to the letter lies, unless it lies there alone, or only with late ones: sizes
    that agree late have to agree early, too.
    """

    def __init__(self, run: TrainingRun, workspace: int, upcasts: bool) -> None:
        kind = ShardedReplay if run.parallel == "fsdp" else Replay
        widths = [WIDENED * part / 3 for part in (3, 2, 1)]
        self.ways = (
            partial(kind, run, workspace, upcasts, early=True),
            *(partial(kind, run, workspace, upcasts, widened=width) for width in widths),
        )
        self.early = [partial(kind, run, workspace, upcasts, early=True, widened=width) for width in widths]
        self.taken: dict[int, int] = {}  # by each way that was played to its end
        self.lost = 0  # bytes that segments which grow keep beside what is allocated
        self.passed = 0  # what one took when it was no longer played

    def highest(self, enough: float, spare: int = -1) -> int:
        """Return the highest in bytes reserved, or some that pass `enough` while more than `spare` is lost.

        Where that may end it, the play that passes over layers alike goes first: it takes a third of
        the other's time.
        """
        for n in (0, 1) if enough == inf else (1, 0):
            if n in self.taken:
                continue
            known = max(self.passed, 0, *self.taken.values())
            if known > enough and self.lost > spare:
                return known
            play = self.ways[n]()
            taken = play.reserved(enough, spare)
            self.lost = max(self.lost, play.lost)
            if taken > enough and play.lost > spare:
                self.passed = max(taken, self.passed)
                return taken
            self.taken[n] = taken
        if len(self.taken) == 2 and max(self.taken.values()) > DOUBTED * min(self.taken.values()):
            self.taken |= {n: self.ways[n]().reserved() for n in range(2, len(self.ways))}
        return max(self.taken.values()) if len(self.taken) < len(self.ways) else self._agreed()

    def _agreed(self) -> int:
        """The highest of the side where the play to the letter lies, or of the other where it lies alone."""
        letter, *others = (self.taken[n] for n in range(len(self.ways)))
        middle = (max(letter, *others) + min(letter, *others)) / 2
        beside = [(taken > middle) is (letter > middle) for taken in others]
        if any(beside):
            early = self.early[beside.index(True)]().reserved()
            if (early > middle) is (letter > middle):
                return max(letter, *(taken for taken, alike in zip(others, beside, strict=True) if alike))
        return max(taken for taken, alike in zip(others, beside, strict=True) if not alike)


@lru_cache(maxsize=256)
def plays(run: TrainingRun, workspace: int, upcasts: bool) -> Plays:
    """Return a run's replays; `workspace` is cuBLAS's, `upcasts` tells that its loss widens the logits."""
    return Plays(run, workspace, upcasts)


class Unit(NamedTuple):
    """What is gathered at once: bytes of each parameter, of each as it is kept, and elements trained."""

    whole: tuple[int, ...]
    kept: tuple[int, ...]
    trained: int


class Extended(NamedTuple):
    """A layer's program with its parameters about it; slots of the copies of gradients, and of the latter."""

    program: Program
    copy: int
    former: int
    held: range


class ShardedReplay(Replay):
    """What three pools hold through the steps of one run, on a card of `replicas`."""

    def __init__(
        self,
        run: TrainingRun,
        workspace: int,
        upcasts: bool,
        *,
        widened: float = 0.0,
        early: bool = False,
        widths: tuple[int, ...] = (),
    ) -> None:
        super().__init__(run, workspace, upcasts, widened=widened, early=early, widths=widths)
        self.cards = run.replicas
        self.gathers = allocator_of(run.expandable_segments, widened)
        self.reduces = allocator_of(run.expandable_segments, widened)
        table, *rest = outer_tensors(run.shape)
        inside = (table, *rest) if run.shape.tied else tuple(rest)
        self.table = self._unit((table,))
        self.tail = self._unit(inside)
        self.units = {moe: self._layer(moe) for moe in {kind.moe for kind in self.kinds}}
        self.extended: dict[tuple[LayerKind, bool], Extended] = {}
        self.held: dict[int, list[Block]] = {}
        self.shards: list[Block] = []
        self.copy: Block = 0
        self.unsharded: list[Block] = []
        self.synced = False
        self.settled = False  # whether what is gathered finds the same free blocks in each pass

    @property
    def taken(self) -> int:
        """Bytes of all three pools."""
        return self.heap.reserved + self.gathers.reserved + self.reduces.reserved

    def _narrow(self, width: int) -> None:
        super()._narrow(width)
        self.extended.clear()

    def _unit(self, elements: tuple[int, ...]) -> Unit:
        kept, trained = (FP32, sum(elements)) if self.s.trains else (self.s.loaded, 0)
        return Unit(tuple(LOW * n for n in elements), tuple(kept * n for n in elements), trained)

    def _layer(self, moe: bool) -> Unit:
        """A layer: quantised matrices travel as they are stored, factors of adapters in 16 bits."""
        s = self.s
        layer = moe_layer(self.shape) if moe else dense_layer(self.shape)
        if s.trains:
            return self._unit(layer.tensors())
        parts: list[tuple[int, int, int]] = []  # bytes gathered and kept, elements trained
        for linear in layer.linears:
            stored = quantised_blocks(linear.weight, linear.outputs, s.quant, True)[0] if s.quant else 0
            one = [(stored or linear.weight * s.weight,) * 2 + (0,)]
            one += [(linear.outputs * s.weight,) * 2 + (0,)] if linear.bias else []
            if s.targeted(linear.role):
                sides = (s.rank * linear.inputs, s.rank * linear.outputs)
                one += [(LOW * n, FP32 * n, n) for n in sides]
            parts += one * linear.times
        parts += [(n * s.weight, n * s.weight, 0) for n in (*layer.stacks, *layer.vectors)]
        if layer.stacks and self.shape.experts and adapts_experts(self.shape, s):
            factors = expert_factors(self.shape, self.shape.experts, s.rank)
            parts += [(LOW * n, FP32 * n, n) for n in factors]
        return Unit(tuple(p[0] for p in parts), tuple(p[1] for p in parts), sum(p[2] for p in parts))

    def _shard(self, size: int) -> int:
        return -(-size // self.cards)

    def _load(self) -> None:
        """Weights as accelerate shards them: one after the other, or all from what lies there whole."""
        units = [self.table, *(self.units[kind.moe] for kind in self.kinds), self.tail]
        sizes = [size for unit in units[self.shape.tied :] for size in unit.kept if size]
        if self.run.meta_load:
            for size in dict.fromkeys(sizes) if self.run.offload_params else sizes:
                whole = self._take((size,))
                shard = self._take((self._shard(size),))
                self._give((*whole, *(shard if self.run.offload_params else ())))
            return
        lies = self.s._replace(weight=self.s.loaded, vector=self.s.loaded)
        loaded = self._take(weight_blocks(self.shape, lies, self.run.double_quant))
        if self.s.trains:
            for place, (block, size) in enumerate(zip(loaded, sizes, strict=True)):
                (loaded[place],) = self._take((size,))
                self.heap.give(block)
        if not self.run.offload_params:
            self._take(map(self._shard, sizes))
        self._give(loaded)

    def _gather(self, units: list[Unit]) -> None:
        """The forward pass as the stream that copies in sees it: no unit of the way back asks for more.

        What has led to the same free blocks leads on as it did: it is not played again.
        """
        if self.settled:
            return
        began = self.gathers.free
        last: tuple[Block, ...] = ()
        known: dict[object, int]
        for _, alike in groupby(units, id):
            found = list(alike)
            left, known = len(found), {}
            while left:
                last = self._copied_in(found[0], last)
                left -= 1
                state = self.gathers.free, last
                if state in known:
                    left %= known[state] - left
                known[state] = left
        self.gathers.give(*last)
        self.settled = self.gathers.free == began

    def _copied_in(self, unit: Unit, last: tuple[Block, ...]) -> tuple[Block, ...]:
        """Copy in a unit's shards and gather them; the former unit, which lies in `last`, goes."""
        heap = self.gathers
        if self.run.offload_params:  # each comes from the host as it is kept, and is then cast
            inputs = []
            for whole, kept in zip(unit.whole, unit.kept, strict=True):
                shard = heap.take(self._shard(kept))
                inputs += heap.take(self._shard(whole)) if kept != whole else shard
                if kept != whole:
                    heap.give(shard[0])
        else:
            cast = [w for w, kept in zip(unit.whole, unit.kept, strict=True) if w != kept]
            inputs = heap.take(*filter(None, (sum(map(self._shard, cast)),)))
        out = heap.take(sum(unit.whole))
        heap.give(*inputs, *last)
        return tuple(out)

    def _reduce(self, elements: int) -> None:
        """Shards of a unit's gradients: in 16 bits, and in fp32, which may go to the host."""
        if elements:
            low, wide = self.reduces.take(self._shard(LOW * elements), self._shard(FP32 * elements))
            self.reduces.give(low)
            if self.run.offload_params:
                self.reduces.give(wide)
            else:
                self.shards.append(wide)

    def _sort(self, accumulating: bool) -> tuple[int, bool]:
        self.synced = accumulating or self.micros == 1
        return self.run.seq, self.synced

    def _pass(self, accumulating: bool) -> None:
        layered = [self.units[kind.moe] for kind in self.kinds]
        self._gather([self.tail, *layered] if self.shape.tied else [self.table, *layered, self.tail])
        (self.copy,) = self._take((1,))
        super()._pass(accumulating)
        self._give((*self.unsharded, self.copy))
        self.unsharded = []

    def _embedded(self) -> Block:
        first = self.tail if self.shape.tied else self.table
        table = self._take(first.whole)
        stream = super()._embedded()
        if self.shape.tied:
            self.unsharded = table
        else:
            self._give(table)
        return stream

    def _forward(self, stream: Block, accumulating: bool) -> tuple[list[Frame], Block]:
        found = super()._forward(stream, accumulating)
        if not self.shape.tied:
            self.unsharded = self._take(self.tail.whole)
        return found

    def _program(self, kind: LayerKind, accumulating: bool) -> Program:
        key = (kind, accumulating)
        if key not in self.extended:
            self.extended[key] = self._extend(super()._program(kind, accumulating), kind)
        return self.extended[key].program

    def _extend(self, program: Program, kind: LayerKind) -> Extended:
        """Copy parameters out before, free them after; copy the gradients to be reduced, and free them."""
        unit, first = self.units[kind.moe], program.slots
        named = range(first, first + len(unit.whole))
        copy, former = named.stop, named.stop + 1
        out: Events = tuple((slot, granules(size)) for slot, size in zip(named, unit.whole, strict=True))
        back: Events = tuple((slot, 0) for slot in named)
        held = range(former + 1, former + 1)
        gradients = program.gradients
        if self.synced:
            if not gradients:  # an earlier micro batch left them
                held = range(former + 1, former + 1 + len(self.held[self.kinds.index(kind)]))
            reduced = held or gradients
            width = LOW if self.s.trains else self.s.adapter
            copied = granules(max(1, unit.trained * width))  # a size of nothing would give back
            back = (*back, (former, 0), (copy, copied), *((slot, 0) for slot in reduced))
            gradients = ()
        return Extended(
            program._replace(
                forward=(*out, *program.forward, *((slot, 0) for slot in named)),
                backward=(*out, *program.backward, *back),
                slots=held.stop,
                gradients=gradients,
            ),
            copy,
            former,
            held,
        )

    def _arrive(self, place: int, frame: Frame, accumulating: bool) -> None:
        if self.synced:
            extended = self.extended[self.kinds[place], accumulating]
            frame.blocks[extended.former] = self.copy
            for slot, block in zip(extended.held, self.held.get(place, ()), strict=False):
                frame.blocks[slot] = block

    def _leave(self, place: int, frame: Frame, accumulating: bool) -> None:
        if self.synced:
            self.copy = frame.blocks[self.extended[self.kinds[place], accumulating].copy]
            if trained := self.units[self.kinds[place].moe].trained:
                self._reduce(trained)
        else:
            self.held[place] = [frame.blocks[slot] for slot in frame.program.gradients]

    def _keep_head(self, loss: Frame) -> Block | None:
        head = super()._keep_head(loss)
        if not self.shape.tied:
            self._finish(self.tail)
        return head

    def _finish(self, unit: Unit) -> None:
        """Free a unit that lies there whole, and reduce what is left of its gradients."""
        self._give(self.unsharded)
        self.unsharded = []
        if self.synced and unit.trained:
            self.heap.give(self.copy)
            (self.copy,) = self._take((LOW * unit.trained,))
            self._give(self.gradients)
            self.gradients.clear()
            self._reduce(unit.trained)

    def _embedding(self, head: Block | None, accumulating: bool) -> None:
        table = [] if self.shape.tied else self._take(self.table.whole)
        super()._embedding(head, accumulating)
        self.unsharded += table
        self._finish(self.tail if self.shape.tied else self.table)

    def _trained(self) -> list[tuple[int, int]]:
        """Shards of the trained tensors that the optimizer steps on the card."""
        if self.run.offload_params:
            return []
        return [(self._shard(n), FP32) for n, _ in trained_tensors(self.shape, self.s)]

    def _step(self) -> None:
        super()._step()
        self.reduces.give(*self.shards)
        self.shards.clear()
