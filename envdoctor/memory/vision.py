"""What a config.json says of the tower that reads images: its sizes, and what leads to the decoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envdoctor.memory.families import ACTIVATIONS, LARGEST, first
from envdoctor.memory.parts import seeing_model, tower_of
from envdoctor.values import dataclass

LARGEST_IMAGE = 1 << 14
"""Pixels a side: no processor passes on a longer one."""


@dataclass(frozen=True, slots=True)
class Vision:
    """A tower of `layers` blocks over patches of `patch` pixels a side, and its way to the decoder.

    `frames` images share a patch; `merge` patches a side become one token of `outputs` elements. `fixed` is
    the side of the only image that it takes, 0 for any; `rope` is "" for none, "wide" where it turns in fp32.
    `ending` is what follows the blocks; what else a tower's row tells stands there.
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


_TRAITS = (
    *("norm", "gated", "bias", "activation", "fused", "rope", "masked", "leading", "scaled", "normed"),
    *("widens", "hooked"),
)
"""What a tower's row tells as it is."""


def parse_vision(config: Mapping[str, Any], hidden: int) -> Vision | None:
    """Return the tower that a config describes, for a decoder `hidden` wide; None for one not known here."""
    told, whole, tower = config.get("vision_config"), seeing_model(config), tower_of(config)
    if not isinstance(told, Mapping) or whole is None or not whole.tower or tower is None:
        return None
    found = _sizes(told)
    if found is None:
        return None
    traits: dict[str, Any] = {name: getattr(tower, name) for name in _TRAITS}
    if acts := ACTIVATIONS.get(str(told.get("hidden_act"))):
        traits["activation"] = acts
    side = told.get("image_size")
    side = side[0] if isinstance(side, list) and side else side
    fixed = side if isinstance(side, int) and not isinstance(side, bool) and not tower.rope else 0
    if fixed and not found["patch"] <= fixed <= LARGEST_IMAGE:
        return None
    taken = config.get("vision_feature_layer", -1)
    if isinstance(taken, int) and -found["layers"] <= taken < 0:
        traits["unused"] = -taken - 1
    each = config.get("mm_tokens_per_image")
    return Vision(
        **found, **traits, outputs=hidden, merge=_merge(config, told, whole.merge), fixed=fixed,
        ending=whole.ending, both_ways=whole.both_ways, listed=whole.listed,
        tokens_each=each if isinstance(each, int) and 0 < each <= LARGEST else 0, tapped=_taps(told),
    )  # fmt: skip


def _sizes(told: Mapping[str, Any]) -> dict[str, Any] | None:
    """The sizes that every tower has; None where one of them is missing or is no size."""
    # Qwen2-VL's `hidden_size` is the decoder's
    names = {
        "hidden": ("embed_dim", "hidden_size"), "layers": ("depth", "num_hidden_layers"),
        "heads": ("num_heads", "num_attention_heads"), "patch": ("patch_size",),
    }  # fmt: skip
    found: dict[str, Any] = {name: first(told, keys) for name, keys in names.items()}
    if isinstance(found["patch"], list) and found["patch"]:
        found["patch"] = found["patch"][0]
    if not all(_is_size(size) for size in found.values()) or found["hidden"] % found["heads"]:
        return None
    ratio = told.get("mlp_ratio")
    ratio = ratio if isinstance(ratio, (int, float)) and 0 < ratio <= 64 else 4
    wide = first(told, ("intermediate_size",))
    found["ffn"] = wide if _is_size(wide) else int(found["hidden"] * ratio)
    frames = told.get("temporal_patch_size")
    found["frames"] = frames if _is_size(frames) else 1
    return found


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST


def _merge(config: Mapping[str, Any], told: Mapping[str, Any], usual: int) -> int:
    """How many patches a side become one token."""
    ratio = config.get("downsample_ratio")
    if isinstance(ratio, float) and 0 < ratio <= 1:
        return round(1 / ratio)
    side = first(config, ("spatial_merge_size", "scale_factor")) or told.get("spatial_merge_size")
    return side if isinstance(side, int) and _is_size(side) and side <= 64 else usual


def _taps(told: Mapping[str, Any]) -> int:
    tapped = told.get("deepstack_visual_indexes")
    return len(tapped) if isinstance(tapped, list) else 0
