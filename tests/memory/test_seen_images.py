"""Images in training: what a row's images cost, what is refused, and what is said of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from envdoctor.cli import main
from envdoctor.errors import InputError
from envdoctor.memory import TrainingRun, predict
from envdoctor.memory.model_config import parse_shape

# as its authors' file has it: the decoder's sizes among the whole's, the tower's mostly left to the class
QWEN_25_VL = {
    "model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": False,
    "sliding_window": 32768, "use_sliding_window": False,
    "vision_config": {"model_type": "qwen2_5_vl", "hidden_size": 1280},
}  # fmt: skip
# and here the decoder's part leaves out its heads and its vocabulary
GEMMA_3 = {
    "model_type": "gemma3", "mm_tokens_per_image": 256,
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
        "num_hidden_layers": 34, "sliding_window": 1024,
    },
    "vision_config": {
        "model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304,
        "num_attention_heads": 16, "num_hidden_layers": 27, "image_size": 896, "patch_size": 14,
    },
}  # fmt: skip


def run_of(config: dict[str, object], **told: object) -> TrainingRun:
    return TrainingRun(parse_shape(config, "it"), **{"method": "lora", "seq": 4096, **told})


def peak(run: TrainingRun) -> int:
    return predict(run).peak_allocated_bytes


def test_a_file_in_short_is_read_as_its_class_fills_it_in() -> None:
    qwen, gemma = parse_shape(QWEN_25_VL, "qwen"), parse_shape(GEMMA_3, "gemma")
    assert qwen.known
    assert (qwen.layers, qwen.vision.layers, qwen.vision.ffn, qwen.windowed_layers) == (28, 32, 3420, 0)
    assert (gemma.heads, gemma.kv_heads, gemma.head_dim, gemma.vocab) == (8, 4, 256, 262208)
    assert qwen.tower == pytest.approx(0.68e9, rel=0.02)


def test_each_image_costs_and_a_larger_one_costs_more() -> None:
    plain = run_of(QWEN_25_VL, images=0)
    one, two = (replace(plain, images=n, pixels=(1008, 1008)) for n in (1, 2))
    large = replace(one, pixels=(1512, 1512))
    assert peak(plain) < peak(one) < peak(two) < peak(large)


def test_a_frozen_tower_costs_less_and_without_checkpoints_far_less() -> None:
    trained = run_of(GEMMA_3, images=8, method="full")
    frozen = replace(trained, frozen_tower=True)
    assert peak(trained) - peak(frozen) > 3 * 2 * trained.shape.tower  # gradients and two states at least
    adapted = run_of(GEMMA_3, images=8, grad_ckpt=False)
    assert peak(replace(adapted, frozen_tower=True)) < peak(adapted) - (10 << 30)


def test_adapters_in_the_tower_are_those_whose_names_its_code_has() -> None:
    everywhere, none = run_of(GEMMA_3, images=1), run_of(GEMMA_3, images=1, frozen_tower=True)
    queries = run_of(GEMMA_3, images=1, lora_targets="qv")  # SigLIP has q_proj and v_proj as well

    def adapters(run: TrainingRun) -> int:
        return next(part.bytes for part in predict(run).components if part.name == "adapters")

    assert adapters(everywhere) > adapters(none)
    assert adapters(queries) > adapters(replace(queries, frozen_tower=True))
    qwen = run_of(QWEN_25_VL, images=1, lora_targets="qv")  # Qwen's tower has one matrix for the three
    assert adapters(qwen) == adapters(replace(qwen, frozen_tower=True))


@pytest.mark.parametrize(
    ("config", "told", "said"),
    [
        (QWEN_25_VL, {"images": 3, "pixels": (1512, 1512)}, "3 images of 1512x1512 alone are 8748 tokens"),
        (QWEN_25_VL, {"images": 1, "pixels": (20, 20)}, "20x20 is no size of an image"),
        (QWEN_25_VL, {"images": -1}, "-1 is no count"),
        ({**QWEN_25_VL, "model_type": "qwen2"}, {"images": 1}, "is not known what they cost"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(config, told, said) -> None:
    with pytest.raises(InputError, match=said):
        run_of(config, **told)


def test_the_command_says_what_the_images_of_a_row_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(QWEN_25_VL))
    asked = [
        "memory",
        "--model",
        str(config),
        "--method",
        "lora",
        "--stack",
        "torch=2.11",
        "--format",
        "json",
    ]
    assert (
        main([*asked, "--seq", "4096", "--images", "2", "--image-size", "1008x1344", "--trainer", "ms-swift"])
        == 0
    )
    answer = json.loads(capsys.readouterr().out)
    assert any(
        "2 images a row, each 1008x1344 pixels: 1728 tokens of --seq, 6912 rows of the tower, which is frozen"
        in n
        for n in answer["assumptions"]
    )
    assert answer["uncertain"] is None
    assert main([*asked, "--images", "1", "--image-size", "wide"]) == 2
    assert "no HEIGHTxWIDTH" in capsys.readouterr().err


def test_rows_of_which_nothing_is_told_are_said_to_be_of_text() -> None:
    assert "what it allocates for images is not (--images tells them)" in predict(run_of(GEMMA_3)).uncertain
