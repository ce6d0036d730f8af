"""Reads what Python code uses of libraries out of its syntax: nothing is imported or run."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence

from envdoctor.python_source import parse_python
from envdoctor.upgrading.uses import Kind, Place, Read, Use
from envdoctor.values import dataclass

_CAUGHT = frozenset(("ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "Exception", ""))
_ASKING = ("version", "available", "hasattr", "TYPE_CHECKING", "find_spec", "signature", "inspect")
_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__class__"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class _Bound:
    """What a name stands for: a dotted path, an instance of the class at that path, or known keys."""

    path: str = ""
    instance: bool = False
    own: frozenset[str] = frozenset()
    """Members that a subclass in the text defines itself."""
    keys: tuple[tuple[str, Place], ...] | None = None


_UNKNOWN = _Bound()
_Scope = dict[str, _Bound]


def read_code(source: str) -> Read | None:
    """Return what a text of Python uses; None for one that cannot be parsed."""
    try:
        tree = parse_python(source)
    except SyntaxError:
        return None
    reader = _Reader()
    reader.body(tree.body, [{}])
    reader.finish()
    return reader.read


class _Reader:
    """Walks statements in order with the names known so far; functions wait until their module is read."""

    def __init__(self) -> None:
        self.read = Read()
        self._guarded = 0
        self._stars: list[str] = []
        self._loose: list[tuple[str, Place]] = []
        self._waiting: list[tuple[_Function | ast.Lambda, list[_Scope], int]] = []

    def finish(self) -> None:
        """Read the functions, then settle the names that star imports must bring."""
        while self._waiting:
            function, scopes, guarded = self._waiting.pop(0)
            self._guarded = guarded
            inner = {**self._parameters(function), **self._self_of(function, scopes)}
            if isinstance(function, ast.Lambda):
                self._expression(function.body, [*scopes, inner])
            else:
                self.body(function.body, [*scopes, inner])
        for name, place in self._loose if self._stars else ():
            for module in self._stars:
                self.read.uses.append(Use(Kind.STAR, module, place, name))

    def _parameters(self, function: _Function | ast.Lambda) -> _Scope:
        told = function.args
        named = [*told.posonlyargs, *told.args, *told.kwonlyargs, told.vararg, told.kwarg]
        return {argument.arg: _UNKNOWN for argument in named if argument is not None}

    def _self_of(self, function: _Function | ast.Lambda, scopes: Sequence[_Scope]) -> _Scope:
        own = scopes[-1].get("<self>")
        if own is None or isinstance(function, ast.Lambda) or not function.args.args:
            return {}
        return {function.args.args[0].arg: own, "<super>": own}

    def body(self, body: Iterable[ast.stmt], scopes: list[_Scope]) -> None:
        """Read statements."""
        for node in body:
            self._statement(node, scopes)

    def _statement(self, node: ast.stmt, scopes: list[_Scope]) -> None:
        match node:
            case ast.Import():
                self._import(node, scopes)
            case ast.ImportFrom():
                self._import_from(node, scopes)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                scopes[-1][node.name] = _UNKNOWN
                for part in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
                    self._expression(part, scopes)
                self._waiting.append((node, list(scopes), self._guarded))
            case ast.ClassDef():
                self._class(node, scopes)
            case ast.If():
                self._if(node, scopes)
            case ast.Try():
                self._try(node, scopes)
            case _:
                self._plain(node, scopes)

    def _plain(self, node: ast.stmt, scopes: list[_Scope]) -> None:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            bound = self._expression(node.value, scopes)
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                self._bind(target, bound, scopes)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self._statement(child, scopes)
            elif isinstance(child, ast.expr):
                self._expression(child, scopes)
            elif isinstance(child, ast.withitem):
                bound = self._expression(child.context_expr, scopes)
                if child.optional_vars is not None:
                    self._bind(child.optional_vars, bound, scopes)
            elif isinstance(child, ast.match_case):
                self.body(child.body, scopes)

    def _bind(self, target: ast.expr, bound: _Bound, scopes: list[_Scope]) -> None:
        if isinstance(target, ast.Name):
            scopes[-1][target.id] = bound
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one in target.elts:
                self._bind(one, _UNKNOWN, scopes)
        elif not isinstance(target, ast.Starred):
            self._expression(target, scopes)

    def _import(self, node: ast.Import, scopes: list[_Scope]) -> None:
        for alias in node.names:
            root = alias.name.partition(".")[0]
            scopes[-1][alias.asname or root] = _Bound(alias.name if alias.asname else root)
            place = Place(alias.lineno, alias.col_offset, alias.col_offset + len(alias.name.encode()))
            self._use(Use(Kind.MODULE, alias.name, place, statement=_place(node)))

    def _import_from(self, node: ast.ImportFrom, scopes: list[_Scope]) -> None:
        for alias in node.names:
            if node.level or not node.module:
                scopes[-1][alias.asname or alias.name] = _UNKNOWN
            elif alias.name == "*":
                self._stars.append(node.module)
            else:
                path = f"{node.module}.{alias.name}"
                scopes[-1][alias.asname or alias.name] = _Bound(path)
                place = Place(alias.lineno, alias.col_offset, alias.col_offset + len(alias.name.encode()))
                self._use(Use(Kind.IMPORT, node.module, place, alias.name, statement=_place(node)))
                if not alias.asname:
                    self.read.written.setdefault(path, [])

    def _class(self, node: ast.ClassDef, scopes: list[_Scope]) -> None:
        bases = [self._expression(base, scopes) for base in node.bases]
        for part in (*node.decorator_list, *(k.value for k in node.keywords)):
            self._expression(part, scopes)
        base = next((b for b in bases if b.path and not b.instance), None)
        inner: _Scope = {}
        scopes[-1][node.name] = _UNKNOWN
        if base is not None and len(bases) == 1:
            own = base.own | frozenset(_own_members(node))
            inner["<self>"] = _Bound(base.path, True, own)
            scopes[-1][node.name] = _UNKNOWN if "__init__" in own else _Bound(base.path, own=own)
        self.body(node.body, [*scopes, inner])

    def _if(self, node: ast.If, scopes: list[_Scope]) -> None:
        self._expression(node.test, scopes)
        asks = any(word in ast.unparse(node.test) for word in _ASKING)
        self._guarded += asks
        self.body(node.body, scopes)
        self.body(node.orelse, scopes)
        self._guarded -= asks

    def _try(self, node: ast.Try, scopes: list[_Scope]) -> None:
        caught = {name.rpartition(".")[2].strip() for h in node.handlers for name in _caught(h)} & _CAUGHT
        self._guarded += bool(caught)
        self.body(node.body, scopes)
        for handler in node.handlers:
            self.body(handler.body, scopes)
        self._guarded -= bool(caught)
        self.body([*node.orelse, *node.finalbody], scopes)

    def _use(self, use: Use) -> None:
        if self._guarded:
            use = Use(use.kind, use.path, use.place, use.name, use.count, True, use.statement)
        self.read.uses.append(use)

    def _expression(self, node: ast.expr | None, scopes: list[_Scope]) -> _Bound:
        """Read an expression and return what it stands for."""
        match node:
            case None:
                return _UNKNOWN
            case ast.Name():
                return self._name(node, scopes)
            case ast.Attribute():
                return self._attribute(node, scopes)
            case ast.Call():
                return self._call(node, scopes)
            case ast.Lambda():
                self._waiting.append((node, list(scopes), self._guarded))
                return _UNKNOWN
            case ast.Dict():
                for part in (*node.keys, *node.values):
                    self._expression(part, scopes)
                return _Bound(keys=_literal_keys(node))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, scopes)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._expression(child, scopes)
                return _UNKNOWN

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scopes: list[_Scope]
    ) -> _Bound:
        inner: list[_Scope] = [*scopes, {}]
        for generator in node.generators:
            self._expression(generator.iter, inner)
            self._bind(generator.target, _UNKNOWN, inner)
            for test in generator.ifs:
                self._expression(test, inner)
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        for part in parts:
            self._expression(part, inner)
        return _UNKNOWN

    def _name(self, node: ast.Name, scopes: list[_Scope]) -> _Bound:
        bound = next((scope[node.id] for scope in reversed(scopes) if node.id in scope), None)
        place = Place(node.lineno, node.col_offset, node.end_col_offset or 0)
        if bound is None:
            if isinstance(node.ctx, ast.Load) and node.id not in _BUILTINS:
                self._loose.append((node.id, place))
            return _UNKNOWN
        if bound.path.rpartition(".")[2] == node.id and bound.path in self.read.written:
            self.read.written[bound.path].append(place)
        return bound

    def _attribute(self, node: ast.Attribute, scopes: list[_Scope]) -> _Bound:
        base = self._expression(node.value, scopes)
        end = node.end_col_offset or 0
        place = Place(node.end_lineno or node.lineno, end - len(node.attr.encode()), end)
        if not base.path:
            return _UNKNOWN
        if not base.instance:
            self._use(Use(Kind.PATH, f"{base.path}.{node.attr}", place))
            return _Bound(f"{base.path}.{node.attr}")
        if isinstance(node.ctx, ast.Load) and node.attr not in base.own:
            self._use(Use(Kind.MEMBER, base.path, place, node.attr))
            return _Bound(f"{base.path}.{node.attr}")
        return _UNKNOWN

    def _call(self, node: ast.Call, scopes: list[_Scope]) -> _Bound:
        called = self._called(node.func, scopes)
        starred = any(isinstance(a, ast.Starred) for a in node.args)
        for argument in node.args:
            self._expression(argument, scopes)
        given = [(k, self._expression(k.value, scopes)) for k in node.keywords]
        if isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
            return _Bound(keys=tuple((k.arg, _keyword_place(k)) for k in node.keywords if k.arg))
        if (
            isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "__import__")
            and len(node.args) > 1
        ):
            self._dynamic(node, scopes)
        if not called.path:
            return _UNKNOWN
        if called.path in ("importlib.import_module",):
            self.read.unfollowed += not (node.args and isinstance(node.args[0], ast.Constant))
            return _UNKNOWN
        for keyword, value in given:
            if keyword.arg:
                self._use(Use(Kind.KEYWORD, called.path, _keyword_place(keyword), keyword.arg))
            elif value.keys is not None:
                for name, place in value.keys:
                    self._use(Use(Kind.KEYWORD, called.path, place, name))
            else:
                self.read.unfollowed += 1
        if node.args and not starred:
            place = Place(node.lineno, node.col_offset, node.end_col_offset or 0)
            self._use(Use(Kind.POSITION, called.path, place, count=len(node.args)))
        return _made(called)

    def _called(self, node: ast.expr, scopes: list[_Scope]) -> _Bound:
        """Return what is called; `super().method` is the base's own."""
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
            and node.value.func.id == "super"
        ):
            own = next((s["<super>"] for s in reversed(scopes) if "<super>" in s), _UNKNOWN)
            return _Bound(f"{own.path}.{node.attr}") if own.path else _UNKNOWN
        return self._expression(node, scopes)

    def _dynamic(self, node: ast.Call, scopes: list[_Scope]) -> None:
        if not isinstance(node.args[1], ast.Constant) and self._expression(node.args[0], scopes).path:
            self.read.unfollowed += 1


