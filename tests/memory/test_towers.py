"""Models of several parts: the decoder as its family, the tower counted with what joins it to the decoder."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envdoctor.memory import Constants, TrainingRun, predict
from envdoctor.memory.extras import stored_as, tower_parameters
from envdoctor.memory.model_config import parse_shape

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


SMALL = {"hidden_size": 64, "num_hidden_layers": 2}
BLOCKS = 2 * (4 * 64 * 64 + 2 * 64 * 256)


@pytest.mark.parametrize(
    ("tower", "parameters"),
    [
        (SMALL, BLOCKS + 3 * 14 * 14 * 64),
        ({"embed_dim": 64, "depth": 2}, BLOCKS + 3 * 14 * 14 * 64),
        ({"d_model": 64, "encoder_layers": 2, "encoder_ffn_dim": 128}, 2 * 8 * 64 * 64 + 3 * 14 * 14 * 64),
        ({"width": 64, "layers": 2, "mlp_ratio": 2.5}, 2 * 9 * 64 * 64 + 3 * 14 * 14 * 64),
        ({**SMALL, "mlp_dim": 128, "hidden_act": "silu"}, 2 * 10 * 64 * 64 + 3 * 14 * 14 * 64),
        (
            {**SMALL, "intermediate_size": 128, "hidden_act": "swish", "patch_size": 8},
            2 * 10 * 64**2 + 3 * 64 * 64,
        ),
        ({**SMALL, "patch_size": 2, "temporal_patch_size": 2}, BLOCKS + 3 * 2 * 4 * 64),
        ({**SMALL, "patch_size": 0}, BLOCKS + 3 * 14 * 14 * 64),
        ({**SMALL, "patch_size": 65}, BLOCKS + 3 * 14 * 14 * 64),
        ({**SMALL, "patch_size": 64}, BLOCKS + 3 * 64 * 64 * 64),
        ({**SMALL, "out_hidden_size": 32}, BLOCKS + 3 * 14 * 14 * 64),
        ({**SMALL, "spatial_merge_size": 2}, BLOCKS + 3 * 14 * 14 * 64),
        (
            {**SMALL, "spatial_merge_size": 2, "out_hidden_size": 32},
            BLOCKS + 3 * 14**2 * 64 + 256**2 + 256 * 32,
        ),
        (
            {"embed_dim": 64, "hidden_size": 32, "depth": 2, "spatial_merge_size": 2},
            BLOCKS + 3 * 14 * 14 * 64 + 256 * 256 + 256 * 32,
        ),
        ({"hidden_size": 64}, 0),
        ({"depth": 2}, 0),
    ],
)
def test_a_tower_is_counted_by_the_names_that_its_config_uses(tower, parameters):
    assert tower_parameters({"vision_config": tower}) == parameters


@pytest.mark.parametrize(
    ("told", "stored"),
    [
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "bitsandbytes"}, "nf4"),
        ({"load_in_4bit": True}, "nf4"),
        ({"load_in_8bit": True}, "int8"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "awq", "bits": 8}, "int8"),
        ({"quant_method": "aqlm", "bits": 8}, "aqlm"),
        ({"quant_method": "GPTQ", "bits": 4}, "gptq"),
        ({"quant_method": "compressed-tensors", "format": "float-quantized"}, "fp8"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, "awq"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "unheard of"}, ""),
        (None, ""),
    ],
)
@pytest.mark.parametrize("place", ["quantization_config", "text_config"])
def test_a_quantised_file_is_told_by_its_method(told, stored, place):
    config = {place: told} if place == "quantization_config" else {place: {"quantization_config": told}}
    assert stored_as(config) == stored


SIGLIP = {
    "model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304,
    "num_hidden_layers": 8, "num_attention_heads": 16, "image_size": 364, "patch_size": 14,
}  # fmt: skip
PLAIN_TEXT = {
    "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 4,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
}  # fmt: skip
BUILT = [
    ("smolvlm", {"scale_factor": 2}, SIGLIP, 132_812_800),
    ("llava_onevision", {}, SIGLIP, 129_935_360),
    ("gemma3", {}, SIGLIP, 125_736_064),
    ("aya_vision", {"downsample_factor": 2}, SIGLIP, 134_923_264),
    ("mistral3", {"spatial_merge_size": 2}, {**SIGLIP, "model_type": "pixtral"}, 174_024_448),
    ("internvl", {"downsample_ratio": 0.5}, SIGLIP, 137_011_200),
]
"""Parameters of the tower and of what leads to the decoder, as transformers 5.17 builds them on "meta"."""


@pytest.mark.parametrize(("kind", "more", "vision", "built"), BUILT)
def test_towers_are_counted_with_what_leads_to_the_decoder(kind, more, vision, built):
    config = {"model_type": kind, "text_config": PLAIN_TEXT, "vision_config": vision, **more}
    assert tower_parameters(config) == pytest.approx(built, rel=0.002)


def test_the_whole_says_whether_a_model_of_several_parts_is_tied():
    config = {"model_type": "llava", "text_config": {**PLAIN_TEXT, "tie_word_embeddings": True}}
    assert parse_shape(config, "it").tied
    assert not parse_shape({**config, "tie_word_embeddings": False}, "it").tied
