"""What can be compared between nodes: a group's facts as short values under the names people use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from envdoctor.facts import Fact, Facts, Gpu, Unknown
from envdoctor.facts.quantities import GIB
from envdoctor.fleet.canonical import HARMFUL_THROTTLING

ABSENT = "not installed"
UNSET = "unset"
T = TypeVar("T")


class Value(NamedTuple):
    """A comparable value: its words, None for unknown with the reason; `size` where nearness is enough."""

    text: str | None
    reason: str = ""
    size: int | None = None


def comparable_facts(facts: Facts) -> dict[str, Value]:
    """Return the facts of driver, host, GPUs and interpreter by name."""
    found = dict(_driver_and_host(facts))
    found.update(_gpu_facts(facts.gpus))
    found["python"] = _value(facts.environment.python)
    found["nccl"] = _library(facts, "nccl")
    found["cudnn"] = _library(facts, "cudnn")
    found["cuda toolkit"] = _toolkit(facts)
    found["torch.cuda"] = _torch_cuda(facts)
    return found


def packages(facts: Facts) -> dict[str, Value]:
    """Return every distribution's version by name."""
    return {
        name: Value(one.version or one.specifier or None, "its version is not told")
        for name, one in facts.environment.distributions.items()
    }


def missing_package(facts: Facts) -> Value:
    """Return the value of a package that these facts do not list."""
    if facts.environment.complete:
        return Value(ABSENT)
    return Value(None, "what is installed there is not fully known")


def _value(fact: Fact[T]) -> Value:
    return Value(None, fact.reason) if isinstance(fact, Unknown) else Value(str(fact.value))


def _size(fact: Fact[int]) -> Value:
    if isinstance(fact, Unknown):
        return Value(None, fact.reason)
    return Value(f"{fact.value / GIB:.1f} GiB", size=fact.value)


def _driver_and_host(facts: Facts) -> Iterator[tuple[str, Value]]:
    driver, host = facts.driver, facts.host
    yield "driver", _value(driver.version)
    yield "driver.user", _value(driver.user_version)
    yield "driver.cuda", _value(driver.cuda)
    yield "driver.module", _value(driver.module)
    yield "driver.nvml", _value(driver.nvml)
    yield "fabric manager", _value(driver.fabric_manager)
    yield "kernel", _value(host.kernel)
    yield "os", _value(host.distro)
    yield "arch", _value(host.arch)
    yield "glibc", _value(host.glibc)
    yield "container", _value(host.container)
    yield "cpus", _value(host.cpu_count)
    yield "memory", _size(host.memory_total_bytes)
    yield "shm", _size(host.shm_bytes)
    xids = ", ".join(str(xid.number) for xid in facts.driver.xids)
    yield "xid errors", Value(f"Xid {xids}" if xids else "none")


def _gpu_facts(gpus: Fact[tuple[Gpu, ...]]) -> Iterator[tuple[str, Value]]:
    names = ("gpu.count", *_OF_ALL, *_OF_EACH)
    if isinstance(gpus, Unknown):
        yield from ((name, Value(None, gpus.reason)) for name in names)
        return
    yield "gpu.count", Value(str(len(gpus.value)))
    nothing = Value(None, "there is no GPU")
    for name, read in _OF_ALL.items():
        yield name, _shared(gpus.value, read) if gpus.value else nothing
    for name, (tell, fine) in _OF_EACH.items():
        yield name, _odd_ones(gpus.value, tell, fine) if gpus.value else nothing


def _shared(gpus: tuple[Gpu, ...], read: Callable[[Gpu], object]) -> Value:
    """Return what the GPUs of a node have in common, or how many have which."""
    told = [str(value) for gpu in gpus if (value := read(gpu)) is not None]
    if len(told) < len(gpus):
        return Value(None, "not told of every GPU")
    counted = Counter(told)
    if len(counted) == 1:
        return Value(told[0])
    return Value(", ".join(f"{n} × {words}" for words, n in sorted(counted.items())))


