"""What can be compared of the machine around the GPUs: ports, mounts, limits, clock, disks, modules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from envdoctor.facts import Facts, Host, Unknown
from envdoctor.facts.model import Mount, Port
from envdoctor.facts.quantities import GIB
from envdoctor.fleet.values import Value, size_value, told_value

UNLIMITED = "unlimited"
FULL_BYTES = GIB // 2
FULL_SHARE = 0.01
_DMA_BUF_KERNEL = (5, 12)
"""From it on the open kernel module shares GPU memory with adapters without nvidia_peermem."""
_PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")


def surrounding_facts(facts: Facts) -> Iterator[tuple[str, Value]]:
    """Yield the facts by name."""
    host = facts.host
    yield "product", told_value(host.product)
    yield "memory modules", told_value(host.memory_modules)
    yield "numa nodes", told_value(host.numa_nodes)
    yield "governor", told_value(host.governor)
    yield "locale", told_value(host.locale)
    yield "clock", told_value(host.clock)
    yield "memory limit", _memory_limit(host)
    yield "full disks", _full_disks(host)
    for name, limit in host.limits.items():
        yield f"limit.{name}", Value(UNLIMITED if limit < 0 else str(limit))
    for place, mount in host.mounts.items():
        yield f"mount {place}", Value(_mount_words(mount))
    yield "gpudirect rdma", _gpudirect(facts)
    yield "fabric modules", _modules(host)
    yield from _port_facts(facts)


def _memory_limit(host: Host) -> Value:
    """Return the control groups' limit; that there is none is an answer."""
    limit = host.cgroup_limit_bytes
    if isinstance(limit, Unknown):
        none = limit.reason.startswith("no control group limits")
        return Value("none" if none else None, limit.reason)
    return size_value(limit)


def _full_disks(host: Host) -> Value:
    places = [place for place, free in host.disk_free_bytes.items() if free < FULL_BYTES]
    places += [place for place, mount in host.mounts.items() if _is_full(mount)]
    if not host.disk_free_bytes and not host.mounts:
        return Value(None, "the free space of disks is not told")
    return Value(", ".join(sorted(places)) or "none")


def _is_full(mount: Mount) -> bool:
    """True below half a GiB, or a hundredth of a file system that many write to."""
    if mount.free_bytes is None or not mount.total_bytes:
        return False
    return mount.free_bytes < max(FULL_BYTES, min(FULL_SHARE * mount.total_bytes, 100 * GIB))


def _mount_words(mount: Mount) -> str:
    words = f"{mount.kind} of {mount.server}"
    words += "" if mount.writable else ", read-only"
    return words if mount.free_bytes is not None else f"{words}, does not answer"


def _gpudirect(facts: Facts) -> Value:
    """Return how network adapters reach the GPUs' memory; asked only where there are both."""
    ports, modules = facts.ports.get(), facts.host.modules.get()
    if not ports or not facts.gpus.get():
        return Value(None, "there are no GPUs with an RDMA port")
    if modules is None:
        return Value(None, "the kernel's modules are not told")
    if loaded := [name for name in _PEER_MODULES if name in modules]:
        return Value(loaded[0])
    open_module = facts.driver.module.get() == "open"
    return Value("dma-buf" if open_module and _kernel(facts.host) >= _DMA_BUF_KERNEL else "none")


def _kernel(host: Host) -> tuple[int, int]:
    match = re.match(r"(\d{1,3})\.(\d{1,3})", host.kernel.get() or "")
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _modules(host: Host) -> Value:
    if isinstance(host.modules, Unknown):
        return Value(None, host.modules.reason)
    told = [name for name in host.modules.value if name not in _PEER_MODULES]
    return Value(", ".join(told) or "none")


def _port_facts(facts: Facts) -> Iterator[tuple[str, Value]]:
    if isinstance(facts.ports, Unknown):
        yield "ports.active", Value(None, facts.ports.reason)
        return
    ports = facts.ports.value
    active = [port for port in ports if port.state == "ACTIVE"]
    nothing = Value(None, "there is no RDMA port")
    yield "ports.active", Value(_counted(Counter(map(_speed, active))) or "none") if ports else nothing
    rates = [port.rate_gbps for port in active if port.rate_gbps is not None]
    yield "ports.count", Value(str(len(active))) if ports else nothing
    yield "ports.fastest", Value(f"{max(rates):g} Gb/s") if rates else nothing
    down = "; ".join(f"{p.device}/{p.port}: {_state(p)}" for p in ports if p not in active)
    yield "ports.down", Value(down or "none") if ports else nothing
    yield "ports.firmware", _firmware(ports)
    bare = ", ".join(f"{p.device}/{p.port}" for p in active if not p.gids)
    yield "ports.addresses", Value(f"none on {bare}" if bare else "on all") if active else nothing
    subnets = sorted({p.subnet for p in active if p.subnet and p.link == "InfiniBand"})
    yield "ports.subnets", Value(", ".join(subnets)) if subnets else nothing


def _speed(port: Port) -> str:
    return f"{port.link} {port.rate_gbps:g} Gb/s" if port.rate_gbps is not None else port.link


def _state(port: Port) -> str:
    return port.state if port.physical_state is None else f"{port.state} ({port.physical_state})"


def _firmware(ports: tuple[Port, ...]) -> Value:
    """Return each firmware once: how many ports have it depends on the adapters."""
    told = sorted({port.firmware for port in ports if port.firmware})
    return Value(", ".join(told)) if told else Value(None, "no adapter tells its firmware")


def _counted(found: Counter[str]) -> str:
    return ", ".join(f"{count} × {words}" for words, count in sorted(found.items()))
