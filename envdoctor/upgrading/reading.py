"""Reads what Python code uses of libraries out of its syntax: nothing is imported or run."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from envdoctor.python_source import parse_python
from envdoctor.rules.interface_lookup import DISTINCT
from envdoctor.upgrading.bindings import (
    UNKNOWN,
    Bound,
    Scope,
    caught_by,
    either,
    fields_of,
    filtered,
    handed_up,
    instance_of,
    keyword_place,
    last_names,
    literal_keys,
    looked_up,
    made_by,
    named_after,
    named_in,
    own_members,
    place_of,
    valued,
)
from envdoctor.upgrading.uses import Kind, Place, Read, Use

_CAUGHT = frozenset(("ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "Exception", ""))
_ASKING = ("version", "hasattr", "signature", "inspect")
"""What a condition asks that cares for the absence of a name; that of a package is another's."""
_OF_ARRAYS = frozenset(("itemset", "ptp"))
"""Short names of methods that arrays alone have."""
_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__class__"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_code(source: str) -> Read | None:
    """Return what a text of Python uses; None for one that cannot be parsed."""
    return next(read_cells((source,)))


def read_cells(sources: Iterable[str]) -> Iterator[Read | None]:
    """Yield what each text uses, with the names of those before it; None for one that cannot be parsed."""
    known: Scope = {}
    stars: list[str] = []
    imported: set[str] = set()
    for source in sources:
        try:
            tree = parse_python(source)
        except SyntaxError:
            yield None
            continue
        reader = _Reader(stars, imported)
        reader.body(tree.body, [known])
        reader.finish()
        yield reader.read


def _is_distinct(method: ast.Attribute) -> bool:
    """True for a method whose name tells whose it is; dtypes have their own `newbyteorder`."""
    of_dtype = any("dtype" in text for text in last_names(method.value))
    return (len(method.attr) >= DISTINCT or method.attr in _OF_ARRAYS) and not of_dtype


