"""Nodes' measured speeds: held against what such cards reach, and against each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from envdoctor.commands import commands
from envdoctor.facts import Speed, Verdict
from envdoctor.findings import Evidence, Finding, Remedy, Severity
from envdoctor.fleet.answer import NodeFinding
from envdoctor.fleet.nodeset import natural_key
from envdoctor.matrix import Matrix
from envdoctor.smokes.expected import judge_speed, told
from envdoctor.values import NamedTuple

ODD = 0.85
"""Below this share of what most nodes reach, a node is odd; one card's figures stay within a few percent."""
_FEWEST = 3
_SHOWN = 8


class Measured(NamedTuple):
    """One speed of one node."""

    node: str
    verdict: Verdict
    speed: Speed


def find_slow(speeds: Mapping[str, Sequence[Verdict]], matrix: Matrix) -> tuple[NodeFinding, ...]:
    """Return a finding for each speed that falls short, and for each in which a few nodes stay behind."""
    slow: dict[str, list[Measured]] = {}
    fair: dict[tuple[str, tuple[str, ...]], list[Measured]] = {}
    for node, verdicts in speeds.items():
        for verdict in verdicts:
            if verdict.speed is None:
                continue
            one = Measured(node, verdict, judge_speed(verdict.op, verdict.speed, matrix)[0])
            if one.speed.verdict == "slow":
                slow.setdefault(verdict.name, []).append(one)
            else:
                fair.setdefault((verdict.name, one.speed.cards), []).append(one)
    behind = ((name, _behind(some)) for (name, _), some in fair.items())
    return (
        *(_short(name, some) for name, some in slow.items()),
        *(_odd(name, *found) for name, found in behind if found is not None),
    )


def _behind(some: Sequence[Measured]) -> tuple[list[Measured], float] | None:
    """Return the nodes whose slowest card stays behind the others' and what is usual; None for none."""
    slowest: dict[str, Measured] = {}
    for one in some:
        if one.node not in slowest or one.speed.figure < slowest[one.node].speed.figure:
            slowest[one.node] = one
    usual = median(one.speed.figure for one in slowest.values())
    odd = [one for one in slowest.values() if one.speed.figure < ODD * usual]
    return (odd, usual) if odd and len(slowest) >= _FEWEST else None


def _short(name: str, some: Sequence[Measured]) -> NodeFinding:
    speed = some[0].speed
    expected = f"{told(speed.expected or 0)} {speed.unit} is expected, at least {told(speed.least or 0)}"
    causes = "; ".join(dict.fromkeys(cause for one in some for cause in one.speed.causes))
    rows = tuple(dict.fromkeys(row for one in some for row in one.speed.rows))
    return _finding("SPEED-SLOW", Severity.ERROR, name, some, f"where {expected}", causes, rows)


def _odd(name: str, some: Sequence[Measured], usual: float) -> NodeFinding:
    cause = "A collective goes at the pace of its slowest card, and these nodes stay behind the others."
    held = f"where most nodes reach {told(usual)} {some[0].speed.unit}"
    return _finding("SPEED-ODD", Severity.WARNING, name, some, held, cause, ())


def _finding(
    identity: str,
    severity: Severity,
    name: str,
    some: Sequence[Measured],
    held: str,
    cause: str,
    rows: tuple[str, ...],
) -> NodeFinding:
    figures = sorted(one.speed.figure for one in some)
    span = dict.fromkeys((told(figures[0]), told(figures[-1])))
    nodes = tuple(sorted({one.node for one in some}, key=natural_key))
    text = "Run it there by itself: nvidia-smi is asked meanwhile for links, clocks and programs."
    finding = Finding(
        id=identity,
        severity=severity,
        summary=f"{name} is slow: {' to '.join(span)} {some[0].speed.unit} {held}.",
        cause=cause,
        evidence=tuple(_evidence(some)),
        remedies=(Remedy(text, commands("envdoctor smoke --select {}", name)),),
        rows=rows,
    )
    return NodeFinding(finding, nodes)


def _evidence(some: Iterable[Measured]) -> Iterator[Evidence]:
    for one in sorted(some, key=lambda one: one.speed.figure)[:_SHOWN]:
        yield Evidence(one.verdict.op, f"{told(one.speed.figure)} {one.speed.unit}", one.node)
