"""Why each package is pinned where it is: who requires it, and what holds it back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from envdoctor.matrix.driver_tables import architecture_row
from envdoctor.matrix.snapshot import LIMITS
from envdoctor.matrix.snapshot import Requirement as Wanted
from envdoctor.matrix.tables.conditions import ConditionRow
from envdoctor.solve import compiled
from envdoctor.solve.goal import Goal, Picks
from envdoctor.solve.nodes import TORCH, Node
from envdoctor.solve.problem import Nogood, bits_of
from envdoctor.solve.requests import Request
from envdoctor.solve.rows import conditions_of, nogoods
from envdoctor.solve.undeclared import Undeclared, clients, undeclared
from envdoctor.solve.variants import OWN_RUNTIME, followers
from envdoctor.solve.versions import ends_below
from envdoctor.values import NamedTuple, dataclass


@dataclass(frozen=True, slots=True)
class Pin:
    """One pinned package: `index` None is the default index, else the variant whose index has it."""

    name: str
    version: str
    index: str | None
    because: tuple[str, ...]
    apart: bool = False
    """True where nobody's metadata brings it, so that an installer must be told of it."""
    labelled: bool = True
    """False where the variant's index has it without a local label."""
    built_with: tuple[str, ...] | None = None
    """What the build of one without a wheel must see beyond what it asks for; None for one with a wheel."""

    @property
    def label(self) -> str:
        """The version with its variant as a local label."""
        return f"{self.version}+{self.index}" if self.index and self.labelled else self.version


class _Edge(NamedTuple):
    """A requirement in force: who states it, of whom, and the requirement."""

    owner: str
    wanted: Wanted
    limit: bool


