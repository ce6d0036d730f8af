"""Which keys a package's settings classes take, read from syntax: bases, sections, aliases and old names.

Nothing is imported or run. A class is followed to its bases through the imports of its modules, both
branches of a condition counting; a field whose type is another class of the package is a section, and its
keys are written as `section.key`. A base that stands in another package is named, not guessed.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from release_sources import Sources
from settings_syntax import (
    Import,
    Module,
    allows_more,
    declared_fields,
    head_name,
    names_handled,
    parse_annotation,
    parse_module,
)

DEPTH = 4
"""Levels of sections that are followed."""
NEUTRAL = sys.stdlib_module_names | {"pydantic", "typing_extensions"}
"""Packages whose classes bring no keys of their own."""
_FREE = frozenset(
    ("dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "Any", "TypedDict")
)
"""Types under which anything may stand."""
_PLAIN = frozenset(
    (
        "int",
        "str",
        "float",
        "bool",
        "bytes",
        "None",
        "list",
        "tuple",
        "set",
        "List",
        "Tuple",
        "Set",
        "Sequence",
    )
) | {"Iterable", "Optional", "Union", "Literal", "Annotated", "Path", "PathLike", "Type", "type", "Final"}
"""Types that are values or hold them."""


@dataclass(frozen=True, slots=True)
class Outside:
    """A class of another package."""

    package: str
    name: str

    @property
    def is_neutral(self) -> bool:
        """True for a class that brings no keys."""
        return self.package in NEUTRAL and self.name not in _FREE

    def __str__(self) -> str:
        return f"{self.package}:{self.name}"


@dataclass(frozen=True)
class Class:
    """A class and the module that its names are looked up in."""

    module: Module
    node: ast.ClassDef

    @property
    def id(self) -> tuple[str, str]:
        """What tells one class from another."""
        return self.module.name, self.node.name


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name for a type, as it was written in a module."""

    module: Module
    node: ast.expr


