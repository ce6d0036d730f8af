"""Peaks of LLaMA-Factory's, ms-swift's and axolotl's own trainers on one card, by their own entries.

    python3 benchmarks/measured_frameworks.py CASE.json       one run: its peaks in GiB, as a line of JSON

A case is one of `measured_runs.py` that names one of these as "trainer"; "method" is full, lora or qlora.
A model of random weights and rows of letters are written to files; arguments as a user would write them
go to `run_exp`, `sft_main`/`rlhf_main` or `do_train`, which load, collate and train. Half a row is what is
asked, half what is answered. What training does not call (web pages, players, other hosts) need not be
installed: an absent package of `IDLE` is an empty one.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import string
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

from measured_runs import GIB, config_of, dtype_of

_IDLE = (
    "adlfs antlr4 art av axolotl_contribs_lgpl axolotl_contribs_mit binpacking colorama cpm_kernels "
    "cryptography evaluate fastapi fastcore fire gcsfs gradio json_repair librosa lm_eval mistral_common "
    "msgspec nltk ocifs omegaconf openai optimum orjson oss2 posthog rouge s3fs schedulefree soundfile "
    "sse_starlette torchao torchdata rpds torchaudio trackio transformers_stream_generator tyro uvicorn "
    "wandb zstandard"
)
IDLE = frozenset(_IDLE.split())
"""What these frameworks import and a step on texts never calls."""
ROWS, MARKS, ROOM, PREFIXED = 64, 24, 64, 2
"""Rows; letters left for what a template writes; letters by which an answer is too long; tokens that may
stand before a question and an answer."""
TEMPLATE = "{% for message in messages %}{{ message['content'] }} {{ eos_token }} {% endfor %}"


class Nothing(type):
    """What an absent module gives: a class that may be called, inherited from, and asked for anything."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(name, (), {})

    def __call__(cls, *given: Any, **named: Any) -> Any:
        """Return what is decorated as it is, or itself."""
        if len(given) == 1 and callable(given[0]) and not named:
            return given[0]
        return type.__call__(cls) if cls.__bases__ != (object,) else cls


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds an empty module where a package of `IDLE` is not installed; to who only asks it is not there."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return an empty package's spec where an import asks."""
        asked_only = sys._getframe(2).f_code is importlib.util.find_spec.__code__
        if name.partition(".")[0] in IDLE and not asked_only and not name.startswith("torchao.optim"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> Any:
        """Return an empty module."""
        return types.ModuleType(spec.name)

    def exec_module(self, module: Any) -> None:
        """Let it answer whatever it is asked for."""
        module.__version__ = "0"
        module.__getattr__ = lambda name: getattr(Nothing("Empty", (), {}), name)


def main(case: dict[str, Any]) -> None:
    """Train by the framework's own entry and print what the allocator saw, its loading among it."""
    import torch

    sys.meta_path.append(Absent())
    folder = Path(tempfile.mkdtemp(prefix="run-"))  # axolotl takes "mpt" in a path for a model
    write_model(case, folder / "model")
    begin = ENTRIES[case["trainer"]](case, folder)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        # axolotl begins anew at each log: what is sought is the height of all steps
        torch.cuda.reset_peak_memory_stats = torch.cuda.memory.reset_peak_memory_stats = lambda *_: None
    begin()
    found, retries = {}, 0
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        allocated, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
        found = {"peak_allocated_gib": allocated / GIB, "peak_reserved_gib": reserved / GIB}
        retries = torch.cuda.memory_stats().get("num_alloc_retries", 0)
    sys.stdout.write("\n" + json.dumps({**case, **found, "loader": True, "retries": retries}) + "\n")


def write_model(case: dict[str, Any], folder: Path) -> None:
    """Write a model of random weights and a tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM

    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config_of(case), dtype=dtype_of(case))
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)


def tokenizer() -> Any:
    """Return a tokenizer of letters, which any family's class reads: each builds it anew from bytes."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ("<pad>", "<eos>", "<unk>")
    signs = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "\u2581", *special]
    made = Tokenizer(models.BPE({sign: n for n, sign in enumerate(signs)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    names = PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )
    names.chat_template = TEMPLATE
    return names


def letters(number: int) -> str:
    """Return so many random letters."""
    return "".join(random.choices(string.ascii_lowercase, k=number))


def write_rows(case: dict[str, Any], file: Path, form: Any) -> None:
    """Write rows that are longer than told: each trainer cuts them."""
    half = case["seq"] // 2
    asked = half - MARKS
    rows = [form(letters(asked), letters(half + ROOM), letters(half + ROOM), n) for n in range(ROWS)]
    file.write_text("\n".join(json.dumps(one) for one in rows))


def told(case: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that transformers, LLaMA-Factory and ms-swift have by one name."""
    found = {
        "per_device_train_batch_size": case["batch"],
        "gradient_accumulation_steps": case.get("accum", 1),
        "max_steps": case.get("steps", 3),
        "optim": case.get("optim", "adamw_torch_fused"),
        "learning_rate": 1e-5,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        **case.get("extra", {}),
    }
    if case["method"] != "full":
        rank = case.get("rank", 8)
        found |= {"lora_rank": rank, "lora_alpha": 16, "lora_dropout": case.get("dropout", 0.0)}
    return found


def llamafactory(case: dict[str, Any], folder: Path) -> Any:
    """Return what runs LLaMA-Factory on a file of rows in alpaca's words."""
    from llamafactory.train.tuner import run_exp

    task = case["task"]
    pairs = task in ("dpo", "orpo", "reward")

    def form(asked: str, answered: str, other: str, number: int) -> dict[str, Any]:
        row = {"instruction": asked, "input": "", "output": answered}
        if pairs:
            row |= {"chosen": answered, "rejected": other}
        return {**row, "label": number % 2 == 0} if task == "kto" else row

    write_rows(case, folder / "rows.jsonl", form)
    columns = {"prompt": "instruction", "query": "input", "response": "output"}
    if pairs:
        columns |= {"chosen": "chosen", "rejected": "rejected"}
    if task == "kto":
        columns["kto_tag"] = "label"
    info = {"rows": {"file_name": "rows.jsonl", "ranking": pairs, "columns": columns}}
    (folder / "dataset_info.json").write_text(json.dumps(info))
    values: dict[str, Any] = {
        **told(case),
        "stage": {"dpo": "dpo", "orpo": "dpo", "reward": "rm", "kto": "kto"}.get(task, "sft"),
        "do_train": True,
        "model_name_or_path": str(folder / "model"),
        "finetuning_type": "full" if case["method"] == "full" else "lora",
        "dataset": "rows",
        "dataset_dir": str(folder),
        "template": "default",
        "cutoff_len": case["seq"],
        "output_dir": str(folder / "out"),
        "flash_attn": "sdpa",
        "disable_gradient_checkpointing": not case["ckpt"],
        "bf16": case["dtype"] == "bf16",
    }
    if case["method"] != "full":
        values["lora_target"] = "all"
    if case["method"] == "qlora":
        values |= {"quantization_bit": 4, "quantization_method": "bnb"}
    if task == "orpo":
        values["pref_loss"] = "orpo"
    return lambda: run_exp(values)


def swift(case: dict[str, Any], folder: Path) -> Any:
    """Return what runs ms-swift on a file of messages."""
    from swift import rlhf_main, sft_main

    task = case["task"]

    def form(asked: str, answered: str, other: str, number: int) -> dict[str, Any]:
        talk = [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
        row: dict[str, Any] = {"messages": talk}
        if task in ("dpo", "orpo", "reward"):
            row["rejected_response"] = other
        return {**row, "label": number % 2 == 0} if task == "kto" else row

    write_rows(case, folder / "rows.jsonl", form)
    values: dict[str, Any] = {
        **told(case),
        "model": str(folder / "model"),
        "model_type": case["shape"][0],
        "template": "dummy",
        "dataset": [str(folder / "rows.jsonl")],
        "split_dataset_ratio": 0,
        "output_dir": str(folder / "out"),
        "tuner_type": "full" if case["method"] == "full" else "lora",
        "torch_dtype": {"bf16": "bfloat16", "fp32": "float32"}[case["dtype"]],
        "max_length": case["seq"],
        "truncation_strategy": "right",
        "attn_impl": "sdpa",
        "gradient_checkpointing": case["ckpt"],
        "dataloader_num_workers": 0,
        "dataset_num_proc": 1,
    }
    if case["method"] != "full":
        values["target_modules"] = ["all-linear"]
    if case["method"] == "qlora":
        values |= {"quant_method": "bnb", "quant_bits": 4, "bnb_4bit_compute_dtype": "bfloat16"}
    if task == "sft":
        return lambda: sft_main(as_options(values))
    return lambda: rlhf_main(as_options({"rlhf_type": "rm" if task == "reward" else task, **values}))


def as_options(values: dict[str, Any]) -> list[str]:
    """Return arguments as a command line has them."""
    options: list[str] = []
    for name, value in values.items():
        many = value if isinstance(value, list) else [value]
        options += [f"--{name}", *(str(one).lower() if isinstance(one, bool) else str(one) for one in many)]
    return options


def axolotl(case: dict[str, Any], folder: Path) -> Any:
    """Return what runs axolotl on a YAML file, as `axolotl train` does."""
    import yaml
    from axolotl.cli.args import TrainerCliArgs
    from axolotl.cli.config import load_cfg
    from axolotl.cli.train import do_train
    from trl.trainer import base_trainer

    task = case["task"]
    compared = task in ("dpo", "kto")

    def form(asked: str, answered: str, other: str, number: int) -> dict[str, Any]:
        left = (
            case["seq"] - len(asked) - PREFIXED
        )  # rows that it had to cut, some tokenizers make longer again
        if task == "dpo":
            return {"prompt": asked, "chosen": answered[:left], "rejected": other[:left]}
        if task == "kto":
            return {"prompt": asked, "completion": answered[:left], "label": number % 2 == 0}
        return {"text": (asked + answered)[: case["seq"] - 1]}  # and its end; what is longer is cut in two

    write_rows(case, folder / "rows.jsonl", form)
    fields = ("prompt", "chosen", "rejected") if task == "dpo" else ("prompt", "completion", "label")
    kind = {f"field_{name}": name for name in fields}
    rows = {"path": str(folder / "rows.jsonl"), "ds_type": "json", "split": "train"}
    values: dict[str, Any] = {
        "base_model": str(folder / "model"),
        "datasets": [{**rows, "type": kind if compared else "completion"}],
        "dataset_prepared_path": str(folder / "prepared"),
        "output_dir": str(folder / "out"),
        "sequence_len": case["seq"],
        "micro_batch_size": case["batch"],
        "gradient_accumulation_steps": case.get("accum", 1),
        "max_steps": case.get("steps", 3),
        "num_epochs": 1,
        "learning_rate": 1e-5,
        "optimizer": case.get("optim", "adamw_torch_fused"),
        "lr_scheduler": "cosine",
        "bf16": case["dtype"] == "bf16",
        "gradient_checkpointing": case["ckpt"],
        "attn_implementation": "sdpa",
        "save_strategy": "no",
        "val_set_size": 0,
        "dataset_num_proc": 1,
        "excess_length_strategy": "truncate",
        "special_tokens": {"pad_token": "<pad>"},
        **case.get("extra", {}),
    }
    if case["ckpt"]:
        values["gradient_checkpointing_kwargs"] = {"use_reentrant": False}
    if compared:
        values |= {"rl": task, "remove_unused_columns": False}
    if case["method"] != "full":
        parts = ("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel")
        kernels = dict.fromkeys(parts, bool(case.get("kernels")))
        values |= {
            "adapter": case["method"], "lora_r": case.get("rank", 8), "lora_alpha": 16,
            "lora_dropout": case.get("dropout", 0.0), "lora_target_linear": True, **kernels,
        }  # fmt: skip
    if case["method"] == "qlora":
        values["load_in_4bit"] = True
    file = folder / "train.yaml"
    file.write_text(yaml.safe_dump(values))
    base_trainer.wandb = types.SimpleNamespace(run=None)  # which its card asks for a run's address

    return lambda: do_train(load_cfg(str(file)), TrainerCliArgs())


ENTRIES = {"llamafactory": llamafactory, "ms-swift": swift, "axolotl": axolotl}


if __name__ == "__main__":
    os.environ |= {"HF_HUB_OFFLINE": "1", "DISABLE_VERSION_CHECK": "1", "AXOLOTL_DO_NOT_TRACK": "1"}
    stated = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if stated.get("expandable"):
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    sys.argv = sys.argv[:1]
    main(stated)
