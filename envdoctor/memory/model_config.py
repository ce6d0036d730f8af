"""A model's config.json: the shape that it describes, completed by what its family's code builds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envdoctor.errors import InputError
from envdoctor.inputs import parse_json, read_input
from envdoctor.memory.extras import stored_as, tower_parameters
from envdoctor.memory.families import (
    ACTIVATIONS,
    ACTIVE,
    ALIASES,
    EXPERTS,
    LARGEST,
    SHARED,
    TRAITS,
    depth_of,
    first,
    unfit_numbers,
)
from envdoctor.memory.parts import completed, seeing_model, writing_part
from envdoctor.memory.shape import Experts, LatentAttention, ModelShape
from envdoctor.memory.vision import parse_vision
from envdoctor.values import replace

MAX_CONFIG_BYTES = 4 << 20


def read_shape(source: str | Path) -> ModelShape:
    """Read a config.json, or the one in a folder; raises InputError naming the file and the key."""
    return parse_shape(read_config(source), str(source))


def read_config(source: str | Path) -> Mapping[str, Any]:
    """Read a config.json, or the one in a folder; raises InputError naming the file."""
    path = Path(source)
    path = path / "config.json" if os.path.isdir(path) else path
    try:
        config = parse_json(read_input(path, MAX_CONFIG_BYTES), infinite=True)
    except ValueError:
        raise InputError(f"{path}: not a JSON file") from None
    if not isinstance(config, dict):
        raise InputError(f"{path}: expected a JSON object")
    return config


def parse_shape(config: Mapping[str, Any], where: str) -> ModelShape:
    """Return the shape that a config describes; raises InputError `where: key: what is wrong`."""
    whole = config = completed(config)
    nested = writing_part(config)
    if nested is not None and first(config, ALIASES["num_hidden_layers"]) is None:
        config = nested
    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        raise InputError(f"{where}: model_type: missing")
    traits = TRAITS.get(model_type)
    known = {} if traits is None else dict(traits)
    config = _checked(config, where) if traits is not None else _sketched(config)
    hidden, heads = _size(config, "hidden_size", where), _size(config, "num_attention_heads", where)
    kv_heads = _kv_heads(config, model_type, heads, where)
    head_dim = config.get("head_dim") or hidden // heads
    if heads % kv_heads:
        raise InputError(f"{where}: num_key_value_heads: {kv_heads} does not divide {heads} heads")
    shape = ModelShape(
        name=str(config.get("_name_or_path") or model_type),
        model_type=model_type,
        hidden=hidden,
        layers=_size(config, "num_hidden_layers", where),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_positive(head_dim, "head_dim", where),
        ffn=_ffn(config, model_type, hidden, where),
        vocab=_size(config, "vocab_size", where),
        positions=_positions(config, where),
        tied=_tied(whole, config, known.pop("tied", False)),
        **_switches(config, known, hidden),
        experts=_experts(config, where),
        latent=_latent(config),
        tower=tower_parameters(whole),
        vision=parse_vision(whole, hidden),
        stored=stored_as(whole),
        known=traits is not None,
        uncertain=_doubts(whole, model_type, traits is not None),
    )
    sizes = _family_sizes(config, shape)
    if (seeing := seeing_model(whole)) and seeing.uncapped:
        sizes["softcap"] = False
    return replace(shape, **sizes)


def _tied(whole: Mapping[str, Any], text: Mapping[str, Any], usual: bool) -> bool:
    """A model of several parts ties as the whole says, whatever its text part says."""
    key = "tie_word_embeddings"
    return bool(next((part[key] for part in (whole, text) if part.get(key) is not None), usual))


def _sketched(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config of a family that is not known, with some size for each that it does not tell or lists.

    No answer is made of them: such a family is traced or refused.
    """
    usual = {"num_attention_heads": 1, "hidden_size": 64, "vocab_size": 1}
    if told := depth_of(config):
        usual["num_hidden_layers"] = told
    given = {key: first(config, ALIASES[key]) for key in (*usual, "intermediate_size")}
    sizes = {key: value for key, value in given.items() if isinstance(value, int) and value > 0}
    sizes |= {"num_hidden_layers": told} if told else {}
    width = 4 * int(sizes.get("hidden_size", usual["hidden_size"]))
    dropped = {"moe_layer_freq", *EXPERTS, *ALIASES["num_key_value_heads"], *unfit_numbers(config)}
    kept = {key: value for key, value in config.items() if key not in dropped}
    return {**kept, "intermediate_size": width, **usual, **sizes}


