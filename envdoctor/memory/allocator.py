"""From what is allocated to what is reserved: how much the caching allocator may hold in pieces."""

from __future__ import annotations

from math import inf

from envdoctor.memory.constants import Constants, ReservedBound
from envdoctor.memory.layout import layers, outer_tensors
from envdoctor.memory.optimizer import find_optimizer
from envdoctor.memory.run import TrainingRun
from envdoctor.memory.settings import settings_of
from envdoctor.memory.weights import trained_tensors
from envdoctor.values import NamedTuple

SEGMENT = 2 << 20  # segments are multiples of this
UNCALIBRATED = ReservedBound()


class Churn(NamedTuple):
    """Bytes that come and go in a step, by what they are; see ReservedBound."""

    logits: int
    layer: int
    gradients: int
    kept: int
    table: int
    buffers: int
    scores: int = 0
    stacks: int = 0


def sharding_kind(parallel: str) -> str:
    """The kind of bound that a way of sharding has."""
    if parallel in ("zero1", "zero2"):
        return "zero12"
    return parallel if parallel in ("zero3", "fsdp") else "plain"


MARGIN = 0.025
"""On top of the highest replay: what kernels ask for that no tape knows of."""

ROUTED = 0.075
"""With experts: routing decides sizes anew in each step (two equal runs reserved 26.2 and 29.7 GiB)."""

LOGGED = 0.06
"""In full training where a trainer cuts prompts off before the head, or has a value head: copies of some rows
lie between whole ones."""

IDLE_SCORES = 0.25
"""Of a block of scores, in full training on log probabilities of them, and where a policy's texts were scored
before: what lies idle between gradients. Of 60 runs none took more of it than a sixth beyond its replay."""

IDLE_TABLE = 0.5
"""Of a head's gradient that chunks sum up: a chunk's comes while their sum is there (of ten runs one)."""

SIGHTED = 0.04
"""With images: convolutions, windows and places ask for room of their own before the decoder does."""

SIGHTED_QUANTISED = 0.1
"""With images, a tower quantised beside them: its matrices are unpacked in sizes of their own."""


ALIKE = 0.02
"""By what share scores may pass the gradient of the table, while some rows fewer, which a template decides,
lie in its place: of 20 runs that cut prompts off one was so, and took a block of scores more (played with ten
rows fewer, it is what was measured)."""


FUSED = 0.05
"""Where each weight is stepped amid the backward pass: wide copies of it lie between what layers keep."""

WORKED_ON = 4
"""Matrices in fp32 that a decomposition does not find a place for: what lies between its blocks is not known
(of ten runs two reserved so much more)."""


class Bound(NamedTuple):
    """At most so many bytes are reserved; `idle` ones of them torch gives back when the card is full."""

    reserved: int
    idle: int = 0


def replayed_bound(
    run: TrainingRun, allocated: int, churn: Churn, constants: Constants, enough: float = inf
) -> Bound:
    """Return an upper bound of the reserved bytes of a run whose steps can be replayed.

    What a replay does not know moves single blocks: one more of logits where a trainer has them by several
    names, and what lies in the way of others. Of segments that grow a full card gets back what lies free,
    but for what shares a step with blocks in use. Of 16 runs on an H200 that had 3 % more than they allocate
    four ran out: by this they needed 2.4 to 5 % more than that. Of a bound that passes `enough` only so much
    is found out.
    """
    named = _named(run, churn)
    strewn = _strewn(run) if run.expandable_segments else 0
    between = strewn if run.expandable_segments else max(_between(run, churn), _widest(run, allocated))
    moved = named + between + _worked_on(run)
    grows = run.expandable_segments and run.parallel != "fsdp" and not run.uneven
    seen = (SIGHTED_QUANTISED if run.method == "qlora" else SIGHTED) if run.images else 0
    logged = LOGGED if run.method == "full" and (_cut(run) or run.recipe.loss == "value") else 0
    fused = FUSED if find_optimizer(run.optim).layerwise else 0
    margin = max(ROUTED if run.shape.experts else MARGIN, seen, logged, fused)
    sure = _segments((allocated + (strewn if grows else moved)) * (1 + margin))
    if sure > enough:
        return Bound(sure)
    from envdoctor.memory.sharded_replay import plays

    replays = plays(run, constants.cublas_workspace, bool(constants.loss_upcasts))
    room = enough / (1 + margin)
    spare = int(room) - allocated - strewn if grows and room < inf else -1
    played = replays.highest(room - moved, spare)
    even = max(sure, _segments((max(played, allocated) + moved) * (1 + margin)))
    if grows:
        needed = _segments((allocated + replays.lost + strewn) * (1 + margin))
        return Bound(even, max(0, even - needed))
    if not run.uneven or even > enough:
        return Bound(even)
    from envdoctor.memory.uneven import play_uneven

    least = int(even / (1 + margin)) - moved
    most = enough / (1 + margin) - moved
    orders = play_uneven(run, constants.cublas_workspace, bool(constants.loss_upcasts), least, most)
    reserved, needed = (_segments((size + moved) * (1 + margin)) for size in orders)
    return Bound(reserved, reserved - needed)


def _cut(run: TrainingRun) -> bool:
    """True where prompts are cut off before the head: some rows of all are scored."""
    whole = run.recipe.generates or run.recipe.chunk_tokens or run.recipe.loss in ("score", "value")
    return not whole and run.scored < run.texts * (run.seq - 1)


