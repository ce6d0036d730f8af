"""What is read of cards and said of them, from a script of NVML's readings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

import pytest
from nvml import FakeNvml, Reading

from envdoctor.watch import cards as room
from envdoctor.watch.alarms import Judge
from envdoctor.watch.moment import Alarm, Card, Header, Moment

OURS, OTHER = 101, 202
Opened = Callable[..., tuple[FakeNvml, room.Cards]]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    def open_with(*script: Sequence[Reading]) -> tuple[FakeNvml, room.Cards]:
        nvml = FakeNvml(script)
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        monkeypatch.setattr(room, "_has_device", lambda pid: True)
        return nvml, room.open_cards()

    return open_with


def read(
    nvml: FakeNvml, cards: room.Cards, pids: frozenset[int] = frozenset({OURS})
) -> Iterator[tuple[Card, ...]]:
    """Yield a fold a second, after five samples."""
    for turn in range(len(nvml.script)):
        nvml.turn = turn
        for _ in range(5):
            cards.sample(pids)
        yield cards.fold()


def said(folds: Iterator[tuple[Card, ...]]) -> list[Alarm]:
    judge = Judge(Header())
    found = []
    for t, cards in enumerate(folds, 1):
        moment = Moment(
            float(t), t, 2000, 1.0, "training", host=900, room=60_000, cores=1.0, silent=0.1, cards=cards
        )
        found += judge.feed(moment)
    return found


def test_what_the_run_holds_is_told_apart_from_what_others_hold(opened: Opened) -> None:
    nvml, cards = opened([Reading({OURS: 20_000, OTHER: 5_000})])
    ((card,),) = read(nvml, cards)
    assert (card.used, card.ours, card.others) == (25_600, 20_000, 5_600)
    assert (card.util, card.power, card.clock, card.temperature) == (98, 600, 1980, 60)


def test_its_own_growth_is_never_a_neighbours(opened: Opened) -> None:
    script = [[Reading({OURS: min(136_000, 20_000 + 1_500 * t)})] for t in range(90)]
    kinds = {alarm.kind for alarm in said(read(*opened(*script)))}
    assert kinds == {"OOM-FORETOLD"}


def test_a_card_that_the_run_does_not_use_is_others_alone(opened: Opened) -> None:
    script = [[Reading({OURS: 20_000}), Reading({OTHER: 1_000 + 1_500 * t})] for t in range(90)]
    nvml, cards = opened(*script)
    assert said(read(nvml, cards)) == []


def test_before_it_uses_a_card_at_all_nothing_there_is_its_own(opened: Opened) -> None:
    script = [[Reading({OTHER: 1_000 + 1_500 * t})] for t in range(90)]
    nvml, cards = opened(*script)
    assert {fold[0].ours for fold in read(nvml, cards)} <= {None, 0}


def test_a_neighbour_that_fills_the_card_is_named(opened: Opened) -> None:
    script = [[Reading({OURS: 60_000, OTHER: min(80_000, 3_000 * max(0, t - 40))})] for t in range(120)]
    alarms = said(read(*opened(*script)))
    assert {alarm.kind for alarm in alarms} == {"NEIGHBOUR"}
    assert len(alarms) < 4


def test_a_card_that_is_held_back_is_told(opened: Opened) -> None:
    hot = Reading({OURS: 60_000}, clock=1_200, throttle=0x20, temperature=91)
    script = [*([[Reading({OURS: 60_000})]] * 20), *([[hot]] * 90)]
    (alarm,) = said(read(*opened(*script)))
    assert (alarm.kind, alarm.text) == (
        "THROTTLE",
        "GPU 0 is held back to 1200 of 1980 MHz at 91 °C: software thermal slowdown",
    )


def test_an_xid_and_a_lost_card_are_told_as_the_kernel_would(opened: Opened) -> None:
    nvml, cards = opened([Reading({OURS: 1}), Reading({OURS: 1})], [Reading(), Reading(lost=True)])
    nvml.xids.append((1, 79))
    list(read(nvml, cards))
    assert list(cards.take_failures()) == [
        "NVRM: Xid (PCI:00000001:18:00): 79, GPU 1",
        "NVRM: GPU 1 (PCI:00000001:18:00): GPU has fallen off the bus.",
    ]
    assert list(cards.take_failures()) == []
