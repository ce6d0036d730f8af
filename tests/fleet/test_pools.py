"""Which nodes are compared with which, what follows from what, and what no node can have."""

from __future__ import annotations

import json

from clusters import Json, cluster, drift_of, merged

from envdoctor.fleet.answer import FleetAnswer
from envdoctor.fleet.assembly import answer
from envdoctor.fleet.report import render


def judged(nodes: dict[str, Json], **options: object) -> FleetAnswer:
    return answer(merged(nodes), **{"select": ("XID",), **options})  # type: ignore[arg-type]


def as_a100(node: Json) -> None:
    for gpu in node["gpus"]["value"]:
        gpu.update(name="NVIDIA A100-SXM4-80GB", compute_capability="8.0", memory_total_bytes=80 << 30)
    node["driver"]["version"]["value"] = "570.133.20"
    node["host"]["memory_total_bytes"]["value"] = 1 << 40


def as_login(node: Json) -> None:
    node["gpus"] = {"value": [], "source": "/sys/bus/pci/devices"}
    node["driver"] = {"version": {"unknown": "no NVIDIA kernel module is loaded"}}


def roots(told: FleetAnswer) -> list[str]:
    return [drift.fact for drift in told.drift if drift.consequence_of is None]


def test_kinds_of_gpus_are_each_judged_in_itself() -> None:
    nodes = cluster(8)
    for name in ("node005", "node006", "node007", "node008"):
        as_a100(nodes[name])
    assert judged(nodes).drift == ()
    nodes["node006"]["host"]["kernel"]["value"] = "5.15.0"
    (drift,) = judged(nodes).drift
    assert (drift.pool, drift.fact, drift.odd_nodes) == ("NVIDIA A100-SXM4-80GB", "kernel", ("node006",))
    assert "gpu.model" in roots(judged(nodes, group_by="none"))


def test_a_single_node_of_another_kind_is_the_odd_one() -> None:
    nodes = cluster(8)
    as_a100(nodes["node008"])
    assert "gpu.model" in roots(judged(nodes))


def test_a_login_node_is_no_broken_gpu_node_but_one_whose_gpus_are_gone_is() -> None:
    nodes = cluster(8)
    as_login(nodes["node001"])
    assert judged(nodes).drift == ()
    nodes["node002"]["gpus"] = {"value": [], "source": "NVML"}
    assert "gpu.count" in roots(judged(nodes))


def test_partitions_are_each_judged_in_itself() -> None:
    nodes = cluster(8)
    partitions = {name: "new" if name > "node004" else "old" for name in nodes}
    for name, partition in partitions.items():
        nodes[name]["host"]["kernel"]["value"] = "6.8" if partition == "new" else "5.15"
    assert judged(nodes, partitions=partitions).drift == ()
    assert [d.fact for d in judged(nodes).drift] == ["kernel"]


def test_a_tie_has_no_odd_one_and_the_same_half_first_for_each_fact() -> None:
    nodes = cluster(4)
    for name in ("node002", "node003"):
        nodes[name]["host"]["kernel"]["value"] = "6.99"
        nodes[name]["host"]["distro"]["value"] = "Alpine"
    told = judged(nodes)
    assert [d.values[0].nodes for d in told.drift] == [("node001", "node004")] * 2
    assert all(d.tied and d.odd_nodes == () for d in told.drift)
    assert "no odd node among them" in render(told)


def test_another_python_on_a_node_is_one_entry() -> None:
    nodes = cluster(6)
    environment = nodes["node004"]["environment"]
    environment["python"]["value"] = "3.11.9"
    environment["prefix"] = {"value": "/opt/other", "source": "x"}
    for distribution in environment["distributions"].values():
        distribution["version"] = "0.0.1"
    told = judged(nodes)
    assert roots(told) == ["python"]
    assert len(told.drift) > 100


def test_many_packages_that_differ_on_the_same_nodes_are_one_entry() -> None:
    nodes = cluster(6)
    for distribution in nodes["node004"]["environment"]["distributions"].values():
        distribution["version"] = "0.0.1"
    told = judged(nodes)
    assert roots(told) == ["packages"]
    assert told.drift[0].severity.value == "error"


