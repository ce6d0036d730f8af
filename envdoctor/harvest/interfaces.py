"""Which modules, names, members and arguments each release of a library has: read from its files' syntax.

Nothing is imported or run. What all scanned releases share is left out; the rest is written as ranges of
releases, so that "cannot import name X from Y" can be answered with the versions that have it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from envdoctor.harvest.module_syntax import MAKER, OPEN, ModuleFacts, read_module, with_stub
from envdoctor.matrix.interface_ranges import places_of, spans_of
from envdoctor.matrix.interface_records import ancestors

SCHEMA = "envdoctor.interfaces/2"
UNLISTED = "*"
"""Stands for the names that a package exports without listing them in its own file."""
SOURCES = (".py", ".pyi")
"""How files end that are read: a stub tells what is compiled, or made when its module is loaded."""
_EMPTY_BASES = frozenset(("object", "ABC", "abc.ABC", "Protocol", "Generic", "typing.Protocol", ""))
DEEPEST = 12
"""How many modules a name or a base class is followed through."""
_NOBODYS = frozenset(
    ("tests", "test", "testing", "_testing", "commands", "examples", "benchmarks", "_vendor")
)
_PUBLIC_TESTING = ("numpy.testing", "pandas.testing", "torch.testing")


@dataclass(frozen=True, slots=True)
class Interface:
    """What one release offers and asks for.

    Module names, `module:name` pairs, `Callable.name:keyword` and `Class:member` pairs; and, as
    `module:name` pairs, what its modules import from other packages without guarding the import, as
    `method:keyword` pairs what its classes give the methods that they call on `self`; and the environment
    variables that it asks for.
    """

    modules: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    keywords: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()
    bases: frozenset[str] = frozenset()
    """`Class:base` pairs of what stands in the package."""
    foreign: frozenset[str] = frozenset()
    """`module:name` pairs of what modules import from other packages."""


Read = dict[tuple[str, bytes], ModuleFacts | None]
"""What was told of files by path and content: most files outlive a release."""


def scan_interface(files: Mapping[str, bytes | None], root: str, read: Read | None = None) -> Interface:
    """Return the interface of the package `root` from a release's files by path (None: known only by name).

    Tests and commands are nobody's interface and are left out. `read` carries on from release to release.
    """
    known = {} if read is None else read
    modules: dict[str, ModuleFacts | None] = {}
    for path, source in sorted(files.items(), key=lambda item: item[0]):
        module = module_of(path)
        if module is None or not f"{module}.".startswith(f"{root}.") or _is_internal(module):
            continue
        facts = None if source is None else _facts_of(path, module, source, known)
        before = modules.get(module)
        modules[module] = with_stub(before, facts) if before and facts else before or facts
    return _interface(modules)


def _facts_of(path: str, module: str, source: bytes, known: Read) -> ModuleFacts | None:
    key = (path, hashlib.sha256(source).digest())
    if key not in known:
        known[key] = read_module(module, path.endswith(("__init__.py", "__init__.pyi")), source)
    return known[key]


def _interface(modules: Mapping[str, ModuleFacts | None]) -> Interface:
    known = {name: facts for name, facts in modules.items() if facts}
    release = _Release(known, partly=len(known) < len(modules))
    read = release.modules
    own = {module: facts for module, facts in read.items() if not is_stand_in(module)}
    return Interface(
        frozenset(modules),
        frozenset(f"{module}:{name}" for module in own for name in release.names(module)),
        frozenset(keyword for module in own for keyword in release.keywords(module)),
        frozenset(asked for facts in read.values() for asked in facts.imports),
        _of_classes(own, release.members),
        frozenset(given for facts in own.values() for given in facts.passed),
        frozenset(name for facts in own.values() for name in facts.variables),
        _of_classes(own, release.bases),
        frozenset(f"{module}:{name}" for module, facts in own.items() for name in facts.foreign),
    )


def _of_classes(
    modules: Mapping[str, ModuleFacts], told: Callable[[str, str], Iterator[str]]
) -> frozenset[str]:
    """Return `Class:entry` pairs of what is told of each class of some modules."""
    return frozenset(
        f"{name}:{entry}"
        for module, facts in modules.items()
        for name in facts.classes
        for entry in told(module, name)
    )


def module_of(path: str) -> str | None:
    """Return `a.b` for `a/b.py`, its stub `a/b.pyi` or `a/b/__init__.py`; None for other files."""
    if not path.endswith(SOURCES):
        return None
    parts = path.removesuffix("i").removesuffix(".py").split("/")
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts) if parts and all(part.isidentifier() for part in parts) else None


def is_stand_in(module: str) -> bool:
    """True for a module of classes that stand in for those of a missing package, and take anything."""
    return module.rpartition(".")[2].startswith("dummy_")


def _is_internal(module: str) -> bool:
    public = module.startswith(_PUBLIC_TESTING) and ".tests" not in module
    return not public and any(part in _NOBODYS for part in module.split("."))


class _Release:
    """The modules of one release, with names and classes followed from one to the other."""

    def __init__(self, modules: Mapping[str, ModuleFacts], partly: bool) -> None:
        self.modules = modules
        self.partly = partly
        self._names: dict[str, frozenset[str]] = {}
        self._made: dict[tuple[str, str], frozenset[str]] = {}

    def names(self, module: str) -> frozenset[str]:
        """Return what can be imported from a module; star imports are followed within the package."""
        if module not in self._names:
            self._names[module] = frozenset()  # of modules that import each other, one waits for the other
            facts = self.modules[module]
            found = {*facts.bound}
            for star in facts.stars:
                found |= self._starred(star)
            if facts.spread:
                found |= self._listed_below(module)
            if facts.hidden or (facts.spread and self.partly):
                found.add(UNLISTED)
            self._names[module] = frozenset(found)
        return self._names[module]

    def _listed_below(self, module: str) -> set[str]:
        """Return what the modules of a package list, where the package exports it all."""
        below = (f for name, f in self.modules.items() if name.startswith(f"{module}."))
        return {name for facts in below for name in facts.listed or ()}

    def _starred(self, module: str) -> frozenset[str]:
        facts = self.modules.get(module)
        if facts is None:
            return frozenset()
        if facts.listed is not None:
            return frozenset(facts.listed)
        return frozenset(name for name in self.names(module) if not name.startswith("_"))

    def members(self, module: str, name: str, depth: int = 0) -> Iterator[str]:
        """Yield a class's members, inherited ones too as far as its bases stand in the package."""
        facts = self.modules[module].classes[name]
        yield from facts.members
        if MAKER in facts.members:
            yield OPEN
        for base in facts.bases if depth < DEEPEST else ():
            found = self._find_class(module, base)
            if found and found != (module, name):
                yield from self.members(*found, depth + 1)
            elif not found and base not in _EMPTY_BASES:
                yield OPEN

    def bases(self, module: str, name: str) -> Iterator[str]:
        """Yield the names of the classes in the package that a class derives from by itself."""
        found = (self._find_class(module, base) for base in self.modules[module].classes[name].bases)
        yield from (one[1] for one in found if one and one[1] != name)

    def keywords(self, module: str) -> Iterator[str]:
        """Yield the arguments of a module's callables; those of a class that is made as its base is, too."""
        facts = self.modules[module]
        yield from facts.keywords
        for name, told in facts.classes.items():
            if "__init__" not in told.members:
                yield from (f"{name}.__init__:{one}" for one in self._made_of(module, name))

    def _made_of(self, module: str, name: str, depth: int = 0) -> frozenset[str]:
        """Return the arguments of which a class is made: the fields of its own, and what its bases take."""
        if (module, name) not in self._made:
            self._made[module, name] = frozenset()  # a circle ends here
            facts = self.modules[module]
            prefix = f"{name}.__init__:"
            found = {one.removeprefix(prefix) for one in facts.keywords if one.startswith(prefix)}
            own = "__init__" in facts.classes[name].members
            for base in facts.classes[name].bases if not own and depth < DEEPEST else ():
                above = self._find_class(module, base)
                found |= self._made_of(*above, depth + 1) if above else set()
                found |= {OPEN} if not above and base not in _EMPTY_BASES else set()
            self._made[module, name] = frozenset(found)
        return self._made[module, name]

    def _find_class(self, module: str, dotted: str, depth: int = 0) -> tuple[str, str] | None:
        """Return module and name of the class that `dotted` means in a module."""
        facts = self.modules.get(module)
        if facts is None or depth > DEEPEST:
            return None
        first, _, rest = dotted.partition(".")
        if not rest and first in facts.classes:
            return module, first
        origin = facts.bound.get(first, "")
        if not origin:
            found = (self._find_class(s, dotted, depth + 1) for s in facts.stars if first in self._starred(s))
            return next((one for one in found if one), None)
        source, _, name = origin.partition(":")
        if rest:
            return self._find_class(f"{source}.{name}" if name else source, rest, depth + 1)
        return self._find_class(source, name, depth + 1)


