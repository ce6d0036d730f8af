"""Planted fleets: how much of what differs, or is sick on all nodes alike, `fleet` finds, and what it says.

    python benchmarks/fleets.py [FLEETS] [SEED]

A fleet is made of a healthy node's facts, as its probe would write them; up to four kinds of trouble are
planted on a few nodes or on all, in fleets of one kind, of partitions with other cards, and with login
nodes. Found: an entry (a root difference or a finding) names the fact on exactly the planted nodes. Misnamed:
entries speak of those nodes, but none of the fact. False: an entry that no planted trouble accounts for.
"""

from __future__ import annotations

import copy
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "fleet")]

from clusters import healthy_node  # noqa: E402

from envdoctor.findings import Severity  # noqa: E402
from envdoctor.fleet.answer import FleetAnswer  # noqa: E402
from envdoctor.fleet.assembly import answer  # noqa: E402
from envdoctor.fleet.expecting import Expectation  # noqa: E402
from envdoctor.fleet.merge import Merge  # noqa: E402
from envdoctor.matrix import load_matrix  # noqa: E402

Json = dict[str, Any]
Plant = Callable[[Json], object]
NOW = 1_795_000_000


@dataclass(frozen=True)
class Kind:
    """A kind of trouble: how it is planted, which facts or findings name it, what may come with it."""

    name: str
    plant: Plant
    named: frozenset[str]
    also: frozenset[str] = frozenset()
    alike: bool = False
    """Planted on every node: only an absolute standard sees it."""


@dataclass
class Score:
    """What a run found."""

    planted: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    misnamed: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)


KINDS: list[Kind] = []
MEASURED = {"figure": 0.0, "unit": "GB/s", "cards": ["NVIDIA H200"]}


def kind(
    name: str, plant: Plant, *, named: Iterable[str] = (), also: Iterable[str] = (), alike: bool = False
) -> None:
    """Name a kind of trouble."""
    KINDS.append(Kind(name, plant, frozenset(named or (name,)), frozenset(also), alike))


def fact(section: str, name: str, value: object) -> Plant:
    """Set an observed fact."""
    return lambda node: node[section].update({name: {"value": value, "source": "planted"}})


def gpu(index: int, **fields: object) -> Plant:
    """Set fields of one GPU."""
    return lambda node: node["gpus"]["value"][index].update(fields)


def gpus(**fields: object) -> Plant:
    """Set fields of every GPU."""
    return lambda node: [one.update(fields) for one in node["gpus"]["value"]]


def package(name: str, **fields: object) -> Plant:
    """Set fields of a distribution."""
    return lambda node: node["environment"]["distributions"][name].update(fields)


def variable(name: str, value: str) -> Plant:
    """Set a variable."""
    return lambda node: node["variables"].update({name: value})


def library(name: str, version: str) -> Plant:
    """Set the version of the copy that would be loaded."""

    def plant(node: Json) -> None:
        for one in node["libraries"]:
            if one["name"] == name and one.get("wins"):
                one["version"] = version

    return plant


def host(name: str, key: str, value: object) -> Plant:
    """Set an entry of one of the host's tables."""
    return lambda node: node["host"][name].update({key: value})


def xid(number: int) -> Plant:
    """Have the kernel log an Xid."""
    line = {"number": number, "pci_bus": "0000:18:00", "text": f"NVRM: Xid (PCI:0000:18:00): {number}"}
    return lambda node: node["driver"].update(xids=[line])


def ports(**fields: object) -> Plant:
    """Set fields of every RDMA port."""
    return lambda node: [one.update(fields) for one in node["ports"]["value"]]


def port(index: int, **fields: object) -> Plant:
    """Set fields of one RDMA port."""
    return lambda node: node["ports"]["value"][index].update(fields)


def mount(**fields: object) -> Plant:
    """Set fields of the shared mount."""
    return lambda node: node["host"]["mounts"]["/scratch"].update(fields)


def many_packages(node: Json) -> None:
    """Give many packages another version."""
    for name, one in node["environment"]["distributions"].items():
        if name.startswith(("a", "j", "m", "p", "s", "z")) and name not in (
            "accelerate",
            "peft",
            "safetensors",
        ):
            one["version"] = (one.get("version") or "1") + ".post9"


