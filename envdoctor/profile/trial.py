"""A few steps of a chosen training setting with random weights: run as a file by the examined interpreter.

    python trial.py '<json>'

Reads one JSON argument (config, setting, steps) and prints one line `TRIAL {json}` a rank:
allocated and reserved peaks, or `oom`. torch may reserve `budget_bytes` of the card. What `entry` names is
begun by its own entry, the rest in this process. Nothing of envdoctor is imported, nothing is downloaded or
kept.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main(text: str) -> None:
    """Run the trial and print what it took."""
    import torch

    if not torch.cuda.is_available():
        sys.exit("torch sees no GPU")
    asked = json.loads(text)
    rank = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(rank)
    free, total = torch.cuda.mem_get_info()
    told: dict[str, Any] = {"rank": rank, "total_bytes": total, "oom": False, "error": None}
    try:
        with tempfile.TemporaryDirectory(prefix="run-") as folder:  # of "mpt" in a path axolotl makes a model
            train(asked, folder)
    except torch.cuda.OutOfMemoryError as error:
        told.update(oom=True, error=str(error)[:300])
    told["allocated_bytes"] = torch.cuda.max_memory_allocated()
    told["reserved_bytes"] = torch.cuda.max_memory_reserved()
    told["context_bytes"] = max(0, free - torch.cuda.mem_get_info()[0] - torch.cuda.memory_reserved())
    told["versions"] = versions()
    sys.stdout.write("TRIAL " + json.dumps(told) + "\n")
    sys.stdout.flush()


def versions() -> dict[str, str]:
    """Return the versions that decided the figures."""
    from importlib import metadata

    found = {}
    for name in ("torch", "transformers", "peft", "accelerate", "bitsandbytes", "deepspeed", "liger_kernel"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def train(asked: dict[str, Any], folder: str) -> None:
    """Build the model and step the trainer within the budget."""
    import torch

    begin = entry(asked, folder) if asked.get("entry") else here(asked, folder)
    torch.cuda.empty_cache()
    whole = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(min(1.0, asked.get("budget_bytes", whole) / whole))
    torch.cuda.reset_peak_memory_stats()
    # axolotl begins anew at each log: what is sought is the height of all steps
    torch.cuda.reset_peak_memory_stats = torch.cuda.memory.reset_peak_memory_stats = lambda *_: None
    begin()
    torch.cuda.synchronize()


def entry(asked: dict[str, Any], folder: str) -> Callable[[], object]:
    """Return what begins a framework by its own entry."""
    import importlib.util

    file = Path(__file__).with_name("trial_entries.py")
    spec = importlib.util.spec_from_file_location("trial_entries", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    begin: Callable[[], object] = module.prepare(asked, Path(folder))
    return begin


def here(asked: dict[str, Any], folder: str) -> Callable[[], object]:
    """Return what steps transformers' or TRL's trainer in this process."""
    import torch

    of_trl = asked.get("trainer") == "trl"
    if of_trl:
        from trl import SFTConfig as Arguments
    else:
        from transformers import TrainingArguments as Arguments
    setting, given = asked["setting"], dict(asked["arguments"])
    given.update(output_dir=folder, max_steps=asked["steps"], report_to=[], save_strategy="no")
    given.update(logging_strategy="no", disable_tqdm=True)
    given.update({"max_length": setting["seq"]} if of_trl else {"remove_unused_columns": False})
    arguments = Arguments(**given)
    model = build(asked["config"], setting)
    ids = torch.randint(0, min(30000, asked["config"]["vocab_size"]), (64, setting["seq"]))
    rows = [{"input_ids": ids[n][:length]} for n, length in enumerate(lengths(asked))]
    make = trainer_of_trl if of_trl else trainer
    return lambda: make(model, arguments, rows, setting).train()


def trainer(model: Any, arguments: Any, rows: list[dict[str, Any]], setting: dict[str, Any]) -> Any:
    """Return transformers' Trainer, with adapters on the model where they are asked for."""
    from transformers import Trainer

    if setting["method"] != "full":
        model = adapted(model, setting)
    return Trainer(model=model, args=arguments, train_dataset=rows, data_collator=filled_up)


