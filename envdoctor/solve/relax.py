"""What giving up one cause would give, and two environments where one is impossible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from envdoctor.matrix import tables
from envdoctor.solve.answer import PinSet, Relaxation, solved
from envdoctor.solve.explain import Reason, clash
from envdoctor.solve.goal import Goal
from envdoctor.solve.policy import Cost
from envdoctor.solve.rows import conditions_of
from envdoctor.solve.solver import distinct, solve, solve_nearby
from envdoctor.solve.versions import satisfies
from envdoctor.target.platforms import parse_platform

NEWER_PLATFORM = "manylinux_2_39"
PYTHONS = ((3, 10), (3, 11), (3, 12), (3, 13), (3, 14))


MOST_GIVEN_UP = 4
"""So many things are given up together at most, where no single one is enough."""


def relaxations(
    goal: Goal, reasons: Sequence[Reason], given_up: tuple[str, ...] = ()
) -> tuple[Relaxation, ...]:
    """Return, cheapest first, what to give up and the versions asked for that it gives.

    Where no single one is enough, what was named last goes first, and what then stands in the way after it.
    """
    proposals = dict(_proposals(goal, reasons))
    found = _working(goal, proposals, given_up)
    if found or not proposals or len(given_up) + 1 == MOST_GIVEN_UP:
        return found
    drop, relaxed = list(proposals.items())[-1]
    return relaxations(relaxed, clash(relaxed) or (), (*given_up, drop))


def _working(goal: Goal, proposals: Mapping[str, Goal], given_up: tuple[str, ...]) -> tuple[Relaxation, ...]:
    found: list[tuple[Cost, str, Relaxation]] = []
    for drop, relaxed in proposals.items():
        picks = solve_nearby(relaxed)
        if picks is None:
            continue
        given = {
            name: node.version(picks.bits[name])
            for name in distinct(goal.requests)
            if name in picks.bits and (node := relaxed.context.node(name)) is not None
        }
        found.append((picks.cost, drop, Relaxation(" and ".join((*given_up, drop)), given)))
    return tuple(entry[2] for entry in sorted(found, key=lambda entry: entry[:2]))


def _proposals(goal: Goal, reasons: Sequence[Reason]) -> Iterator[tuple[str, Goal]]:
    for reason in reasons:
        if reason.request is not None:
            others = tuple(r for r in goal.requests if r is not reason.request)
            if reason.request.spec:
                loose = replace(reason.request, spec="")
                yield f"{reason.request.spec} of {reason.request.name}", _with(goal, (*others, loose))
            elif others:
                yield reason.request.name, _with(goal, others)
        elif reason.ban is not None:
            yield from _target_proposals(goal, reason)
        elif reason.nogood is not None:
            yield from _other_cards(goal, reason.nogood.row)


def _other_cards(goal: Goal, row: str) -> Iterator[tuple[str, Goal]]:
    """Propose to give up the cards that a matrix row speaks of."""
    target = goal.context.target
    bound = conditions_of(goal.context, row).get("gpu.cc")
    if bound:
        hit = [card for card in target.judged_cards if satisfies(str(card.capability), bound)]
        left = tuple(card for card in target.judged_cards if card not in hit)
        yield " and ".join(map(str, hit)), goal.on(replace(target, cards=left), goal.context.options)


def _target_proposals(goal: Goal, reason: Reason) -> Iterator[tuple[str, Goal]]:
    target, options = goal.context.target, goal.context.options
    what, subject = (reason.ban.what, reason.ban.subject) if reason.ban else ("", "")
    if what == "constraint":
        left = tuple(one for one in options.constraints if str(one) != subject)
        yield f"the constraint {subject}", goal.on(target, replace(options, constraints=left))
    if what in ("source", "unread") and not options.allow_source:
        yield (
            "the ban on source builds (--allow-source)",
            goal.on(target, replace(options, allow_source=True)),
        )
    if what in ("source", "platform") and target.platform.libc == "glibc":
        newer = parse_platform(f"{target.platform.arch}-{NEWER_PLATFORM}")
        if newer.libc_version > target.platform.libc_version:
            yield (
                f"{target.platform.name} for {newer.name}",
                goal.on(replace(target, platform=newer), options),
            )
    if what in ("card", "kernels"):
        cards = tuple(card for card in target.judged_cards if str(card) != subject)
        yield subject, goal.on(replace(target, cards=cards), options)
    if what == "driver":
        yield f"driver {subject} for a newer one", goal.on(replace(target, driver=None), options)
    if what in ("python", "platform", "source"):
        for python in sorted(PYTHONS, key=lambda p: (abs(p[1] - target.python[1]), -p[1])):
            if python != target.python[:2]:
                text = f"Python {target.python_minor} for {python[0]}.{python[1]}"
                yield text, goal.on(replace(target, python=python), options)


def _with(goal: Goal, requests: tuple) -> Goal:  # type: ignore[type-arg]
    return replace(goal, requests=requests)


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