def verdict(op: str, outcome: str, reason: str | None = None, **speed: object) -> Plant:
    """Set the verdict of a smoke, in place of the healthy one."""
    told = {"op": op, "outcome": outcome, "source": "smoke", **({"reason": reason} if reason else {})}
    told |= {"speed": {**MEASURED, **speed}} if speed else {}
    return lambda node: node.update(verdicts=[*(v for v in node["verdicts"] if v["op"] != op), told])


def less_memory(node: Json) -> None:
    """Take one DIMM of 64 GiB."""
    node["host"]["memory_total_bytes"]["value"] -= 64 << 30


kind("driver", fact("driver", "version", "570.133.20"), also=("DRIVER*", "TORCH*", "CUDA*"))
kind("driver.user", fact("driver", "user_version", "570.133.20"), also=("DRIVER*",))
kind("driver.cuda", fact("driver", "cuda", "12.8"), also=("DRIVER*", "TORCH*", "CUDA*"))
kind("driver.module", fact("driver", "module", "proprietary"), also=("gpudirect rdma",))
kind("driver.nvml", fact("driver", "nvml", "Driver/library version mismatch"), also=("DRIVER*", "NVML*"))
kind("fabric manager", fact("driver", "fabric_manager", "stopped"), also=("FABRIC*",))
kind("xid errors", xid(79), also=("XID-79",))
kind("xid errors (ecc)", xid(48), named=("xid errors",), also=("XID-48",))
kind("kernel", fact("host", "kernel", "5.15.0-91-generic"), also=("fabric modules",))
kind("os", fact("host", "distro", "Ubuntu 22.04.5 LTS"))
kind("glibc", fact("host", "glibc", "2.35"), also=("GLIBC*", "WHEEL*"))
kind("arch", fact("host", "arch", "aarch64"), also=("*ARCH*", "WHEEL*", "*PLATFORM*"))
kind("container", fact("host", "container", "nvcr.io/nvidia/pytorch:26.04-py3"))
kind("cpus", fact("host", "cpu_count", 8))
kind("memory", fact("host", "memory_total_bytes", 1 << 40))
kind("one DIMM less", less_memory, named=("memory",))
kind("memory modules", fact("host", "memory_modules", 31))
kind("numa nodes", fact("host", "numa_nodes", 8))
kind("governor", fact("host", "governor", "powersave"))
kind("locale", fact("host", "locale", "de_DE.ISO-8859-1"))
kind("clock", fact("host", "clock", "not synchronised"))
kind("product", fact("host", "product", "PowerEdge XE9680"))
kind("memory limit", fact("host", "cgroup_limit_bytes", 64 << 30), also=("*CGROUP*", "*MEMORY*"))
kind("shm", fact("host", "shm_bytes", 64 << 20), named=("shm", "SHM-SMALL*"), also=("SHM*",))
kind("full disk (tmp)", host("disk_free_bytes", "tmp", 1 << 20), named=("full disks",), also=("DISK*",))
kind(
    "full disk (cache)", host("disk_free_bytes", "hf_cache", 1 << 20), named=("full disks",), also=("DISK*",)
)
kind("limit.nofile", host("limits", "nofile", 1024))
kind("limit.memlock", host("limits", "memlock", 65536))
kind("limit.nproc", host("limits", "nproc", 4096))
kind("limit.stack", host("limits", "stack", 1 << 20))
kind("gpudirect rdma", lambda node: node["host"]["modules"]["value"].remove("nvidia_peermem"))
kind("fabric modules", lambda node: node["host"]["modules"]["value"].remove("gdrdrv"))
kind("mount missing", lambda node: node["host"]["mounts"].pop("/scratch"), named=("mount /scratch",))
kind("mount read-only", mount(writable=False), named=("mount /scratch",))
kind("mount of another", mount(server="10.9.9.9@o2ib:/old"), named=("mount /scratch",))
kind("mount full", mount(free_bytes=1 << 20), named=("full disks",))
kind(
    "mount hangs",
    lambda node: (
        node["host"]["mounts"]["/scratch"].pop("free_bytes"),
        node.update(unread={"mounts": "/scratch gave no answer within 1.5 s"}),
    ),
    named=("mount /scratch",),
    also=("UNREAD", "partial"),
)
kind("gpu.count", lambda node: node["gpus"]["value"].pop(), also=("gpu.nvlinks*",))
kind("gpu.model", gpus(name="NVIDIA H200 NVL", pci_id="10de:233b"), also=("STANDARD*",))
kind("gpu.memory", gpus(memory_total_bytes=130 << 30))
kind("gpu.mig", gpus(mig="Enabled"), also=("MIG*", "GPU-MIG*"))
kind("gpu.ecc", gpus(ecc="Disabled"), also=("GPU-ECC*", "ECC*"))
kind("gpu.ecc errors", gpu(3, ecc_uncorrected=2), also=("GPU*", "ECC*"))
kind("gpu.remapped rows", gpu(5, remapped_rows_pending=True), also=("GPU*", "REMAP*"))
kind(
    "gpu.remapping failed",
    gpu(5, remapped_rows_failed=True),
    named=("gpu.remapped rows",),
    also=("GPU*", "REMAP*"),
)
kind("gpu.pcie width", gpu(1, pcie_width=8), also=("GPU-PCIE*",))
kind("gpu.pcie slot", gpu(1, pcie_width=8, pcie_width_max=8), also=("GPU-PCIE*",))
kind("gpu.pcie generation", gpu(2, pcie_generation=4, pcie_generation_max=4))
kind("gpu.pcie link", gpu(4, pcie_generation=3))
kind("gpu.link under load", gpu(4, pcie_generation=3, throttle_reasons=[]), also=("gpu.pcie link",))
kind("gpu.nvlinks down", gpu(6, nvlinks_up=17))
kind("gpu.nvlinks", gpus(nvlinks_up=12, nvlinks_total=12))
kind("gpu.throttling", gpu(0, throttle_reasons=["gpu_idle", "hw_thermal_slowdown"]))
kind("gpu.power brake", gpu(0, throttle_reasons=["hw_power_brake_slowdown"]), named=("gpu.throttling",))
kind("gpu.power cap", gpus(power_limit_mw=500_000), also=("gpu.power limit",))
kind("gpu.power limit", gpus(power_limit_mw=600_000, power_limit_default_mw=600_000))
kind("gpu.clocks", gpu(7, sm_clock_max_mhz=1410))
kind("gpu.vbios", gpus(vbios="96.00.74.00.01"))
kind("gpu.temperature", gpu(2, temperature_c=91))
kind("gpu.compute mode", gpus(compute_mode="Exclusive_Process"), also=("GPU*", "COMPUTE*"))
kind("gpu.persistence", gpus(persistence=False), also=("GPU*", "PERSIST*"))
kind(
    "left programs",
    gpu(3, processes=[{"pid": 4711, "name": "python", "used_bytes": 70 << 30}]),
    named=("gpu.memory held",),
)
kind("memory of nobody", gpu(3, memory_free_bytes=60 << 30), named=("gpu.memory held",))
kind("ports.active", port(3, state="DOWN", physical_state="Polling"), also=("ports.*",))
kind("port rate", port(2, rate_gbps=200.0), named=("ports.active",))
kind("ports.firmware", ports(firmware="28.36.1010"))
kind("ports.addresses", port(5, gids=0))
kind("ports.subnets", ports(subnet="fe80:0000:0000:0001"))
kind(
    "no ports",
    lambda node: node["ports"].update(value=[]),
    named=("ports.active",),
    also=("gpudirect rdma", "fabric modules", "ports.*"),
)
kind("python", fact("environment", "python", "3.11.9"), also=("PYTHON*", "WHEEL*", "REQUIRE*", "*"))
kind("environment", fact("environment", "prefix", "/opt/other/venv"))
kind("torch", package("torch", version="2.11.0+cu126"), also=("TORCH*", "PAIR*", "*TORCH*"))
kind("transformers", package("transformers", version="4.57.1"), also=("*",))
kind("numpy", package("numpy", version="2.0.1"), also=("NUMPY*", "REQUIRE*"))
kind("editable package", package("accelerate", editable=True), named=("accelerate",))
kind("package of a repository", package("peft", origin="vcs"), named=("peft",))
kind(
    "package missing",
    lambda node: node["environment"]["distributions"].pop("peft"),
    named=("peft",),
    also=("*",),
)
kind(
    "broken packages",
    lambda node: node["environment"].update(problems=["torch-2.11.0.dist-info holds no METADATA"]),
    also=("*INSTALL*", "*BROKEN*", "ENV*", "*"),
)
kind("many packages", many_packages, named=("packages",), also=("REQUIRE*", "*"))
kind("nccl", library("nccl", "2.26.2"), also=("NCCL*", "*LIBRAR*"))
kind("cudnn", library("cudnn", "9.1.0"), also=("CUDNN*", "*LIBRAR*"))
kind("CUDA_VISIBLE_DEVICES", variable("CUDA_VISIBLE_DEVICES", "0,1,2,3"), also=("CUDA*", "*VISIBLE*"))
kind("MASTER_ADDR", variable("MASTER_ADDR", "10.0.0.77"))
kind("WORLD_SIZE", variable("WORLD_SIZE", "63"))
kind(
    "VLLM_ATTENTION_BACKEND", variable("VLLM_ATTENTION_BACKEND", "FLASHINFER"), also=("VLLM*", "*FLASHINFER*")
)
kind("HF_HOME", variable("HF_HOME", "/tmp/hf"))
kind("NCCL_IB_DISABLE", variable("NCCL_IB_DISABLE", "1"), also=("NCCL*",))
kind("NCCL_ALGO", variable("NCCL_ALGO", "Ring"))
kind("NCCL_SOCKET_IFNAME", variable("NCCL_SOCKET_IFNAME", "lo"), also=("NCCL*",))
kind("PYTORCH_ALLOC_CONF", variable("PYTORCH_ALLOC_CONF", "expandable_segments:True"))
kind("OMP_NUM_THREADS", variable("OMP_NUM_THREADS", "1"))
kind("LD_LIBRARY_PATH", variable("LD_LIBRARY_PATH", "/opt/old/lib"), also=("*LIBRAR*", "LD*"))
kind("one GPU twice", lambda node: node["gpus"]["value"][0].update(uuid="GPU-0001-0"), named=("gpu.uuid",))
kind("one name twice", fact("host", "hostname", "node001"), named=("hostname",))
kind("clock skew", fact("host", "time_s", NOW - 600), named=("time_s",))
kind(
    "read in part",
    lambda node: node.update(unread={"gpus": "NVML gave no answer within 15 s"}),
    named=("partial",),
    also=("UNREAD",),
)
kind(
    "a kernel that fails",
    verdict("matmul.bf16", "failed", "output 0 is off by 0.9, tolerance 0.01 (seed 7)"),
    named=("matmul.bf16",),
)
kind(
    "dcgm", verdict("dcgm.memory", "failed", "DCGM: GPU 1: Uncorrectable ECC error."), named=("DCGM-FAILED",)
)
kind("slow link to the host", verdict("bandwidth.h2d@2", "skipped", figure=27.1), named=("SPEED-SLOW",))
kind("slow memory", verdict("bandwidth.d2d", "skipped", figure=2900.0), named=("SPEED-SLOW",))
kind(
    "slow products",
    verdict("bandwidth.matmul@5", "skipped", figure=410.0, unit="TFLOP/s"),
    named=("SPEED-SLOW",),
)
kind(
    "slow between cards",
    verdict("bandwidth.p2p[3-6]", "skipped", figure=44.0, links=18, cards=["NVIDIA H200"] * 2),
    named=("SPEED-SLOW",),
)
kind("slower than the others", verdict("bandwidth.copy", "skipped", figure=31.0), named=("SPEED-ODD",))
for name, plant in {
    "gpu.count": lambda node: node["gpus"]["value"].pop(),
    "gpu.nvlinks": gpus(nvlinks_up=12, nvlinks_total=12),
    "gpu.nvlinks down": gpus(nvlinks_up=17),
    "gpu.pcie generation": gpus(pcie_generation=4, pcie_generation_max=4),
    "gpu.pcie slot": gpus(pcie_width=8, pcie_width_max=8),
    "gpu.power limit": gpus(power_limit_mw=450_000, power_limit_default_mw=450_000),
    "gpu.power cap": gpus(power_limit_mw=450_000),
    "gpu.ecc": gpus(ecc="Disabled"),
    "fabric manager": fact("driver", "fabric_manager", "stopped"),
    "full disks": host("disk_free_bytes", "tmp", 1 << 20),
    "gpu.throttling": gpus(throttle_reasons=["hw_thermal_slowdown"]),
    "gpu.temperature": gpus(temperature_c=92),
    "gpu.link under load": gpus(pcie_generation=2, throttle_reasons=[]),
    "limit.memlock": host("limits", "memlock", 65536),
    "mount /scratch": lambda node: node["host"]["mounts"].pop("/scratch"),
    "ports.count": lambda node: node["ports"]["value"].pop(),
    "SPEED-SLOW": verdict("bandwidth.h2d@2", "skipped", figure=27.1),
}.items():
    kind(
        f"all: {name}",
        plant,
        named=(name,),
        also=("GPU*", "STANDARD*", "DISK*", "FABRIC*", "ECC*"),
        alike=True,
    )

