"""A slice of the real model, a few layers deep, run elsewhere; from two depths follow all layers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import lcm
from pathlib import Path
from typing import Any

from envdoctor.errors import Unavailable
from envdoctor.facts.codec import FactsFormatError, decode
from envdoctor.inputs import parse_json
from envdoctor.memory.allocator import SEGMENT
from envdoctor.memory.analytic import predict
from envdoctor.memory.constants import Constants
from envdoctor.memory.families import LAYER_BY_LAYER, STACKS, depth_of
from envdoctor.memory.optimizer import find_optimizer, state_bytes
from envdoctor.memory.parts import unlike_stacks, writing_part
from envdoctor.memory.run import Component, Prediction, TrainingRun
from envdoctor.memory.stepping import step_bytes
from envdoctor.values import NamedTuple, dataclass, replace

LIMIT_S = 240.0
CHILD = Path(__file__).with_name("slice_child.py")
BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}
UNREPLAYED = {True: (0.0, 0.65, 0.75), False: (0.1, 0.0, 1.75)}
"""What is reserved beyond what is allocated where no layer can be replayed, with checkpointing and without: a
share of all, one of what comes and goes, and fp32 logits. Of 49 runs of families that were traced none took
this much: where layers are computed anew, their blocks fall between those of the loss."""
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "none": "none"}


class Slices(NamedTuple):
    """What the child answered for two depths: heights by phase in bytes, and the versions it used."""

    depths: tuple[int, int]
    shallow: Mapping[str, int]
    deep: Mapping[str, int]
    versions: Mapping[str, str]

    def extended(self, phase: str, layers: int) -> int:
        """The height of a phase at that many layers, on the line through both depths."""
        slope = (self.deep[phase] - self.shallow[phase]) / (self.depths[1] - self.depths[0])
        return int(self.shallow[phase] + slope * (layers - self.depths[0]))

    def backward(self, layers: int) -> int:
        """The height of the backward pass: of the loss, of its first layer, of its last, of the embedding.

        Each is linear in the layers, their maximum is not. Without marks (a head that no gradient passes)
        the whole pass is taken as one.
        """
        heights = [self.extended("backward_end", layers)]
        if "backward_loss" in self.deep:
            heights.append(self.extended("backward_loss", layers))
        reached = "backward_layers" if "backward_layers" in self.deep else "backward_end"
        last = "live_after_layers" if reached == "backward_layers" else "live_end"
        marks = [mark for mark in ("live_after_loss", last) if mark in self.deep]
        for mark in marks:
            above = self.shallow[reached] - self.shallow[mark]
            heights.append(self.extended(mark, layers) + above)
        if marks:  # a kind of layer that the shallower one has not
            above = self.deep[reached] - max(self.deep[mark] for mark in marks)
            heights.append(max(self.extended(mark, layers) for mark in marks) + above)
        return max(heights)


PERIODS = (
    "attn_layer_period", "expert_layer_period", "full_attention_interval", "sliding_window_pattern",
    "decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step",
)  # fmt: skip


def rhythm(config: Mapping[str, Any]) -> tuple[int, int]:
    """After how many layers their kinds begin to repeat, and after how many they do, by what the config says.

    Layers that never repeat are (0, all of them), and so are stacks of unlike depths, and a model whose last
    layers read keys and values that others made.
    """
    lead, period = int(config.get("first_k_dense_replace") or config.get("moe_layer_start_index") or 0), 1
    depth = depth_of(config) or 0
    unlike = len({config[key] for key in STACKS if isinstance(config.get(key), int)}) > 1
    if unlike or config.get("num_kv_shared_layers"):
        return 0, depth
    for key in PERIODS:
        if isinstance(told := config.get(key), int) and told > 0:
            period = lcm(period, told)
    for key, told in config.items():
        layered = isinstance(told, list) or (isinstance(told, str) and key in LAYER_BY_LAYER)
        if layered and len(told) == depth > 3:
            its_lead, its_period = _repeats(told)
            lead, period = max(lead, its_lead), lcm(period, its_period)
    return (lead, period) if lead + 2 * period <= depth else (0, depth)


def _repeats(told: Sequence[Any]) -> tuple[int, int]:
    """Return the shortest lead, and the period after it, of what is told layer by layer."""
    for lead in range(len(told) // 2):
        rest = told[lead:]
        for period in range(1, len(rest) // 2 + 1):
            if rest[period:] == rest[: len(rest) - period]:
                return lead, period
    return 0, len(told)


def depths_of(run: TrainingRun, config: Mapping[str, Any]) -> tuple[int, int]:
    """Two depths that differ by whole periods of the layers' kinds; its own where they never repeat."""
    shape = run.shape
    first_expert = 1 + (shape.experts.first_dense if shape.experts else 0)
    if not shape.known:
        text = writing_part(config)
        lead, period = rhythm(text if text is not None and "hidden_size" not in config else config)
        if unlike_stacks(config):
            lead, period = 0, shape.layers
        irregular = period == shape.layers
        return (period - 1, period) if irregular else (lead + period, lead + 2 * period)
    if shape.windowed_layers and shape.windowed_layers < shape.layers and run.seq > shape.window:
        period = round(shape.layers / (shape.layers - shape.windowed_layers))
        return period, 2 * period
    return first_expert, first_expert + 1


