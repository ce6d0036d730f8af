"""What no metadata forbids and was never meant together: found in an answer, and avoided where that can be.

Five kinds of evidence, strongest first. A release imports a name that another's release lacks (read from
the wheels). Two builds of one code lie in one folder in unlike releases. A release would be compiled, though
its project builds wheels. A later release of the same
package set an upper bound below what is chosen: it was found not to work. A package was superseded long
before the other's major version came, so that its authors cannot have tried. None of them proves a failure,
so that none of them makes a conflict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from envdoctor.matrix.majors import first_untried, is_open, newer_finals, superseded_on
from envdoctor.matrix.snapshot import Requirement as Wanted
from envdoctor.matrix.snapshot import Snapshot
from envdoctor.solve.compiled import compiled, shown_compiled
from envdoctor.solve.nodes import TORCH, Context, Node
from envdoctor.solve.one_folder import overlaid
from envdoctor.solve.problem import Literal, Nogood, bits_of
from envdoctor.solve.ready_wheels import FLASH_ATTN, rows_for, versions_of
from envdoctor.solve.variants import OWN_RUNTIME
from envdoctor.solve.versions import Key, version_key
from envdoctor.values import cached_property

LATER = 60
"""So many later releases of a package are asked for a bound that they added."""
ROW = "DOUBT"
IMPORTED = "DOUBT-IMPORT"
"""The row of a doubt that is read from the wheels."""


def doubts(context: Context, bits: Mapping[str, int]) -> list[Nogood]:
    """Return what the picks of an answer (by name) should not combine, each with its reason.

    Of two releases that a third one names by their numbers nothing is doubted: its authors ran them together.
    """
    nodes = {name: node for name in sorted(bits) if (node := context.node(name)) is not None}
    found = [*_of_imports(context, nodes, bits), *_of_edges(context, nodes, bits)]
    if found:
        together = [*_named_together(context, nodes, bits)]
        found = [
            one for one in found if not any({lit.name for lit in one.literals} <= names for names in together)
        ]
    found += [*_of_builds(context, nodes, bits), *_of_sources(nodes, bits)]
    return [*found, *_of_one_folder(context, nodes, bits), *_of_overrides(context, nodes, bits)]


def _named_together(
    context: Context, nodes: Mapping[str, Node], bits: Mapping[str, int]
) -> Iterator[frozenset[str]]:
    """Yield the packages that one release of the answer requires in one release each."""
    for name, node in nodes.items():
        asked = [one for one in _requirements(context, node, node.places[bits[name]]) if one.name in nodes]
        exact = frozenset(o.name for o in asked if _is_exact(nodes[o.name].package.spec_text(o.spec)))
        if len(exact) > 1:
            yield exact


def _is_exact(specifier: str) -> bool:
    return specifier.startswith("==") and "*" not in specifier


def weighs(doubt: Nogood, asked: Collection[str]) -> bool:
    """True when a doubt may make what was asked for staler: it is of that itself, or read from the wheels.

    Whoever asks for neither package of a pair gets it from releases whose authors chose it.
    """
    return doubt.row == IMPORTED or any(literal.name in asked for literal in doubt.literals)


def _nogood(owner: Node, theirs: int, other: Node, lost: int, told: str, row: str = ROW) -> Nogood:
    return Nogood((Literal(owner.name, theirs), Literal(other.name, lost)), row, told=told)


def _of_imports(context: Context, nodes: Mapping[str, Node], bits: Mapping[str, int]) -> Iterator[Nogood]:
    facts = context.matrix.generated("imports").get("facts", {})
    keys: dict[str, Key] = {}
    for importer in nodes:
        for line in facts[importer].split("\n") if importer in facts else ():
            provider, spans, what, lacking = line.split("\t")
            if provider not in nodes:
                continue
            for name in (importer, provider):
                if name not in keys:
                    keys[name] = version_key(nodes[name].version(bits[name]))
            if _lies(keys[provider], lacking) and _lies(keys[importer], spans):
                owner, other = nodes[importer], nodes[provider]
                theirs, lost = _between(owner, spans), _between(other, lacking)
                told = (
                    f"{owner.shown(bits[importer])} imports {what}, which {other.shown(bits[provider])} lacks"
                )
                yield _nogood(owner, theirs, other, lost, told, IMPORTED)


def _of_builds(context: Context, nodes: Mapping[str, Node], bits: Mapping[str, int]) -> Iterator[Nogood]:
    """Yield what would be compiled for an hour, though beside another torch it need not be."""
    if FLASH_ATTN not in nodes or TORCH not in nodes:
        return
    node, torch = nodes[FLASH_ATTN], nodes[TORCH]
    version, rows = node.version(bits[FLASH_ATTN]), rows_for(context.matrix, context.target)
    row = next((one for one in rows if version in one.versions), None)
    fits = torch.fitting(row) if row else 0
    if rows and not fits >> bits[TORCH] & 1:
        alike = versions_of(node.package, row) if row else 1 << node.places[bits[FLASH_ATTN]]
        beside = torch.shown(bits[TORCH])
        told = f"{FLASH_ATTN} {version} has no ready wheel for {beside}: it would be compiled"
        yield _nogood(node, node.expand(alike), torch, torch.all & ~fits, told)


def _of_sources(nodes: Mapping[str, Node], bits: Mapping[str, int]) -> Iterator[Nogood]:
    for name, node in nodes.items():
        lost = compiled(node)
        if lost >> bits[name] & 1:
            yield Nogood((Literal(name, lost),), ROW, told=shown_compiled(node, bits[name]))


def _of_one_folder(context: Context, nodes: Mapping[str, Node], bits: Mapping[str, int]) -> Iterator[Nogood]:
    for one, other, place in overlaid(context, nodes, bits):
        both = f"{one.shown(bits[one.name])} and {other.shown(bits[other.name])}"
        lost = other.all & ~other.expand(1 << place)
        yield _nogood(one, 1 << bits[one.name], other, lost, f"{both} lay their files in one folder")


def _of_overrides(context: Context, nodes: Mapping[str, Node], bits: Mapping[str, int]) -> Iterator[Nogood]:
    """Yield what an override sets aside: it was meant for some requirements, and stands in place of all."""
    over = nodes.keys() & {one.name for one in context.options.overrides}
    for name, node in nodes.items() if over else ():
        plain = Snapshot.package(context.snapshot, name)
        row = plain.row_of(node.places[bits[name]]) if plain else -1
        for wanted in plain.requirements(row) if plain and row >= 0 else ():
            told = Snapshot.package(context.snapshot, wanted.name) if wanted.name in over else None
            if told is None or not context.marker_holds(wanted.marker):
                continue
            other, mask = nodes[wanted.name], told.spec_mask(wanted.spec)
            if not mask >> other.places[bits[wanted.name]] & 1:
                asks = f"{node.shown(bits[name])} requires {wanted.name}{told.spec_text(wanted.spec)}"
                lost = other.all & ~other.expand(mask)
                yield _nogood(node, 1 << bits[name], other, lost, f"{asks}, which an override sets aside")


def _lies(key: Key, spans: str) -> bool:
    """True when a version lies in one of the spans, `1.0:1.4 2.0:` (no bound: none)."""
    for span in spans.split(" "):
        low, _, high = span.partition(":")
        if not (high and key > version_key(high)) and not (low and key < version_key(low)):
            return True
    return False


def _between(node: Node, spans: str) -> int:
    """Return the candidates whose version lies in one of the spans."""
    return sum(1 << bit for bit in range(len(node.places)) if _lies(version_key(node.version(bit)), spans))


def _of_edges(context: Context, nodes: Mapping[str, Node], bits: Mapping[str, int]) -> Iterator[Nogood]:
    for name, node in nodes.items():
        place = node.places[bits[name]]
        history = _History(node, place)
        if history.superseded is None:
            continue
        for wanted in _requirements(context, node, place):
            other = None if wanted.name.startswith(OWN_RUNTIME) else nodes.get(wanted.name)
            if other is None or not is_open(other.package.spec_text(wanted.spec)):
                continue
            found = history.later_bound(other, bits[wanted.name]) or history.untried(other, bits[wanted.name])
            if found is not None:
                yield found


def _requirements(context: Context, node: Node, place: int) -> Iterator[Wanted]:
    row = node.package.row_of(place)
    for wanted in node.package.requirements(row) if row >= 0 else ():
        if context.marker_holds(wanted.marker):
            yield wanted


class _History:
    """What came after the chosen release of a package."""

    def __init__(self, node: Node, place: int) -> None:
        """Find the final releases that are newer, and the day on which the first of them came."""
        self.node, self.place = node, place
        self.superseded = superseded_on(node.package, place)
        self._rows: dict[int, dict[str, Wanted]] = {}

    @cached_property
    def _later(self) -> list[int]:
        return list(islice(bits_of(newer_finals(self.node.package, self.place)), LATER))

    def later_bound(self, other: Node, bit: int) -> Nogood | None:
        """Return that a later release of this package bars the other's choice from above, if one does.

        A later release that admits it, and came out when it was there, speaks for it.
        """
        chosen = other.places[bit]
        for later in self._later:
            wanted = self._wanted(later).get(other.name)
            if wanted is None:
                continue
            mask = other.package.spec_mask(wanted.spec)
            if mask >> chosen & 1:
                if self.node.package.days[later] >= other.package.days[chosen]:
                    return None
            elif mask and mask.bit_length() <= chosen and not _exact(other, wanted):
                return self._barred(later, other, wanted, mask.bit_length())
        return None

    def _barred(self, later: int, other: Node, wanted: Wanted, first: int) -> Nogood:
        package = self.node.package
        theirs = self.node.expand((1 << later) - 1)
        lost = other.expand(other.package.all & ~((1 << first) - 1))
        told = (
            f"{package.name} {package.versions[later]}, which came after {package.versions[self.place]}, "
            f"requires {other.name}{other.package.spec_text(wanted.spec)}"
        )
        return _nogood(self.node, theirs, other, lost, told)

    def _wanted(self, place: int) -> dict[str, Wanted]:
        row = self.node.package.row_of(place)
        if row not in self._rows:
            context = self.node.context
            self._rows[row] = {one.name: one for one in _requirements(context, self.node, place)}
        return self._rows[row]

    def untried(self, other: Node, bit: int) -> Nogood | None:
        """Return that the other's major version came long after this release was superseded, if it did.

        A day is weaker evidence than a wheel: where all that is older would be compiled, it tells nothing.
        """
        major = first_untried(other.package.majors, other.version(bit), self.superseded or 0)
        if major is None:
            return None
        lost = other.expand(other.package.all & ~((1 << other.package.majors[major][1]) - 1))
        if not other.expand(other.package.finals) & ~lost & ~compiled(other):
            return None
        package = self.node.package
        told = (
            f"{package.name} {package.versions[self.place]} was superseded long before {other.name} {major} "
            "came, so that nothing tells that they work together"
        )
        return _nogood(self.node, self.node.expand((2 << self.place) - 1), other, lost, told)


def _exact(other: Node, wanted: Wanted) -> bool:
    return "==" in other.package.spec_text(wanted.spec)
