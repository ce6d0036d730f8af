"""Settings of training and serving runs: native key names to common ones, values to one spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from envdoctor.facts import Setting
from envdoctor.facts.quantities import parse_count
from envdoctor.matrix import tables
from envdoctor.pastes.sightings import Sighting
from envdoctor.values import dataclass

_TRUE = frozenset({"true", "yes", "on", "1", "enabled", "enable", "y", "是", "开启", "启用"})
_FALSE = frozenset(
    {"false", "no", "off", "0", "disabled", "disable", "n", "none", "null", "否", "关闭", "未启用"}
)
_DTYPES = (
    ("bf16", ("bf16", "bfloat16")),
    ("fp16", ("fp16", "float16", "half")),
    ("fp8", ("fp8", "float8")),
    ("fp32", ("fp32", "float32", "float")),
)
_ATTENTIONS = {
    "fa2": "flash_attention_2", "flash_attention_2": "flash_attention_2", "flash_attn": "flash_attention_2",
    "flash-attn": "flash_attention_2", "flash": "flash_attention_2", "flash_attention": "flash_attention_2",
    "fa3": "flash_attention_3", "flash_attention_3": "flash_attention_3", "sdpa": "sdpa", "eager": "eager",
    "disabled": "eager", "xformers": "xformers", "true": "flash_attention_2",
}  # fmt: skip
_OF_ANOTHER = re.compile(
    r"(?:^|[._])(?:generation|generate|gen|sampling|decoding|prompts?|tokenizer|tokenization|logging|logger|"
    r"logs?|display|task_specific_params|curriculum\w{0,9}|text_config|vision\w{0,8}|audio\w{0,8}|speech|"
    r"image\w{0,10}|preview|memory_bank|cache|retriever|reranker|rag)(?:$|[._])"
)
"""Sections of a settings file in which a length, a batch or a rate is no setting of the run itself."""
_SHORTEST = 32
"""Tokens below which a length under a section's key is no length of a run's rows."""
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]{0,30}(?:_[A-Z0-9]{1,30}){1,8}")
"""How a program names a value that it holds elsewhere (`MAX_SEQ_LENGTH`)."""
_COUNTS = """batch epochs gpu_memory_utilization grad_accum learning_rate lora_alpha lora_dropout lora_rank
pp quant seq tp max_lora_rank max_model_len max_num_seqs"""
_COUNTED = frozenset(_COUNTS.split())
"""Settings that are numbers, or on and off."""
_TERM = re.compile(r"(\d{1,9}) ?(//|\*) ?(?:(\d{1,9})\s*$|(?=[a-z_]))")
"""A number that code divides or multiplies: `128 // devices`."""
_UNTOLD = frozenset({"auto", "", "???", "["})
_METHODS = (("qlora", "qlora"), ("lora", "lora"), ("freeze", "freeze"), ("full", "full"), ("全参", "full"))
_TASKS = ("grpo", "dpo", "kto", "orpo", "ppo", "sft", "serve", "rm", "pt")


@dataclass(frozen=True, slots=True)
class KeyTable:
    """Native key names by their folded form; a nested key is found by its longest known suffix."""

    by_native: Mapping[str, tuple[tables.KeyRow, ...]]

    def find(self, key: str) -> tuple[tables.KeyRow, ...]:
        """Return the rows for a key path such as `zero_optimization.stage`; empty when none is known."""
        folded = "" if key in LAUNCHED else fold_key(key)
        if folded not in self.by_native and is_of_another(folded):
            return ()
        while True:
            if rows := self.by_native.get(folded):
                return rows
            _, dot, folded = folded.partition(".")
            if not dot:
                return ()


LAUNCHED = ("RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE")
"""Variables of a launcher that are spelt like settings."""


def is_of_another(path: str) -> bool:
    """True for a key in a section of another matter than the run itself."""
    return bool(_OF_ANOTHER.search(fold_key(path.rpartition(".")[0])))


@lru_cache(maxsize=2)
def key_table(keys: tuple[tables.KeyRow, ...]) -> KeyTable:
    """Return the table in which key paths are looked up."""
    by_native: dict[str, list[tables.KeyRow]] = {}
    for key in keys:
        by_native.setdefault(fold_key(key.native), []).append(key)
    return KeyTable({native: tuple(rows) for native, rows in by_native.items()})


def fold_key(key: str) -> str:
    """Return a key as it is compared: lower case, underscores, no leading dashes."""
    return key.strip("-`'\"* ").lower().replace("-", "_").replace(" ", "_")


def setting_sightings(
    table: KeyTable, key: str, value: Any, source: str, framework: str | None = None
) -> Iterator[Sighting]:
    """Yield the settings that a native key and its value tell; nothing for unknown keys and `auto`."""
    rows = table.find(key)
    if framework:
        rows = tuple(r for r in rows if r.framework in (framework, "any")) or rows
    text = _plain(value)
    told: set[str] = set()
    for row in rows:
        common = common_value(row, text)
        if common is None or row.canonical in told or _is_process(row, common):
            continue
        if row.canonical == "seq" and int(common) < _SHORTEST and fold_key(key) != fold_key(row.native):
            continue  # a section of its own counts otherwise
        told.add(row.canonical)
        mine = framework or (row.framework if len(rows) == 1 and row.framework != "any" else None)
        yield Sighting("setting", Setting(row.canonical, common, source, key.lstrip("-"), mine), source)
        yield from _implied(row, text, key, mine, source)


def _is_process(row: tables.KeyRow, value: str) -> bool:
    """True for `rank=0` to `rank=7`, which launchers write of processes; adapters have 4, 8 and more."""
    return bool(row.beside) and value in tuple("0123567")


def unambiguous(settings: Sequence[Setting], keys: Sequence[tables.KeyRow]) -> tuple[Setting, ...]:
    """Return the settings without those whose key means it only beside others, and stands without them.

    `rank = 0` is a process's number, and `rank: 16` beside `lora_alpha` an adapter's.
    """
    needs = {(fold_key(row.native), row.canonical): row.beside for row in keys if row.beside}

    def meant(setting: Setting) -> bool:
        key = fold_key((setting.native_key or "").rpartition(".")[2])
        words = needs.get((key, setting.key), ())
        others = [one for one in settings if one is not setting]
        told = " ".join(f"{one.native_key} {one.value}" for one in others).lower()
        return not words or any(word in told for word in words)

    return tuple(filter(meant, settings))


def common_value(row: tables.KeyRow, text: str) -> str | None:
    """Return the common spelling of a native value, or None when it tells nothing (`auto`, a variable)."""
    folded = text.lower()
    if row.values:
        common = row.values.get(folded, row.values.get("*"))
        return common if common != "=" else folded
    if folded in _UNTOLD or text.startswith(("$", "<", "{", "args.", "config.", "self.")):
        return text if row.canonical == "device_map" and folded == "auto" else None
    if row.canonical in _COUNTED and _CONSTANT.fullmatch(text):
        return None
    if row.canonical == "model":
        return _model(text)
    spell = _SPELLINGS.get(row.canonical)
    return spell(folded) if spell else text[:300]


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    return str(value)[:1000].strip().strip("'\"`").rstrip(",").strip("'\"`").strip()


def _implied(
    row: tables.KeyRow, text: str, key: str, framework: str | None, source: str
) -> Iterator[Sighting]:
    """Yield what a value says besides: offloading beside a ZeRO stage, 4 bits beside QLoRA."""
    folded = text.lower()
    if row.canonical == "zero_stage" and re.search(r"off_?load", folded):
        if not re.search(r"off_?load_?params?(?![a-z])", folded):
            yield Sighting("setting", Setting("offload_optimizer", "true", source, key, framework), source)
        if common_value(row, text) == "3":
            yield Sighting("setting", Setting("offload_params", "true", source, key, framework), source)
    if row.canonical == "offload_optimizer" and "param" in folded:
        yield Sighting("setting", Setting("offload_params", "true", source, key, framework), source)
    if row.canonical == "method" and "qlora" in folded:
        yield Sighting("setting", Setting("quant", "nf4", source, key, framework), source)


def _boolean(text: str) -> str | None:
    if text in _TRUE:
        return "true"
    return "false" if text in _FALSE else None


def _present(text: str) -> str | None:
    """Return whether an offloading device or a path is named."""
    return _boolean(text) or ("true" if text else None)


def _integer(text: str) -> str | None:
    """Return a whole number; a quotient of numbers is worked out, what names a variable is not known."""
    if (term := _TERM.match(text)) and (term[2] == "//" or not term[3]):
        divisor = int(term[3]) if term[3] and term[2] == "//" else 0
        return str(int(term[1]) // divisor) if divisor else None
    number = parse_count(text)
    return None if number is None else str(number)


def _fraction(text: str) -> str | None:
    if match := re.match(r"(\d{1,3}(?:\.\d{1,6})?)\s?%", text):
        return f"{float(match[1]) / 100:g}"
    match = re.match(r"(\d{0,4}\.?\d{1,6})(?![\w.])", text)
    return f"{float(match[1]):g}" if match else None


def _dtype(text: str) -> str | None:
    return next((name for name, words in _DTYPES if any(word in text for word in words)), None)


def _attention(text: str) -> str | None:
    return _ATTENTIONS.get(text.removeprefix("kernels-community/"))


def _zero_stage(text: str) -> str | None:
    match = re.search(r"(?:zero|stage|[_/-]z|^z)[ _-]{0,2}([0-3])(?!\d)", text) or re.match(
        r"([0-3])(?![\d.])", text
    )
    return match[1] if match else None


def _quant(text: str) -> str | None:
    if match := re.match(r"(4|8)(?![\d.])", text):
        return {"4": "nf4", "8": "int8"}[match[1]]
    if text in _FALSE or text in ("16", "32"):
        return None
    return "nf4" if text == "bnb" else text[:40]


def _method(text: str) -> str | None:
    return next((name for word, name in _METHODS if word in text), None)


def _task(text: str) -> str | None:
    return next((task for task in _TASKS if re.search(rf"(?<![a-z]){task}(?![a-z])", text)), None)


def _model(text: str) -> str | None:
    """Return a path or a name of a model; a family alone (`llama`, a chat template's name) is none."""
    text = re.split(r"[,;] ", text, maxsplit=1)[0]
    told = re.search(r"[A-Za-z]", text) and re.search(r"[\d/-]", text) and "(" not in text
    return text[:300] if told else None


_SPELLINGS: Mapping[str, Callable[[str], str | None]] = {
    **dict.fromkeys(
        (
            "batch",
            "grad_accum",
            "seq",
            "lora_rank",
            "gpus",
            "nodes",
            "tp",
            "pp",
            "max_model_len",
            "max_loras",
        ),
        _integer,
    ),
    **dict.fromkeys(
        (
            "max_num_seqs",
            "max_num_batched_tokens",
            "graph_batch",
            "max_loras",
            "num_generations",
            "max_completion",
        ),
        _integer,
    ),
    **dict.fromkeys(("bf16", "fp16", "tf32", "grad_ckpt", "low_cpu_mem_usage", "enforce_eager"), _boolean),
    **dict.fromkeys(("liger", "packing", "double_quant", "enable_lora", "sleep_mode"), _boolean),
    **dict.fromkeys(("offload_optimizer", "offload_params"), _present),
    **dict.fromkeys(("vllm_utilization", "static_share"), _fraction),
    "dtype": _dtype,
    "attn": _attention,
    "zero_stage": _zero_stage,
    "quant": _quant,
    "method": _method,
    "task": _task,
}
