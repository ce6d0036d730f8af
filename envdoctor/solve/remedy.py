"""A remedy made whole: the pins of a finding, and what else must change so that nothing else breaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from envdoctor.commands import commands
from envdoctor.errors import EnvdoctorError
from envdoctor.facts import Facts
from envdoctor.facts.names import normalise
from envdoctor.matrix import Matrix
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.solve.asking import options_of
from envdoctor.solve.goal import Goal, Picks, request_mask
from envdoctor.solve.nodes import Context, Node
from envdoctor.solve.policy import Policy, total
from envdoctor.solve.problem import Literal, Part, Problem, Root, close
from envdoctor.solve.prune import prune
from envdoctor.solve.reasons import Explained, Pin
from envdoctor.solve.requests import Asked, Request
from envdoctor.solve.rows import nogoods
from envdoctor.solve.variants import INDEX_URL
from envdoctor.target.resolve import target_of
from envdoctor.values import dataclass

NOT_PACKAGES = frozenset({"python", "nvidia-driver", "cuda-toolkit-system", "glibc"})
RINGS = 3
"""How far from the pins installed packages may change: themselves, their neighbours, and theirs."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A consistent set of changes: shell commands, and (old, new) versions of installed packages by name.

    `versions` are those of every package that changes or comes in.
    """

    commands: tuple[str, ...]
    changes: Mapping[str, tuple[str, str]]
    versions: Mapping[str, str]


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
    try:
        goal = _goal(facts, matrix, wanted)
        for rings in range(RINGS):
            picks = _search(goal, rings)
            if picks is not None:
                return _remedy(goal, picks)
    except EnvdoctorError as error:
        return NoRemedy(str(error))
    return NoRemedy("no set of versions satisfies the pins and leaves the rest in order")


def _goal(facts: Facts, matrix: Matrix, wanted: Mapping[str, str]) -> Goal:
    requests = tuple(
        Request(name, (), "" if spec == "*" else spec, "remedy") for name, spec in wanted.items()
    )
    target = target_of(facts, matrix)
    options = options_of(Asked(requests), allow_source=True)
    context = Context(load_snapshot(matrix.folder), matrix, target, options, target.stack.versions)
    return Goal(context, requests, least_change=True)


def _search(goal: Goal, rings: int) -> Picks | None:
    """Solve with every installed package held but those within `rings` of the pins."""
    context = goal.context
    asked = _asked(goal)
    free = _free(goal, set(asked), rings)
    limits = dict(asked)
    for name in goal.kept:
        node = _node(context, name)
        if name not in asked:
            limits[name] = node.installed | (node.allowed if name in free else 0)
    roots = [Root(name, mask) for name, mask in limits.items()]
    problem = close(context, roots, limits)
    _tolerate(problem, set(asked))
    policy = Policy(True, {name: _node(context, name).allowed for name in limits} | asked)
    prune(problem, policy)
    if not all(problem.masks.get(root.name) for root in roots):
        return None
    from envdoctor.solve.engine import Engine

    bits = Engine(problem, policy).best()
    if bits is None:
        return None
    return Picks(bits, total([policy.cost(problem.node(name), bit) for name, bit in bits.items()]), policy)


def _asked(goal: Goal) -> dict[str, int]:
    asked: dict[str, int] = {}
    for request in goal.requests:
        mask = request_mask(goal.context, request)
        asked[request.name] = asked.get(request.name, _node(goal.context, request.name).allowed) & mask
    return asked


def _node(context: Context, name: str) -> Node:
    node = context.node(name)
    assert node is not None
    return node


def _free(goal: Goal, names: set[str], rings: int) -> set[str]:
    """Return `names` and the installed packages that touch them by a requirement, so many steps away."""
    free = set(names)
    touching = _touching(goal)
    for _ in range(rings):
        free |= {other for name in free for other in touching.get(name, ())}
    return free


def _touching(goal: Goal) -> dict[str, set[str]]:
    context = goal.context
    links: dict[str, set[str]] = {}
    for name in goal.kept:
        node = _node(context, name)
        row = node.package.raw["r"][node.places[node.installed.bit_length() - 1]]
        for wanted in node.package.requirements(row) if row >= 0 else ():
            if wanted.name in context.installed:
                links.setdefault(name, set()).add(wanted.name)
                links.setdefault(wanted.name, set()).add(name)
    for row in context.matrix.conditions:
        installed = [key for key in row.when if key in context.installed]
        for key in installed:
            links.setdefault(key, set()).update(installed)
    return links


def _tolerate(problem: Problem, asked: set[str]) -> None:
    """Let be what is broken already: unmet requirements of installed packages, rows without a pinned one."""
    installed = {name: problem.node(name).installed for name in problem.masks}
    for key, parts in problem.parts.items():
        problem.parts[key] = [piece for part in parts for piece in _eased(part, installed, problem)]
    rows = nogoods(problem.context, problem.masks.keys())
    problem.nogoods = [
        row
        for row in rows
        if any(literal.name in asked for literal in row.literals)
        or not all(_holds_now(literal, installed) for literal in row.literals)
    ]


def _eased(part: Part, installed: Mapping[str, int], problem: Problem) -> Iterable[Part]:
    held = part.mask & installed[part.name]
    if not held:
        return [part]
    demands = tuple(
        replace(demand, mask=demand.mask | problem.node(demand.name).installed)
        for demand in part.demands
        if demand.limit or problem.node(demand.name).installed
    )
    rest = part.mask & ~held
    kept = Part(part.name, part.extra, held, demands)
    return [kept, Part(part.name, part.extra, rest, part.demands)] if rest else [kept]


def _holds_now(literal: Literal, installed: Mapping[str, int]) -> bool:
    return bool(installed.get(literal.name, 0) & literal.mask) is literal.inside


def _remedy(goal: Goal, picks: Picks) -> Remedy:
    explained = Explained(goal, picks)
    pins = {pin.name: pin for pin in explained.pins()}
    installed = goal.context.installed
    changed = {
        name: (installed[name], pin.label)
        for name, pin in pins.items()
        if name in installed and not _node(goal.context, name).installed >> picks.bits[name] & 1
    }
    asked = {request.name for request in goal.requests}
    named = [pins[name] for name in sorted(asked | set(changed)) if not _follows(explained, name, asked)]
    versions = {name: pin.label for name, pin in pins.items() if name in changed or name not in installed}
    return Remedy(_commands(named), changed, versions)


def _follows(explained: Explained, name: str, asked: set[str]) -> bool:
    """True when another package's exact requirement settles the version, so that pip finds it by itself."""
    return name not in asked and any(
        edge.wanted.name == name
        and not edge.limit
        and explained.nodes[name].package.spec_text(edge.wanted.spec).startswith("==")
        for edge in explained.edges
    )


def _commands(pins: Sequence[Pin]) -> tuple[str, ...]:
    indexes = sorted({pin.index for pin in pins if pin.index})
    options = " --extra-index-url {}" * len(indexes)
    words = [*(f"{pin.name}=={pin.label}" for pin in pins), *(f"{INDEX_URL}{index}" for index in indexes)]
    return commands("pip install" + " {}" * len(pins) + options, *words)


__all__ = ["NoRemedy", "Remedy", "complete_remedy"]
