"""Small models of every family, drawn at random with a run each: all that is worked out of them, to the byte.

`drawn_models.tsv` is the record, a draw a line: the family and the run; where it is highest; and a digest
each of the shape that is read from its config, what an engine takes, what a card holds, what layers and loss
cost and ask of the allocator, the whole answer (replayed where it can be, and rough), and what slices of two
depths make of it. Odd proportions let each part be the highest once. Whether the bytes are right is for
`test_measured_points.py` to say; `python tests/memory/test_drawn_models.py [NUMBER]` writes the record anew,
or shows all of one draw.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import pytest

from envdoctor.errors import EnvdoctorError
from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import Constants, ServingRun, parse_shape, predict, read_constants
from envdoctor.memory.activations import layer_cost, layer_kinds
from envdoctor.memory.answer import Question, answer
from envdoctor.memory.families import TRAITS
from envdoctor.memory.loss import loss_cost
from envdoctor.memory.optimizer import optimizers
from envdoctor.memory.programs import layer_program, loss_program, watched_layer, watched_loss
from envdoctor.memory.recipes import TASKS, TRAINERS, Recipe, recipe_of, shaped
from envdoctor.memory.replay import Replay, can_replay
from envdoctor.memory.run import DeepSpeed, Prediction, TrainingRun
from envdoctor.memory.settings import settings_of
from envdoctor.memory.shape import ModelShape
from envdoctor.memory.sharded_replay import WIDENED, ShardedReplay
from envdoctor.memory.sharding import plan_of
from envdoctor.memory.slices import Slices, corrected, depths_of, rhythm

RECORD = Path(__file__).with_name("drawn_models.tsv")
DRAWS = 170
SHARES = 10
GIB = 1 << 30
UNKNOWN = ("newkind", "hybridkind")
STORED = (
    *({"quant_method": "awq", "bits": 4}, {"quant_method": "gptq", "bits": 8}, {"quant_method": "hqq"}),
    *({"quant_method": "fp8"}, {"quant_method": "mxfp4"}, {"load_in_8bit": True}, {"load_in_4bit": True}),
    *({"quant_method": "modelopt", "quant_algo": "NVFP4"}, {"quant_method": "modelopt"}),
    *({"quant_method": "compressed-tensors", "format": "float-quantized"}, {"quant_method": "quanto"}),
    *({"quant_method": "compressed-tensors", "format": "pack"}, {"quant_method": "FBGEMM_FP8"}),
)
TOWERS = (
    {"hidden_size": 96, "num_hidden_layers": 2, "intermediate_size": 200, "image_size": 84, "patch_size": 14},
    {"embed_dim": 64, "hidden_size": 80, "depth": 3, "mlp_ratio": 2.5, "spatial_merge_size": 2,
     "temporal_patch_size": 2, "patch_size": 4, "deepstack_visual_indexes": [1, 2]},
    {"d_model": 40, "encoder_layers": 2, "encoder_ffn_dim": 90, "hidden_act": "silu", "out_hidden_size": 56,
     "spatial_merge_size": 3, "num_position_embeddings": 10},
    {"hidden_size": 48, "layers": 1, "model_type": "pixtral", "image_size": [70, 70], "patch_size": [7, 7]},
    {"width": 32, "layers": 2, "mlp_dim": 70, "patch_size": 33, "image_size": 33},
    {"width": 32},
)  # fmt: skip
PARTS = (
    *({"model_type": "llava"}, {"model_type": "idefics3", "scale_factor": 2}, {"model_type": "other"}),
    *(
        {"model_type": "internvl", "downsample_ratio": 0.5},
        {"model_type": "mistral3", "spatial_merge_size": 2},
    ),
    *({"model_type": "aya_vision", "downsample_factor": 2, "alignment_intermediate_size": 50},),
    *({"model_type": "aya_vision", "downsample_ratio": 2}, {"model_type": "paligemma"}),
)
T = TypeVar("T")
Dice = random.Random
Draw = Callable[[Dice], Any]
KEYS: Mapping[str, tuple[float, Draw]] = {
    "sliding_window": (0.4, lambda d: d.choice((16, 64, 300, 0, True))),
    "use_sliding_window": (0.5, lambda d: d.random() < 0.6),
    "sliding_window_pattern": (0.3, lambda d: d.choice((2, 3, 0))),
    "tie_word_embeddings": (0.5, lambda d: d.random() < 0.5),
    "attention_bias": (0.2, lambda d: d.random() < 0.5),
    "mlp_bias": (0.2, lambda d: d.random() < 0.5),
    "bias": (0.2, lambda d: d.random() < 0.5),
    "add_qkv_bias": (0.1, lambda d: d.random() < 0.5),
    "use_qkv_bias": (0.1, lambda d: d.random() < 0.5),
    "hidden_act": (0.5, lambda d: d.choice(("gelu", "relu", "gelu_new", "gelu_pytorch_tanh", "relu2", "x"))),
    "hidden_dropout": (0.2, lambda d: d.choice((0.0, 0.1))),
    "resid_pdrop": (0.1, lambda d: 0.2),
    "attention_dropout": (0.3, lambda d: d.choice((0.0, 0.1))),
    "attn_pdrop": (0.1, lambda d: 0.2),
    "partial_rotary_factor": (0.3, lambda d: d.choice((0.25, 0.5, 1.0))),
    "rope_parameters": (0.2, lambda d: {"partial_rotary_factor": 0.75}),
    "final_logit_softcapping": (0.3, lambda d: d.choice((30.0, None))),
    "max_position_embeddings": (0.7, lambda d: d.choice((200, 1024, 8192))),
    "head_dim": (0.3, lambda d: d.choice((16, 40, 128))),
    "new_decoder_architecture": (0.3, lambda d: d.random() < 0.7),
    "multi_query": (0.3, lambda d: d.random() < 0.5),
    "parallel_attn": (0.3, lambda d: d.random() < 0.5),
    "use_parallel_residual": (0.3, lambda d: d.random() < 0.5),
    "alibi": (0.3, lambda d: d.random() < 0.5),
    "quantization_config": (0.12, lambda d: d.choice(STORED)),
    "_name_or_path": (0.2, lambda d: "a/b"),
}
EXPERT_KEYS: Mapping[str, tuple[float, Draw]] = {
    "num_experts_per_tok": (0.8, lambda d: d.choice((1, 2, 3))),
    "moe_intermediate_size": (0.6, lambda d: d.choice((24, 100, 512))),
    "n_shared_experts": (0.3, lambda d: d.choice((1, 2))),
    "shared_expert_intermediate_size": (0.3, lambda d: d.choice((60, 200))),
    "first_k_dense_replace": (0.3, lambda d: d.choice((0, 1, 2))),
    "decoder_sparse_step": (0.2, lambda d: d.choice((1, 2))),
    "moe_layer_freq": (0.1, lambda d: 2),
    "moe_layer_start_index": (0.1, lambda d: 1),
    "mlp_layer_types": (0.1, lambda d: ["dense", "sparse", "sparse"]),
}
RUN: Mapping[str, tuple[float, tuple[Any, ...]]] = {
    "method": (1.0, ("full", "full", "lora", "qlora")),
    "batch": (1.0, (1, 1, 2, 3)),
    "seq": (1.0, (1, 33, 150, 200, 1000)),
    "grad_accum": (0.4, (2, 3)),
    "dtype": (0.4, ("fp32", "fp16", "bf16")),
    "amp": (0.4, ("none", "fp16")),
    "optim": (0.5, tuple(name for name, row in optimizers().items() if not (row.matrices or row.layerwise))),
    "grad_ckpt": (0.5, (False,)),
    "reentrant": (0.3, (True,)),
    "attn": (0.4, ("eager", "flash_attention_2")),
    "liger": (0.5, (True,)),
    "lora_rank": (0.4, (1, 16, 100)),
    "lora_targets": (0.3, ("attn", "qv", "q_proj, v_proj", "up_proj,down_proj", "qkv")),
    "lora_dropout": (0.3, (0.1,)),
    "adapter_fp32": (0.3, (False,)),
    "quant": (0.3, ("int8",)),
    "double_quant": (0.3, (False,)),
    "upcast_kbit": (0.3, (False,)),
    "packing": (0.2, (True,)),
    "max_completion": (0.3, (1, 40, 5000)),
    "vllm_utilization": (0.2, (0.0, 0.3, 0.9)),
    "max_model_len": (0.2, (64, 500)),
    "max_num_seqs": (0.2, (1, 16)),
}
SHARDED: Mapping[str, tuple[float, tuple[Any, ...]]] = {
    "offload_optimizer": (0.3, (True,)),
    "offload_params": (0.2, (True,)),
    "meta_load": (0.3, (False,)),
    "tp": (0.2, (2,)),
    "pp": (0.2, (2, 3)),
}
RECIPE: Mapping[str, tuple[float, tuple[Any, ...]]] = {
    "loss": (0.8, ("full", "logprobs", "kernel", "checkpointed", "tiled", "score")),
    "chunk_tokens": (1.0, (16, 64)),
    "chunk_columns": (0.8, (100, 1000)),
    "head_fp32": (0.4, (True,)),
    "scored": (0.3, ("completion",)),
    "texts": (0.3, (2,)),
    "reference": (0.5, ("beside", "before")),
    "reference_fp32": (0.4, (True,)),
    "held": (0.3, (1, 2)),
    "held_reference": (0.2, (1,)),
    "logged": (0.4, ("logits", "entropy", "answers")),
    "nll": (0.4, (True,)),
    "temperature": (0.5, (True,)),
    "divides_view": (0.5, (True,)),
    "generates": (0.3, (True,)),
    "kbit_upcast": (0.3, (False,)),
    "adapters_low": (0.3, (True,)),
    "full_fp32": (0.3, (True,)),
    "packed": (0.2, (True,)),
}
SIZES: Mapping[str, tuple[Any, ...]] = {
    "reduce_bucket": (1000, 100_000, 500_000_000),
    "prefetch_bucket": (10, 5000),
    "max_live": (0, 20_000, 1_000_000_000),
    "sub_group": (100, 1_000_000_000),
    "overlap_comm": (True, False),
    "contiguous_gradients": (True, False),
}
SERVED: Mapping[str, tuple[float, tuple[Any, ...]]] = {
    "dtype": (0.3, ("fp32",)),
    "max_model_len": (0.5, (100, 3000)),
    "max_num_seqs": (0.5, (1, 16, 300)),
    "max_batched_tokens": (0.3, (100, 9000)),
    "tp": (0.3, (2,)),
    "pp": (0.3, (2,)),
    "cuda_graphs": (0.3, (False,)),
    "beside_bytes": (0.3, (100_001,)),
    "card": (0.5, ("H100", "A100-SXM4-80GB", "RTX 4090")),
}


def some(dice: Dice, table: Mapping[str, tuple[float, Any]]) -> dict[str, Any]:
    """Return some of a table's fields, each as often as it says."""
    chosen: dict[str, Any] = {}
    for name, (share, values) in table.items():
        told, value = dice.random(), values(dice) if callable(values) else dice.choice(values)
        if told < share:
            chosen[name] = value
    return chosen