EXPECTED = (
    Expectation(
        "EXPECTED-1",
        {"limit.memlock": "unlimited", "mount /scratch": "lustre of *", "ports.count": "8"},
        Severity.ERROR,
        cards=("NVIDIA H200",),
        own=True,
    ),
)
TOGETHER = ("gpu", "mount", "xid")
"""Kinds that change one thing are not planted twice on a fleet."""


def as_a100(node: Json) -> None:
    """Make it a node of another partition."""
    gpus(
        name="NVIDIA A100-SXM4-80GB",
        compute_capability="8.0",
        memory_total_bytes=80 << 30,
        memory_free_bytes=79 << 30,
        nvlinks_up=12,
        nvlinks_total=12,
        pcie_generation=4,
        pcie_generation_max=4,
        pci_id="10de:20b2",
        power_limit_mw=400_000,
        power_limit_default_mw=400_000,
        sm_clock_max_mhz=1410,
        memory_clock_max_mhz=1593,
        vbios="92.00.45.00.03",
    )(node)
    node["host"]["memory_total_bytes"]["value"] = 1 << 40
    node["host"]["product"]["value"] = "DGXA100"
    node["host"]["kernel"]["value"] = "5.15.0-105-generic"
    ports(rate_gbps=200.0, firmware="20.35.1012")(node)


