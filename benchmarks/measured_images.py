"""Peaks of transformers' Trainer by a whole config.json, on rows with images or without, as
`tests/memory/points/images.json` holds them.

    python3 benchmarks/measured_images.py CASE.json       one run: its peaks in GiB, as a line of JSON

A case holds `{"id", "config", "method", "dtype", "batch", "seq", "ckpt", "images", "pixels": [height, width],
...}`: a whole config.json, and so many images of that size a row, or tiles of it where the model's processor
cuts images up. "frozen" keeps the tower, and what leads to the decoder, out of training. Weights are random.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from measured_runs import GIB, adapters, arguments, dtype_of

SLICES = Path(__file__).resolve().parents[1] / "envdoctor" / "memory" / "slice_child.py"
IMAGE = 5
"""The token that stands for a part of an image."""
TOWERS = ("visual", "vision_tower", "vision_model", "multi_modal_projector", "connector")


def main(case: dict[str, Any]) -> None:
    """Train a few steps and print what the allocator saw."""
    import torch

    trainer = prepared(case)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    trainer().train()
    torch.cuda.synchronize()
    allocated, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    found = {"peak_allocated_gib": allocated / GIB, "peak_reserved_gib": reserved / GIB}
    sys.stdout.write(json.dumps({**case, **found}) + "\n")


def sliced() -> Any:
    """Return what a trace is made by, which knows the class that trains a config; its folder stays unread."""
    spec = importlib.util.spec_from_file_location("slice_child", SLICES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built(case: dict[str, Any], device: str) -> Any:
    """Return the model of random weights, what is frozen frozen, adapters on it where wanted."""
    import torch
    from peft import get_peft_model
    from transformers import AutoConfig

    slices = sliced()
    settings = {**slices.unmarked(case["config"]), **({"image_token_id": IMAGE} if case["images"] else {})}
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    config.use_cache = config.get_text_config().use_cache = False
    with torch.device(device):
        model = slices.class_of(config).from_config(config, dtype=dtype_of(case))
    if case["method"] == "qlora":
        model = quantised(model, case)
    if case.get("frozen"):
        for name in TOWERS:
            if (part := getattr(model.model, name, None)) is not None:
                part.requires_grad_(False)
    if (lora := adapters(case)) is not None:
        if case.get("frozen"):  # as trainers do that freeze the tower: adapters in the decoder alone
            lora.exclude_modules = rf".*({'|'.join(TOWERS)}).*"
        model = get_peft_model(model, lora)
        if case["ckpt"]:
            model.enable_input_require_grads()
    return model


def quantised(model: Any, case: dict[str, Any]) -> Any:
    """Return the model saved and loaded in NF4 by transformers, made ready by peft."""
    import torch
    from peft import prepare_model_for_kbit_training
    from transformers import BitsAndBytesConfig

    how = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        kind = type(model)
        del model
        torch.cuda.empty_cache()
        loaded = kind.from_pretrained(
            folder, quantization_config=how, device_map={"": 0}, dtype=torch.bfloat16
        )
    return prepare_model_for_kbit_training(loaded, use_gradient_checkpointing=case["ckpt"])


def tokens_of(case: dict[str, Any]) -> int:
    """Tokens that an image is in the sequence."""
    config, (height, width) = case["config"], case["pixels"]
    vision = config["vision_config"]
    side = vision["patch_size"] if isinstance(vision["patch_size"], int) else vision["patch_size"][0]
    patches = (height // side) * (width // side)
    if config["model_type"] == "gemma3":
        return int(config.get("mm_tokens_per_image", 256))
    joined = {
        "internvl": 2,
        "smolvlm": config.get("scale_factor", 4),
        "idefics3": config.get("scale_factor", 2),
    }
    merge = (
        joined.get(config["model_type"])
        or vision.get("spatial_merge_size")
        or config.get("spatial_merge_size")
    )
    return patches // (merge or 1) ** 2


def row_of(case: dict[str, Any]) -> dict[str, Any]:
    """Return one row: tokens that begin with those of its images, and the images."""
    import torch

    number, (height, width) = case["images"], case["pixels"]
    tokens, kind = tokens_of(case) if number else 0, case["config"]["model_type"]
    words = torch.randint(10, 1900, (case["seq"],))
    if number * (tokens + 1) + 1 > case["seq"]:
        raise ValueError(f"{number} times {tokens} tokens of images in {case['seq']}")
    for start in range(2, 2 + number * (tokens + 1), tokens + 1):  # a word stands between two images
        words[start : start + tokens] = IMAGE
    seen = (words == IMAGE).long()
    row = {"input_ids": words, "labels": words.clone(), "attention_mask": torch.ones_like(words)}
    if not number:
        return row
    if kind.startswith("qwen"):
        vision = case["config"]["vision_config"]
        side, frames = vision["patch_size"], vision.get("temporal_patch_size", 2)
        grid = (1, height // side, width // side)
        row["pixel_values"] = torch.randn(number * grid[1] * grid[2], 3 * frames * side * side)
        row["image_grid_thw"] = torch.tensor([grid] * number)
        return {**row, "mm_token_type_ids": seen}
    row["pixel_values"] = torch.randn(number, 3, height, width)
    if kind in ("gemma3", "paligemma"):
        row["token_type_ids"] = seen
    if kind in ("mistral3", "lighton_ocr"):
        row["image_sizes"] = torch.tensor([(height, width)] * number)
    return row


def collate(rows: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Tokens side by side; images one after the other, but for those that stand by rows."""
    import torch

    joined = (
        "image_grid_thw",
        "image_sizes",
        *(() if kind in ("smolvlm", "idefics3") else ("pixel_values",)),
    )
    return {
        name: (torch.cat if name in joined else torch.stack)([row[name] for row in rows]) for name in rows[0]
    }


def prepared(case: dict[str, Any]) -> Any:
    """Return what makes transformers' Trainer."""
    from transformers import Trainer, TrainingArguments

    model, kind = built(case, "cuda"), case["config"]["model_type"]
    told = TrainingArguments(remove_unused_columns=False, logging_strategy="no", **arguments(case))
    data = [row_of(case)] * (4 * case["batch"] * case.get("accum", 1))
    return lambda: Trainer(
        model=model, args=told, train_dataset=data, data_collator=lambda rows: collate(rows, kind)
    )


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    stated = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if stated.get("expandable"):
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    main(stated)
