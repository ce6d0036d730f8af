"""The smallest change to what a person wrote: the fewest lines, each to the nearest release that would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from envdoctor.solve.answer import Line
from envdoctor.solve.explain import Reason
from envdoctor.solve.goal import Goal, Picks, request_mask
from envdoctor.solve.nodes import TORCH, Context
from envdoctor.solve.requests import Request
from envdoctor.solve.solver import solve
from envdoctor.solve.variants import OWN_RUNTIME


def hang_on_cards(reasons: Sequence[Reason]) -> bool:
    """True when a card or driver is among the reasons: what is asked for has to give way, they stay."""
    return any(one.ban is not None and one.ban.what in ("card", "driver", "kernels") for one in reasons)


def changed_lines(goal: Goal, reasons: Sequence[Reason]) -> tuple[Line, ...]:
    """Return which lines would have to change, and to what; none where their changes alone do not help.

    Exact pins may move, and every line that is among the reasons: what each asks for counts as installed, so
    that the fewest change, rather forward than back, and none further than it must. Pins of torch's CUDA
    libraries follow torch: where it changes they are to be left out.
    """
    named = {reason.request for reason in reasons if reason.request is not None}
    free = [one for one in goal.requests if one.spec and not one.line and (one.exact or one in named)]
    if goal.least_change or not any(one in named for one in free):
        return ()
    follow = [one for one in free if one.name.startswith(OWN_RUNTIME) and one not in named]
    free = [one for one in free if one not in follow]
    rest = replace(goal, requests=tuple(one for one in goal.requests if one not in follow))
    picks = solve(_loosened(rest, free))
    if picks is None:
        return ()
    changed = {one: line for one in free if (line := _changed(goal, one, picks))}
    left = follow if any(one.name == TORCH for one in changed) else ()
    return (*changed.values(), *(Line(str(one), "", one.source) for one in left))


def _loosened(goal: Goal, free: Sequence[Request]) -> Goal:
    """Return the goal of the fewest changes to what some requests ask for, each for any release."""
    old = goal.context
    stands = {one.name: told for one in free if (told := _wanted(old, one))}
    context = Context(old.snapshot, old.matrix, old.target, replace(old.options, wished=True), stands, old)
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


def _changed(goal: Goal, request: Request, picks: Picks) -> Line | None:
    """Return what would do in the place of a request; None where what was picked meets it."""
    node, bit = goal.context.node(request.name), picks.bits.get(request.name)
    if node is None or bit is None or node.admits(request.spec) >> bit & 1:
        return None
    labelled = node.builds and "+" in (request.exact or "")
    version = node.builds[bit].label if node.builds and labelled else node.version(bit)
    return Line(str(request), str(replace(request, spec=f"=={version}")), request.source)
