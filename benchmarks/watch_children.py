"""What `benchmarks/watch_runs.py` watches: real training runs, sane or ending as their kind says.

    python benchmarks/watch_children.py KIND --model_name_or_path M …

The settings are read from the command line as trainers read them. Weights are random, of the model's shape;
nothing is downloaded. On a machine without a GPU a tiny model takes its place.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
GIB = 1 << 30
TINY = {
    "model_type": "qwen2", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 4000,
}  # fmt: skip


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("sane", "leak", "rows", "neighbour", "intruder", "ranks"))
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--model_name_or_path", default="Qwen/Qwen2.5-0.5B")
    parser.add_argument("--per_device_train_batch_size", type=int, default=4)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
    parser.add_argument("--max_length", type=int, default=1024)
    parser.add_argument("--max_steps", type=int, default=200)
    parser.add_argument("--bf16", default="true")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16", help="of the weights")
    parser.add_argument("--gradient_checkpointing", default="false")
    parser.add_argument("--optim", default="adamw_torch_fused")
    parser.add_argument("--dataset_text_field", default="")
    parser.add_argument("--card-lock", default="", help="a file that is locked while the card is in use")
    parser.add_argument("--at", type=int, default=60, help="the step at which it happens")
    parser.add_argument("--how", choices=("stop", "sleep"), default="stop")
    return parser.parse_args()


@contextlib.contextmanager
def card_of(name: str) -> Iterator[None]:
    """Have a card for oneself, until the process has ended: an error still holds its memory."""
    if not name:
        yield
        return
    lock = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    wait_until_free()
    yield


def wait_until_free() -> None:
    """Wait until what was there before has given the card back, half a minute at most."""
    import torch

    for _ in range(60 if torch.cuda.is_available() else 0):
        if torch.cuda.device_memory_used(0) < GIB:
            return
        time.sleep(0.5)


def model_of(args: argparse.Namespace) -> Any:
    """Return a model of the named shape with random weights."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from envdoctor.memory.catalogue import catalogue_config

    config = dict(catalogue_config(args.model_name_or_path) or {}) if torch.cuda.is_available() else TINY
    config = {k: v for k, v in config.items() if k not in ("architectures", "torch_dtype", "dtype")}
    made = AutoConfig.for_model(config.pop("model_type") if config is not TINY else "qwen2", **config)
    torch.manual_seed(args.number)
    device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if torch.cuda.is_available() else "cpu"
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(made, dtype=getattr(torch, args.dtype))
    model.config.use_cache = False
    return model


