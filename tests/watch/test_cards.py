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


def watched(nvml: FakeNvml, cards: room.Cards) -> Iterator[Moment]:
    """Yield a moment a second with what is read of links, each card's every ten."""
    for t, fold in enumerate(read(nvml, cards), 1):
        yield Moment(float(t), t, 2000, 1.0, "training", cards=fold, links=cards.take_links())


def named(*script: Sequence[Reading], opened: Opened) -> list[tuple[str, str]]:
    judge = Judge(Header())
    moments = watched(*opened(*script))
    return [(alarm.kind, alarm.text) for moment in moments for alarm in judge.feed(moment)]


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


def test_links_are_read_every_ten_seconds_and_rates_are_between_two_readings(opened: Opened) -> None:
    script = [[Reading({OURS: 9_000}, nvlink_kib=t << 20, nvlink_errors=0)] for t in range(25)]
    links = [moment.links for moment in watched(*opened(*script))]
    assert [at for at, found in enumerate(links) if found] == [0, 10, 20]
    ((first,), (second,)) = (links[0], links[10])
    assert (first.generation, first.width, first.sent, first.received) == (5, 16, 300, 301)
    assert (first.nvlink_sent, first.nvlink_errors, first.ecc_uncorrected) == (None, 0, 0)
    assert second.nvlink_sent is not None


def test_what_a_card_does_not_tell_of_its_links_stays_unknown(opened: Opened) -> None:
    nvml, cards = opened([Reading({OURS: 9_000}, uncorrected=None)])
    ((link,),) = [moment.links for moment in watched(nvml, cards)]
    assert (link.nvlink_sent, link.nvlink_errors, link.ecc_uncorrected) == (None, None, None)


def test_a_link_below_what_card_and_machine_allow_is_named_once_it_works(opened: Opened) -> None:
    slow, resting = Reading({OURS: 9_000}, pcie=(1, 8)), Reading({OURS: 9_000}, pcie=(1, 8), util=0)
    assert named(*([[resting]] * 120), opened=opened) == []
    assert named(*([[slow]] * 120), opened=opened) == [
        (
            "LINK",
            "GPU 0's PCIe link runs at generation 1 ×8 of 5 ×16 while it works:"
            " what goes to and from the host is slow",
        )
    ]


@pytest.mark.parametrize(
    ("after", "kind", "text"),
    [
        (Reading({OURS: 9_000}, replays=30), "LINK", "PCIe link repeated 23 packets within a minute"),
        (Reading({OURS: 9_000}, replays=7, nvlink_errors=6), "LINK", "NVLink had 2 replays or recoveries"),
        (Reading({OURS: 9_000}, replays=7, uncorrected=4), "ECC", "memory had an error that ECC could not"),
    ],
)
def test_errors_that_come_while_it_runs_are_named(
    opened: Opened, after: Reading, kind: str, text: str
) -> None:
    before = Reading({OURS: 9_000}, replays=7, nvlink_errors=4, uncorrected=3)
    script = [*([[before]] * 15), *([[after]] * 40)]
    ((found, told),) = named(*script, opened=opened)
    assert found == kind
    assert f"GPU 0's {text}" in told


def test_errors_from_before_and_replays_now_and_then_are_not(opened: Opened) -> None:
    script = [
        [Reading({OURS: 9_000}, replays=900 + t // 10, nvlink_errors=7, uncorrected=2)] for t in range(300)
    ]
    assert named(*script, opened=opened) == []
