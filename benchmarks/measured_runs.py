"""Peaks of real trainers on one card, as `tests/memory/points/unseen.json` holds them.

    python3 benchmarks/measured_runs.py CASE.json       one run: its peaks in GiB, as a line of JSON

A case holds `{"id", "shape": [model_type, settings], "method", "dtype", "batch", "seq", "ckpt", "task", ...}`
with the words of `envdoctor.memory.points`. Weights are random; rows are all as long as `seq`. `task` is
"distill" for that of TRL's GKD, "plain" for transformers' Trainer, or axolotl's where "trainer" says so, or
one of TRL's whose release is installed; "extra" goes to its config. "limit_gib" is
all that torch may reserve.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

GIB = 1 << 30
WORDS = 2000
WRITING = ("grpo", "rloo")
NAMES = {
    "sft": "SFT", "dpo": "DPO", "kto": "KTO", "orpo": "ORPO", "reward": "Reward", "grpo": "GRPO",
    "rloo": "RLOO",
}  # fmt: skip
APART = {"kto": "trl.experimental.kto", "orpo": "trl.experimental.orpo"}
"""Where a release of TRL keeps trainers that its package does not name."""


def main(case: dict[str, Any]) -> None:
    """Train three steps and print what the allocator saw."""
    import torch

    trainer = plain(case) if case.get("task", "plain") in ("plain", "distill") else from_trl(case)
    torch.cuda.synchronize()
    if "limit_gib" in case:
        whole = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(case["limit_gib"] * GIB / whole)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    # axolotl begins anew at each log: what is sought is the height of all steps
    torch.cuda.reset_peak_memory_stats = torch.cuda.memory.reset_peak_memory_stats = lambda *_: None
    trainer().train()
    torch.cuda.synchronize()
    allocated, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    found = {"peak_allocated_gib": allocated / GIB, "peak_reserved_gib": reserved / GIB}
    retries = torch.cuda.memory_stats().get("num_alloc_retries", 0)
    sys.stdout.write(json.dumps({**case, **found, "retries": retries}) + "\n")


def config_of(case: dict[str, Any]) -> Any:
    """Return the model's config; its special tokens lie within the words of the data."""
    from transformers import AutoConfig

    kind, settings = case["shape"]
    config = AutoConfig.for_model(kind, **{"max_position_embeddings": 32768, **settings})
    config.use_cache = case.get("task") in WRITING
    config.pad_token_id, config.eos_token_id, config.bos_token_id = WORDS - 3, WORDS - 2, None
    return config


def arguments(case: dict[str, Any]) -> dict[str, Any]:
    """Return what every trainer is told."""
    optim = case.get("optim", "adamw_torch_fused")
    projected = {"optim_target_modules": ["attn", "mlp"]} if optim.startswith(("galore", "apollo")) else {}
    if "optim_rank" in case:
        projected["optim_args"] = f"rank={case['optim_rank']}"
    own = optim in ("adam_mini", "muon")
    return {
        **projected,
        "output_dir": tempfile.mkdtemp(),
        "per_device_train_batch_size": case["batch"],
        "gradient_accumulation_steps": case.get("accum", 1),
        "gradient_checkpointing": case["ckpt"],
        "optim": "adamw_torch_fused" if own else optim,
        "use_liger_kernel": bool(case.get("liger")),
        "max_steps": case.get("steps", 12 if "vary" in case or case["method"] == "lisa" else 3),
        "bf16": case.get("amp", True),
        "learning_rate": 1e-5,
        "report_to": [],
        "save_strategy": "no",
        "disable_tqdm": True,
        **case.get("extra", {}),
    }


def adapters(case: dict[str, Any]) -> Any:
    """Return the config of what peft puts beside the weights, or None where they are trained themselves."""
    from peft import IA3Config, LoraConfig, PrefixTuningConfig, PromptTuningConfig

    if case["method"] in ("full", "freeze", "lisa", "badam"):
        return None
    if case["method"] == "ia3":
        return IA3Config(task_type="CAUSAL_LM")
    if case["method"] in ("prompt", "prefix"):
        make = PromptTuningConfig if case["method"] == "prompt" else PrefixTuningConfig
        return make(task_type="CAUSAL_LM", num_virtual_tokens=case["virtual"])
    kind = "SEQ_CLS" if case.get("task") == "reward" else "CAUSAL_LM"
    named = {"qv": ["q_proj", "v_proj"]}.get(case.get("targets", ""), "all-linear")
    return LoraConfig(
        r=case.get("rank", 8), lora_alpha=16, lora_dropout=case.get("dropout", 0.0), target_modules=named,
        task_type=kind, use_dora=bool(case.get("dora")), modules_to_save=case.get("copied"),
    )  # fmt: skip


