"""A best answer read off, without search, where it can be proven that none is better.

What was asked for is fixed first: at its newest, or as a search among it alone says. All else follows newest
first. No answer is better where nothing lost more than it must, or where what would have to give way for it,
a package further up, would lose at least as much. Where that is not so, a search decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

from envdoctor.solve.goal import Goal
from envdoctor.solve.nodes import TORCH, Node
from envdoctor.solve.policy import Cost, Policy, behind
from envdoctor.solve.problem import Demand, Literal, Nogood, bits_down, bits_of, demands_of
from envdoctor.solve.rows import nogoods
from envdoctor.values import NamedTuple

ROUNDS = 20
"""So often the picks are looked through again, before a search is the shorter way."""
FREE: Cost = (0, 0, 0, 0, 0)


_Told = Mapping[str, Sequence[tuple[str, Demand]]]
"""By name: what the picks ask of a package, with who asks."""


class Unproven(Exception):
    """The best answer cannot be read off; `names`: the packages that do not stand beside one another."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = frozenset(names)


def newest_asked(goal: Goal, policy: Policy) -> dict[str, int] | None:
    """Return the cheapest candidate of each package asked for; None where one has none, or several."""
    picks = {}
    for name, mask in policy.asked.items():
        node = goal.context.node(name)
        bit = _cheapest(policy, node, mask) if node is not None and mask else None
        if bit is None:
            return None
        picks[name] = bit
    return picks


def _cheapest(policy: Policy, node: Node, mask: int) -> int | None:
    """Return the candidate that costs least by itself; None where two builds of torch cost the same."""
    top = mask.bit_length() - 1
    if node.builds is None:
        return top
    if node.name in policy.asked:
        days, places = node.days, node.places
        mask = sum(1 << bit for bit in bits_of(mask) if days[places[bit]] == days[places[top]])
    default = mask & sum(1 << bit for bit, build in enumerate(node.builds) if build.variant is None)
    if default:
        return default.bit_length() - 1
    alike = sum(node.places[bit] == node.places[top] for bit in bits_of(mask))
    return top if alike == 1 else None


def stands_alone(goal: Goal, policy: Policy) -> bool:
    """True when nothing asked for has two candidates that are not stale."""
    for name, mask in policy.asked.items():
        node, rest = goal.context.node(name), mask & ~(1 << (mask.bit_length() - 1))
        if node is not None and rest and not behind(node, rest.bit_length() - 1, mask)[0]:
            return False
    return True


def completed(
    goal: Goal, policy: Policy, fixed: Mapping[str, int], alone: bool, proven: bool = True
) -> dict[str, int]:
    """Return the best answer with these picks of what was asked for; raises Unproven where it is not proven.

    `alone`: no other picks of what was asked for are as stale, whatever becomes of torch. Unless it must be
    `proven`, an answer in which some lost more than they must is returned as well.
    """
    return _Reading(goal, policy, dict(fixed), alone, proven).picks()


class _Charge(NamedTuple):
    """What `loser` loses because another bars `better` candidates of a package (0: because it needs it)."""

    loser: str
    loss: int
    name: str
    better: int


