"""What a model type's code builds, where its config.json does not say: the traits of each family.

Source of every trait: the modelling file of that type in transformers 5.17.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LARGEST = 1 << 24
"""No published size (vocabulary, width) comes near; a larger one is a mistake."""
_PLAIN: Mapping[str, Any] = {
    "norm": "layer", "gated": False, "qkv_bias": True, "o_bias": True, "mlp_bias": True,
}  # fmt: skip
_NEOX: Mapping[str, Any] = {**_PLAIN, "fused_qkv": True, "parallel": True}
_GLM: Mapping[str, Any] = {"fused_gate_up": True, "fixed": ("o_bias",)}
_GEMMA: Mapping[str, Any] = {"norm": "rms-offset", "activation": "gelu_tanh", "tied": True}

TRAITS: Mapping[str, Mapping[str, Any]] = {
    "llama": {},
    "mistral": {},
    "ministral": {},
    "mixtral": {},
    "qwen2": {"qkv_bias": True},
    "qwen2_moe": {"qkv_bias": True},
    "qwen3": {"qk_norm": "head"},
    "qwen3_moe": {"qk_norm": "head"},
    "qwen2_vl_text": {"qkv_bias": True},
    "qwen2_5_vl_text": {"qkv_bias": True},
    "qwen3_vl_text": {"qk_norm": "head"},
    "qwen3_vl_moe_text": {"qk_norm": "head", "expert_adapters": False},
    "minimax_m2": {"qk_norm": "full"},
    "gemma": _GEMMA,
    "gemma2": {**_GEMMA, "post_norms": True},
    "gemma3_text": {**_GEMMA, "post_norms": True, "qk_norm": "head"},
    "glm": {**_GLM, "qkv_bias": True},
    "glm4": {**_GLM, "qkv_bias": True, "post_norms": True},
    "phi3": {"fused_qkv": True, "fused_gate_up": True},
    "phi": {**_NEOX, "fused_qkv": False, "activation": "gelu_tanh_composed", "head_bias": True},
    "gpt_neox": _NEOX,
    "falcon": {"norm": "layer", "gated": False, "fused_qkv": True, "tied": True, "parallel": True},
    "bloom": {
        **_PLAIN, "fused_qkv": True, "tied": True, "alibi": True, "embedding_norm": True,
        "activation": "bloom_gelu",
    },
    "opt": {
        **_PLAIN, "learned_positions": True, "activation": "relu", "tied": True, "rope": False,
    },
    "gpt2": {
        **_PLAIN, "fused_qkv": True, "learned_positions": True, "activation": "gelu_tanh_composed",
        "tied": True, "rope": False, "dropout": 0.1,
    },
    "starcoder2": {**_PLAIN, "activation": "gelu_tanh"},
    "stablelm": {"norm": "layer", "qkv_bias": False},
    "olmo": {"norm": "layer-plain"},
    "olmo2": {"norm": "rms-wide", "qk_norm": "full", "pre_norm": False, "post_norms": True},
    "olmo3": {"norm": "rms-wide", "qk_norm": "full", "pre_norm": False, "post_norms": True},
    "cohere": {"norm": "layer-weight", "parallel": True, "tied": True, "scaled_logits": True},
    "cohere2": {"norm": "layer-weight", "parallel": True, "tied": True, "scaled_logits": True},
    "granite": {"scaled_logits": True},
    "granitemoe": {"expert_adapters": False, "scaled_logits": True},
    "arcee": {"gated": False, "activation": "relu2"},
    "helium": {"norm": "rms-wide"},
    "ernie4_5": {},
    "ernie4_5_moe": {},
    "ministral3": {},
    "olmoe": {"qk_norm": "full"},
    "flex_olmo": {"norm": "rms-wide", "qk_norm": "full", "pre_norm": False, "post_norms": True},
    "glm4_moe": {},
    "glm4_moe_lite": {},
    "gpt_oss": {"qkv_bias": True, "o_bias": True, "expert_bias": True, "eager_only": True},
    "smollm3": {},
    "seed_oss": {"qkv_bias": True},
    "internlm": {"qkv_bias": True, "o_bias": True, "fixed": ("mlp_bias",)},
    "internlm2": {"fused_qkv": True},
    "internlm3": {},
    "deepseek_v2": {},
    "deepseek_v3": {},
    "kimi_k2": {},
    "cwm": {},
    "jais2": {**_PLAIN, "activation": "relu2"},
    "vaultgemma": _GEMMA,
    "hyperclovax": {"scaled_logits": True, "post_norms": True},
    "youtu": {},
    "dots1": {"qk_norm": "head"},
    "mellum": {"qk_norm": "head"},
    "exaone4": {"qk_norm": "head", "pre_norm": False, "post_norms": True},
    "hunyuan_v1_dense": {"qk_norm": "head"},
    "baichuan": {"fused_qkv": True},
    "qwen": {"fused_qkv": True, "qkv_bias": True},
    "chatglm": {**_GLM, "fused_qkv": True, "qkv_bias": True},
}  # fmt: skip

ALIASES: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("hidden_size", "n_embd", "d_model", "n_embed"),
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads"),
    "num_key_value_heads": ("num_key_value_heads", "num_kv_heads", "multi_query_group_num"),
    "intermediate_size": ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "d_ff"),
    "vocab_size": ("vocab_size", "padded_vocab_size"),
    "max_position_embeddings": (
        "max_position_embeddings",
        "n_positions",
        "seq_length",
        "max_sequence_length",
    ),
}

STACKS = ("num_layers", "encoder_layers", "decoder_layers", "num_encoder_layers", "num_decoder_layers")
"""Keys that count the layers of a model's encoder or decoder alone."""
LAYER_BY_LAYER = ("layer_types", "layers_block_type", "hybrid_override_pattern")
"""Keys that tell a model's layers one by one, and so their number."""
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
ACTIVE = ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk")
SHARED = ("n_shared_experts", "moe_num_shared_experts", "num_shared_experts")
COUNTS = (
    *(*SHARED, "shared_expert_intermediate_size", "decoder_sparse_step", "moe_layer_freq"),
    *("first_k_dense_replace", "moe_layer_start_index"),
    *("q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"),
    *("temporal_patch_size", "spatial_merge_size", "num_position_embeddings", "out_hidden_size"),
    *("embed_dim", "width", "depth", "encoder_layers", "layers", "encoder_ffn_dim", "mlp_dim"),
    *("max_position_embeddings", "n_positions", "seq_length", "max_sequence_length"),
    *("hidden_size", "d_model", "num_hidden_layers", "intermediate_size"),
)
"""Keys of config.json, and of its parts for images and sound, that are whole numbers wherever they stand."""
SHARES = (
    *("hidden_dropout", "resid_pdrop", "dropout", "attention_dropout", "attn_pdrop"),
    *("partial_rotary_factor", "rotary_pct", "mlp_ratio"),
)
"""And those that may have a fraction."""
ACTIVATIONS: Mapping[str, str] = {
    "silu": "silu", "swish": "silu", "gelu": "gelu", "gelu_new": "gelu_tanh_composed",
    "gelu_fast": "gelu_tanh_composed", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu", "relu2": "relu2",
    "quick_gelu": "quick_gelu",
}  # fmt: skip


def unfit_numbers(config: Mapping[str, Any]) -> list[str]:
    """Return the keys of COUNTS and SHARES whose value is no number that a model has."""
    kinds: dict[str, Any] = {**dict.fromkeys(COUNTS, int), **dict.fromkeys(SHARES, (int, float))}
    return [name for name, kind in kinds.items() if not _is_fit(config.get(name), kind)]


def _is_fit(value: Any, kind: Any) -> bool:
    return value is None or (isinstance(value, kind) and 0 <= value <= LARGEST)


def depth_of(config: Mapping[str, Any]) -> int | None:
    """Return how many layers a config tells of, in the deepest of its stacks; None where it tells none."""
    told = [value for key in STACKS if isinstance(value := config.get(key), int)]
    listed = first(config, LAYER_BY_LAYER)
    counted = first(config, ALIASES["num_hidden_layers"]) or max(told, default=0)
    if isinstance(pairs := config.get("num_layers"), int) and 2 * pairs == counted:
        counted = pairs  # LongCat's layers hold two of all, and each is counted beside
    return counted or (len(listed) if isinstance(listed, (list, str)) else None)


def first(config: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """Return the first of `names` that the config gives (not None), or None."""
    return next((config[name] for name in names if config.get(name) is not None), None)