def smoked(node: Json, chance: random.Random) -> None:
    """Give it what its smokes and speeds would tell, a little apart from the others."""
    card = node["gpus"]["value"][0]["name"]
    sound = SOUND[card]
    node["verdicts"] = [{"op": "matmul.bf16", "outcome": "passed", "source": "smoke"}]
    for op, (figure, unit, cards, links) in sound.items():
        told = {
            "figure": figure * chance.uniform(0.97, 1.03),
            "unit": unit,
            "cards": [card] * cards,
            "links": links,
        }
        node["verdicts"].append({"op": op, "outcome": "skipped", "source": "smoke", "speed": told})


SOUND = {
    "NVIDIA H200": {
        "bandwidth.h2d@2": (55.0, "GB/s", 1, None),
        "bandwidth.d2d": (4250.0, "GB/s", 1, None),
        "bandwidth.matmul@5": (680.0, "TFLOP/s", 1, None),
        "bandwidth.p2p[3-6]": (385.0, "GB/s", 2, 18),
        "bandwidth.copy": (55.0, "GB/s", 1, None),
    },
    "NVIDIA A100-SXM4-80GB": {
        "bandwidth.h2d@2": (25.0, "GB/s", 1, None),
        "bandwidth.d2d": (1750.0, "GB/s", 1, None),
        "bandwidth.matmul@5": (250.0, "TFLOP/s", 1, None),
        "bandwidth.p2p[3-6]": (265.0, "GB/s", 2, 12),
        "bandwidth.copy": (25.0, "GB/s", 1, None),
    },
}
"""What sound cards reach; `bandwidth.copy` stands for a speed that no row knows."""


