"""The map: a column for each node, a row for each fact that should agree; what is odd is seen at a glance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from envdoctor.fleet.answer import FleetAnswer
from envdoctor.fleet.comparable import comparable_facts, packages
from envdoctor.fleet.drift import Drift
from envdoctor.fleet.nodeset import fold, natural_key
from envdoctor.fleet.report.markup import text

_ALWAYS_SHOWN = ("driver", "gpu.count", "gpu.model", "torch", "nccl", "python", "kernel")
_MAX_ROWS = 60
_UNIT = 10  # a node's width in the drawing's own units
_LEAST_SHARE = 0.004  # an odd node is never drawn thinner than this share of the width
_SHADES = ("", " second", " third")
_TICKS = 6


def fleet_map(answer: FleetAnswer) -> str:
    """Return the map as a table of inline drawings."""
    reached = [node for group in answer.groups for node in group.nodes]
    silent = {node: one.reason for one in answer.unreached for node in one.nodes}
    nodes = sorted([*reached, *silent], key=natural_key)
    if not nodes:
        return ""
    columns = {node: position for position, node in enumerate(nodes)}
    drift = answer.drift[:_MAX_ROWS]
    rows = "".join(_row(d.fact, _drift_cells(d, columns), silent, columns, _odd_words(d)) for d in drift)
    shown = {d.fact for d in answer.drift}
    for fact, value in _agreed(answer):
        if fact not in shown:
            rows += _row(fact, [], silent, columns, value)
    key = (
        '<p class="key dim"><span class=same></span>as most nodes<span class=error></span>odd, error'
        "<span class=warning></span>odd, warning<span class=note></span>odd, note"
        "<span class=silent></span>no answer</p>"
    )
    return f"<h2>Nodes and facts</h2>{key}<table class=map>{rows}{_axis(nodes)}</table>\n"


def _agreed(answer: FleetAnswer) -> Iterator[tuple[str, str]]:
    """Yield the facts people look at first that all nodes share."""
    if not answer.groups:
        return
    facts = answer.groups[0].facts
    values = {**packages(facts), **comparable_facts(facts)}
    for name in _ALWAYS_SHOWN:
        if name in values and (told := values[name].text) is not None:
            yield name, told


Cell = tuple[Sequence[str], str, str]
"""Nodes, the class that colours them, and their words."""


def _drift_cells(drift: Drift, columns: Mapping[str, int]) -> Iterator[Cell]:
    for position, value in enumerate(drift.values[1:]):
        shade = _SHADES[min(position, len(_SHADES) - 1)]
        accepted = " accepted" if drift.accepted else ""
        words = f"unknown: {value.reason}" if value.value is None else value.value
        yield value.nodes, f"{drift.severity.value}{shade}{accepted}", words


def _odd_words(drift: Drift) -> str:
    odd = [f"{fold(v.nodes)}: {'unknown' if v.value is None else v.value}" for v in drift.values[1:]]
    return "; ".join(odd[:3]) + (f" and {len(odd) - 3} more" if len(odd) > 3 else "")


def _row(
    fact: str, cells: Iterable[Cell], silent: Mapping[str, str], columns: Mapping[str, int], words: str
) -> str:
    width = len(columns) * _UNIT
    drawn = f'<rect class=same width="{width}" height="20"/>'
    for reason in dict.fromkeys(silent.values()):
        where = [node for node in silent if silent[node] == reason]
        drawn += _rects(where, "silent", f"no answer: {reason}", columns)
    for nodes, style, told in cells:
        drawn += _rects(nodes, style, told, columns)
    return (
        f"<tr><th>{text(fact)}<td class=m>"
        f'<svg viewBox="0 0 {width} 20" preserveAspectRatio="none" role="img" aria-label="{text(words)}">'
        f"{drawn}</svg><td>{text(words)}"
    )


def _rects(nodes: Iterable[str], style: str, words: str, columns: Mapping[str, int]) -> str:
    least = max(_UNIT, round(len(columns) * _UNIT * _LEAST_SHARE))
    gap = 1 if len(columns) <= 200 else 0
    drawn = ""
    for first, last in _runs(sorted(columns[node] for node in nodes)):
        width = max(least, (last - first + 1) * _UNIT) - gap
        left = min(first * _UNIT, len(columns) * _UNIT - width)
        place = f'x="{left}" width="{width}" height="20"'
        drawn += f'<rect class="{style}" {place}><title>{text(words)}</title></rect>'
    return drawn


def _runs(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = previous = None
    for position in positions:
        if start is None or previous is None or position != previous + 1:
            if start is not None and previous is not None:
                yield start, previous
            start = position
        previous = position
    if start is not None and previous is not None:
        yield start, previous


def _axis(nodes: Sequence[str]) -> str:
    """Return a row that names some nodes under their columns."""
    step = max(1, len(nodes) // _TICKS)
    ticks = [*range(0, len(nodes) - step // 2, step), len(nodes) - 1] if len(nodes) > 1 else [0]
    marks = "".join(_tick(position, nodes) for position in dict.fromkeys(ticks))
    return f"<tr><th><td class=m><svg class=t>{marks}</svg><td>"


def _tick(position: int, nodes: Sequence[str]) -> str:
    place = f'x="{100 * position / max(1, len(nodes) - 1):.1f}%" y="11"'
    return f'<text {place} text-anchor="{_anchor(position, nodes)}">{text(nodes[position])}</text>'


def _anchor(position: int, nodes: Sequence[str]) -> str:
    if position == 0:
        return "start"
    return "end" if position == len(nodes) - 1 else "middle"
