"""The smallest change to what a person wrote: the fewest lines, each to the nearest release that would do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from envdoctor.solve.answer import Line
from envdoctor.solve.explain import Reason
from envdoctor.solve.goal import Goal, Picks, request_mask
from envdoctor.solve.nodes import Context, Node
from envdoctor.solve.requests import Request
from envdoctor.solve.solver import solve


def changed_lines(goal: Goal, reasons: Sequence[Reason]) -> tuple[Line, ...]:
    """Return which lines would have to change, and to what; none where their changes alone do not help.

    Exact pins may move, and every line that is among the reasons: what each asks for counts as installed, so
    that the fewest change, rather forward than back, and none further than it must.
    """
    named = {reason.request for reason in reasons if reason.request is not None}
    free = [one for one in goal.requests if one.spec and not one.line and (one.exact or one in named)]
    if goal.least_change or not any(one in named for one in free):
        return ()
    picks = solve(_loosened(goal, free))
    return tuple(_changed(goal, free, picks)) if picks is not None else ()


def _loosened(goal: Goal, free: Sequence[Request]) -> Goal:
    """Return the goal of the fewest changes to what some requests ask for, each for any release."""
    old = goal.context
    stands = {one.name: told for one in free if (told := _wanted(old, one))}
    context = Context(old.snapshot, old.matrix, old.target, replace(old.options, wished=True), stands)
    asked = (replace(one, spec="") if one in free else one for one in goal.requests)
    return replace(goal, context=context, requests=tuple(asked), least_change=True, avoided=())


def _wanted(context: Context, request: Request) -> str:
    """Return the release that a request asks for: the one that it names, else the newest that it admits."""
    node = context.node(request.name)
    if request.exact or node is None:
        return request.exact or ""
    mask = request_mask(context, request)
    mask = mask & node.installable or mask
    return node.version(mask.bit_length() - 1) if mask else ""


def _changed(goal: Goal, free: Sequence[Request], picks: Picks) -> Iterator[Line]:
    for one in free:
        node, bit = goal.context.node(one.name), picks.bits.get(one.name)
        if node is not None and bit is not None and not node.admits(one.spec) >> bit & 1:
            labelled = bool(node.builds) and "+" in (one.exact or "")
            yield Line(str(one), str(replace(one, spec=f"=={_named(node, bit, labelled)}")), one.source)


def _named(node: Node, bit: int, labelled: bool) -> str:
    return node.builds[bit].label if node.builds and labelled else node.version(bit)
