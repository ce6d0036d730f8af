"""The analytic prediction: the phases of a step, the highest of them, and its parts."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from envdoctor.memory.activations import LayerCost, LayerKind, layer_cost, layer_kinds
from envdoctor.memory.adapters import adapter_tensors
from envdoctor.memory.allocator import reserved_bound
from envdoctor.memory.constants import Constants
from envdoctor.memory.layout import tensors
from envdoctor.memory.loss import LossCost, loss_cost
from envdoctor.memory.optimizer import find_optimizer, state_bytes, step_bytes
from envdoctor.memory.run import Component, Prediction, ServingRun, TrainingRun
from envdoctor.memory.settings import Settings, settings_of
from envdoctor.memory.shape import ModelShape
from envdoctor.memory.tape import rounded
from envdoctor.memory.weights import load_peak, weight_bytes

DEFAULT = Constants()


def predict(run: TrainingRun | ServingRun, constants: Constants = DEFAULT) -> Prediction:
    """Return the predicted peak of a run on rank 0."""
    if isinstance(run, ServingRun):
        from envdoctor.memory.serving import predict_serving

        return predict_serving(run, constants)
    settings = settings_of(run)
    states = _states(run, settings)
    step = _step(run, settings, constants)
    return _assemble(run, settings, states, step, constants)


class States(NamedTuple):
    """Bytes that outlive a step, and the gradients that the backward pass leaves."""

    weights: int
    load: int
    adapters: int
    gradients: int
    optimizer: int
    scratch: int


@lru_cache(maxsize=4096)
def _trained(shape: ModelShape, s: Settings) -> tuple[tuple[int, int], ...]:
    return tensors(shape) if s.trains else adapter_tensors(shape, s)


def _states(run: TrainingRun, s: Settings) -> States:
    shape, double = run.shape, run.double_quant
    return _cached_states(shape, s, double, run.optim)


@lru_cache(maxsize=4096)
def _cached_states(shape: ModelShape, s: Settings, double: bool, optim: str) -> States:
    weights = weight_bytes(shape, s, double)
    width = s.weight if s.trains else s.adapter
    trained = _trained(shape, s)
    optimizer = find_optimizer(optim)
    gradients = sum(count * rounded(width * n) for n, count in trained)
    embedding = shape.vocab * shape.hidden if s.trains else 0
    return States(
        weights,
        load_peak(shape, s, weights),
        0 if s.trains else gradients,
        gradients,
        state_bytes(optimizer, trained, width, embedding),
        step_bytes(optimizer, trained, width),
    )


class Step(NamedTuple):
    """Heights of a step's phases above the lasting states, and what makes them."""

    forward: int
    loss: int
    backward: int
    optimizer: int
    kept: int
    logits: int
    layer: int
    workspace: int


def _step(run: TrainingRun, s: Settings, constants: Constants) -> Step:
    shape = run.shape
    accumulating = run.grad_accum > 1
    kinds = layer_kinds(shape, run.pp)
    costs = [layer_cost(shape, s, run.grad_ckpt, k.moe, k.windowed, accumulating) for k in kinds]
    loss = loss_cost(shape, s, accumulating, bool(constants.loss_upcasts))
    gradients = _states(run, s).gradients
    base = _fixed(shape, s, constants) + (gradients if accumulating else 0)
    return _heights(shape, s, kinds, costs, loss, base, gradients, accumulating)


def _fixed(shape: ModelShape, s: Settings, constants: Constants) -> int:
    """Workspaces of both threads, the batch, rotary tables, masks, and the embedded input."""
    tokens = s.tokens
    fixed = 2 * constants.cublas_workspace + 6 * rounded(8 * tokens)
    fixed += 2 * rounded(s.seq * shape.head_dim * s.stream) if shape.rope else 0
    if s.attn == "eager" or shape.alibi:
        fixed += rounded(s.batch * s.seq * s.seq * s.compute)
    if s.seq > shape.window > 0 and shape.windowed_layers:
        fixed += rounded(s.batch * s.seq * s.seq)
    return fixed + rounded(tokens * shape.hidden * s.stream)


def _heights(
    shape: ModelShape,
    s: Settings,
    kinds: tuple[LayerKind, ...],
    costs: list[LayerCost],
    loss: LossCost,
    base: int,
    gradients: int,
    accumulating: bool,
) -> Step:
    kept = sum(k.count * c.kept for k, c in zip(kinds, costs, strict=True))
    cached = sum(k.count * c.cached for k, c in zip(kinds, costs, strict=True))
    forward = base + kept + cached + max(c.forward - c.kept - c.cached for c in costs)
    stream = rounded(s.tokens * shape.hidden * s.stream)
    all_kept = base + kept
    last = max(c.backward - c.kept for c in costs)
    first = max(c.backward - c.kept + c.grads for c in costs) if False else max(c.backward for c in costs)
    grown = 0 if accumulating else gradients
    layer_grads = sum(k.count * c.grads for k, c in zip(kinds, costs, strict=True))
    begin = all_kept + loss.grads + max(c.backward for c in costs)
    end = base + loss.grads + layer_grads + first
    table = rounded(shape.vocab // s.tp * shape.hidden * s.vector) if s.trains else 0
    embed = base + loss.grads + layer_grads + table * (2 if shape.tied and not s.liger else 1)
    del last
    return Step(
        forward,
        all_kept + cached + loss.forward,
        max(all_kept + loss.backward + loss.kept, begin, end, embed + stream),
        base - stream + grown,
        kept,
        loss.logits,
        max(c.backward for c in costs),
        base,
    )


def _assemble(run: TrainingRun, s: Settings, states: States, step: Step, constants: Constants) -> Prediction:
    lasting = states.weights + states.adapters + states.optimizer
    phases = {
        "load": states.load + states.adapters,
        "forward": lasting + step.forward,
        "loss": lasting + step.loss,
        "backward": lasting + step.backward,
        "optimizer": lasting + step.optimizer + states.scratch,
    }
    phase = max(phases, key=lambda name: phases[name] if name != "load" else 0)
    peak = phases[phase]
    reserved = reserved_bound(peak, step.logits, step.layer, constants)
    return Prediction(
        peak,
        reserved,
        reserved + constants.cuda_context + (constants.nccl_buffers if run.gpus > 1 else 0),
        phases["load"],
        phase,
        _components(run, states, step, phase, peak),
        phases,
        "analytic",
        (),
        run.shape.uncertain,
    )


def _components(run: TrainingRun, states: States, step: Step, phase: str, peak: int) -> tuple[Component, ...]:
    parts = [
        Component("weights", states.weights),
        Component("adapters", states.adapters),
        Component("optimizer states", states.optimizer),
    ]
    if phase == "optimizer":
        parts += [Component("gradients", states.gradients), Component("optimizer step", states.scratch)]
    else:
        parts.append(Component("activations kept", step.kept))
    if phase in ("loss", "backward"):
        parts.append(Component("logits", min(step.logits, peak - sum(p.bytes for p in parts))))
    rest = peak - sum(p.bytes for p in parts)
    return tuple(p for p in (*parts, Component("workspace and transients", max(0, rest))) if p.bytes)
