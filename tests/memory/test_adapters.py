"""DoRA, modules that peft copies, and segments that grow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envdoctor.errors import InputError
from envdoctor.memory import TrainingRun, find_shape, predict
from envdoctor.memory.growing import allocator_of
from envdoctor.memory.layout import parameters

MIB = 1 << 20
LORA = TrainingRun(find_shape("llama-3.2-1b"), "lora", batch=2, seq=1024, grad_ckpt=False)


def parts(run: TrainingRun) -> dict[str, int]:
    return {part.name: part.bytes for part in predict(run, close=False).components}


def test_dora_trains_a_magnitude_for_each_output() -> None:
    layer = 2048 + 512 + 512 + 2048 + 8192 + 8192 + 2048
    more = parts(replace(LORA, dora=True))["adapters"] - parts(LORA)["adapters"]
    assert more == pytest.approx(4 * 16 * layer, rel=0.01)


def test_a_copied_embedding_and_head_are_trained_beside_the_table_that_both_share() -> None:
    table = LORA.shape.vocab * LORA.shape.hidden
    copied = replace(LORA, modules_to_save="embed_tokens, lm_head")
    assert parts(copied)["adapters"] - parts(LORA)["adapters"] == pytest.approx(2 * 2 * table, rel=0.01)
    states = parts(copied)["optimizer states"] - parts(LORA)["optimizer states"]
    assert states == pytest.approx(2 * 2 * 2 * table, rel=0.01)
    assert parts(copied)["weights"] == parts(LORA)["weights"] > 2 * parameters(LORA.shape)


@pytest.mark.parametrize(
    ("run", "changes", "says"),
    [
        (LORA, {"method": "full", "dora": True}, "--dora and --modules-to-save need --method lora"),
        (LORA, {"modules_to_save": "lm_head,norm"}, "--modules-to-save: the copy of 'norm' is not counted"),
        (replace(LORA, shape=find_shape("qwen3-30b-a3b")), {"dora": True}, "peft has none for stacks"),
    ],
)
def test_what_peft_refuses_is_refused(run: TrainingRun, changes: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        replace(run, **changes)  # type: ignore[arg-type]


def test_a_segment_that_grows_joins_what_is_free_at_its_end_with_what_is_mapped_anew() -> None:
    for expandable, reserved in ((False, 60 + 100), (True, 120)):
        heap = allocator_of(expandable=expandable)
        first, second = heap.take(30 * MIB, 30 * MIB)
        heap.give(second)
        heap.take(90 * MIB if expandable else 100 * MIB)
        assert heap.reserved == reserved * MIB
        heap.give(first)


def test_the_end_of_a_segment_that_could_grow_serves_last() -> None:
    heap = allocator_of(expandable=True)
    first, _, last = heap.take(40 * MIB, 20 * MIB, 20 * MIB)
    heap.give(first)
    heap.give(last)
    (block,) = heap.take(20 * MIB)
    heap.take(60 * MIB)
    assert heap.reserved == 120 * MIB
    heap.give(block)


def test_a_row_as_long_as_the_window_needs_the_mask_too() -> None:
    shape = replace(find_shape("mistral-7b"), window=1024, windowed_layers=32)
    at, below = (predict(replace(LORA, shape=shape, seq=n), close=False) for n in (1024, 1023))
    assert at.peak_allocated_bytes > 1.02 * below.peak_allocated_bytes
