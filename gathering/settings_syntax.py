"""What a module's syntax says of its settings: what it binds, and which fields its classes declare."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from envdoctor.python_source import parse_python

_VALIDATORS = frozenset({"model_validator", "root_validator"})
_HANDLERS = frozenset({"process_config"})
"""Methods that take a class's raw settings before the class does."""
_ALLOWS = re.compile(r"extra['\"]?\s*[:=]\s*(?:Extra\.|['\"])allow")


class Unparsable(Exception):
    """A module that is no Python of ours, so that what its classes take is not known."""


@dataclass(frozen=True, slots=True)
class Import:
    """A name that a module imports: the module, and the name in it (None: the module itself)."""

    module: str
    name: str | None


Binding = ast.ClassDef | ast.expr | Import


@dataclass(frozen=True)
class Module:
    """A parsed module: what its top level binds, by name, and the modules it imports everything from."""

    name: str
    tree: ast.Module
    bindings: dict[str, list[Binding]]
    stars: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a class: its name, its type as written, and its other names."""

    name: str
    annotation: ast.expr
    aliases: tuple[str, ...] = ()


def parse_module(name: str, path: str, source: str) -> Module:
    """Return what a module binds at its top level; raises Unparsable."""
    try:
        tree = parse_python(source)
    except SyntaxError as error:
        raise Unparsable(f"{path}: {type(error).__name__}") from None
    package = name if path.endswith("/__init__.py") else name.rpartition(".")[0]
    bindings: dict[str, list[Binding]] = {}
    stars: list[str] = []
    for bound, binding in _bound(tree.body, package):
        if bound == "*" and isinstance(binding, Import):
            stars.append(binding.module)
        else:
            bindings.setdefault(bound, []).append(binding)
    return Module(name, tree, bindings, tuple(stars))


def _bound(body: Iterable[ast.stmt], package: str) -> Iterator[tuple[str, Binding]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node, package)
            yield from ((alias.asname or alias.name, Import(module, alias.name)) for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or whole, Import(whole, None)
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from _bound(_branches(node), package)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    kept = parts[: len(parts) - node.level + 1]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _branches(node: ast.If | ast.Try | ast.With) -> Iterator[ast.stmt]:
    yield from node.body
    if not isinstance(node, ast.With):
        yield from node.orelse
    if isinstance(node, ast.Try):
        for handler in node.handlers:
            yield from handler.body
        yield from node.finalbody


def head_name(node: ast.expr) -> str:
    """Return the first name of `a.b[c]`; empty for other expressions."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def parse_annotation(text: str) -> ast.expr:
    """Return a type that was written as a string; any type for what is none."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return ast.Name("Any")


def declared_fields(node: ast.ClassDef) -> Iterator[Field]:
    """Yield the fields that a dataclass or pydantic class declares itself and lets be set."""
    for item in _statements(node.body):
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        hidden = item.target.id.startswith("_") or "ClassVar" in ast.dump(item.annotation)
        if not hidden and not _is_unset(item.value):
            yield Field(item.target.id, item.annotation, tuple(_aliases(item.value)))


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for item in body:
        if isinstance(item, (ast.If, ast.Try, ast.With)):
            yield from _statements(_branches(item))
        else:
            yield item


def _is_unset(value: ast.expr | None) -> bool:
    """True for a field that the class fills in itself (`init=False`)."""
    return isinstance(value, ast.Call) and any(
        keyword.arg == "init" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        for keyword in value.keywords
    )


def _aliases(value: ast.expr | None) -> Iterator[str]:
    """The other names of a field: pydantic's, or those that a parser is told in its metadata."""
    for keyword in value.keywords if isinstance(value, ast.Call) else ():
        if keyword.arg in ("alias", "validation_alias", "aliases"):
            yield from _option_names(_strings(keyword.value))
        elif keyword.arg == "metadata" and isinstance(keyword.value, ast.Dict):
            for key, entry in zip(keyword.value.keys, keyword.value.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "aliases":
                    yield from _option_names(_strings(entry))


def _strings(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _option_names(texts: Iterable[str]) -> Iterator[str]:
    """Options as settings files spell them: `--max-len` is `max_len`."""
    for text in texts:
        if (name := text.lstrip("-").replace("-", "_")).isidentifier():
            yield name


def names_handled(node: ast.ClassDef) -> Iterator[str]:
    """Yield the keys that a class's validators take out of the raw settings: old names of others."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and _takes_raw(item):
            raw = {argument.arg for argument in item.args.args} - {"cls", "self"}
            for part in ast.walk(item):
                yield from _taken_out(part, raw)


def _takes_raw(node: ast.FunctionDef) -> bool:
    decorators = {head_name(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list}
    return bool(decorators & _VALIDATORS) or node.name in _HANDLERS


def _taken_out(node: ast.AST, raw: set[str]) -> Iterator[str]:
    """Keys popped, deleted or moved; one that is only looked at may be refused as well as taken."""
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "pop":
        yield from _looked_up(node, raw)
    elif isinstance(node, ast.Delete):
        for target in node.targets:
            yield from _looked_up(target, raw)
    elif isinstance(node, ast.Assign) and any(set(_looked_up(target, raw)) for target in node.targets):
        for part in ast.walk(node.value):
            yield from _looked_up(part, raw)


def _looked_up(node: ast.AST, raw: set[str]) -> Iterator[str]:
    """The key in `data["key"]`, `data.get("key")` or `data.pop("key")`."""
    key: ast.expr | None = None
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in raw:
        key = node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        key = node.args[0] if isinstance(node.func.value, ast.Name) and node.func.value.id in raw else None
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier():
        yield key.value


def allows_more(node: ast.ClassDef) -> bool:
    """True for a pydantic class that is configured to take keys that it does not declare."""
    told = [item for item in node.body if _names_config(item)]
    return any(_ALLOWS.search(ast.unparse(part)) for part in (*told, *node.decorator_list))


def _names_config(item: ast.stmt) -> bool:
    if isinstance(item, ast.ClassDef):
        return item.name == "Config"
    targets = item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == "model_config" for target in targets)


def options(tree: ast.Module) -> Iterator[str]:
    """Yield the long options that a module's argument parsers take, as settings files spell them."""
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and getattr(called, "attr", "") in ("add_argument", "option"):
            given = [a.value for a in node.args if isinstance(a, ast.Constant)]
            yield from _option_names(t for t in given if isinstance(t, str) and t.startswith("--"))


def constants(tree: ast.Module) -> Iterator[str]:
    """Yield the identifiers that a module's constants (`ZERO_STAGE = "stage"`) hold."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            name = head_name(node.targets[0])
            if name.isupper() and isinstance(node.value.value, str) and node.value.value.isidentifier():
                yield node.value.value
