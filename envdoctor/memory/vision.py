"""What a config.json says of the tower that reads images: its sizes, and what leads to the decoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envdoctor.memory.families import ACTIVATIONS, LARGEST, first
from envdoctor.values import dataclass

LARGEST_IMAGE = 1 << 14
"""Pixels a side: no processor passes on a longer one."""


@dataclass(frozen=True, slots=True)
class Vision:
    """A tower of `layers` blocks over patches of `patch` pixels a side, and its way to the decoder.

    `frames` images share a patch; `merge` patches a side become one token of `outputs` elements. `fixed` is
    the side of the only image that it takes, 0 for any; `rope` is "" for none, "wide" where it turns in fp32.
    `ending` is what follows the blocks: see ENDINGS. `hooked` tells that peft's and transformers'
    `enable_input_require_grads` finds its patches' embedding.
    """

    hidden: int
    layers: int
    heads: int
    ffn: int
    patch: int
    outputs: int
    ending: str
    frames: int = 1
    merge: int = 1
    fixed: int = 0
    tokens_each: int = 0  # of an image, where the model says so itself
    norm: str = "layer"
    gated: bool = False
    bias: bool = True
    activation: str = "gelu_tanh"
    fused: bool = False
    rope: str = ""
    masked: bool = False  # images stand one after the other, held apart by a mask
    leading: int = 0  # tokens before the patches
    scaled: bool = False  # what a block adds is scaled, element by element
    normed: bool = False  # a norm after the last block
    tapped: int = 0  # further layers whose results go to the decoder
    listed: bool = False  # the results of all layers are asked for
    unused: int = 0  # blocks at the end whose result nobody takes
    widens: bool = False  # a norm before the first block leaves the stream in fp32
    both_ways: bool = False  # the decoder sees an image's tokens in both directions, by a mask
    hooked: bool = True

    @property
    def head_dim(self) -> int:
        """Width of a head."""
        return self.hidden // self.heads

    def sides(self, told: tuple[int, int]) -> tuple[int, int]:
        """Height and width of an image: those told, where the tower takes any."""
        return (self.fixed, self.fixed) if self.fixed else told

    def patches(self, height: int, width: int) -> int:
        """How many rows of the tower an image of that size is."""
        return (height // self.patch) * (width // self.patch) + self.leading

    def tokens(self, height: int, width: int) -> int:
        """How many tokens of the decoder's sequence an image of that size is."""
        if self.tokens_each:
            return self.tokens_each
        side = self.patch * self.merge
        return (height // side) * (width // side)


_QWEN: Mapping[str, Any] = {"fused": True, "rope": "wide", "ending": "merger", "activation": "gelu_tanh"}
_SIGLIP: Mapping[str, Any] = {"normed": True}
_PIXTRAL: Mapping[str, Any] = {
    "norm": "rms", "gated": True, "bias": False, "rope": "plain", "masked": True, "activation": "silu",
}  # fmt: skip
TOWERS: Mapping[str, Mapping[str, Any]] = {
    "qwen2_vl": {**_QWEN, "activation": "quick_gelu"},
    "qwen2_5_vl": {**_QWEN, "norm": "rms", "gated": True, "activation": "silu"},
    "qwen3_vl": {**_QWEN, "hooked": False},
    "siglip_vision_model": _SIGLIP,
    "smolvlm_vision": _SIGLIP,
    "idefics3_vision": _SIGLIP,
    "clip_vision_model": {"leading": 1, "activation": "quick_gelu", "widens": True},
    "internvl_vision": {"leading": 1, "scaled": True, "activation": "gelu"},
    "pixtral": _PIXTRAL,
}  # fmt: skip
"""What a tower of each type builds.

https://github.com/huggingface/transformers/tree/v5.17.0/src/transformers/models (modeling_*.py of each type)
"""
WHOLES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "qwen2_vl": ("qwen2_vl", {}),
    "qwen2_5_vl": ("qwen2_5_vl", {}),
    "qwen3_vl": ("qwen3_vl", {}),
    "qwen3_vl_moe": ("qwen3_vl", {}),
    "gemma3": ("siglip_vision_model", {"ending": "pooled", "both_ways": True}),
    "paligemma": ("siglip_vision_model", {"ending": "one", "both_ways": True}),
    "smolvlm": ("smolvlm_vision", {"ending": "shuffled"}),
    "idefics3": ("idefics3_vision", {"ending": "shuffled"}),
    "llava": ("clip_vision_model", {"ending": "two", "listed": True}),
    "internvl": ("internvl_vision", {"ending": "shuffled-two"}),
    "mistral3": ("pixtral", {"ending": "merged-two", "listed": True}),
}
"""Of each model of several parts: its usual tower, and what it does with it."""


