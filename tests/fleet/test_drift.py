"""Planted drift: every deviation is found and named with its nodes, and nothing else is."""

from __future__ import annotations

import random

import pytest
from clusters import Json, Plant, cluster, drift_of, drift_of_planted

from envdoctor.fleet.nodeset import expand, fold

NODES = 64


def fact(section: str, name: str, value: object) -> Plant:
    def plant(node: Json) -> None:
        node[section][name] = {"value": value, "source": "planted"}

    return plant


def gpu(index: int, **fields: object) -> Plant:
    return lambda node: node["gpus"]["value"][index].update(fields)


def every_gpu(**fields: object) -> Plant:
    def plant(node: Json) -> None:
        for one in node["gpus"]["value"]:
            one.update(fields)

    return plant


def package(name: str, version: str) -> Plant:
    return lambda node: node["environment"]["distributions"][name].update(version=version)


def nccl(version: str) -> Plant:
    def plant(node: Json) -> None:
        for library in node["libraries"]:
            if library["name"] == "nccl" and library.get("wins"):
                library["version"] = version

    return plant


def variable(name: str, value: str) -> Plant:
    return lambda node: node["variables"].update({name: value})


def without(section: str, name: str) -> Plant:
    return lambda node: node[section].pop(name)


PLANTS: dict[str, Plant] = {
    "driver": fact("driver", "version", "570.133.20"),
    "driver.cuda": fact("driver", "cuda", "12.8"),
    "driver.module": fact("driver", "module", "proprietary"),
    "driver.nvml": fact("driver", "nvml", "Driver/library version mismatch"),
    "kernel": fact("host", "kernel", "5.15.0-91-generic"),
    "os": fact("host", "distro", "Ubuntu 22.04.5 LTS"),
    "glibc": fact("host", "glibc", "2.35"),
    "container": fact("host", "container", "nvcr.io/nvidia/pytorch:26.04-py3"),
    "memory": fact("host", "memory_total_bytes", 1 << 40),
    "cpus": fact("host", "cpu_count", 8),
    "python": fact("environment", "python", "3.11.9"),
    "torch": package("torch", "2.11.0+cu126"),
    "transformers": package("transformers", "4.57.1"),
    "numpy": package("numpy", "2.0.1"),
    "nccl": nccl("2.26.2"),
    "gpu.count": lambda node: node["gpus"]["value"].pop(),
    "gpu.model": every_gpu(name="NVIDIA H200 NVL"),
    "gpu.ecc": every_gpu(ecc="Disabled"),
    "gpu.ecc errors": gpu(3, ecc_uncorrected=2),
    "gpu.remapped rows": gpu(5, remapped_rows_pending=True),
    "gpu.pcie width": gpu(1, pcie_width=8),
    "gpu.nvlinks down": gpu(6, nvlinks_up=17),
    "gpu.throttling": gpu(0, throttle_reasons=["gpu_idle", "hw_thermal_slowdown"]),
    "gpu.mig": every_gpu(mig="Enabled"),
    "gpu.compute mode": every_gpu(compute_mode="Exclusive_Process"),
    "NCCL_IB_DISABLE": variable("NCCL_IB_DISABLE", "1"),
    "NCCL_ALGO": variable("NCCL_ALGO", "Ring"),
    "PYTORCH_ALLOC_CONF": variable("PYTORCH_ALLOC_CONF", "expandable_segments:True"),
    "xid errors": lambda node: node["driver"].update(
        xids=[{"number": 79, "pci_bus": "0000:18:00", "text": "Xid 79: GPU has fallen off the bus"}]
    ),
}


@pytest.mark.parametrize("seed", range(60))
def test_every_planted_deviation_is_found_and_nothing_else(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"node{n:03d}" for n in range(1, NODES + 1)]
    planted = {
        fact: chance.sample(names, chance.choice((1, 1, 1, 2, 5)))
        for fact in chance.sample(sorted(PLANTS), chance.randint(1, 3))
    }
    changes = {
        node: [PLANTS[f] for f in planted if node in planted[f]] for f in planted for node in planted[f]
    }
    found = drift_of_planted(NODES, changes)
    odd = {name: [n for _, text in values[1:] for n in expand(text)] for name, values in found.items()}
    assert {name: fold(nodes) for name, nodes in odd.items()} == {n: fold(o) for n, o in planted.items()}


def test_the_values_stand_with_the_most_frequent_first() -> None:
    nodes = cluster(NODES)
    PLANTS["driver"](nodes["node064"])
    assert drift_of(nodes) == {"driver": [("580.159.04", "node[001-063]"), ("570.133.20", "node064")]}


def test_sizes_that_lie_close_together_are_equal() -> None:
    nodes = cluster(8)
    nodes["node003"]["host"]["memory_total_bytes"]["value"] -= 20 << 30
    assert drift_of(nodes) == {}
    nodes["node003"]["host"]["memory_total_bytes"]["value"] //= 2
    assert drift_of(nodes)["memory"] == [("2048.0 GiB", "node[001-002,004-008]"), ("1014.0 GiB", "node003")]


def test_a_driver_that_only_one_node_lacks_is_drift_and_so_is_a_package() -> None:
    nodes = cluster(8)
    nodes["node002"]["driver"]["version"] = {"unknown": "no NVIDIA driver is installed"}
    del nodes["node005"]["environment"]["distributions"]["peft"]
    found = drift_of(nodes)
    assert found["driver"][1] == (None, "node002")
    assert found["peft"][1] == ("not installed", "node005")


def test_a_fact_that_some_nodes_cannot_tell_is_no_drift() -> None:
    nodes = cluster(8)
    nodes["node002"]["host"]["kernel"] = {"unknown": "no answer within 3 s"}
    assert drift_of(nodes) == {}


def test_a_consequence_stands_under_its_cause() -> None:
    from clusters import merged

    from envdoctor.fleet.assembly import answer

    nodes = cluster(8)
    PLANTS["driver"](nodes["node008"])
    PLANTS["driver.cuda"](nodes["node008"])
    drift = answer(merged(nodes), select=("XID",)).drift
    assert [(d.fact, d.consequence_of) for d in drift] == [("driver", None), ("driver.cuda", "driver")]
