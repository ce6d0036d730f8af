"""A config's keys one by one: what each makes of the shape, and what an engine's sums make of that."""

from __future__ import annotations

from typing import Any

import pytest

from envdoctor.memory.answer import MODELLED, _taken
from envdoctor.memory.caching import (
    GRANULE,
    LARGE_STEP,
    SHARED,
    SHARED_SEGMENT,
    SMALL,
    SMALL_SEGMENT,
    CachingAllocator,
)
from envdoctor.memory.constants import Constants
from envdoctor.memory.extras import stored_as
from envdoctor.memory.model_config import parse_shape
from envdoctor.memory.parts import completed
from envdoctor.memory.run import ServingRun
from envdoctor.memory.serving import Budget, describe_engine, key_bytes_per_token, request_keys
from envdoctor.memory.shape import Experts, LatentAttention, ModelShape
from envdoctor.memory.slices import rhythm
from envdoctor.memory.vision import parse_vision

TINY = {
    "hidden_size": 64, "num_hidden_layers": 12, "num_attention_heads": 4, "num_key_value_heads": 2,
    "vocab_size": 1000, "intermediate_size": 256, "max_position_embeddings": 512,
}  # fmt: skip
MIB = 1 << 20


def shape(kind: str, **more: Any) -> ModelShape:
    return parse_shape({"model_type": kind, **TINY, **more}, "config.json")


