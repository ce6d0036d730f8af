"""Which modules, names and keyword arguments each release of a library has: read from its files' syntax.

Nothing is imported or run. What all scanned releases share is left out; the rest is written as ranges of
releases, so that "cannot import name X from Y" can be answered with the versions that have it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "envdoctor.interfaces/1"
UNLISTED = "*"
"""Stands for the names that a package exports without listing them in its own file."""
ASKED_OF = frozenset(
    (
        "transformers",
        "peft",
        "trl",
        "accelerate",
        "huggingface_hub",
        "datasets",
        "torch",
        "triton",
        "deepspeed",
    )
) | {"bitsandbytes", "tokenizers", "vllm"}
"""The libraries whose names others import."""


@dataclass(frozen=True, slots=True)
class Interface:
    """What one release offers and asks for.

    Module names, `module:name` pairs, `Callable.name:keyword` triples; and, as `module:name` pairs, what its
    modules import from the stack's other libraries without guarding the import.
    """

    modules: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    keywords: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Collected:
    modules: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    keywords: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)

    def frozen(self) -> Interface:
        """Return what was collected."""
        parts = (self.modules, self.names, self.keywords, self.imports)
        return Interface(*map(frozenset, parts))


def scan_interface(files: Mapping[str, str | None], root: str) -> Interface:
    """Return the interface of the package `root` from a release's files by path (None: known only by name).

    Tests and commands are nobody's interface and are left out.
    """
    found = _Collected()
    for path, source in files.items():
        module = module_of(path)
        if module is None or module.partition(".")[0] != root or _is_internal(module):
            continue
        found.modules.add(module)
        if source is not None:
            _scan_module(module, source, path.endswith("/__init__.py"), found)
    return found.frozen()


def module_of(path: str) -> str | None:
    """Return `a.b` for `a/b.py` or `a/b/__init__.py`; None for other files."""
    if not path.endswith(".py"):
        return None
    parts = path.removesuffix(".py").split("/")
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts) if parts and all(part.isidentifier() for part in parts) else None


def _is_internal(module: str) -> bool:
    return any(part in ("tests", "test", "testing", "commands") for part in module.split("."))


def _scan_module(module: str, source: str, package: bool, found: _Collected) -> None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    found.names.update(f"{module}:{name}" for name in _defined(tree.body, package))
    for name in _lazily_exported(tree) if package else ():
        found.names.add(f"{module}:{name}")
    if package and "define_import_structure(" in source:
        found.names.add(f"{module}:{UNLISTED}")
    found.imports.update(_unguarded_imports(tree.body, module.partition(".")[0]))
    for callable_name, keyword in _keywords(tree.body):
        found.keywords.add(f"{callable_name}:{keyword}")


def _defined(body: Iterable[ast.stmt], package: bool) -> Iterator[str]:
    """Names that a module binds at its top level, inside if and try too; imports count in packages."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (t.id for t in targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names if package and alias.name != "*")
        elif isinstance(node, (ast.If, ast.Try)):
            yield from _defined(_branches(node), package)


def _branches(node: ast.If | ast.Try) -> Iterator[ast.stmt]:
    yield from node.body
    yield from node.orelse
    if isinstance(node, ast.Try):
        for handler in node.handlers:
            yield from handler.body


def _unguarded_imports(body: Iterable[ast.stmt], own: str) -> Iterator[str]:
    """`module:name` of each import from another library of the stack that runs whenever the module does."""
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            root = node.module.partition(".")[0]
            if root in ASKED_OF and root != own:
                found = (f"{node.module}:{alias.name}" for alias in node.names if alias.name != "*")
                yield from (entry for entry in found if root != "torch" or _is_private(entry))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                if "." in alias.name and root in ASKED_OF - {"torch"} and root != own:
                    yield f"{alias.name}:"


def _is_private(entry: str) -> bool:
    """torch keeps its public names for years; what vanishes is private."""
    return any(part.startswith("_") for part in re.split(r"[.:]", entry))


