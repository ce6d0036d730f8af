"""What the parts of a config.json leave out: a part that is as its class makes it is written in short.

Of each class in transformers 5.17 (configuration_*.py):
https://github.com/huggingface/transformers/tree/v5.17.0/src/transformers/models
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NAMES = (
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
    "vocab_size",
)  # fmt: skip


def _sizes(*sizes: int, **more: Any) -> Mapping[str, Any]:
    return {**dict(zip(_NAMES, sizes, strict=True)), **more}


TEXTS: Mapping[str, Mapping[str, Any]] = {
    "llama": _sizes(4096, 11008, 32, 32, 32, 32000, max_position_embeddings=2048),
    "mistral": _sizes(4096, 14336, 32, 32, 8, 32000, sliding_window=4096, max_position_embeddings=131072),
    "qwen2": _sizes(4096, 22016, 32, 32, 32, 151936, max_position_embeddings=32768),
    "qwen3": _sizes(4096, 22016, 32, 32, 32, 151936, head_dim=128, max_position_embeddings=32768),
    "gemma": _sizes(3072, 24576, 28, 16, 16, 256000, head_dim=256, max_position_embeddings=8192),
    "gemma2": _sizes(
        2304, 9216, 26, 8, 4, 256000, head_dim=256, sliding_window=4096, max_position_embeddings=8192
    ),
    "gemma3_text": _sizes(
        2304, 9216, 26, 8, 4, 262208, head_dim=256, sliding_window=4096, max_position_embeddings=131072
    ),
    "ministral3": _sizes(4096, 14336, 34, 32, 8, 131072, head_dim=128, max_position_embeddings=262144),
    "qwen2_vl_text": _sizes(8192, 29568, 80, 64, 8, 152064, max_position_embeddings=32768),
    "qwen2_5_vl_text": _sizes(8192, 29568, 80, 64, 8, 152064, max_position_embeddings=32768),
    "qwen3_vl_text": _sizes(4096, 22016, 32, 32, 32, 151936, head_dim=128, max_position_embeddings=128000),
}
_OWN_TEXTS: Mapping[str, str] = {
    "gemma3": "gemma3_text", "llava": "llama", "internvl": "qwen2", "smolvlm": "llama", "idefics3": "llama",
    "mistral3": "mistral", "paligemma": "gemma", "qwen2_vl": "qwen2_vl_text", "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen3_vl": "qwen3_vl_text",
}  # fmt: skip
"""The text part of a model of several parts, where that part does not say."""
_VIT: Mapping[str, Any] = {
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
    "image_size": 224,
}  # fmt: skip
_IDEFICS: Mapping[str, Any] = {
    **_VIT, "hidden_size": 1152, "num_attention_heads": 16, "patch_size": 32,
}  # fmt: skip
_LARGE: Mapping[str, Any] = {
    "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
}  # fmt: skip
_QWEN: Mapping[str, Any] = {"num_heads": 16, "spatial_merge_size": 2, "temporal_patch_size": 2}
_QWEN3: Mapping[str, Any] = {
    **_QWEN, "depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "patch_size": 16,
    "out_hidden_size": 3584, "num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24],
    "hidden_act": "gelu_pytorch_tanh",
}  # fmt: skip
VISIONS: Mapping[str, Mapping[str, Any]] = {
    "siglip_vision_model": {**_VIT, "patch_size": 16, "hidden_act": "gelu_pytorch_tanh"},
    "clip_vision_model": {**_VIT, "patch_size": 32, "hidden_act": "quick_gelu"},
    "smolvlm_vision": _IDEFICS,
    "idefics3_vision": _IDEFICS,
    "pixtral": {**_LARGE, "patch_size": 16},
    "internvl_vision": {**_LARGE, "patch_size": [14, 14], "image_size": [448, 448]},
}
"""By the type of the tower itself."""
OWN_VISIONS: Mapping[str, Mapping[str, Any]] = {
    "qwen2_vl": {
        **_QWEN, "depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "hidden_size": 3584, "patch_size": 14,
    },
    "qwen2_5_vl": {
        **_QWEN, "depth": 32, "hidden_size": 3584, "intermediate_size": 3420, "out_hidden_size": 3584,
        "patch_size": 14, "hidden_act": "silu",
    },
    "qwen3_vl": _QWEN3,
    "qwen3_vl_moe": _QWEN3,
    "smolvlm": _IDEFICS,
    "idefics3": _IDEFICS,
    "internvl": VISIONS["internvl_vision"],
}  # fmt: skip
"""By the type of the whole, where the tower's says nothing else."""
FLAT = frozenset({"qwen2_vl", "qwen2_5_vl"})
"""Models of several parts whose files list the text part's sizes among the whole's."""
_OF_THE_WHOLE = frozenset({"vision_config", "quantization_config", "tie_word_embeddings", "model_type"})


def completed(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a config whose parts say everything that decides memory, as their classes would fill them in."""
    whole = str(config.get("model_type"))
    if whole in FLAT and not isinstance(config.get("text_config"), Mapping):
        text = {key: value for key, value in config.items() if key not in _OF_THE_WHOLE}
        config = {key: value for key, value in config.items() if key in _OF_THE_WHOLE}
        config = {**config, "text_config": {**text, "model_type": f"{whole}_text"}}
    found = dict(config)
    if isinstance(told := config.get("text_config"), Mapping):
        kind = str(told.get("model_type") or _OWN_TEXTS.get(whole, ""))
        if kind:
            found["text_config"] = {**TEXTS.get(kind, {}), "model_type": kind, **told}
    if isinstance(told := config.get("vision_config"), Mapping):
        usual = VISIONS.get(str(told.get("model_type"))) or OWN_VISIONS.get(whole, {})
        found["vision_config"] = {**usual, **told}
    return found
