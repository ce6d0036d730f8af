"""What a plan's packages weigh to download, by the sizes that their index told when it was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from envdoctor.facts import Facts
from envdoctor.findings import Download, Move, Plan
from envdoctor.matrix import Matrix
from envdoctor.plan.conda import is_condas
from envdoctor.values import replace

UNRECORDED = "not on record; --online asks the index"
Weigh = Callable[[Move], "int | str"]
"""Returns the bytes of what a move brings, or why they are not known."""


def download_of(moves: Sequence[Move], facts: Facts, matrix: Matrix) -> Download | None:
    """Return what the moves download, as far as it is on record; None where nothing comes."""
    coming = [move for move in moves if move.new is not None]
    if not coming:
        return None
    kind = _machine(facts)
    sizes: Mapping[str, Mapping[str, Mapping[str, int]]] = matrix.generated("sizes").get("releases", {})

    def recorded(move: Move) -> int | str:
        if is_condas(facts.environment, move.name):
            return "conda's own packages have other sizes"
        version, _, label = (move.new or "").partition("+")
        if label:
            return f"the sizes of {label} are not on record"
        told = sizes.get(move.name, {}).get(version, {})
        if {"any"} == told.keys() or {"source"} == told.keys():
            return next(iter(told.values()))
        if kind is None:
            return "the machine is not told"
        return max((told[key] for key in (kind, "any") if key in told), default=UNRECORDED)

    return _weighed(Download(0, whole=facts.environment.complete), coming, recorded)


def weigh_again(plan: Plan, weigh: Weigh) -> Plan:
    """Return the plan with what was not known of its download weighed."""
    if plan.download is None:
        return plan
    open_ = [move for move in plan.moves if move.name in plan.download.unknown]
    return replace(plan, download=_weighed(plan.download, open_, weigh))


def _weighed(download: Download, moves: Sequence[Move], weigh: Weigh) -> Download:
    """Add what moves weigh to what is known, and say why of the others."""
    told = {move.name: weigh(move) for move in moves}
    known = [size for size in told.values() if isinstance(size, int)]
    size = sum(known, download.size or 0) if known or download.size else None
    unknown = {name: why for name, why in told.items() if isinstance(why, str)}
    return replace(download, size=size, unknown=unknown)


def _machine(facts: Facts) -> str | None:
    """Return the kind of machine as sizes are recorded by; None where facts do not tell it."""
    os, arch = facts.host.os.get(), facts.host.arch.get()
    if os == "linux":
        return arch if arch in ("x86_64", "aarch64") else None
    if os == "macos":
        return "macos" if arch == "arm64" else None
    return "windows" if os == "windows" else None
