"""What a module imports whenever it is imported, and which names it has then, by its syntax alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

from envdoctor.python_source import parse_python
from envdoctor.values import NamedTuple

_MADE_UP = re.compile(rb"__getattr__|sys\.modules\[|\bglobals\(\)|\bsetattr\(|\bexec\(|\bvars\(\)|lazy", re.I)
"""In a module that may have more names than its syntax binds."""
_ENDING = frozenset(("sys.exit", "exit", "quit", "os._exit"))


class Taken(NamedTuple):
    """One import: the line, the module, and the name that is taken from it ("": the module itself)."""

    line: int
    module: str
    name: str = ""


class ModuleImports(NamedTuple):
    """`taken` runs whenever the module does; `names` are those that it binds.

    A name has the module where it stands, where it is only brought when it is asked for. `open_`: there may
    be names beside these.
    """

    taken: tuple[Taken, ...]
    names: dict[str, str]
    open_: bool

    def as_json(self) -> list[Any]:
        """Return the parts as lists."""
        return [list(map(list, self.taken)), self.names, self.open_]


def parse_kept(told: list[Any]) -> ModuleImports:
    """Return what `as_json` wrote; raises TypeError or ValueError for what it did not write."""
    taken, names, open_ = told
    return ModuleImports(tuple(Taken(*one) for one in taken), dict(names), bool(open_))


def imports_of(module: str, package: bool, source: bytes) -> ModuleImports | None:
    """Return what a file tells; None for one that is no Python of today."""
    try:
        body = parse_python(source).body
    except SyntaxError:
        return None
    here = module.split(".") if package else module.split(".")[:-1]
    bound, stars = dict[str, str](), False
    for node, typed in _flat(body):
        stars = stars or (isinstance(node, ast.ImportFrom) and node.names[0].name == "*")
        for name in _bound(node):
            lazily = _source_of(node, here) if typed and isinstance(node, ast.ImportFrom) else ""
            if not typed or lazily:
                bound.setdefault(name, lazily)
    taken = tuple(one for node in _unguarded(body) for one in _taken(node, here))
    return ModuleImports(taken, bound, stars or _MADE_UP.search(source) is not None)


def top_imports(source: str) -> Iterator[Taken]:
    """Yield what a script imports by whole names whenever it runs; nothing for what is no Python."""
    try:
        body = parse_python(source).body
    except SyntaxError:
        return
    for node in _unguarded(body):
        if not (isinstance(node, ast.ImportFrom) and node.level):
            yield from _taken(node, [])


def _flat(body: Iterable[ast.stmt], typed: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield a module's statements, those in blocks too, each with whether it stands there for types alone."""
    for node in body:
        if isinstance(node, ast.If):
            for_types = ast.unparse(node.test).split(".")[-1] == "TYPE_CHECKING"
            yield from _flat(node.body, typed or for_types)
            yield from _flat(node.orelse, typed)
        elif isinstance(node, ast.Try):
            # What is imported for types within a question may be another's when it is asked for.
            handled = [one for handler in node.handlers for one in handler.body]
            inner = [*node.body, *handled, *node.orelse, *node.finalbody]
            yield from ((one, False) for one, _ in _flat(inner))
        elif isinstance(node, (ast.With, ast.For, ast.While)):
            yield node, typed
            yield from _flat(node.body, typed)
        else:
            yield node, typed


def _bound(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (one.asname or one.name.partition(".")[0] for one in names)
        case ast.Assign(targets=targets):
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.For(target=target):
            yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))
        case ast.With(items=items):
            held = [item.optional_vars for item in items if item.optional_vars is not None]
            yield from (one.id for target in held for one in ast.walk(target) if isinstance(one, ast.Name))
        case _:
            for one in ast.walk(node):
                if isinstance(one, ast.NamedExpr):
                    yield one.target.id


def _unguarded(body: Iterable[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that run whenever the module does, and whose failure is the module's."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, (ast.Try, ast.With)) and not _is_guarding(node):
            yield from _unguarded(node.body)


def _is_guarding(node: ast.Try | ast.With) -> bool:
    """True for what goes on where an import within it fails."""
    if isinstance(node, ast.With):
        return "suppress" in ast.unparse(node.items[0].context_expr)
    return not all(_fails(one.body) for one in node.handlers)


def _fails(body: list[ast.stmt]) -> bool:
    """True for a handler that ends in an error, or ends the program."""
    last = body[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return ast.unparse(last.value.func) in _ENDING
    return isinstance(last, ast.Raise)


def _taken(node: ast.Import | ast.ImportFrom, here: list[str]) -> Iterator[Taken]:
    if isinstance(node, ast.Import):
        yield from (Taken(node.lineno, one.name) for one in node.names)
    else:
        source = _source_of(node, here)
        yield from (Taken(node.lineno, source, one.name.replace("*", "")) for one in node.names if source)


def _source_of(node: ast.ImportFrom, here: list[str]) -> str:
    base = here[: len(here) - node.level + 1] if node.level else []
    return ".".join([*base, *([node.module] if node.module else [])])
