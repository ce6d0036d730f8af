"""A family that is not known is read from its config and traced, and never guessed into an answer."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envdoctor.cli import main
from envdoctor.memory import slice_child
from envdoctor.memory.model_config import parse_shape, read_config
from envdoctor.memory.run import TrainingRun
from envdoctor.memory.slices import Slices, depths_of, rhythm

HYBRID = {
    "model_type": "new_hybrid", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 512,
    "num_hidden_layers": 12, "layer_types": ["linear", "linear", "linear", "full"] * 3,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "lead_and_period"),
    [
        ({"num_hidden_layers": 12}, (0, 1)),
        ({"num_hidden_layers": 12, "first_k_dense_replace": 3}, (3, 1)),
        ({"num_hidden_layers": 12, "full_attention_interval": 4}, (0, 4)),
        (HYBRID, (0, 4)),
        ({"num_hidden_layers": 12, "mlp_layer_types": ["dense"] * 3 + ["sparse"] * 9}, (3, 1)),
        ({**HYBRID, "mlp_layer_types": ["dense"] + ["sparse"] * 11}, (1, 4)),
        ({"hybrid_override_pattern": "MEM*ME" * 4}, (0, 6)),
        ({"hybrid_override_pattern": "MEMM*E-EM*MMEE--M*"}, (0, 18)),
        ({"num_hidden_layers": 8, "attn_layer_period": 8}, (0, 8)),
        ({"encoder_layers": 12, "decoder_layers": 12}, (0, 1)),
        ({"encoder_layers": 2, "decoder_layers": 24}, (0, 24)),
        ({"num_hidden_layers": 12, "num_kv_shared_layers": 5}, (0, 12)),
    ],
)
def test_after_how_many_layers_their_kinds_repeat(config, lead_and_period):
    assert rhythm(config) == lead_and_period


def test_what_is_told_layer_by_layer_is_cut_with_the_layers():
    shallow = slice_child.shallow({**HYBRID, "other": [1, 2, 3]}, 4)
    assert shallow["num_hidden_layers"] == 4
    assert shallow["layer_types"] == ["linear", "linear", "linear", "full"]
    assert shallow["other"] == [1, 2, 3]


def test_a_word_as_long_as_the_model_is_deep_is_no_pattern_and_tables_by_layer_are_cut():
    told = {"num_hidden_layers": 4, "hidden_act": "silu", "per_layer": {"0": {}, "3": {"head_dim": 8}}}
    assert rhythm(told) == (0, 1)
    shallow = slice_child.shallow(told, 3)
    assert shallow == {"num_hidden_layers": 3, "hidden_act": "silu", "per_layer": {"0": {}}}


def test_numbers_that_json_has_no_word_for_are_read_as_transformers_writes_them():
    told = {"time_step_limit": [0.0, {"__float__": "Infinity"}], "rope": {"factor": 2.0}}
    assert slice_child.unmarked(told) == {"time_step_limit": [0.0, float("inf")], "rope": {"factor": 2.0}}


def test_stacks_of_unlike_depths_are_cut_to_no_more_than_they_have():
    stacks = {"encoder_layers": 2, "decoder_layers": 24}
    assert slice_child.shallow(stacks, 23) == {"encoder_layers": 2, "decoder_layers": 23}


def test_what_autocast_widens_on_a_card_alone_is_widened_and_put_back():
    class Tensor:
        def __init__(self, dtype: str) -> None:
            self.dtype = dtype

        def float(self) -> Tensor:
            return Tensor("fp32")

    def square(x: Tensor) -> str:
        return x.dtype

    functional = SimpleNamespace(softplus=square, relu=square)
    nn = SimpleNamespace(functional=functional)
    torch = SimpleNamespace(Tensor=Tensor, bfloat16="bf16", float16="fp16", square=square, nn=nn)
    with slice_child.widening(torch):
        assert torch.square(Tensor("bf16")) == functional.softplus(Tensor("fp16")) == "fp32"
        assert functional.relu(Tensor("bf16")) == "bf16"
    assert torch.square is functional.softplus is square


def test_a_pattern_that_counts_the_layers_is_cut_alone():
    assert slice_child.shallow({"hybrid_override_pattern": "MEMEM*"}, 2) == {"hybrid_override_pattern": "ME"}


@pytest.mark.parametrize(
    "config",
    [
        HYBRID,
        {**HYBRID, "intermediate_size": None, "moe_layer_freq": [0, 1] * 6, "num_experts": 128},
        {"model_type": "new", "hybrid_override_pattern": "MEMEM*EM", "time_step_limit": [0.0, float("inf")]},
        {"model_type": "new_writer", "encoder_layers": 2, "decoder_layers": 24, "d_model": 64},
        {"model_type": "new_vl", "text_config": {**HYBRID}, "vision_config": {"hidden_size": 8}},
    ],
)
def test_it_is_traced_or_refused_never_guessed(tmp_path: Path, capsys: Any, config: dict[str, Any]):
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert main(["memory", "--model", str(tmp_path), "--gpu", "RTX 4090"]) == 3
    assert "is not known here, and a guess is no answer" in capsys.readouterr().err


@pytest.mark.parametrize(("encoder", "depths"), [(12, (1, 2)), (4, (11, 12))])
def test_an_encoder_and_a_decoder_that_are_parts_are_cut_alike(encoder: int, depths: tuple[int, int]) -> None:
    def part(layers: int) -> dict[str, Any]:
        return {"num_hidden_layers": layers, "hidden_size": 64, "vocab_size": 512, "num_attention_heads": 4}

    config = {
        "model_type": "new_t5",
        "encoder": part(encoder),
        "decoder": {**part(12), "model_type": "new_t5"},
    }
    shape = parse_shape(config, "it")
    assert (shape.layers, shape.known) == (12, False)
    run = TrainingRun(shape, "full", batch=1, seq=128)
    assert depths_of(run, config) == depths


def test_layers_that_hold_two_of_all_are_counted_once() -> None:
    told = {"model_type": "new", "num_layers": 28, "num_hidden_layers": 56, "hidden_size": 64}
    assert parse_shape(told, "it").layers == 28


def test_a_kind_of_layer_that_the_shallower_slice_has_not_is_the_height_of_the_way_back() -> None:
    marks = {"live_after_loss": 10, "live_after_layers": 12, "backward_end": 12}
    deep = {**marks, "backward_layers": 200}
    assert Slices((3, 4), {**marks, "backward_layers": 50}, deep, {}).backward(4) == 200


def test_the_layers_of_a_pattern_are_counted(tmp_path: Path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "new", "hybrid_override_pattern": "MEMEM*EM", "limit": [0, Infinity]}')
    shape = parse_shape(read_config(path), "it")
    assert (shape.layers, shape.known) == (8, False)
