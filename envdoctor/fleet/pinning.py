"""Pins for a whole fleet: one set of versions that holds on every kind of node, or the fewest sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from envdoctor.errors import InputError
from envdoctor.fleet.merge import Group
from envdoctor.fleet.nodeset import fold
from envdoctor.matrix import Matrix
from envdoctor.values import dataclass

if TYPE_CHECKING:
    from envdoctor.solve.answer import PinSet
    from envdoctor.target.resolve import Target

MAX_KINDS = 6


@dataclass(frozen=True, slots=True)
class Kind:
    """Nodes that are one target for pins: the same Python, platform, cards and driver."""

    target: Target
    nodes: tuple[str, ...]


def pin_fleet(groups: Sequence[Group], requests: Sequence[str], matrix: Matrix) -> dict[str, Any]:
    """Return `{"sets": [{"nodes", "pins"}], "told": words}` for requests on all groups.

    Raises InputError for a malformed request or too many kinds of nodes, Unavailable without package facts.
    """
    from envdoctor.solve.requests import parse_requests

    asked = parse_requests(requests)
    kinds = node_kinds(groups, matrix)
    if not kinds:
        raise InputError("--pin: no node told its facts")
    if len(kinds) > MAX_KINDS:
        raise InputError(f"--pin: {len(kinds)} kinds of nodes, at most {MAX_KINDS} can be pinned at once")
    solved: dict[tuple[int, ...], PinSet | None] = {}

    def solve(members: tuple[int, ...]) -> PinSet | None:
        if members not in solved:
            target = joint_target([kinds[i].target for i in members])
            solved[members] = None if target is None else _pin(asked, target, matrix)
        return solved[members]

    blocks = fewest_blocks(len(kinds), lambda members: _holds(solve(members)))
    sets = [(tuple(n for i in block for n in kinds[i].nodes), solve(block)) for block in blocks]
    return {
        "holds": all(_holds(pins) for _, pins in sets),
        "sets": [{"nodes": fold(nodes), "pins": pins.as_json() if pins else None} for nodes, pins in sets],
        "told": "\n".join(_words(nodes, pins, [request.name for request in asked]) for nodes, pins in sets),
    }


def _holds(pins: PinSet | None) -> bool:
    return pins is not None and pins.status == "solved"


def node_kinds(groups: Sequence[Group], matrix: Matrix) -> list[Kind]:
    """Return the distinct targets among the groups, each with its nodes."""
    from envdoctor.target.resolve import target_of

    nodes: dict[Target, list[str]] = {}
    for group in groups:
        nodes.setdefault(target_of(group.facts, matrix), []).extend(group.nodes)
    return [Kind(target, tuple(names)) for target, names in nodes.items()]


def joint_target(targets: Sequence[Target]) -> Target | None:
    """Return the target on which pins hold for all of them, None when no environment serves them all."""
    from envdoctor.target.platforms import linux_platform
    from envdoctor.target.resolve import Target

    first = targets[0]
    alike = {(t.python[:2], t.platform.os, t.platform.arch, t.platform.libc) for t in targets}
    if len(alike) > 1:
        return None
    oldest = min((t.platform for t in targets), key=lambda p: p.libc_version)
    drivers = [t.driver for t in targets if t.driver is not None]
    if oldest.os == "linux" and oldest.libc == "glibc":
        oldest = linux_platform(oldest.arch, ".".join(str(part) for part in oldest.libc_version))
    cards = tuple(dict.fromkeys(card for target in targets for card in target.cards))
    python = min(target.python for target in targets)
    return Target(python, oldest, cards, min(drivers) if drivers else first.driver)


def fewest_blocks(count: int, holds: Callable[[tuple[int, ...]], bool]) -> list[tuple[int, ...]]:
    """Return a partition of the kinds into the fewest blocks that hold; one that never does stands alone."""
    best: list[tuple[int, ...]] | None = None
    for partition in _partitions(list(range(count))):
        if best is not None and len(partition) >= len(best):
            continue
        if all(len(block) == 1 or holds(block) for block in partition):
            best = partition
    return sorted(best or [])


def _partitions(items: Sequence[int]) -> Iterator[list[tuple[int, ...]]]:
    """Yield every partition, the whole first."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for partition in _partitions(rest):
        for position in range(len(partition)):
            yield [*partition[:position], (first, *partition[position]), *partition[position + 1 :]]
        yield [(first,), *partition]


def _pin(requests: Sequence[Any], target: Target, matrix: Matrix) -> PinSet:
    from envdoctor.matrix.snapshot import load_snapshot
    from envdoctor.solve.asking import options_of
    from envdoctor.solve.goal import Goal
    from envdoctor.solve.nodes import Context
    from envdoctor.solve.pinning import pin
    from envdoctor.solve.requests import Asked

    context = Context(load_snapshot(matrix.folder), matrix, target, options_of(Asked(tuple(requests))))
    return pin(Goal(context, tuple(requests)))


def _words(nodes: Sequence[str], pins: PinSet | None, asked: Sequence[str]) -> str:
    where = fold(nodes)
    if pins is None or pins.status != "solved":
        causes = "; ".join(cause.text for cause in pins.causes) if pins else "no environment serves them all"
        return f"on {where} nothing holds: {causes}"
    return f"on {where}: " + " ".join(f"{pin.name}=={pin.label}" for pin in pins.pins if pin.name in asked)
