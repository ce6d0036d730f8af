"""Pools: nodes that are meant to be alike, by partition and by kind of GPU, each judged in itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from envdoctor.errors import InputError
from envdoctor.facts import Facts
from envdoctor.fleet.merge import Group
from envdoctor.fleet.nodeset import natural_key

WAYS = ("auto", "partition", "gpu", "none")
NO_GPU = "no GPU"
_KIND_SHARE = 0.1
_KIND_NODES = 2
"""A kind of GPU that fewer nodes have is no kind of its own but a node that differs."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes that are compared with each other; `name` is empty where all are one pool."""

    name: str
    groups: tuple[Group, ...]

    @property
    def count(self) -> int:
        """How many nodes it has."""
        return sum(len(group.nodes) for group in self.groups)


def check_way(way: str) -> None:
    """Raise InputError for a way of comparing that is none."""
    if way not in WAYS:
        raise InputError(f"--group-by {way}: one of {', '.join(WAYS)}")


def split_pools(
    groups: Sequence[Group], partitions: Mapping[str, str], way: str = "auto"
) -> tuple[Pool, ...]:
    """Return the pools, largest first. `partitions` names each node's, where it is known."""
    pools = [Pool("", tuple(groups))]
    if way in ("auto", "partition") and len(set(partitions.values())) > 1:
        pools = [
            p for pool in pools for p in _by_node(pool, lambda node: partitions.get(node, "no partition"))
        ]
    if way in ("auto", "gpu"):
        pools = [p for pool in pools for p in _by_gpu(pool)]
    return tuple(sorted(pools, key=lambda pool: (-pool.count, pool.name)))


def _by_node(pool: Pool, label: Callable[[str], str]) -> list[Pool]:
    found: dict[str, list[Group]] = {}
    for group in pool.groups:
        for name, nodes in _sorted_into(group.nodes, label).items():
            found.setdefault(name, []).append(replace(group, nodes=tuple(nodes)))
    return [Pool(name, tuple(some)) for name, some in found.items()]


def _sorted_into(nodes: Iterable[str], label: Callable[[str], str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in nodes:
        found.setdefault(label(node), []).append(node)
    return found


def _by_gpu(pool: Pool) -> list[Pool]:
    """Return a pool for each kind of GPU that enough nodes have; the rarer stay with the most frequent."""
    if not pool.groups:
        return [pool]
    kinds: dict[str, list[Group]] = {}
    for group in pool.groups:
        kinds.setdefault(gpu_kind(group.facts), []).append(group)
    sizes = {kind: sum(len(g.nodes) for g in some) for kind, some in kinds.items()}
    least = max(_KIND_NODES, _KIND_SHARE * pool.count)
    real = [kind for kind in kinds if kind and (sizes[kind] >= least or kind == NO_GPU)]
    most = max(real or kinds, key=lambda kind: (sizes[kind], kind))
    if len(real) < 2:
        return [pool]
    found: dict[str, list[Group]] = {}
    for kind, some in kinds.items():
        home = kind if kind in real else _nearest(kind, real) or most
        found.setdefault(home, []).extend(some)
    return [Pool(_named(pool.name, kind), _ordered(some)) for kind, some in found.items()]


def _nearest(kind: str, real: Sequence[str]) -> str:
    """Return the kind whose name begins most alike: an `H200 NVL` among `H200` and `A100` is an odd H200."""
    return max(real, key=lambda one: _common_start(kind, one)) if kind else ""


def _common_start(one: str, other: str) -> int:
    """Return how many letters two names begin with alike."""
    differing = (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differing, min(len(one), len(other)))


def gpu_kind(facts: Facts) -> str:
    """Return what GPUs a node is made with, empty where it is not known or a driver is there without them."""
    gpus = facts.gpus.get()
    if gpus == () and facts.driver.version.get() is None:
        return NO_GPU
    models = sorted({gpu.name or "a GPU" for gpu in gpus or ()})
    mig = any(gpu.mig == "Enabled" for gpu in gpus or ())
    return " and ".join(models) + (" in MIG parts" if mig else "")


def _named(partition: str, kind: str) -> str:
    return f"{partition}: {kind}" if partition else kind


def _ordered(groups: Iterable[Group]) -> tuple[Group, ...]:
    return tuple(sorted(groups, key=lambda g: (-len(g.nodes), natural_key(g.nodes[0]))))
