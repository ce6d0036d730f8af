"""From a request to picks: search near the newest first, widen until the answer is proven best."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from envdoctor.solve.direct import Unproven, completed, newest_asked, stands_alone
from envdoctor.solve.goal import Goal, Picks, request_mask
from envdoctor.solve.nodes import TORCH, Context
from envdoctor.solve.policy import STALE_CAP, STALE_PLACE, WINDOWS, Policy, total
from envdoctor.solve.problem import Nogood, Problem, Root, asked_by, close
from envdoctor.solve.prune import propagate, prune
from envdoctor.solve.requests import Request
from envdoctor.solve.rows import nogoods
from envdoctor.solve.small import TooMany, is_small, only_best

OUTLINES = 12
"""So often packages that clash are chosen among themselves before all are looked at."""
CROWD = 16
"""Of so many packages that clash one is as good as always stale: no narrow window is tried first."""
NEAR = 1
"""So far from what was asked for a clash is looked for before any window is searched."""
DOUBTS_ROUNDS = 6
"""How often an answer without the doubts of the last may bring new ones."""


def policy_of(goal: Goal) -> Policy:
    """Return the policy of a goal: what was asked for, and the candidates each request admits."""
    asked: dict[str, int] = {}
    for request in goal.requests:
        node = goal.context.node(request.name)
        mask = request_mask(goal.context, request)
        if node is not None:
            asked[request.name] = asked.get(request.name, node.allowed & ~node.reserved) & mask
    for name in goal.kept:
        node = goal.context.node(name)
        if node is not None:
            asked.setdefault(name, node.allowed & ~node.reserved)
    return Policy(goal.least_change, asked)


def solve_nearby(goal: Goal) -> Picks | None:
    """Return the first answer found, nothing stale beyond reason if possible; good, but not proven best."""
    policy = policy_of(goal)
    if _roots_clash(goal, policy, None):
        return None
    picks, _ = _read_off(goal, policy, proven=False)
    if picks is not None or _nearby_clash(goal, policy):
        return picks
    found = (_search(goal, policy, window) for window in (*WINDOWS[1:], None))
    return next((picks for picks in found if picks is not None), None)


def solve(goal: Goal, window: int | None = WINDOWS[0], clashing: Collection[str] = ()) -> Picks | None:
    """Return a best answer, or None when there is none.

    `window` is the staleness searched first, `clashing` what is known not to stand beside one another newest.
    """
    policy = policy_of(goal)
    picks, further = _read_off(goal, policy, window, clashing)
    if picks is not None or _roots_clash(goal, policy, None) or _nearby_clash(goal, policy):
        return picks
    return further() or _widened(partial(_search, goal, policy), None if goal.least_change else window)


def _widened(
    search: Callable[[int | None], Picks | None], window: int | None, windows: Sequence[int] = WINDOWS
) -> Picks | None:
    """Return what a search finds within a window of staleness so wide that none outside can be better."""
    while True:
        found = search(window)
        if window is None or (found is not None and found.cost[STALE_PLACE] <= window):
            return found
        window = _wider(window, found, windows)


def solve_without_doubts(goal: Goal, picks: Picks | None = None) -> tuple[Goal, Picks | None]:
    """Return a best answer that combines nothing doubtful where that can be had, with its goal.

    `picks` are the best answer with doubts, where that is known.
    """
    picks = picks or solve(goal)
    if goal.least_change:
        return goal, picks
    from envdoctor.solve.doubts import doubts

    given_up: set[Nogood] = set()
    for _ in range(DOUBTS_ROUNDS):
        if picks is None:
            break
        found = [one for one in doubts(goal.context, picks.bits) if one not in given_up]
        if not found:
            break
        better, without = _avoiding(goal, picks, found)
        given_up |= set(found) - set(better.avoided)
        if without is not None:
            goal, picks = better, without
    return goal, picks


def _avoiding(goal: Goal, picks: Picks, found: Sequence[Nogood]) -> tuple[Goal, Picks | None]:
    """Return the goal with as many of the doubts as can be avoided, all at once if possible.

    What was asked for gets staler only for a doubt of its own, or one that is read from the wheels.
    """
    from envdoctor.solve.doubts import weighs

    wider = replace(goal, avoided=(*goal.avoided, *found))
    told = {literal.name for one in found for literal in one.literals} if picks.clashing else set()
    better = solve(wider, picks.window, picks.clashing | told)
    if better is not None:
        staler = better.cost[STALE_PLACE] > picks.cost[STALE_PLACE]
        if not staler or all(weighs(one, picks.policy.asked) for one in found):
            return wider, better
    last: Picks | None = None
    for weighty in (True, False) if len(found) > 1 else ():
        now, asked = last or picks, picks.policy.asked
        alike = [one for one in found if weighs(one, asked) is weighty]
        if kept := _avoidable(goal, now, alike, weighty):
            wider = replace(goal, avoided=(*goal.avoided, *kept))
            better = solve(wider, None if weighty else now.window, now.clashing)
            goal, last = (wider, better) if better is not None else (goal, last)
    return goal, last


def _avoidable(goal: Goal, picks: Picks, found: Sequence[Nogood], staler: bool) -> Sequence[Nogood]:
    """Return as many doubts as one answer avoids; none of what was asked for `staler` unless that is said.

    Whether some can be avoided is asked of one grounded problem again and again, halved until what stands in
    the way is left out.
    """
    if not found:
        return ()
    policy = picks.policy
    fresh = {} if staler else _no_staler(goal, picks)
    problem = problem_of(goal, policy, limits=fresh)
    problem.nogoods += [one._replace(guard=number) for number, one in enumerate(found, 1)]
    prune(problem, policy)
    from envdoctor.solve.engine import Engine

    engine = Engine(problem, None, range(1, len(found) + 1))

    def widest(beside: Sequence[int], left: Sequence[int]) -> Sequence[int]:
        if not engine.clashes((*beside, *left)):
            return left
        half = len(left) // 2
        first = widest(beside, left[:half]) if half else ()
        return (*first, *widest((*beside, *first), left[half:])) if half else ()

    return [found[number - 1] for number in widest((), range(1, len(found) + 1))]


def _no_staler(goal: Goal, picks: Picks) -> dict[str, int]:
    """Return the candidates of what was asked for that are no staler than those picked."""
    fresh = {}
    for name, bit in picks.bits.items():
        node = goal.context.node(name)
        stale = picks.policy.cost(node, bit)[STALE_PLACE] if node is not None else STALE_CAP
        if node is not None and name in picks.policy.asked and stale < STALE_CAP:
            fresh[name] = picks.policy.within(node, stale)
    return fresh


def _wider(window: int, found: Picks | None, windows: Sequence[int]) -> int | None:
    if found is not None and found.cost[STALE_PLACE] < STALE_CAP:
        return found.cost[STALE_PLACE]
    return next((wider for wider in windows if wider > window), None) if found is None else None


def _read_off(
    goal: Goal,
    policy: Policy,
    window: int | None = WINDOWS[0],
    clashing: Collection[str] = (),
    proven: bool = True,
) -> tuple[Picks | None, Callable[[], Picks | None]]:
    """Return a best answer that what was asked for leads to by itself; None where only a search tells.

    With that comes a search for it that keeps to what was chosen so far. What was asked for is at its newest,
    but for packages that clash: those are chosen among themselves first, with what does not stand beside them
    newest. No answer has less stale ones, so that picks of which there is one choice alone, and with which
    the rest can be had, are those of the best answer.
    """
    newest = None if goal.least_change else newest_asked(goal, policy)
    if newest is None:
        return None, _nothing
    fixed, alone, names = newest, stands_alone(goal, policy), set(clashing)
    window = None if window is None else max(window, WINDOWS[1])
    for _ in range(OUTLINES):
        if fixed is not newest or not names:
            try:
                bits = completed(goal, policy, fixed, alone, proven)
                found = _priced(goal.context, policy, bits, window)
                return replace(found, clashing=frozenset(names)), _nothing
            except Unproven as reached:
                if not reached.names or (fixed is not newest and reached.names <= names):
                    break
                names |= reached.names
        window = None if len(names) > CROWD else window
        outline = _widened(partial(_outline, goal, policy, newest, names), window, WINDOWS[:2])
        if outline is None and not names >= newest.keys():
            names |= newest.keys()
            outline = _widened(partial(_outline, goal, policy, newest, names), window, WINDOWS[:2])
        if outline is None:
            return None, _nothing
        fixed, window, alone = {**newest, **outline.bits}, outline.window, False
    return None, partial(_around, goal, policy, fixed, window, alone)


def _nothing() -> None:
    """Return that no search is left which would find an answer."""


def _around(
    goal: Goal, policy: Policy, fixed: Mapping[str, int], window: int | None, alone: bool
) -> Picks | None:
    """Return a best answer around the choice of what was asked for; None where another may be better."""
    found = _best(problem_of(goal, policy, fixed=fixed), policy, window)
    return found if found is None or alone or _torch_is_settled(goal, found, fixed) else None


def _torch_is_settled(goal: Goal, found: Picks, fixed: Mapping[str, int]) -> bool:
    """True when no other choice of what was asked for could bring a newer torch."""
    node, bit = goal.context.node(TORCH), found.bits.get(TORCH)
    return node is None or bit is None or TORCH in fixed or not any(found.policy.cost(node, bit))


def _outline(
    goal: Goal, policy: Policy, newest: Mapping[str, int], names: set[str], window: int | None
) -> Picks | None:
    """Return the one best choice of some packages by themselves; None for several.

    What else of what was asked for does not stand, newest, beside each of their candidates is added to them.
    """
    roots, limits = _roots(goal, policy, window)
    todo = [(name, "") for name in sorted(names & limits.keys())]
    todo += [(root.name, extra) for root in roots for extra in root.extras if root.name in names]
    seen = set(todo)
    for name, extra in todo:
        node = goal.context.node(name)
        asked = [one for one in asked_by(node, extra, limits[name]) if one.name in newest] if node else []
        names |= {one.name for one in asked if not one.mask >> newest[one.name] & 1}
        reached = {(one.name, extra) for one in asked if one.name in names for extra in ("", *one.extras)}
        todo += sorted(reached - seen)
        seen |= reached
    return _best(problem_of(goal, policy, window, names), policy, window, alone=True)


def _priced(context: Context, policy: Policy, bits: dict[str, int], window: int | None) -> Picks:
    nodes = {name: context.node(name) for name in bits}
    return Picks(
        bits, total([policy.cost(node, bits[name]) for name, node in nodes.items() if node]), policy, window
    )


def _search(goal: Goal, policy: Policy, window: int | None) -> Picks | None:
    """Solve with asked-for packages at most `window` days stale; None: without that limit."""
    if _roots_clash(goal, policy, window):
        return None
    return _best(problem_of(goal, policy, window), policy, window)


def _best(problem: Problem, policy: Policy, window: int | None, alone: bool = False) -> Picks | None:
    """Return a best answer; with `alone` only where no other is as good."""
    prune(problem, policy)
    if not all(problem.masks.get(root.name) for root in problem.roots):
        return None
    try:
        if not (alone and is_small(problem)):
            raise TooMany
        bits = only_best(problem, policy)
    except TooMany:
        from envdoctor.solve.engine import Engine

        bits = Engine(problem, policy).best(alone)
    return None if bits is None else _priced(problem.context, policy, bits, window)


def _roots_clash(goal: Goal, policy: Policy, window: int | None) -> bool:
    """True when nothing meets what was asked for and what it requires, so that no more need be read."""
    roots, limits = _roots(goal, policy, window)
    problem = close(goal.context, roots, limits, 0)
    for name in {name for part in problem.every_part() for name in part.needs} - problem.masks.keys():
        problem.masks[name] = problem.node(name).allowed
    propagate(problem)
    return not all(problem.masks.get(root.name) for root in roots)


def _nearby_clash(goal: Goal, policy: Policy) -> bool:
    """True when what was asked for and what stands next to it already allow no answer: no window would."""
    roots, limits = _roots(goal, policy, None)
    problem = close(goal.context, roots, limits, NEAR)
    problem.nogoods = nogoods(goal.context, problem.masks.keys())
    prune(problem, None)
    from envdoctor.solve.engine import Engine

    return Engine(problem, None).clashes(())


def problem_of(
    goal: Goal,
    policy: Policy,
    window: int | None = None,
    names: Collection[str] | None = None,
    fixed: Mapping[str, int] | None = None,
    limits: Mapping[str, int] | None = None,
) -> Problem:
    """Return the closure of a goal with the matrix's rows, ready to be pruned.

    Only `names` are there where they are given; `fixed` says what some must be, `limits` what they may be.
    """
    roots, within = _roots(goal, policy, window)
    within |= {**(limits or {}), **{name: 1 << bit for name, bit in (fixed or {}).items()}}
    if names is None:
        problem = close(goal.context, roots, within)
    else:
        problem = close(goal.context, [root for root in roots if root.name in names], within, 0, names)
    problem.nogoods = [*nogoods(goal.context, problem.masks.keys()), *_within(problem, goal.avoided)]
    return problem


def _roots(goal: Goal, policy: Policy, window: int | None) -> tuple[list[Root], dict[str, int]]:
    """Return what is asked for, and the candidates of it within a window of staleness."""
    extras: dict[str, set[str]] = {}
    for request in goal.requests:
        extras.setdefault(request.name, set()).update(request.extras)
    roots, limits = [], {}
    for name, mask in policy.asked.items():
        node = goal.context.node(name)
        if node is not None:
            admitted = mask if window is None else policy.within(node, window)
            limits[name] = admitted | (node.installed & mask)
            roots.append(Root(name, mask, tuple(sorted(extras.get(name, ())))))
    return roots, limits


def _within(problem: Problem, avoided: Iterable[Nogood]) -> list[Nogood]:
    """Return the combinations all of whose packages the problem holds."""
    return [one for one in avoided if all(literal.name in problem.masks for literal in one.literals)]


def distinct(requests: Iterable[Request]) -> list[str]:
    """Return the names asked for, each once, in order."""
    return list(dict.fromkeys(request.name for request in requests))
