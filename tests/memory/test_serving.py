"""What vLLM keeps for keys and values, against the figures that its own logs published."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envdoctor.cli import main
from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import ServingRun, find_shape, read_constants
from envdoctor.memory.serving import (
    card_bytes,
    describe_engine,
    request_keys,
    served_bytes,
    utilization_bounds,
)

GIB = 1 << 30


@pytest.mark.parametrize(
    ("model", "tokens", "batched", "gib"),
    [
        ("gpt-oss-120b", 131072, 1024, 4.54),  # vllm-project/vllm#27508: half of its layers see 128 tokens
        ("qwen3-coder-480b-a35b", 262144, 8192, 62.0),  # vllm-project/recipes#12
        ("qwen3-30b-a3b", 262144, 2048, 24.0),  # vllm-project/vllm#34076
        ("llama-3.1-8b", 131072, 2048, 16.0),  # vllm-project/tpu-inference#223
    ],
)
def test_one_longest_request_needs_what_vllm_says(model: str, tokens: int, batched: int, gib: float) -> None:
    assert request_keys(find_shape(model), 2, 1, 1, tokens, batched) / GIB == pytest.approx(gib, rel=0.003)


@pytest.mark.parametrize(
    ("model", "tp", "gib", "tokens"),
    [
        ("qwen3-14b", 1, 6.51, 42656),  # LMCache/LMCache#1739
        ("qwen3-235b-a22b", 4, 8.11, 178880),  # vllm-project/vllm#21348
        ("llama-3.1-8b", 1, 3.81, 31232),  # vllm-project/vllm#10517
        ("qwen2-7b", 2, 31.83, 1192160),  # dennislee22/vLLM-benchmarking
        ("mistral-small-24b", 1, 28.20, 184832),  # llm-d/llm-d-benchmark
        ("deepseek-r1", 8, 41.60, 635648),  # latent keys lie whole on each card
        ("llama-3-70b-awq", 2, 20.16, 132128),
    ],
)
def test_what_is_left_holds_as_many_tokens_as_vllm_says(model: str, tp: int, gib: float, tokens: int) -> None:
    one = request_keys(find_shape(model), 2, tp, 1, 32768, 8192) / 32768
    assert gib * GIB / one == pytest.approx(tokens, rel=0.015)


def engine(model: str, card: str, gib: float, share: float, **wanted: int) -> ServingRun:
    return ServingRun(find_shape(model), int(gib * GIB), share, max_model_len=131072, card=card, **wanted)


@pytest.mark.parametrize(
    ("run", "vllm", "left", "starts"),
    [
        (engine("gpt-oss-20b", "A100", 79.25, 0.65), "0.19.0", 36.56, True),
        (engine("gpt-oss-120b", "H100", 79.19, 0.95, max_batched_tokens=1024), "0.11.0", 1.71, False),
        (engine("gpt-oss-120b", "H100", 79.19, 0.9), "0.10.1", -2.14, False),  # vllm-project/vllm#23278
    ],
)
def test_an_engine_starts_or_refuses_as_it_did(run: ServingRun, vllm: str, left: float, starts: bool) -> None:
    constants = read_constants(load_matrix().rows(tables.MemoryRow), {"vllm": vllm})
    assert describe_engine(run, constants).keys / GIB == pytest.approx(left, abs=0.15)
    assert (utilization_bounds(run, constants).refusal(run.utilization) == "") is starts


@pytest.mark.parametrize(
    ("model", "card", "gib", "share", "beside", "left"),
    [
        ("qwen3-0.6b", "H100", 79.18, 0.9, {}, 64.45),  # llm-d/llm-d-benchmark: its own figures of the peak
        ("llama-3.1-8b", "H100", 79.18, 0.9, {}, 51.38),
        ("qwen3-32b", "H100", 79.18, 0.9, {}, 4.45),
        (
            "qwen2-7b",
            "A100",
            79.25,
            0.5,
            {"flashinfer-python": "0.3.0"},
            24.83,
        ),  # dennislee22/vLLM-benchmarking
    ],
)
def test_what_sampling_takes_while_profiling_depends_on_its_kernel(
    model: str, card: str, gib: float, share: float, beside: dict[str, str], left: float
) -> None:
    release = "0.10.1.1" if beside else "0.11.2"
    constants = read_constants(load_matrix().rows(tables.MemoryRow), {"vllm": release, **beside})
    assert describe_engine(engine(model, card, gib, share), constants).keys / GIB == pytest.approx(
        left, abs=0.15
    )


def test_experts_of_four_bits_are_filled_up_for_their_kernels() -> None:
    assert served_bytes(find_shape("gpt-oss-120b"), 2) / GIB == pytest.approx(65.97, rel=0.002)
    assert served_bytes(find_shape("gpt-oss-20b"), 2) / GIB == pytest.approx(13.72, rel=0.01)


def test_layers_of_two_kinds_fill_up_groups_of_one_size() -> None:
    gemma = find_shape("gemma-3-27b")  # 10 layers that see all, 52 with a window: groups of ten
    long = request_keys(gemma, 2, 1, 1, 131072, 2048)
    assert gemma.windowed_layers == 52
    per_block = 2 * gemma.kv_heads * gemma.head_dim * 2 * 16
    held = -(-(gemma.window - 1 + 2048) // 16) + 1
    assert long == per_block * 10 * (131072 // 16 + 6 * held)


@pytest.mark.parametrize(
    ("asked", "way"),
    [
        (("--model", "llama-3.1-8b", "--gpu", "RTX 3090"), "--tp 2 or --max-model-len "),
        (("--model", "llama-3.1-70b", "--gpu", "A100-80GB"), "--tp 4"),
        (
            ("--model", "llama-3.1-8b", "--gpu", "RTX 3090", "--vllm-utilization", "0.5"),
            "--vllm-utilization 0.",
        ),
    ],
)
def test_an_engine_that_does_not_run_is_told_with_what_it_would(
    asked: tuple[str, ...], way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shorter = ("--max-model-len", "4096") if "--vllm-utilization" in asked else ()
    assert (
        main(["memory", *asked, *shorter, "--task", "serve", "--stack", "torch=2.11.0", "--format", "json"])
        == 1
    )
    assert f"it would with {way}" in capsys.readouterr().out


def test_experts_of_four_bits_lie_beside_a_plain_rest() -> None:
    published = 595e9  # bytes of its files: vllm-project/recipes#533
    assert served_bytes(find_shape("moonshotai/Kimi-K2.7-Code"), 2) == pytest.approx(published, rel=0.005)


@pytest.mark.parametrize(
    ("model", "tp", "card", "gib", "vllm", "left"),
    [
        ("deepseek-r1", 8, "B200", 178.35, "0.18.0", 79.81),  # what leads into the ranks lies whole on each
        ("minimax-m2.5", 8, "H200", 139.81, "0.18.0", 96.57),
        ("llama-3.3-70b", 4, "H200", 139.81, "0.16.0", 90.30),  # the cards' buffers grew after this release
        ("llama-3.3-70b", 4, "H200", 139.81, "0.19.0", 91.57),
        ("llama-3.3-70b", 4, "H200", 139.81, "0.20.0", 90.66),  # from here on the share counts its graphs
        ("gpt-oss-120b", 1, "H100", 79.18, "0.11.2", 3.33),  # Hopper's kernels fill up less than Marlin's
    ],
)
def test_what_is_left_on_cards_that_split_each_layer(
    model: str, tp: int, card: str, gib: float, vllm: str, left: float
) -> None:
    capability = (10, 0) if card == "B200" else (9, 0)
    constants = read_constants(load_matrix().rows(tables.MemoryRow), {"vllm": vllm}, capability)
    share = 0.95 if tp == 1 else 0.92
    found = describe_engine(engine(model, card, gib, share, tp=tp), constants).keys / GIB
    assert found == pytest.approx(left, rel=0.03)


def test_fewer_key_heads_than_cards_lie_on_several_of_them() -> None:
    shape = replace(find_shape("qwen2.5-7b"), rope=False)  # four key heads; no table, which is whole on each
    assert shape.kv_heads == 4
    keys = 2 * shape.hidden * shape.kv_heads * shape.head_dim * shape.layers * 2
    assert card_bytes(shape, 2, 8, 1) - card_bytes(shape, 2, 4, 1) / 2 == pytest.approx(keys / 8, rel=0.001)


@pytest.mark.parametrize(
    ("release", "card", "kept"),
    [
        ("0.13.0", (9, 0), 0),
        ("0.14.1", (9, 0), 1),
        ("0.16.0", (9, 0), 0),
        ("0.18.0", (9, 0), 1),
        ("0.18.0", (10, 0), 0),
    ],
)
def test_what_experts_worked_in_stays_while_sampling_is_profiled(
    release: str, card: tuple[int, int], kept: int
) -> None:
    constants = read_constants(load_matrix().rows(tables.MemoryRow), {"vllm": release}, card)
    run = ServingRun(find_shape("deepseek-ai/DeepSeek-R1-0528"), 140 * GIB, 0.92, tp=8)
    without = replace(constants, vllm_keeps_fp8_experts=0)
    more = describe_engine(run, constants).activations - describe_engine(run, without).activations
    assert kept == (more > 0)
    assert more <= 2 * 8192 * 8 * 7168 * 2
