"""Trainers begun by their own entries, on a model of random weights and rows of random letters in files.

Read by `trial.py` in the examined interpreter; nothing of envdoctor is imported. What a framework is told is
what its file says, but for the model, the data, and how long it runs.
"""

from __future__ import annotations

import json
import os
import random
import string
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Asked = Mapping[str, Any]
ROWS, MARKS, ROOM, PREFIXED = 64, 24, 64, 2
"""Rows; letters left for what a template writes; letters by which an answer is too long, to be cut; tokens
that may stand before a question and an answer."""
TEMPLATE = "{% for message in messages %}{{ message['content'] }} {{ eos_token }} {% endfor %}"
PREFIXES = {"dpo": "DPO", "reward": "Reward", "grpo": "GRPO"}
PAIRS = ("dpo", "reward")
OFFLINE = {"HF_HUB_OFFLINE": "1", "DISABLE_VERSION_CHECK": "1", "AXOLOTL_DO_NOT_TRACK": "1"}


def prepare(asked: Asked, folder: Path, device: str = "cuda") -> Callable[[], object]:
    """Write the model and return what trains it; the entry's own loading is part of that."""
    os.environ.update(OFFLINE)
    write_model(asked, folder / "model", device)
    begin = ENTRIES[asked["trainer"]](asked, folder)
    sys.argv = sys.argv[:1]  # which these entries would read
    return lambda: until_trained(begin)


class Trained(BaseException):
    """Training is over: what a framework does after it (saving, cards) is not tried."""


def until_trained(begin: Callable[[], object]) -> None:
    """Begin, and leave once a trainer has trained."""
    import transformers

    train = transformers.Trainer.train

    def and_leave(*given: Any, **named: Any) -> Any:
        train(*given, **named)
        raise Trained

    transformers.Trainer.train = and_leave
    try:
        begin()
    except Trained:
        pass