def built(case: dict[str, Any]) -> Any:
    """Return a causal model of random weights on the card."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("cuda"):
        return AutoModelForCausalLM.from_config(config_of(case), dtype=dtype_of(case))


def dtype_of(case: dict[str, Any]) -> Any:
    """Return torch's dtype of the weights."""
    import torch

    return {"bf16": torch.bfloat16, "fp32": torch.float32}[case["dtype"]]


def plain(case: dict[str, Any]) -> Any:
    """Return what makes transformers' Trainer."""
    import torch
    from peft import get_peft_model
    from transformers import Trainer, TrainingArguments

    model = built(case)
    if (beside := adapters(case)) is not None:
        model = get_peft_model(model, beside)
        if case["ckpt"]:
            model.enable_input_require_grads()
    if case.get("kernels"):
        by_axolotls_kernels(model)
    if case["method"] == "freeze":
        model.requires_grad_(False)
        for layer in model.model.layers[-case["trained"] :]:
            layer.requires_grad_(True)
    rows = torch.randint(0, WORDS - 100, (64, case["seq"]))
    data = [{"input_ids": r, "labels": r.clone(), "attention_mask": torch.ones_like(r)} for r in rows]
    make, told_as = Trainer, TrainingArguments
    if case.get("trainer") == "axolotl":
        from axolotl.core.trainers.base import AxolotlTrainer as make  # type: ignore[no-redef]
        from axolotl.core.training_args import AxolotlTrainingArguments as told_as
        from datasets import Dataset

        columns = [{name: value.tolist() for name, value in row.items()} for row in data]
        data = Dataset.from_list(columns).with_format("torch")
    told = told_as(remove_unused_columns=False, logging_strategy="no", **arguments(case))
    if case.get("offloaded"):
        make = offloading(make)
    if case.get("task") == "distill":
        make = distilling(make, built({**case, "shape": case["teacher"], "dtype": "bf16"}))
    given = {"callbacks": [drawing(case, model)]} if case["method"] == "lisa" else {}

    def begin() -> Any:
        steps = optimizer_of(case, model)
        more = {**given, "optimizers": (steps, None)} if steps is not None else given
        return make(model=model, args=told, train_dataset=data, **more)

    return begin


def by_axolotls_kernels(model: Any) -> None:
    """Let axolotl's kernels compute the adapted layers: queries, keys and values are had at once."""
    from axolotl.kernels.lora import apply_lora_mlp_swiglu, apply_lora_o, apply_lora_qkv

    for layer in model.base_model.model.model.layers:
        layer.mlp.forward = types.MethodType(apply_lora_mlp_swiglu, layer.mlp)
        attention = layer.self_attn
        waiting: list[Any] = []

        def all_three(x: Any, attention: Any = attention, waiting: list[Any] = waiting) -> Any:
            query, *others = apply_lora_qkv(attention, x)
            waiting[:] = others
            return query

        attention.q_proj.forward = all_three
        attention.k_proj.forward = attention.v_proj.forward = lambda _, waiting=waiting: waiting.pop(0)
        attention.o_proj.forward = lambda x, attention=attention: apply_lora_o(attention, x)


def offloading(make: Any) -> Any:
    """Return a trainer whose steps keep nothing on the card, as TRL's do where they are told so."""
    from trl.models.activation_offloading import get_act_offloading_ctx_manager

    class Offloading(make):  # type: ignore[misc]
        def training_step(self, *given: Any, **named: Any) -> Any:
            if not hasattr(self, "away"):
                self.away = get_act_offloading_ctx_manager(model=self.model)
            with self.away:
                return super().training_step(*given, **named)

    return Offloading


def distilling(make: Any, teacher: Any) -> Any:
    """Return a trainer that learns from a teacher as TRL's GKD does, from texts that are there."""
    import torch
    from trl.experimental.gkd.gkd_trainer import GKDTrainer

    class Distilling(make):  # type: ignore[misc]
        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **named: Any) -> Any:
            if not hasattr(self, "teacher"):
                self.teacher = self.accelerator.prepare_model(teacher, evaluation_mode=True)
            read = {name: inputs[name] for name in ("input_ids", "attention_mask")}
            own = model(**read)
            self.teacher.eval()
            with torch.no_grad():
                told = self.teacher(**read)
            loss = GKDTrainer.generalized_jsd_loss(
                student_logits=own.logits[:, :-1, :], teacher_logits=told.logits[:, :-1, :],
                labels=inputs["labels"][:, 1:], num_items_in_batch=named.get("num_items_in_batch"),
            )  # fmt: skip
            torch.cuda.empty_cache()
            return (loss, own) if return_outputs else loss

    return Distilling


