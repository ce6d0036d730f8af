"""Shapes by name: the built-in catalogue of the matrix, and configs from the Hub's cache or the Hub."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdoctor.errors import InputError, Unavailable
from envdoctor.inputs import parse_json, read_input
from envdoctor.memory.model_config import parse_shape, read_config
from envdoctor.memory.shape import ModelShape
from envdoctor.values import replace

if TYPE_CHECKING:
    from envdoctor.matrix import tables

_HUB_PAGE = re.compile(r"https://huggingface\.co/([\w.-]+/[\w.-]+)/")
_EDITION = (
    r"instruct|chat|it|hf|base|pt|thinking|sft|unsloth|gguf|mlx|2[4-9](?:0[1-9]|1[0-2])|20\d{6}"
    r"|awq|gptq|hqq|fp8|fp8-dynamic|nvfp4|mxfp4|bf16|bnb-[48]bit|bnb|nf4|int[48]|[48]bits?|w4a16|w8a8"
)
_SUFFIX = re.compile(rf"[-_](?:{_EDITION})$|(?<!deepseek)[-_]v\d+\.\d+$")
_LATER = re.compile(r"[-_](?:(?:0[1-9]|1[0-2])[0-3]\d|preview|zero|dpo|rl|1m|\d{2,3}k|speciale|terminus)$")
"""Dates and stages that a name may end on, where the catalogue has no row of its own for it."""
_SIZE = re.compile(r"\d+(\.\d+)?[bm]|\d+x\d+b")
_BUILT_ON = frozenset(
    (
        *("vl", "vision", "llava", "omni", "audio", "speech", "video", "eagle", "eagle3", "draft", "medusa"),
        *("speculator", "lora", "adapter", "pruned", "width", "depth", "minitron", "reap", "embed"),
        *("embedding", "chinese"),
    )
)
"""Words of names that say that a model has other parts than the one it is named after."""
_PREFIX = re.compile(r"^(meta|unsloth|official)[-_]")
_STORED = (
    (re.compile(r"awq|w4a16"), {"quant_method": "awq", "bits": 4}),
    (re.compile(r"gptq[^/]{0,40}(?:int8|8bit)|w8a8|-int8"), {"quant_method": "gptq", "bits": 8}),
    (re.compile(r"gptq"), {"quant_method": "gptq", "bits": 4}),
    (re.compile(r"hqq"), {"quant_method": "hqq", "bits": 4}),
    (re.compile(r"nvfp4"), {"quant_method": "modelopt", "quant_algo": "NVFP4"}),
    (re.compile(r"fp8"), {"quant_method": "fp8"}),
    (re.compile(r"bnb-8bit"), {"quant_method": "bitsandbytes", "load_in_8bit": True}),
    (re.compile(r"bnb-4bit|nf4"), {"quant_method": "bitsandbytes", "load_in_4bit": True}),
)
"""What an edition's name tells of how its weights are stored."""


def catalogue_name(model: str) -> str:
    """Return a name people use as the catalogue spells it: lower case, without organisation and edition."""
    name = re.sub(r"[\s:]+", "-", model.strip().rsplit("/", 1)[-1].lower())
    name = re.sub(r"(?<=\d)_(?=\d)", ".", re.sub(r"-chat(?=-\d)", "", name))
    while (shorter := _SUFFIX.sub("", _PREFIX.sub("", name))) != name:
        name = shorter
    return name


def _row(model: str) -> tables.ModelRow | None:
    """The row of a name, or of the name less the dates and stages that it ends on."""
    from envdoctor.matrix import load_matrix, tables

    rows = {row.name: row for row in load_matrix().rows(tables.ModelRow)}
    name = catalogue_name(model)
    while name not in rows and (shorter := _LATER.sub("", name)) != name:
        name = catalogue_name(shorter)
    return rows.get(name)


def nearest_names(model: str) -> tuple[str, ...]:
    """Return the catalogue's names that come nearest to one that it does not have."""
    from difflib import get_close_matches

    from envdoctor.matrix import load_matrix, tables

    names = [row.name for row in load_matrix().rows(tables.ModelRow)]
    return tuple(get_close_matches(catalogue_name(model), names, n=3, cutoff=0.6))


def _stored(model: str) -> Mapping[str, Any]:
    edition = model.rsplit("/", 1)[-1].lower()
    found = next((part for pattern, part in _STORED if pattern.search(edition)), None)
    return {"quantization_config": found} if found else {}