def write_model(asked: Asked, folder: Path, device: str) -> None:
    """Write a model of random weights and a tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes, words = dict(asked["config"]), tokenizer()
    config = AutoConfig.for_model(sizes.pop("model_type"), **sizes)
    config.pad_token_id, config.eos_token_id, config.bos_token_id = (
        words.pad_token_id, words.eos_token_id, None,
    )  # fmt: skip
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype_of(asked))
    model.save_pretrained(folder)
    words.save_pretrained(folder)


def dtype_of(asked: Asked) -> Any:
    """Return torch's dtype of the weights."""
    import torch

    return {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[asked["setting"]["dtype"]]


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


def write_rows(
    asked: Asked, file: Path, form: Callable[[str, str, str], dict[str, Any]], marks: int = 0
) -> None:
    """Write rows that are longer than told, half of each a question: the trainer cuts them."""
    half = asked["setting"]["seq"] // 2
    rows = [form(letters(half - marks), letters(half + ROOM), letters(half + ROOM)) for _ in range(ROWS)]
    file.write_text("\n".join(json.dumps(one) for one in rows), encoding="utf-8")


def shortened(asked: Asked, folder: Path) -> dict[str, Any]:
    """Return what the file says, for a few steps of which nothing is kept."""
    given = {name: value for name, value in asked["arguments"].items() if name != "num_train_epochs"}
    ends = {"max_steps": asked["steps"], "logging_steps": 1, "save_strategy": "no", "report_to": "none"}
    return {**given, **ends, "output_dir": str(folder / "out")}


def llamafactory(asked: Asked, folder: Path) -> Callable[[], object]:
    """LLaMA-Factory, on rows in alpaca's words."""
    from llamafactory.train.tuner import run_exp

    pairs = asked["setting"]["task"] in PAIRS

    def form(question: str, answer: str, other: str) -> dict[str, Any]:
        told = {"chosen": answer, "rejected": other} if pairs else {"output": answer}
        return {"instruction": question, "input": "", **told}

    write_rows(asked, folder / "rows.jsonl", form, MARKS)
    columns = {"prompt": "instruction", "query": "input"}
    columns |= {"chosen": "chosen", "rejected": "rejected"} if pairs else {"response": "output"}
    info = {"rows": {"file_name": "rows.jsonl", "ranking": pairs, "columns": columns}}
    (folder / "dataset_info.json").write_text(json.dumps(info), encoding="utf-8")
    data = {"dataset": "rows", "dataset_dir": str(folder), "template": "default"}
    model = {"model_name_or_path": str(folder / "model")}
    values = {**shortened(asked, folder), **data, **model}
    return lambda: run_exp(values)


def swift(asked: Asked, folder: Path) -> Callable[[], object]:
    """ms-swift, on rows of messages."""
    from swift import rlhf_main, sft_main

    task = asked["setting"]["task"]

    def form(question: str, answer: str, other: str) -> dict[str, Any]:
        talk = [{"role": "user", "content": question}]
        if task == "grpo":
            return {"messages": talk}
        row: dict[str, Any] = {"messages": [*talk, {"role": "assistant", "content": answer}]}
        return {**row, "rejected_response": other} if task in PAIRS else row

    write_rows(asked, folder / "rows.jsonl", form)
    values = {
        **shortened(asked, folder),
        "model": str(folder / "model"), "model_type": asked["config"]["model_type"], "template": "dummy",
        "dataset": [str(folder / "rows.jsonl")], "split_dataset_ratio": 0, "truncation_strategy": "right",
        "dataloader_num_workers": 0, "dataset_num_proc": 1,
    }  # fmt: skip
    if task == "grpo":
        values["reward_funcs"] = ["format"]
    main = sft_main if task == "sft" else rlhf_main
    return lambda: main(as_options(values))


def as_options(values: Mapping[str, Any]) -> list[str]:
    """Return arguments as a command line has them."""
    options: list[str] = []
    for name, value in values.items():
        many = value if isinstance(value, list) else [value]
        options += [f"--{name}", *(word_of(one) for one in many)]
    return options


def word_of(value: Any) -> str:
    """Return one value as a command line has it."""
    return value if isinstance(value, str) else json.dumps(value)


def axolotl(asked: Asked, folder: Path) -> Callable[[], object]:
    """axolotl, as `axolotl train` reads a YAML file."""
    import yaml
    from axolotl.cli.args import TrainerCliArgs
    from axolotl.cli.config import load_cfg
    from axolotl.cli.train import do_train

    seq, pairs = asked["setting"]["seq"], asked["setting"]["task"] in PAIRS

    def form(question: str, answer: str, other: str) -> dict[str, Any]:
        left = seq - len(question) - PREFIXED  # what it had to cut some tokenizers lengthen again
        if pairs:
            return {"prompt": question, "chosen": answer[:left], "rejected": other[:left]}
        return {"text": (question + answer)[: seq - 1]}  # and its end; what is longer is cut in two

    write_rows(asked, folder / "rows.jsonl", form)
    names = {"field_prompt": "prompt", "field_chosen": "chosen", "field_rejected": "rejected"}
    rows = {"path": str(folder / "rows.jsonl"), "ds_type": "json", "split": "train"}
    values = {
        **{key: value for key, value in shortened(asked, folder).items() if key != "report_to"},
        "base_model": str(folder / "model"), "datasets": [{**rows, "type": names if pairs else "completion"}],
        "dataset_prepared_path": str(folder / "prepared"), "val_set_size": 0, "dataset_num_proc": 1,
        "excess_length_strategy": "truncate", "special_tokens": {"pad_token": "<pad>"},
    }  # fmt: skip
    (folder / "train.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    return lambda: do_train(load_cfg(str(folder / "train.yaml")), TrainerCliArgs())


def trl(asked: Asked, folder: Path) -> Callable[[], object]:
    """TRL's trainer of the task, on a model loaded as its script does."""
    import torch
    import trl as package
    from datasets import load_dataset
    from transformers import AutoTokenizer

    setting = asked["setting"]
    task, half = setting["task"], setting["seq"] // 2
    whole = setting["seq"] - 2  # and its end; longer ones are left out

    def form(question: str, answer: str, other: str) -> dict[str, Any]:
        if task == "grpo":
            return {"prompt": question[: setting["seq"] - half]}
        if task == "reward":
            return {"chosen": (question + answer)[:whole], "rejected": (question + other)[:whole]}
        return {"prompt": question, "chosen": answer, "rejected": other}

    write_rows(asked, folder / "rows.jsonl", form)
    rows = load_dataset("json", data_files=str(folder / "rows.jsonl"), split="train", cache_dir=str(folder))
    config = getattr(package, PREFIXES[task] + "Config")(**shortened(asked, folder))
    make = getattr(package, PREFIXES[task] + "Trainer")
    names = AutoTokenizer.from_pretrained(folder / "model")
    model = loaded(asked, folder / "model")
    given: dict[str, Any] = {"train_dataset": rows, "processing_class": names, "peft_config": adapters(asked)}
    if task == "grpo":
        given["reward_funcs"] = lambda completions, **_: [random.random() for _ in completions]
    torch.cuda.empty_cache()
    return lambda: make(model=model, args=config, **given).train()


def loaded(asked: Asked, folder: Path) -> Any:
    """Return the model as TRL's scripts load it: of pairs that are scored, with a head of one output."""
    import torch
    import transformers

    setting = asked["setting"]
    scored = setting["task"] == "reward"
    kind = "SequenceClassification" if scored else "CausalLM"
    told: dict[str, Any] = {"num_labels": 1} if scored else {}
    if setting["method"] == "qlora":
        told["quantization_config"] = transformers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=dtype_of(asked),
        )  # fmt: skip
    return getattr(transformers, f"AutoModelFor{kind}").from_pretrained(
        folder, device_map={"": torch.cuda.current_device()} if torch.cuda.is_available() else None,
        dtype=dtype_of(asked), attn_implementation=setting["attn"], **told,
    )  # fmt: skip


def adapters(asked: Asked) -> Any:
    """Return the config of adapters on all linears, or None where the weights are trained themselves."""
    from peft import LoraConfig

    setting = asked["setting"]
    if "lora" not in setting["method"]:
        return None
    rank, kind = setting["lora_rank"], "SEQ_CLS" if setting["task"] == "reward" else "CAUSAL_LM"
    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type=kind)


ENTRIES: Mapping[str, Callable[[Asked, Path], Callable[[], object]]] = {
    "llamafactory": llamafactory,
    "ms-swift": swift,
    "axolotl": axolotl,
    "trl": trl,
}
