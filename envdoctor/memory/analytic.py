"""The analytic prediction: the phases of a step, the highest of them, and its parts."""

from __future__ import annotations

from math import inf

from envdoctor.memory.activations import LayerCost, LayerKind, cost_of, kinds_of
from envdoctor.memory.adapters import adapts_experts
from envdoctor.memory.allocator import Bound, Churn, replayed_bound, reserved_bound
from envdoctor.memory.attention import masks
from envdoctor.memory.constants import Constants
from envdoctor.memory.images import ImageCost, image_cost
from envdoctor.memory.layout import outer_tensors
from envdoctor.memory.loss import LossCost, loss_cost, views_head
from envdoctor.memory.optimizer import find_optimizer
from envdoctor.memory.references import (
    Judges,
    beside_reference,
    generation_bytes,
    judges_of,
    reference_bytes,
    scoring_bytes,
)
from envdoctor.memory.replay import STASHED, can_replay
from envdoctor.memory.run import SPLITS, Component, Prediction, ServingRun, TrainingRun
from envdoctor.memory.settings import Settings, settings_of
from envdoctor.memory.shape import ModelShape
from envdoctor.memory.sharding import Plan, plan_of
from envdoctor.memory.tape import rounded
from envdoctor.values import NamedTuple, replace

DEFAULT = Constants()