def catalogue_config(model: str) -> Mapping[str, Any] | None:
    """Return the catalogue's config keys of that name, or None when it is not there."""
    found = _row(model)
    return None if found is None else {**found.config, **_stored(model)}


def hub_id(model: str) -> str:
    """Return the Hub's id of a catalogue name, as its row's source states it; anything else as it is."""
    from envdoctor.matrix import load_matrix, tables

    for row in load_matrix().rows(tables.ModelRow):
        if row.name == model and (page := _HUB_PAGE.match(row.source)):
            return page[1]
        if row.name == model and row.hub:
            return row.hub
    return model


def hub_config(model: str) -> Mapping[str, Any] | None:
    """Return the config.json of a Hub id from the local cache, else from the Hub; None without either."""
    cached = _cached_config(model)
    return cached if cached is not None else _fetched_config(model)


def _cached_config(model: str) -> Mapping[str, Any] | None:
    from envdoctor.memory.model_config import MAX_CONFIG_BYTES

    home = os.environ.get("HF_HUB_CACHE") or os.path.join(
        os.environ.get("HF_HOME") or os.path.expanduser("~/.cache/huggingface"), "hub"
    )
    snapshots = Path(home) / ("models--" + model.replace("/", "--")) / "snapshots"
    for path in sorted(snapshots.glob("*/config.json")):
        try:
            data = parse_json(read_input(path, MAX_CONFIG_BYTES))
        except (InputError, ValueError):
            continue
        if isinstance(data, dict):
            return data
    return None


def _fetched_config(model: str) -> Mapping[str, Any] | None:
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", model):
        raise InputError(f"--model {model}: no Hub id")
    if os.environ.get("HF_HUB_OFFLINE") == "1":
        return None
    from envdoctor.memory import hub

    try:
        return hub.fetch_config(model)
    except Unavailable:
        return None


def find_shape(model: str) -> ModelShape:
    """Return the shape of a folder, a config.json, a catalogue's name or a Hub id.

    Raises InputError for a name that is none of these, Unavailable when the Hub cannot be reached.
    """
    config = _known_config(model)
    akin = _akin(model) if config is None else None
    shape = replace(parse_shape(find_config(model) if config is None else config, model), name=model)
    if akin is None:
        return shape
    told = f"{model} is taken for {akin.name} by its name, as its config.json is out of reach"
    return replace(shape, uncertain="; ".join(filter(None, (told, shape.uncertain))))


def find_config(model: str) -> Mapping[str, Any]:
    """Return the config that `find_shape` reads; raises as it does."""
    if (known := _known_config(model)) is not None:
        return known
    if (akin := _akin(model)) is not None:
        return {**akin.config, **_stored(model)}
    if _is_hub_id(model):
        raise Unavailable(
            f"--model {model}: not in the local cache, and the Hub is out of reach; a config.json will do"
        )
    near = ", ".join(nearest_names(model))
    meant = f"; nearest: {near}" if near else ""
    raise InputError(
        f"--model {model}: no such folder, file or name in the catalogue{meant}; a config.json will do"
    )


def _known_config(model: str) -> Mapping[str, Any] | None:
    """The config at a path, in the catalogue, in the Hub's cache or on the Hub; None without any."""
    path = Path(model)
    if os.path.exists(path):
        return read_config(path)
    if (known := catalogue_config(model)) is not None:
        return known
    return hub_config(model) if _is_hub_id(model) else None


def _is_hub_id(model: str) -> bool:
    return model.count("/") == 1 and not model.endswith(".json") and not model.startswith((".", "/"))


def _akin(model: str) -> tables.ModelRow | None:
    """The row that a tuned model is named after, `qwen3-8b` in `DeepSeek-R1-0528-Qwen3-8B`; None for names of
    another size, or of what is built onto or cut from the model."""
    from envdoctor.matrix import load_matrix, tables

    if os.path.sep in model and not _is_hub_id(model):
        return None
    words = catalogue_name(model).split("-")
    if _BUILT_ON.intersection(words) or len(set(filter(_SIZE.fullmatch, words))) != 1:
        return None
    spelt = f"-{'-'.join(words)}-"
    rows = [row for row in load_matrix().rows(tables.ModelRow) if f"-{row.name}-" in spelt]
    named = [row for row in rows if any(map(_SIZE.fullmatch, row.name.split("-")))]
    return max(named, key=lambda row: len(row.name), default=None)
