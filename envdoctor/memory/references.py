"""What stands beside the policy: a reference model, and the texts that the policy writes."""

from __future__ import annotations

from envdoctor.memory.activations import LayerKind, layer_cost, layer_kinds
from envdoctor.memory.layout import tensors
from envdoctor.memory.loss import LossCost, loss_cost
from envdoctor.memory.optimizer import find_optimizer, state_bytes
from envdoctor.memory.run import TrainingRun
from envdoctor.memory.settings import Settings, settings_of
from envdoctor.memory.sharding import Plan
from envdoctor.memory.tape import rounded
from envdoctor.memory.weights import weight_bytes
from envdoctor.values import NamedTuple, replace


def reference_bytes(run: TrainingRun, plan: Plan) -> int:
    """Bytes of a teacher, or of a reference model: the frozen start of full training; adapters are switched
    off instead."""
    if run.teacher:
        return weight_bytes(run.teacher, reference_settings(run, settings_of(run)), False)
    if not run.recipe.reference or not run.trains.layers:
        return 0
    if not run.recipe.reference_fp32:
        return plan.frozen
    s = settings_of(run)
    if s.vector == s.weight:
        return plan.frozen * 4 // run.weight_bytes
    wide = weight_bytes(run.shape, s._replace(weight=4, vector=4), False)  # some are so already
    return plan.frozen * wide // weight_bytes(run.shape, s, False)


class Judges(NamedTuple):
    """Bytes of a reward and a value model: what lies there, and the latter's gradients and states."""

    weights: int = 0
    gradients: int = 0
    states: int = 0


def judges_of(run: TrainingRun, s: Settings) -> Judges:
    """Return what a judged step holds: both taken to be as large as the policy, with a score for a head."""
    if not run.recipe.judged:
        return Judges()
    scored = replace(run.shape, classes=1, tied=False)
    plain = s._replace(weight=s.loaded, vector=s.loaded, quant="", rank=0)
    weights = weight_bytes(scored, plain, False)
    states = state_bytes(find_optimizer(run.optim), tensors(scored), s.loaded)
    return Judges(2 * weights, weights, states)


def reference_settings(run: TrainingRun, s: Settings) -> Settings:
    """The settings of the reference model's forward pass: nothing is trained, no adapter is on.

    A teacher lies there in 16 bits.
    """
    plain = s._replace(
        rank=0, trains=False, outer=False, active=0, copies_table=False, copies_head=False, scaled=(), fed=(),
        prefix=0,
    )  # fmt: skip
    if run.teacher:
        return plain._replace(weight=2, vector=2, stream=2, loaded=2, quant="", stacked=False)
    if s.trains and run.recipe.reference_fp32:
        plain = plain._replace(weight=4, vector=4, stream=4, unfrozen=s.autocast)
    return plain


def beside_reference(
    run: TrainingRun, s: Settings, kinds: tuple[LayerKind, ...], loss: LossCost, idle: int
) -> int:
    """Height of the reference model's forward pass, beside the `idle` bytes of the policy and its graph."""
    plain, shape = reference_settings(run, s), run.teacher or run.shape
    stream = rounded(s.tokens * shape.hidden * plain.stream)
    kinds = layer_kinds(shape) if run.teacher else kinds
    costs = [layer_cost(shape, plain, True, k.moe, k.windowed, False) for k in kinds]
    cached = sum(k.number * cost.cached for k, cost in zip(kinds, costs, strict=True))
    height = stream + cached + max(cost.forward - cost.cached for cost in costs)
    if run.teacher:
        return idle + height
    if cached:  # all copies are there until the head's product is, and what is made of it
        logits = rounded(s.tokens * shape.vocab // s.tp * s.compute)
        logits *= 2 if shape.scaled_logits or shape.softcap else 1
        copy = rounded(shape.vocab // s.tp * shape.hidden * s.compute)
        aside = (run.recipe.aside + run.recipe.held) * _scores_of(run)
        height = aside + max(height, stream + cached + copy + logits)
    return idle + max(height, loss_cost(shape, plain, False, True, run.recipe, run.scored).reference)


def _scores_of(run: TrainingRun) -> int:
    """Bytes of the logits that are scored, in fp32."""
    return rounded(run.scored * (run.shape.vocab // run.tp) * 4)


def earlier_scores(run: TrainingRun) -> tuple[int, ...]:
    """Bytes of a micro batch's logits, and of their quotient, that Python still names while the next one's
    texts go through the model: a step's texts are written at once, and scored one micro batch after another
    before the training pass.
    https://github.com/huggingface/trl/blob/v1.11.0/trl/trainer/rloo_trainer.py
    """
    recipe = run.recipe
    if not (recipe.generates and recipe.reference == "before" and recipe.loss in ("logprobs", "kernel")):
        return ()
    if run.grad_accum == 1:
        return ()
    divided = recipe.temperature and not recipe.divides_view
    return (_scores(run, 4 if run.autocast else run.weight_bytes),) * (1 + divided)


def scoring_bytes(run: TrainingRun) -> int:
    """Height of the passes that score a step's texts before it is trained on them, where several do."""
    earlier = earlier_scores(run)
    widened = _scores(run, 4) if run.autocast else 0
    return sum(earlier) + _scores(run, run.compute_bytes) + widened if earlier else 0


def _scores(run: TrainingRun, width: int) -> int:
    """Bytes of the logits of a micro batch's answers, with the one before them."""
    return rounded(run.texts * (run.completion + 1) * (run.shape.vocab // run.tp) * width)


def generation_bytes(run: TrainingRun) -> int:
    """Bytes that transformers' `generate` takes for the texts of one optimizer step.

    Keys and values of every text grow by a copy of one layer's; the last token's logits are sampled in fp32.
    Before that all prompts go through the layers at once, beside keys and values of their own length.
    """
    from envdoctor.memory.serving import key_bytes_per_token

    texts = run.texts * run.grad_accum
    keys = rounded(texts * run.seq * key_bytes_per_token(run.shape, run.weight_bytes, run.tp, run.pp))
    s = writing_settings(run, settings_of(run))
    stream = rounded(s.tokens * run.shape.hidden * s.stream)
    costs = [layer_cost(run.shape, s, True, k.moe, k.windowed, False) for k in layer_kinds(run.shape)]
    first = keys * s.seq // run.seq + stream + max(cost.forward for cost in costs)
    return max(first, keys + 2 * keys // run.shape.layers + 5 * rounded(4 * texts * run.shape.vocab))


def writing_settings(run: TrainingRun, s: Settings) -> Settings:
    """The settings of the pass in which all prompts of a step go through the model to be answered.

    peft's `generate` asks the model inside, past the forward that accelerate has wrapped: no autocast is
    there, and what adapters in fp32 are given and give is fp32.
    https://github.com/huggingface/peft/blob/v0.21.2/src/peft/peft_model.py
    """
    wrapped = s.autocast and not run.adapts
    return reference_settings(run, s)._replace(
        batch=run.texts * run.grad_accum, seq=max(1, run.seq - run.completion), rank=s.rank, autocast=wrapped
    )