def as_login(node: Json) -> None:
    """Make it a node without GPUs."""
    node["gpus"] = {"value": [], "source": "/sys/bus/pci/devices"}
    node["driver"] = {"version": {"unknown": "no NVIDIA kernel module is loaded"}}
    node["ports"]["value"] = []
    node["host"]["cpu_count"]["value"] = 16
    node["host"]["memory_total_bytes"]["value"] = 256 << 30
    node["verdicts"] = []


def own(node: Json, number: int, count: int) -> Json:
    """Give a node what equal nodes differ in."""
    name = f"node{number:03d}"
    for one in node["gpus"]["value"]:
        one["uuid"] = f"GPU-{number:04x}-{one['index']}"
        one["memory_free_bytes"] -= number * 4096
        one["temperature_c"] = 28 + number % 20
        one["sm_clock_mhz"] = 345 + number
    node["host"]["hostname"] = {"value": name, "source": "uname"}
    node["host"]["time_s"] = {"value": NOW + number % 3, "source": "clock"}
    node["host"]["memory_total_bytes"]["value"] -= number * 65536
    node["host"]["memory_available_bytes"] = {"value": (1 << 40) + number * 4096, "source": "/proc/meminfo"}
    node["host"]["disk_free_bytes"] = {
        place: size - number * 7919 for place, size in node["host"]["disk_free_bytes"].items()
    }
    node["variables"] |= {
        "RANK": str(number),
        "NODE_RANK": str(number),
        "VLLM_HOST_IP": f"10.1.{number // 250}.{number % 250}",
        "TMPDIR": f"/local/{name}/tmp",
        "TORCH_HOME": f"/local/{name}/torch",
        "NCCL_HOSTID": name,
        "NVIDIA_VISIBLE_DEVICES": f"GPU-{number:08x}-0000-1111",
        "WORLD_SIZE": str(count * 8),
        "MASTER_ADDR": "10.1.0.1",
    }
    return node


