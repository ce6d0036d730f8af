"""The tape: what autograd allocates, keeps and lets go of."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from envdoctor.memory.caching import (
    TOUCHED,
    Block,
    CachingAllocator,
    Events,
    OutOfRoom,
    Script,
)
from envdoctor.memory.growing import allocator_of
from envdoctor.memory.tape import Tape, rounded


def test_requests_are_rounded_as_the_caching_allocator_does() -> None:
    assert rounded(1) == 512
    assert rounded(513) == 1024
    assert rounded(20 << 20) == 20 << 20
    assert rounded((21 << 20) + 512) == 22 << 20  # the rest of a segment of its own is too small to cut off


def test_a_product_keeps_its_inputs_until_its_backward_pass() -> None:
    tape = Tape()
    a, b = tape.new(1024, 4, needs=True), tape.new(1024, 4, needs=True)
    out = tape.op(1024, 4, (a, b), (a, b))
    tape.drop(a, b)
    assert tape.live == 3 * 4096
    tape.drop(out)
    tape.backward(out)
    assert tape.live == 2 * 4096  # both inputs' gradients, and nothing that was saved


def test_a_sum_hands_its_gradient_on_without_copying_it() -> None:
    tape = Tape()
    a, b = tape.new(1024, 4, needs=True), tape.new(1024, 4, needs=True)
    out = tape.op(1024, 4, (a, b), through=True)
    tape.drop(a, b, out)
    tape.peak = 0
    tape.backward(out)
    assert tape.peak == 0


def test_a_checkpointed_forward_pass_keeps_nothing() -> None:
    tape = Tape(keep=False)
    a = tape.new(1024, 4, needs=True)
    out = tape.op(1024, 4, (a,), (a,))
    tape.drop(a)
    assert tape.live == out.size


def test_weight_gradients_stay_unless_they_are_added_to_older_ones() -> None:
    for accumulating, left in ((False, 8192), (True, 0)):
        tape = Tape(accumulating=accumulating)
        a = tape.new(1024, 4)
        out = tape.op(1024, 4, (a,), (a,), parameter=8192)
        tape.drop(a, out)
        tape.backward(out)
        assert tape.grads == left
        assert tape.peak >= 8192


@pytest.mark.parametrize("growing", [False, True])
@pytest.mark.parametrize("widened", [0.0, 0.003])
def test_layers_that_are_led_as_before_lie_where_they_would(growing: bool, widened: float) -> None:
    lot, followed = random.Random(1129), 0
    for _ in range(20):
        script = Script(drawn_events(lot))
        left: tuple[list[int], list[int]] = ([], [])
        heaps = allocator_of(growing, widened), allocator_of(growing, widened)
        for layer in range(24):
            frames = [[*heap.take(*INPUTS), *[0] * len(script.events)] for heap in heaps]
            known = sum(len(part.led) for part in script.parts.values())
            heaps[0].perform(script, frames[0])
            serve_each(heaps[1])(script, frames[1])
            followed += known == sum(len(part.led) for part in script.parts.values()) > 0
            stays = sorted(
                {slot for slot, size in script.events if size}
                - {slot for slot, size in script.events if not size}
            )
            for heap, frame, held in zip(heaps, frames, left, strict=True):
                held += [frame[slot] for slot in stays if slot != TOUCHED]
                if layer % 12 == 11:  # what the layers left goes
                    heap.give(*held)
                    held.clear()
            assert left[0] == left[1]
            led, played = heaps
            assert (led.reserved, led.live, led.free) == (played.reserved, played.live, played.free)
    assert followed > 100


def test_on_a_full_card_a_script_is_served_as_its_requests_one_by_one() -> None:
    lot, full, through = random.Random(2911), 0, 0
    for _ in range(40):
        script, room = Script(drawn_events(lot)), lot.randrange(60 << 20, 130 << 20)
        heaps = allocator_of(False, room=room), allocator_of(False, room=room)
        told = []
        for heap, serve in zip(heaps, (heaps[0].perform, serve_each(heaps[1])), strict=True):
            try:
                for _ in range(3):
                    serve(script, [*heap.take(*INPUTS), *[0] * len(script.events)])
                told.append((heap.reserved, heap.live, heap.free))
            except OutOfRoom:
                told.append(None)
        assert told[0] == told[1]
        full, through = full + (told[0] is None), through + (told[0] is not None)
    assert min(full, through) > 5


def serve_each(heap: CachingAllocator) -> Callable[[Script, list[Block]], None]:
    """Return what serves a script's requests as that many scripts."""

    def serve(script: Script, blocks: list[Block]) -> None:
        for event in script.events:
            heap.play((event,), blocks)

    return serve


INPUTS = (9 << 20, 3 << 20, 700_000)
"""Bytes of what a drawn layer is given; all of it goes in its course."""


def drawn_events(lot: random.Random) -> Events:
    """Return some hundred requests, small and large, of which three stay; three slots are there before."""
    there, events, slot = [0, 1, 2], list[tuple[int, int]](), 2
    while len(events) < 120 or len(there) > 3 or min(there) < 3:
        if len(there) > 6 or (len(events) >= 120 and (len(there) > 3 or min(there) < 3)):
            place = there.index(min(there)) if lot.random() < 0.3 else lot.randrange(len(there))
            events.append((there.pop(place), 0))
        else:
            slot += 1
            touched = lot.random() < 0.1
            events.append((TOUCHED if touched else slot, lot.choice((300, 1900, 6000, 18_000, 24_000))))
            there += [] if touched else [slot]
    return tuple(events)
