"""Which modules, names, members and arguments each release of a library has: read from its files' syntax.

Nothing is imported or run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from envdoctor.harvest.module_syntax import OPEN, ModuleFacts, read_module, with_stub
from envdoctor.harvest.served_names import MAKER

UNLISTED = "*"
"""Stands for the names that a package exports without listing them in its own file."""
SOURCES = (".py", ".pyi")
"""How files end that are read: a stub tells what is compiled, or made when its module is loaded."""
_EMPTY_BASES = frozenset(("object", "ABC", "abc.ABC", "Protocol", "Generic", "typing.Protocol", ""))
OWN = "."
"""Among a class's members: what it inherits is told of its bases alone."""
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
    variables that it asks for. Of what makes names up when they are asked for, `__getattr__` is a name where
    it may make up others than are told.
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
    served: frozenset[str] = frozenset()
    """`module:name` pairs of the names that a module's `__getattr__` alone brings."""


Read = dict[tuple[str, bytes], ModuleFacts | None]
"""What was told of files by path and content: most files outlive a release."""


def scan_interface(
    files: Mapping[str, bytes | None], root: str, read: Read | None = None, own: Collection[str] = ()
) -> Interface:
    """Return the interface of the package `root` from a release's files by path (None: known only by name).

    Tests and commands are nobody's interface and are left out. `read` carries on from release to release.
    Of the classes of `own` modules is told what they define themselves, marked by `OWN`.
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
    return _interface(modules, own)


def _facts_of(path: str, module: str, source: bytes, known: Read) -> ModuleFacts | None:
    key = (path, hashlib.sha256(source).digest())
    if key not in known:
        known[key] = read_module(module, path.endswith(("__init__.py", "__init__.pyi")), source)
    return known[key]


def _interface(modules: Mapping[str, ModuleFacts | None], defining: Collection[str]) -> Interface:
    known = {name: facts for name, facts in modules.items() if facts}
    release = _Release(known, partly=len(known) < len(modules))
    read = release.modules
    own = {module: facts for module, facts in read.items() if not is_stand_in(module)}
    whole = {module: facts for module, facts in own.items() if module not in defining}
    part = {module: facts for module, facts in own.items() if module in defining}
    return Interface(
        frozenset(modules),
        frozenset(f"{module}:{name}" for module in own for name in release.names(module)),
        frozenset(keyword for module in whole for keyword in release.keywords(module)).union(
            *(facts.keywords for facts in part.values())
        ),
        frozenset(asked for facts in read.values() for asked in facts.imports),
        _of_classes(whole, release.members) | _of_classes(part, release.defined),
        frozenset(given for facts in own.values() for given in facts.passed),
        frozenset(name for facts in own.values() for name in facts.variables),
        _of_classes(whole, release.bases) | _of_classes(part, release.named_bases),
        frozenset(f"{module}:{name}" for module, facts in own.items() for name in facts.foreign),
        frozenset(f"{module}:{name}" for module in own for name in release.served(module)),
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
        self._classes = {name for facts in modules.values() for name in facts.classes}

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
            made = self._brought(module, facts)
            found.update(made or ())
            if facts.hidden or made is None:
                found.add(UNLISTED)
            else:
                found.discard(MAKER)
            if facts.spread and self.partly:
                found.add(UNLISTED)
            self._names[module] = frozenset(found)
        return self._names[module]

    def served(self, module: str) -> frozenset[str]:
        """Return what a module brings only when it is asked for."""
        facts = self.modules[module]
        return facts.served | ((self._brought(module, facts) or frozenset()) - facts.bound.keys())

    def _brought(self, module: str, facts: ModuleFacts) -> frozenset[str] | None:
        """Return what another module's function brings for this one; None where that is not told."""
        if not facts.maker:
            return frozenset()
        source, _, name = facts.maker.partition(":")
        made = self.modules[source].makers.get(name) if source in self.modules else None
        if made is None or made.more:
            return None
        asked = (one.removeprefix(f"{module}:") for one in made.names)
        return frozenset(one for one in asked if one.isidentifier())

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
        own = self.names(module) - self.served(module)
        return frozenset(name for name in own if not name.startswith("_"))

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

    def defined(self, module: str, name: str) -> Iterator[str]:
        """Yield a class's own members; torch's Module, of which a base may be one, brings no others."""
        facts = self.modules[module].classes[name]
        yield from (OWN, *facts.members)
        for base in facts.bases:
            known = base in _EMPTY_BASES or base.rpartition(".")[2] == "Module"
            if not known and not self._find_class(module, base) and base not in self._classes:
                yield OPEN

    def bases(self, module: str, name: str) -> Iterator[str]:
        """Yield the names of the classes in the package that a class derives from by itself."""
        found = (self._find_class(module, base) for base in self.modules[module].classes[name].bases)
        yield from (one[1] for one in found if one and one[1] != name)

    def named_bases(self, module: str, name: str) -> Iterator[str]:
        """Yield those bases, and what is named as a class of the package where its import is not followed."""
        for base in self.modules[module].classes[name].bases:
            found = self._find_class(module, base)
            above = found[1] if found else base if base in self._classes else name
            yield from (above,) if above != name else ()

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
        frozenset(name for name in interface.served if not name.startswith(inner)),
    )


def _definer(entry: str) -> str:
    return entry.partition(":")[0].partition(".")[0]
