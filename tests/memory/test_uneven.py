"""Rows of unlike length: masks of filled-up batches, blocks that break up, and what a full card gets back."""

from __future__ import annotations

import random
from dataclasses import replace
from math import inf
from types import SimpleNamespace

import pytest

from envdoctor.errors import InputError
from envdoctor.facts.quantities import MIB
from envdoctor.memory import caching, find_shape, predict
from envdoctor.memory.caching import GRANULE, CachingAllocator, OutOfRoom
from envdoctor.memory.growing import GrowingAllocator, allocator_of
from envdoctor.memory.replay import Replay
from envdoctor.memory.run import TrainingRun
from envdoctor.memory.sharded_replay import Plays
from envdoctor.memory.uneven import widths_of

RUN = TrainingRun(
    replace(find_shape("qwen2.5-0.5b"), layers=2), "lora", batch=4, seq=512, grad_ckpt=False, gpus=1
)
UNEVEN = replace(RUN, shortest_row=128)


def test_a_full_card_gets_back_what_lies_free_as_a_whole() -> None:
    heap = CachingAllocator(room=40 * MIB)
    first, second = heap.take(16 * MIB, 16 * MIB)
    heap.give(first)
    heap.take(24 * MIB)  # 56 MiB with the idle segment, 40 without it
    assert heap.reserved == 40 * MIB
    with pytest.raises(OutOfRoom):
        heap.take(2 * MIB)
    heap.give(second)
    heap.take(4 * MIB)
    assert heap.reserved == 40 * MIB  # what is free was cut up, and serves


def test_a_growing_segment_keeps_what_shares_a_step_with_a_block_in_use() -> None:
    heap = GrowingAllocator()
    blocks = heap.take(*(30 * MIB,) * 6)
    heap.give(
        *blocks[1:4]
    )  # from 30 to 120 MiB, where steps of 20 MiB that lie free as a whole end at 40 and 120
    (last,) = heap.take(100 * MIB)  # more is in use than before
    assert heap.reserved == 280 * MIB
    assert heap.lost * GRANULE == 10 * MIB
    heap.give(last, blocks[0])


def test_growing_segments_need_less_of_a_full_card_than_they_reserve() -> None:
    for method in ("full", "lora"):
        run = replace(RUN, method=method, grad_ckpt=True, expandable_segments=True)
        told = predict(run)
        needed = told.peak_reserved_bytes - told.idle_bytes
        assert told.peak_allocated_bytes * 1.025 <= needed < told.peak_reserved_bytes


def test_a_cut_segment_is_not_given_back() -> None:
    heap = CachingAllocator(room=32 * MIB)
    (whole,) = heap.take(16 * MIB)
    heap.give(whole)
    heap.take(8 * MIB)
    with pytest.raises(OutOfRoom):
        heap.take(20 * MIB)


def test_filled_up_batches_need_a_mask_and_repeated_keys() -> None:
    even, uneven = predict(RUN), predict(UNEVEN)
    assert uneven.peak_allocated_bytes > even.peak_allocated_bytes
    flash = replace(RUN, attn="flash_attention_2")
    alone = replace(RUN, batch=1)
    for run in (flash, alone):  # that kernel needs no mask, and one row is never filled up
        other = replace(run, shortest_row=128)
        assert predict(run).peak_allocated_bytes == predict(other).peak_allocated_bytes


def test_rows_that_grow_reserve_more_of_which_a_full_card_needs_little() -> None:
    even, uneven = predict(RUN), predict(UNEVEN)
    assert uneven.peak_reserved_bytes > 1.3 * even.peak_reserved_bytes
    assert 0 < uneven.idle_bytes < uneven.peak_reserved_bytes - uneven.peak_allocated_bytes
    assert uneven.device_bytes < 1.25 * even.device_bytes
    assert uneven.to_json()["idle_bytes"] == uneven.idle_bytes
    assert "idle_bytes" not in even.to_json()


def test_one_growing_segment_breaks_up_little() -> None:
    grown = predict(replace(UNEVEN, expandable_segments=True))
    assert grown.idle_bytes == 0
    assert grown.peak_reserved_bytes < predict(UNEVEN).peak_reserved_bytes


def test_widths_lie_between_the_shortest_row_and_the_longest() -> None:
    assert widths_of(UNEVEN, (0.0, 0.5, 1.0)) == (128, 320, 512)


@pytest.mark.parametrize("length", [0, 513])
def test_the_shortest_row_is_no_longer_than_the_longest(length: int) -> None:
    with pytest.raises(InputError, match="--shortest-row"):
        replace(RUN, shortest_row=length)


