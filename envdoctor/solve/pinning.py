"""The public door of the room: a goal in, pins or an explained conflict out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from envdoctor.solve import compiled
from envdoctor.solve.answer import Cause, Line, PinSet, Relaxation, asked_words, explained, solved
from envdoctor.solve.goal import Goal, Picks, request_mask
from envdoctor.solve.nodes import TORCH, Node, Options
from envdoctor.solve.one_folder import alike_unread
from envdoctor.solve.problem import bits_of
from envdoctor.solve.requests import PYTHON, Carried, Request
from envdoctor.solve.solver import distinct, solve, solve_without_doubts
from envdoctor.solve.versions import runs_on_python
from envdoctor.values import Shown, dataclass

if TYPE_CHECKING:
    from envdoctor.solve.explain import Reason


WIDENINGS = 3
"""How often an answer may lead to packages that must be looked up."""


@dataclass(frozen=True, slots=True)
class WhyNot(Shown):
    """What forbids a request; no causes: nothing does. `forbidden` None: it hangs on what is not known."""

    causes: tuple[Cause, ...]
    forbidden: bool | None
    notes: tuple[str, ...] = ()
    """What is to be minded where nothing forbids it."""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the contract."""
        return {
            "schema": "envdoctor.why-not/1",
            "forbidden": self.forbidden,
            "causes": [cause.as_json() for cause in self.causes],
            "notes": list(self.notes),
        }


def pin(goal: Goal) -> PinSet:
    """Return the best pins for a goal, or the conflict with its causes; raises Unavailable."""
    if barred := _barred_by_projects(goal):
        return _on_another_python(goal, barred)
    goal, picks = solve_covered(goal)
    if picks is not None:
        return solved(goal, picks)
    from envdoctor.solve.causes import causes_of
    from envdoctor.solve.explain import conflicts
    from envdoctor.solve.nearest import changed_lines, hang_on_cards
    from envdoctor.solve.relax import relaxations, split

    found = conflicts(goal)
    reasons = next(found, [])
    if (options := _without_checks_in_use(goal, reasons)) != goal.context.options:
        return pin(goal.on(goal.context.target, options))
    if goal.coverage is not None and goal.coverage.read_on(_unread(goal, reasons)):
        return pin(goal.widened())
    if (rest := without_unread(goal, reasons)) is not None:
        return pin(rest)
    sets, ways = split(goal, reasons), relaxations(goal, reasons)
    return PinSet(
        "split" if sets else "unknown" if hangs_on_the_unread(reasons) else "conflict",
        goal.context.target,
        asked_words(goal),
        causes=causes_of(goal, reasons),
        also=tuple(causes_of(goal, one) for one in found),
        relaxations=ways,
        lines=changed_lines(goal, reasons) if not sets and (not ways or hang_on_cards(reasons)) else (),
        sets=sets,
        carried=goal.carried,
        options=goal.options,
    )


def _of_python(goal: Goal) -> list[Request]:
    """Return what the projects that are asked for say of Python."""
    return [one for one in goal.context.options.constraints if one.name == PYTHON]


def _barred_by_projects(goal: Goal) -> tuple[Cause, ...]:
    """Return which projects do not run on the target's Python: no installer installs them there."""
    target = goal.context.target
    unmet = (one for one in _of_python(goal) if not runs_on_python(one.spec, target.python))
    return tuple(
        Cause("target", f"the project needs Python {o.spec}; the target has {target.python_minor}", o.source)
        for o in unmet
    )


def _on_another_python(goal: Goal, barred: tuple[Cause, ...]) -> PinSet:
    """Return the conflict of projects with the target's Python, and what the nearest they admit gives."""
    from envdoctor.solve.relax import admitted_pythons

    bounds = [one.spec for one in _of_python(goal)]
    nearest = next(admitted_pythons(goal.context.target, bounds), None)
    answer = PinSet("conflict", goal.context.target, asked_words(goal), causes=barred, carried=goal.carried)
    if nearest is None:
        return answer
    moved = nearest.made(goal)
    there = pin(moved)
    if there.status == "solved":
        given = {one.name: one.version for one in there.pins if one.name in distinct(goal.requests)}
        return replace(answer, relaxations=(Relaxation(nearest.drop, given),))
    ways = (Relaxation(f"{nearest.drop} and {one.drop}", one.gives) for one in there.relaxations)
    old, new = (f"Python {one.context.target.python_minor}" for one in (goal, moved))
    lines = (Line(old, new, barred[0].source), *there.lines) if there.lines else ()
    return replace(answer, also=(there.causes, *there.also), relaxations=tuple(ways), lines=lines)


def _without_checks_in_use(goal: Goal, reasons: Sequence[Reason]) -> Options:
    """Return the options without what among the reasons fails only in use: a check in code, or a row.

    All that it speaks of must be asked for with a specifier: then it stands against a person's own lines,
    which every installer takes and which import.
    """
    lines = (*goal.requests, *goal.context.options.constraints)
    narrowed = {one.name for one in lines if one.spec}
    pairs = {(r.name, r.target) for r in reasons if r.kind == "edge" and {r.name, r.target} <= narrowed}
    told = [r.nogood for r in reasons if r.nogood and {one.name for one in r.nogood.literals} <= narrowed]
    in_use = {row.id for row in goal.context.matrix.standing if row.in_use}
    options = goal.context.options
    return replace(
        options,
        waived=options.waived | {pair for pair in pairs if _checks_in_use(goal, *pair)},
        waived_rows=options.waived_rows | ({nogood.row for nogood in told} & in_use),
    )