class _Reader:
    """Walks statements in order with the names known so far; functions wait until their module is read."""

    def __init__(self, stars: list[str], imported: set[str]) -> None:
        self.read = Read()
        self._imported = imported
        self._guarded = 0
        self._postponing = False
        self._postponed = False
        self._stars = stars
        self._loose: list[tuple[str, Place]] = []
        self._waiting: list[tuple[_Function | ast.Lambda, list[Scope], int]] = []

    def finish(self) -> None:
        """Read the functions, then settle the names that star imports must bring."""
        while self._waiting:
            function, scopes, guarded = self._waiting.pop(0)
            self._guarded = guarded
            inner = {**self._parameters(function, scopes), **self._self_of(function, scopes)}
            if isinstance(function, ast.Lambda):
                self._expression(function.body, [*scopes, inner])
            else:
                self.body(function.body, [*scopes, inner])
        for name, place in self._loose if self._stars else ():
            for module in self._stars:
                self.read.uses.append(Use(Kind.STAR, module, place, name))

    def _parameters(self, function: _Function | ast.Lambda, scopes: Sequence[Scope]) -> Scope:
        rest = [one.arg for one in (function.args.vararg, function.args.kwarg) if one is not None]
        named = {one.arg: instance_of(one.annotation, scopes) for one in named_in(function.args)}
        return named | dict.fromkeys(rest, UNKNOWN)

    def _self_of(self, function: _Function | ast.Lambda, scopes: Sequence[Scope]) -> Scope:
        own = scopes[-1].get("<self>")
        if own is None or isinstance(function, ast.Lambda) or not function.args.args:
            return {}
        return {function.args.args[0].arg: own, "<super>": own if own.path else UNKNOWN}

    def body(self, body: Iterable[ast.stmt], scopes: list[Scope]) -> None:
        """Read statements."""
        for node in body:
            self._statement(node, scopes)

    def _statement(self, node: ast.stmt, scopes: list[Scope]) -> None:
        match node:
            case ast.Import():
                self._import(node, scopes)
            case ast.ImportFrom():
                self._import_from(node, scopes)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.read.defined.add(node.name)
                scopes[-1][node.name] = UNKNOWN
                for part in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
                    self._expression(part, scopes)
                rest = (node.args.vararg, node.args.kwarg)
                for argument in (*named_in(node.args), *(one for one in rest if one is not None)):
                    self._annotation(argument.annotation, scopes)
                self._annotation(node.returns, scopes)
                self._waiting.append((node, list(scopes), self._guarded))
            case ast.ClassDef():
                self._class(node, scopes)
            case ast.If():
                self._if(node, scopes)
            case ast.Try():
                self._try(node, scopes)
            case _:
                self._plain(node, scopes)

    def _annotation(self, node: ast.expr | None, scopes: list[Scope]) -> None:
        self._postponed = self._postponing
        self._expression(node, scopes)
        self._postponed = False

    def _plain(self, node: ast.stmt, scopes: list[Scope]) -> None:
        if isinstance(node, ast.AnnAssign):
            self._annotation(node.annotation, scopes)
            bound = self._expression(node.value, scopes)
            known = bound.path or bound.keys is not None
            self._bind(node.target, bound if known else instance_of(node.annotation, scopes), scopes)
            return
        if isinstance(node, ast.Assign):
            bound = self._expression(node.value, scopes)
            for target in node.targets:
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

    def _bind(self, target: ast.expr, bound: Bound, scopes: list[Scope]) -> None:
        if isinstance(target, ast.Name):
            scopes[-1][target.id] = bound
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one in target.elts:
                self._bind(one, UNKNOWN, scopes)
        elif isinstance(target, ast.Attribute):
            self._expression(target, scopes)
            set_on = looked_up(target.value, scopes).attributes
            if set_on is not None:
                known = set_on.setdefault(target.attr, bound)
                set_on[target.attr] = known if known.path == bound.path else UNKNOWN
        elif not isinstance(target, ast.Starred):
            self._expression(target, scopes)

    def _import(self, node: ast.Import, scopes: list[Scope]) -> None:
        for alias in node.names:
            root = alias.name.partition(".")[0]
            scopes[-1][alias.asname or root] = Bound(alias.name if alias.asname else root)
            place = Place(alias.lineno, alias.col_offset, alias.col_offset + len(alias.name.encode()))
            self._use(Use(Kind.MODULE, alias.name, place, statement=place_of(node)))

    def _import_from(self, node: ast.ImportFrom, scopes: list[Scope]) -> None:
        self._postponing |= node.module == "__future__" and any(a.name == "annotations" for a in node.names)
        for alias in node.names:
            if node.level or not node.module:
                scopes[-1][alias.asname or alias.name] = UNKNOWN
            elif alias.name == "*":
                self._stars.append(node.module)
            else:
                path = f"{node.module}.{alias.name}"
                scopes[-1][alias.asname or alias.name] = Bound(path)
                place = Place(alias.lineno, alias.col_offset, alias.col_offset + len(alias.name.encode()))
                self._use(Use(Kind.IMPORT, node.module, place, alias.name, statement=place_of(node)))
                if not alias.asname:
                    self._imported.add(path)

    def _class(self, node: ast.ClassDef, scopes: list[Scope]) -> None:
        bases = [self._expression(base, scopes) for base in node.bases]
        for part in (*node.decorator_list, *(k.value for k in node.keywords)):
            self._expression(part, scopes)
        base = next((b for b in bases if b.path and not b.instance), None)
        inner: Scope = {"<self>": Bound(attributes={})}
        self.read.defined.update(fields_of(node))
        scopes[-1][node.name] = UNKNOWN
        if base is not None and len(bases) == 1:
            own = base.own | frozenset(own_members(node))
            inner["<self>"] = Bound(base.path, True, {}, own)
            self._overrides(node, base)
            taken = handed_up(node)
            scopes[-1][node.name] = UNKNOWN if taken is None else Bound(base.path, own=own, taken=taken)
        self.body(node.body, [*scopes, inner])

    def _overrides(self, node: ast.ClassDef, base: Bound) -> None:
        for method in node.body:
            if isinstance(method, _Function) and method.args.kwarg is None:
                given = frozenset(argument.arg for argument in named_in(method.args))
                self._use(Use(Kind.OVERRIDE, base.path, place_of(method), method.name, given=given))

    def _if(self, node: ast.If, scopes: list[Scope]) -> None:
        self._expression(node.test, scopes)
        test = ast.unparse(node.test)
        asks = any(word in test for word in _ASKING)
        self._guarded += asks
        self._postponed = test.endswith("TYPE_CHECKING")
        self.body(node.body, scopes)
        self._postponed = False
        self._instead([node.orelse], scopes)
        self._guarded -= asks

    def _instead(self, bodies: Iterable[Sequence[ast.stmt]], scopes: list[Scope]) -> None:
        """Read what runs in place of what was read: what stands in there for an import tells nothing."""
        imported = {name: bound for name, bound in scopes[-1].items() if bound.path and not bound.instance}
        for body in bodies:
            self.body(body, scopes)
        now = scopes[-1]
        now.update((n, bound) for n, bound in imported.items() if now[n].instance or not now[n].path)

    def _try(self, node: ast.Try, scopes: list[Scope]) -> None:
        caught = {name.rpartition(".")[2].strip() for h in node.handlers for name in caught_by(h)} & _CAUGHT
        self._guarded += bool(caught)
        self.body(node.body, scopes)
        self._instead((handler.body for handler in node.handlers), scopes)
        self._guarded -= bool(caught)
        self.body([*node.orelse, *node.finalbody], scopes)

    def _use(self, use: Use) -> None:
        if self._guarded or self._postponed:
            use = replace(use, guarded=bool(self._guarded), postponed=self._postponed)
        self.read.uses.append(use)

    def _expression(self, node: ast.expr | None, scopes: list[Scope]) -> Bound:
        """Read an expression and return what it stands for."""
        match node:
            case None:
                return UNKNOWN
            case ast.Name():
                return self._name(node, scopes)
            case ast.Attribute():
                return self._attribute(node, scopes)
            case ast.Call():
                return self._call(node, scopes)
            case ast.Lambda():
                self._waiting.append((node, list(scopes), self._guarded))
                return UNKNOWN
            case ast.IfExp():
                self._expression(node.test, scopes)
                return either(self._expression(node.body, scopes), self._expression(node.orelse, scopes))
            case ast.Dict():
                for part in (*node.keys, *node.values):
                    self._expression(part, scopes)
                return Bound(keys=literal_keys(node))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, scopes)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._expression(child, scopes)
                return UNKNOWN

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scopes: list[Scope]
    ) -> Bound:
        inner: list[Scope] = [*scopes, {}]
        for generator in node.generators:
            self._expression(generator.iter, inner)
            self._bind(generator.target, UNKNOWN, inner)
            for test in generator.ifs:
                self._expression(test, inner)
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        for part in parts:
            self._expression(part, inner)
        return Bound(keys=looked_up(kept, scopes).keys) if (kept := filtered(node)) else UNKNOWN

    def _name(self, node: ast.Name, scopes: list[Scope]) -> Bound:
        bound = next((scope[node.id] for scope in reversed(scopes) if node.id in scope), None)
        place = Place(node.lineno, node.col_offset, node.end_col_offset or 0)
        if bound is None:
            if isinstance(node.ctx, ast.Load) and node.id not in _BUILTINS:
                self._loose.append((node.id, place))
            return UNKNOWN
        if bound.path.rpartition(".")[2] == node.id and bound.path in self._imported:
            self.read.written.setdefault(bound.path, []).append(place)
        return bound

    def _attribute(self, node: ast.Attribute, scopes: list[Scope]) -> Bound:
        base = self._expression(node.value, scopes)
        end = node.end_col_offset or 0
        place = Place(node.end_lineno or node.lineno, end - len(node.attr.encode()), end)
        if base.attributes and isinstance(node.ctx, ast.Load) and node.attr in base.attributes:
            return base.attributes[node.attr]
        if isinstance(node.ctx, ast.Store):
            self.read.defined.add(node.attr)
        if base.member and (held := named_after(base.path)):
            self._use(Use(Kind.MEMBER, held, place, node.attr))
            return Bound(f"{held}.{node.attr}", member=True)
        if not base.path or base.member:
            if isinstance(node.ctx, ast.Load) and len(node.attr) >= DISTINCT:
                self._use(Use(Kind.LOOSE, "", place, node.attr))
            return UNKNOWN
        if not base.instance:
            self._use(Use(Kind.PATH, f"{base.path}.{node.attr}", place))
            return Bound(f"{base.path}.{node.attr}")
        if isinstance(node.ctx, ast.Load) and node.attr not in base.own:
            self._use(Use(Kind.MEMBER, base.path, place, node.attr))
            return Bound(f"{base.path}.{node.attr}", member=True)
        return UNKNOWN

    def _call(self, node: ast.Call, scopes: list[Scope]) -> Bound:
        called = self._called(node.func, scopes)
        starred = any(isinstance(a, ast.Starred) for a in node.args)
        for argument in node.args:
            self._expression(argument, scopes)
        given = [(k, self._expression(k.value, scopes)) for k in node.keywords]
        if isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
            return Bound(keys=tuple((k.arg, keyword_place(k)) for k in node.keywords if k.arg))
        if (
            isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "__import__")
            and len(node.args) > 1
        ):
            self._dynamic(node, scopes)
        self._called_method(node, starred)
        if not called.path:
            self._loose_keywords(node)
            return UNKNOWN
        if called.path in ("importlib.import_module",):
            self.read.unfollowed += not (node.args and isinstance(node.args[0], ast.Constant))
            return UNKNOWN
        for keyword, value in given:
            if keyword.arg and keyword.arg not in called.taken:
                place = keyword_place(keyword)
                self._use(
                    Use(Kind.KEYWORD, called.path, place, keyword.arg, given=frozenset(valued(keyword)))
                )
            elif keyword.arg:
                continue
            elif value.keys is not None:
                for name, place in value.keys:
                    self._use(Use(Kind.KEYWORD, called.path, place, name))
            else:
                self.read.unfollowed += 1
        if node.args and not starred and not called.taken:
            place = Place(node.lineno, node.col_offset, node.end_col_offset or 0)
            self._use(Use(Kind.POSITION, called.path, place, count=len(node.args)))
        return made_by(called)

    def _called_method(self, node: ast.Call, starred: bool) -> None:
        """Note the call of a method with a telling name, and all that it is given."""
        named = all(keyword.arg for keyword in node.keywords)
        if isinstance(node.func, ast.Attribute) and _is_distinct(node.func) and named and not starred:
            values = (value for k in node.keywords for value in valued(k))
            given = frozenset((*(k.arg for k in node.keywords if k.arg), *values))
            end = node.func.end_col_offset or 0
            place = Place(node.func.end_lineno or node.lineno, end - len(node.func.attr.encode()), end)
            self._use(Use(Kind.CALL, "", place, node.func.attr, given=given))

    def _loose_keywords(self, node: ast.Call) -> None:
        """Note the keywords of a method whose owner nothing tells."""
        if isinstance(node.func, ast.Attribute):
            for keyword in node.keywords:
                if keyword.arg and len(node.func.attr) + len(keyword.arg) >= 2 * DISTINCT:
                    self._use(Use(Kind.LOOSE, node.func.attr, keyword_place(keyword), keyword.arg))

    def _called(self, node: ast.expr, scopes: list[Scope]) -> Bound:
        """Return what is called; `super().method` is the base's own."""
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
            and node.value.func.id == "super"
        ):
            own = next((s["<super>"] for s in reversed(scopes) if "<super>" in s), UNKNOWN)
            return Bound(f"{own.path}.{node.attr}") if own.path else UNKNOWN
        return self._expression(node, scopes)

    def _dynamic(self, node: ast.Call, scopes: list[Scope]) -> None:
        if not isinstance(node.args[1], ast.Constant) and self._expression(node.args[0], scopes).path:
            self.read.unfollowed += 1
