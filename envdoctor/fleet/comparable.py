"""What can be compared between nodes: a group's facts as short values under the names people use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from envdoctor.facts import Distribution, Fact, Facts, Gpu, Unknown
from envdoctor.facts.quantities import GIB
from envdoctor.fleet.canonical import HARMFUL_THROTTLING
from envdoctor.fleet.surroundings import surrounding_facts
from envdoctor.fleet.values import Value, size_value, told_value

ABSENT = "not installed"
UNSET = "unset"
UNMOUNTED = "not mounted"
_CHECKOUTS = ("vcs",)
_SHOWN_PROBLEMS = 3


def comparable_facts(facts: Facts, users_xids: Collection[int] = ()) -> dict[str, Value]:
    """Return the facts of driver, host, GPUs and interpreter by name; `users_xids` are programs' faults."""
    found = dict(_driver_and_host(facts, users_xids))
    found.update(surrounding_facts(facts))
    found.update(_gpu_facts(facts.gpus))
    found["python"] = told_value(facts.environment.python)
    found["environment"] = told_value(facts.environment.prefix)
    found["broken packages"] = _broken_packages(facts)
    found["nccl"] = _library(facts, "nccl")
    found["cudnn"] = _library(facts, "cudnn")
    found["cuda toolkit"] = _toolkit(facts)
    found["torch.cuda"] = _torch_cuda(facts)
    return found


def packages(facts: Facts) -> dict[str, Value]:
    """Return every distribution's version by name."""
    return {
        name: Value(_version(one), "its version is not told")
        for name, one in facts.environment.distributions.items()
    }


def _version(one: Distribution) -> str | None:
    """Return a version, and whether it is a checkout: two of one version need not be the same code."""
    told = one.version or one.specifier or None
    if told is None:
        return None
    return (
        f"{told} (editable)"
        if one.editable
        else f"{told} (from a repository)"
        if one.origin in _CHECKOUTS
        else told
    )


def _broken_packages(facts: Facts) -> Value:
    problems = facts.environment.problems
    if not problems:
        known = not isinstance(facts.environment.prefix, Unknown)
        return Value("none" if known else None, "no environment was read")
    more = len(problems) - _SHOWN_PROBLEMS
    return Value("; ".join(problems[:_SHOWN_PROBLEMS]) + (f"; and {more} more" if more > 0 else ""))


def missing_fact(facts: Facts, name: str) -> Value:
    """Return the value of a fact of which these facts have none."""
    if name.startswith("mount "):
        known = not isinstance(facts.host.modules, Unknown) and "mounts" not in facts.unread
        return Value(UNMOUNTED) if known else Value(None, "the mounts are not told")
    return Value(None, "not told")


def missing_package(facts: Facts) -> Value:
    """Return the value of a package that these facts do not list."""
    if facts.environment.complete:
        return Value(ABSENT)
    return Value(None, "what is installed there is not fully known")


def _driver_and_host(facts: Facts, users_xids: Collection[int]) -> Iterator[tuple[str, Value]]:
    driver, host = facts.driver, facts.host
    yield "driver", told_value(driver.version)
    yield "driver.user", told_value(driver.user_version)
    yield "driver.cuda", told_value(driver.cuda)
    yield "driver.module", told_value(driver.module)
    yield "driver.nvml", told_value(driver.nvml)
    yield "fabric manager", told_value(driver.fabric_manager)
    yield "kernel", told_value(host.kernel)
    yield "os", told_value(host.distro)
    yield "arch", told_value(host.arch)
    yield "glibc", told_value(host.glibc)
    yield "container", told_value(host.container)
    yield "cpus", told_value(host.cpu_count)
    yield "memory", size_value(host.memory_total_bytes)
    yield "shm", size_value(host.shm_bytes)
    numbers = sorted({xid.number for xid in facts.driver.xids} - set(users_xids))
    xids = ", ".join(map(str, numbers))
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
    found: dict[str, list[str]] = {}
    for gpu in gpus:
        if words := tell(gpu):
            found.setdefault(words, []).append(str(gpu.index))
    named = (
        f"every GPU: {words}" if len(where) == len(gpus) > 1 else f"GPU {', '.join(where)}: {words}"
        for words, where in found.items()
    )
    return Value("; ".join(named) or fine)


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


def _capped(gpu: Gpu) -> str | None:
    now, usual = gpu.power_limit_mw, gpu.power_limit_default_mw
    if now is None or usual is None or now >= usual:
        return None
    return f"{now // 1000} of {usual // 1000} W"


def _hot(gpu: Gpu) -> str | None:
    return (
        None
        if gpu.temperature_c is None
        else f"{gpu.temperature_c} °C, slows down at {gpu.temperature_slowdown_c}"
    )


def _slow_link(gpu: Gpu) -> str | None:
    """Return the generation of a busy GPU's link where it is below its own; idle links are not kept."""
    if gpu.pcie_generation is None or gpu.pcie_generation >= (gpu.pcie_generation_max or 0):
        return None
    return f"generation {gpu.pcie_generation} of {gpu.pcie_generation_max} under load"


def _clocks(gpu: Gpu) -> str | None:
    known = gpu.sm_clock_max_mhz is not None and gpu.memory_clock_max_mhz is not None
    return f"{gpu.sm_clock_max_mhz} and {gpu.memory_clock_max_mhz} MHz" if known else None


def _watts(gpu: Gpu) -> str | None:
    return None if gpu.power_limit_mw is None else f"{gpu.power_limit_mw // 1000} W"


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
    "gpu.power limit": _watts,
    "gpu.clocks": _clocks,
    "gpu.vbios": lambda gpu: gpu.vbios,
}
_OF_EACH: Mapping[str, tuple[Callable[[Gpu], str | None], str]] = {
    "gpu.ecc errors": (_ecc_errors, "none"),
    "gpu.remapped rows": (_remapped, "none pending or failed"),
    "gpu.pcie width": (_narrow, "full"),
    "gpu.nvlinks down": (_links_down, "none"),
    "gpu.throttling": (_throttled, "none"),
    "gpu.power cap": (_capped, "none"),
    "gpu.temperature": (_hot, "fine"),
    "gpu.link under load": (_slow_link, "full"),
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