def drawn_config(dice: Dice, number: int) -> dict[str, Any]:
    """Return a config of the next family, at times with experts, towers or layers told one by one."""
    kinds = (*TRAITS, *UNKNOWN)
    kind = kinds[number % len(kinds)]
    heads, layers, wide = dice.choice((2, 4, 6)), dice.choice((1, 2, 3, 4, 7)), dice.choice((1, 8))
    kv = dice.choice([n for n in (1, 2, heads) if heads % n == 0])
    config: dict[str, Any] = {
        "model_type": kind,
        "hidden_size": heads * dice.choice((8, 20, 64)) * wide,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "intermediate_size": dice.choice((30, 130, 700, 3000)) * wide,
        "vocab_size": dice.choice((5, 260, 1100, 20_000, 100_003)),
        **some(dice, KEYS),
    }
    if "moe" in kind or "oss" in kind or dice.random() < 0.1:
        config |= {
            dice.choice(("num_experts", "num_local_experts")): dice.choice((1, 4, 8)),
            **some(dice, EXPERT_KEYS),
        }
    if kind in ("deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe_lite"):
        config |= {"kv_lora_rank": 24, "n_routed_experts": 4, **some(dice, EXPERT_KEYS)}
        config |= some(dice, {"q_lora_rank": (0.5, (16,)), "qk_rope_head_dim": (0.5, (8,))})
        config |= some(dice, {"qk_nope_head_dim": (0.5, (12,)), "v_head_dim": (0.5, (20,))})
    if dice.random() < 0.25 or kind in UNKNOWN:
        every = dice.choice((1, 2, 3))
        kinds_ = [
            "full_attention" if n % every == every - 1 else "sliding_attention" for n in range(3 * layers)
        ]
        config |= {"layer_types": kinds_[: config["num_hidden_layers"]]}
    if dice.random() < 0.15:
        config["text_config"] = dict(config)
        for key in ("num_hidden_layers", "hidden_size"):
            del config[key]
        config |= {**dice.choice(PARTS), dice.choice(("vision_config", "audio_config")): dice.choice(TOWERS)}
    return config