def without_inner(interface: Interface, inner: tuple[str, ...]) -> Interface:
    """Return an interface without the names in `inner` packages, and without what only they define."""
    if not inner:
        return interface
    names = frozenset(name for name in interface.names if not name.startswith(inner))
    known = {name.rpartition(":")[2] for name in names}
    return Interface(
        interface.modules,
        names,
        frozenset(one for one in interface.keywords if _definer(one) in known),
        frozenset(one for one in interface.imports if not one.startswith(inner)),
        frozenset(one for one in interface.members if _definer(one) in known),
        interface.passed,
        interface.variables,
        frozenset(one for one in interface.bases if _definer(one) in known),
        interface.foreign,
    )


def _staying(
    every: Mapping[str, Mapping[str, list[list[int]]]],
    told: Mapping[str, Mapping[str, list[list[int]]]],
    groups: Mapping[str, str],
) -> dict[str, dict[str, list[list[int]]]]:
    """Return, by group, when any owner has what ends at one, where only owners left untold have it longer."""
    ever: dict[str, dict[str, set[int]]] = {}
    shown: dict[str, dict[str, set[int]]] = {}
    for owner, entries in told.items():
        for name, spans in entries.items():
            shown.setdefault(groups[owner], {}).setdefault(name, set()).update(places_of(spans))
    for owner, entries in every.items():
        asked = shown.get(groups[owner], {})
        for name, spans in entries.items():
            if name in asked:
                ever.setdefault(groups[owner], {}).setdefault(name, set()).update(places_of(spans))
    longer = {
        group: {name: spans_of(places) for name, places in names.items() if places != shown[group][name]}
        for group, names in ever.items()
    }
    return {group: names for group, names in longer.items() if names}


