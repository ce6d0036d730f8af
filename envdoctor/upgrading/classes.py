"""What classes of a project's own files derive from, followed from file to file."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from envdoctor.python_source import parse_python
from envdoctor.upgrading.bindings import (
    UNKNOWN,
    Bound,
    Scope,
    fields_of,
    handed_up,
    instance_of,
    looked_up,
    made_by,
    own_members,
)
from envdoctor.upgrading.handing import (
    answering_with,
    handed_on,
    imported_in,
    is_kind,
    made_in,
    standing_for,
    statements_in,
)
from envdoctor.upgrading.sources import read_text

_NOTHING = frozenset(("object", "ABC", "Generic", "Protocol"))
_BASES = {"pretrainedmodel": "transformers.PreTrainedModel"}
_HOPS = 12
_INNER = re.compile(r"^[ \t]{1,200}from[ \t]{1,8}(\.{0,20})([.\w]{0,200})[ \t]{1,8}import\b", re.MULTILINE)
Brought = Callable[[int, str, str], Bound]
"""What an import brings: its level, its module, the name."""
Told = ast.ClassDef | ast.FunctionDef | ast.Name | tuple[int, str, str]
"""What a name of a file stands for: a class, a function that hands on, another name, an import."""


def class_of(node: ast.ClassDef, bases: Sequence[Bound]) -> Bound:
    """Return what a class of the text is: the first library's class that it derives from, and its own."""
    own = frozenset(own_members(node)).union(*(base.own for base in bases))
    told = [base for base in bases if base.path and not base.instance and not _is_standard(base.path)]
    if not told:
        return Bound(own=own, plain=all(base.plain or _is_standard(base.path) for base in bases))
    first = told[0]
    taken = handed_up(node)
    return Bound(
        first.path,
        own=own,
        taken=first.taken.union(taken or (), fields_of(node)),
        closed=first.closed or taken is None,
        open=len({(base.path.partition(".")[0], base.path.rpartition(".")[2]) for base in told}) > 1
        or any(base.open or not (base.path or base.plain) for base in bases),
    )


def called_after(bases: Iterable[ast.expr]) -> Bound:
    """Return the library's class that a base is called after, as arguments are: `base_pretrained_model`."""
    named = (base.id.replace("_", "").lower() for base in bases if isinstance(base, ast.Name))
    return next(
        (Bound(path) for name in named for end, path in _BASES.items() if name.endswith(end)), UNKNOWN
    )


def with_handing(bases: Iterable[Bound], methods: Mapping[str, Bound]) -> dict[str, Bound]:
    """Return the members of a class that stand for a library's: its own, and those of its bases."""
    every = {name: bound for base in bases for name, bound in (base.attributes or {}).items()} | {**methods}
    return {name: bound for name, bound in every.items() if bound.path or bound.answer}