def test_a_variable_of_each_node_is_one_entry_and_makes_no_kinds_of_nodes() -> None:
    nodes = cluster(40)
    for name, node in nodes.items():
        node["variables"] |= {"NCCL_SOCKET_NTHREADS": name, "VLLM_HOST_IP": f"10.0.0.{name[-2:]}"}
        node["variables"] |= {
            "HF_HOME": f"/local/{name}/hf",
            "CUDA_VISIBLE_DEVICES": f"GPU-{name[-2:]}aaaaaa-11",
        }
        node["variables"]["NCCL_OWN"] = f"value {name[-2:]}"
    told = judged(nodes)
    assert [len(group.nodes) for group in told.groups] == [40]
    assert [(d.fact, len(d.values)) for d in told.drift] == [("NCCL_OWN", 1)]


def test_one_address_for_all_ranks_is_compared() -> None:
    nodes = cluster(6)
    for name, node in nodes.items():
        node["variables"]["MASTER_ADDR"] = "10.0.0.9" if name == "node003" else "10.0.0.1"
    assert [(d.fact, d.odd_nodes) for d in judged(nodes).drift] == [("MASTER_ADDR", ("node003",))]


def test_one_gpu_on_two_nodes_and_one_name_on_two_nodes() -> None:
    nodes = cluster(5)
    nodes["node002"]["gpus"]["value"][3]["uuid"] = nodes["node001"]["gpus"]["value"][0]["uuid"]
    nodes["node004"]["host"]["hostname"]["value"] = "node005"
    found = {f.finding.id: f.nodes for f in judged(nodes, select=()).findings}
    assert found["FLEET-ONE-GPU-TWICE"] == ("node001", "node002")
    assert found["FLEET-ONE-NAME-TWICE"] == ("node004", "node005")


def test_a_clock_that_tells_a_time_outside_the_asking_is_wrong() -> None:
    nodes = cluster(3)
    for node, time_s in zip(nodes.values(), (1000, 1003, 500), strict=True):
        node["host"]["time_s"] = {"value": time_s, "source": "clock"}
    merge = merged(nodes)
    merge.asked = dict.fromkeys(nodes, (999.0, 1004.0))
    found = [f for f in answer(merge).findings if f.finding.id == "FLEET-CLOCK-SKEW"]
    assert [(f.nodes, f.finding.summary) for f in found] == [
        (("node003",), "The clock is at least 8 min behind of this machine's.")
    ]


def test_a_node_read_in_part_never_passes() -> None:
    nodes = cluster(3)
    nodes["node002"]["unread"] = {"gpus": "NVML gave no answer within 15 s"}
    told = judged(nodes)
    assert told.exit_code == 3
    assert render(told).startswith("! 3 nodes, 1 read in part, no drift")
    assert json.loads(render(told, "json"))["partial"][0]["nodes"] == "node002"


def test_a_programs_own_fault_is_history() -> None:
    nodes = cluster(3)
    nodes["node002"]["driver"]["xids"] = [{"number": 31, "pci_bus": "0000:18:00", "text": "NVRM: Xid 31"}]
    told = judged(nodes)
    assert told.drift == ()
    assert told.exit_code == 0
    assert [f.finding.severity.value for f in told.findings] == ["note"]


def test_programs_left_on_one_of_eight_nodes_are_told_and_on_three_they_are_how_it_is_there() -> None:
    nodes = cluster(8)
    left = [{"pid": 4711, "name": "python", "used_bytes": 70 << 30}]
    for node in nodes.values():
        for one in node["gpus"]["value"]:
            one["memory_free_bytes"] = one["memory_total_bytes"]
    nodes["node003"]["gpus"]["value"][3]["processes"] = left
    assert drift_of(nodes)["gpu.memory held"][1] == ("GPU 3: python", "node003")
    for name in ("node004", "node005"):
        nodes[name]["gpus"]["value"][3]["processes"] = left
    assert "gpu.memory held" not in drift_of(nodes)