def _odd_ones(gpus: tuple[Gpu, ...], tell: Callable[[Gpu], str | None], fine: str) -> Value:
    """Return which GPUs of a node are not as they should be, or `fine`."""
    found = [f"GPU {gpu.index}: {words}" for gpu in gpus if (words := tell(gpu))]
    return Value("; ".join(found) or fine)


def _memory_words(gpu: Gpu) -> str | None:
    return None if gpu.memory_total_bytes is None else f"{gpu.memory_total_bytes / GIB:.1f} GiB"


def _ecc_errors(gpu: Gpu) -> str | None:
    return f"{gpu.ecc_uncorrected} uncorrected" if gpu.ecc_uncorrected else None


def _remapped(gpu: Gpu) -> str | None:
    if gpu.remapped_rows_failed:
        return "remapping failed"
    return "remapping pending" if gpu.remapped_rows_pending else None


def _narrow(gpu: Gpu) -> str | None:
    if gpu.pcie_width is None or gpu.pcie_width_max is None or gpu.pcie_width >= gpu.pcie_width_max:
        return None
    return f"x{gpu.pcie_width} of x{gpu.pcie_width_max}"


def _links_down(gpu: Gpu) -> str | None:
    if gpu.nvlinks_up is None or gpu.nvlinks_total is None or gpu.nvlinks_up >= gpu.nvlinks_total:
        return None
    return f"{gpu.nvlinks_up} of {gpu.nvlinks_total} up"


def _throttled(gpu: Gpu) -> str | None:
    return ", ".join(r for r in gpu.throttle_reasons if r in HARMFUL_THROTTLING) or None


_OF_ALL: Mapping[str, Callable[[Gpu], object]] = {
    "gpu.model": lambda gpu: gpu.name,
    "gpu.capability": lambda gpu: gpu.compute_capability,
    "gpu.memory": _memory_words,
    "gpu.mig": lambda gpu: gpu.mig,
    "gpu.ecc": lambda gpu: gpu.ecc,
    "gpu.compute mode": lambda gpu: gpu.compute_mode,
    "gpu.persistence": lambda gpu: gpu.persistence,
    "gpu.pcie generation": lambda gpu: gpu.pcie_generation_max,
    "gpu.pcie slot": lambda gpu: gpu.pcie_width_max,
    "gpu.nvlinks": lambda gpu: gpu.nvlinks_total,
}
_OF_EACH: Mapping[str, tuple[Callable[[Gpu], str | None], str]] = {
    "gpu.ecc errors": (_ecc_errors, "none"),
    "gpu.remapped rows": (_remapped, "none pending or failed"),
    "gpu.pcie width": (_narrow, "full"),
    "gpu.nvlinks down": (_links_down, "none"),
    "gpu.throttling": (_throttled, "none"),
}


def _library(facts: Facts, name: str) -> Value:
    """Return the version of the copy that would be loaded."""
    copies = [one for one in facts.libraries if one.name == name and one.wins]
    if copies:
        return Value(copies[0].version, f"{copies[0].path} does not tell its version")
    wheels = {n: d for n, d in facts.environment.distributions.items() if n.startswith(f"nvidia-{name}-cu")}
    if wheels:
        return Value(", ".join(sorted(d.version or "?" for d in wheels.values())))
    return Value(None, f"no {name} was seen")


def _toolkit(facts: Facts) -> Value:
    if isinstance(facts.toolkits, Unknown):
        return Value(None, facts.toolkits.reason)
    active = [str(t.version) for t in facts.toolkits.value if t.active]
    return Value(active[0] if active else "none active")


def _torch_cuda(facts: Facts) -> Value:
    build = facts.environment.builds.get("torch", {})
    told = build.get("cuda") or build.get("variant")
    return Value(str(told)) if told else Value(None, "torch's build is not told")