def lengths_of(args: argparse.Namespace) -> Iterator[int]:
    """Yield the lengths of rows: all full, or of all lengths; of the kind `rows` long ones come late."""
    rng = random.Random(args.number)
    batch, count = args.per_device_train_batch_size, 0
    while True:
        late = args.kind == "rows" and count // batch >= args.at and count // batch % 10 == 0
        if args.kind == "rows":
            yield (
                args.max_length if late else min(args.max_length // 6, int(rng.lognormvariate(5.8, 0.6)) + 32)
            )
        elif args.number % 2:
            yield min(args.max_length, int(rng.lognormvariate(6.0, 0.6)) + 32)
        else:
            yield args.max_length
        count += 1


def rows_of(args: argparse.Namespace, count: int, vocabulary: int) -> list[dict[str, list[int]]]:
    """Return rows of tokens."""
    rng = random.Random(args.number)
    lengths = lengths_of(args)
    found = []
    for _ in range(count):
        ids = [rng.randrange(8, vocabulary)] * next(lengths)
        found.append({"input_ids": ids, "labels": list(ids)})
    return found


def padded(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a batch, padded to its longest row."""
    import torch

    longest = max(len(row["input_ids"]) for row in rows)
    fill = [(row["input_ids"], longest - len(row["input_ids"])) for row in rows]
    return {
        "input_ids": torch.tensor([[*ids, *[0] * more] for ids, more in fill]),
        "labels": torch.tensor([[*ids, *[-100] * more] for ids, more in fill]),
        "attention_mask": torch.tensor([[*[1] * len(ids), *[0] * more] for ids, more in fill]),
    }


def tokenizer() -> Any:
    """Return a tokenizer of a few words: TRL wants one."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = {"<pad>": 0, "<eos>": 1, "<unk>": 2, "a": 3}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>")


def settings(args: argparse.Namespace, folder: str) -> dict[str, Any]:
    """Return the trainer's arguments."""
    import torch

    number, on_cpu = args.number, not torch.cuda.is_available()
    return {
        "use_cpu": on_cpu, "ddp_backend": "gloo" if on_cpu and "RANK" in os.environ else None,
        "output_dir": folder, "max_steps": args.max_steps, "report_to": [], "logging_steps": 5,
        "per_device_train_batch_size": args.per_device_train_batch_size,
        "gradient_accumulation_steps": args.gradient_accumulation_steps,
        "gradient_checkpointing": args.gradient_checkpointing == "true",
        "bf16": args.bf16 == "true", "optim": args.optim,
        "save_strategy": "steps" if args.kind == "sane" and number % 3 == 0 else "no", "save_steps": 60,
        "save_total_limit": 1, "save_only_model": True,
        "eval_strategy": "steps" if args.kind == "sane" and number % 4 == 0 else "no", "eval_steps": 50,
        "dataloader_num_workers": 2 if number % 4 == 1 else 0, "remove_unused_columns": False,
    }  # fmt: skip


def trainer_of(
    args: argparse.Namespace, folder: str, keep: list[Any] | None, trl: tuple[Any, Any] | None
) -> Any:
    """Return the trainer; with `keep` it keeps each step's logits, the leak that everybody writes once."""
    from torch.utils.data import SequentialSampler

    model = model_of(args)
    count = args.per_device_train_batch_size * (args.max_steps + 2) * args.gradient_accumulation_steps
    rows = rows_of(args, min(count * 2, 8000), model.config.vocab_size)
    if trl is not None:
        from datasets import Dataset

        base, more = trl[1], {"processing_class": tokenizer()}
        made = trl[0](
            **settings(args, folder),
            max_length=args.max_length,
            dataset_kwargs={"skip_prepare_dataset": True},
        )
        train: Any = Dataset.from_list(rows)
        evaluated: Any = Dataset.from_list(rows[:32])
    else:
        from transformers import Trainer, TrainingArguments

        base, more, made = Trainer, {}, TrainingArguments(**settings(args, folder))
        train, evaluated = rows, rows[:32]

    class InOrder(base):  # type: ignore[misc, valid-type]
        def _get_train_sampler(self, *_: Any) -> Any:
            return SequentialSampler(train)

        def compute_loss(self, model: Any, inputs: Any, *words: Any, **named: Any) -> Any:
            if keep is None:
                return super().compute_loss(model, inputs, *words, **named)
            outputs = model(**{k: v for k, v in inputs.items() if k != "num_items_in_batch"})
            keep.append(outputs.logits.detach())
            return (outputs.loss, outputs) if named.get("return_outputs") else outputs.loss

    return InOrder(
        model=model,
        args=made,
        train_dataset=train,
        eval_dataset=evaluated,
        data_collator=collator(args),
        **more,
    )


def collator(args: argparse.Namespace) -> Callable[..., Any]:
    """Return what makes a batch; in the kind `ranks` one rank does not come back from it."""
    count = 0

    def load_rows(rows: list[dict[str, Any]]) -> dict[str, Any]:
        nonlocal count
        count += 1
        if args.kind == "ranks" and os.environ.get("RANK") == "1" and count == args.at:
            if args.how == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            wait_for_a_disk_that_never_answers()
        return padded(rows)

    return load_rows


def wait_for_a_disk_that_never_answers() -> None:
    """Stand still as a loader does on a dead mount."""
    time.sleep(600)


def intruder(number: int) -> None:
    """The neighbour: grows until the card is full, then stays for a while."""
    import torch

    kept = []
    try:
        while True:
            kept.append(torch.empty(GIB, dtype=torch.uint8, device="cuda"))
            time.sleep(0.12 + 0.05 * number)
    except torch.OutOfMemoryError:
        time.sleep(8)


def main(trl: tuple[Any, Any] | None = None) -> int:
    """Run the kind, with TRL's settings class and trainer where they are given."""
    args = arguments()
    import torch
    import transformers

    del torch, transformers
    with card_of(args.card_lock), tempfile.TemporaryDirectory() as folder:
        if args.kind == "intruder":
            intruder(args.number)
        else:
            keep: list[Any] | None = [] if args.kind == "leak" else None
            trainer_of(args, folder, keep, trl).train()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