def _lazily_exported(tree: ast.Module) -> Iterator[str]:
    """Names in an `_import_structure` of lists of strings, however it is filled."""
    for node in ast.walk(tree):
        target = _assigned(node)
        if target is not None and "_import_structure" in ast.dump(target):
            value = getattr(node, "value", None)
            if isinstance(value, (ast.Dict, ast.List)):
                yield from _strings(value)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "extend")
            and "_import_structure" in ast.dump(node.func.value)
        ):
            for argument in node.args:
                yield from _strings(argument)


def _assigned(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Assign):
        return node.targets[0]
    return node.target if isinstance(node, (ast.AnnAssign, ast.AugAssign)) else None


def _strings(value: ast.AST) -> Iterator[str]:
    lists = value.values if isinstance(value, ast.Dict) else [value]
    for item in lists:
        for node in ast.walk(item):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                yield node.value


def _keywords(body: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Keyword arguments of public functions, of methods, and of dataclasses by their fields."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from ((node.name, keyword) for keyword in _parameters(node))
        elif isinstance(node, ast.ClassDef):
            yield from _class_keywords(node)
        elif isinstance(node, (ast.If, ast.Try)):
            yield from _keywords(_branches(node))


def _class_keywords(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for member in node.body:
        if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from ((f"{node.name}.{member.name}", keyword) for keyword in _parameters(member))
        elif isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
            yield f"{node.name}.__init__", member.target.id


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    arguments = node.args
    for argument in (*arguments.args, *arguments.kwonlyargs):
        if argument.arg not in ("self", "cls"):
            yield argument.arg
    if arguments.kwarg:
        yield "**"


def encode(releases: Mapping[str, Interface], sources: Mapping[str, str]) -> dict[str, Any]:
    """Return the interfaces of a library's releases (oldest first) as ranges; constant entries left out.

    A keyword is left out when it is as old as the callable and gone only with it.
    """
    versions = list(releases)
    whole = [[0, len(versions) - 1]]
    modules = _ranges([releases[v].modules for v in versions])
    names = _with_unlisted(_ranges([releases[v].names for v in versions]))
    keywords = _grouped(_ranges([releases[v].keywords for v in versions]))
    imports = _ranges([releases[v].imports for v in versions])
    return {
        "versions": versions,
        "sources": sources.get(versions[-1], "") if versions else "",
        "modules": {module: spans for module, spans in modules.items() if spans != whole},
        "names": _grouped({name: spans for name, spans in names.items() if spans != whole}),
        "imports": _grouped(imports),
        "keywords": {owner: kept for owner, spans in keywords.items() if (kept := _changing(spans))},
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


def _changing(spans: Mapping[str, list[list[int]]]) -> dict[str, list[list[int]]]:
    """Keep the keywords whose ranges differ from the callable's own."""
    own = {index for ranges in spans.values() for first, last in ranges for index in range(first, last + 1)}
    return {
        keyword: ranges
        for keyword, ranges in spans.items()
        if {i for first, last in ranges for i in range(first, last + 1)} != own
    }


def _ranges(history: list[frozenset[str]]) -> dict[str, list[list[int]]]:
    """Return for each entry the index ranges [first, last] of releases that have it."""
    ranges: dict[str, list[list[int]]] = {}
    for index, entries in enumerate(history):
        for entry in entries:
            spans = ranges.setdefault(entry, [])
            if spans and spans[-1][1] == index - 1:
                spans[-1][1] = index
            else:
                spans.append([index, index])
    return dict(sorted(ranges.items()))


def _grouped(ranges: Mapping[str, list[list[int]]]) -> dict[str, dict[str, list[list[int]]]]:
    grouped: dict[str, dict[str, list[list[int]]]] = {}
    for entry, spans in ranges.items():
        owner, _, name = entry.rpartition(":")
        grouped.setdefault(owner, {})[name] = spans
    return grouped