@dataclass
class Fleet:
    """A planted fleet."""

    nodes: dict[str, Json]
    partitions: dict[str, str]
    planted: list[tuple[Kind, tuple[str, ...]]]


def make_fleet(chance: random.Random, base: Json) -> Fleet:
    """Return a fleet drawn by chance."""
    count = chance.choice((8, 16, 24, 32, 64))
    names = [f"node{n:03d}" for n in range(1, count + 1)]
    nodes = {name: own(copy.deepcopy(base), n, count) for n, name in enumerate(names, 1)}
    partitions: dict[str, str] = {}
    others: set[str] = set()
    shape = chance.choice(("one", "one", "mixed", "partitions", "login"))
    if shape in ("mixed", "partitions"):
        others = set(names[count // 2 :])
        for name in others:
            as_a100(nodes[name])
        if shape == "partitions":
            partitions = {name: "a100" if name in others else "h200" for name in names}
    for name in names:
        smoked(nodes[name], chance)
    if shape == "login":
        others = {names[-1]}
        as_login(nodes[names[-1]])
    return Fleet(nodes, partitions, plant(chance, nodes, [n for n in names if n not in others]))


def plant(
    chance: random.Random, nodes: dict[str, Json], names: list[str]
) -> list[tuple[Kind, tuple[str, ...]]]:
    """Plant kinds that do not touch each other, each on nodes of its own."""
    chosen: list[Kind] = []
    wanted = chance.choice((0, 1, 1, 2, 3, 4))
    for one in chance.sample(KINDS, len(KINDS)):
        touched = {n for k in chosen for n in k.named | k.also}
        alike = [k for k in chosen if k.alike]
        clash = (
            touched & one.named
            or (alike and one.alike)
            or ("*" in one.also and any("*" in k.also for k in chosen))
        )
        clash = clash or ((alike or one.alike) and chosen)
        if len(chosen) < wanted and not clash:
            chosen.append(one)
    planted = []
    free = names[1:]
    for one in chosen:
        if not free:
            break
        where = (
            names
            if one.alike
            else sorted(chance.sample(free, min(max(1, len(free) // 4), len(free), chance.choice((1, 1, 2)))))
        )
        free = [name for name in free if name not in where]
        for name in where:
            one.plant(nodes[name])
        if one.named & {"gpu.uuid", "hostname"}:
            where = sorted({*where, "node001"})
        planted.append((one, tuple(where)))
    return planted


def judge(fleet: Fleet) -> FleetAnswer:
    """Merge and judge a fleet as the command does."""
    merge = Merge()
    for name, node in fleet.nodes.items():
        merge.add(name, json.dumps(node, indent=1).encode())
        merge.asked[name] = (float(NOW - 5), float(NOW + 5))
    return answer(merge, load_matrix(), partitions=fleet.partitions, expected=EXPECTED)


def entries(told: FleetAnswer) -> list[tuple[set[str], tuple[str, ...], str]]:
    """Return what a reader meets: (names it goes by, nodes, words)."""
    found: list[tuple[set[str], tuple[str, ...], str]] = []
    for drift in told.drift:
        if drift.consequence_of is None:
            found.append(({drift.fact.partition(" (")[0]}, drift.other_nodes, f"drift {drift.fact}"))
    for one in told.findings:
        facts = {e.fact for e in one.finding.evidence[:1]} | {one.finding.id}
        found.append((facts, one.nodes, f"{one.finding.id}: {one.finding.summary[:60]}"))
    found += [({"partial"}, one.nodes, f"partial {one.part}") for one in told.partial]
    return found


def matches(names: set[str], patterns: frozenset[str]) -> bool:
    """True when a pattern names one of the names."""
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def score_fleet(number: int, fleet: Fleet, told: FleetAnswer, quiet: set[str], score: Score) -> None:
    """Hold what was said of a fleet against what was planted."""
    said = [one for one in entries(told) if one[2] not in quiet]
    used: set[int] = set()
    following = {(d.fact, d.other_nodes) for d in told.drift}
    for one, where in fleet.planted:
        score.planted[one.name] += 1
        mine = [
            i
            for i, (names, nodes, _) in enumerate(said)
            if set(nodes) <= set(where) and matches(names, one.named | one.also)
        ]
        exact = [i for i in mine if matches(said[i][0], one.named) and set(said[i][1]) == set(where)]
        folded = any((name, where) in following for name in one.named)
        used.update(mine)
        score.entries.append(len(mine))
        if exact or folded:
            score.found[one.name] += 1
        elif any(set(nodes) & set(where) for _, nodes, _ in said) and not mine:
            score.misnamed.append(
                f"{number}: {one.name} on {where}: {[w for _, n, w in said if set(n) & set(where)][:3]}"
            )
        else:
            score.silent.append(f"{number}: {one.name} on {where}")
    score.false += [
        f"{number}: {words} on {nodes[:3]}" for i, (_, nodes, words) in enumerate(said) if i not in used
    ]


def base_node() -> Json:
    """Return a healthy node's facts, with what its probe always tells."""
    base = healthy_node()
    base["variables"].pop("TORCH_CUDA_ARCH_LIST", None)
    base["host"]["shm_bytes"] = {"value": 1 << 40, "source": "/dev/shm"}
    base["host"]["cgroup_limit_bytes"] = {"unknown": "no control group limits memory here"}
    base["verdicts"] = []
    return base


def main() -> None:
    """Plant, judge and print."""
    count, seed = (int(n) for n in [*sys.argv[1:3], "300", "1"][:2]) if len(sys.argv) > 1 else (300, 1)
    base = base_node()
    clean = Fleet({f"node{n:03d}": own(copy.deepcopy(base), n, 4) for n in range(1, 5)}, {}, [])
    quiet = {words for _, _, words in entries(judge(clean))}
    print(f"{len(KINDS)} kinds; a healthy fleet is told: {sorted(quiet) or 'nothing'}")
    score, started = Score(), time.monotonic()
    for number in range(count):
        chance = random.Random(seed * 100_000 + number)
        fleet = make_fleet(chance, base)
        score_fleet(number, fleet, judge(fleet), quiet, score)
    planted, found = sum(score.planted.values()), sum(score.found.values())
    print(
        f"{count} fleets, {len(score.planted)} kinds planted: {found} of {planted} found "
        f"({100 * found / max(1, planted):.1f} %), {len(score.misnamed)} misnamed, {len(score.false)} false, "
        f"at most {max(score.entries, default=0)} entries a cause, {time.monotonic() - started:.0f} s"
    )
    for title, lines in (("misnamed", score.misnamed), ("missed", score.silent), ("false", score.false)):
        for line in lines[:25]:
            print(f"  {title}: {line}")


if __name__ == "__main__":
    main()
