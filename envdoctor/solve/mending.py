"""The fewest changes to what is installed under which demands hold, and nothing else breaks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import field, replace
from functools import cached_property, lru_cache
from itertools import product

from envdoctor.errors import Unavailable
from envdoctor.facts import Facts
from envdoctor.facts.names import normalise
from envdoctor.matrix import Matrix
from envdoctor.matrix.snapshot import Package, Snapshot, load_snapshot
from envdoctor.solve.asking import options_of
from envdoctor.solve.goal import Goal, Picks, holding, request_mask
from envdoctor.solve.movers import must_move
from envdoctor.solve.nodes import TORCH, Context, Options
from envdoctor.solve.policy import ONE_CHANGE, Policy, total
from envdoctor.solve.problem import Literal, Nogood, Part, Problem, Root, close, demands_of, needs_of
from envdoctor.solve.prune import prune
from envdoctor.solve.requests import Asked, Request
from envdoctor.solve.rows import nogoods
from envdoctor.specifiers import InvalidSpecifier, SpecifierSet
from envdoctor.target.file_judge import supposed_target
from envdoctor.target.resolve import Target, check_index_serves
from envdoctor.values import dataclass

RINGS = 3
"""How far from the demands installed packages may change: themselves, their neighbours, and theirs."""
_REACH = 1
"""How far from the packages told what they require is looked at, where the rest is not told."""
_SEASON = 90
"""Days after the newest release that a text tells in which what it leaves out was taken."""
Pins = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Demands:
    """What must hold afterwards; names are normalized.

    `pins`: these are installed and satisfy their specifiers. `either`: of each group, all pins of at least
    one member hold. `met`: pairs of a package and one that it requires, whose requirement is met. `gone` are
    taken out, `kept` stay; with `newest` what the demands speak of moves as far as it can.
    """

    pins: Pins = field(default_factory=dict)
    either: tuple[tuple[Pins, ...], ...] = ()
    met: frozenset[tuple[str, str]] = frozenset()
    gone: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    newest: bool = False

    @property
    def solvable(self) -> bool:
        """True when there is something for the solver to do."""
        return bool(self.pins or self.either or self.met)

    @property
    def names(self) -> frozenset[str]:
        """The packages that demands speak of."""
        grouped = (name for group in self.either for pins in group for name in pins)
        return frozenset((*self.pins, *grouped, *(name for pair in self.met for name in pair)))


def mending_goal(facts: Facts, matrix: Matrix, demands: Demands, cutoff: int | None = None) -> Goal:
    """Return the goal of demands on what `facts` say is installed; raises Unavailable.

    Nothing else than what is installed is younger than `cutoff`, in days since 1970.
    """
    requests = tuple(Request(n, (), "" if s == "*" else s, "remedy") for n, s in demands.pins.items())
    target = supposed_target(facts, matrix)
    check_index_serves(target, matrix)
    told = {**dict(_begun(facts, load_snapshot(matrix.folder))), **target.stack.versions}
    installed = {n: v for n, v in told.items() if n not in demands.gone}
    options = replace(options_of(Asked(requests), allow_source=True), cutoff=cutoff)
    options = replace(options, labels=options.labels | _told_label(installed.get(TORCH)))
    limits = tuple(_told_limits(facts, _context(matrix, target, options, tuple(installed.items()))))
    options = replace(options, constraints=limits)
    context = _context(matrix, target, options, tuple(installed.items()))
    context = _context(matrix, target, holding(context, demands.names), tuple(installed.items()))
    return Goal(context, requests, not demands.newest)


def day_of_the_rest(facts: Facts, matrix: Matrix, demands: Demands) -> int | None:
    """Return until when what comes in beside a few told packages was out; None where a whole listing is told.

    What a text leaves out stands in that environment all the same, of the day of the rest.
    """
    told = facts.environment.distributions
    if facts.environment.complete or not demands.pins.keys() - told.keys():
        return None
    days = (_day(matrix, one.name, one.version) for one in told.values() if one.version)
    newest = max(filter(None, days), default=None)
    return newest + _SEASON if newest else None


def _day(matrix: Matrix, name: str, version: str | None) -> int | None:
    package = _package(matrix, name)
    place = package.position.get((version or "").partition("+")[0]) if package else None
    return package.days[place] if package and place is not None else None


def _begun(facts: Facts, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield the newest release of what is told by its beginning alone (`torch 2.2`: one of 2.2.x)."""
    for name, distribution in facts.environment.distributions.items():
        package = snapshot.package(name) if distribution.begun else None
        places = package.finals if package else 0
        inside = [
            version
            for place, version in enumerate(package.versions if package else ())
            if places >> place & 1 and f"{version}.".startswith(f"{distribution.begun}.")
        ]
        yield from ((name, version) for version in inside[-1:])


@lru_cache(maxsize=4)
def _context(
    matrix: Matrix, target: Target, options: Options, installed: tuple[tuple[str, str], ...]
) -> Context:
    """Return what the searches of one diagnosis share: each package's candidates and demands, read once."""
    like = _read_before(
        matrix, target, options.labels, tuple((n, v) for n, v in installed if n in options.held)
    )
    return Context(load_snapshot(matrix.folder), matrix, target, options, dict(installed), like)


