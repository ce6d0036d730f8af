"""Models of several parts: the decoder as its family, the tower counted with what joins it to the decoder."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envdoctor.memory import Constants, TrainingRun, predict
from envdoctor.memory.shape import parse_shape

GIB = 2**30
VISION = {
    "model_type": "qwen3_vl", "depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "patch_size": 16,
    "temporal_patch_size": 2, "spatial_merge_size": 2, "num_position_embeddings": 2304,
    "deepstack_visual_indexes": [8, 16, 24], "hidden_act": "gelu_pytorch_tanh",
}  # fmt: skip
VISION_2B = {
    **VISION, "depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "out_hidden_size": 2048,
    "deepstack_visual_indexes": [5, 11, 17],
}  # fmt: skip
QWEN3_VL_2B = {
    "model_type": "qwen3_vl", "tie_word_embeddings": True, "vision_config": VISION_2B,
    "text_config": {
        "model_type": "qwen3_vl_text", "hidden_size": 2048, "intermediate_size": 6144,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 151936,
        "tie_word_embeddings": True,
    },
}  # fmt: skip
QWEN3_VL_8B = {
    "model_type": "qwen3_vl", "vision_config": {**VISION, "out_hidden_size": 4096},
    "text_config": {
        "model_type": "qwen3_vl_text", "hidden_size": 4096, "intermediate_size": 12288,
        "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 151936,
    },
}  # fmt: skip
QWEN3_VL_30B_A3B = {
    "model_type": "qwen3_vl_moe", "vision_config": {**VISION, "out_hidden_size": 2048},
    "text_config": {
        "model_type": "qwen3_vl_moe_text", "hidden_size": 2048, "intermediate_size": 6144,
        "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936,
    },
}  # fmt: skip
MEASURED = [(QWEN3_VL_2B, 7.83), (QWEN3_VL_8B, 20.71), (QWEN3_VL_30B_A3B, 61.89)]
"""GiB of LoRA of rank 8, 1 row of 2048 tokens, checkpointing; an H200, torch 2.11, transformers 5.17."""


@pytest.mark.parametrize(("config", "measured_gib"), MEASURED)
def test_the_peak_on_text_is_within_a_percent_of_the_card(config, measured_gib):
    run = TrainingRun(parse_shape(config, "it"), method="lora", batch=1, seq=2048)
    assert predict(run, Constants()).peak_allocated_bytes / GIB == pytest.approx(measured_gib, rel=0.01)


def test_experts_stored_in_fp8_take_a_byte_a_weight():
    text = QWEN3_VL_30B_A3B["text_config"]
    run = TrainingRun(parse_shape({**text, "model_type": "qwen3_moe"}, "it"), method="lora", batch=1, seq=512)
    stored = replace(run, shape=replace(run.shape, stored="fp8"))
    whole, small = (
        next(c.bytes for c in predict(r, Constants()).components if c.name == "weights")
        for r in (run, stored)
    )
    assert small < 0.55 * whole
