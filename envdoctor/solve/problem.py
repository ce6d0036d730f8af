"""The closure of a request: every package that may be needed, and what each candidate asks of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from envdoctor.matrix.snapshot import LIMITS
from envdoctor.matrix.snapshot import Requirement as Wanted
from envdoctor.solve.nodes import TORCH, Context, Node
from envdoctor.solve.undeclared import undeclared
from envdoctor.solve.variants import OWN_RUNTIME
from envdoctor.values import NamedTuple, dataclass


@dataclass(frozen=True)
class Root:
    """A demand from outside: these candidates of a package, with extras. `guard` names it in explanations."""

    name: str
    mask: int
    extras: tuple[str, ...] = ()
    guard: int = 0


class Demand(NamedTuple):
    """What a part asks of another package. `limit`: only if that package is there anyway."""

    name: str
    mask: int
    extras: tuple[str, ...]
    limit: bool
    spec: int


Asking = tuple[int, tuple[Demand, ...]]
"""Candidates that ask for the same, and what."""
Needs = Mapping[str, tuple[int, tuple[str, ...]]]
"""By name: the candidates that all demands but limits on a package together accept, and its extras."""


class Part:
    """Candidates of one package that share their requirements, without or with one extra."""

    __slots__ = ("demands", "extra", "mask", "name", "needs")

    def __init__(self, name: str, extra: str, mask: int, demands: tuple[Demand, ...], needs: Needs) -> None:
        self.name, self.extra, self.mask, self.demands, self.needs = name, extra, mask, demands, needs


class Literal(NamedTuple):
    """One condition of a nogood: the package's choice lies in `mask` (or, `inside` False, does not)."""

    name: str
    mask: int
    inside: bool = True

    def holds(self, bits: Mapping[str, int]) -> bool:
        """True where it is met by picks, by name."""
        picked = self.name in bits and bool(self.mask >> bits[self.name] & 1)
        return picked is self.inside


class Nogood(NamedTuple):
    """Conditions that must not all hold, and the matrix row (or fact) that says so."""

    literals: tuple[Literal, ...]
    row: str
    guard: int = 0
    told: str = ""
    """Why, where no row says it."""


class Problem:
    """What the engine solves. `masks` are the candidates left of each package."""

    def __init__(self, context: Context, roots: list[Root]) -> None:
        self.context, self.roots = context, roots
        self.masks: dict[str, int] = {}
        self.parts: dict[tuple[str, str], list[Part]] = {}
        self.nogoods: list[Nogood] = []
        self.bans: list[tuple[str, int, int]] = []
        self.sure: frozenset[str] = frozenset()
        """Packages that every answer holds (found by pruning)."""

    def node(self, name: str) -> Node:
        """Return a package of the closure."""
        return self.context.known(name)

    def every_part(self) -> Iterator[Part]:
        """Yield all parts in a fixed order."""
        for key in sorted(self.parts):
            yield from self.parts[key]


def close(
    context: Context,
    roots: Iterable[Root],
    limits: Mapping[str, int],
    depth: int | None = None,
    besides: Collection[str] = (),
) -> Problem:
    """Return the closure of `roots`.

    `limits` gives the candidates of some packages, in place of those the target allows; with `depth`,
    packages further than that from a root are left out (to explain), but for those named in `besides`; with
    these, what is demanded of those left out is left out, too.
    """
    problem = Problem(context, list(roots))
    read: dict[tuple[str, str], Sequence[Asking]] = {}
    level = [(root.name, extra) for root in problem.roots for extra in ("", *root.extras)]
    seen = set(level)
    while level:
        following: list[tuple[str, str]] = []
        for name, extra in level:
            node = problem.node(name)
            if name not in problem.masks:
                problem.masks[name] = limits[name] if name in limits else node.allowed  # noqa: SIM401
            read[name, extra] = parts_of(node, extra, problem.masks[name])
            for target, _, extras, _, _ in asked_by(node, extra, problem.masks[name]):
                if depth != 0 or target in problem.masks or target in besides:
                    new = [(target, one) for one in ("", *extras) if (target, one) not in seen]
                    seen.update(new)
                    following += new
        level = following
        depth = None if depth is None else max(0, depth - 1)
    for (name, extra), told in read.items():
        told = _among(told, problem.masks) if besides else told
        parts = [Part(name, extra, mask, demands, needs_of(demands)) for mask, demands in told]
        problem.parts[name, extra] = parts
    return problem


def asked_by(node: Node, extra: str, candidates: int) -> Sequence[Demand]:
    """Return what some candidates need, each demand once; kept like parts."""
    known = node.asked.get((extra, candidates))
    if known is None:
        every = {id(one): one for _, demands in parts_of(node, extra, candidates) for one in demands}
        known = node.asked[extra, candidates] = [one for one in every.values() if not one.limit]
    return known


def _among(told: Iterable[Asking], names: Collection[str]) -> Sequence[Asking]:
    """Return parts with no demands but on some packages."""
    return _merged((mask, tuple([one for one in asked if one.name in names])) for mask, asked in told)


def _merged(told: Iterable[Asking]) -> Sequence[Asking]:
    """Return parts that ask for the same as one, without those that ask for nothing."""
    found: dict[tuple[int, ...], Asking] = {}
    for mask, demands in told:
        same = tuple(map(id, demands))
        found[same] = (mask | found[same][0], demands) if same in found else (mask, demands)
    found.pop((), None)
    return [*found.values()]