def predict(
    run: TrainingRun | ServingRun, constants: Constants = DEFAULT, close: bool = True, enough: float = inf
) -> Prediction:
    """Return the predicted peak of a run on rank 0; without `close` its bound is rough, and had at once.

    Of a close bound that passes `enough` bytes of the card only so much is found out.
    """
    if isinstance(run, ServingRun):
        from envdoctor.memory.verdicts import predict_serving

        return predict_serving(run, constants)
    unmeasured = _unmeasured(run)
    run = _viewed(apart(_sharded(run, constants)))
    settings = settings_of(run)
    plan = plan_of(run, settings)
    kinds = kinds_of(run)
    accumulating = run.grad_accum > 1 or plan.fused > 0
    costs = [cost_of(run.shape, settings, run.grad_ckpt, k, accumulating) for k in kinds]
    alone = accumulating and not (
        plan.fused and run.shape.tied
    )  # a tied head's gradient waits for the table's
    loss = loss_cost(run.shape, settings.beside, alone, bool(constants.loss_upcasts), run.recipe, run.scored)
    costs = [cost._replace(**_again(cost, run.turns)) for cost in costs]
    loss = loss._replace(**_again(loss, run.turns))
    fixed = _fixed(run.shape, settings, constants)
    images = image_cost(run)
    kept = sum(k.number * c.kept for k, c in zip(kinds, costs, strict=True))
    if run.offload_activations:
        kept = min(kept, STASHED * max(cost.kept for cost in costs))
    step = _heights(
        run.shape, settings, plan, kinds, costs, kept, loss, fixed, accumulating, _tables(run, settings),
        images,
    )  # fmt: skip
    if run.turns > 1:  # the gradients of the pass that came last are there while the others go back
        again = [cost_of(run.shape, settings, run.grad_ckpt, k, True) for k in kinds]
        back = fixed + step.kept // run.turns + plan.gradients + max(cost.backward for cost in again)
        if back > step.backward:
            living = Living(step.kept // run.turns, 0, plan.gradients)
            step = step._replace(backward=back, living=living)
    if run.recipe.loss == "tiled":  # tiles are scratch of one size that leaves nothing carved up
        step = step._replace(churn=step.churn._replace(logits=0))
    if run.recipe.reference == "beside":
        step = step._replace(loss=max(step.loss, beside_reference(run, settings, kinds, loss, step.idle)))
    if run.parallel == "zero3" and run.recipe.loss == "tiled" and not run.shape.tied:
        whole = step.idle + _beside_live(run, settings, plan)
        if whole > step.backward:
            step = step._replace(backward=whole, living=Living(step.kept, 0, 0))
    judges = judges_of(run, settings)
    if run.recipe.judged:  # the value model's graph lies beside the policy's
        step = step._replace(
            loss=step.loss + step.kept,
            backward=step.backward + step.kept + judges.gradients,
            living=step.living._replace(kept=step.living.kept + step.kept),
            optimizer=step.optimizer + judges.gradients,
        )
    found = _assemble(run, plan, step, judges, constants, close and can_replay(run), enough)
    if not unmeasured:
        return found
    return replace(found, uncertain="; ".join(filter(None, (found.uncertain, unmeasured))))


def lasting_bytes(run: TrainingRun, constants: Constants) -> int:
    """Return what surely lies on a card through every step: so much is known before any layer is."""
    plan = plan_of(apart(_sharded(run, constants)))
    return plan.weights + plan.adapters + plan.optimizer + plan.buffers


def _sharded(run: TrainingRun, constants: Constants) -> TrainingRun:
    """Return the run as what shards it goes about it: FSDP by its release; DeepSpeed's engine casts a
    reference model, however it was loaded, to the 16 bits of its configuration.

    https://github.com/huggingface/trl/blob/v1.14.2/trl/models/utils.py
    """
    if run.parallel.startswith("zero") and run.recipe.reference_fp32:
        return replace(run, recipe=replace(run.recipe, reference_fp32=False))
    if run.parallel != "fsdp":
        return run
    meta = run.meta_load and not (constants.fsdp_version > 1 and run.method == "qlora")
    return replace(run, fsdp_version=constants.fsdp_version, meta_load=meta)


def apart(run: TrainingRun) -> TrainingRun:
    """Return the run of a card that holds its share of each layer's experts, and their share of the rows."""
    experts = run.shape.experts
    if run.ep == 1 or experts is None:
        return run
    own = replace(experts, count=experts.count // run.ep, active=-(-experts.active // run.ep))
    return replace(run, shape=replace(run.shape, experts=own), ep=1)


def _viewed(run: TrainingRun) -> TrainingRun:
    """Return the run as it goes about logits less their last row: of one text they lie in one piece, so what
    asks for such a copy gets a view."""
    if run.texts > 1 or run.recipe.loss != "full" or run.recipe.held < 2:
        return run
    return replace(run, recipe=replace(run.recipe, held=1))


def _again(cost: LayerCost | LossCost, turns: int) -> dict[str, int]:
    """What passes before the last have kept when it takes place."""
    return {"kept": cost.kept * turns, "forward": cost.forward + cost.kept * (turns - 1)}


def _beside_live(run: TrainingRun, s: Settings, plan: Plan) -> int:
    """Bytes of head and table where a loss reads the head by itself under ZeRO-3: DeepSpeed then takes it for
    one of the whole model's, and as the way back begins both lie there beside the live parameters (traced).

    https://github.com/deepspeedai/DeepSpeed/blob/v0.19.8/deepspeed/runtime/zero/parameter_offload.py
    """
    outer = sum(outer_tensors(run.shape, False)) * s.weight
    return max(0, min(outer, plan.weights * run.replicas - plan.gathered))


def _tables(run: TrainingRun, s: Settings) -> int:
    """Gradients of the embedding's size that meet at a tied table beside the head's own: the embedding's, and
    their sum where autograd cannot add them in place."""
    return 2 if run.shape.tied and s.outer and views_head(run.recipe.loss, s) else 1


def _stacks(shape: ModelShape, s: Settings) -> int:
    """Bytes of one layer's expert stacks, where they or factors on them are trained."""
    if shape.experts is None or not (s.trains or adapts_experts(shape, s)):
        return 0
    return rounded(3 * shape.experts.count * shape.hidden * shape.experts.width * s.compute)


class Living(NamedTuple):
    """What lives at the highest point of the backward pass, by its kinds."""

    kept: int
    logits: int
    gradients: int


class Step(NamedTuple):
    """Heights of a step's phases above the lasting states, and what makes them."""

    forward: int
    loss: int
    backward: int
    optimizer: int
    kept: int
    logits: int
    churn: Churn
    living: Living
    idle: int = 0  # what the policy's forward pass leaves
    fixed: int = 0  # workspaces and the batch


def _fixed(shape: ModelShape, s: Settings, constants: Constants) -> int:
    """Workspaces of both threads, the batch, rotary tables, masks, and the embedded input."""
    tokens = s.tokens
    fixed = 2 * constants.cublas_workspace + 6 * rounded(8 * tokens)
    fixed += 2 * rounded(s.seq * shape.head_dim * s.stream) if shape.rope else 0
    if s.attn == "eager" or shape.alibi:
        fixed += rounded(s.batch * s.seq * s.seq * s.compute)
    fixed += masks(shape, s) * rounded(s.batch * s.seq * s.seq)
    return fixed + rounded(tokens * shape.hidden * s.stream)


def _heights(
    shape: ModelShape,
    s: Settings,
    plan: Plan,
    kinds: tuple[LayerKind, ...],
    costs: list[LayerCost],
    kept: int,
    loss: LossCost,
    fixed: int,
    accumulating: bool,
    tables: int,
    images: ImageCost,
) -> Step:
    pairs = tuple(zip(kinds, costs, strict=True))
    cached = sum(k.number * c.cached for k, c in pairs)
    layer = max(c.backward for c in costs)
    held = plan.between if accumulating else 0
    first = fixed + plan.gathered + held + images.pixels
    base = first + images.kept
    layers = 0 if accumulating else int(plan.share * sum(k.number * c.grads for k, c in pairs))
    own = 0 if accumulating else max(int(plan.share * c.grads) for c in costs)
    head = loss.grads if plan.whole_head else 0 if accumulating else int(plan.share * loss.grads)
    table = rounded(shape.vocab // s.tp * shape.hidden * s.vector) if s.trains_table else 0
    frozen = 0 if s.trains else plan.resharded  # gathered for the head's product alone
    others = layers + head
    ends = plan.bucket // 2 if plan.gathered else 0 if plan.fused else plan.bucket
    backward, peak = max(
        (base - plan.resharded + kept + loss.kept + loss.backward, Living(kept, loss.logits, 0)),
        (base - frozen + kept + plan.bucket + head + layer, Living(kept, 0, head)),
        (base + kept + plan.bucket + loss.grads + plan.norm, Living(kept, 0, loss.grads)),
        (base + kept + (0 if plan.whole_head else plan.fused), Living(kept, 0, 0)),
        (base - frozen + plan.bucket + others - own + layer, Living(0, 0, others - own)),
        (first + plan.bucket + others + images.backward, Living(0, 0, others)),
        (
            first + images.grads + ends + others + tables * table + plan.norm,
            Living(0, 0, others + tables * table),
        ),
        (first + images.grads + plan.fused, Living(0, 0, 0)),
    )
    # a loss of the trainer's own comes after the forward pass, which drops autocast's copies when it ends
    after = max(cached + loss.scores * 3 // 2, loss.forward) if loss.scores else cached + loss.forward
    return Step(
        max(
            first + images.forward,
            base + images.held + kept + cached + max(c.forward - c.kept - c.cached for c in costs),
        ),
        base + images.held + kept + after,
        backward,
        fixed + images.pixels + plan.gradients + plan.step,
        kept,
        loss.logits,
        Churn(
            0 if s.liger or loss.scores else loss.logits // 3,
            layer,
            plan.gradients,
            kept,
            rounded(shape.vocab * shape.hidden * s.vector) if s.trains_table else 0,
            plan.bucket + plan.buffers,
            loss.scores,
            _stacks(shape, s),
        ),
        peak,
        base + kept + loss.kept,
        fixed,
    )


def _assemble(
    run: TrainingRun,
    plan: Plan,
    step: Step,
    judges: Judges,
    constants: Constants,
    close: bool,
    enough: float,
) -> Prediction:
    reference = reference_bytes(run, plan) + judges.weights + judges.states
    lasting = plan.weights + plan.adapters + plan.optimizer + plan.buffers + reference
    phases = {
        "load": max(plan.load + plan.adapters, plan.setup),
        "forward": lasting + step.forward,
        "loss": lasting + step.loss,
        "backward": lasting + step.backward,
        "optimizer": lasting + step.optimizer,
    }
    if run.recipe.generates and run.vllm_utilization is None:
        phases["generate"] = lasting + generation_bytes(run)
    if scoring := scoring_bytes(run):
        phases["score"] = lasting + step.fixed + scoring
    peaks = {**phases, "load": plan.setup}  # what a trainer builds counts, loading has its own figure
    phase = max(peaks, key=lambda name: peaks[name])
    peak = peaks[phase]
    outside = _outside_torch(run, constants)
    beside = sum(part.bytes for part in outside)
    if close:
        bound = replayed_bound(run, peak, step.churn, constants, enough - beside)
    else:
        bound = Bound(reserved_bound(peak, step.churn, run.parallel, constants))
    return Prediction(
        peak,
        bound.reserved,
        bound.reserved - bound.idle + beside,
        phases["load"],
        phase,
        _components(plan, step, phase, peak, reference, run.recipe.judged),
        phases,
        "analytic",
        (),
        "; ".join(filter(None, (run.shape.uncertain, _unseen(run)))),
        outside=outside,
        idle_bytes=bound.idle,
    )


def _unseen(run: TrainingRun) -> str:
    """What is not counted of a model that reads images where none were told."""
    unseen = run.shape.unseen if run.images is None else ""
    return f"{unseen} (--images tells them)" if unseen else ""


def _unmeasured(run: TrainingRun) -> str:
    """What of a run is as a source says and was never measured."""
    named = [] if find_optimizer(run.optim).measured else [f"--optim {run.optim}"]
    named += [f"--{name}" for name in SPLITS if getattr(run, name) > 1]
    named += ["--quant hqq"] if run.method == "qlora" and run.quant == "hqq" else []
    kept = run.shape.stored if run.method == "lora" else ""
    named += [f"weights stored as {kept}"] if kept not in ("", "mxfp4", "nf4", "int8") else []
    if run.recipe.judged:
        named.append("a value and a reward model, both taken to be as large as the policy")
    named += ["zero_hpz_partition_size"] if run.deepspeed.secondary > 1 else []
    return f"{' and '.join(named)}: as the source says, no run was measured" if named else ""


def _outside_torch(run: TrainingRun, constants: Constants) -> tuple[Component, ...]:
    """The CUDA context with cuBLASLt's where int8 needs it, and NCCL's buffers."""
    int8 = constants.int8_context if run.method == "qlora" and run.quant == "int8" else 0
    context = Component("CUDA context", constants.cuda_context + int8)
    return (context, Component("NCCL", constants.nccl(run.parallel))) if run.gpus > 1 else (context,)


def _components(
    plan: Plan, step: Step, phase: str, peak: int, reference: int, judged: bool
) -> tuple[Component, ...]:
    parts = [
        Component("weights", plan.weights),
        Component("reference, reward and value models" if judged else "reference model", reference),
        Component("adapters", plan.adapters),
        Component("optimizer states", plan.optimizer),
        Component("gradient buffers", plan.buffers),
    ]
    if phase == "optimizer":
        parts += [Component("gradients", plan.gradients), Component("optimizer step", plan.step)]
    elif phase != "load":
        living = step.living if phase == "backward" else Living(step.kept, 0, 0)
        parts += [Component("activations kept", living.kept), Component("gradients", living.gradients)]
        parts += [Component("gathered weights", plan.gathered)]
        logits = step.logits if phase == "loss" else living.logits
        room = peak - sum(p.bytes for p in parts)
        parts.append(Component("logits", max(0, min(logits, room))))
    rest = peak - sum(p.bytes for p in parts)
    return tuple(p for p in (*parts, Component("workspace and transients", max(0, rest))) if p.bytes)
