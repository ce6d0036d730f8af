"""The parts of a model: what their classes fill in where a config.json is written in short."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from envdoctor.memory.families import depth_of

if TYPE_CHECKING:
    from envdoctor.matrix import tables

STACKED = ("decoder", "encoder")
_OF_THE_WHOLE = frozenset({"vision_config", "quantization_config", "tie_word_embeddings", "model_type"})


@cache
def _towers() -> Mapping[str, tables.TowerRow]:
    from envdoctor.matrix import load_matrix, tables

    return {row.model_type: row for row in load_matrix().rows(tables.TowerRow)}


@cache
def seeing_models() -> Mapping[str, tables.SeeingModelRow]:
    """Return what is known of models that see images, by their type."""
    from envdoctor.matrix import load_matrix, tables

    return {row.model_type: row for row in load_matrix().rows(tables.SeeingModelRow)}


def seeing_model(config: Mapping[str, Any]) -> tables.SeeingModelRow | None:
    """Return what is known of the model of a config, or None."""
    return seeing_models().get(str(config.get("model_type")))


def tower_of(config: Mapping[str, Any]) -> tables.TowerRow | None:
    """Return what is known of a config's tower: of the type that it tells, else of the whole's usual one."""
    told, whole = config.get("vision_config"), seeing_model(config)
    kind = str(told.get("model_type")) if isinstance(told, Mapping) else ""
    return _towers().get(kind) or (_towers().get(whole.tower) if whole else None)


def writing_part(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the part of a config that tells the layers of what writes, or None where the whole tells them.

    Of an encoder and a decoder, each told as a part, that is the deeper.
    """
    told = [part for key in ("text_config", *STACKED) if isinstance(part := config.get(key), Mapping)]
    return max(told, key=lambda part: depth_of(part) or 0) if told else None


def unlike_stacks(config: Mapping[str, Any]) -> bool:
    """Tell whether a config's encoder and decoder, each told as a part, are of unlike depths."""
    return len({depth_of(part) for key in STACKED if isinstance(part := config.get(key), Mapping)}) > 1


@cache
def _texts() -> Mapping[str, Mapping[str, int]]:
    from envdoctor.matrix import load_matrix, tables

    return {row.model_type: row.config for row in load_matrix().rows(tables.TextPartRow)}


def completed(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a config whose parts say everything that decides memory, as their classes would fill them in."""
    whole = seeing_model(config)
    if whole and whole.flat and not isinstance(config.get("text_config"), Mapping):
        text = {key: value for key, value in config.items() if key not in _OF_THE_WHOLE}
        config = {key: value for key, value in config.items() if key in _OF_THE_WHOLE}
        config = {**config, "text_config": {**text, "model_type": whole.text}}
    found = {**whole.config, **config} if whole else dict(config)
    if isinstance(told := config.get("text_config"), Mapping):
        kind = str(told.get("model_type") or (whole.text if whole else ""))
        if kind:
            found["text_config"] = {**_texts().get(kind, {}), "model_type": kind, **told}
    if isinstance(told := config.get("vision_config"), Mapping):
        tower = tower_of(config)
        found["vision_config"] = {**(tower.config if tower else {}), **told}
    return found
