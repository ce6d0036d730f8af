"""Final norm, head and loss: the logits in every form they take, plain or with Liger's fused loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from envdoctor.memory.linears import linear
from envdoctor.memory.recipes import PLAIN, Recipe
from envdoctor.memory.scoring import (
    ENTROPY_ROWS,
    changed,
    checkpointed,
    divergence,
    head_of,
    logprobs,
    normed,
    score,
    tiled,
    value,
)
from envdoctor.memory.settings import Settings
from envdoctor.memory.shape import ModelShape
from envdoctor.memory.tape import Tape, Tensor, rounded
from envdoctor.values import NamedTuple


class LossCost(NamedTuple):
    """Bytes that head and loss keep, their heights in both directions, and the head's gradient.

    `scores` are all logits in fp32 where log probabilities are taken of them.
    `reference` is the height of the reference model's turn above what the policy's leaves.
    """

    kept: int
    forward: int
    backward: int
    grads: int
    logits: int
    reference: int = 0
    scores: int = 0


@lru_cache(maxsize=4096)
def loss_cost(
    shape: ModelShape,
    s: Settings,
    accumulating: bool,
    upcast: bool = True,
    recipe: Recipe = PLAIN,
    scored: int = 0,
) -> LossCost:
    """Return the cost of everything after the last layer; `scored` tokens of them have a label."""
    cost = _own(shape, s, accumulating, recipe, scored or s.tokens)
    if cost is None:
        cost = _liger(shape, s, accumulating) if s.liger else _full(shape, s, accumulating, upcast, scored)
    beside = recipe.aside + recipe.held
    asked = recipe.aside_reference + recipe.held_reference
    if not (beside or asked or recipe.logged):
        return cost
    size = rounded((scored or s.tokens) * shape.vocab // s.tp * 4)
    held = size * (beside + asked)
    entropies = 3 * rounded(4 * ENTROPY_ROWS * shape.vocab // s.tp)
    sizes = {
        "logits": size,
        "entropy": size + entropies,
        "answers": _answers(size, s),
        "desired": _desired(size),
        "alike": size // 2,
    }
    logged = sizes.get(recipe.logged, 0)
    forward = max(cost.forward, cost.kept + held + logged)
    return cost._replace(forward=forward, reference=cost.reference + size * beside)


ALL_LOGITS = ("logprobs", "softmax", "kernel")
"""Losses that take log probabilities of all logits."""
_SCORES = {"score": score, "value": value}
_OWN = {
    "tiled": tiled,
    "checkpointed": checkpointed,
    "logprobs": logprobs,
    "softmax": logprobs,
    "kernel": logprobs,
    "divergence": divergence,
}


def _own(shape: ModelShape, s: Settings, accumulating: bool, recipe: Recipe, scored: int) -> LossCost | None:
    """The cost of a loss that the trainer computes itself; None for the model's own."""
    if scores := _SCORES.get(recipe.loss):
        return _replayed(shape, s, accumulating, lambda tape: scores(tape, s, shape), 0)
    compute = _OWN.get(recipe.loss)
    if compute is None:
        return None
    whole = recipe.loss in (*ALL_LOGITS, "divergence")
    rows = scored if whole else min(scored, recipe.chunk_tokens)
    size = rounded(rows * (recipe.chunk_columns or shape.vocab // s.tp) * 4)
    cost = _replayed(shape, s, accumulating, lambda tape: compute(tape, s, shape, recipe, scored), 3 * size)
    return cost._replace(scores=size) if whole else cost


def _replayed(
    shape: ModelShape, s: Settings, accumulating: bool, compute: Callable[[Tape], Tensor], logits: int
) -> LossCost:
    start = rounded(s.tokens * shape.hidden * s.stream)
    tape = Tape(accumulating=accumulating)
    out = compute(tape)
    forward, kept = tape.peak - start, tape.live - start
    before = tape.live
    tape.peak = 0
    tape.drop(out)
    tape.backward(out)
    quiet = Tape(keep=False)
    compute(quiet)
    return LossCost(kept, forward, tape.peak - before, tape.grads, logits, quiet.peak)


def _full(shape: ModelShape, s: Settings, accumulating: bool, upcast: bool, scored: int) -> LossCost:
    start = rounded(s.tokens * shape.hidden * s.stream)
    tape = Tape(accumulating=accumulating)
    loss = full_loss(tape, s, shape, upcast, scored)
    forward, kept = tape.peak - start, tape.live - start
    before = tape.live
    tape.peak = 0
    tape.drop(loss)
    tape.backward(loss)
    size = rounded(min(scored or s.tokens, s.tokens) * shape.vocab // s.tp * 4)
    return LossCost(kept, forward, tape.peak - before, tape.grads, 3 * size)


def full_loss(tape: Tape, s: Settings, shape: ModelShape, upcast: bool, scored: int = 0) -> Tensor:
    """The model's own loss over all logits, or over those of as many tokens as are `scored`."""
    hidden = normed(tape, s, shape)
    if 0 < scored < s.tokens:
        answers = tape.op(scored * shape.hidden, hidden.width, (hidden,))
        tape.drop(hidden)
        hidden = answers
    logits = linear(tape, s, hidden, head_of(shape, s), outer=True)
    tape.drop(hidden)
    logits = changed(tape, shape, logits)
    full = tape.op(logits.numel, 4, (logits,)) if upcast and logits.width != 4 else logits
    if full is logits:
        logits.refs += 1
    picked = tape.op(logits.numel, 4, (full,))
    tape.save_result(picked)
    tape.drop(full)
    loss = tape.op(1, 4, (picked,))
    tape.drop(picked)
    handed = tape.new(logits.numel if s.autocast else 0, 4)  # accelerate hands the outputs back in fp32
    tape.drop(logits, handed)
    return loss


def compute_loss(
    tape: Tape, shape: ModelShape, s: Settings, upcast: bool, recipe: Recipe, scored: int
) -> Tensor:
    """Run everything after the last layer on the tape."""
    if scores := _SCORES.get(recipe.loss):
        return scores(tape, s, shape)
    if recipe.loss in _OWN:
        return _OWN[recipe.loss](tape, s, shape, recipe, scored or s.tokens)
    return fused_loss(tape, s, shape) if s.liger else full_loss(tape, s, shape, upcast, scored)


def hold(tape: Tape, shape: ModelShape, s: Settings, recipe: Recipe, scored: int) -> tuple[Tensor, ...]:
    """What a trainer keeps of the policy's logits until the loss is done."""
    return _copies(tape, shape, s, scored, recipe.held, recipe.aside)


def tell(tape: Tape, shape: ModelShape, s: Settings, recipe: Recipe, scored: int) -> None:
    """Run what a trainer logs, beside what it still has of the reference's logits."""
    kept = _copies(tape, shape, s, scored, recipe.held_reference, recipe.aside_reference)
    size = (scored or s.tokens) * shape.vocab // s.tp * 4
    entropy = (4 * ENTROPY_ROWS * shape.vocab // s.tp,) * 3
    shifted = s.batch * (s.seq - 1) * shape.vocab // s.tp * 4
    logged = {"": (), "logits": (shifted,), "entropy": (shifted, *entropy)}
    logged |= {"answers": (_answers(size, s),), "desired": (_desired(size),), "alike": (size // 2,)}
    if recipe.logged == "logits":
        tape.touch(*entropy)
    tape.touch(*logged[recipe.logged])
    tape.drop(*kept)


def _copies(
    tape: Tape, shape: ModelShape, s: Settings, scored: int, whole: int, parted: int
) -> tuple[Tensor, ...]:
    """Copies of all logits, and such that lie in two parts."""
    size = (scored or s.tokens) * shape.vocab // s.tp
    return tuple(tape.new(n, 4) for n in (size,) * whole + (size // 2,) * (2 * parted))


def _answers(size: int, s: Settings) -> int:
    """Bytes of the chosen answers' logits, or of one text's while its log-sum-exp is taken."""
    return size // min(4, s.batch)


def _desired(size: int) -> int:
    """Bytes of the desired answers' logits where a batch draws them by lot: half of three texts in four."""
    return size * 3 // 8


def views_head(loss: str, s: Settings) -> bool:
    """True where the gradient of the head is a view of a product's result, which cannot be added in place.

    Autocast's cast of it is a tensor of its own, as are those that a trainer or Liger sums itself.
    """
    return loss in ("full", "divergence", *ALL_LOGITS) and not s.liger and s.vector == s.compute


def fused_loss(tape: Tape, s: Settings, shape: ModelShape) -> Tensor:
    """Liger's fused loss, which computes the gradients of rows and head in its forward pass."""
    hidden = normed(tape, s, shape)
    if hidden.width != s.compute:
        low = tape.op(hidden.numel, s.compute, (hidden,))
        tape.drop(hidden)
        hidden = low
    head = head_of(shape, s)
    rows = tape.new(hidden.numel, s.compute)
    weight = tape.new(head.weight if s.trains_head and tape.accumulating else 0, s.vector)
    if s.trains_head and not tape.accumulating:
        tape.weight_gradient(head.weight * s.vector)
    copy = tape.new(head.weight if s.autocast and s.vector != s.compute else 0, s.compute)
    tape.touch(liger_rows(s, shape) * head.outputs * s.compute)
    tape.drop(copy)
    out = tape.op(1, 4, (hidden,), (rows, weight))
    tape.drop(hidden, rows, weight)
    return out


def liger_rows(s: Settings, shape: ModelShape) -> int:
    """Rows of logits that Liger's fused loss computes at once."""
    parts = -(-(shape.vocab // s.tp) // shape.hidden)
    return min(s.tokens, 1 << max(0, (-(-s.tokens // parts) - 1).bit_length()))


def _liger(shape: ModelShape, s: Settings, accumulating: bool) -> LossCost:
    """Liger computes the loss in chunks and the gradients already in the forward pass."""
    vocab, hidden, tokens = shape.vocab // s.tp, shape.hidden, s.tokens
    chunk = liger_rows(s, shape)
    weight = rounded(vocab * hidden * s.vector) if s.trains_head else 0
    stream = rounded(tokens * hidden * s.stream)
    kept = (
        rounded(tokens * hidden * s.compute) + weight + stream
    )  # input gradient, weight's, the norm's input
    logits = rounded(chunk * vocab * s.compute)
    if s.autocast and s.vector != s.compute:  # the head's cast copy, and the chunk's gradients in fp32
        logits += rounded(vocab * hidden * s.compute)
    return LossCost(kept, kept + stream + logits, 2 * stream, weight, logits)
