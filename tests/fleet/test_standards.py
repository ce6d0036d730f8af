"""Nodes that are all sick alike fail: facts are held against what such nodes, or the site's, must be like."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusters import Json, Plant, cluster, merged

from envdoctor.cli import main
from envdoctor.errors import InputError
from envdoctor.fleet.answer import FleetAnswer
from envdoctor.fleet.assembly import answer
from envdoctor.fleet.expecting import read_expectations
from envdoctor.fleet.standards import meets


def every_gpu(**fields: object) -> Plant:
    def plant(node: Json) -> None:
        for one in node["gpus"]["value"]:
            one.update(fields)

    return plant


def lose_a_gpu(node: Json) -> None:
    node["gpus"]["value"].pop()


ALIKE: dict[str, Plant] = {
    "gpu.count": lose_a_gpu,
    "gpu.nvlinks": every_gpu(nvlinks_up=12, nvlinks_total=12),
    "gpu.nvlinks down": every_gpu(nvlinks_up=17),
    "gpu.pcie generation": every_gpu(pcie_generation=4, pcie_generation_max=4),
    "gpu.pcie slot": every_gpu(pcie_width=8, pcie_width_max=8),
    "gpu.power limit": every_gpu(power_limit_mw=450_000, power_limit_default_mw=450_000),
    "gpu.ecc": every_gpu(ecc="Disabled"),
    "fabric manager": lambda node: node["driver"].update(fabric_manager={"value": "stopped", "source": "x"}),
    "full disks": lambda node: node["host"].update(disk_free_bytes={"tmp": 1 << 20}),
}


def judged(nodes: dict[str, Json], **options: object) -> FleetAnswer:
    return answer(merged(nodes), **options)  # type: ignore[arg-type]


def facts_short(told: FleetAnswer) -> dict[str, tuple[str, ...]]:
    own = ("STANDARD-", "EXPECTED-")
    return {f.finding.evidence[0].fact: f.nodes for f in told.findings if f.finding.id.startswith(own)}


def test_a_healthy_cluster_falls_short_in_nothing() -> None:
    assert facts_short(judged(cluster(4))) == {}


@pytest.mark.parametrize("fact", sorted(ALIKE))
def test_a_fault_that_all_nodes_share_is_found(fact: str) -> None:
    nodes = cluster(3)
    for node in nodes.values():
        ALIKE[fact](node)
    told = judged(nodes)
    assert facts_short(told)[fact] == ("node001", "node002", "node003")
    assert told.exit_code == 1


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_part_of_a_board_that_machines_are_given_is_no_fault(count: int) -> None:
    nodes = cluster(3)
    for node in nodes.values():
        del node["gpus"]["value"][count:]
    assert "gpu.count" not in facts_short(judged(nodes))


def test_what_one_node_has_wrong_is_told_once() -> None:
    nodes = cluster(8)
    every_gpu(ecc="Disabled")(nodes["node003"])
    told = judged(nodes)
    assert "gpu.ecc" not in facts_short(told)
    assert [d.fact for d in told.drift] == ["gpu.ecc"]


def test_an_idle_link_rests_and_a_busy_one_does_not() -> None:
    nodes = cluster(3)
    for node in nodes.values():
        every_gpu(pcie_generation=1, throttle_reasons=["gpu_idle"])(node)
    assert facts_short(judged(nodes)) == {}
    for node in nodes.values():
        every_gpu(pcie_generation=3, throttle_reasons=["sw_power_cap"])(node)
    assert "gpu.link under load" in facts_short(judged(nodes))


def expecting(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "expect.toml"
    path.write_text(text)
    return path


def test_a_site_says_what_its_nodes_are(tmp_path: Path) -> None:
    path = expecting(
        tmp_path,
        """
        [[expect]]
        nodes = "node[001-002]"
        [expect.facts]
        "gpu.count" = 4
        driver = ">=580.200"
        torch = "2.11.*"
        NCCL_IB_DISABLE = "0"
        "ports.count" = 9
        """,
    )
    short = facts_short(judged(cluster(3), expected=read_expectations(path)))
    assert sorted(short) == ["driver", "gpu.count", "ports.count"]
    assert set(short.values()) == {("node001", "node002")}


def test_what_a_site_expects_stands_before_the_standard(tmp_path: Path) -> None:
    path = expecting(tmp_path, '[[expect]]\nfacts = { "gpu.power limit" = "500 W" }\n')
    nodes = cluster(2)
    for node in nodes.values():
        every_gpu(power_limit_mw=500_000, power_limit_default_mw=500_000)(node)
    assert "gpu.power limit" in facts_short(judged(nodes))
    assert facts_short(judged(nodes, expected=read_expectations(path))) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[expect", "no TOML"),
        ("x = 1", "no [[expect]] table"),
        ("[[expect]]\nnodes='a'", "[[expect]] 1: it names no facts"),
        ("[[expect]]\nnodes='a['\nfacts={a=1}", "not a node set"),
        ("[[expect]]\nhosts='a'\nfacts={a=1}", "'hosts' is none of"),
        ("[[expect]]\nfacts={a=true}", "neither a text nor a number"),
        ("[[expect]]\nseverity='fatal'\nfacts={a=1}", "'fatal'"),
    ],
)
def test_an_unusable_file_is_named(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--expect ") as error:
        read_expectations(expecting(tmp_path, text))
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "wanted", "expected"),
    [
        ("8", "1|2|4|8", True),
        ("7", "1|2|4|8", False),
        ("700 W", ">=700", True),
        ("4 × 500 W, 4 × 700 W", ">=700", False),
        ("2.10.0", ">=2.9", True),
        ("580.95.05", "<580", False),
        ("none", ">=1", False),
        ("NVIDIA H100 80GB HBM3", "*H100*", True),
    ],
)
def test_words_meet_what_is_wanted(text: str, wanted: str, expected: bool) -> None:
    assert meets(text, wanted) is expected


def test_the_command_takes_a_sites_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, facts in cluster(2).items():
        (tmp_path / f"{name}.json").write_text(json.dumps(facts))
    path = expecting(tmp_path, '[[expect]]\nfacts = { kernel = "7.*" }\n')
    where = ["--facts", str(tmp_path), "--expect", str(path), "--select", "XID", "--format", "json"]
    assert main(["fleet", *where]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [(f["id"], f["nodes"]) for f in told["findings"]] == [("EXPECTED-1", "node[001-002]")]
    assert main(["fleet", *where, "--group-by", "rack"]) == 2