def _place(node: ast.stmt) -> Place:
    return Place(node.lineno, node.col_offset, node.end_lineno or node.lineno)


def _keyword_place(node: ast.keyword) -> Place:
    return Place(node.lineno, node.col_offset, node.col_offset + len((node.arg or "").encode()))


def _caught(handler: ast.ExceptHandler) -> list[str]:
    if handler.type is None:
        return [""]
    listed = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [ast.unparse(one) for one in listed]


def _literal_keys(node: ast.Dict) -> tuple[tuple[str, Place], ...] | None:
    """Return the keys of a literal; the place is inside of the quotes, None where a key is not plain."""
    found = []
    for key in node.keys:
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            return None
        start = key.col_offset + 1
        plain = (key.end_col_offset or 0) - key.col_offset == len(key.value.encode()) + 2
        found.append(
            (key.value, Place(key.lineno, start, start + len(key.value.encode()) if plain else start))
        )
    return tuple(found)


def _own_members(node: ast.ClassDef) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield inner.name
        elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            yield inner.attr
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id


def _made(called: _Bound) -> _Bound:
    """Return what a call yields: an instance of a class, also through `from_pretrained`."""
    path = called.path
    owner, _, last = path.rpartition(".")
    if last in ("from_pretrained", "from_config") and _is_class(owner.rpartition(".")[2]):
        return _UNKNOWN if owner.rpartition(".")[2].startswith("Auto") else _Bound(owner, True)
    return _Bound(path, True, called.own) if _is_class(last) else _UNKNOWN


def _is_class(name: str) -> bool:
    return name[:1].isupper() and not name.isupper()
