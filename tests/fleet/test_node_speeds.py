"""Nodes' speeds: slow by the book, slow beside the others, and in nobody's group."""

from __future__ import annotations

from typing import Any

from clusters import cluster, merged

from envdoctor.fleet.answer import NodeFinding
from envdoctor.fleet.assembly import answer

Json = dict[str, Any]


def speed(op: str, figure: float, card: str = "NVIDIA H200") -> Json:
    told = {"figure": figure, "unit": "GB/s", "cards": [card]}
    return {
        "op": op,
        "outcome": "skipped",
        "source": "smoke",
        "reason": "measured, not judged",
        "speed": told,
    }


def findings(figures: dict[int, float], card: str) -> tuple[list[NodeFinding], int]:
    nodes = cluster(max(figures))
    for number, figure in figures.items():
        nodes[f"node{number:03d}"]["verdicts"] = [
            speed("bandwidth.h2d", 60.0 + number, card),
            speed("bandwidth.h2d@1", figure, card),
        ]
    told = answer(merged(nodes))
    return [one for one in told.findings if one.finding.id.startswith("SPEED")], len(told.groups)


def test_nodes_slow_by_the_book_are_one_finding_with_their_figures() -> None:
    (found,), groups = findings({1: 55.0, 2: 26.5, 3: 54.1, 4: 13.25}, "NVIDIA H200")
    assert found.nodes == ("node002", "node004")
    assert found.finding.id == "SPEED-SLOW"
    assert found.finding.summary == (
        "bandwidth.h2d is slow: 13.2 to 26.5 GB/s where 55.1 GB/s is expected, at least 48."
    )
    assert [(e.fact, e.source) for e in found.finding.evidence] == [
        ("bandwidth.h2d@1", "node004"),
        ("bandwidth.h2d@1", "node002"),
    ]
    assert groups == 1


def test_a_card_that_no_row_knows_is_held_against_the_others() -> None:
    (found,), _ = findings({1: 25.0, 2: 25.5, 3: 24.1, 4: 13.25}, "NVIDIA Quadro of Tomorrow")
    assert (found.finding.id, found.nodes) == ("SPEED-ODD", ("node004",))
    assert found.finding.summary == "bandwidth.h2d is slow: 13.2 GB/s where most nodes reach 24.6 GB/s."


def test_figures_that_scatter_a_little_are_no_finding() -> None:
    assert findings({1: 55.0, 2: 53.0, 3: 54.1, 4: 51.0}, "NVIDIA H200")[0] == []
    assert findings({1: 25.0, 2: 5.0}, "NVIDIA Quadro of Tomorrow")[0] == []


def test_a_figure_that_is_none_makes_the_node_unreached() -> None:
    nodes = cluster(2)
    nodes["node001"]["verdicts"] = [{**speed("bandwidth.h2d", 1.0), "speed": {"figure": "fast"}}]
    (unreached,) = answer(merged(nodes)).unreached
    assert unreached.nodes == ("node001",)
    assert "expected float" in unreached.reason