def trainer_of_trl(model: Any, arguments: Any, rows: list[dict[str, Any]], setting: dict[str, Any]) -> Any:
    """Return TRL's SFTTrainer on rows that are tokens already, with a tokenizer that is never asked."""
    from datasets import Dataset
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    from trl import SFTTrainer

    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "<unk>": 2}, unk_token="<unk>"))
    told = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")
    return SFTTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list([{"input_ids": row["input_ids"].tolist()} for row in rows]),
        processing_class=told,
        peft_config=None if setting["method"] == "full" else adapters(setting),
    )


def lengths(asked: dict[str, Any]) -> list[int]:
    """Return the lengths of 64 rows: as long as told, or from the shortest to that in some order."""
    longest = asked["setting"]["seq"]
    shortest = asked.get("shortest_row") or longest
    return [shortest + (longest - shortest) * (37 * n % 64) // 63 for n in range(64)]


def filled_up(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return rows as one batch, each filled up to the longest."""
    import torch

    batch = [row["input_ids"] for row in rows]
    told = {"input_ids": batch, "labels": batch, "attention_mask": [torch.ones_like(row) for row in batch]}
    fill = {"input_ids": 0, "labels": -100, "attention_mask": 0}
    pad = torch.nn.utils.rnn.pad_sequence
    return {key: pad(values, batch_first=True, padding_value=fill[key]) for key, values in told.items()}


def build(sizes: dict[str, Any], setting: dict[str, Any]) -> Any:
    """Return a model of that shape with random weights."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = dict(sizes)
    config = AutoConfig.for_model(sizes.pop("model_type"), **sizes)
    config.use_cache = False
    config._attn_implementation = setting["attn"]
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[setting["dtype"]]
    device = "meta" if setting["method"] == "qlora" else "cuda"
    if setting["parallel"] == "zero3":
        device = "cpu"
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model = AutoModelForCausalLM.from_config(config)
    finally:
        torch.set_default_dtype(torch.float32)
    if setting["method"] == "qlora":
        quantise(model, dtype, config)
    return model


def quantise(model: Any, dtype: Any, config: Any) -> None:
    """Give a model on the meta device random 4-bit linears and random other weights, on the card."""
    import bitsandbytes
    import torch

    for module in list(model.modules()):
        for key, child in list(module.named_children()):
            if not isinstance(child, torch.nn.Linear) or key in ("lm_head", "embed_out"):
                continue
            bias = child.bias is not None
            linear = bitsandbytes.nn.Linear4bit(
                child.in_features, child.out_features, bias=bias, compute_dtype=dtype, quant_type="nf4"
            )
            weight = torch.empty(child.weight.shape, dtype=dtype, device="cuda").normal_(0, 0.02).cpu()
            linear.weight = bitsandbytes.nn.Params4bit(
                weight, requires_grad=False, compress_statistics=True, quant_type="nf4", module=linear
            )
            if bias:
                linear.bias = torch.nn.Parameter(torch.zeros(child.out_features, dtype=dtype))
            setattr(module, key, linear.to("cuda"))
    for module in model.modules():
        for key, value in list(module._parameters.items()):
            if value is not None and value.is_meta:
                weight = torch.empty(value.shape, dtype=dtype, device="cuda").normal_(0, 0.02)
                module._parameters[key] = torch.nn.Parameter(weight, requires_grad=False)
    if hasattr(model.model, "rotary_emb"):
        model.model.rotary_emb = type(model.model.rotary_emb)(config, device="cuda")
    model.tie_weights()
    model.is_loaded_in_4bit = True
    torch.cuda.empty_cache()


def adapters(setting: dict[str, Any]) -> Any:
    """Return the config of adapters on all linears."""
    from peft import LoraConfig

    return LoraConfig(
        r=setting["lora_rank"], lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"
    )


def adapted(model: Any, setting: dict[str, Any]) -> Any:
    """Return the model with adapters on it, as peft's own recipes prepare it."""
    from peft import get_peft_model, prepare_model_for_kbit_training

    if setting["method"] == "qlora":
        model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=setting["grad_ckpt"])
    model = get_peft_model(model, adapters(setting))
    if setting["grad_ckpt"]:
        model.enable_input_require_grads()
    return model


if __name__ == "__main__":
    sys.path[:] = [place for place in sys.path if place != str(Path(__file__).parent)]  # no packages
    main(sys.argv[1])
