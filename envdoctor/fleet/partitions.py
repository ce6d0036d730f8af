"""Partitions as Slurm has them, which overlap: the one in which a node is compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

_SHARE = 0.1
_LEAST = 2


def home_partitions(partitions: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Return for each node the partition in which it is compared: the largest that does not fall apart.

    One falls apart where two others lie within it, apart from each other and each a tenth of it or more:
    `all` over `h100` and `a100`. A single one within another (`debug`, with a shorter limit) is a part of it.
    """
    sizes = {name: len(nodes) for name, nodes in partitions.items()}
    apart = {name for name, nodes in partitions.items() if _falls_apart(nodes, partitions.values())}
    best_first = sorted((n for n in partitions if n not in apart), key=lambda name: -sizes[name])
    best_first += sorted(apart, key=lambda name: sizes[name])
    return {node: name for name in reversed(best_first) for node in partitions[name]}


def memberships(partitions: Mapping[str, frozenset[str]]) -> dict[str, tuple[str, ...]]:
    """Return all partitions of each node."""
    found: dict[str, tuple[str, ...]] = {}
    for name, nodes in partitions.items():
        for node in nodes:
            found[node] = (*found.get(node, ()), name)
    return found


def _falls_apart(nodes: frozenset[str], partitions: Iterable[frozenset[str]]) -> bool:
    least = max(_LEAST, _SHARE * len(nodes))
    parts = {part for part in partitions if len(part) >= least and part < nodes}
    return any(one.isdisjoint(other) for one, other in combinations(parts, 2))
