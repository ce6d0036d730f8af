"""What must move along with what is asked for, whatever else is chosen: the lower bound of a change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from envdoctor.solve.nodes import Context, Node
from envdoctor.solve.problem import bits_of, demands_of


def must_move(context: Context, asked: Mapping[str, int], installed: Iterable[str]) -> frozenset[str]:
    """Return the installed packages, not asked for, that no answer leaves as they are.

    `asked` are the candidates that are asked of some packages. One must move where no candidate of a package
    asked for, or of another that must move, stands beside its installed release.
    """
    left = dict(asked)
    held = [name for name in installed if name not in left]
    turn = list(left)
    while turn:
        name = turn.pop()
        for other in [one for one in held if not _stands(context, one, name, left[name])]:
            held.remove(other)
            node = context.known(other)
            left[other] = _beside(context, other, node.allowed & ~node.installed, left)
            turn.append(other)
    return frozenset(left.keys() - asked.keys())


def _stands(context: Context, held: str, name: str, mask: int) -> bool:
    """True where an installed release stands beside one of some candidates, or beside what stands there."""
    node, other = context.known(name), context.known(held)
    bit = other.installed.bit_length() - 1
    if node.installed:  # what is in want already may stay so
        mask &= _asked_of(other, bit, name) | node.installed
    admits = (one for one in bits_of(mask) if _asked_of(node, one, held) >> bit & 1)
    return bool(mask & node.installed) or next(admits, None) is not None


def _beside(context: Context, name: str, mask: int, left: Mapping[str, int]) -> int:
    """Return the candidates of a package that stand beside one of those left of each other package."""
    node = context.known(name)
    return sum(
        1 << bit
        for bit in bits_of(mask)
        if all(_asked_of(node, bit, other) & candidates for other, candidates in left.items())
    )


def _asked_of(node: Node, bit: int, name: str) -> int:
    """Return the candidates of a package that a candidate of another admits: all where it asks nothing."""
    mask = -1
    for demand in demands_of(node, bit):
        if demand.name == name:
            mask &= demand.mask
    return mask