def _named(run: TrainingRun, churn: Churn) -> int:
    """Bytes of a block of scores, where what lies between those of a step and of the next is not foreseen.

    It is full training's gradients, copies that are shifted or narrowed, and what a policy's writing leaves.
    """
    recipe, s = run.recipe, settings_of(run)
    if run.method == "full" and s.vector > s.weight == s.loaded:
        # places that were narrow before a loader widened what is beside the matrices: of 14 runs one had two
        return 2 * sum(outer_tensors(run.shape)) * s.loaded
    scores, table = 4 * run.scored * run.shape.vocab, s.weight * run.shape.hidden * run.shape.vocab
    if run.method == "full" and _cut(run) and table < scores <= table * (1 + ALIKE):
        return scores
    if recipe.logged == "alike":  # of three runs all, since batches that mix their answers leave other sizes
        return run.scored * run.shape.vocab * 4
    if recipe.loss == "kernel" and recipe.held:  # of eight runs three took narrow logits more
        return run.scored * run.shape.vocab * s.compute
    if recipe.loss == "full" and recipe.held > 1:  # shifted logits are a copy as well
        return churn.logits * (recipe.held - 1)
    if recipe.outer_fp32 and run.method != "full" and not run.expandable_segments:
        # a narrow copy of the head comes and goes in each pass
        return run.shape.vocab * run.shape.hidden * s.compute
    if s.kernels and run.method == "lora" and run.grad_ckpt:
        # of four runs one took a block more while its kernels computed layers anew
        return run.scored * run.shape.vocab * s.compute
    if run.method != "full" and not (recipe.generates and recipe.reference):  # texts were scored before
        return 0
    if recipe.loss == "checkpointed":
        return int(churn.table * IDLE_TABLE)
    compares = recipe.loss in ("logprobs", "softmax") and recipe.reference and not recipe.nll
    scores = compares or recipe.generates or run.task == "orpo"
    return int(max(churn.scores, churn.logits if recipe.generates else 0) * IDLE_SCORES) if scores else 0


def _between(run: TrainingRun, churn: Churn) -> int:
    """Bytes of a block of logits: gradients that stay over more than one micro batch lie between others.

    So do those of one pass between the three that a cap makes, one after the other.
    """
    if run.method != "full":  # whole layers of a frozen model come and go between what stays
        return run.scored * run.shape.vocab * settings_of(run).compute if run.parallel == "fsdp" else 0
    if run.parallel == "fsdp":
        return 0
    capped = run.scored * run.shape.vocab * settings_of(run).compute if run.shape.softcap else 0
    return max(churn.logits if run.grad_ckpt and run.grad_accum > 2 else 0, capped)


def _widest(run: TrainingRun, allocated: int) -> int:
    """Bytes of a layer's widest block where the margin does not cover it: one may find its place taken.

    Of five runs of long rows on few layers (24k and 32k tokens, Liger's loss) two reserved so much more.
    """
    s = settings_of(run)
    widest = s.tokens * run.shape.ffn // s.tp * s.compute
    return widest if widest > MARGIN * allocated and not run.shape.experts else 0


def _worked_on(run: TrainingRun) -> int:
    """Bytes of matrices in fp32 that a step in Python does not find a place for: the largest that it
    decomposes; and one wherever gradients lie in the segments of the step before, since DDP has split its
    bucket (traced: a table's lay in that of its own copy)."""
    optimizer = find_optimizer(run.optim)
    if optimizer.matrices == "projected":
        return (
            WORKED_ON * 4 * max(linear.weight for layer, _ in layers(run.shape) for linear in layer.linears)
        )
    if run.parallel == "ddp" and optimizer.kept == "factored" and run.method == "full":
        return 4 * max(n for n, _ in trained_tensors(run.shape, settings_of(run)))
    return 0


def _strewn(run: TrainingRun) -> int:
    """Bytes that one growing segment may not have in one piece.

    Quantising leaves holes of a plain matrix between the weights; a cap gives logits three names in turn.
    """
    s, holes = settings_of(run), 0
    if run.method == "qlora":
        holes = (
            2 * s.compute * max(linear.weight for layer, _ in layers(run.shape) for linear in layer.linears)
        )
    return holes + (run.scored * run.shape.vocab * s.compute if run.shape.softcap else 0)


def reserved_bound(allocated: int, churn: Churn, parallel: str, constants: Constants) -> int:
    """Return an upper bound of the reserved bytes at an allocated peak, at once.

    Blocks that were split, or freed in other sizes, cannot always serve the next request; how much of each
    part is lost so was measured (rows MEM-RESERVED-*).
    """
    bound = constants.reserved.get(sharding_kind(parallel), UNCALIBRATED)
    slack = (
        bound.logits * churn.logits
        + bound.layer * churn.layer
        + bound.gradients * churn.gradients
        + bound.kept * churn.kept
        + bound.table * churn.table
        + bound.buffers * churn.buffers
        + bound.scores * churn.scores
        + bound.stacks * churn.stacks
        + bound.allocated * allocated
    )
    return _segments((allocated + slack) * (1 + bound.margin))


def _segments(size: float) -> int:
    return -(-int(size) // SEGMENT) * SEGMENT