Meaning = Class | Outside | Alias


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a class by dotted path, its bases in other packages, and whether any key may stand."""

    paths: frozenset[str] = frozenset()
    outside: frozenset[Outside] = frozenset()
    free: bool = False

    def __or__(self, other: Keys) -> Keys:
        return Keys(self.paths | other.paths, self.outside | other.outside, self.free or other.free)


@dataclass
class Package:
    """The classes of one release."""

    sources: Sources
    _modules: dict[str, Module | None] = field(default_factory=dict)

    @cached_property
    def _roots(self) -> frozenset[str]:
        return frozenset(path.partition("/")[0].removesuffix(".py") for path in self.sources.paths)

    def module(self, name: str) -> Module | None:
        """Return a module of the package by its dotted name; None where there is none, raises Unparsable."""
        if name not in self._modules:
            base = name.replace(".", "/")
            found = next((p for p in (f"{base}.py", f"{base}/__init__.py") if p in self.sources.paths), None)
            self._modules[name] = parse_module(name, found, self.sources.read(found)) if found else None
        return self._modules[name]

    def find(self, module: Module, name: str, seen: frozenset[object] = frozenset()) -> Iterator[Meaning]:
        """Yield what a name of a module may stand for."""
        if (module.name, name) in seen:
            return
        seen = seen | {(module.name, name)}
        if name not in module.bindings and not hasattr(builtins, name):
            for star in module.stars:
                yield from self._imported(Import(star, name), seen)
        for binding in module.bindings.get(name, ()):
            if isinstance(binding, ast.ClassDef):
                yield Class(module, binding)
            elif isinstance(binding, Import):
                yield from self._imported(binding, seen)
            else:
                yield Alias(module, binding)

    def _imported(self, binding: Import, seen: frozenset[object]) -> Iterator[Meaning]:
        root = binding.module.partition(".")[0]
        if root not in self._roots:
            yield Outside(root, binding.name or "")
        elif binding.name and (target := self.module(binding.module)):
            yield from self.find(target, binding.name, seen)

    def resolve(self, module: Module, node: ast.expr) -> Iterator[Meaning]:
        """Yield what an expression that names a class may stand for."""
        if isinstance(node, ast.Name):
            found = list(self.find(module, node.id))
            unbound = Outside("builtins" if hasattr(builtins, node.id) else "", node.id)
            yield from self._followed(found) if found else [unbound]
        elif isinstance(node, ast.Attribute):
            yield from self._attribute(module, node)
        elif isinstance(node, ast.Subscript):
            yield from self.resolve(module, node.value)

    def _followed(self, found: Iterable[Meaning]) -> Iterator[Meaning]:
        for item in found:
            if isinstance(item, Alias) and isinstance(item.node, (ast.Name, ast.Attribute)):
                yield from self.resolve(item.module, item.node)
            else:
                yield item

    def _attribute(self, module: Module, node: ast.Attribute) -> Iterator[Meaning]:
        names = [b for b in module.bindings.get(head_name(node), ()) if isinstance(b, Import)]
        for binding in names:
            path = ".".join(filter(None, (binding.module, binding.name)))
            target = self.module(path) if path.partition(".")[0] in self._roots else None
            if target:
                yield from self.find(target, node.attr)
            else:
                yield Outside(path.partition(".")[0], node.attr)

    def keys(self, found: Class, depth: int = DEPTH, seen: frozenset[object] = frozenset()) -> Keys:
        """Return the keys of a class and of its bases; raises Unparsable."""
        if found.id in seen:
            return Keys()
        seen = seen | {found.id}
        keys = Keys(frozenset(self._own(found, depth, seen)), free=allows_more(found.node))
        for base in found.node.bases:
            for item in self.resolve(found.module, base):
                keys = keys | self._inherited(item, depth, seen)
        return keys

    def _inherited(self, base: Meaning, depth: int, seen: frozenset[object]) -> Keys:
        if isinstance(base, Class):
            return self.keys(base, depth, seen)
        if isinstance(base, Outside):
            unknown = frozenset() if base.is_neutral or base.name in _FREE else frozenset({base})
            return Keys(outside=unknown, free=base.name in _FREE)
        return Keys(outside=frozenset({Outside("", head_name(base.node))}))

    def _own(self, found: Class, depth: int, seen: frozenset[object]) -> Iterator[str]:
        yield from names_handled(found.node)
        for item in declared_fields(found.node):
            names = [item.name, *item.aliases]
            yield from names
            if depth and (section := self._section(found.module, item.annotation, depth, seen)):
                yield from (f"{name}.{key}" for name in names for key in section)

    def _section(
        self, module: Module, annotation: ast.expr, depth: int, seen: frozenset[object]
    ) -> frozenset[str]:
        """Return the keys that may stand under a field of this type; none where anything may."""
        whole = Keys()
        for item in self._types(module, annotation):
            if not isinstance(item, Class):
                return frozenset()
            whole = whole | self.keys(item, depth - 1, seen)
        return frozenset() if whole.free or whole.outside else whole.paths

    def _types(self, module: Module, node: ast.expr) -> Iterator[Meaning]:
        """Yield the types that an annotation names, but for plain ones."""
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield from self._types(module, parse_annotation(node.value))
        elif isinstance(node, ast.BinOp):
            yield from self._types(module, node.left)
            yield from self._types(module, node.right)
        elif isinstance(node, ast.Tuple):
            for part in node.elts:
                yield from self._types(module, part)
        elif isinstance(node, ast.Subscript):
            yield from self._subscripted(module, node)
        else:
            yield from self._named(module, node)

    def _subscripted(self, module: Module, node: ast.Subscript) -> Iterator[Meaning]:
        name = node.value.attr if isinstance(node.value, ast.Attribute) else head_name(node.value)
        yield from self._named(module, node.value)
        inner = node.slice
        if name == "Annotated" and isinstance(inner, ast.Tuple) and inner.elts:
            yield from self._types(module, inner.elts[0])
        elif name != "Literal":
            yield from self._types(module, inner)

    def _named(self, module: Module, node: ast.expr) -> Iterator[Meaning]:
        name = node.attr if isinstance(node, ast.Attribute) else head_name(node)
        if name in _PLAIN:
            return
        if name in _FREE or not isinstance(node, (ast.Name, ast.Attribute)):
            yield Outside("", name)
            return
        for item in self.resolve(module, node):
            if isinstance(item, Alias):
                yield from self._types(item.module, item.node)
            elif not (isinstance(item, Class) and _is_enumeration(item.node)):
                yield item


def _is_enumeration(node: ast.ClassDef) -> bool:
    """True for a class whose instances are values, not sections."""
    names = [base.attr if isinstance(base, ast.Attribute) else head_name(base) for base in node.bases]
    return any("Enum" in name for name in names)
