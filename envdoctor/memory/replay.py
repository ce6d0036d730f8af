"""A run's first steps, replayed through torch's caching allocator: how much of the card it takes.

What is allocated is known from the tapes; what is reserved depends on the order, since blocks that were cut
up for gradients and states no longer serve the next step's logits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from math import inf

from envdoctor.memory.activations import IDLE, LayerKind, kinds_of, layer_kinds
from envdoctor.memory.attention import masks
from envdoctor.memory.caching import GRANULE, Block, CachingAllocator, Events, granules, script_of
from envdoctor.memory.flat import buckets, coalesced
from envdoctor.memory.growing import allocator_of
from envdoctor.memory.images import tower_of
from envdoctor.memory.layout import dense_layer, moe_layer, outer_tensors
from envdoctor.memory.looking import Seen, look, look_back
from envdoctor.memory.loss import views_head
from envdoctor.memory.optimizer import find_optimizer, state_blocks
from envdoctor.memory.programs import (
    INPUT,
    Program,
    idle_program,
    layer_program,
    loss_program,
    watched_layer,
    watched_loss,
)
from envdoctor.memory.references import earlier_scores, reference_settings, writing_settings
from envdoctor.memory.run import TrainingRun
from envdoctor.memory.serving import key_bytes_per_token
from envdoctor.memory.settings import Settings, settings_of
from envdoctor.memory.shape import ModelShape
from envdoctor.memory.stepping import Loop, in_order, step_alone, step_through, steps_in_python
from envdoctor.memory.turns import Frame, Turns, frame_of, paired
from envdoctor.memory.weights import trained_tensors, trained_tower, weight_blocks
from envdoctor.values import replace

GROWTHS = 16
"""Lengths at which keys and values are copied in a replay of `generate`, instead of at every token."""
STEPS = 3
"""Optimizer steps until nothing new is asked for: states come with the first, and are in the way after it."""
SETTLED = 0.005
"""By what share a step with states may still grow and be the last that is played."""
MICRO_STEPS = 2
"""Micro batches of a step that are played: those after the second ask for what it did."""
ROWS = ("batch", "seq", "shortest_row", "grad_accum")
"""What of a run has no part in what it loads."""
STASHED = 5
"""Inputs of layers that stay while all go to it: wheel:trl-1.16.0:trl/models/activation_offloading.py"""


def can_replay(run: TrainingRun) -> bool:
    """True for a run whose cards each hold the whole model, or plain layers of it under fully_shard."""
    plain = run.fsdp_version > 1 and not (
        run.images or run.modules_to_save or run.recipe.reference or run.recipe.generates
    )
    whole = run.parallel in ("none", "ddp") or (run.parallel == "fsdp" and plain)
    return whole and run.tp * run.pp * run.shares * run.ep == 1 and not run.recipe.judged


class Replay:
    """The allocator, and what lies in it through the steps of one run."""

    def __init__(
        self,
        run: TrainingRun,
        workspace: int,
        upcasts: bool,
        *,
        widened: float = 0.0,
        early: bool = False,
        widths: tuple[int, ...] = (),
        room: float = inf,
    ) -> None:
        self.run, self.workspace, self.upcasts, self.early = run, workspace, upcasts, early
        self.stated, self.widths = run, widths
        self.s = settings_of(run)
        self.shape = run.shape
        self.widened = widened
        self.heap = allocator_of(run.expandable_segments, widened, room)
        self.tower = tower_of(run)
        self.optimizer = find_optimizer(run.optim)
        self.kinds = [kind for kind in kinds_of(run) for _ in range(kind.number)]
        self.gradients: list[Block] = []
        self.states: list[Block] = []
        self.buckets: list[Block] = []
        self.copies: list[Block] = []
        self.stepped = False
        self.most = 0  # that was taken before the cache was emptied
        self.started = False
        self.closed: dict[tuple[int, bool], tuple[int, ...]] = {}
        self.micros = min(run.grad_accum, MICRO_STEPS)

    def reserved(self, enough: float = inf, spare: int = -1) -> int:
        """Play load and steps, and return what is reserved; once that passes `enough` and what is lost passes
        what there is to `spare`, no more is played.

        A step for each of the `widths` in their order, in tokens of a row; without them all are as stated.
        """
        self._begin()
        for step, width in enumerate(self.widths or (self.run.seq,) * STEPS):
            self._narrow(width)
            before = self.taken
            if self.run.recipe.generates and self.run.vllm_utilization is None:
                self._generate()
            self._rebuild()
            self.micros = self._micro_steps(width)
            for micro in range(self.micros):
                self._play(accumulating=micro > 0 or self.optimizer.layerwise)
                if self.taken > enough and self.lost > spare:
                    return self.taken
            self._step()
            if step and not self.widths and self.taken - before <= SETTLED * before:
                break  # a step with states that found room for all: so does the next
        return self.taken

    def _play(self, accumulating: bool) -> None:
        """Play a micro batch, of which large requests find the same blocks as before where one of its sort
        found room for all in what lies free now, and left all as it was.

        Whether gradients are summed up tells no sorts apart: large ones would lie there after the first.
        """
        sort, began = self._sort(accumulating), (self.heap.large, *self.heap.free)
        self.heap.settled = self.closed.get(sort) == began
        self._pass(accumulating)
        self.heap.settled = False
        empties = self.run.teacher is not None  # with its logits gone the cache is emptied
        if not empties and (self.heap.large, *self.heap.free) == began:
            self.closed[sort] = began

    def _sort(self, accumulating: bool) -> tuple[int, bool]:
        """What tells micro batches apart that ask for other large blocks."""
        return self.run.seq, False

    @property
    def taken(self) -> int:
        """Bytes taken of the card."""
        return max(self.most, self.heap.reserved)

    @property
    def lost(self) -> int:
        """Bytes beside what is allocated that a full card's segments do not give back, where they grow."""
        return self.heap.lost * GRANULE

    def _micro_steps(self, width: int) -> int:
        """Micro batches to play: of rows below the widest one is enough where a segment grows, or gradients
        are small. What the second would have added, wider ones ask for as well."""
        passed = width < self.stated.seq and (self.run.expandable_segments or self.run.method != "full")
        return 1 if passed else min(self.run.grad_accum, MICRO_STEPS)

    def _narrow(self, width: int) -> None:
        """Let the rows that follow be as wide as that."""
        if width != self.run.seq:
            self.run = replace(self.stated, seq=width, max_completion=self._answer(width))
            self.s = settings_of(self.run)

    def _answer(self, width: int) -> int | None:
        """Tokens of answer in a row of that width: a policy writes as many whatever it was asked."""
        stated = self.stated
        if stated.recipe.generates:
            return max(1, min(width - 1, stated.completion))
        return max(1, stated.max_completion * width // stated.seq) if stated.max_completion else None

    def _begin(self) -> None:
        """Load, or begin with what a replay of other rows has loaded; a card has room for so much."""
        told = frozenset((name, value) for name, value in vars(self.run).items() if name not in ROWS)
        known = _loaded(told, self.widened)
        if not known:
            self._load()
            known.append((self.heap.copy(inf), self.buckets, self.copies))
            return
        heap, self.buckets, self.copies = known[0]
        self.heap = heap.copy(self.heap.room)

    def _load(self) -> None:
        """Weights, adapters, a second model where there is one, and DDP's buckets."""
        s, double = self.s, self.run.double_quant
        self._take(weight_blocks(self.shape, s, double))
        if self.run.trains.layers == "first":
            self.copies = self._take(4 * n for n, _ in trained_tensors(self.shape, s))
        if s.layered:
            self._take((s.layered - s.weight) * n for n, _ in trained_tensors(self.shape, s))
        trained = trained_tensors(self.shape, s)
        if not s.trains:
            self._take(n * width for n, width in trained)
        if self.run.teacher:
            self._take(weight_blocks(self.run.teacher, reference_settings(self.run, s), False))
        elif s.trains and self.run.recipe.reference:
            width = 4 if self.run.recipe.reference_fp32 else s.loaded
            self._take(weight_blocks(self.shape, s._replace(weight=width, vector=width), double))
        if self.run.parallel == "ddp":
            self._broadcast()
            self.buckets = self._take((sum(n * width for n, width in trained),))
        if self.optimizer.ready:
            self._take(size for n, width in trained for size in state_blocks(self.optimizer, n, width))

    def _broadcast(self) -> None:
        """DDP sends rank 0's weights: flat copies of some tensors at once, of which two are under way."""
        under_way: list[Block] = []
        for size in coalesced(weight_blocks(self.shape, self.s, self.run.double_quant)):
            under_way += self._take((size,))
            if len(under_way) > 2:
                self.heap.give(under_way.pop(0))
        self._give(under_way)

    def _rebuild(self) -> None:
        """After the first step DDP splits its one bucket in the order in which gradients came."""
        if self.started and len(self.buckets) == 1:
            trained = trained_tensors(self.shape, self.s)
            self._give(self.buckets)
            self.buckets = self._take(buckets([n * width for n, width in trained]))

    def _take(self, sizes: Iterable[int]) -> list[Block]:
        return self.heap.take(*filter(None, sizes))

    def _give(self, blocks: Iterable[Block]) -> None:
        self.heap.give(*blocks)

    def _pass(self, accumulating: bool) -> None:
        """One micro batch forward and backward."""
        s, shape = self.s, self.shape
        batch = self._take(batch_blocks(shape, s))
        if self.tower:  # the rows of all micro batches are there from the first on
            batch += self._take((4 * self.tower.pixels * self.run.grad_accum,))
        if self.run.recipe.reference == "before":
            self._refer()
        last = self.run.turns - 1
        turns = [self._onward(accumulating or turn < last) for turn in range(self.run.turns)]
        if self.run.recipe.reference == "beside":
            self._refer()
        for turn in reversed(range(self.run.turns)):
            self._backward(*turns[turn], accumulating or turn < last)
            self.started = True
        self._give(batch)

    def _onward(self, accumulating: bool) -> tuple[Frame, list[Frame], Seen | None]:
        """A forward pass and its loss."""
        s, shape = self.s, self.shape
        seen, stream = None, 0 if self.tower else self._embedded()
        self._workspace()
        if self.tower:  # whose products are the first
            seen = look(self.heap, self.tower, self.run.grad_ckpt, accumulating, self.early)
            stream = self._embedded()
        frames, last = self._forward(stream, accumulating)
        # a tied head's gradient waits for the embedding's
        alone = accumulating and not (shape.tied and s.outer)
        program = loss_program(shape, s.beside, alone, self.upcasts, self.run.recipe, self.run.scored)
        loss = frame_of(program, last)
        self.heap.play(program.forward, loss.blocks)
        if self.run.teacher:
            self._empty()
        self._give(seen.features if seen else ())
        self._give(block for frame in frames for block in (frame.blocks[n] for n in frame.program.casts))
        return loss, frames, seen

    def _embedded(self) -> Block:
        """The batch as vectors."""
        (stream,) = self.heap.take(self.s.tokens * self.shape.hidden * self.s.stream)
        return stream

    def _refer(self) -> None:
        """The reference model's forward pass, of which only the texts' log probabilities remain."""
        self._watch(reference_settings(self.run, self.s), self._take(earlier_scores(self.run)))

    def _watch(self, s: Settings, earlier: Sequence[Block] = ()) -> None:
        """A forward pass without a graph, beside `earlier` blocks that go once there are logits."""
        shape, kinds = self.run.teacher or self.shape, self.kinds
        if self.run.teacher:
            kinds = [kind for kind in layer_kinds(shape) for _ in range(kind.number)]
        turns, casts = Turns(self.heap, len(kinds), self.early), []
        (last,) = self.heap.take(s.tokens * shape.hidden * s.stream)
        programs = [watched_layer(shape, s, kind.moe, kind.windowed) for kind in kinds]
        if not self.run.teacher:  # whose logits are a matter of the loss
            programs.append(watched_loss(shape, s, self.upcasts, self.run.recipe, self.run.scored))
        for program, following in paired(programs):
            blocks, events = [last] * program.slots, program.events
            if earlier and following is None:
                named = next((n for n, (_, size) in enumerate(events) if size == self._quotient), len(events))
                self.heap.play(events[:named], blocks)
                self._give(earlier)
                events = events[named:]
            turns.play(events, blocks, program is not following)
            last = blocks[program.output]
            casts += [blocks[slot] for slot in program.casts]
            if following is programs[-1]:  # the head's product is the last that copies are there for
                self._give(casts)
                casts.clear()
        self._give((last, *casts))

    @property
    def _quotient(self) -> int:
        """Granules of the answers' logits once they are divided."""
        return granules(4 * self.run.scored * (self.shape.vocab // self.run.tp))

    def _generate(self) -> None:
        """transformers' `generate`: the prompt at once, then keys and values that are copied as they grow."""
        run, s = self.run, self.s
        texts, prompt = run.texts * run.grad_accum, max(1, run.seq - run.completion)
        token = key_bytes_per_token(self.shape, run.weight_bytes, run.tp, run.pp) // self.shape.layers // 2
        (stream,) = self.heap.take(texts * prompt * self.shape.hidden * s.stream)
        plain = writing_settings(run, s)
        keys: list[Block] = []
        last = stream
        for kind in self.kinds:
            program = watched_layer(self.shape, plain, kind.moe, kind.windowed)
            blocks = [last] * program.slots
            self.heap.perform(script_of(program.events), blocks)
            last = blocks[program.output]
            self._give(blocks[slot] for slot in program.casts)
            keys += self._take((texts * prompt * token,) * 2)
        self.heap.give(last)
        for length in range(prompt, run.seq, max(1, run.completion // GROWTHS)):
            copied = granules(texts * length * token)
            both = keys + keys
            grown = (((n + len(keys), copied), (n, 0)) for n in range(len(keys)))
            self.heap.play(tuple(chain.from_iterable(grown)), both)
            keys = both[len(keys) :]
            self._give(self._take((4 * texts * self.shape.vocab,) * 5))
        self._give(keys)

    def _workspace(self) -> None:
        """cuBLAS takes one in each of two threads when it is first used, and keeps it."""
        if not self.started:
            self.heap.take(self.workspace)

    def _program(self, kind: LayerKind, accumulating: bool) -> Program:
        checkpoint, s = self.run.grad_ckpt, self.s.of_layer(kind.role)
        if kind.role == IDLE:
            held = checkpoint and not s.reentrant
            return idle_program(watched_layer(self.shape, s, kind.moe, kind.windowed), held)
        return layer_program(self.shape, s, checkpoint, kind.moe, kind.windowed, accumulating)

    def _forward(self, stream: Block, accumulating: bool) -> tuple[list[Frame], Block]:
        """Every layer in turn; the model's own code holds the embedded input until all are done."""
        frames: list[Frame] = []
        turns, last = Turns(self.heap, len(self.kinds), self.early), stream
        programs = [self._program(kind, accumulating) for kind in self.kinds]
        for program, following in paired(programs):
            frame = frame_of(program, last)
            events = program.forward
            if not frames:
                events = tuple(e for e in events if e != (INPUT, 0))
            turns.play(events, frame.blocks, program is not following)
            last = frame.blocks[frame.program.output]
            frames.append(frame)
            if self.run.offload_activations and len(frames) > STASHED + 1:
                self.heap.give(frames[-STASHED - 1].blocks[INPUT])
        if (INPUT, 0) in frames[0].program.forward:
            self.heap.give(stream)
        return frames, last

    def _backward(self, loss: Frame, frames: list[Frame], seen: Seen | None, accumulating: bool) -> None:
        begun = 0 if self.started or self.early else self._first_product(loss.program.backward)
        self.heap.play(loss.program.backward[:begun], loss.blocks)
        self._workspace()
        self.heap.play(loss.program.backward[begun:], loss.blocks)
        head = self._keep_head(loss)
        gradient = loss.blocks[loss.program.leaving]
        turns = Turns(self.heap, len(self.kinds), self.early)
        for place, (frame, following) in enumerate(paired(frames[::-1]), 1):
            program = frame.program
            frame.blocks[program.arriving] = gradient
            if self.run.offload_activations and 1 < len(frames) - place + 1 <= len(frames) - STASHED:
                (frame.blocks[INPUT],) = self.heap.take(self.s.tokens * self.shape.hidden * self.s.stream)
            self._arrive(len(frames) - place, frame, accumulating)
            turns.play(program.backward, frame.blocks, following is None or program is not following.program)
            self._leave(len(frames) - place, frame, accumulating)
            gradient = frame.blocks[program.leaving]
        if seen is not None:
            self.gradients += look_back(self.heap, seen)
        if self.s.trains_table:
            self._embedding(head, accumulating)
        self.heap.give(gradient)

    def _first_product(self, events: Events) -> int:
        """Where the first result of a product with the head lies: it is there before cuBLAS asks for room."""
        s, hidden = self.s, self.shape.hidden
        rows = {s.tokens, self.run.scored, self.run.scored + s.batch}
        results = {self.shape.vocab // s.tp * hidden * s.compute, *(n * hidden * s.compute for n in rows)}
        widths = {granules(size) for size in results}
        return next((place for place, (_, size) in enumerate(events, 1) if size in widths), 0)

    def _arrive(self, place: int, frame: Frame, accumulating: bool) -> None:
        """Fill the slots of a layer's way back that are not its own."""

    def _leave(self, place: int, frame: Frame, accumulating: bool) -> None:
        """Note what a layer's way back leaves."""
        self._keep(frame)
        if self.optimizer.layerwise and not self.kinds[place].role:
            layer = moe_layer(self.shape) if self.kinds[place].moe else dense_layer(self.shape)
            self._step_at_once(layer.tensors(), self.s.layered or self.s.weight)

    def _keep_head(self, loss: Frame) -> Block | None:
        """Note the gradients of what follows the layers; return the head's."""
        if self.optimizer.layerwise and self.s.outer and not self.shape.tied:
            self._step_at_once(outer_tensors(self.shape, False)[-1:], self.s.vector)
        return self._keep(loss)

    def _keep(self, frame: Frame) -> Block | None:
        """Note the gradients that a frame leaves; return the first."""
        kept = [frame.blocks[slot] for slot in frame.program.gradients]
        self.gradients += kept
        return kept[0] if kept else None

    def _embedding(self, head: Block | None, accumulating: bool) -> None:
        """The embedding's gradient; a tied head's own waits for it: where it is a view the sum is a third."""
        size = self.shape.vocab * self.shape.hidden * (self.s.vector if self.s.outer else self.s.copied)
        (total,) = self.heap.take(size)
        if self.shape.tied and self.s.outer and head is not None and self.run.recipe.loss != "value":
            own = total
            self.gradients.remove(head)
            if views_head(self.run.recipe.loss, self.s):
                (total,) = self.heap.take(size)
                self._give((own, head))
            else:
                total = head
                self.heap.give(own)
        if self.optimizer.layerwise:
            self._step_at_once(outer_tensors(self.shape, False)[:1], self.s.vector, total)
        elif accumulating:
            self.heap.give(total)
        else:
            self.gradients.append(total)

    def _step(self) -> None:
        """The optimizer's step: states where there are none yet, scratch, and gradients dropped after it."""
        first, rank = not (self.stepped or self.optimizer.ready), self.run.optim_rank
        self.stepped = True
        trained = [] if self.optimizer.layerwise else in_order(self.optimizer, self._trained())
        python = steps_in_python(self.optimizer) and not self.optimizer.layerwise
        if self.copies:
            self._widen(trained)
            trained = [(n, 4) for n, _ in trained]
        if first or python:
            table = len(trained_tower(self.shape, self.s)) if self.s.trains_table else -1
            stepped = step_through(self.optimizer, self.shape, tuple(trained), rank, first, table)
            blocks = [0] * stepped.slots
            self.heap.play(stepped.events, blocks)
            self.states += [blocks[slot] for slot in stepped.states]
        if self.optimizer.foreach:
            self._give(self._take(width * n for n, width in trained * self.optimizer.foreach))
        self._give(self.gradients)
        self.gradients.clear()
        if self.copies:
            self._empty()

    def _empty(self) -> None:
        """Empty the cache, as BAdam does after each step and GKD after each loss."""
        self.most = self.taken
        self.heap.release()

    def _widen(self, trained: list[tuple[int, int]]) -> None:
        """BAdam widens the gradients of the layer at hand, which then go."""
        wide = [block for n, _ in trained for block in self._take((4 * n,))]
        self._give(self.gradients)
        self.gradients = wide

    def _trained(self) -> list[tuple[int, int]]:
        return trained_tensors(self.shape, self.s)

    def _step_at_once(self, tensors: Iterable[int], width: int, gradient: Block | None = None) -> None:
        """Step weights as soon as their gradients are there."""
        rank = self.run.optim_rank
        for n in tensors:
            loop = Loop(self.heap)
            made = step_alone(loop, self.optimizer, n, width, rank, not self.stepped, gradient)
            self.states += made


@lru_cache(maxsize=64)
def _loaded(
    told: frozenset[tuple[str, object]], widened: float
) -> list[tuple[CachingAllocator, list[Block], list[Block]]]:
    """Return where what such a run loads is kept: the allocator, DDP's buckets and copies."""
    return []


def batch_blocks(shape: ModelShape, s: Settings) -> Iterator[int]:
    """Bytes of a batch's tensors, rotary tables and masks."""
    yield from (8 * s.tokens,) * 3
    if shape.rope:
        yield from (s.seq * shape.head_dim * s.stream,) * 2
    if s.attn == "eager" or shape.alibi:
        yield s.batch * s.seq * s.seq * s.compute
    yield from (s.batch * s.seq * s.seq,) * masks(shape, s)