@pytest.mark.parametrize(
    ("way", "passes"),
    [({"expandable_segments": True}, 2 * 4 + 5), ({"method": "full"}, 2 * 4 + 2 * 8 + 2 * (4 + 5))],
)
def test_what_wider_rows_ask_for_as_well_is_not_played_before(
    way: dict[str, object], passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = []
    one = Replay._pass
    monkeypatch.setattr(
        Replay, "_pass", lambda self, accumulating: played.append(accumulating) or one(self, accumulating)
    )
    predict(replace(UNEVEN, grad_accum=4, **way))
    assert len(played) == passes


class Placed(Replay):
    """A replay that finds a place for every micro batch anew."""

    def _play(self, accumulating: bool) -> None:
        self._pass(accumulating)


@pytest.mark.parametrize("growing", [False, True])
@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
@pytest.mark.parametrize("widths", [(), (400, 512, 300, 512)], ids=["alike", "unlike"])
def test_a_micro_batch_that_finds_what_it_found_before_is_counted_alike(
    growing: bool, method: str, widths: tuple[int, ...]
) -> None:
    run = replace(RUN, method=method, grad_accum=4, grad_ckpt=True, expandable_segments=growing)
    known, anew = (kind(run, 32 * MIB, True, widths=widths) for kind in (Replay, Placed))
    assert known.reserved() == anew.reserved()
    assert known.heap.small == anew.heap.small
    assert known.closed or method == "full"


@pytest.mark.parametrize("growing", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_known_of_a_script_is_what_playing_it_gives(
    growing: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lot = random.Random(seed)
    scripts = [drawn(lot) for _ in range(2)]
    before = [lot.randrange(2 * MIB, 40 * MIB) for _ in range(60)]

    def played() -> tuple[int, int, tuple[int, ...]]:
        heap = allocator_of(growing)
        blocks = heap.take(*before)
        heap.give(*blocks[:30:2])  # holes, of which most are too small for anything
        for place in range(40):
            script = scripts[place % 2]
            found = [0] * len(script)
            heap.play(script, found)
            if place % 7 == 0:
                heap.give(blocks.pop(30))
        return heap.reserved, heap.lost, heap.free

    monkeypatch.setattr(caching, "MANY", 1)
    remembered = played()
    monkeypatch.setattr(caching, "MANY", 10**6)
    assert remembered == played()


def drawn(lot: random.Random) -> tuple[tuple[int, int], ...]:
    """Return requests of large blocks that come and go in some order; none is left."""
    sizes = [lot.randrange(30 * MIB, 90 * MIB) // GRANULE for _ in range(20)]
    events, live = [], list[int]()
    for slot, size in enumerate(sizes):
        events.append((slot, size))
        live.append(slot)
        if len(live) > 3:
            events.append((live.pop(lot.randrange(4)), 0))
    return (*events, *((slot, 0) for slot in live))


@pytest.mark.parametrize(
    ("taken", "early", "counts"),
    [
        ((100, 110), 0, 110),  # near enough: the higher
        ((100, 82, 101, 81), 102, 101),  # the side of the play to the letter, where one more lies there
        ((100, 121, 102, 120), 99, 102),
        ((100, 121, 122, 120), 0, 122),  # alone it does not count
        ((120, 100, 101, 99), 0, 101),
        ((120, 100, 119, 99), 101, 100),  # nor where only late ones lie there
    ],
)
def test_of_plays_that_lie_far_apart_the_side_of_the_letter_counts(
    taken: tuple[int, ...], early: int, counts: int
) -> None:
    plays = Plays(RUN, 0, False)
    plays.ways = tuple(
        lambda n=n: SimpleNamespace(reserved=lambda enough=inf, spare=-1: n, lost=0)  # type: ignore[misc,assignment]
        for n in (*taken, *[0] * (4 - len(taken)))
    )
    plays.early = [lambda: SimpleNamespace(reserved=lambda: early)] * 3  # type: ignore[list-item,return-value]
    assert plays.highest(inf) == counts


def test_a_play_that_passed_what_does_is_not_played_again_for_less() -> None:
    plays, played = Plays(RUN, 0, False), []

    def reserved(enough: float = inf, spare: int = -1) -> int:
        played.append(enough)
        return 12

    plays.ways = (lambda: SimpleNamespace(reserved=reserved, lost=0),) * 4  # type: ignore[assignment,return-value]
    assert [plays.highest(10), plays.highest(11), plays.highest(10)] == [12, 12, 12]
    assert played == [10]
    assert plays.highest(20) == 12  # what passed less has to be played to its end
    assert played == [10, 20, 20]
