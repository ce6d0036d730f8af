"""Ways to train less than all weights, and optimizers that keep less than two states of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envdoctor.cli import main
from envdoctor.memory import find_shape
from envdoctor.memory.growing import allocator_of
from envdoctor.memory.layout import Elements
from envdoctor.memory.optimizer import find_optimizer, optimizers, state_bytes
from envdoctor.memory.stepping import step_through, steps_in_python

STACK = ["--stack", "torch=2.11.0", "--format", "json"]
MODEL = ["--model", "llama-3.2-1b", "--batch", "1", "--seq", "256"]
TABLE = 128256 * 2048
LAYER = 2 * 2048 * 2048 + 2 * 512 * 2048 + 3 * 8192 * 2048 + 2 * 2048


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["memory", *MODEL, *arguments, *STACK]) == 0
    return dict(json.loads(capsys.readouterr().out))


def parts(answer: dict[str, Any]) -> dict[str, int]:
    return {part["name"]: part["bytes"] for part in answer["components"]}


@pytest.mark.parametrize(
    ("arguments", "states"),
    [
        ([], 4 * (16 * LAYER + TABLE)),
        (["--method", "freeze", "--trained-layers", "3"], 4 * 3 * LAYER),
        (["--method", "lisa", "--trained-layers", "3"], 4 * (16 * LAYER + TABLE)),
        (["--method", "badam"], 12 * LAYER),
        (["--optim", "lomo"], 0),
        (["--optim", "muon", "--trainer", "llamafactory"], 4 * 16 * LAYER + 8 * TABLE),
        (["--optim", "adam_mini", "--trainer", "llamafactory"], 4 * (16 * LAYER + TABLE)),
        (["--method", "prompt"], 8 * 20 * 2048),
        (["--method", "prefix", "--no-grad-ckpt", "--virtual-tokens", "10"], 8 * 10 * 2 * 16 * 512),
        (["--method", "ia3"], 8 * 16 * (512 + 512 + 8192)),
    ],
)
def test_what_is_trained_decides_which_states_there_are(
    arguments: list[str], states: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = parts(ask(capsys, *arguments)).get("optimizer states", 0)
    assert found == pytest.approx(states, rel=0.01, abs=70_000)


def test_a_projection_keeps_states_of_its_rank_and_a_basis() -> None:
    for name, width in (("galore_adamw", 2), ("apollo_adamw", 2), ("galore_adamw", 4)):
        matrix = Elements.of(8192, 2048, "up")
        low, basis = 64 * 8192, 64 * 2048
        if width == 4:  # the basis is a view of all that the decomposition returned
            basis = 2048 * 2048
        found = state_bytes(find_optimizer(name), [(matrix, 1)], width, rank=64)
        assert found == pytest.approx(width * (2 * low + basis), rel=0.001)


def test_gradients_that_go_at_once_are_never_there_together(capsys: pytest.CaptureFixture[str]) -> None:
    plain, fused = (ask(capsys, "--optim", name)["phases"] for name in ("galore_adamw", "lomo"))
    assert plain["optimizer"] - fused["optimizer"] > 2 * 16 * LAYER
    layerwise = ask(capsys, "--optim", "apollo_adamw_layerwise")["phases"]
    together = ask(capsys, "--optim", "apollo_adamw")["phases"]
    assert max(together.values()) - max(layerwise.values()) > 2 * 12 * LAYER


def test_layers_below_the_first_trained_one_keep_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def grown(layers: int) -> float:
        run = ["--method", "freeze", "--trained-layers", str(layers), "--no-grad-ckpt"]
        short, long = (ask(capsys, *run, "--seq", seq)["phases"]["loss"] for seq in ("256", "512"))
        return long - short

    assert grown(16) - grown(8) == pytest.approx(2 * (grown(8) - grown(4)), rel=0.01)
    assert grown(8) - grown(4) > 4 * 256 * 2048 * 2


def test_prompt_tuning_makes_rows_longer(capsys: pytest.CaptureFixture[str]) -> None:
    few, many = (ask(capsys, "--method", "prompt", "--virtual-tokens", n) for n in ("1", "256"))
    assert parts(many)["logits"] > 1.9 * parts(few)["logits"]


def test_layers_inputs_in_host_memory_are_five_on_the_card(capsys: pytest.CaptureFixture[str]) -> None:
    for more, layers in (([], 16), (["--offload-activations"], 5)):
        kept = parts(ask(capsys, "--seq", "4096", *more))["activations kept"]
        assert kept == pytest.approx(layers * 4096 * 2048 * 2, rel=0.01)


def test_what_was_never_measured_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    unmeasured = [name for name, row in optimizers().items() if not row.measured]
    assert unmeasured
    for name in unmeasured:
        assert "no run was measured" in ask(capsys, "--optim", name)["uncertain"]


def test_the_answer_tells_which_layers_and_which_rank(capsys: pytest.CaptureFixture[str]) -> None:
    told = " ".join(ask(capsys, "--method", "freeze", "--optim", "galore_adamw")["assumptions"])
    assert "the last 2 of 16 layers are trained" in told
    assert "projected to rank 128" in told


def test_cards_that_share_rows_keep_a_share_of_the_activations(capsys: pytest.CaptureFixture[str]) -> None:
    sharded = ["--seq", "32768", "--gpus", "4"]
    for split, parallel in (("--cp", "fsdp"), ("--sp", "zero3")):
        kept = []
        for share in ("1", "4"):
            answer = ask(capsys, *sharded, "--parallel", parallel, split, share)
            kept.append(parts(answer)["activations kept"])
        assert kept[0] == pytest.approx(4 * kept[1], rel=0.01)
        assert f"{split}: as the source says, no run was measured" in answer["uncertain"]


def test_cards_that_share_experts_hold_a_share_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--model", "qwen3-30b-a3b", "--method", "lora", "--lora-targets", "attn", "--gpus", "8"]
    whole, shared = (parts(ask(capsys, *asked, "--ep", n))["weights"] for n in ("1", "8"))
    experts = 48 * 128 * 3 * 2048 * 768 * 2
    assert whole - shared == pytest.approx(experts * 7 / 8, rel=0.01)


def test_a_second_partition_of_zero_is_counted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = []
    for more in ({}, {"zero_hpz_partition_size": 4}):
        file = tmp_path / "ds.json"
        file.write_text(json.dumps({"zero_optimization": {"stage": 3, **more}}))
        found.append(parts(ask(capsys, "--gpus", "8", "--deepspeed", str(file)))["gradient buffers"])
    assert found[1] - found[0] == pytest.approx(2 * (16 * LAYER + TABLE) / 4, rel=0.01)


def test_hqq_holds_four_bits_and_a_scale_and_a_zero_for_64(capsys: pytest.CaptureFixture[str]) -> None:
    nf4, hqq = (parts(ask(capsys, "--method", "qlora", "--quant", q))["weights"] for q in ("nf4", "hqq"))
    assert hqq - nf4 == pytest.approx(16 * LAYER * (4 / 64 - 1 / 64 - 4 / 64 / 256), rel=0.02)


def test_a_teacher_lies_beside_the_student_and_both_logits_count(capsys: pytest.CaptureFixture[str]) -> None:
    taught = ask(capsys, "--task", "distill", "--teacher", "llama-3.1-8b", "--seq", "1024")
    assert parts(taught)["reference model"] == pytest.approx(2 * 8.03e9, rel=0.01)
    assert taught["phases"]["loss"] - taught["phases"]["optimizer"] > 10 * 4 * 1024 * 128256
    assert "llama-3.1-8b as teacher" in " ".join(taught["assumptions"])


def test_axolotls_kernels_save_only_what_a_block_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--method", "lora", "--no-grad-ckpt", "--trainer", "axolotl", "--seq", "1024"]
    kept = {}
    for release, dropout in (("0.19.0", "0"), ("0.8.0", "0"), ("0.19.0", "0.1"), ("0.15.0", "0.1")):
        told = ["--stack", f"axolotl={release}", "--lora-dropout", dropout]
        assert main(["memory", *MODEL, *asked, *told, "--format", "json"]) == 0
        kept[release, dropout] = parts(dict(json.loads(capsys.readouterr().out)))["activations kept"]
    block = 16 * 1024 * 2 * (2048 + 2 * 8192)  # input, gate and up of each feed-forward block
    assert block < kept["0.19.0", "0"] < 0.75 * kept["0.8.0", "0"]
    left = 16 * 1024 * (2 + 1) * (3 * 2048)  # what is left of three inputs of a layer, and masks
    assert kept["0.19.0", "0.1"] == pytest.approx(kept["0.19.0", "0"] + left, rel=0.01)
    assert kept["0.15.0", "0.1"] > kept["0.8.0", "0"]  # its kernels took no dropout yet


def test_weights_of_two_widths_are_stepped_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    step = parts(ask(capsys, "--trainer", "axolotl", "--optim", "galore_adamw"))["optimizer step"]
    assert step == pytest.approx(2 * 4 * TABLE, rel=0.01)  # the table's own in fp32, no layer's beside it


def test_products_in_eight_bits_keep_each_input_and_cast_by_way_of_fp32(
    capsys: pytest.CaptureFixture[str],
) -> None:
    adapted = ["--method", "lora", "--no-grad-ckpt", "--seq", "1024", "--dtype", "fp32"]
    wide, low = (ask(capsys, *adapted, "--amp", amp) for amp in ("bf16", "fp8"))
    copies = 2 * 16 * (LAYER - 2 * 2048)  # autocast's of the layers' weights, of which the product needs none
    inputs = 2 * 16 * 1024 * (5 * 2048 + 8192)  # in 16 bits; that of attention's last one was kept before
    kept = [parts(one)["activations kept"] for one in (wide, low)]
    assert kept[0] - kept[1] == pytest.approx(copies - inputs, rel=0.01)
    full = ["--seq", "256", "--no-grad-ckpt"]
    peaks = [ask(capsys, *full, "--amp", amp)["phases"]["forward"] for amp in ("bf16", "fp8")]
    assert peaks[1] - peaks[0] == pytest.approx(9 * 8192 * 2048, rel=0.1)  # a matrix while it is cast
    told = " ".join(ask(capsys, *full, "--amp", "fp8")["assumptions"])
    assert "ENABLE_FSDP_FLOAT8_ALL_GATHER=false" in told
    assert "bf16 left unset" in told
    assert "ALL_GATHER" not in " ".join(
        ask(capsys, *full, "--amp", "fp8", "--trainer", "axolotl")["assumptions"]
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--trainer", "llamafactory"], "computes in bf16 all the same"),
        (["--method", "qlora"], "not quantised ones"),
        (["--gpus", "2", "--parallel", "fsdp"], "holds the whole model alone"),
        (["--gpu", "A100 80GB"], "no products in FP8"),
    ],
)
def test_products_in_eight_bits_are_refused_with_a_sentence(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memory", *MODEL, "--amp", "fp8", *arguments]) == 2
    assert why in capsys.readouterr().err


def test_adapters_on_weights_in_other_bits_are_uncertain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
              "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
              "tie_word_embeddings": True, "quantization_config": {"quant_method": "aqlm"}}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert main(["memory", "--model", str(tmp_path), "--method", "lora", *STACK]) in (0, 1)
    answer = json.loads(capsys.readouterr().out)
    assert "weights stored as aqlm" in answer["uncertain"]
    codes = 2 * TABLE + 16 * ((LAYER - 2 * 2048) / 4 + 7 * (1 << 20))  # and a codebook of each matrix
    assert parts(answer)["weights"] == pytest.approx(codes, rel=0.01)


@pytest.mark.parametrize(
    "name", ["adafactor", "galore_adamw", "apollo_adamw", "muon", "adam_mini", "adamw_torch"]
)
def test_a_step_leaves_nothing_but_the_states_that_the_first_one_makes(name: str) -> None:
    optimizer, shape = find_optimizer(name), find_shape("qwen2.5-0.5b")
    trained = ((Elements.of(896, 4864, "up"), 2), (Elements.of(4864, 896, "down"), 2), (896, 2))
    heights = []
    for first in (True, False):
        step = step_through(optimizer, shape, trained, 0, first, -1)
        heap = allocator_of(True)
        blocks = [0] * step.slots
        heap.play(step.events, blocks)
        heap.give(*(blocks[slot] for slot in step.states))
        assert bool(step.states) is first
        assert (heap.live, heap.free) == (0, (0,))  # all lies in what is left at the end
        heights.append(heap.reserved)
    assert heights[0] > 0
    assert (heights[1] > 0) is steps_in_python(optimizer)