@pytest.mark.parametrize(
    ("kind", "more", "told"),
    [
        ("llama", {}, {"head_dim": 16, "kv_heads": 2, "norms": 2, "rotary_share": 1.0, "tied": False}),
        ("llama", {"head_dim": 32}, {"head_dim": 32}),
        ("llama", {"num_key_value_heads": None}, {"kv_heads": 4}),
        ("llama", {"max_position_embeddings": None}, {"positions": 2048}),
        ("llama", {"tie_word_embeddings": True}, {"tied": True}),
        ("llama", {"attention_bias": True}, {"qkv_bias": True, "o_bias": True, "mlp_bias": False}),
        ("llama", {"mlp_bias": True}, {"qkv_bias": False, "o_bias": False, "mlp_bias": True}),
        ("internlm", {"bias": False}, {"qkv_bias": False, "o_bias": False, "mlp_bias": False}),
        ("seed_oss", {"add_qkv_bias": False}, {"qkv_bias": False, "o_bias": False}),
        ("llama", {"attention_dropout": 0.5}, {"attention_dropout": 0.5, "hidden_dropout": 0.0}),
        ("gpt2", {"resid_pdrop": 0.0}, {"hidden_dropout": 0.0, "attention_dropout": 0.1}),
        ("gpt2", {}, {"hidden_dropout": 0.1, "learned_positions": 512, "rope": False, "tied": True}),
        ("gpt2", {"max_position_embeddings": None}, {"learned_positions": 1024, "positions": 2048}),
        ("gpt2", {"intermediate_size": None}, {"ffn": 256}),
        ("opt", {}, {"learned_positions": 514, "hidden_dropout": 0.1}),
        ("opt", {"dropout": 0.0}, {"learned_positions": 514, "hidden_dropout": 0.0}),
        ("phi", {}, {"rotary_share": 0.5, "norms": 1, "parallel": True, "head_bias": True}),
        ("phi", {"partial_rotary_factor": 0.4}, {"rotary_share": 0.4}),
        ("llama", {"rope_parameters": {"partial_rotary_factor": 0.25}}, {"rotary_share": 0.25}),
        ("gpt_neox", {}, {"rotary_share": 0.25, "parallel": True, "norms": 2}),
        ("gpt_neox", {"rotary_pct": 0.75}, {"rotary_share": 0.75}),
        ("gpt_neox", {"use_parallel_residual": False}, {"parallel": False}),
        ("glm", {}, {"rotary_share": 0.5, "qkv_bias": True, "fused_gate_up": True}),
        ("glm", {"attention_bias": False}, {"qkv_bias": False, "o_bias": False}),
        ("cohere", {}, {"norms": 1, "parallel": True, "scaled_logits": True}),
        ("falcon", {}, {"alibi": False, "parallel": True, "norms": 1, "kv_heads": 1}),
        ("falcon", {"alibi": True, "parallel_attn": False}, {"alibi": True, "parallel": False}),
        ("falcon", {"multi_query": False}, {"kv_heads": 4}),
        ("falcon", {"new_decoder_architecture": True}, {"kv_heads": 2, "norms": 2}),
        ("gemma", {}, {"softcap": False, "tied": True, "window": 0}),
        ("gemma2", {"sliding_window": 128}, {"softcap": True, "window": 128, "windowed_layers": 6}),
        ("gemma2", {"final_logit_softcapping": None}, {"softcap": False}),
        ("gemma3_text", {"sliding_window": 128}, {"softcap": False, "windowed_layers": 10}),
        ("gemma3_text", {"sliding_window": 128, "sliding_window_pattern": 4}, {"windowed_layers": 9}),
        ("mistral", {"sliding_window": 128}, {"window": 128, "windowed_layers": 12}),
        ("mistral", {"sliding_window": 0}, {"window": 0, "windowed_layers": 0}),
        ("mistral", {"sliding_window": True}, {"window": 0, "windowed_layers": 0}),
        ("mistral", {"sliding_window": None}, {"window": 0, "windowed_layers": 0}),
        ("qwen2", {"sliding_window": 128}, {"window": 128, "windowed_layers": 0}),
        ("qwen2", {"sliding_window": 128, "use_sliding_window": True}, {"windowed_layers": 12}),
        (
            "gpt_oss",
            {"sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 6},
            {"windowed_layers": 6, "expert_bias": True},
        ),
        ("llama", {"hidden_act": "gelu"}, {"activation": "gelu"}),
        ("llama", {"hidden_act": "nobody_knows"}, {"activation": "silu"}),
        ("starcoder2", {"hidden_act": None}, {"activation": "gelu_tanh", "gated": False}),
        ("arcee", {"hidden_act": "silu"}, {"activation": "relu2"}),
    ],
)
def test_what_a_key_makes_of_a_shape(kind: str, more: dict[str, Any], told: dict[str, Any]) -> None:
    found = shape(kind, **more)
    assert {key: getattr(found, key) for key in told} == told


@pytest.mark.parametrize(
    ("more", "experts"),
    [
        ({}, None),
        ({"num_experts": 1}, None),
        ({"num_experts": 2}, Experts(2, 2, 256, 0, 0, 1)),
        ({"num_experts": 8, "num_experts_per_tok": 3}, Experts(8, 3, 256, 0, 0, 1)),
        ({"num_local_experts": 8, "moe_intermediate_size": 32}, Experts(8, 2, 32, 0, 0, 1)),
        ({"num_experts": 8, "shared_expert_intermediate_size": 48}, Experts(8, 2, 256, 48, 0, 1)),
        (
            {"n_routed_experts": 8, "moe_intermediate_size": 32, "n_shared_experts": 2},
            Experts(8, 2, 32, 64, 0, 1),
        ),
        ({"n_routed_experts": 8, "first_k_dense_replace": 3}, Experts(8, 2, 256, 0, 3, 1)),
        ({"num_experts": 8, "mlp_layer_types": ["dense", "dense", "sparse"]}, Experts(8, 2, 256, 0, 2, 1)),
        ({"num_experts": 8, "decoder_sparse_step": 2}, Experts(8, 2, 256, 0, 0, 2)),
        ({"n_routed_experts": 8, "moe_layer_freq": 3}, Experts(8, 2, 256, 0, 0, 3)),
        ({"num_experts": 8, "decoder_sparse_step": 4, "moe_layer_freq": 2}, Experts(8, 2, 256, 0, 0, 4)),
    ],
)
def test_experts_of_a_config(more: dict[str, Any], experts: Experts | None) -> None:
    assert shape("qwen3_moe", **more).experts == experts


def test_layers_with_experts_begin_and_recur_as_told() -> None:
    assert shape("qwen3_moe").moe_layers == 0
    assert shape("qwen3_moe", num_experts=8).moe_layers == 12
    assert shape("deepseek_v3", n_routed_experts=8, first_k_dense_replace=3).moe_layers == 9
    assert shape("qwen3_moe", num_experts=8, decoder_sparse_step=5).moe_layers == 3


def test_latent_attention_has_its_ranks_or_the_usual_widths() -> None:
    assert shape("deepseek_v3").latent is None
    assert shape("deepseek_v3", kv_lora_rank=32).latent == LatentAttention(0, 32, 64, 128, 128)
    told = {"q_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 12, "v_head_dim": 20}
    assert shape("deepseek_v3", kv_lora_rank=32, **told).latent == LatentAttention(8, 32, 4, 12, 20)


@pytest.mark.parametrize(
    ("told", "stored"),
    [
        ({}, ""),
        ({"quant_method": "bitsandbytes"}, "nf4"),
        ({"load_in_4bit": True}, "nf4"),
        ({"load_in_8bit": True}, "int8"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "gptq", "bits": 4}, "gptq"),
        ({"quant_method": "awq", "bits": 8}, "int8"),
        ({"quant_method": "AWQ", "bits": 4}, "awq"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "compressed-tensors", "format": "float-quantized"}, "fp8"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, "awq"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"group_size": 32}}},
            },
            "int4-g32",
        ),
        ({"quant_method": "nobody_knows"}, ""),
    ],
)
def test_how_weights_lie_in_files(told: dict[str, Any], stored: str) -> None:
    assert stored_as({"quantization_config": told}) == stored
    assert stored_as({"text_config": {"quantization_config": told}}) == stored


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"num_hidden_layers": 8}, (0, 1)),
        ({"num_hidden_layers": 8, "full_attention_interval": 4}, (0, 4)),
        ({"num_hidden_layers": 7, "full_attention_interval": 4}, (0, 7)),
        ({"num_hidden_layers": 8, "full_attention_interval": 2, "moe_layer_freq": 4}, (0, 4)),
        ({"num_hidden_layers": 8, "first_k_dense_replace": 2}, (2, 1)),
        ({"num_hidden_layers": 8, "first_k_dense_replace": 6}, (6, 1)),
        ({"num_hidden_layers": 8, "first_k_dense_replace": 7}, (0, 8)),
        ({"num_hidden_layers": 8, "layer_types": list("abababab")}, (0, 2)),
        ({"num_hidden_layers": 8, "layer_types": list("aababbba")}, (0, 8)),
        ({"num_hidden_layers": 8, "layer_types": list("aabababa")}, (1, 2)),
        ({"num_hidden_layers": 4, "layer_types": list("aaab")}, (0, 4)),
        ({"num_hidden_layers": 3, "layer_types": list("aab")}, (0, 1)),
    ],
)
def test_after_how_many_layers_their_kinds_repeat(config: dict[str, Any], found: tuple[int, int]) -> None:
    assert rhythm(config) == found