@lru_cache(maxsize=2)
def _read_before(
    matrix: Matrix, target: Target, labels: frozenset[tuple[str, str]], held: tuple[tuple[str, str], ...]
) -> Context:
    """Return what searches for other packages read: what releases ask is the same there."""
    options = Options(allow_source=True, labels=labels, held=frozenset(name for name, _ in held))
    return Context(load_snapshot(matrix.folder), matrix, target, options, dict(held))


def _told_label(torch: str | None) -> frozenset[tuple[str, str]]:
    """Return the installed torch's version and label, so that its very build is among the candidates."""
    version, plus, label = (torch or "").partition("+")
    return frozenset({(version, label)} if plus else ())


def _told_limits(facts: Facts, context: Context) -> Iterator[Request]:
    """Yield what installed packages that the package facts do not cover say of those that they do."""
    for owner in facts.environment.distributions.values():
        node = context.node(owner.name)
        if node is not None and node.installed:
            continue
        for line in owner.requires:
            name, bracket, _ = line.partition("[")
            head = (name if bracket else line).partition(";")[0]
            limit = _limit(head, owner.name)
            if limit and ";" not in line and limit.name in context.installed and _admits(limit, context):
                yield limit


def _limit(text: str, owner: str) -> Request | None:
    name = text.strip()
    for place, character in enumerate(name):
        if character in "<>=!~ (":
            name, spec = name[:place], name[place:].strip(" ()")
            return Request(normalise(name), (), spec, owner) if spec else None
    return None


def _admits(limit: Request, context: Context) -> bool:
    try:
        return SpecifierSet(limit.spec).contains(context.installed[limit.name], prereleases=True)
    except InvalidSpecifier:
        return False


def covers(matrix: Matrix, name: str) -> bool:
    """True when the package facts know releases of a package."""
    package = _package(matrix, name)
    return package is not None and package.crawled


def knows_release(matrix: Matrix, name: str, version: str | None) -> bool:
    """True when the package facts know what that release requires."""
    package = _package(matrix, name)
    place = package.position.get((version or "").partition("+")[0]) if package and package.crawled else None
    return package is not None and place is not None and package.row_of(place) >= 0


def has_wheel(matrix: Matrix, name: str, version: str | None) -> bool:
    """True when a release is known to come as a wheel, so that nobody builds it from source."""
    package = _package(matrix, name)
    place = package.position.get((version or "").partition("+")[0]) if package and package.crawled else None
    return package is not None and place is not None and package.has_wheel(package.set_of(place))


def _package(matrix: Matrix, name: str) -> Package | None:
    try:
        return load_snapshot(matrix.folder).package(name)
    except Unavailable:  # an installation without package facts
        return None


def search(goal: Goal, demands: Demands, rings: int, whole: bool = True) -> Picks | None:
    """Solve with every installed package held but those within `rings` of the demands.

    Of an environment that is not told `whole`, what the packages told require is looked at, and no further.
    """
    one = _Search(goal, demands, whole)
    return (one.of_movers() if rings == 1 else None) or one.solve(one.free(rings))