def _checked(config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    for name in unfit_numbers(config):
        raise InputError(f"{where}: {name}: {config[name]!r:.60} is no size")
    return config


def _doubts(config: Mapping[str, Any], model_type: str, known: bool) -> str:
    """What of a model is not counted or only guessed."""
    doubts = [] if known else [f"model type {model_type!r} is unknown: taken for a Llama"]
    read = parse_vision(config, 1) is not None and not isinstance(config.get("audio_config"), Mapping)
    if (size := tower_parameters(config)) and not read:
        doubts.append(
            f"its towers of {size / 1e9:.2f} billion parameters are counted as weights, and what they"
            " allocate for images or sound is not"
        )
    return "; ".join(doubts)


def _positions(config: Mapping[str, Any], where: str) -> int:
    value = first(config, ALIASES["max_position_embeddings"])
    return _positive(value, "max_position_embeddings", where) if value else 2048


def _positive(value: Any, key: str, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= LARGEST:
        raise InputError(f"{where}: {key}: {value!r} is no size")
    return value


def _size(config: Mapping[str, Any], key: str, where: str) -> int:
    value = first(config, ALIASES[key])
    if value is None:
        raise InputError(f"{where}: {key}: missing")
    return _positive(value, key, where)


def _kv_heads(config: Mapping[str, Any], model_type: str, heads: int, where: str) -> int:
    if model_type == "falcon" and not config.get("new_decoder_architecture"):
        return 1 if config.get("multi_query", True) else heads
    value = first(config, ALIASES["num_key_value_heads"])
    return heads if value is None else _positive(value, "num_key_value_heads", where)


def _ffn(config: Mapping[str, Any], model_type: str, hidden: int, where: str) -> int:
    value = first(config, ALIASES["intermediate_size"])
    if value is None and model_type in ("falcon", "bloom", "gpt2"):
        return 4 * hidden
    return _positive(value, "intermediate_size", where)


def _switches(config: Mapping[str, Any], known: dict[str, Any], hidden: int) -> dict[str, Any]:
    """The family's switches, where the config's own keys do not overrule them."""
    learned = known.pop("learned_positions", False)
    fixed = known.pop("fixed", ())
    for key, ours in (
        ("attention_bias", ("qkv_bias", "o_bias")),
        ("add_qkv_bias", ("qkv_bias",)),
        ("use_qkv_bias", ("qkv_bias",)),
        ("mlp_bias", ("mlp_bias",)),
        ("bias", ("qkv_bias", "o_bias", "mlp_bias")),
    ):
        if isinstance(config.get(key), bool):
            known.update(dict.fromkeys((o for o in ours if o not in fixed), config[key]))
    if known.get("activation") in (None, "gelu_tanh", "gelu_tanh_composed", "relu"):
        given = first(config, ("hidden_activation", "hidden_act", "activation_function", "activation"))
        plain = known.get("activation", "silu" if known.get("gated", True) else "gelu")
        known["activation"] = ACTIVATIONS.get(str(given), plain)
    if learned:
        known["learned_positions"] = int(first(config, ALIASES["max_position_embeddings"]) or 1024)
    usual = known.pop("dropout", 0.0)
    hidden_dropout = first(config, ("hidden_dropout", "resid_pdrop", "dropout"))
    attention_dropout = first(config, ("attention_dropout", "attn_pdrop"))
    known["hidden_dropout"] = float(usual if hidden_dropout is None else hidden_dropout)
    known["attention_dropout"] = float(usual if attention_dropout is None else attention_dropout)
    return known


def _family_sizes(config: Mapping[str, Any], shape: ModelShape) -> dict[str, Any]:
    """Sizes that depend on the family and on more than one key."""
    changes: dict[str, Any] = {}
    kind = shape.model_type
    rope = config.get("rope_parameters") or {}
    share = first(config, ("partial_rotary_factor", "rotary_pct")) or (
        rope.get("partial_rotary_factor") if isinstance(rope, Mapping) and not unfit_numbers(rope) else None
    )
    default_share = {"glm": 0.5, "glm4": 0.5, "gpt_neox": 0.25, "phi": 0.5, "stablelm": 0.25, "chatglm": 0.5}
    changes["rotary_share"] = float(share or default_share.get(kind, 1.0))
    if kind == "opt":
        changes["learned_positions"] = shape.positions + 2
        changes["hidden_dropout"] = float(config.get("dropout", 0.1))
    if kind in ("phi", "falcon") and shape.parallel:
        changes["norms"] = 2 if config.get("new_decoder_architecture") else 1
    if kind == "gpt_neox":
        changes["parallel"] = bool(config.get("use_parallel_residual", True))
    if kind == "falcon":
        changes["alibi"] = bool(config.get("alibi", False))
        changes["parallel"] = bool(config.get("parallel_attn", True))
    if kind in ("cohere", "cohere2"):
        changes["norms"] = 1
    changes.update(_windows(config, shape))
    changes["softcap"] = bool(config.get("final_logit_softcapping")) or (
        kind in ("gemma2", "vaultgemma") and "final_logit_softcapping" not in config
    )
    return changes


def _windows(config: Mapping[str, Any], shape: ModelShape) -> dict[str, Any]:
    """The sliding window and how many layers use it."""
    window = config.get("sliding_window")
    if not isinstance(window, int) or isinstance(window, bool) or window <= 0:
        return {}
    if isinstance(kinds := config.get("layer_types"), list):
        count = sum(kind == "sliding_attention" for kind in kinds)
    elif shape.model_type.startswith("gemma3"):
        every = config.get("sliding_window_pattern")
        count = shape.layers - shape.layers // (every if isinstance(every, int) and every > 0 else 6)
    elif shape.model_type == "gemma2":
        count = (shape.layers + 1) // 2
    elif shape.model_type.startswith("qwen") and not config.get("use_sliding_window"):
        count = 0
    else:
        count = shape.layers
    return {"window": window, "windowed_layers": count}


def _experts(config: Mapping[str, Any], where: str) -> Experts | None:
    count = first(config, EXPERTS)
    if not isinstance(count, int) or count < 2:
        return None
    active = _positive(first(config, ACTIVE) or 2, "num_experts_per_tok", where)
    if active > count:
        raise InputError(f"{where}: num_experts_per_tok: {active} of {count} experts")
    width = first(config, ("moe_intermediate_size", *ALIASES["intermediate_size"]))
    width = _positive(width, "moe_intermediate_size", where)
    shared = config.get("shared_expert_intermediate_size") or width * int(first(config, SHARED) or 0)
    return Experts(
        count,
        active,
        width,
        int(shared),
        _first_dense(config),
        int(config.get("decoder_sparse_step") or config.get("moe_layer_freq") or 1),
    )


def _first_dense(config: Mapping[str, Any]) -> int:
    """How many layers stand before the first with experts."""
    kinds = config.get("mlp_layer_types")
    if isinstance(kinds, list) and "sparse" in kinds:
        return kinds.index("sparse")
    return int(first(config, ("first_k_dense_replace", "moe_layer_start_index")) or 0)


def _latent(config: Mapping[str, Any]) -> LatentAttention | None:
    if not config.get("kv_lora_rank"):
        return None
    return LatentAttention(
        int(config.get("q_lora_rank") or 0),
        int(config["kv_lora_rank"]),
        int(config.get("qk_rope_head_dim") or 64),
        int(config.get("qk_nope_head_dim") or 128),
        int(config.get("v_head_dim") or 128),
    )
