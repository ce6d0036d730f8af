"""What giving up one cause would give, and two environments where one is impossible."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from envdoctor.matrix import tables
from envdoctor.solve.answer import PinSet, Relaxation, solved
from envdoctor.solve.explain import Reason, clash
from envdoctor.solve.goal import Goal
from envdoctor.solve.nodes import TORCH, Ban, Options
from envdoctor.solve.policy import Cost
from envdoctor.solve.ready_wheels import FLASH_ATTN
from envdoctor.solve.requests import Request
from envdoctor.solve.rows import conditions_of
from envdoctor.solve.solver import distinct, solve, solve_nearby
from envdoctor.solve.versions import runs_on_python, satisfies
from envdoctor.target.platforms import parse_platform
from envdoctor.target.resolve import Target
from envdoctor.values import dataclass

NEWER_PLATFORM = "manylinux_2_39"
ELSEWHERE = {"windows": " (as in WSL)", "linux": ""}
"""Whose machines a Linux with a newer glibc, or with glibc at all, runs on, and how."""
PYTHONS = ((3, 10), (3, 11), (3, 12), (3, 13), (3, 14))


MOST_GIVEN_UP = 4
"""So many things are given up together at most, where no single one is enough."""
MOST_LOOKED_AT = 8
"""So many choices of things given up that are not enough are looked at further."""


@dataclass(frozen=True)
class Change:
    """One thing to give up, and a goal without it."""

    drop: str
    made: Callable[[Goal], Goal]
    deep: bool = True
    """False: where it does not help by itself, something else is given up rather than more beside it."""
    kind: str = ""
    """Of the changes of one kind, nearest first, the first that helps is told: the others change more."""


Changes = tuple[Change, ...]


def relaxations(goal: Goal, reasons: Sequence[Reason]) -> tuple[Relaxation, ...]:
    """Return, cheapest first, what to give up and the versions asked for that it gives.

    Where no single thing is enough, two are given up, then three: first what was named last, and beside it
    what then stands in the way.
    """
    todo: deque[Changes] = deque([()])
    for _ in range(MOST_LOOKED_AT):
        if not todo:
            break
        given_up = todo.popleft()
        changed = _made(goal, given_up)
        told = _proposals(changed, clash(changed) or () if given_up else reasons)
        ways = [(*given_up, one) for one in {one.drop: one for one in told}.values()]
        if found := _working(goal, ways):
            return found
        if len(given_up) + 1 < MOST_GIVEN_UP:
            todo.extend([way for way in reversed(ways) if way[-1].deep] or ways[-1:])
    return ()


def _made(goal: Goal, changes: Changes) -> Goal:
    for change in changes:
        goal = change.made(goal)
    return goal


def _working(goal: Goal, ways: Sequence[Changes]) -> tuple[Relaxation, ...]:
    found: dict[str, tuple[Cost, str, Relaxation]] = {}
    helped = set[str]()
    for changes in ways:
        if changes[-1].kind in helped:
            continue
        relaxed = _made(goal, changes)
        picks = solve_nearby(relaxed)
        if picks is None:
            continue
        helped |= {changes[-1].kind} - {""}
        given = {
            name: node.version(picks.bits[name])
            for name in distinct(goal.requests)
            if name in picks.bits and (node := relaxed.context.node(name)) is not None
        }
        drop = " and ".join(one.drop for one in _needed(goal, changes))
        found.setdefault(drop, (picks.cost, drop, Relaxation(drop, given)))
    return tuple(entry[2] for entry in sorted(found.values(), key=lambda entry: entry[:2]))


def _needed(goal: Goal, changes: Changes) -> Changes:
    """Leave out the changes that those after them make needless."""
    for place in range(len(changes) - 1):
        rest = changes[:place] + changes[place + 1 :]
        if solve_nearby(_made(goal, rest)) is not None:
            return _needed(goal, rest)
    return changes


def _proposals(goal: Goal, reasons: Sequence[Reason]) -> Iterator[Change]:
    for reason in reasons:
        if reason.request is not None:
            yield from _looser(goal, reason.request)
        elif reason.ban is not None:
            yield from _target_proposals(goal, reason.ban)
        elif reason.nogood is not None:
            yield from _of_row(goal, reason.nogood.row)
        elif (reason.name, reason.target) == (FLASH_ATTN, TORCH):
            yield from _building(goal.context.options)


def _looser(goal: Goal, request: Request) -> Iterator[Change]:
    """Propose a request without its specifier; one that has none is left out."""
    if request.spec:
        loose = replace(request, spec="")
        yield Change(f"{request.spec} of {request.name}", partial(_with, old=request, new=(loose,)))
    elif len(distinct(goal.requests)) > 1:
        yield Change(request.name, partial(_without, name=request.name))


def _with(goal: Goal, old: Request, new: tuple[Request, ...]) -> Goal:
    others = tuple(request for request in goal.requests if request != old)
    return replace(goal, requests=(*others, *new))


def _without(goal: Goal, name: str) -> Goal:
    return replace(goal, requests=tuple(request for request in goal.requests if request.name != name))


def _of_row(goal: Goal, row: str) -> Iterator[Change]:
    """Propose to give up the cards, or the system, that a matrix row speaks of."""
    told = conditions_of(goal.context, row)
    if bound := told.get("gpu.cc"):
        hit = [card for card in goal.context.target.judged_cards if satisfies(str(card.capability), bound)]
        yield Change(" and ".join(map(str, hit)), partial(_left_out, cards=tuple(map(str, hit))))
    if "os" in told:
        yield from _platforms(goal.context.target)


def _platforms(target: Target) -> Iterator[Change]:
    """Propose the newer Linux that the same machine may run."""
    old = target.platform
    if old.os not in ELSEWHERE:
        return
    arch = {"AMD64": "x86_64", "ARM64": "aarch64"}.get(old.arch, old.arch)
    newer = parse_platform(f"{arch}-{NEWER_PLATFORM}")
    if old.libc != newer.libc or newer.libc_version > old.libc_version:
        text = f"{old.name} for {newer.name}{ELSEWHERE[old.os]}"
        yield Change(text, partial(_aimed, platform=newer), deep=False)


def _left_out(goal: Goal, cards: tuple[str, ...]) -> Goal:
    left = tuple(card for card in goal.context.target.judged_cards if str(card) not in cards)
    return _aimed(goal, cards=left)


def _aimed(goal: Goal, **changes: object) -> Goal:
    """Return the goal for a target that differs."""
    context = goal.context
    return goal.on(replace(context.target, **changes), context.options)  # type: ignore[arg-type]


def _allowed(goal: Goal, **changes: object) -> Goal:
    """Return the goal with other options."""
    context = goal.context
    return goal.on(context.target, replace(context.options, **changes))  # type: ignore[arg-type]


def _building(options: Options) -> Iterator[Change]:
    if not options.allow_source:
        yield Change("the ban on source builds (--allow-source)", partial(_allowed, allow_source=True))


def _target_proposals(goal: Goal, ban: Ban) -> Iterator[Change]:
    target, options = goal.context.target, goal.context.options
    if ban.what == "constraint":
        left = tuple(one for one in options.constraints if str(one) != ban.subject)
        yield Change(f"the constraint {ban.subject}", partial(_allowed, constraints=left))
    if ban.what == "held":
        held = frozenset(name for name in options.held if goal.context.installed[name] != ban.subject)
        yield Change(f"the installed {ban.subject}", partial(_allowed, held=held))
    if ban.what in ("source", "unread"):
        yield from _building(options)
    if ban.what in ("source", "platform"):
        yield from _platforms(target)
    if ban.what in ("card", "kernels"):
        yield Change(ban.subject, partial(_left_out, cards=(ban.subject,)))
    if ban.what == "driver":
        yield Change(f"driver {ban.subject} for a newer one", partial(_aimed, driver=None))
    if ban.what in ("python", "platform", "source"):
        yield from (change for _, change in _pythons(target))


def _pythons(target: Target) -> Iterator[tuple[tuple[int, int], Change]]:
    """Yield other Pythons, the nearest first, each with the change to it."""
    for python in sorted(PYTHONS, key=lambda p: (abs(p[1] - target.python[1]), -p[1])):
        if python != target.python[:2]:
            text = f"Python {target.python_minor} for {python[0]}.{python[1]}"
            yield python, Change(text, partial(_aimed, python=python), deep=False, kind="python")


def admitted_pythons(target: Target, bounds: Sequence[str]) -> Iterator[Change]:
    """Yield the changes to other Pythons that projects' own bounds admit, the nearest first."""
    for python, change in _pythons(target):
        if all(runs_on_python(one, python) for one in bounds):
            yield change


def split(goal: Goal, reasons: Sequence[Reason]) -> tuple[PinSet, ...]:
    """Return two environments when stacks that serve different ends clash; empty when that does not help.

    What no stack needs for itself (torch, transformers…) is pinned in both.
    """
    roles = {row.name: row.role for row in goal.context.matrix.rows(tables.StackRoleRow)}
    clashing = {reason.request.name for reason in reasons if reason.request is not None}
    asked = distinct(goal.requests)
    serving = [name for name in asked if roles.get(name) == "serving"]
    training = [name for name in asked if roles.get(name) == "training"]
    if not clashing & set(serving) or not clashing & set(training):
        return ()
    answers = []
    for left_out in (training, serving):
        half = replace(goal, requests=tuple(r for r in goal.requests if r.name not in left_out))
        picks = solve(half)
        if picks is None:
            return ()
        answers.append(solved(half, picks))
    return tuple(answers)
