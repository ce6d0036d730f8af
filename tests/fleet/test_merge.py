from __future__ import annotations

import json

import pytest
from clusters import cluster, healthy_node, merged

from envdoctor.fleet.merge import Merge


def test_nodes_that_differ_only_as_equal_nodes_do_are_one_group() -> None:
    groups, unreached = merged(cluster(64)).result()
    assert [len(group.nodes) for group in groups] == [64]
    assert unreached == ()


def test_the_layout_of_the_text_does_not_matter() -> None:
    merge = Merge()
    for name, indent in (("a", 1), ("b", None), ("c", 4)):
        merge.add(name, json.dumps(healthy_node(), indent=indent).encode())
    merge.add("d", json.dumps({"schema": "envdoctor.diagnosis/1", "facts": healthy_node()}).encode())
    groups, _ = merge.result()
    assert [group.nodes for group in groups] == [("a", "b", "c", "d")]


def test_the_common_facts_name_no_single_node() -> None:
    (group,), _ = merged(cluster(2)).result()
    assert "hostname" not in group.json["host"]
    assert "uuid" not in group.json["gpus"]["value"][0]
    assert "RANK" not in group.json["variables"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "it answered nothing"),
        (b"Last login: Fri Nov 20", "it answered no facts but 'Last login: Fri Nov 20'"),
        (b'{\n "a": 1\n}', "its facts cannot be read: schema"),
        (b"[1, 2", "it answered no facts but"),
        (b'{"schema": "envdoctor.facts/9"}', "its facts cannot be read: schema"),
        (b'{"schema": "envdoctor.facts/1", "gpus": 7}', "its facts cannot be read: facts.gpus"),
        (b"[" * 200_000, "nested too deep"),
        (b"\xff\xfe\x00", "it answered no facts but"),
    ],
)
def test_garbage_makes_a_node_unreached_with_the_reason(text: bytes, reason: str) -> None:
    merge = merged(cluster(3))
    merge.add("node004", text)
    groups, unreached = merge.result()
    assert [group.nodes for group in groups] == [("node001", "node002", "node003")]
    assert [one.nodes for one in unreached] == [("node004",)]
    assert reason in unreached[0].reason


def test_what_is_kept_grows_with_what_is_distinct() -> None:
    merge = merged(cluster(50))
    assert len(merge._sections) < 12