def parse_vision(config: Mapping[str, Any], hidden: int) -> Vision | None:
    """Return the tower that a config describes, for a decoder `hidden` wide; None for one not known here."""
    whole, told = config.get("model_type"), config.get("vision_config")
    if not isinstance(whole, str) or whole not in WHOLES or not isinstance(told, Mapping):
        return None
    usual, ways = WHOLES[whole]
    kind = str(told.get("model_type"))
    kind = kind if kind in TOWERS and not usual.startswith("qwen") else usual
    traits: dict[str, Any] = {**TOWERS[kind], **ways}
    found = _sizes(told, usual.startswith("qwen"))
    if found is None:
        return None
    if acts := ACTIVATIONS.get(str(told.get("hidden_act"))):
        traits["activation"] = acts
    if kind == "qwen2_5_vl":
        traits["activation"] = "silu"
    side = told.get("image_size")
    side = side[0] if isinstance(side, list) and side else side
    free = traits.get("masked") or usual.startswith("qwen")
    fixed = side if isinstance(side, int) and not isinstance(side, bool) and not free else 0
    if fixed and not found["patch"] <= fixed <= LARGEST_IMAGE:
        return None
    taken = config.get("vision_feature_layer", -2 if whole == "llava" else -1)
    if isinstance(taken, int) and -found["layers"] <= taken < 0:
        traits["unused"] = -taken - 1
    each = config.get("mm_tokens_per_image") or (256 if whole == "gemma3" else 0)
    return Vision(
        **found, **traits, outputs=hidden, merge=_merge(config, told), fixed=fixed,
        tokens_each=each if isinstance(each, int) and 0 < each <= LARGEST else 0, tapped=_taps(told),
    )  # fmt: skip


def _sizes(told: Mapping[str, Any], qwen: bool) -> dict[str, Any] | None:
    """The sizes that every tower has; None where one of them is missing or is no size."""
    # Qwen2-VL's `hidden_size` is the decoder's
    names = {
        "hidden": ("embed_dim", "hidden_size"), "layers": ("depth", "num_hidden_layers"),
        "heads": ("num_heads", "num_attention_heads"), "patch": ("patch_size",),
    }  # fmt: skip
    usual = {"heads": 16, "patch": 14} if qwen else {"patch": 14}
    found: dict[str, Any] = {name: first(told, keys) or usual.get(name) for name, keys in names.items()}
    if isinstance(found["patch"], list) and found["patch"]:
        found["patch"] = found["patch"][0]
    if not all(_is_size(size) for size in found.values()) or found["hidden"] % found["heads"]:
        return None
    ratio = told.get("mlp_ratio")
    ratio = ratio if isinstance(ratio, (int, float)) and 0 < ratio <= 64 else 4
    wide = first(told, ("intermediate_size",))
    found["ffn"] = wide if _is_size(wide) else int(found["hidden"] * ratio)
    frames = told.get("temporal_patch_size")
    found["frames"] = frames if _is_size(frames) and qwen else 2 if qwen else 1
    return found


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST


def _merge(config: Mapping[str, Any], told: Mapping[str, Any]) -> int:
    """How many patches a side become one token."""
    usual = {"internvl": 2, "smolvlm": 2, "idefics3": 2, "mistral3": 2, "llava": 1, "paligemma": 1}
    ratio = config.get("downsample_ratio")
    if isinstance(ratio, float) and 0 < ratio <= 1:
        return round(1 / ratio)
    side = first(config, ("spatial_merge_size", "scale_factor")) or told.get("spatial_merge_size")
    plain = usual.get(str(config.get("model_type")), 2)
    return side if isinstance(side, int) and _is_size(side) and side <= 64 else plain


def _taps(told: Mapping[str, Any]) -> int:
    tapped = told.get("deepstack_visual_indexes")
    return len(tapped) if isinstance(tapped, list) else 0