def job_of(run: TrainingRun, config: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """The child's job; a traced slice has neither Liger's kernels nor quantised products."""
    real = mode == "measure"
    return {
        "mode": mode,
        "config": dict(config),
        "layers": depths_of(run, config),
        "dtype": DTYPES[run.dtype],
        "amp": DTYPES[run.amp],
        "attn": "sdpa" if run.attn == "flash_attention_2" and not real else run.attn,
        "rank": 0 if run.method == "full" else run.lora_rank,
        "targets": _target_names(run.lora_targets),
        "dropout": run.lora_dropout,
        "dora": run.dora,
        "copied": [name.strip() for name in run.modules_to_save.split(",") if name.strip()] or None,
        "adapter_fp32": run.adapter_fp32,
        "checkpoint": run.grad_ckpt,
        "reentrant": run.reentrant,
        "batch": run.batch,
        "seq": run.seq,
        "accumulating": run.grad_accum > 1,
        "liger": run.liger and real,
        "quant": run.quant if run.method == "qlora" and real else "",
        "double_quant": run.double_quant,
        "upcast": run.upcast_kbit,
    }


def _target_names(targets: str) -> str | list[str]:
    known = {"qv": ["q_proj", "v_proj"], "attn": ["q_proj", "k_proj", "v_proj", "o_proj"]}
    if targets == "all":
        return targets
    return known.get(targets) or [name.strip() for name in targets.split(",")]


def run_slices(run: TrainingRun, config: Mapping[str, Any], mode: str, python: str) -> Slices:
    """Run the child in the examined interpreter; raises Unavailable with its reason."""
    from envdoctor.processes import run_child

    job = job_of(run, config, mode)
    source = CHILD.read_text(encoding="utf-8")
    done = run_child([python, "-c", source], timeout_s=LIMIT_S, stdin=json.dumps(job).encode())
    try:
        answer = parse_json(done.stdout)
    except ValueError:
        reason = (
            "took too long" if done.timed_out else (done.stderr.strip().splitlines() or ["no answer"])[-1]
        )
        raise Unavailable(f"--{mode}: {python}: {reason}") from None
    if isinstance(answer, dict) and "error" in answer:
        raise Unavailable(f"--{mode}: {python}: {answer['error']}")
    try:
        told = decode(_Answer, answer, ())
        shallow, deep = (told.layers[str(n)] for n in job["layers"])
    except (FactsFormatError, KeyError):
        raise Unavailable(f"--{mode}: {python}: its answer is no measurement") from None
    if shallow.keys() != deep.keys():
        raise Unavailable(f"--{mode}: {python}: its answer is no measurement")
    return Slices(job["layers"], shallow, deep, told.versions)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The child's answer: heights by phase in bytes for each depth, and the versions it used."""

    layers: Mapping[str, Mapping[str, int]]
    versions: Mapping[str, str]


def corrected(
    run: TrainingRun, prediction: Prediction, slices: Slices, constants: Constants, mode: str
) -> Prediction:
    """Put what the slices show in the place of the terms that the analytic tier has for the same slices.

    Both are taken without sharding; what lasts through a step (weights, states) stays analytic.
    """
    plain = _plain_twin(run, mode)
    twin = predict(plain, constants)
    lasting = sum(c.bytes for c in twin.components if c.name in ("weights", "adapters", "optimizer states"))
    if not run.shape.known:
        return _inventoried(run, prediction, slices, constants)
    workspace = 2 * constants.cublas_workspace  # not there in a trace, there before the step when measured
    layers = run.shape.layers
    forward = slices.extended("forward", layers) + workspace
    backward = slices.backward(layers) + workspace
    change = {
        "loss": forward + lasting - max(twin.phases["forward"], twin.phases["loss"]),
        "backward": backward + lasting - twin.phases["backward"],
    }
    change["forward"] = change["loss"]
    phases = {
        name: size + _uncounted(run, twin, slices) + change.get(name, 0)
        for name, size in prediction.phases.items()
    }
    peaks = {k: v for k, v in phases.items() if k != "load" or prediction.phase == "load"}
    phase = max(peaks, key=lambda name: peaks[name])
    return _moved(prediction, phases, phase, slices)


def _uncounted(run: TrainingRun, twin: Prediction, slices: Slices) -> int:
    """Bytes of parts that the slices hold and no trait tells of: what leads from a tower to the decoder."""
    if run.parallel not in ("none", "ddp") or run.tp * run.pp > 1 or "weights" not in slices.deep:
        return 0
    counted = sum(c.bytes for c in twin.components if c.name in ("weights", "adapters"))
    return max(0, slices.extended("weights", run.shape.layers) - counted)


def _inventoried(
    run: TrainingRun, prediction: Prediction, slices: Slices, constants: Constants
) -> Prediction:
    """The whole prediction from the slices, weights and states too: nothing of the family is known here."""
    if run.parallel not in ("none", "ddp") or run.tp * run.pp > 1 or run.method == "qlora":
        raise Unavailable(
            f"{run.shape.model_type}: a family that is not known is traced plain, on each card whole"
        )
    layers = run.shape.layers
    weights, trained, gradients = (slices.extended(k, layers) for k in ("weights", "trained", "gradients"))
    width = max(1, gradients // max(1, trained))
    states = state_bytes(find_optimizer(run.optim), [(trained, 1)], width)
    lasting = weights + states + (gradients if run.parallel == "ddp" else 0)
    workspace = 2 * constants.cublas_workspace
    heights = {
        "load": 0,
        "forward": slices.extended("forward", layers) + workspace,
        "backward": slices.backward(layers) + workspace,
        "optimizer": gradients + step_bytes(find_optimizer(run.optim), (([(trained, 1)], width),)),
    }
    phases = {name: lasting + height for name, height in heights.items()} | {"load": weights}
    phase = max(("forward", "backward", "optimizer"), key=lambda name: phases[name])
    parts = (Component("weights", weights), Component("optimizer states", states))
    counted = weights // BYTES[run.dtype]
    noted = (f"{counted / 1e9:.2f} billion parameters by the trace", *prediction.assumptions)
    known = replace(
        prediction, components=(*parts, Component("workspace and transients", 0)), assumptions=noted
    )
    moved = _moved(known, phases, phase, slices)
    peak = moved.peak_allocated_bytes
    of_all, of_passing, of_logits = UNREPLAYED[run.grad_ckpt]
    logits = 4 * run.batch * run.seq * run.shape.vocab
    between = peak * of_all + max(0, peak - lasting) * of_passing + logits * of_logits
    reserved = -(-int(peak + between) // SEGMENT) * SEGMENT
    more = reserved - moved.peak_reserved_bytes
    return replace(moved, peak_reserved_bytes=reserved, device_bytes=moved.device_bytes + more)


def _plain_twin(run: TrainingRun, mode: str) -> TrainingRun:
    plain = replace(run, parallel="none", gpus=1, tp=1, pp=1, offload_optimizer=False, offload_params=False)
    if mode == "measure":
        return plain
    return replace(plain, liger=False, method="lora" if run.method == "qlora" else run.method)


def _moved(prediction: Prediction, phases: Mapping[str, int], phase: str, slices: Slices) -> Prediction:
    peak = phases[phase]
    more = peak - prediction.peak_allocated_bytes
    reserved = -(-(prediction.peak_reserved_bytes + max(more, 0) + min(more, 0) // 2) // SEGMENT) * SEGMENT
    parts = list(prediction.components)
    rest = peak - sum(p.bytes for p in parts[:-1])
    parts[-1] = Component(parts[-1].name, max(0, rest))
    versions = ", ".join(f"{name} {version}" for name, version in slices.versions.items())
    return replace(
        prediction,
        peak_allocated_bytes=peak,
        peak_reserved_bytes=reserved,
        device_bytes=prediction.device_bytes + reserved - prediction.peak_reserved_bytes,
        phase=phase,
        phases=dict(phases),
        components=tuple(parts),
        uncertain="",
        assumptions=(*prediction.assumptions, f"layers from slices {slices.depths} deep, with {versions}"),
    )
