"""Who holds the GPUs that a program would see: cards without room, and exclusive ones that are taken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envdoctor.commands import commands
from envdoctor.facts import Gpu
from envdoctor.facts.quantities import GIB
from envdoctor.findings import Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.view import View
from envdoctor.rules.visibility import visible_gpus

SOURCE = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html"
LIST = "nvidia-smi --query-compute-apps=gpu_bus_id,pid,name,used_memory --format=csv"
NO_ROOM_GIB = 1.0
"""A CUDA context and a first allocation need about this much."""
FULL, BUSY, WORTH_KNOWING, DESKTOP_GIB = 0.98, 0.5, 0.1, 2.0
"""Shares of a card held by others: nothing fits beside it, they will, and they may, decide what fits; below
two GiB it is a desktop."""


def check_room(view: View) -> Iterable[Finding]:
    """GPUs whose memory other programs hold at the moment of the probe."""
    gpus = _judged(view)
    full = [gpu for gpu in gpus if _is_full(gpu)]
    busy = [gpu for gpu in gpus if gpu not in full and _share(gpu) > BUSY]
    some = [gpu for gpu in gpus if gpu not in (*full, *busy) and _is_worth_knowing(gpu)]
    free = [gpu for gpu in gpus if gpu not in full and gpu not in busy]
    for id_, held, severity in (
        ("GPU-FULL", full, Severity.WARNING if free or busy else Severity.ERROR),
        ("GPU-BUSY", busy, Severity.WARNING),
        ("GPU-IN-USE", some, Severity.NOTE),
    ):
        if held:
            yield _occupied(id_, severity, held, free if held is not some else ())


def _judged(view: View) -> list[Gpu]:
    if view.facts.origin != "probe":
        raise Skip("no machine was probed: what ran when a report was written may have ended")
    known = [
        gpu for gpu in visible_gpus(view) if gpu.memory_free_bytes is not None and gpu.memory_total_bytes
    ]
    # In MIG mode each instance has memory of its own.
    known = [gpu for gpu in known if (gpu.mig or "").lower() != "enabled"]
    if not known:
        raise Skip("the free memory of no visible GPU is told")
    return known


def _held_bytes(gpu: Gpu) -> int:
    return (gpu.memory_total_bytes or 0) - (gpu.memory_free_bytes or 0)


def _share(gpu: Gpu) -> float:
    return _held_bytes(gpu) / (gpu.memory_total_bytes or 1)


def _is_full(gpu: Gpu) -> bool:
    no_room = (gpu.memory_free_bytes or 0) < NO_ROOM_GIB * GIB and _share(gpu) > BUSY
    return no_room or _share(gpu) > FULL


def _is_worth_knowing(gpu: Gpu) -> bool:
    return _share(gpu) > WORTH_KNOWING and _held_bytes(gpu) > DESKTOP_GIB * GIB


def _occupied(id_: str, severity: Severity, held: Sequence[Gpu], free: Sequence[Gpu]) -> Finding:
    first = held[0]
    numbers = ", ".join(str(gpu.index) for gpu in held)
    state = "is full" if id_ == "GPU-FULL" else "is in use"
    words = f"{_held_bytes(first) / GIB:.1f} of {(first.memory_total_bytes or 0) / GIB:.1f} GiB"
    return Finding(
        id=id_,
        severity=severity,
        summary=f"GPU {numbers} {state}: {words} are held by {_holders(first)}.",
        cause="Memory that another process holds is not there for a new one: it fails with CUDA out of "
        "memory at its first allocations, or sizes itself for less.",
        evidence=tuple(evidence for gpu in held[:4] for evidence in _evidence(gpu)),
        remedies=tuple(_remedies(free, first)),
        sources=(SOURCE,),
    )


def _holders(gpu: Gpu) -> str:
    if not gpu.processes:
        return "processes that are not seen from here (another container or user, or one that hangs)"
    shown = sorted(gpu.processes, key=lambda one: -int(one.get("used_bytes") or 0))[:3]
    more = f" and {len(gpu.processes) - 3} more" if len(gpu.processes) > 3 else ""
    return ", ".join(f"{one.get('name') or 'process'} (pid {one.get('pid')})" for one in shown) + more


def _evidence(gpu: Gpu) -> list[Evidence]:
    free = f"{(gpu.memory_free_bytes or 0) / GIB:.2f} GiB free"
    told = [Evidence(f"GPU {gpu.index} memory", free, gpu.source)]
    for one in gpu.processes[:4]:
        size = one.get("used_bytes")
        held = f"{int(size) / GIB:.1f} GiB" if isinstance(size, int) else "not told"
        told.append(
            Evidence(f"GPU {gpu.index} pid {one.get('pid')}", f"{one.get('name', '')} {held}", gpu.source)
        )
    return told


def _remedies(free: Sequence[Gpu], held: Gpu) -> Iterable[Remedy]:
    if free:
        numbers = ",".join(str(gpu.index) for gpu in free)
        yield Remedy("Use the cards that are free.", commands("export CUDA_VISIBLE_DEVICES={}", numbers))
    yield Remedy("See who holds the memory, and wait for it or end it.", (LIST,))
    if not held.processes:
        yield Remedy(
            "Where no process is listed: ask the host, or look for one that hangs.",
            ("sudo fuser -v /dev/nvidia*",),
        )


def check_exclusive(view: View) -> Iterable[Finding]:
    """Exclusive cards on which a process runs already: every other is refused."""
    for gpu in visible_gpus(view):
        if "exclusive" in (gpu.compute_mode or "").lower() and gpu.processes:
            yield Finding(
                id="GPU-EXCLUSIVE-TAKEN",
                severity=Severity.ERROR,
                summary=f"GPU {gpu.index} is in an exclusive mode and taken by {_holders(gpu)}.",
                cause="In this mode one process may use the card; CUDA tells every other that the device is "
                "busy or unavailable.",
                evidence=(
                    Evidence(f"GPU {gpu.index} compute mode", gpu.compute_mode or "", gpu.source),
                    *_evidence(gpu),
                ),
                remedies=(
                    Remedy("Wait for that process, or end it.", (LIST,)),
                    Remedy(
                        "Or let processes share the card.",
                        commands("sudo nvidia-smi -i {} -c DEFAULT", gpu.index),
                    ),
                ),
                sources=(SOURCE,),
            )


RULES = (
    Rule("GPU-ROOM", "The visible GPUs have room", check_room, SOURCE),
    Rule("GPU-EXCLUSIVE-TAKEN", "No exclusive GPU is taken", check_exclusive, SOURCE),
)
