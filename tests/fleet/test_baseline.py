"""Against an accepted state: what changed counts, what was there before does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusters import Json, cluster, merged

from envdoctor.errors import InputError
from envdoctor.fleet.answer import FleetAnswer
from envdoctor.fleet.assembly import agreement_of, answer
from envdoctor.fleet.baseline import compare, read_baseline
from envdoctor.matrix import load_matrix


def told(nodes: dict[str, Json]) -> FleetAnswer:
    return answer(merged(nodes), select=("XID",))


def against(before: dict[str, Json], now: dict[str, Json], folder: Path) -> FleetAnswer:
    path = folder / "accepted.json"
    path.write_text(json.dumps(told(before).to_json()))
    return compare(told(now), read_baseline(path), agreement_of(load_matrix()), "accepted.json")


def test_accepted_drift_passes(tmp_path: Path) -> None:
    nodes = cluster(4)
    nodes["node004"]["host"]["kernel"]["value"] = "5.15"
    answer = against(nodes, nodes, tmp_path)
    assert [d.accepted for d in answer.drift] == [True]
    assert answer.exit_code == 0


def test_a_change_on_all_nodes_is_no_drift_but_a_change(tmp_path: Path) -> None:
    now = cluster(4)
    for node in now.values():
        node["driver"]["version"]["value"] = "590.48.01"
    answer = against(cluster(4), now, tmp_path)
    assert answer.drift == ()
    assert answer.comparison is not None
    (change,) = answer.comparison.changes
    assert (change.fact, change.was, change.now, len(change.nodes)) == (
        "driver",
        "580.159.04",
        "590.48.01",
        4,
    )
    assert answer.exit_code == 1


def test_drift_that_came_since_counts(tmp_path: Path) -> None:
    now = cluster(4)
    now["node002"]["gpus"]["value"].pop()
    answer = against(cluster(4), now, tmp_path)
    assert [(d.fact, d.accepted) for d in answer.drift] == [("gpu.count", False)]
    assert answer.exit_code == 1


def test_nodes_that_went_and_came_are_named(tmp_path: Path) -> None:
    now = cluster(5)
    del now["node001"]
    comparison = against(cluster(4), now, tmp_path).comparison
    assert comparison is not None
    assert (comparison.missing, comparison.new) == (("node001",), ("node005",))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hello", "no JSON"),
        ("{}", "not an answer of"),
        ('{"schema": "envdoctor.fleet/1"}', "its groups are malformed"),
        ('{"schema": "envdoctor.fleet/1", "groups": [{"nodes": "n[", "facts": {}}]}', "not a node set"),
        ('{"schema": "envdoctor.fleet/1", "groups": [{"nodes": "n1", "facts": {}}]}', "schema"),
    ],
)
def test_what_is_no_accepted_state_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "accepted.json"
    path.write_text(text)
    with pytest.raises(InputError, match=reason):
        read_baseline(path)