@pytest.mark.parametrize(
    ("more", "tp", "pp", "size"),
    [
        ({}, 1, 1, 2 * 12 * 2 * 16 * 2),
        ({}, 2, 1, 2 * 12 * 1 * 16 * 2),
        ({}, 4, 1, 2 * 12 * 1 * 16 * 2),
        ({}, 1, 5, 2 * 3 * 2 * 16 * 2),
        ({"kv_lora_rank": 32, "qk_rope_head_dim": 8}, 4, 1, 12 * 40 * 2),
        ({"kv_lora_rank": 32, "qk_rope_head_dim": 8}, 1, 12, 40 * 2),
    ],
)
def test_bytes_of_a_token_s_keys(more: dict[str, Any], tp: int, pp: int, size: int) -> None:
    assert key_bytes_per_token(shape("deepseek_v3", **more), 2, tp, pp) == size


@pytest.mark.parametrize(("tokens", "blocks"), [(1, 1), (16, 1), (17, 2), (160, 10)])
def test_a_request_holds_whole_blocks_of_sixteen_tokens(tokens: int, blocks: int) -> None:
    held = request_keys(shape("llama"), 2, 1, 1, tokens, 2048)
    assert held == blocks * 16 * key_bytes_per_token(shape("llama"), 2, 1, 1)


