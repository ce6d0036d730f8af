"""A problem becomes rules for clingo, an optimal or any model becomes picks.

The rules are written without variables: to let clingo ground a program with them took longer than to solve
it. What they say, each guarded part only while its guard is on:

    a root is needed, with its extras, from its candidates
    of what is needed exactly one candidate is picked
    a candidate with requirements (and an extra of it that is wanted) brings these on: they need packages
    from some candidates, want extras, bar candidates of what is there anyway, welcome a pre-release
    nothing banned is picked, no row's conditions all hold, no pre-release is picked that nothing welcomes
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from envdoctor.errors import Unavailable
from envdoctor.solve.clasp import Control
from envdoctor.solve.policy import LEVELS, Policy
from envdoctor.solve.problem import Demand, Problem, bits_of

SHORT, LONG = "bb,inc", "usc,oll,stratify"
"""Branch and bound, a third of the time where choices are few; core-guided, large weights first, for the
rest: without strata, or by branch and bound, hard requests take minutes."""
TRIED, FEW = "2000", "4000"
"""So many conflicts are searched the first way, and the other where the whole is only a shorter way."""
EXPLAIN = ("--opt-mode=ignore",)

Rule = tuple[tuple[int, ...], tuple[int, ...]]
"""Atoms of which one holds (none: nothing may), where all literals of the second hold."""


class Program:
    """The rules of a problem over numbered atoms; `edges` gives the guards of packages' demands on others."""

    def __init__(
        self,
        problem: Problem,
        policy: Policy | None,
        guards: Sequence[int] = (),
        edges: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        self.atoms = 0
        self.rules: list[Rule] = []
        self.choices: list[Rule] = []
        """Rules of whose atoms any may hold."""
        self.costs: dict[int, list[tuple[int, int]]] = {}
        self._problem, self._edges = problem, edges or {}
        self._of: dict[tuple[object, ...], int] = {}
        self.active = {guard: self._atom() for guard in guards if guard}
        self.needs = {name: self._atom() for name in sorted(problem.masks)}
        self.picks = {
            name: {bit: self._atom() for bit in bits_of(problem.masks[name])} for name in self.needs
        }
        if self.active:
            self.choices.append((tuple(self.active.values()), ()))
        self._write_roots()
        for name, picks in self.picks.items():
            self._write_picks(name, picks, policy)
        self._write_parts()
        self._write_rows()

    def _atom(self) -> int:
        self.atoms += 1
        return self.atoms

    def _known(self, *what: object) -> int:
        """Return the atom of something, the same each time."""
        known = self._of.get(what)
        if known is None:
            known = self._of[what] = self._atom()
        return known

    def _on(self, guard: int) -> tuple[int, ...]:
        return (self.active[guard],) if guard else ()

    def _fits(self, name: str, mask: int) -> int:
        """Return the atom that says that one of some candidates is picked."""
        mask &= self._problem.masks[name]
        known = self._of.get((name, mask))
        if known is None:
            known = self._of[name, mask] = self._atom()
            self.rules += [((known,), (self.picks[name][bit],)) for bit in bits_of(mask)]
        return known

    def _unmet(self, name: str, mask: int) -> tuple[int, ...]:
        """Return the literal that says that none of some candidates is picked; none where any is one."""
        return (-self._fits(name, mask),) if self._problem.masks[name] & ~mask else ()

    def _write_roots(self) -> None:
        for root in self._problem.roots:
            on = self._on(root.guard)
            self.rules.append(((self.needs[root.name],), on))
            if unmet := self._unmet(root.name, root.mask):
                self.rules.append(((), on + unmet))
            self.rules += [((self._known(root.name, extra),), on) for extra in root.extras]
        self.rules += [((atom,), ()) for name, atom in self.needs.items() if name in self._problem.sure]
        for name, mask, guard in self._problem.bans:
            if name in self.needs and mask & self._problem.masks[name]:
                self.rules.append(((), (*self._on(guard), self._fits(name, mask))))

    def _write_picks(self, name: str, picks: Mapping[int, int], policy: Policy | None) -> None:
        need, atoms, node = self.needs[name], tuple(picks.values()), self._problem.node(name)
        self.choices.append((atoms, (need,)))
        self.rules.append(((), (need, *(-atom for atom in atoms))))
        for bit, atom in picks.items():
            if node.reserved >> bit & 1:
                self.rules.append(((), (atom, -self._known(name, "welcome", bit))))
            for level, weight in zip(LEVELS, policy.cost(node, bit), strict=True) if policy else ():
                if weight:
                    self.costs.setdefault(level, []).append((atom, weight))

    def _write_parts(self) -> None:
        """Write which candidates ask for what; parts that ask for the same of what is left are one."""
        told: dict[tuple[str, int], list[int]] = {}  # of a package's many releases most ask for the same
        numbers: dict[Rule, int] = {}
        every: list[Rule] = []
        for part in self._problem.every_part():
            asked: list[int] = []
            for demand in part.demands:
                key = part.name, id(demand)
                if key not in told:
                    told[key] = []
                    for rule in self._asked_by(part.name, demand):
                        if rule not in numbers:
                            numbers[rule] = len(every)
                            every.append(rule)
                        told[key].append(numbers[rule])
                asked += told[key]
            if not asked:
                continue
            new = (*asked,) not in self._of
            on = self._known(*asked)
            if new:
                self.rules += [(every[one][0], (on, *every[one][1])) for one in asked]
            wanted = (self._known(part.name, part.extra),) if part.extra else ()
            picks = self.picks[part.name]
            self.rules += [((on,), (picks[bit], *wanted)) for bit in bits_of(part.mask)]

    def _asked_by(self, owner: str, demand: Demand) -> Iterator[Rule]:
        """Yield the rules of what a package asks of another, but for who asks."""
        name, mask, extras, limit, _ = demand
        if name not in self.needs:
            return
        on, unmet = self._on(self._edges.get((owner, name), 0)), self._unmet(name, mask)
        there = (self.needs[name],)
        if unmet:
            yield (), on + (there if limit else ()) + unmet
        if limit:
            return
        if name not in self._problem.sure:
            yield there, on
        reserved = self._problem.node(name).reserved & mask
        if mask & (mask - 1) == 0 and reserved:
            yield (self._known(name, "welcome", reserved.bit_length() - 1),), ()
        for extra in extras:
            yield (self._known(name, extra),), ()

    def _write_rows(self) -> None:
        for nogood in self._problem.nogoods:
            there = [literal for literal in nogood.literals if literal.name in self.needs]
            if all(literal in there for literal in nogood.literals if literal.inside):
                fits = [self._fits(one.name, one.mask) * (1 if one.inside else -1) for one in there]
                self.rules.append(((), (*self._on(nogood.guard), *fits)))


class Engine:
    """clingo with a problem's rules, ready to be asked."""

    def __init__(
        self,
        problem: Problem,
        policy: Policy | None,
        guards: Sequence[int] = (),
        edges: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        told = Program(problem, policy, guards, edges)
        self.picks, self._needs, self._guards = told.picks, told.needs, told.active
        options = EXPLAIN if policy is None else ("--opt-mode=optN", "--models=0", "--configuration=handy")
        self.control = Control([*options, "--warn=none"])
        several = [(*picks.values(),) for picks in self.picks.values() if len(picks) > 1]
        apart = enumerate(several, told.atoms + 1)  # an atom is there once it is used
        self.control.add(told.choices, told.rules, apart, told.costs.items())

    def best(self, alone: bool = False) -> dict[str, int] | None:
        """Return the picked candidate of each package of a best answer, or None when there is none.

        With `alone` also None when another answer is as good, or when that takes long to tell.
        """
        told, whole = self._optimal(SHORT, TRIED, alone)
        if not whole:
            told, whole = self._optimal(LONG, FEW if alone else "umax", alone)
        return told[0] if len(told) == 1 and whole else None

    def _optimal(self, strategy: str, limit: str, alone: bool) -> tuple[list[dict[str, int]], bool]:
        """Return the first of the best answers, two with `alone`, and whether what was asked is told."""
        self.control.configure("solver", "opt_strategy", strategy)
        self.control.configure("solve", "solve_limit", limit)
        found: list[dict[str, int]] = []
        with self.control.search() as search:
            for model in search.models():
                if model.is_best:
                    found.append(self._read(model.holds))
                    if not alone or len(found) > 1:
                        return found, True
            if search.has("interrupted"):
                raise Unavailable("the solver was interrupted")
            return found, search.has("exhausted")

    def _read(self, holds: Callable[[int], bool]) -> dict[str, int]:
        there = (name for name, need in self._needs.items() if holds(need))
        return {name: next(bit for bit, atom in self.picks[name].items() if holds(atom)) for name in there}

    def clashes(self, guards: Iterable[int]) -> bool:
        """Return whether those `guards` cannot all be on together, the others off."""
        on = frozenset(guards)
        assumptions = [literal if guard in on else -literal for guard, literal in self._guards.items()]
        with self.control.search(assumptions) as search:
            return not search.has("satisfiable")
