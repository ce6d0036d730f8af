"""A remedy made whole: the pins of a finding, and what else must change so that nothing else breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from envdoctor.commands import commands
from envdoctor.errors import EnvdoctorError
from envdoctor.facts import Facts
from envdoctor.facts.names import NOT_PACKAGES, normalise
from envdoctor.matrix import Matrix
from envdoctor.solve.answer import goal_keeps
from envdoctor.solve.goal import Goal, Picks
from envdoctor.solve.mending import RINGS, Demands, day_of_the_rest, mending_goal, search
from envdoctor.solve.policy import years_back
from envdoctor.solve.reasons import Explained, Pin
from envdoctor.solve.variants import INDEX_URL
from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Remedy:
    """A consistent set of changes: shell commands, and (old, new) versions of installed packages by name.

    `versions` are those of every package that changes or comes in; `pins` what is to be named to an
    installer, the rest following from it; `doubts` what hangs on something that is not known.
    """

    commands: tuple[str, ...]
    changes: Mapping[str, tuple[str, str]]
    versions: Mapping[str, str]
    pins: tuple[Pin, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoRemedy:
    """Why the pins cannot be completed to a set of changes that breaks nothing else."""

    reason: str


def complete_remedy(facts: Facts, matrix: Matrix, pins: Mapping[str, str]) -> Remedy | NoRemedy:
    """Return the fewest changes to what `facts` say is installed under which `pins` hold.

    `pins` maps distributions to PEP 440 specifiers. What is broken already and is no matter of theirs
    may stay as it is.
    """
    wanted = {normalise(name): spec for name, spec in pins.items() if name not in NOT_PACKAGES}
    if not wanted:
        return NoRemedy("the remedy changes no package")
    return mend(facts, matrix, Demands(wanted))


def mend(facts: Facts, matrix: Matrix, demands: Demands) -> Remedy | NoRemedy:
    """Return the fewest changes to what `facts` say is installed under which `demands` hold."""
    day = day_of_the_rest(facts, matrix, demands)
    found = _mend(facts, matrix, demands, day) if day else None
    return found if isinstance(found, Remedy) else _mend(facts, matrix, demands, None)


def _mend(facts: Facts, matrix: Matrix, demands: Demands, cutoff: int | None) -> Remedy | NoRemedy:
    try:
        goal = mending_goal(facts, matrix, demands, cutoff)
        found: Picks | None = None
        for rings in range(RINGS):
            picks = search(goal, demands, rings, facts.environment.complete)
            found = min(filter(None, (found, picks)), key=lambda one: one.cost, default=None)
            if found is not None and not _goes_far_back(goal, found):
                break
        if found is not None:
            return _as_told(facts, _remedy(goal, found, demands))
    except EnvdoctorError as error:
        return NoRemedy(str(error))
    return NoRemedy("no set of versions satisfies the pins and leaves the rest in order")


def _as_told(facts: Facts, remedy: Remedy) -> Remedy:
    """Return a remedy that changes what is told by its beginning alone from that, not from one release."""
    told = {name: one.begun for name, one in facts.environment.distributions.items() if one.begun}
    changes = {name: (told.get(name, old), new) for name, (old, new) in remedy.changes.items()}
    return replace(remedy, changes=changes)


def _goes_far_back(goal: Goal, picks: Picks) -> bool:
    """True where something installed would go back by years: a neighbour that moves may spare it that."""
    nodes = ((goal.context.node(name), bit) for name, bit in picks.bits.items())
    return any(node and node.installed and years_back(node, bit) for node, bit in nodes)


def _remedy(goal: Goal, picks: Picks, demands: Demands) -> Remedy:
    explained = Explained(goal, picks)
    pins = {pin.name: pin for pin in explained.pins()}
    installed = goal.context.installed
    changed = {
        name: (installed[name], pin.label)
        for name, pin in pins.items()
        if name in installed and not goal_keeps(goal, pin, picks)
    }
    asked = {request.name for request in goal.requests}
    moving = {name for name in pins if name in changed or name not in installed}
    named = [
        pins[name]
        for name in sorted(asked | set(changed))
        if pins[name].index or not _follows(explained, name, asked, moving)
    ]
    versions = {name: pin.label for name, pin in pins.items() if name in changed or name not in installed}
    doubts = (
        *explained.gaps(),
        *(
            f"what {pins[n].name} {pins[n].version} requires is not known"
            for n in _unread(explained, versions)
        ),
    )
    missing = {name for _, name in demands.met if name in pins and name not in installed}
    told = [pin for pin in (*named, *(pins[n] for n in sorted(missing))) if pin.name in versions]
    return Remedy(_commands(named), changed, versions, tuple(dict.fromkeys(told)), doubts)


def _unread(explained: Explained, versions: Mapping[str, str]) -> Iterator[str]:
    """Yield what changes to a release of which the requirements were not read."""
    for name in versions:
        if explained.nodes[name].row(explained.picks.bits[name]) < 0:
            yield name


def _follows(explained: Explained, name: str, asked: set[str], moving: Set[str]) -> bool:
    """True when the exact requirement of a package that moves settles the version, so that pip finds it.

    It does not settle which build comes: one of an index of its own is named in any case.
    """
    return name not in asked and any(
        edge.wanted.name == name
        and not edge.limit
        and edge.owner in moving
        and explained.nodes[name].package.spec_text(edge.wanted.spec).startswith("==")
        for edge in explained.edges
    )


def _commands(pins: Sequence[Pin]) -> tuple[str, ...]:
    indexes = sorted({pin.index for pin in pins if pin.index})
    options = " --extra-index-url {}" * len(indexes)
    words = [*(f"{pin.name}=={pin.label}" for pin in pins), *(f"{INDEX_URL}{index}" for index in indexes)]
    return commands("pip install" + " {}" * len(pins) + options, *words)


__all__ = ["NoRemedy", "Remedy", "complete_remedy", "mend"]
