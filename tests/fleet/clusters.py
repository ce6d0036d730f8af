"""Clusters made up for tests: one healthy node's facts, and as many copies as asked for."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from envdoctor.fleet.assembly import answer
from envdoctor.fleet.merge import Merge

Json = dict[str, Any]
Plant = Callable[[Json], object]
_MACHINE = Path(__file__).parents[1] / "machines" / "h200-x2-deepspeed-without-pydantic.json"
GPUS = 8
_SETTINGS = {
    **{"power_limit_mw": 700_000, "power_limit_default_mw": 700_000, "vbios": "96.00.C1.00.02"},
    **{"temperature_c": 33, "temperature_slowdown_c": 92, "sm_clock_mhz": 345, "sm_clock_max_mhz": 1980},
    **{"memory_clock_mhz": 2619, "memory_clock_max_mhz": 3201},
}
_HOST: Json = {
    **{"product": "DGXH200", "memory_modules": 32, "numa_nodes": 2, "governor": "performance"},
    **{"locale": "C.UTF-8", "clock": "synchronised", "kernel": "6.8.0-60-generic"},
    "modules": ["nvidia_peermem", "gdrdrv", "ib_core", "mlx5_core", "mlx5_ib"],
}
_PLACES: Json = {
    "limits": {"nofile": 1_048_576, "memlock": -1, "nproc": 8_000_000, "stack": 8 << 20, "core": 0},
    "disk_free_bytes": {"hf_cache": 3 << 40, "torch_cache": 3 << 40, "tmp": 800 << 30, "prefix": 800 << 30},
    "mounts": {
        "/scratch": {"kind": "lustre", "server": "10.2.0.1@o2ib:/scratch", "writable": True}
        | {"total_bytes": 1 << 50, "free_bytes": 1 << 49}
    },
}
_PORT: Json = {
    **{"link": "InfiniBand", "state": "ACTIVE", "physical_state": "LinkUp", "rate_gbps": 400.0},
    **{"firmware": "28.43.2026", "gids": 1, "subnet": "fe80:0000:0000:0000"},
}


def healthy_node() -> Json:
    """Return the facts of a node with eight H200 in which no rule finds an error."""
    facts: Json = json.loads(_MACHINE.read_bytes())
    first = facts["gpus"]["value"][0]
    facts["gpus"]["value"] = [
        dict(first, index=i, nvlinks_up=18, nvlinks_total=18, throttle_reasons=["gpu_idle"], **_SETTINGS)
        for i in range(GPUS)
    ]
    del facts["environment"]["distributions"]["deepspeed"]
    facts["host"]["container"] = {"value": "none", "source": "/proc/1/cgroup"}
    facts["host"]["memory_total_bytes"] = {"value": 2 << 40, "source": "/proc/meminfo"}
    facts["variables"]["NCCL_IB_DISABLE"] = "0"
    facts["driver"]["fabric_manager"] = {"value": "running", "source": "NVML"}
    facts["host"] |= {name: {"value": value, "source": "planted"} for name, value in _HOST.items()}
    facts["host"] |= copy.deepcopy(_PLACES)
    ports = [dict(_PORT, device=f"mlx5_{i}", port=1) for i in range(GPUS)]
    facts["ports"] = {"value": ports, "source": "/sys/class/infiniband"}
    return facts


def cluster(count: int) -> dict[str, Json]:
    """Return the facts of `count` equal nodes that differ in what equal nodes differ in."""
    return {f"node{n:03d}": json.loads(_texts(count)[f"node{n:03d}"]) for n in range(1, count + 1)}


@cache
def _texts(count: int) -> Mapping[str, bytes]:
    node = healthy_node()
    return {f"node{n:03d}": _text(_own(copy.deepcopy(node), n)) for n in range(1, count + 1)}


def _text(facts: Json) -> bytes:
    return json.dumps(facts, indent=1).encode()


def _own(facts: Json, number: int) -> Json:
    for gpu in facts["gpus"]["value"]:
        gpu["uuid"] = f"GPU-{number:04x}-{gpu['index']}"
        gpu["memory_free_bytes"] -= number * 4096
        gpu["throttle_reasons"] = ["gpu_idle"] if number % 3 else ["sw_power_cap"]
        gpu["pcie_generation"] = 1 + number % 5 if number % 3 else 5
    host = facts["host"]
    host["hostname"] = {"value": f"node{number:03d}", "source": "uname"}
    host["memory_total_bytes"]["value"] -= number * 65536
    host["memory_available_bytes"] = {"value": (1 << 40) + number * 4096, "source": "/proc/meminfo"}
    facts["variables"]["RANK"] = str(number)
    return facts


def merged(nodes: Mapping[str, Json]) -> Merge:
    """Return the merge of nodes' facts as their probes would write them."""
    return _merged({name: _text(facts) for name, facts in nodes.items()})


def _merged(texts: Mapping[str, bytes]) -> Merge:
    merge = Merge()
    for name, text in texts.items():
        merge.add(name, text)
    return merge


def drift_of(nodes: Mapping[str, Json]) -> dict[str, list[tuple[str | None, str]]]:
    """Return each drifting fact with its values and folded nodes, judged by one cheap check."""
    return _drift(merged(nodes))


def drift_of_planted(
    count: int, plants: Mapping[str, Iterable[Plant]]
) -> dict[str, list[tuple[str | None, str]]]:
    """Return the drift of a cluster of equal nodes, of which the named ones are changed by their plants."""
    texts = dict(_texts(count))
    for name, changes in plants.items():
        facts = json.loads(texts[name])
        for change in changes:
            change(facts)
        texts[name] = _text(facts)
    return _drift(_merged(texts))


def _drift(merge: Merge) -> dict[str, list[tuple[str | None, str]]]:
    told = answer(merge, select=("XID",)).to_json()
    return {d["fact"]: [(v["value"], v["nodes"]) for v in d["values"]] for d in told["drift"]}