def plain_base(node: ast.expr) -> bool:
    """True for a base of the language's that brings no member."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Name) and node.id in _NOTHING


def _is_standard(path: str) -> bool:
    return bool(path) and path.partition(".")[0] in sys.stdlib_module_names


class _Lazy(Scope):
    """What the names of a file stand for, each looked up when it is asked for."""

    def __init__(self, found: Callable[[str], Bound]) -> None:
        self._looked_up = found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __missing__(self, name: str) -> Bound:
        return self._looked_up(name)


class Project:
    """The files that are judged together; a file is looked into when another imports a class from it."""

    def __init__(self, files: Iterable[Path], foreign: Callable[[str], bool]) -> None:
        self._files = {path.as_posix(): path for path in files if path.suffix == ".py"}
        self._foreign = foreign
        self._outlines: dict[Path, dict[str, Told]] = {}
        self._known: dict[tuple[Path, str], Bound] = {}
        self._found: dict[tuple[Path, int, str], Path | None] = {}
        self._leaning: dict[Path, bool] = {}

    @cached_property
    def _beside(self) -> dict[str, set[str]]:
        """The folders in which each package of the project lies, wherever that is."""
        found: dict[str, set[str]] = {}
        for path in self._files.values():
            if path.name == "__init__.py" and (path.parents[1] / "__init__.py").as_posix() not in self._files:
                found.setdefault(path.parent.name, set()).add(path.parents[1].as_posix())
        return found

    def brought_to(self, importer: Path) -> Brought:
        """Return what says what an import in that file brings, as far as it is the project's own."""
        return lambda level, module, name: self._brought(importer, level, module, name, 0)

    def leans(self, path: Path, text: str) -> bool:
        """Tell of a file once what `_leans` says of it."""
        if path not in self._leaning:
            self._leaning[path] = self._leans(path, text)
        return self._leaning[path]

    def _leans(self, path: Path, text: str) -> bool:
        """True for a file that imports, from the project's own, what derives from a library that moves.

        What is imported inside of functions is not looked at for this: a file with such an import may lean,
        and one that cannot be parsed.
        """
        try:
            parse_python(text)
        except SyntaxError:
            return True
        inner = ((len(found[1]), found[2]) for found in _INNER.finditer(text))
        if any(self._file(path, level, module) for level, module in inner):
            return True
        told = (one for one in self._outline(path, text).values() if isinstance(one, tuple))
        brought = (self._brought(path, *one, 0) for one in told)
        every = (one for bound in brought for one in (bound, *(bound.attributes or {}).values()))
        paths = ((one.answer or one).path for one in every)
        return any(path and self._foreign(path) for path in paths)

    def _brought(self, importer: Path, level: int, module: str, name: str, hops: int) -> Bound:
        file = None if hops > _HOPS else self._file(importer, level, module)
        if file is not None and name == "*":
            return Bound(attributes=self._all_of(file, hops + 1))
        if file is not None:
            found = self._in(file, name, hops + 1)
            found = self._lazily(file, name, hops + 1) if found is UNKNOWN else found
            inner = self._file(importer, level, f"{module}.{name}".strip(".")) if found is UNKNOWN else None
            return Bound(attributes=self._all_of(inner, hops + 1)) if inner is not None else found
        return Bound(f"{module}.{name}") if hops and module and not level else UNKNOWN

    def _lazily(self, file: Path, name: str, hops: int) -> Bound:
        """Return the class that a package brings when it is asked for it: the one of that name below it."""
        if file.name != "__init__.py" or "__getattr__" not in (read_text(file) or ""):
            return UNKNOWN
        below = (one for path, one in self._files.items() if path.startswith(f"{file.parent.as_posix()}/"))
        having = [one for one in below if isinstance(self._outline(one).get(name), ast.ClassDef)]
        return self._in(having[0], name, hops) if len(having) == 1 else UNKNOWN

    def _all_of(self, file: Path, hops: int) -> dict[str, Bound]:
        """Return what `from file import *` brings that is a library's, or derives from one."""
        found: dict[str, Bound] = {}
        for name, told in self._outline(file).items() if hops <= _HOPS else ():
            if name[:1] == "*" and isinstance(told, tuple) and (inner := self._file(file, told[0], told[1])):
                found |= self._all_of(inner, hops + 1)
            elif name[:1] not in ("_", "*"):
                module = isinstance(told, tuple) and not told[0] and not told[1]
                bound = (
                    Bound(told[2]) if module and isinstance(told, tuple) else self._in(file, name, hops + 1)
                )
                found |= {name: bound} if bound.path else {}
        return found

    def _in(self, file: Path, name: str, hops: int) -> Bound:
        key = (file, name)
        if key not in self._known:
            self._known[key] = UNKNOWN  # a circle ends here
            found = self._outline(file).get(name)
            if isinstance(found, ast.ClassDef):
                self._known[key] = self._class(file, found, hops)
            elif isinstance(found, ast.FunctionDef):
                self._known[key] = self._standing_for(file, found, hops)
            elif isinstance(found, ast.Name) and hops <= _HOPS:
                self._known[key] = self._in(file, found.id, hops + 1)
            elif isinstance(found, tuple):
                self._known[key] = self._brought(file, *found, hops)
        return self._known[key]

    def _class(self, file: Path, node: ast.ClassDef, hops: int) -> Bound:
        bases = [self._base(file, base, hops) for base in node.bases]
        methods = (one for one in node.body if isinstance(one, ast.FunctionDef))
        members = {one.name: self._standing_for(file, one, hops) for one in methods}
        whole = class_of(node, bases)
        fields = self._annotated(file, node, hops) if whole.path else {}
        handing = with_handing(bases, fields | members | self._set_on_self(file, node, hops))
        return replace(whole, attributes=handing)

    def _annotated(self, file: Path, node: ast.ClassDef, hops: int) -> dict[str, Bound]:
        """Return the fields that a body declares to be instances: a library's class makes them that."""
        told = (
            one for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        )
        scopes = [_Lazy(lambda name: self._in(file, name, hops + 1))]
        return {
            one.target.id: instance_of(one.annotation, scopes)
            for one in told
            if isinstance(one.target, ast.Name)
        }

    def _set_on_self(self, file: Path, node: ast.ClassDef, hops: int) -> dict[str, Bound]:
        """Return what a class's methods set on `self` that is made of a class; of two of one name neither."""
        found: dict[str, Bound] = {}
        for inner in statements_in(node):
            match inner:
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                    made = self._made(file, value, hops)
                    found[name] = made if found.setdefault(name, made).path == made.path else UNKNOWN
                case _:
                    pass
        return found

    def _made(self, file: Path, value: ast.expr, hops: int) -> Bound:
        match value:
            case ast.Call(func=ast.Attribute(value=ast.Name() as owner, attr="from_pretrained" as maker)):
                told = self._base(file, owner, hops)
                return made_by(Bound(f"{told.path}.{maker}")) if told.path else UNKNOWN
            case ast.Call(func=called):
                return made_by(self._base(file, called, hops))
            case _:
                return UNKNOWN

    def _standing_for(self, file: Path, function: ast.FunctionDef, hops: int) -> Bound:
        called = handed_on(function)
        if called is None:
            return self._answering(file, function, hops)
        brought = looked_up(called, [imported_in(function)])
        return standing_for(function, brought if brought.path else self._base(file, called, hops))

    def _answering(self, file: Path, function: ast.FunctionDef, hops: int) -> Bound:
        """Return what a function stands for by what its annotation, or all that it returns, tells."""
        if function.returns is not None and not all(map(is_kind, function.decorator_list)):
            return UNKNOWN
        scopes = [_Lazy(lambda name: self._in(file, name, hops + 1))]
        answer = instance_of(function.returns, scopes)
        if answer is not UNKNOWN:
            return Bound(answer=answer)
        made = made_in(function)
        return answering_with(self._base(file, made, hops)) if made is not None else UNKNOWN

    def _base(self, file: Path, node: ast.expr, hops: int) -> Bound:
        if plain_base(node):
            return Bound(plain=True)
        if isinstance(node, ast.Subscript):
            return self._base(file, node.value, hops)
        if isinstance(node, ast.Name):
            return self._in(file, node.id, hops)
        root = ast.unparse(node).partition(".")
        module = self._outline(file).get(root[0])
        return Bound(f"{module[2]}.{root[2]}") if isinstance(module, tuple) and not module[1] else UNKNOWN

    def _outline(self, file: Path, text: str | None = None) -> dict[str, Told]:
        if file not in self._outlines:
            self._outlines[file] = _outline((read_text(file) or "") if text is None else text)
        return self._outlines[file]

    def _file(self, importer: Path, level: int, module: str) -> Path | None:
        key = (importer.parent, level, module)
        if key not in self._found:
            self._found[key] = self._looked_for(importer, level, module.split(".") if module else [])
        return self._found[key] if self._found[key] != importer else None

    def _looked_for(self, importer: Path, level: int, parts: Sequence[str]) -> Path | None:
        if not level and (not parts or self._foreign(parts[0]) or parts[0] in sys.stdlib_module_names):
            return None
        inner = "/".join(parts)
        beside = self._beside.get(parts[0], ()) if parts and not level else ()
        for folder in (*_roots(importer, level), *(beside if len(beside) == 1 else ())):
            path = f"{'' if folder == '.' else folder.rstrip('/') + '/'}{inner}" if inner else folder
            for name in (f"{path}.py", f"{path}/__init__.py"):
                if file := self._files.get(name):
                    return file
        return None


