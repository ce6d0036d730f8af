"""What is foretold from moments, and what is not: what only looks like growth that goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from curves import GIB, Curve, alarms, moments, steady

from envdoctor.watch.moment import Card, Header, Moment


def test_a_host_leak_is_foretold_with_its_step_and_margin() -> None:
    run = list(moments(lambda t: 8 * GIB + 120 * t))
    death = run[-1].step or 0
    first = alarms(iter(run))[0]
    assert first.kind == "HOST-LEAK"
    assert first.step is not None
    assert abs(first.step - death) < 0.1 * death
    assert first.t < death - 100
    assert f"out of memory at about step {first.step} (±{first.margin}): host memory grows 12" in first.text


def test_a_leak_on_a_card_is_foretold() -> None:
    first = alarms(moments(card=lambda t: 30 * GIB + 100 * t))[0]
    assert (first.kind, first.card) == ("OOM-FORETOLD", 0)
    assert "memory of GPU 0 grows 100 MiB a step" in first.text


def test_nothing_is_said_where_the_run_ends_before() -> None:
    assert alarms(moments(lambda t: 8 * GIB + 30 * t, of=600)) == []


SANE: dict[str, Curve] = {
    "a plateau": steady,
    "a rise that ends": lambda t: 8 * GIB + 20 * GIB * (1 - 0.98**t),
    "teeth": lambda t: 8 * GIB + 6 * GIB * (t % 90) / 90,
    "a jump": lambda t: 8 * GIB + (20 * GIB if t > 200 else 0),
    "three jumps": lambda t: 8 * GIB + 8 * GIB * sum(t > at for at in (100, 220, 400)),
    "a fall": lambda t: 40 * GIB - 30 * t,
}


@pytest.mark.parametrize("name", SANE)
def test_nothing_is_said_of_a_host_with(name: str) -> None:
    assert alarms(moments(SANE[name])) == []


@pytest.mark.parametrize("name", SANE)
def test_nothing_is_said_of_a_card_with(name: str) -> None:
    assert alarms(moments(card=SANE[name])) == []


def test_a_save_that_needs_more_is_counted_in() -> None:
    def saving(moment: Moment) -> Moment:
        if (moment.step or 0) % 100 < 95:
            return moment
        host, room = moment.host or 0, moment.room or 0
        return replace(moment, phase="saving", host=host + 16 * GIB, room=max(0, room - 16 * GIB))

    run = [saving(m) for m in moments(lambda t: 8 * GIB + 80 * t)]
    death = next(m.t for m in run if not m.room)
    last = [a for a in alarms(iter(run)) if a.kind == "HOST-LEAK"][-1]
    assert last.step is not None
    assert last.step <= death + 10


def holding(mib: int) -> Card:
    return Card(mib, mib, 80 * GIB, mib, 98)


def test_an_evaluation_that_gathers_is_foretold_in_its_batches() -> None:
    training = list(moments(seconds=60))
    last = training[-1]
    batches = [
        replace(last, t=60.0 + b, phase="evaluation", part=(b, 200), cards=(holding(30 * GIB + 400 * b),))
        for b in range(1, 60)
    ]
    said = [a for a in alarms(iter(training + batches)) if a.kind == "OOM-FORETOLD"]
    assert "of 200 of this evaluation: memory of GPU 0 grows 400 MiB a batch" in said[0].text


def test_a_neighbour_that_grows_is_named() -> None:
    said = alarms(moments(card=lambda _: 50 * GIB, others=lambda t: max(0, t - 100) * 80))
    assert {a.kind for a in said} == {"NEIGHBOUR"}
    assert "another process on GPU 0 grows" in said[0].text


def test_a_neighbour_that_was_there_before_is_not() -> None:
    assert alarms(moments(card=lambda _: 40 * GIB, others=lambda _: 20 * GIB)) == []


def test_rows_longer_than_any_so_far_are_foretold_where_the_prediction_says_so() -> None:
    def rows(t: int) -> float:
        return (40 + sum(4 for at in (3, 9, 30, 60, 100, 180) if t >= at)) * GIB

    said = alarms(moments(card=rows), Header(expected={"longest": 90 * GIB}))
    assert said[0].kind == "OOM-FORETOLD"
    assert "when a row of the longest comes" in said[0].text


def standing_still(
    util: tuple[int, ...], cores: float, stopped: tuple[int, ...] | None = None
) -> list[Moment]:
    run = list(moments(seconds=60))
    cards = tuple(Card(9000, 9000, 81_559, 9000, u, 200, 1900) for u in util)
    still = replace(run[-1], cards=cards, cores=cores, stopped=stopped)
    return run + [replace(still, t=60.0 + s, silent=float(s)) for s in range(1, 120)]


@pytest.mark.parametrize(
    ("util", "cores", "words"),
    [
        ((0, 0), 0.0, "the GPUs and the processors are at rest"),
        ((100, 100), 2.0, "a collective that all wait in"),
        ((100, 0), 1.0, "GPU 1 at rest while GPU 0 runs at 100 %"),
    ],
)
def test_a_run_that_hangs_is_told_with_what_its_cards_do(
    util: tuple[int, ...], cores: float, words: str
) -> None:
    said = alarms(iter(standing_still(util, cores)))
    assert [a.kind for a in said] == ["HANG"]
    assert words in said[0].text
    assert said[0].t < 120


def test_a_stopped_process_is_named_soon() -> None:
    said = alarms(iter(standing_still((100, 0), 1.0, (4711,))))
    assert said[0].t <= 72
    assert "process 4711 is stopped (kill -CONT 4711" in said[0].text


def test_a_run_that_works_without_a_word_does_not_hang() -> None:
    assert alarms(iter(standing_still((60, 70), 4.0))) == []


def test_a_card_that_is_held_back_and_a_straggler() -> None:
    def slow(moment: Moment) -> Moment:
        late = moment.t > 100
        hot = Card(9000, 9000, 81_559, 9000, 98, 600, 1200 if late else 1900, 0x40 if late else 0, 91)
        return replace(moment, cards=(*moment.cards, hot, moment.cards[0]))

    said = alarms(slow(m) for m in moments(seconds=300))
    assert {(a.kind, a.card) for a in said} == {("THROTTLE", 1), ("STRAGGLER", 1)}
    assert any("1200 of 1900 MHz at 91 °C: hardware thermal slowdown" in a.text for a in said)


NAN = "the loss or its gradient is no number at step 51: what follows is lost"


def test_a_loss_that_is_no_number_is_said_once() -> None:
    said = alarms(replace(m, nan=m.t > 50 or None) for m in moments(seconds=100))
    assert [(a.kind, a.text) for a in said] == [("NAN", NAN)]


def test_a_disk_that_will_not_hold_the_next_checkpoint() -> None:
    def saving(moment: Moment) -> Moment:
        saves = moment.t % 50 < 5
        return replace(
            moment, phase="saving" if saves else "training", disk=int(60_000 - moment.t // 50 * 14_000)
        )

    said = alarms(saving(m) for m in moments(seconds=240))
    assert [a.kind for a in said] == ["DISK"]
    assert "the next checkpoint will not fit: the last took 13.7 GiB" in said[0].text


def test_memory_in_pieces_is_told_where_the_allocator_speaks() -> None:
    full = moments(card=lambda _: 62.0 * GIB, seconds=400)
    run = (replace(m, allocated=30 * GIB, reserved=31 * GIB + int(m.t) * 60) for m in full)
    assert [a.kind for a in alarms(run)] == ["FRAGMENTATION"]