@pytest.mark.parametrize(
    ("low", "high", "share", "why"),
    [
        *[(0.2, 0.9, 0.1, "low"), (0.2, 0.9, 0.2, ""), (0.2, 0.9, 0.9, ""), (0.2, 0.9, 0.91, "high")],
        *[(0.9, 0.8, 0.85, "none"), (0.9, 0.9, 0.9, "")],
    ],
)
def test_why_an_engine_does_not_run(low: float, high: float, share: float, why: str) -> None:
    assert Budget(low, high).refusal(share) == why


def test_an_engine_s_graphs_grow_with_its_sequences_up_to_512() -> None:
    def graphs(sequences: int, cuda_graphs: bool = True) -> int:
        run = ServingRun(shape("llama"), 24 << 30, 0.9, max_num_seqs=sequences, cuda_graphs=cuda_graphs)
        return describe_engine(run, Constants()).graphs

    assert graphs(8, cuda_graphs=False) == 0
    assert graphs(8) == 200 * MIB + 3 * 8 * 12 * 64 * 2 // 8
    assert graphs(512) == graphs(1024) == 200 * MIB + 3 * 512 * 12 * 64 * 2 // 8


@pytest.mark.parametrize(
    ("told", "each"), [({}, 256), ({"mm_tokens_per_image": 64}, 64), ({"mm_tokens_per_image": "many"}, 0)]
)
def test_tokens_of_an_image_that_are_always_as_many(told: dict[str, Any], each: int) -> None:
    tower = {
        "model_type": "siglip_vision_model", "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "patch_size": 14, "image_size": 896, "intermediate_size": 64,
    }  # fmt: skip
    vision = parse_vision(completed({"model_type": "gemma3", "vision_config": tower, **told}), 64)
    assert vision is not None
    assert vision.tokens_each == each
    assert vision.fixed == 896


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (None, "torch {}: as modelled"),
        ("{}.0", "torch {}.0: as modelled"),
        ("{}.1+cu128", "torch {}.1+cu128: as modelled"),
    ],
)
def test_a_release_that_was_measured_is_as_modelled(version: str | None, said: str) -> None:
    known = MODELLED["torch"]
    assert _taken("torch", version and version.format(known)) == said.format(known)
    assert _taken("torch", "1.0").startswith("torch 1.0: taken to allocate as")


@pytest.mark.parametrize(
    ("size", "whole"),
    [
        *[(1, SMALL_SEGMENT), (SMALL, SMALL_SEGMENT)],
        *[(SMALL + 1, SHARED_SEGMENT), (SHARED - 1, SHARED_SEGMENT)],
        *[(SHARED, SHARED), (SHARED + 1, SHARED + LARGE_STEP), (SHARED + LARGE_STEP, SHARED + LARGE_STEP)],
    ],
)
def test_a_segment_is_as_large_as_the_allocator_asks_for(size: int, whole: int) -> None:
    heap = CachingAllocator()
    heap.take(size * GRANULE)
    assert (heap.reserved, heap.large) == (whole * GRANULE, 0 if size <= SMALL else whole)


def test_small_requests_share_segments_of_which_as_many_hold_them_as_must() -> None:
    heap = CachingAllocator()
    blocks = heap.take(*(700 << 10,) * 5)  # two to a segment
    assert heap.reserved == 3 * SMALL_SEGMENT * GRANULE
    heap.give(*blocks)
    heap.take(*(512,) * 100)
    assert heap.reserved == 3 * SMALL_SEGMENT * GRANULE