def _roots(importer: Path, level: int) -> list[str]:
    """Return the folders in which a module is looked for."""
    if level:
        return [importer.parents[level - 1].as_posix()] if level <= len(importer.parents) else []
    return [root.as_posix() for parent in importer.parents for root in (parent, parent / "src")]


def _key_of(alias: ast.alias, level: int, module: str) -> str:
    """Return what an import binds; all of a module stands under the module after a star."""
    return f"*{'.' * level}{module}" if alias.name == "*" else alias.asname or alias.name


def _outline(text: str) -> dict[str, Told]:
    """Return the classes of a text, their other names, and what its names are imported from.

    `import x` is told by module ''.
    """
    try:
        tree = parse_python(text)
    except SyntaxError:
        return {}
    found: dict[str, Told] = {}
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            found |= {one.id: node.value for one in node.targets if isinstance(one, ast.Name)}
        elif isinstance(node, ast.ImportFrom):
            told = (node.level, node.module or "")
            found |= {_key_of(a, *told): (*told, a.name) for a in node.names}
        elif isinstance(node, ast.Import):
            roots = ((a.asname or a.name.partition(".")[0], a) for a in node.names)
            found |= {name: (0, "", a.name if a.asname else name) for name, a in roots}
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            waiting[:0] = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt)]
    return found