def _definer(entry: str) -> str:
    return entry.partition(":")[0].partition(".")[0]


def encode(releases: Mapping[str, Interface], root: str = "") -> dict[str, Any]:
    """Return the interfaces of a library's releases (oldest first) as ranges; constant entries left out.

    A keyword or member is left out when it is as old as its owner and gone only with it. What the package
    `root` itself exports is kept whole: whatever moves ends there.
    """
    versions = list(releases)
    whole = [[0, len(versions) - 1]]
    modules = _ranges([releases[v].modules for v in versions])
    owned = frozenset().union(*(releases[v].names for v in versions))
    names = _with_unlisted(_ranges([releases[v].names | releases[v].foreign & owned for v in versions]))
    keywords = _grouped(_ranges([releases[v].keywords for v in versions]))
    imports = _ranges([releases[v].imports for v in versions])
    members = _grouped(_ranges([releases[v].members for v in versions]))
    passed = _ranges([releases[v].passed for v in versions])
    variables = _ranges([releases[v].variables for v in versions])
    bases = _grouped(_ranges([releases[v].bases for v in versions]))
    shown = {n: spans for n, spans in names.items() if spans != whole or n.rpartition(":")[0] == root}
    taken = {owner: kept for owner, spans in keywords.items() if (kept := _changing(spans, whole))}
    told = {owner: kept for owner, spans in members.items() if (kept := _changing(spans, whole))}
    methods = {owner: owner.rpartition(".")[2] for owner in keywords}
    return {
        "versions": versions,
        "modules": {module: spans for module, spans in modules.items() if spans != whole},
        "names": _grouped(shown),
        "imports": _grouped(imports),
        "keywords": taken | _own_anyway(keywords, taken, bases),
        "members": told,
        "stays": _staying(members, told, dict.fromkeys(members, "")) | _staying(keywords, taken, methods),
        "passed": _grouped({given: spans for given, spans in passed.items() if spans != whole}),
        "bases": bases,
        "variables": {name: spans for name, spans in variables.items() if spans != whole},
    }


def _with_unlisted(names: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
    """Carry on the names that end where their package stops listing what it exports: they are still there."""
    for entry in [entry for entry in names if entry.endswith(f":{UNLISTED}")]:
        first, last = names.pop(entry)[-1]
        module = entry.partition(":")[0]
        for name, spans in names.items():
            if name.partition(":")[0] == module and spans[-1][1] == first - 1:
                spans[-1][1] = last
    return names


def _changing(spans: Mapping[str, list[list[int]]], whole: list[list[int]]) -> dict[str, list[list[int]]]:
    """Keep the entries whose ranges differ from their owner's own, and what judging them takes.

    That is `**` where there is one, and under "" the owner's own ranges where it is not in all releases.
    """
    own = places_of(span for ranges in spans.values() for span in ranges)
    kept = {entry: ranges for entry, ranges in spans.items() if places_of(ranges) != own}
    if kept:
        kept |= {"**": spans["**"]} if "**" in spans else {}
        life = spans_of(own)
        kept |= {"": life} if life != whole else {}
    return kept


def _own_anyway(
    keywords: Mapping[str, Mapping[str, list[list[int]]]],
    kept: Mapping[str, object],
    bases: Mapping[str, Iterable[str]],
) -> dict[str, dict[str, list[list[int]]]]:
    """Return the methods that never changed, of classes whose bases have one of that name that did."""
    found = {}
    for owner in keywords.keys() - kept.keys():
        holder, _, method = owner.rpartition(".")
        if holder and any(f"{base}.{method}" in kept for base in ancestors(bases, holder)):
            found[owner] = {"": spans_of(places_of(span for one in keywords[owner].values() for span in one))}
    return found


def _ranges(history: list[frozenset[str]]) -> dict[str, list[list[int]]]:
    """Return for each entry the index ranges [first, last] of releases that have it."""
    places: dict[str, list[int]] = {}
    for index, entries in enumerate(history):
        for entry in entries:
            places.setdefault(entry, []).append(index)
    return {entry: spans_of(found) for entry, found in sorted(places.items())}


def _grouped(ranges: Mapping[str, list[list[int]]]) -> dict[str, dict[str, list[list[int]]]]:
    grouped: dict[str, dict[str, list[list[int]]]] = {}
    for entry, spans in ranges.items():
        owner, _, name = entry.rpartition(":")
        grouped.setdefault(owner, {})[name] = spans
    return grouped