@dataclass(frozen=True)
class _Search:
    """One goal solved over growing rings of packages that may move."""

    goal: Goal
    demands: Demands
    whole: bool

    def of_movers(self) -> Picks | None:
        """Solve with nothing else freed than what must move; None where other changes may weigh as little."""
        context = self.goal.context
        movers = must_move(context, self.asked, self.installed)
        picks = self.solve({*self.demands.names, *movers}) if movers else None
        enough = picks is not None and picks.cost[0] < ONE_CHANGE * (self._least(movers) + 1)
        return picks if enough else None

    def _least(self, movers: Set[str]) -> int:
        """Return how many installed packages change at least: what must, and one for each choice apart."""
        context = self.goal.context
        touched = {*movers, *(n for n, mask in self.asked.items() if context.known(n).installed & ~mask)}
        count = len(touched)
        for group in self.demands.either:
            ways = [self._changed_by(pins) for pins in group]
            names = {name for way in ways for name in way}
            count += all(ways) and touched.isdisjoint(names)
            touched |= names
        return count

    def _changed_by(self, pins: Pins) -> set[str]:
        """Return the installed packages that pins do not leave as they are."""
        stood = {name: node.installed for name in pins if (node := self.goal.context.node(name))}
        return {name for name, mask in stood.items() if mask and not mask & self._admitted(name, pins[name])}

    def solve(self, free: Set[str]) -> Picks | None:
        """Solve with every installed package held but those that are `free`."""
        context = self.goal.context
        limits = self._limits(free)
        roots = [Root(name, mask) for name, mask in limits.items()]
        problem = close(context, roots, limits, None if self.whole else _REACH)
        self._tolerate(problem)
        policy = Policy(
            self.goal.least_change,
            {n: context.known(n).allowed for n in limits if n in context.installed},
        )
        policy = replace(policy, asked=policy.asked | self.asked)
        prune(problem, policy)
        if not all(problem.masks.get(root.name) for root in problem.roots):
            return None
        from envdoctor.solve.engine import Engine

        bits = Engine(problem, policy).best()
        if bits is None:
            return None
        costs = [policy.cost(problem.node(name), bit) for name, bit in bits.items()]
        return Picks(bits, total(costs), policy, None)

    @cached_property
    def installed(self) -> list[str]:
        """The installed packages of known version, but for the CUDA libraries, which follow torch."""
        return replace(self.goal, least_change=True).kept

    def _limits(self, free: Set[str]) -> dict[str, int]:
        limits = dict(self.asked)
        for name in self.installed:
            node = self.goal.context.known(name)
            if name in self.demands.kept:
                limits[name] = node.installed & limits.get(name, node.installed)
            elif name not in limits:
                limits[name] = node.installed | (node.allowed if name in free else 0)
        return limits

    @cached_property
    def asked(self) -> dict[str, int]:
        """The candidates that the pins admit, by name."""
        asked: dict[str, int] = {}
        context = self.goal.context
        for request in self.goal.requests:
            mask = request_mask(context, request)
            asked[request.name] = asked.get(request.name, context.known(request.name).allowed) & mask
        return asked

    def free(self, rings: int) -> set[str]:
        """Return the packages demanded and the installed ones that touch them, so many steps away."""
        free = set(self.demands.names)
        for _ in range(rings):
            free |= {other for name in free for other in self._touching.get(name, ())}
        return free

    @cached_property
    def _touching(self) -> dict[str, set[str]]:
        context = self.goal.context
        links: dict[str, set[str]] = {}
        for name in self.installed:
            node = context.known(name)
            asks = node.row(node.installed.bit_length() - 1)
            for wanted in node.package.requirements(asks) if asks >= 0 else ():
                if wanted.name in context.installed or wanted.name in self.demands.names:
                    links.setdefault(name, set()).add(wanted.name)
                    links.setdefault(wanted.name, set()).add(name)
        for row in context.matrix.conditions:
            installed = [key for key in row.when if key in context.installed]
            for key in installed:
                links.setdefault(key, set()).update(installed)
        return links

    def _tolerate(self, problem: Problem) -> None:
        """Let be what is broken already and no demand: unmet requirements, rows without a pinned package."""
        installed = {name: problem.node(name).installed for name in problem.masks}
        for key, parts in problem.parts.items():
            problem.parts[key] = [piece for part in parts for piece in self._eased(part, installed, problem)]
        problem.nogoods = [
            row
            for row in nogoods(problem.context, problem.masks.keys())
            if any(literal.name in self.asked for literal in row.literals)
            or not all(_holds_now(literal, installed) for literal in row.literals)
        ]
        problem.nogoods += [one for group in self.demands.either for one in self._either(group, problem)]

    @cached_property
    def _extras(self) -> set[tuple[str, str]]:
        """The extras that what is installed asks for: what they bring in want may be in want already."""
        nodes = [self.goal.context.known(name) for name in self.installed]
        asked = (one for node in nodes for one in demands_of(node, node.installed.bit_length() - 1))
        return {(one.name, extra) for one in asked for extra in one.extras}

    def _either(self, group: Iterable[Pins], problem: Problem) -> Iterator[Nogood]:
        """Yield what says that all pins of one member hold: not one pin of each may fail at once."""
        for pins in product(*(tuple(member.items()) for member in group)):
            literals = [
                Literal(name, self._admitted(name, spec), False)
                for name, spec in dict.fromkeys(pins)
                if name in problem.masks
            ]
            if len(literals) == len(dict.fromkeys(pins)):
                yield Nogood(tuple(literals), "")

    def _admitted(self, name: str, spec: str) -> int:
        """Return what a pin takes of what the target can run, were it installed already or not."""
        node = self.goal.context.known(name)
        return node.admits("" if spec == "*" else spec) & node.allowed

    def _eased(self, part: Part, installed: Mapping[str, int], problem: Problem) -> Iterable[Part]:
        part = part if self.whole else _within(part, problem.masks)
        held = part.mask & installed[part.name]
        if not held or (part.extra and (part.name, part.extra) not in self._extras):
            return [part]
        demands = tuple(
            demand
            if (part.name, demand.name) in self.demands.met
            else demand._replace(mask=demand.mask | problem.node(demand.name).installed)
            for demand in part.demands
            if demand.limit
            or problem.node(demand.name).installed
            or (part.name, demand.name) in self.demands.met
        )
        rest = part.mask & ~held
        kept = Part(part.name, part.extra, held, demands, needs_of(demands))
        return [kept, Part(part.name, part.extra, rest, part.demands, part.needs)] if rest else [kept]


def _within(part: Part, masks: Mapping[str, int]) -> Part:
    """Return a part without what it asks of packages that are not looked at."""
    demands = tuple(demand for demand in part.demands if demand.name in masks)
    return Part(part.name, part.extra, part.mask, demands, needs_of(demands))


def _holds_now(literal: Literal, installed: Mapping[str, int]) -> bool:
    return bool(installed.get(literal.name, 0) & literal.mask) is literal.inside
