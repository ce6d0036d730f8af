"""Losses that trainers compute themselves: from tiles or chunks of the logits, or from log probabilities."""

from __future__ import annotations

from envdoctor.memory.layout import Linear
from envdoctor.memory.linears import linear
from envdoctor.memory.norms import norm
from envdoctor.memory.recipes import Recipe
from envdoctor.memory.settings import Settings
from envdoctor.memory.shape import ModelShape
from envdoctor.memory.tape import Tape, Tensor, rounded

ENTROPY_ROWS = 128
"""Rows of logits whose entropy TRL computes at once (entropy_from_logits)."""


def head_of(shape: ModelShape, s: Settings) -> Linear:
    """The head's matrix as one tensor-parallel rank holds it."""
    return Linear("head", shape.hidden, shape.vocab // s.tp, shape.head_bias)


def normed(tape: Tape, s: Settings, shape: ModelShape) -> Tensor:
    """The last layer's output, which only its norm holds on to, after that norm."""
    x = tape.new(s.tokens * shape.hidden, s.stream, needs=True)
    hidden = norm(tape, s, x, shape.norm, shape.hidden)
    tape.drop(x)
    return hidden


def changed(tape: Tape, shape: ModelShape, logits: Tensor) -> Tensor:
    """What the model makes of its head's result: scaled, or capped; takes over the hold on `logits`."""
    saves = (False,) * shape.scaled_logits + ((False, True, False) if shape.softcap else ())
    for saved in saves:
        result = tape.op(logits.numel, logits.width, (logits,))
        if saved:
            tape.save_result(result)
        tape.drop(logits)
        logits = result
    return logits


def labelled(tape: Tape, shape: ModelShape, hidden: Tensor, scored: int) -> Tensor:
    """The rows that have a label, gathered by index; takes over the hold on `hidden`."""
    positions = tape.new(2 * scored, 8)
    picked = tape.op(scored * shape.hidden, hidden.width, (hidden,), (positions,))
    tape.drop(hidden, positions)
    return picked


def tiled(tape: Tape, s: Settings, shape: ModelShape, recipe: Recipe, scored: int) -> Tensor:
    """TRL's ChunkedLogProbFunction: tiles of logits, gradients of rows and head summed in fp32."""
    picked = labelled(tape, shape, normed(tape, s, shape), scored)
    compute = s.compute if s.autocast else picked.width
    head, width = head_of(shape, s), s.vector
    rows, columns = min(scored, recipe.chunk_tokens), min(recipe.chunk_columns, head.outputs)
    tile = [rows * recipe.chunk_columns * compute]
    tile += [columns * shape.hidden * compute] if width != compute else []
    tile += [rows * shape.hidden * compute] if picked.width != compute else []
    sums = tape.new(2 * scored, 4)
    tape.touch(*tile, *(7 * (4 * scored,)))
    trained = head.weight * width if s.trains_head else 0
    summed = [4 * picked.numel] if picked.width != 4 else []
    summed += [4 * head.weight] if trained and width != 4 else []
    out = tape.op(scored, 4, (picked,), (picked, sums), (*summed, *tile), trained)
    tape.drop(picked, sums)
    return out


def checkpointed(tape: Tape, s: Settings, shape: ModelShape, recipe: Recipe, scored: int) -> Tensor:
    """TRL's chunks of 256 tokens, each under a checkpoint; early releases copy the whole head for each."""
    picked = labelled(tape, shape, normed(tape, s, shape), scored)
    head, width = head_of(shape, s), s.vector
    low, full = (rounded(recipe.chunk_tokens * head.outputs * b) for b in (s.compute, 4))
    copy = rounded(head.weight * s.compute) if s.autocast else 0
    copies = copy + (rounded(4 * head.weight) if width != 4 else 0) if recipe.head_fp32 else 0
    kept = copy if recipe.head_fp32 else 0
    logits = low if recipe.head_fp32 else full  # whether the chunk's logits were widened before the softmax
    tape.touch(max(copies + low, logits + 3 * full))
    trained = head.weight * width if s.trains_head else 0
    summed = rounded(trained)  # of the chunks before
    widened = 3 * full + kept
    turned = (copy + rounded(4 * head.weight) + summed) if recipe.head_fp32 else 2 * summed
    scratch = max(copies + low + summed, widened + logits + summed, turned if trained else 0)
    out = tape.op(1, 4, (picked,), (picked,), max(0, scratch - picked.size - rounded(trained)), trained)
    tape.drop(picked)
    return out


def logprobs(tape: Tape, s: Settings, shape: ModelShape, recipe: Recipe, scored: int) -> Tensor:
    """Log probabilities of labels from all logits in fp32: gathered, less a log-sum-exp of each text.

    A text has one row of logits more than are scored: its last, which is cut off by a view. A cross entropy
    of the chosen texts, where there is one, comes first.
    """
    hidden = normed(tape, s, shape)
    whole = min(s.tokens, scored + s.batch)
    rows = Tensor(whole * shape.hidden, hidden.width, hidden.needs)  # a view
    rows.size = 0
    tape.record(rows, (hidden,), (hidden,))
    tape.drop(hidden)
    logits = changed(tape, shape, linear(tape, s, rows, head_of(shape, s), outer=True))
    full = tape.op(logits.numel, 4, (logits,)) if logits.width != 4 else logits
    if full is not logits:
        tape.drop(logits)
    numel = scored * (shape.vocab // s.tp)
    entropy = _cross_entropy(tape, full, numel, s.batch // 2) if recipe.nll else tape.new(0, 4)
    seen = _view(tape, full, numel)
    if recipe.generates:  # the answers of it are a view of the view
        seen = _view(tape, seen, numel)
    if recipe.loss == "softmax":
        seen = full = _log_softmax(tape, seen, full)
    elif recipe.held:  # a copy of the view, which is what is saved
        copy = tape.op(seen.numel, 4, (seen,))
        tape.drop(full)
        seen = full = copy
    if recipe.temperature:
        seen, full = _divided(tape, seen, full, recipe.divides_view)
    if recipe.loss == "logprobs":
        out = _by_text(tape, seen, full, scored, s.batch)
        if recipe.generates and tape.keep:  # a part of a tensor lies in one piece once it is copied
            _entropy(tape, numel if recipe.divides_view else 0, shape.vocab // s.tp)
    else:
        out = tape.op(scored, 4, (seen,), (full,))
    tape.drop(full)
    total = tape.op(1, 4, (out, entropy))
    tape.drop(out, entropy)
    return total


def _entropy(tape: Tape, copied: int, vocab: int) -> None:
    """TRL's entropy_from_logits, without a graph: of some rows at once, of a copy where there must be one."""
    flat = tape.new(copied, 4)
    tape.touch(*(4 * ENTROPY_ROWS * vocab,) * 3)
    tape.drop(flat)


def _by_text(tape: Tape, seen: Tensor, full: Tensor, scored: int, texts: int) -> Tensor:
    """TRL's selective_log_softmax: labels gathered from all logits, log-sum-exps of one text at a time.

    On the way back each text has a difference, its exponential and its gradient, of which the last stays
    until all are stacked.
    """
    picked = tape.op(scored, 4, (seen,), (full,))
    sums = []
    for text in tape.parts(seen, texts):
        tape.touch(text.requested)
        sums.append(tape.op(scored // texts, 4, (text,), (full,), (text.requested, text.requested)))
    out = tape.op(scored, 4, (picked, *sums))
    tape.drop(picked, *sums)
    return out


def _log_softmax(tape: Tape, seen: Tensor, full: Tensor) -> Tensor:
    """Of a view, which is copied to lie in one piece; takes over the hold on `full`."""
    whole = tape.new(seen.numel, 4)
    soft = tape.op(seen.numel, 4, (seen,))
    tape.save_result(soft)
    tape.drop(whole, full)
    return soft


def _view(tape: Tape, whole: Tensor, numel: int) -> Tensor:
    """A view of part of a tensor; its gradient is filled up with zeros."""
    view = Tensor(numel, whole.width, whole.needs)
    view.size = 0
    tape.record(view, (whole,))
    return view


def _divided(tape: Tape, shifted: Tensor, logits: Tensor, in_place: bool) -> tuple[Tensor, Tensor]:
    """A view of logits divided by the temperature, and what holds it; takes over the hold on `logits`.

    Done in place on a view, autograd's CopySlices clones the whole gradient twice on its way back.
    """
    if not in_place:
        scaled = tape.op(shifted.numel, 4, (shifted,))
        tape.drop(logits)
        return scaled, scaled
    whole = Tensor(logits.numel, 4, logits.needs)
    whole.size = 0
    tape.record(whole, (logits,), (), (shifted.requested, shifted.requested))
    return _view(tape, whole, shifted.numel), logits


def _cross_entropy(tape: Tape, logits: Tensor, numel: int, texts: int) -> Tensor:
    """Of the chosen half of the texts less their last rows: its log-softmax, which is saved, of a copy where
    rows of several texts lie apart."""
    chosen = _view(tape, _view(tape, logits, logits.numel // 2), numel // 2)
    copy = tape.op(chosen.numel, 4, (chosen,), through=True) if texts > 1 else chosen
    picked = tape.op(chosen.numel, 4, (copy,))
    tape.save_result(picked)
    tape.drop(copy)
    out = tape.op(1, 4, (picked,))
    tape.drop(picked)
    return out


def divergence(tape: Tape, s: Settings, shape: ModelShape, recipe: Recipe, scored: int) -> Tensor:
    """TRL's generalized Jensen-Shannon divergence from a teacher, over all logits of both in fp32.

    The outputs of both models are held until it is done, and so is each of its own names.
    wheel:trl-1.16.0:trl/experimental/gkd/gkd_trainer.py
    """
    hidden = normed(tape, s, shape)
    low = linear(tape, s, hidden, head_of(shape, s), outer=True)
    tape.drop(hidden)
    low = changed(tape, shape, low)
    logits = tape.op(low.numel, 4, (low,)) if low.width != 4 else low
    if logits is not low:
        tape.drop(low)
    teacher = tape.new(logits.numel, 4)
    n = s.batch * max(1, s.seq - 1) * (shape.vocab // s.tp)
    own = tape.op(n, 4, (_view(tape, logits, n),))
    told = tape.new(n, 4)
    own_log = tape.op(n, 4, (own,))
    tape.save_result(own_log)
    told_log = tape.new(n, 4)
    raised, beside = tape.op(n, 4, (own_log,), through=True), tape.new(n, 4)
    both = tape.op(2 * n, 4, (raised,))
    tape.drop(raised, beside)
    tape.touch(4 * n, 8 * n)
    mixed = tape.op(n, 4, (both,), (both,), (8 * n, 8 * n))
    tape.save_result(mixed)
    tape.drop(both)
    from_teacher = _from_target(tape, mixed, None)
    from_own = _from_target(tape, mixed, own_log)
    shares = tape.op(n, 4, (from_teacher,)), tape.op(n, 4, (from_own,))
    whole = tape.op(n, 4, shares, through=True)
    tape.drop(*shares)
    picked = tape.op(n, 4, (whole,))
    tape.drop(whole)
    out = tape.op(1, 4, (picked,))
    tape.drop(picked, from_teacher, from_own, mixed, told_log, own_log, told, own, teacher, logits)
    return out


def _from_target(tape: Tape, given: Tensor, target: Tensor | None) -> Tensor:
    """`exp(target) * (target - given)`; without a target, of one that needs no gradient."""
    raised = tape.op(given.numel, 4, (target,)) if target else tape.new(given.numel, 4)
    if target:
        tape.save_result(raised)
    away = tape.op(given.numel, 4, (target, given) if target else (given,))
    factors = (raised, away) if target else (raised,)
    out = tape.op(given.numel, 4, (raised, away) if target else (away,), factors)
    tape.drop(raised, away)
    return out


def value(tape: Tape, s: Settings, shape: ModelShape) -> Tensor:
    """A head of one output in fp32 beside the vocabulary's, whose own loss nobody asks for: TRL's value head.

    What a cross entropy saves of the logits is there while the wrapper widens them once more.
    """
    hidden = normed(tape, s, shape)
    head = head_of(shape, s)
    copied = head.weight * s.compute if s.autocast and s.vector != s.compute else 0
    rows = s.tokens * head.outputs
    tape.touch(copied, rows * s.compute, rows * 4, rows * 4 if s.compute != 4 else 0)
    mask = tape.new(hidden.numel, 1)
    kept = tape.op(hidden.numel, hidden.width, (hidden,), (mask,))
    tape.drop(hidden, mask)
    for width in (4, s.compute):
        if kept.width != width:
            cast = tape.op(kept.numel, width, (kept,))
            tape.drop(kept)
            kept = cast
    out = tape.op(s.tokens, s.compute, (kept,), (kept,), parameter=4 * shape.hidden)
    tape.drop(kept)
    return out


def score(tape: Tape, s: Settings, shape: ModelShape) -> Tensor:
    """A head of one output on every token, always trained."""
    hidden = normed(tape, s, shape)
    out = tape.op(s.tokens, s.compute, (hidden,), (hidden,), parameter=shape.hidden * s.vector)
    tape.drop(hidden)
    return out