def drawn_run(dice: Dice, shape: ModelShape) -> TrainingRun:
    """Return a run; raises EnvdoctorError for one that cannot be."""
    trainer, task = dice.choice(("transformers", "trl", *TRAINERS)), dice.choice(("sft", "sft", *TASKS))
    parallel = dice.choice(("none", "none", "none", "ddp", "zero1", "zero2", "zero3", "fsdp"))
    told = some(dice, RUN)
    sharded = some(dice, SHARDED)
    sizes = {name: dice.choice(values) for name, values in SIZES.items() if dice.random() < 0.7}
    if parallel != "none" or dice.random() < 0.1:
        told |= {**sharded, "parallel": parallel}
        told["gpus"] = dice.choice((1, 2, 3)) * told.get("tp", 1) * told.get("pp", 1)
        told["deepspeed"] = DeepSpeed(**sizes)
    stack = (
        {"trl": dice.choice(("0.20.0", "1.4.0", "1.6.1", "1.8.0", "1.16.0"))} if dice.random() < 0.8 else {}
    )
    recipe = recipe_of(load_matrix().rows(tables.TrainerRow), trainer, task, stack)
    recipe = Recipe(**some(dice, RECIPE)) if dice.random() < 0.5 else recipe
    return TrainingRun(shaped(shape, recipe), task=task, trainer=trainer, recipe=recipe, **told)


