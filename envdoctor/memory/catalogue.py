"""Shapes by name: the built-in catalogue of the matrix, and configs from the Hub's cache or the Hub."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envdoctor.errors import InputError, Unavailable

_HUB_PAGE = re.compile(r"https://huggingface\.co/([\w.-]+/[\w.-]+)/")
_SUFFIX = re.compile(r"[-_](instruct|chat|it|hf|base|v\d+\.\d+)$")


def catalogue_name(model: str) -> str:
    """Return a Hub name as the catalogue spells it: lower case, without organisation and edition."""
    name = model.rsplit("/", 1)[-1].lower()
    while (shorter := _SUFFIX.sub("", name)) != name:
        name = shorter
    return name


def catalogue_config(model: str) -> Mapping[str, Any] | None:
    """Return the catalogue's config keys of that name, or None when it is not there."""
    from envdoctor.matrix import load_matrix

    wanted = catalogue_name(model)
    rows = load_matrix().rows("model")
    return next((row["config"] for row in rows if row["name"] == wanted), None)


def hub_id(model: str) -> str:
    """Return the Hub's id of a catalogue name, as its row's source states it; anything else as it is."""
    from envdoctor.matrix import load_matrix

    for row in load_matrix().rows("model"):
        if row["name"] == model and (found := _HUB_PAGE.match(row["source"])):
            return found[1]
    return model


def hub_config(model: str) -> Mapping[str, Any] | None:
    """Return the config.json of a Hub id from the local cache, else from the Hub; None without either."""
    cached = _cached_config(model)
    return cached if cached is not None else _fetched_config(model)


def _cached_config(model: str) -> Mapping[str, Any] | None:
    home = os.environ.get("HF_HUB_CACHE") or os.path.join(
        os.environ.get("HF_HOME") or os.path.expanduser("~/.cache/huggingface"), "hub"
    )
    snapshots = Path(home) / ("models--" + model.replace("/", "--")) / "snapshots"
    for path in sorted(snapshots.glob("*/config.json")):
        try:
            data = json.loads(path.read_bytes())
        except (OSError, ValueError):
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