class Explained:
    """An answer with the requirements that are in force in it."""

    def __init__(self, goal: Goal, picks: Picks) -> None:
        self.goal, self.picks = goal, picks
        self.nodes: Mapping[str, Node] = {
            name: node for name in sorted(picks.bits) if (node := goal.context.node(name)) is not None
        }
        self._uncovered: set[tuple[str, str, str]] = set()
        self._admitted: dict[str, int] = {}
        stated = (edge for edge in self._edges() if edge.owner != edge.wanted.name)  # not its own extras
        self.edges = sorted(stated, key=lambda edge: (edge.owner, edge.wanted.name))
        self._edges_on: dict[str, list[_Edge]] = {}
        for edge in self.edges:
            self._edges_on.setdefault(edge.wanted.name, []).append(edge)
        self._same = followers(goal.context.matrix, "same")

    @cached_property
    def _rows_on(self) -> Mapping[str, Sequence[Nogood]]:
        """What the matrix forbids among the pinned packages, by each of them."""
        found: dict[str, list[Nogood]] = {}
        for row in nogoods(self.goal.context, self.picks.bits.keys()):
            for name in dict.fromkeys(literal.name for literal in row.literals):
                found.setdefault(name, []).append(row)
        return found

    @property
    def uncovered(self) -> Mapping[str, frozenset[str]]:
        """The packages that the answer requires and the facts do not cover, with the specifiers."""
        names = {name for _, name, _ in self._uncovered}
        return {n: frozenset(spec for _, name, spec in self._uncovered if name == n) for n in sorted(names)}

    @property
    def unread(self) -> Mapping[str, frozenset[str]]:
        """The packages that come in as releases of unknown requirements, with a specifier of each."""
        bits = self.picks.bits
        return {
            name: frozenset((f"=={node.version(bits[name])}",))
            for name, node in self.nodes.items()
            if node.row(bits[name]) < 0 and not node.installed >> bits[name] & 1
        }

    def _unread_notes(self) -> Iterator[str]:
        why = "what it requires is not known; it is taken as if it required nothing"
        return (f"{self.shown(name)}: {why}" for name in self.unread)

    @property
    def passed_over(self) -> Mapping[str, frozenset[str]]:
        """The packages with a newer release that only unread requirements bar, with its specifier."""
        above = ((name, self._unread_above(node, self.picks.bits[name])) for name, node in self.nodes.items())
        found = {name: {f"=={version}"} for name, version in above if version}
        for name in self._requests.keys() & self.nodes.keys():
            for needed, spec in self._unread_below(self.nodes[name], self.picks.bits[name]):
                found.setdefault(needed, set()).add(spec)
        return {name: frozenset(specs) for name, specs in found.items()}

    def notes(self) -> tuple[str, ...]:
        """Return what else is to be said: where requests stood, extras of no release, checks gone before."""
        asked = {(r.name, extra) for r in self.goal.requests if r.name in self.nodes for extra in r.extras}
        return (
            *self.goal.notes,
            *self._strange_to_the_driver(),
            *(
                f"{self.shown(name)} asks for nothing under the extra {extra}"
                for name, extra in sorted(asked)
                if not self._named(name, extra)
            ),
            *clients(self.goal.requests, self.nodes, self.picks.bits),
            *self._overridden(),
            *compiled.notes(self.nodes, self.picks.bits),
            *self._unread_notes(),
            *(
                f"{name} {self.goal.context.installed[name]} is installed and not on record: it stays,"
                " and what it requires is not known"
                for name in sorted(self.goal.context.options.held)
            ),
            *self._undated(),
        )

    def _undated(self) -> Iterator[str]:
        for name in self.goal.coverage.undated(sorted(self.nodes)) if self.goal.coverage else ():
            yield f"{name}: the index does not tell when its releases came out: none is left out as too new"

    def _strange_to_the_driver(self) -> Iterator[str]:
        """Say which card the driver does not know yet, or no longer: then no torch finds it."""
        target, driver = self.goal.context.target, self.goal.context.target.driver
        for card in target.judged_cards if driver else ():
            known = architecture_row(self.goal.context.matrix, card.capability) if card.capability else None
            if known and driver and driver.branch < known.first_branch:
                yield f"driver {driver} does not know {card}: it needs {known.first_branch} or newer"
            elif known and driver and known.last_branch and driver.branch > known.last_branch:
                yield f"driver {driver} no longer drives {card}: {known.last_branch} is the last branch"

    def _overridden(self) -> Iterator[str]:
        """Say which check of a release, made when it uses another, what was asked for does not pass."""
        for owner, name in sorted(self.goal.context.options.waived):
            if owner not in self.nodes or name not in self.nodes:
                continue
            used, bit = self.nodes[name], self.picks.bits[name]
            for wanted in self._checks(owner):
                if wanted.name == name and not used.expand(used.package.spec_mask(wanted.spec)) >> bit & 1:
                    spec = used.package.spec_text(wanted.spec)
                    yield (
                        f"{self.shown(owner)} refuses to use {self.shown(name)} (it wants {name}{spec}):"
                        " both are as asked for, they install and import"
                    )
        for identity in sorted(self.goal.context.options.waived_rows):
            row = self.goal.context.matrix.row(ConditionRow, identity)
            named = [name for name in row.when if self.goal.context.node(name)] if row else []
            if row is not None and self.nodes.keys() >= set(named):
                both = " and ".join(map(self.shown, named))
                yield f"{both}, as asked for, install and import, but: {row.cause} ({row.id})"

    def _checks(self, name: str) -> Iterable[Wanted]:
        node = self.nodes[name]
        row = node.row(self.picks.bits[name])
        return node.package.requirements(row, LIMITS) if row >= 0 else ()

    def _named(self, name: str, extra: str) -> bool:
        node = self.nodes[name]
        row = node.row(self.picks.bits[name])
        return row < 0 or extra in node.package.extras(row)

    def gaps(self) -> tuple[str, ...]:
        """Return what the answer leaves open: requirements on packages that the facts do not cover."""
        left = sorted({(name, owner) for owner, name, _ in self._uncovered})
        cards = dict.fromkeys(c.label for c in self.goal.context.target.cards if c.capability is None)
        return (
            *(f"{card}: compute capability not known, no build was judged for it" for card in cards),
            *(
                f"{self.shown(owner)} requires {name}, which is not pinned: {self._why(name)}"
                for name, owner in left
            ),
        )

    def _why(self, name: str) -> str:
        coverage = self.goal.coverage
        return coverage.why(name) if coverage else "the package facts do not cover it"

    def pins(self) -> tuple[Pin, ...]:
        """Return every package with its reasons, by name."""
        return tuple(self._pin(name) for name in self.nodes)

    def shown(self, name: str) -> str:
        """Return `vllm 0.32.0`."""
        return f"{name} {self.nodes[name].version(self.picks.bits[name])}"

    def _pin(self, name: str) -> Pin:
        node, bit = self.nodes[name], self.picks.bits[name]
        reasons = [
            *self._asked(name),
            *self._required(name),
            *self._beyond_target(node, bit),
            *self._beyond_python(node, bit),
            *self._beyond_reading(node, bit),
            *self._held_back(node, bit),
            *self._avoids(node, bit),
        ]
        brought = name in self._requests or any(not edge.limit for edge in self._edges_on.get(name, ()))
        apart = bool(self._undeclared_of(name)) and not brought
        index = self._index if name == TORCH or name in self._same else None
        labelled = name == TORCH or self.goal.context.target.platform.arch != "aarch64"
        seen = node.seen_by_build(bit)
        return Pin(name, node.version(bit), index, tuple(reasons), apart, labelled, seen)

    @cached_property
    def _index(self) -> str | None:
        """The variant whose index has torch and its companions; None for the default index.

        An installer takes a CPU build for the CUDA build of its release: then the default's CUDA is named.
        """
        node = self.nodes.get(TORCH)
        if node is None or node.builds is None:
            return None
        build = node.builds[self.picks.bits[TORCH]]
        version, _, label = self.goal.context.installed.get(TORCH, "").partition("+")
        taken = build.variant is None and version == build.version and label and not build.answers(label)
        return build.cuda.tag if taken and build.cuda else build.variant

    def _asked(self, name: str) -> Iterator[str]:
        for request in self._requests.get(name, ()):
            yield f"asked for as {request}" if str(request) != name else "asked for"
        for one in self.goal.context.options.constraints:
            if one.name == name and one.spec:
                yield f"held to {one.spec} by {one.source}"
        installed = self.goal.context.installed.get(name)
        if self.goal.least_change and installed:
            same = self.nodes[name].installed >> self.picks.bits[name] & 1
            yield "installed" if same else f"installed is {installed}"

    def _required(self, name: str) -> Iterator[str]:
        for edge in self._edges_on.get(name, ()):
            spec = self.nodes[name].package.spec_text(edge.wanted.spec)
            verb = "works only with" if edge.limit else "requires"
            yield f"{self.shown(edge.owner)} {verb} {spec or 'it'}"
        for owner, one in self._undeclared_of(name):
            yield f"{self.shown(owner)} needs {one.spec or 'it'}, which its metadata does not say ({one.row})"

    def _undeclared_of(self, name: str) -> Sequence[tuple[str, Undeclared]]:
        """Return who needs a package beyond its metadata, with what of it."""
        return self._undeclared.get(name, ())

    @cached_property
    def _undeclared(self) -> Mapping[str, Sequence[tuple[str, Undeclared]]]:
        found: dict[str, list[tuple[str, Undeclared]]] = {}
        for owner, node in self.nodes.items():
            for one in undeclared(node):
                if one.owners >> self.picks.bits[owner] & 1:
                    found.setdefault(one.name, []).append((owner, one))
        return found

    @cached_property
    def _requests(self) -> Mapping[str, Sequence[Request]]:
        found: dict[str, list[Request]] = {}
        for request in self.goal.requests:
            found.setdefault(request.name, []).append(request)
        return found

    def _edges(self) -> Iterator[_Edge]:
        extras: dict[str, set[str]] = {}
        for request in self.goal.requests:
            extras.setdefault(request.name, set()).update(request.extras)
        todo = [(name, extra) for name in self.nodes for extra in ("", *sorted(extras.get(name, ())))]
        seen = set(todo)
        while todo:
            name, extra = todo.pop()
            for wanted, limit in self._requirements(name, self.picks.bits[name], extra):
                if wanted.name not in self.nodes:
                    there = self.goal.context.is_there(wanted.name)
                    if not limit and not there and self.goal.context.node(wanted.name) is None:
                        package = self.goal.context.snapshot.package(wanted.name)
                        spec = package.spec_text(wanted.spec) if package else ""
                        self._uncovered.add((name, wanted.name, spec))
                    continue
                yield _Edge(name, wanted, limit)
                for one in () if limit else wanted.extras:
                    if (wanted.name, one) not in seen:
                        seen.add((wanted.name, one))
                        todo.append((wanted.name, one))

    def _requirements(self, name: str, bit: int, extra: str) -> Iterator[tuple[Wanted, bool]]:
        node = self.nodes[name]
        row = node.row(bit)
        if row < 0:
            return
        own_runtime = node.variant(bit) is not None
        for limit, key in ((False, extra), (True, LIMITS)):
            for wanted in node.package.requirements(row, key) if not limit or not extra else ():
                runtime = own_runtime and wanted.name.startswith(OWN_RUNTIME)
                waived = limit and (name, wanted.name) in self.goal.context.options.waived
                if self.goal.context.marker_holds(wanted.marker) and not runtime and not waived:
                    yield wanted, limit

    def _beyond_target(self, node: Node, bit: int) -> Iterator[str]:
        """Say which card or driver bars a newer release that any installer would take."""
        judges = self.goal.context.target.judges_hardware
        if not judges or not any(ban.what in ("card", "kernels", "driver") for ban in node.bans):
            return
        within = node.installable
        for request in self._requests.get(node.name, ()):
            within &= node.admits(request.spec)
        place = node.places[within.bit_length() - 1] if within else -1
        builds = node.expand(1 << place) if place > node.places[bit] else 0
        if not builds or builds & node.allowed:
            return
        bans = [ban for ban in node.bans if ban.mask & builds]
        told = {ban.subject for ban in bans if ban.what in ("card", "kernels")}
        told |= {f"driver {ban.subject}" for ban in bans if ban.what == "driver"}
        if told:
            why = f"{' and '.join(sorted(told))} cannot run it"
            if node.builds and not any(node.builds[one].cuda for one in bits_of(builds)):
                why = (
                    f"only a build without GPU code is known of it for {self.goal.context.target.platform.os}"
                )
            yield f"not {node.package.versions[place]}: {why}"

    def _beyond_python(self, node: Node, bit: int) -> Iterator[str]:
        """Say which newer release that was asked for takes no Python as new as the target's.

        Not every installer heeds that.
        """
        if node.name not in self._requests:
            return
        newer = sum(ban.mask for ban in node.bans if ban.what == "python")
        for ban in node.bans:
            newer &= ~ban.mask if ban.what in ("yanked", "prerelease", "newer") else -1
        for request in self._requests[node.name]:
            newer &= node.admits(request.spec)
        place = node.places[newer.bit_length() - 1] if newer else -1
        if place > node.places[bit]:
            python = ".".join(map(str, self.goal.context.target.python))
            told = {text: map(str.strip, text.split(",")) for text in node.pythons(place)}
            bounds = {text for text, clauses in told.items() if any(ends_below(c, python) for c in clauses)}
            if bounds:
                yield f"not {node.package.versions[place]}: it needs Python {' or '.join(sorted(bounds))}"

    def _beyond_reading(self, node: Node, bit: int) -> Iterator[str]:
        """Say which newer release would do as far as is known, but that nobody read what it requires."""
        if version := self._unread_above(node, bit):
            yield f"not {version}: what it requires is not known"

    def _unread_above(self, node: Node, bit: int) -> str:
        """Return the newest release that only its unread requirements bar; "" where none is newer."""
        newer = self._listed(node) & ~node.reserved if node.package.unread else 0
        for request in self._requests.get(node.name, ()) if newer else ():
            newer &= node.admits(request.spec)
        for ban in node.bans if newer else ():
            newer &= ban.mask if ban.what == "unread" else ~ban.mask
        place = node.places[newer.bit_length() - 1] if newer else -1
        if place <= node.places[bit] or not any(ban.what == "unread" for ban in node.bans):
            return ""
        return node.package.versions[place]

    def _unread_below(self, node: Node, bit: int) -> Iterator[tuple[str, str]]:
        """Give what the newest release asked for requires, where all that it admits is unread."""
        newer = self._listed(node) & ~node.reserved
        for request in self._requests[node.name]:
            newer &= node.admits(request.spec)
        for ban in node.bans:
            newer &= ~ban.mask
        newest = newer.bit_length() - 1
        for wanted, limit in self._requirements(node.name, newest, "") if newest > bit else ():
            other = self.goal.context.node(wanted.name)
            if other is None or limit:
                continue
            spec = other.package.spec_text(wanted.spec)
            admitted, unread = other.admits(spec), 0
            for ban in other.bans:
                if ban.what == "unread":
                    unread |= ban.mask
                else:
                    admitted &= ~ban.mask
            if admitted and not admitted & ~unread:
                yield wanted.name, spec

    def _held_back(self, node: Node, bit: int) -> Iterator[str]:
        """Say why a package is not at the newest that its request, if there is one, and the target admit.

        Of what was not asked for at the newest that the requirements listed admit.
        """
        asked = self.picks.policy.asked.get(node.name)
        possible = node.allowed & ~node.reserved & self._listed(node) if asked is None else asked
        newest = possible.bit_length() - 1
        if newest <= bit or node.places[newest] == node.places[bit]:
            return
        if asked is None and node.name.startswith(OWN_RUNTIME):
            return
        label = node.builds[newest].label if node.builds else node.version(newest)
        blockers = list(dict.fromkeys(self._blockers(node, newest)))
        if blockers or not any(self._avoids(node, bit)):
            yield f"not {label}: {'; '.join(blockers[:4]) or self._weighed(node, bit, newest)}"

    def _listed(self, node: Node) -> int:
        """Return the candidates that the requirements listed of a package admit."""
        if node.name not in self._admitted:
            self._admitted[node.name] = self._admitted_by_all(node)
        return self._admitted[node.name]

    def _admitted_by_all(self, node: Node) -> int:
        mask = node.all
        for edge in self._edges_on.get(node.name, ()):
            mask &= node.expand(node.package.spec_mask(edge.wanted.spec))
        for _, one in self._undeclared_of(node.name):
            mask &= one.mask
        return mask

    def _weighed(self, node: Node, bit: int, newest: int) -> str:
        """Say what counted more where nothing forbids the newest."""
        if node.variant(newest) is not None and node.variant(bit) is None:
            return (
                "for this target it lies on PyTorch's own index alone, and the default index serves as well"
            )
        if node.name in self.picks.policy.asked:
            return "it cannot be combined with the other newest releases asked for"
        return "it would hold back what was asked for, or more of the rest"

    def _avoids(self, node: Node, bit: int) -> Iterator[str]:
        """Say what nothing forbids and is avoided: the newest that a doubt keeps from being chosen."""
        for one in self.goal.avoided:
            *others, lost = one.literals
            if lost.name == node.name and lost.mask >> bit and all(o.holds(self.picks.bits) for o in others):
                yield f"not newer: {one.told}"

    def _blockers(self, node: Node, newest: int) -> Iterator[str]:
        bits = self.picks.bits
        for edge in self._barring(node, newest):
            verb = "works only with" if edge.limit else "requires"
            spec = node.package.spec_text(edge.wanted.spec)
            yield f"{self.shown(edge.owner)} {verb} {node.name}{spec}"
        told = list(self._requirements(node.name, newest, ""))
        yield from filter(None, (self._gap(wanted) for wanted, limit in told if not limit))
        for wanted, limit in told:
            other = self.nodes.get(wanted.name)
            if other is None or self._follows(wanted.name, node.name) or (not limit and self._gap(wanted)):
                continue
            meets = other.expand(other.package.spec_mask(wanted.spec))
            if not meets >> bits[wanted.name] & 1:
                spec = other.package.spec_text(wanted.spec)
                verb = "works only with" if limit else "requires"
                yield f"it {verb} {wanted.name}{spec}{self._further(other, meets, node.name)}"
        yield from self._broken_rows(node, newest)
        for owner, one in self._undeclared_of(node.name):
            if not one.mask >> newest & 1:
                yield f"{self.shown(owner)} needs {node.name}{one.spec} ({one.row})"

    def _further(self, node: Node, meets: int, owner: str) -> str:
        """Say what else bars the newest that a requirement of `owner` admits of what was not asked for."""
        newest = (meets & node.allowed).bit_length() - 1
        if node.name in self._requests or newest < 0:
            return ""
        edges = (edge for edge in self._barring(node, newest) if edge.owner != owner and not edge.limit)
        told = [f"{self.shown(e.owner)} requires {node.package.spec_text(e.wanted.spec)}" for e in edges]
        told += self._broken_rows(node, newest, owner)
        return f", and {told[0]}" if told else ""

    def _broken_rows(self, node: Node, newest: int, owner: str = "") -> Iterator[str]:
        """Yield what the matrix forbids of a candidate beside the pins, but for what it says of `owner`."""
        bits = {**self.picks.bits, node.name: newest}
        for row in self._rows_on.get(node.name, ()):
            if all(one.holds(bits) for one in row.literals) and owner not in {o.name for o in row.literals}:
                when = conditions_of(self.goal.context, row.row)
                pair = [f"{key} {spec}" for key, spec in when.items()]
                others = (one.name for one in row.literals if one.inside and one.name != node.name)
                built = [node.shown(newest), *map(self.shown, others)]
                yield f"{' with '.join(pair or built)} does not work ({row.row})"

    def _barring(self, node: Node, newest: int) -> Iterator[_Edge]:
        """Yield the requirements in force that the newest does not meet."""
        for edge in self._edges_on.get(node.name, ()):
            mask = node.package.spec_mask(edge.wanted.spec)
            if mask != -1 and not node.expand(mask) >> newest & 1:
                yield edge

    def _follows(self, name: str, owner: str) -> bool:
        """True when nobody but `owner` speaks of a package, so that it would move along."""
        asked = any(request.name == name for request in self.goal.requests)
        return not asked and all(edge.owner == owner for edge in self._edges_on.get(name, ()))

    def _gap(self, wanted: Wanted) -> str:
        """Say so when nothing that installs on the target meets a requirement, or nothing that was read."""
        node = self.goal.context.node(wanted.name)
        meets = node.expand(node.package.spec_mask(wanted.spec)) if node is not None else 0
        if node is None or meets & node.allowed or self.goal.context.is_there(wanted.name):
            return ""
        unread = any(ban.mask & meets for ban in node.bans if ban.what == "unread")
        why = "what that requires is not known" if unread else "there is none for this target"
        return f"it requires {wanted.name}{node.package.spec_text(wanted.spec)}, and {why}"