@cache
def constants_of(capability: tuple[int, int] | None, torch: str) -> Constants:
    stack = {"torch": torch, "vllm": "0.30.0"} if torch else {}
    return read_constants(load_matrix().rows(tables.MemoryRow), stack, capability)


def changed(run: TrainingRun) -> str:
    """Return the family of a run, and its settings that are not at their defaults."""
    told = ((item.name, getattr(run, item.name), item.default) for item in fields(run))
    plain = [one for one in told if one[0] not in ("shape", "recipe", "deepspeed")]
    settings = (f"{name}={value}" for name, value, usual in plain if value != usual)
    return f"{run.shape.model_type} {' '.join(settings)}"


def asked(run: TrainingRun, constants: Constants) -> Iterator[object]:
    """Yield what layers and loss cost, and what they ask of the allocator."""
    shape, s, accumulating = run.shape, settings_of(run), run.grad_accum > 1
    upcasts = bool(constants.loss_upcasts)
    for kind in layer_kinds(shape, run.pp):
        of = (kind.moe, kind.windowed)
        yield kind, layer_cost(shape, s, run.grad_ckpt, *of, accumulating)
        yield layer_program(shape, s, run.grad_ckpt, *of, accumulating), watched_layer(shape, s, *of)
    yield loss_cost(shape, s, accumulating, upcasts, run.recipe, run.scored)
    yield loss_program(shape, s, accumulating, upcasts, run.recipe, run.scored)
    yield watched_loss(shape, s, upcasts, run.recipe, run.scored)
    if can_replay(run):
        for early, widened in ((True, 0.0), (False, WIDENED)):
            kind_of = ShardedReplay if run.parallel == "fsdp" else Replay
            replay = kind_of(run, constants.cublas_workspace, upcasts, early=early, widened=widened)
            yield replay.reserved(), replay.heap.large