def parts_of(node: Node, extra: str, candidates: int) -> Sequence[Asking]:
    """Return what some candidates ask for; what was read once is kept, since searches ask again."""
    known = node.parts.get((extra, candidates))
    if known is None:
        known = node.parts[extra, candidates] = _merged(_read_parts(node, extra, candidates))
    return known


def _read_parts(node: Node, extra: str, candidates: int) -> Iterator[Asking]:
    shares = shares_of(node)
    for row, mask in node.package.row_masks(_versions_of(node, candidates)).items():
        if row < 0:
            continue
        expanded = node.expand(mask) & candidates
        for share, own_runtime, needed in shares:
            if expanded & share:
                yield expanded & share, _demands(node, row, extra, own_runtime, needed)


def _versions_of(node: Node, candidates: int) -> int:
    if node.builds is None:
        return candidates
    return sum(1 << place for place in {node.places[bit] for bit in bits_of(candidates)})


def shares_of(node: Node) -> list[tuple[int, bool, tuple[Demand, ...]]]:
    """Split candidates by what they ask for beyond their rows of requirements; kept like parts."""
    if node.shares is None:
        node.shares = _read_shares(node)
    return node.shares


def _read_shares(node: Node) -> list[tuple[int, bool, tuple[Demand, ...]]]:
    told: tuple[Demand, ...] = ()
    shares = [(mask, own, told) for own, mask in _variant_masks(node)]
    for one in undeclared(node):
        if node.context.is_there(one.name):
            continue
        demand = Demand(one.name, one.mask, (), False, -1)
        with_it = [(mask & one.owners, own, (*needed, demand)) for mask, own, needed in shares]
        shares = [*with_it, *((mask & ~one.owners, own, needed) for mask, own, needed in shares)]
    return [share for share in shares if share[0]]


def _variant_masks(node: Node) -> list[tuple[bool, int]]:
    """Split torch's candidates: variants bring their own CUDA libraries, not those of the default build."""
    if node.name != TORCH or node.builds is None:
        return [(False, node.all)]
    variants = sum(1 << bit for bit, build in enumerate(node.builds) if build.variant)
    return [(False, node.all & ~variants), (True, variants)]


def demands_of(node: Node, bit: int, extra: str = "") -> tuple[Demand, ...]:
    """Return what one candidate requires, without extras or what one extra adds."""
    row = node.row(bit)
    own_runtime, needed = next((own, told) for mask, own, told in shares_of(node) if mask >> bit & 1)
    return _demands(node, row, extra, own_runtime, needed) if row >= 0 else ()


def _demands(
    node: Node, row: int, extra: str, own_runtime: bool, needed: tuple[Demand, ...]
) -> tuple[Demand, ...]:
    """Return what a row of requirements asks of packages that the facts cover; others are `uncovered`."""
    key = row, extra, own_runtime, needed
    known = node.demands.get(key)
    if known is None:
        told = _read_demands(node, node.package.numbers(row, extra), node.wanted, False)
        if not extra and (numbers := node.package.numbers(row, LIMITS)):
            limits, waived = _read_demands(node, numbers, node.limits, True), node.context.options.waived
            told += [one for one in limits if (node.name, one.name) not in waived] if waived else limits
        if own_runtime:
            told = [demand for demand in told if not demand.name.startswith(OWN_RUNTIME)]
        known = node.demands[key] = (*told, *(() if extra else needed))
    return known


def needs_of(demands: Sequence[Demand]) -> Needs:
    """Return what demands that are no limits come to, by name."""
    asked = [demand for demand in demands if not demand.limit]
    table = {demand.name: (demand.mask, demand.extras) for demand in asked}
    if len(table) < len(asked):
        table = {}
        for demand in asked:
            mask, extras = table.get(demand.name, (-1, ()))
            table[demand.name] = (mask & demand.mask, (*extras, *demand.extras))
    return table


def _read_demands(
    owner: Node, numbers: Sequence[str], known: dict[str, Demand | None], limit: bool
) -> list[Demand]:
    """Return what requirements ask, by their numbers; most releases of a package have most in common."""
    try:
        return [demand for number in numbers if (demand := known[number]) is not None]
    except KeyError:
        pass
    for number in [number for number in numbers if number not in known]:
        package = owner.package
        stated = package.requirement(number) if limit else package.wanted(number)
        known[number] = None if stated is None else _demand(owner.context, limit, stated)
    return _read_demands(owner, numbers, known, limit)


def _demand(context: Context, limit: bool, requirement: Wanted) -> Demand | None:
    """Return what a requirement asks; None where its marker does not hold, or the facts do not cover it."""
    node = context.node(requirement.name) if context.marker_holds(requirement.marker) else None
    if node is None or context.stands(node.package, requirement.spec):
        return None
    mask = node.expand(node.package.spec_mask(requirement.spec))
    return Demand(node.name, mask, requirement.extras, limit, requirement.spec)


def bits_of(mask: int) -> Iterator[int]:
    """Yield the places of the bits of a mask, lowest first."""
    while mask:
        bit = mask & -mask
        yield bit.bit_length() - 1
        mask ^= bit


def bits_down(mask: int) -> Iterator[int]:
    """Yield the places of the bits of a mask, highest first."""
    while mask:
        bit = mask.bit_length() - 1
        yield bit
        mask ^= 1 << bit
