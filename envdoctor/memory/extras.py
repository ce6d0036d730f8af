"""What a config.json says beside the decoder: towers for images and sound, and how the weights are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envdoctor.memory.families import first, unfit_numbers
from envdoctor.memory.parts import seeing_model, tower_of

TOWERS = ("vision_config", "audio_config", "vit_config", "vision_tower_config")
STORED_BYTES: Mapping[str, float] = {
    "awq": 0.5 + 2.5 / 128,  # 4 bits, groups of 128 with a 16-bit scale and a 4-bit zero
    "gptq": 0.5 + 2.5 / 128,
    "hqq": 0.5 + 4 / 64,
    "nf4": 0.5 + 1 / 64 + 4 / (64 * 256),
    "mxfp4": 0.5 + 1 / 32,  # one 8-bit scale for 32 weights
    "nvfp4": 0.5 + 1 / 16,  # one 8-bit scale for 16 weights
    "int4-g32": 0.5 + 2 / 32,  # groups of 32 with a 16-bit scale
    "fp8": 1.0,
    "int8": 1.0,
    "aqlm": 0.25 + 1 / 64,
}
"""Bytes a weight of a linear in the files of each method."""

JOINING = ("spatial_merge_size", "scale_factor", "downsample_factor")
"""Keys that tell how many patches a side are joined into one; a downsample_ratio is the reverse of it."""


def tower_parameters(config: Mapping[str, Any]) -> int:
    """Parameters of all towers, by the usual transformer's count, and of what leads to the decoder."""
    towers = [part for key in TOWERS if isinstance(part := config.get(key), Mapping)]
    return sum(_tower(part) for part in towers) + sum(_projector(config, part) for part in towers[:1])


def _projector(config: Mapping[str, Any], tower: Mapping[str, Any]) -> int:
    text = config.get("text_config")
    hidden, inner = (part.get("hidden_size") if isinstance(part, Mapping) else 0 for part in (text, tower))
    kind = row.projector if (row := seeing_model(config)) else ""
    if not (kind and isinstance(hidden, int) and isinstance(inner, int)):
        return 0
    joined = inner * _joined(config) ** 2
    if kind == "gated":
        wide = config.get("alignment_intermediate_size")
        wide = wide if isinstance(wide, int) else hidden
        return joined * wide + wide // 2 * hidden
    if kind == "merged":
        return joined * inner + inner * hidden + hidden * hidden
    return joined * hidden + (hidden * hidden if kind == "two" else 0)


def _joined(config: Mapping[str, Any]) -> int:
    """How many patches a side become one."""
    ratio, side = config.get("downsample_ratio"), first(config, JOINING)
    if isinstance(ratio, float) and 0 < ratio <= 1:
        return round(1 / ratio)
    return side if isinstance(side, int) and 0 < side <= 64 else 1


def _tower(told: Mapping[str, Any]) -> int:
    unfit = unfit_numbers(told)  # towers that narrow as they go up list a width for each stage
    part = {key: value for key, value in told.items() if key not in unfit}
    hidden = first(part, ("embed_dim", "hidden_size", "d_model", "width"))
    depth = first(part, ("depth", "num_hidden_layers", "encoder_layers", "layers"))
    if not isinstance(hidden, int) or not isinstance(depth, int):
        return 0
    ratio = part.get("mlp_ratio") or 4
    ffn = first(part, ("intermediate_size", "encoder_ffn_dim", "mlp_dim")) or int(hidden * ratio)
    known = tower_of({"vision_config": part})
    gated = 3 if (known and known.gated) or part.get("hidden_act") in ("silu", "swish") else 2
    patch = size if isinstance(size := part.get("patch_size"), int) and 0 < size <= hidden else 14
    frames = int(part.get("temporal_patch_size") or 1)
    blocks = depth * (4 * hidden * hidden + gated * hidden * int(ffn))
    places = 0 if known and known.rope else _places(part) * hidden
    return blocks + 3 * frames * patch * patch * hidden + places + _mergers(part, hidden)


def _places(part: Mapping[str, Any]) -> int:
    """Learned positions: one a patch of a whole image, where a tower tells that image's size."""
    size, patch = (
        side[0] if isinstance(side := part.get(key), list) and side else side
        for key in ("image_size", "patch_size")
    )
    if not (isinstance(size, int) and isinstance(patch, int)) or not 0 < patch <= size <= 1 << 14:
        return 0
    return (size // patch) ** 2


def _mergers(part: Mapping[str, Any], hidden: int) -> int:
    """Parameters of what joins neighbouring patches for the decoder, once more for each layer tapped.

    https://github.com/huggingface/transformers/blob/main/src/transformers/models/qwen3_vl/modeling_qwen3_vl.py
    """
    outputs = part.get("out_hidden_size") or (part.get("hidden_size") if "embed_dim" in part else None)
    side = part.get("spatial_merge_size")
    if not isinstance(side, int) or not isinstance(outputs, int):
        return 0
    joined = hidden * side * side
    tapped = part.get("deepstack_visual_indexes")
    times = 1 + (len(tapped) if isinstance(tapped, list) else 0)
    places = int(part.get("num_position_embeddings") or 0)
    return times * (joined * joined + joined * outputs) + places * hidden


def first_group(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """What compressed-tensors' first group of a config says of its weights."""
    groups = part.get("config_groups")
    group = groups.get("group_0") if isinstance(groups, Mapping) else None
    weights = group.get("weights") if isinstance(group, Mapping) else None
    return weights if isinstance(weights, Mapping) else {}


def stored_as(config: Mapping[str, Any]) -> str:
    """How the weights lie in the files: a key of STORED_BYTES, or "" for plain ones."""
    text = config.get("text_config")
    part = config.get("quantization_config") or (text if isinstance(text, Mapping) else {}).get(
        "quantization_config"
    )
    if not isinstance(part, Mapping):
        return ""
    method = str(part.get("quant_method") or "").lower()
    if method == "bitsandbytes" or part.get("load_in_4bit") or part.get("load_in_8bit"):
        return "int8" if part.get("load_in_8bit") else "nf4"
    if method in ("gptq", "awq") and part.get("bits") == 8:
        return "int8"
    if method == "compressed-tensors":
        small = first_group(part).get("group_size") == 32
        return "fp8" if "float" in str(part.get("format", "")) else "int4-g32" if small else "awq"
    if method == "modelopt":
        return "nvfp4" if "FP4" in str(part.get("quant_algo")) else "fp8"
    return {"fbgemm_fp8": "fp8"}.get(method, method if method in STORED_BYTES else "")