def _checks_in_use(goal: Goal, owner: str, name: str) -> bool:
    releases = goal.context.matrix.generated(owner).get("releases", {}).values()
    return any(release.get("kind", {}).get(name) in ("use", "disabled") for release in releases)


def solve_covered(goal: Goal) -> tuple[Goal, Picks | None]:
    """Solve; look up what the answer needs, or passes over, and the facts do not cover or have not read.

    What can be looked up is so first for answers as they come: to weigh doubts takes many times as long.
    """
    picks = None
    if goal.coverage is not None and not goal.coverage.offline:
        goal, picks = _widening(goal, lambda one: (one, solve(one)))
        if picks is None:
            return goal, None
    return _widening(goal, lambda one: solve_without_doubts(one, picks if one is goal else None))


def _widening(goal: Goal, way: Callable[[Goal], tuple[Goal, Picks | None]]) -> tuple[Goal, Picks | None]:
    """Solve in a way, again while an answer leads to what must be looked up."""
    goal, picks = way(goal)
    for _ in range(WIDENINGS):
        if picks is None or goal.coverage is None:
            break
        found = explained(goal, picks)
        news = [found.uncovered and goal.coverage.widen(found.uncovered)]
        spared = compiled.spared(found.nodes, picks.bits)
        alike = alike_unread(goal.context, found.nodes, picks.bits)
        unread = {**spared, **alike, **found.passed_over, **found.unread}
        news.append(unread and goal.coverage.read_on(unread))
        if not any(news):
            break
        goal, picks = way(goal.widened())
    return goal, picks


def why_not(goal: Goal) -> WhyNot:
    """Return the minimal causes against a goal; none when an answer exists. Raises Unavailable."""
    if barred := _barred_by_projects(goal):
        return WhyNot(barred, True)
    picks = solve(goal)
    if picks is not None:
        unread = tuple(f"{one.shown}: {one.why}" for one in goal.carried if not one.judged)
        return WhyNot((), None if unread else False, (*unread, *_minded(goal, picks)))
    from envdoctor.solve.causes import causes_of
    from envdoctor.solve.explain import clash

    reasons = clash(goal) or []
    return WhyNot(causes_of(goal, reasons), None if hangs_on_the_unread(reasons) else True)


def _minded(goal: Goal, picks: Picks) -> Iterator[str]:
    """Say where only a build of PyTorch's own index serves, with what keeps the default index's from it."""
    node, bit = goal.context.node(TORCH), picks.bits.get(TORCH)
    if node is None or bit is None or not node.builds or not node.variant(bit):
        return
    chosen = (node.version(bit), None)
    default = next(b for b, one in enumerate(node.builds) if (one.version, one.variant) == chosen)
    bans = [ban for ban in node.bans if ban.mask >> default & 1 and ban.subject]
    barred = sorted({f"{'driver ' * (ban.what == 'driver')}{ban.subject}" for ban in bans})
    why = f", which {' and '.join(barred)} cannot run" if barred else ""
    yield f"only as {node.builds[bit].label}, not as the build of the default index{why}"


def _unread(goal: Goal, reasons: Sequence[Reason]) -> dict[str, set[str]]:
    """Return the packages whose unread requirements stand in the way, with what is asked of each."""
    names = [reason.name for reason in reasons if reason.ban is not None and reason.ban.what == "unread"]
    return {
        name: {r.spec for r in goal.requests if r.name == name} | _asked_of(goal, reasons, name)
        for name in names
    }


def _asked_of(goal: Goal, reasons: Sequence[Reason], name: str) -> set[str]:
    """Return the specifiers that the packages among the reasons, as they are asked for, set for another."""
    owners = [goal.context.node(one.name) for one in reasons if one.kind == "edge" and one.target == name]
    target = goal.context.snapshot.package(name)
    return {
        target.spec_text(wanted.spec)
        for owner in owners
        for row in (owner.package.row_masks(_left(goal, owner)) if owner else ())
        for wanted in (owner.package.requirements(row) if owner and row >= 0 else ())
        if wanted.name == name and target is not None
    }


def _left(goal: Goal, node: Node) -> int:
    """Return the releases of a package that the target and the requests leave; all where they leave none."""
    left = node.allowed
    for request in goal.requests:
        left &= request_mask(goal.context, request) if request.name == node.name else left
    places = {node.places[bit] for bit in bits_of(left)}
    return sum(1 << place for place in places) or node.package.all


def without_unread(goal: Goal, reasons: Sequence[Reason]) -> Goal | None:
    """Leave out the requests that unread requirements alone stand against; None when no other is left."""
    unread = {reason.name for reason in reasons if reason.ban is not None and reason.ban.what == "unread"}
    lost = [request for request in goal.requests if request.name in unread]
    left = tuple(request for request in goal.requests if request not in lost)
    if not lost or not left:
        return None
    why = "what it requires is not known (--allow-source takes it as if it required nothing)"
    carried = tuple(Carried(r.line or str(r), r.source, why) for r in lost)
    return replace(goal, requests=left, carried=(*goal.carried, *carried))


def hangs_on_the_unread(reasons: Sequence[Reason]) -> bool:
    """True when one of the reasons, all of which are needed, is that requirements could not be read."""
    return any(reason.ban is not None and reason.ban.what == "unread" for reason in reasons)