class _Reading:
    def __init__(self, goal: Goal, policy: Policy, fixed: dict[str, int], alone: bool, proven: bool) -> None:
        self.goal, self.policy, self.fixed = goal, policy, fixed
        self.alone, self.proven = alone or not proven, proven
        self.forced: dict[str, int] = {}
        """The candidates that what is fixed accepts."""
        self.sure: set[str] = set()
        """What is there in every answer."""
        self._bases: dict[str, int] = {}
        self._read: set[tuple[str, str]] = set()
        self._forcing: dict[str, set[str]] = {}
        """What is fixed and bears on a package."""
        self._asked: dict[tuple[str, int, str], tuple[Demand, ...]] = {}

    def picks(self) -> dict[str, int]:
        self._read_fixed()
        carried: dict[str, int] = {}
        for _ in range(ROUNDS):
            chosen, late = self._follow(carried)
            if not late and not self._heed_rows({**self.fixed, **chosen}):
                if self.proven:
                    self._prove(chosen)
                return {**self.fixed, **chosen}
            for name, mask in late.items():
                carried[name] = carried.get(name, -1) & mask
        raise Unproven

    def _read_fixed(self) -> None:
        """Follow what is fixed, torch with it once something fixed needs it."""
        todo, late, clashing = self._roots(), False, set[str]()
        while (todo or late) and not (clashing and not todo):
            if not todo:
                self._fix_torch()
                todo, late = [(TORCH, "")], False
            name, extra = todo.pop()
            late = late or (name == TORCH and TORCH not in self.fixed)
            if name not in self.fixed or (name, extra) in self._read:
                continue
            self._read.add((name, extra))
            for demand in self._asks(name, self.fixed[name], extra):
                clashing |= self._force(demand, name)
                if not demand.limit:
                    self.sure.add(demand.name)
                    todo += [(demand.name, one) for one in ("", *demand.extras)]
        if clashing:
            raise Unproven(clashing | self._left_nothing())

    def _left_nothing(self) -> set[str]:
        """Return what is fixed and leaves nothing of a package that it needs, with that."""
        found = set[str]()
        for name in self.sure - self.fixed.keys():
            try:
                self._newest(name, {})
            except Unproven as reached:
                found |= reached.names
        return found

    def _roots(self) -> list[tuple[str, str]]:
        extras = [(request.name, one) for request in self.goal.requests for one in request.extras]
        return [*((name, "") for name in self.fixed), *extras]

    def _fix_torch(self) -> None:
        node = self.goal.context.known(TORCH)
        around = {TORCH, *self._forcing[TORCH]}
        bit = _cheapest(self.policy, node, self._base(TORCH)) if self._base(TORCH) else None
        if bit is None or (not self.alone and self.policy.cost(node, bit) != FREE):
            raise Unproven(around)
        self.fixed[TORCH] = bit

    def _asks(self, name: str, bit: int, extra: str) -> tuple[Demand, ...]:
        known = self._asked.get((name, bit, extra))
        if known is None:
            node = self.goal.context.node(name)
            known = self._asked[name, bit, extra] = demands_of(node, bit, extra) if node else ()
        return known

    def _force(self, demand: Demand, owner: str) -> set[str]:
        """Narrow a package to what something fixed accepts; return the two where that is fixed otherwise."""
        name = demand.name
        if name in self.fixed:
            return set() if demand.mask >> self.fixed[name] & 1 else {owner, name}
        self.forced[name] = self.forced.get(name, -1) & demand.mask
        self._forcing.setdefault(name, set()).add(owner)
        self._bases.pop(name, None)
        return set()

    def _base(self, name: str) -> int:
        """Return the candidates of a package that stand beside all that is fixed."""
        known = self._bases.get(name)
        if known is None:
            node = self.goal.context.known(name)
            known = node.allowed & ~node.reserved & self.forced.get(name, -1)
            self._bases[name] = known
        return known

    def _fits(self, name: str, bit: int, cuts: Mapping[str, int]) -> bool | None:
        """True when what a candidate asks for can stand within cuts; None where it cannot without them."""
        beyond: tuple[str, int] | None = None
        for demand in self._asks(name, bit, ""):
            other = demand.name
            if other in self.fixed:
                if not demand.mask >> self.fixed[other] & 1:
                    return None
            elif not demand.limit:
                left = demand.mask & self._base(other)
                if not left:
                    return _stop() if self.goal.context.known(other).reserved & demand.mask else None
                cut = cuts.get(other, -1)
                if beyond is None and not left & cut:
                    beyond = other, demand.mask & cut
        if beyond is None:
            return True
        return _stop() if self.goal.context.known(beyond[0]).reserved & beyond[1] else False

    def _newest(self, name: str, cuts: Mapping[str, int]) -> int:
        """Return the newest candidate; those that cannot stand beside what is fixed are dropped for good."""
        for bit in bits_down(self._base(name) & cuts.get(name, -1)):
            fits = self._fits(name, bit, cuts)
            if fits:
                return bit
            if fits is None:
                self._bases[name] &= ~(1 << bit)
        raise Unproven(() if self._base(name) else self._around(name))

    def _around(self, name: str) -> set[str]:
        """Return a package of which nothing is left, and the fixed ones that leave nothing of it."""
        found = {name, *self._forcing.get(name, ())}
        allowed = self.goal.context.known(name).allowed & self.forced.get(name, -1)
        for demand in {one for bit in bits_of(allowed) for one in self._asks(name, bit, "")}:
            if demand.name in self.fixed and not demand.mask >> self.fixed[demand.name] & 1:
                found.add(demand.name)
            elif demand.name not in self.fixed and not demand.mask & self._base(demand.name):
                found |= {demand.name, *self._forcing.get(demand.name, ())}
        return found

    def _told(self, chosen: Mapping[str, int]) -> Iterator[tuple[str, Demand]]:
        """Yield what the picks ask of one another, with who asks."""
        for name, extra in sorted(self._extras(chosen)):
            for demand in self._asks(name, chosen[name], extra):
                if demand.name in chosen:
                    yield name, demand
                elif demand.name in self.fixed and not demand.mask >> self.fixed[demand.name] & 1:
                    raise Unproven

    def _extras(self, chosen: Mapping[str, int]) -> set[tuple[str, str]]:
        """Return the picks that are not fixed, each with every extra that is wanted of it."""
        todo, seen = self._roots(), set()
        while todo:
            name, extra = todo.pop()
            bit = self.fixed.get(name, chosen.get(name))
            if (name, extra) not in seen and bit is not None:
                seen.add((name, extra))
                for demand in self._asks(name, bit, extra):
                    todo += () if demand.limit else [(demand.name, one) for one in ("", *demand.extras)]
        if any(pair[0] in self.fixed and pair not in self._read for pair in seen):
            raise Unproven  # an extra of what is fixed, for the sake of what is not
        return {pair for pair in seen if pair[0] in chosen}

    def _follow(self, carried: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
        """Pick the newest that is left of all that is needed; return as well what came too late for that."""
        chosen: dict[str, int] = {}
        cuts = dict(carried)
        late: dict[str, int] = {}
        todo = deque(self._roots())
        seen = set()
        while todo:
            name, extra = todo.popleft()
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            if name not in self.fixed and name not in chosen:
                chosen[name] = self._newest(name, cuts)
            for demand in self._asks(name, self.fixed.get(name, chosen.get(name, 0)), extra):
                todo += () if demand.limit else [(demand.name, one) for one in ("", *demand.extras)]
                if name not in self.fixed:
                    cuts[demand.name] = cuts.get(demand.name, -1) & demand.mask
                    if demand.name in chosen and not demand.mask >> chosen[demand.name] & 1:
                        late[demand.name] = late.get(demand.name, -1) & demand.mask
        return chosen, late

    def _heed_rows(self, bits: Mapping[str, int]) -> bool:
        """Cut off what rows forbid beside what is fixed; return whether anything was."""
        moved = False
        for row in (*nogoods(self.goal.context, bits.keys()), *self.goal.avoided):
            if all(literal.holds(bits) for literal in row.literals):
                literal = self._movable(row)
                for owner in {one.name for one in row.literals} - {literal.name}:
                    self._force(Demand(literal.name, ~literal.mask, (), True, -1), owner)
                moved = True
        return moved

    def _movable(self, row: Nogood) -> Literal:
        """Return the one condition of a row that is not fixed; any such where nothing is to be proven."""
        loose = [literal for literal in row.literals if literal.name not in self.fixed]
        movable = [literal for literal in loose if literal.inside]
        if not movable or (self.proven and len(loose) != 1):
            raise Unproven(() if loose else (literal.name for literal in row.literals))
        return movable[-1]

    def _prove(self, chosen: Mapping[str, int]) -> None:
        """Raise Unproven unless whatever would have to give way for a better answer loses as much."""
        if TORCH in chosen and self.policy.cost(self.goal.context.known(TORCH), chosen[TORCH]) != FREE:
            raise Unproven
        self._spread_sure()
        told: dict[str, list[tuple[str, Demand]]] = {}
        for owner, one in self._told(chosen):
            told.setdefault(one.name, []).append((owner, one))
        charges: dict[str, set[_Charge]] = {}
        for name, bit in chosen.items():
            if loss := self._loss(name, bit):
                self._charge(name, loss, chosen, told, charges)
        for owner, charged in charges.items():
            for bit in bits_of(self._base(owner) & ((1 << chosen[owner]) - 1)):
                won = {one.loser: one.loss for one in charged if self._spares(owner, bit, one)}
                if sum(won.values()) > self._cost(owner, bit) - self._least(owner):
                    raise Unproven

    def _charge(
        self,
        name: str,
        loss: int,
        chosen: Mapping[str, int],
        told: _Told,
        charges: dict[str, set[_Charge]],
    ) -> None:
        """Charge a loss to those without whose giving way it stays: who bars what is better, who needs it."""
        todo = [(name, _Charge(name, loss, "", 0))]
        while todo:
            owner, charge = todo.pop()
            if charge in charges.setdefault(owner, set()):
                continue
            charges[owner] |= {charge} if charge.name else set()
            if owner not in self.sure:
                todo.append((self._needing(owner, told), _Charge(name, loss, owner, 0)))
            for bit in bits_of(self._base(owner) & ~((2 << chosen[owner]) - 1)):
                if not charge.name or self._spares(owner, bit, charge):
                    todo.append(self._barring(owner, bit, _Charge(name, loss, "", 0), told))

    def _barring(self, name: str, bit: int, charge: _Charge, told: _Told) -> tuple[str, _Charge]:
        """Return one that bars a candidate: by what it asks of it, or of what the candidate asks for."""
        for owner, one in told.get(name, ()):
            if not one.mask >> bit & 1:
                return owner, charge._replace(name=name, better=1 << bit)
        for wanted in self._asks(name, bit, ""):
            for owner, one in told.get(wanted.name, ()):
                left = wanted.mask & self._base(wanted.name)
                if owner != name and not left & one.mask:
                    return owner, charge._replace(name=wanted.name, better=left)
        raise Unproven

    def _spares(self, owner: str, bit: int, charge: _Charge) -> bool:
        """True when with another candidate of its owner a loss might not be there."""
        asked = [one for one in self._asks(owner, bit, "") if one.name == charge.name]
        if charge.better:
            return all(one.mask & charge.better for one in asked)
        return all(one.limit for one in asked)

    def _spread_sure(self) -> None:
        """What a package of one candidate needs is there as surely as itself."""
        todo = [name for name in self.sure if name not in self.fixed]
        while todo:
            name = todo.pop()
            mask = self._base(name)
            if mask & (mask - 1) == 0:
                for demand in self._asks(name, mask.bit_length() - 1, ""):
                    if not demand.limit and demand.name not in self.sure:
                        self.sure.add(demand.name)
                        todo.append(demand.name)

    def _cost(self, name: str, bit: int) -> int:
        return self.policy.cost(self.goal.context.known(name), bit)[-1]

    def _loss(self, name: str, bit: int) -> int:
        """Return what a pick costs beyond the least, which the newest left of what is sure costs."""
        newest = name in self.sure and bit == self._base(name).bit_length() - 1
        return 0 if newest else self._cost(name, bit) - self._least(name)

    def _least(self, name: str) -> int:
        """Return what a package costs at least: nothing where it need not be there."""
        return self._cost(name, self._base(name).bit_length() - 1) if name in self.sure else 0

    def _needing(self, name: str, told: _Told) -> str:
        """Return a pick for which another that is not sure is there."""
        found = next((owner for owner, one in told.get(name, ()) if not one.limit), "")
        return found or _stop()


def _stop() -> NoReturn:
    raise Unproven
