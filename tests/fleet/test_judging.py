"""Every kind of node is judged once by the rules for one machine; mixtures are judged across nodes."""

from __future__ import annotations

from typing import Any

from clusters import Json, cluster, merged

from envdoctor.fleet.assembly import answer
from envdoctor.fleet.judging import mixed_capability
from envdoctor.fleet.pinning import fewest_blocks, joint_target
from envdoctor.fleet.sizing import smallest
from envdoctor.matrix import load_matrix


def as_t4(node: Json) -> None:
    node["gpus"]["value"] = [
        {"index": 0, "source": "NVML", "name": "Tesla T4", "compute_capability": "7.5"}
        | {"memory_total_bytes": 15 << 30, "pci_id": "10de:1eb8"}
    ]


def test_a_finding_names_the_nodes_it_was_made_on() -> None:
    nodes = cluster(6)
    for name in ("node002", "node005"):
        nodes[name]["environment"]["distributions"]["torchvision"]["version"] = "0.22.0"
    found = {f.finding.id: f.nodes for f in answer(merged(nodes), select=("TORCHVISION-TORCH",)).findings}
    assert found == {"TORCHVISION-TORCH": ("node002", "node005")}


def test_unlike_cards_name_what_a_job_over_all_must_do_without() -> None:
    nodes = cluster(4)
    as_t4(nodes["node004"])
    mixed = mixed_capability(merged(nodes).result()[0], load_matrix())
    assert mixed is not None
    assert mixed.finding.summary == "The nodes' GPUs are of different compute capability: 7.5, 9.0."
    assert "no bf16" in mixed.finding.cause
    assert "no fp8" in mixed.finding.cause
    assert [(e.value, e.source) for e in mixed.finding.evidence] == [
        ("7.5", "node004"),
        ("9.0", "node[001-003]"),
    ]


def test_like_cards_are_no_mixture() -> None:
    assert mixed_capability(merged(cluster(3)).result()[0], load_matrix()) is None


def test_the_smallest_card_decides() -> None:
    nodes = cluster(4)
    as_t4(nodes["node003"])
    assert smallest(merged(nodes).result()[0]).nodes == ("node003",)


def test_kinds_of_nodes_are_gathered_in_the_fewest_sets() -> None:
    def holds(members: tuple[int, ...]) -> bool:
        return not {0, 3} <= set(members)

    blocks = fewest_blocks(4, holds)
    assert len(blocks) == 2
    assert sorted(i for block in blocks for i in block) == [0, 1, 2, 3]
    assert fewest_blocks(3, lambda _: True) == [(0, 1, 2)]
    assert fewest_blocks(2, lambda _: False) == [(0,), (1,)]


def test_a_joint_target_takes_the_oldest_of_each() -> None:
    from envdoctor.facts import ComputeCapability, DriverVersion
    from envdoctor.target.cards import Card
    from envdoctor.target.platforms import linux_platform
    from envdoctor.target.resolve import Target

    def target(glibc: str, driver: str, card: str, sm: str, **more: Any) -> Target:
        capability = ComputeCapability.parse(sm)
        python = more.get("python", (3, 12, 3))
        return Target(
            python, linux_platform("x86_64", glibc), (Card(card, capability),), DriverVersion.parse(driver)
        )

    new, old = target("2.39", "580.95.05", "H200", "9.0"), target("2.31", "535.104.05", "T4", "7.5")
    joint = joint_target([new, old])
    assert joint is not None
    assert joint.platform.libc_version == (2, 31)
    assert str(joint.driver) == "535.104.05"
    assert [card.name for card in joint.cards] == ["H200", "T4"]
    assert joint_target([new, target("2.39", "580.95.05", "H200", "9.0", python=(3, 10, 1))]) is None
