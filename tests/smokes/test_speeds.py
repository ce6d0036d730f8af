"""Speeds: measured in children, held against what the card should reach, slow with what explains it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from envdoctor.cli import main
from envdoctor.facts import Speed
from envdoctor.matrix import load_matrix, tables
from envdoctor.report import Format
from envdoctor.smokes.expected import judge_report, judge_speed
from envdoctor.smokes.pacing import parse_links
from envdoctor.smokes.report import render
from envdoctor.smokes.verdicts import SmokeReport, SmokeResult

H200 = ("NVIDIA H200",)
TOPOLOGY = """
\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\x1b[0m
GPU0\t X \tNV18\tPHB\tPIX\t0-47
GPU1\tNV18\t X \tPHB\tNODE\t0-47
GPU2\tPHB\tPHB\t X \tNODE\t0-47
NIC0\tPIX\tNODE\tNODE\t X
"""
FULL_LINK = {"pcie.link.gen.current": "5", "pcie.link.width.current": "16"}
SLOWED = {"clocks.sm": "900", "clocks.max.sm": "1980"}
HOT = {"clocks_throttle_reasons.active": "0x0000000000000040", "temperature.gpu": "91"}
NARROW = {"pcie.link.gen.current": "5", "pcie.link.width.current": "8"}


def judged(op: str, figure: float, cards: tuple[str, ...] = H200, unit: str = "GB/s", **more: object):
    return judge_speed(op, Speed(figure, unit, cards, **more), load_matrix())


@pytest.mark.parametrize(
    ("op", "card", "sound", "sick"),
    [
        ("bandwidth.h2d", "NVIDIA H100 80GB HBM3", 55, 27),
        ("bandwidth.h2d", "NVIDIA A100-SXM4-80GB", 25, 13),
        ("bandwidth.d2h@1", "Tesla T4", 12, 6),
        ("bandwidth.d2d", "NVIDIA H200", 4300, 2400),
        ("bandwidth.matmul", "NVIDIA H200", 790, 300),
        ("bandwidth.matmul", "NVIDIA A100 80GB PCIe", 240, 90),
        ("bandwidth.matmul", "NVIDIA L4", 60, 20),
        ("bandwidth.matmul", "NVIDIA GeForce RTX 4090", 160, 60),
    ],
)
def test_a_sound_card_passes_and_a_sick_one_is_slow(op, card, sound, sick):
    assert judged(op, sound, (card,))[0].verdict == "pass"
    found, reason = judged(op, sick, (card,))
    assert found.verdict == "slow"
    assert found.expected > found.least > sick
    assert f"slow: {sick} GB/s where" in reason


def test_a_card_that_no_row_knows_is_measured_and_not_judged():
    found, reason = judged("bandwidth.h2d", 12.0, ("NVIDIA Quadro of Tomorrow",))
    assert (found.verdict, found.expected) == ("unknown", None)
    assert reason == "12 GB/s; no expected figure for NVIDIA Quadro of Tomorrow"
    assert judged("bandwidth.p2p", 12.0, ("NVIDIA H200", "Tesla T4"))[0].verdict == "unknown"


@pytest.mark.parametrize(
    ("links", "figure", "verdict"),
    [(18, 380, "pass"), (18, 90, "slow"), (6, 125, "pass"), (0, 20, "unknown")],
)
def test_between_cards_the_links_that_they_have_count(links, figure, verdict):
    assert judged("bandwidth.p2p[0-1]", figure, H200 * 2, links=links)[0].verdict == verdict


def test_cards_whose_links_are_not_told_are_not_judged():
    found, reason = judged("bandwidth.all_reduce", 300.0, H200 * 2)
    assert found.verdict == "unknown"
    assert reason.endswith("no expected figure: how the cards are linked is not told")


@pytest.mark.parametrize(
    ("op", "figure", "seen", "words"),
    [
        ("bandwidth.h2d", 26.0, NARROW, "its link runs at PCIe 5.0 x 8, 31.5 of 63 GB/s"),
        ("bandwidth.h2d", 26.0, FULL_LINK, "Look at the slot"),
        ("bandwidth.matmul", 300.0, SLOWED, "SM clock 900 of 1980 MHz"),
        ("bandwidth.matmul", 300.0, HOT, "held back by heat, by the hardware at 91"),
        ("bandwidth.d2d", 2000.0, {"others": "PID 4711 (python)"}, "others compute there: PID 4711 (python)"),
    ],
)  # fmt: skip
def test_what_was_seen_meanwhile_explains_it(op, figure, seen, words):
    found, reason = judged(op, figure, seen=seen)
    assert words in reason
    assert any(words in cause for cause in found.causes)


def test_links_are_read_of_the_table_of_nvidia_smi():
    assert parse_links(TOPOLOGY, ["0", "1"]) == 18
    assert parse_links(TOPOLOGY, ["0", "2"]) == 0
    assert parse_links(TOPOLOGY, ["0", "1", "2"]) == 0
    assert parse_links("No devices were found", ["0", "1"]) is None
    assert parse_links(TOPOLOGY, ["0", "7"]) is None


def test_every_share_is_of_something_that_some_card_has():
    shares = load_matrix().rows(tables.SpeedShareRow)
    assert all(0 < row.share <= 1 and 0 < row.tolerance < 0.5 for row in shares)
    assert {row.ops for row in shares} == {
        f"bandwidth.{name}" for name in ("h2d", "d2h", "d2d", "matmul", "p2p", "all_reduce")
    }


def test_a_speed_is_measured_in_a_child_and_what_it_moved_is_looked_at(verdicts):
    found = verdicts("speed", "speed_of_nothing", "none")
    assert found["speed"].speed.figure == pytest.approx(2000, rel=0.6)
    assert (found["speed"].outcome, found["speed"].tolerance) == ("skipped", None)
    assert found["speed_of_nothing"].reason == "7 of 8 values that were looked at did not arrive"
    assert found["speed_of_nothing"].outcome == "failed"


MEASURED = SmokeResult("bandwidth.h2d", "skipped", "measured, not judged", speed=Speed(27.0, "GB/s", H200))


def test_a_slow_card_fails_and_an_unknown_one_proves_nothing():
    slow = judge_report(SmokeReport("NVIDIA H200", (MEASURED,)), load_matrix())
    assert (slow.exit_code, slow.results[0].outcome) == (1, "failed")
    assert "bandwidth.h2d  slow" in render(slow)
    assert "slow: 27 GB/s where 55.1 is expected, at least 48" in render(slow)
    fine = replace(MEASURED, speed=Speed(55.0, "GB/s", H200))
    assert judge_report(SmokeReport("NVIDIA H200", (fine,)), load_matrix()).exit_code == 0
    strange = replace(MEASURED, speed=Speed(55.0, "GB/s", ("NVIDIA Quadro of Tomorrow",)))
    unknown = judge_report(SmokeReport("?", (strange,)), load_matrix())
    assert unknown.exit_code == 3
    assert "no expected figure for NVIDIA Quadro of Tomorrow" in unknown.unprovable
    assert "unjudged" in render(unknown)


def test_the_json_of_a_speed_has_its_figure_and_what_was_expected():
    report = judge_report(SmokeReport("NVIDIA H200", (MEASURED, SmokeResult("a", "passed"))), load_matrix())
    speed, other = json.loads(render(report, Format.JSON))["results"]
    assert (speed["outcome"], speed["speed"]["verdict"], speed["speed"]["figure"]) == ("failed", "slow", 27.0)
    assert speed["speed"]["rows"] == ["CARD-SPEED-H200-SXM", "SPEED-SHARE-H200-H2D"]
    assert "speed" not in other


def test_without_a_card_there_is_nothing_to_measure(faulty, monkeypatch, capsys):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert main(["smoke", "--python", faulty, "--bandwidth"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("! 6 skipped no device skipped bandwidth.h2d, bandwidth.d2h")
    assert "bandwidth.all_reduce: no GPU" in told