def drawing(case: dict[str, Any], model: Any) -> Any:
    """Return what draws anew at each step which layers are trained, as LISA does every few steps."""
    from transformers import TrainerCallback

    class Drawing(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            layers = model.model.layers
            layers.requires_grad_(False)
            for place in range(case["trained"]):
                layers[(state.global_step + place) % len(layers)].requires_grad_(True)

    return Drawing()


def optimizer_of(case: dict[str, Any], model: Any) -> Any:
    """Return an optimizer that transformers has no name for, or None."""
    import torch

    named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    if case["method"] == "badam":
        from badam import BlockOptimizer

        inner = torch.optim.AdamW([weight for _, weight in named], lr=1e-5, fused=True)
        return BlockOptimizer(inner, named, switch_block_every=50, switch_mode="ascending", verbose=0)
    if case.get("optim") == "adam_mini":
        from adam_mini import Adam_mini

        shape = model.config
        return Adam_mini(
            named, lr=1e-5, dim=shape.hidden_size, n_heads=shape.num_attention_heads,
            n_kv_heads=shape.num_key_value_heads, verbose=False,
        )  # fmt: skip
    if case.get("optim") == "muon":
        from llamafactory_muon import Muon

        inside = [w for name, w in named if w.ndim == 2 and "embed" not in name and "lm_head" not in name]
        known = {id(weight) for weight in inside}
        rest = [weight for _, weight in named if id(weight) not in known]
        return Muon(lr=1e-5, muon_params=inside, adamw_params=rest)
    return None


def tokenizer() -> Any:
    """Return a tokenizer of plain words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ("<pad>", "<eos>", "<unk>")
    names = [*(f"w{n}" for n in range(WORDS - len(special))), *special]
    model = Tokenizer(models.WordLevel({name: n for n, name in enumerate(names)}, unk_token="<unk>"))
    model.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


def words(number: int) -> str:
    """Return so many random words."""
    return " ".join(f"w{random.randrange(WORDS - 100)}" for _ in range(number))


def row(case: dict[str, Any], length: int, number: int) -> dict[str, Any]:
    """Return one row of the task's data."""
    task = case["task"]
    pair = {"chosen": length // 2, "rejected": length // 2}
    numbers = {
        "sft": {"text": length + 8},
        "dpo": {"prompt": length // 2, **pair},
        "orpo": {"prompt": length // 2, **pair},
        "kto": {"prompt": length // 2, "completion": length // 2},
        "reward": {"chosen": length - 2, "rejected": length - 2},
    }.get(task, {"prompt": length - case.get("completion", 0)})
    told = {name: words(number) for name, number in numbers.items()}
    return {**told, "label": number % 2 == 0} if task == "kto" else told


def lengths(case: dict[str, Any]) -> list[int]:
    """Return how long each of 64 rows is: where they vary, one of eight is as long as told, by lot."""
    longest = case["seq"]
    if "vary" not in case:
        return [longest] * 64
    lot = random.Random(case["seed"])
    shortest = int(case["vary"] * longest)
    return [longest if not lot.randrange(8) else lot.randint(shortest, longest) for _ in range(64)]


def from_trl(case: dict[str, Any]) -> Any:
    """Return what makes TRL's trainer of the task, from a saved model."""
    import torch
    import transformers
    import trl
    from datasets import Dataset

    task, folder, names = case["task"], tempfile.mkdtemp(), tokenizer()
    built(case).save_pretrained(folder)
    names.save_pretrained(folder)
    torch.cuda.empty_cache()
    scores = {"num_labels": 1} if task == "reward" else {}
    kind = "AutoModelForSequenceClassification" if scores else "AutoModelForCausalLM"
    loaded = getattr(transformers, kind).from_pretrained(
        folder, device_map="cuda", dtype=dtype_of(case), **scores
    )
    prefix = NAMES[task]
    home = trl if hasattr(trl, prefix + "Trainer") else importlib.import_module(APART[task])
    told: dict[str, Any] = {**arguments(case), "logging_steps": 1}
    rewards: dict[str, Any] = {}
    if task in WRITING:
        told |= {"num_generations": case["gens"], "max_completion_length": case["completion"]}
        rewards["reward_funcs"] = lambda completions, **_: [random.random() for _ in completions]
    else:
        told["max_length"] = case["seq"]
    make, settings = getattr(home, prefix + "Trainer"), getattr(home, prefix + "Config")(**told)
    data = Dataset.from_list([row(case, length, n) for n, length in enumerate(lengths(case))])
    given = {"train_dataset": data, "processing_class": names, "peft_config": adapters(case), **rewards}
    return lambda: make(model=loaded, args=settings, **given)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    stated = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if stated.get("expandable"):
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    main(stated)