def sliced(dice: Dice, run: TrainingRun, config: Mapping[str, Any], constants: Constants) -> object:
    """Return what slices would make of an answer, were their heights as drawn."""
    depths = depths_of(run, config)
    marks = ("backward_loss", "live_after_loss", "backward_layers", "live_after_layers", "live_end")
    names = ["forward", "backward_end", "weights", "trained", "gradients"]
    names += [mark for mark in marks if dice.random() < 0.7]
    shallow = {name: dice.randint(1, 10) * 1_000_003 for name in names}
    deep = {name: size + dice.randint(0, 5) * 500_009 for name, size in shallow.items()}
    slices = Slices((1, 3), shallow, deep, {"torch": "2.9"})
    rough, mode = predict(run, constants, close=False), dice.choice(("trace", "measure"))
    return depths, rhythm(config), corrected(run, rough, slices, constants, mode)


def engine(dice: Dice, shape: ModelShape, constants: Constants) -> Prediction:
    """Return what an engine takes of a small card."""
    size, share = dice.choice((GIB, 2 * GIB, 8 * GIB)), dice.choice((0.5, 0.9, 1.0))
    return predict(ServingRun(shape, size, share, **some(dice, SERVED)), constants)


def tried(work: Callable[[], T]) -> T | str:
    """Return what is worked out, or why it is not."""
    try:
        return work()
    except EnvdoctorError as error:
        return f"{type(error).__name__}: {error}"


def told(number: int) -> Iterator[tuple[str, object]]:
    """Yield all that is worked out of one draw, each part with its name."""
    dice = random.Random(number)
    config = drawn_config(dice, number)
    constants = constants_of(dice.choice((None, (9, 0), (8, 0), (7, 5))), dice.choice(("", "2.9.1", "2.4.0")))
    gpu, stack = (
        dice.choice((None, GIB, 80 * GIB)),
        dice.choice(({}, {"torch": "2.11.0+cu128", "trl": "1.0"})),
    )
    shape = parse_shape(config, "config")
    yield "shape", shape
    yield "engine", tried(lambda: engine(dice, shape, constants))
    runs = [tried(lambda: drawn_run(dice, shape)) for _ in range(6)]
    run = next((run for run in runs if isinstance(run, TrainingRun)), None)
    yield "runs", runs
    if run is None:
        return
    yield "run", run
    yield "card", plan_of(run)
    yield "asked", list(asked(run, constants))
    question = Question(run, constants, gpu, stack)
    yield "answer", tried(lambda: answer(question))
    yield "rough", tried(lambda: answer(replace(question, close=False)))
    yield "sliced", tried(lambda: sliced(dice, run, config, constants))


def shown(part: object) -> str:
    """Return a run in words, an answer's peak, and of anything else a digest."""
    digest = f"{crc32(repr(part).encode()):08x}"
    if isinstance(part, TrainingRun):
        return changed(part)
    if isinstance(part, Prediction):
        return f"{part.phase} {part.peak_allocated_bytes} {part.peak_reserved_bytes} {digest}"
    return digest


def line(number: int) -> str:
    """Return a draw's line."""
    try:
        parts = [f"{name}: {shown(part)}" for name, part in told(number)]
    except EnvdoctorError as error:
        parts = [f"{error}"]
    return f"{number}\t{'; '.join(parts)}"


@pytest.mark.parametrize("share", range(SHARES))
def test_each_draw_takes_the_bytes_that_it_took(share: int) -> None:
    recorded = RECORD.read_text(encoding="utf-8").splitlines()
    assert len(recorded) == DRAWS
    told = {number: line(number) for number in range(share, DRAWS, SHARES)}
    assert [said for number, said in told.items() if said != recorded[number]] == []


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*told(int(sys.argv[1])), sep="\n")
    else:
        RECORD.write_text("\n".join(map(line, range(DRAWS))) + "\n", encoding="utf-8")
