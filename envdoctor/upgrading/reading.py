"""Reads what Python code uses of libraries out of its syntax: nothing is imported or run."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from envdoctor.python_source import parse_python
from envdoctor.rules.interface_lookup import DISTINCT
from envdoctor.upgrading.bindings import (
    UNKNOWN,
    Bound,
    Key,
    Scope,
    called_on_self,
    either,
    fields_of,
    filtered,
    instance_of,
    is_class,
    is_distinct,
    key_of,
    keyword_place,
    last_names,
    literal_keys,
    looked_up,
    made_by,
    named_after,
    named_in,
    options_of,
    paths_in,
    place_of,
    sets_on_self,
    valued,
)
from envdoctor.upgrading.classes import Brought, class_of, plain_base
from envdoctor.upgrading.guarding import OPEN, Guard, branches, condition_of, guarded_by, handling
from envdoctor.upgrading.uses import ALL, Kind, Place, Read, Use

_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__class__"}
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _nothing(level: int, module: str, name: str) -> Bound:
    return UNKNOWN


def read_cells(sources: Iterable[str], brought: Brought = _nothing) -> Iterator[Read | None]:
    """Yield what each text uses, with the names of those before it; None for one that cannot be parsed.

    `brought` tells what imports from the same project bring.
    """
    known: Scope = {}
    stars: list[str] = []
    imported: set[str] = set()
    for source in sources:
        try:
            tree = parse_python(source)
        except SyntaxError:
            yield None
            continue
        reader = _Reader(stars, imported, brought)
        reader.body(tree.body, [known])
        reader.finish()
        yield reader.read


class _Reader:
    """Walks statements in order with the names known so far; functions wait until their module is read."""

    def __init__(self, stars: list[str], imported: set[str], brought: Brought) -> None:
        self.read = Read()
        self._imported = imported
        self._brought = brought
        self._guard = OPEN
        self._postponing = False
        self._postponed = False
        self._stars = stars
        self._loose: list[tuple[str, Place]] = []
        self._waiting: list[tuple[_Function | ast.Lambda, list[Scope], Guard]] = []
        self._bound: Counter[str] = Counter()

    def finish(self) -> None:
        """Read the functions, then settle the names that star imports must bring."""
        while self._waiting:
            function, scopes, self._guard = self._waiting.pop(0)
            inner = {**self._parameters(function, scopes), **self._self_of(function, scopes)}
            if isinstance(function, ast.Lambda):
                self._expression(function.body, [*scopes, inner])
            else:
                self.body(function.body, [*scopes, inner])
        for name, place in self._loose if self._stars else ():
            for module in self._stars:
                self.read.uses.append(Use(Kind.STAR, module, place, name))
        self.read.uses[:] = (use for use in self.read.uses if not self._comes_elsewhere(use))

    def _comes_elsewhere(self, use: Use) -> bool:
        """True for an import that may fail, of a name that is bound a second time."""
        return use.unsure and use.kind is Kind.IMPORT and self._bound[use.name] > 1

    def _parameters(self, function: _Function | ast.Lambda, scopes: Sequence[Scope]) -> Scope:
        rest = [one.arg for one in (function.args.vararg, function.args.kwarg) if one is not None]
        named = {one.arg: instance_of(one.annotation, scopes) for one in named_in(function.args)}
        return named | dict.fromkeys(rest, UNKNOWN)

    def _self_of(self, function: _Function | ast.Lambda, scopes: Sequence[Scope]) -> Scope:
        own = scopes[-1].get("<self>")
        if own is None or isinstance(function, ast.Lambda) or not function.args.args:
            return {}
        return {function.args.args[0].arg: own, "<super>": scopes[-1]["<above>"]}

    def body(self, body: Iterable[ast.stmt], scopes: list[Scope]) -> None:
        """Read statements; those after a condition that is left by are read as where it does not hold."""
        outer = self._guard
        for node in body:
            self._statement(node, scopes)
            test = node.test if isinstance(node, ast.If) and isinstance(node.body[-1], _LEAVING) else None
            if condition := condition_of(test, scopes):
                self._guard = self._guard.below(condition.turned())
        self._guard = outer

    def _statement(self, node: ast.stmt, scopes: list[Scope]) -> None:
        match node:
            case ast.Import():
                self._import(node, scopes)
            case ast.ImportFrom():
                self._import_from(node, scopes)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                taken = (f"{node.name}({argument.arg})" for argument in named_in(node.args))
                self.read.defined.update((node.name, *taken))
                scopes[-1][node.name] = UNKNOWN
                for part in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
                    self._expression(part, scopes)
                rest = (node.args.vararg, node.args.kwarg)
                for argument in (*named_in(node.args), *(one for one in rest if one is not None)):
                    self._annotation(argument.annotation, scopes)
                self._annotation(node.returns, scopes)
                self._waiting.append((node, list(scopes), self._guard))
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
            if condition := condition_of(node.value, scopes):
                bound = Bound(condition=condition)
            for target in node.targets:
                self._bind(target, bound, scopes, node.value)
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

    def _bind(
        self, target: ast.expr, bound: Bound, scopes: list[Scope], value: ast.expr | None = None
    ) -> None:
        if isinstance(target, ast.Name):
            self._bound[target.id] += 1
            if bound.keys is not None and self._guard is not OPEN:
                bound = UNKNOWN  # below a question no one tells whether it has these keys
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
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and value is not None:
            self._add_key(target.value.id, key_of(target.slice, value), scopes)
            self._expression(target, scopes)
        elif not isinstance(target, ast.Starred):
            self._expression(target, scopes)

    def _add_key(self, name: str, key: Key | None, scopes: Sequence[Scope]) -> None:
        """Note a key that is set in a dictionary of known keys."""
        scope = next((scope for scope in reversed(scopes) if name in scope), {})
        told = not self._guard.when and not self._guard.kinds
        if told and key and name in scope and (keys := scope[name].keys) is not None:
            scope[name] = Bound(keys=(*(k for k in keys if k.name != key.name), key))

    def _import(self, node: ast.Import, scopes: list[Scope]) -> None:
        for alias in node.names:
            root = alias.name.partition(".")[0]
            scopes[-1][alias.asname or root] = Bound(alias.name if alias.asname else root)
            place = Place(alias.lineno, alias.col_offset, alias.col_offset + len(alias.name.encode()))
            self._use(Use(Kind.MODULE, alias.name, place, statement=place_of(node)))

    def _import_from(self, node: ast.ImportFrom, scopes: list[Scope]) -> None:
        self._postponing |= node.module == "__future__" and any(a.name == "annotations" for a in node.names)
        for alias in node.names:
            self._bound[alias.asname or alias.name] += 1
            own = self._brought(node.level, node.module or "", alias.name)
            if node.level or not node.module or own is not UNKNOWN:
                scopes[-1][alias.asname or alias.name] = own
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
        told = zip(node.bases, bases, strict=True)
        whole = class_of(node, [replace(b, plain=True) if plain_base(written) else b for written, b in told])
        known = bool(whole.path) and not whole.open
        above = bases[0] if bases and bases[0].path == whole.path else UNKNOWN
        inner: Scope = {
            "<self>": Bound(whole.path, True, {}, whole.own) if known else Bound(attributes={}),
            "<above>": above if not above.instance else UNKNOWN,
        }
        self.read.defined.update(fields_of(node))
        self._bound[node.name] += 1
        scopes[-1][node.name] = whole
        if whole.path:
            self._overrides(node, whole, any("__init__" in base.own for base in bases))
        self.body(node.body, [*scopes, inner])

    def _overrides(self, node: ast.ClassDef, base: Bound, made: bool) -> None:
        """Note the methods that may stand for a library's; `made`: a base of the text's makes the rest.

        What is loaded by a way of its own need not be made as the library's loader asks.
        """
        brought = any(isinstance(one, _Function) and one.name == "from_pretrained" for one in node.body)
        for method in node.body:
            if not isinstance(method, _Function):
                continue
            if method.name == "__init__" and not made and not brought and sets_on_self(method):
                given = called_on_self(method)
            elif method.name != "__init__" and method.args.kwarg is None:
                given = frozenset(argument.arg for argument in named_in(method.args))
            else:
                continue
            named = node.name if method.name == "__init__" else ""
            use = Use(Kind.OVERRIDE, base.path, place_of(method), method.name, given=given, receiver=named)
            self._use(use)

    def _if(self, node: ast.If, scopes: list[Scope]) -> None:
        self._expression(node.test, scopes)
        outer = self._guard
        self._guard, other = branches(outer, node.test, scopes)
        self._postponed = next(last_names(node.test), "") == "TYPE_CHECKING"
        self.body(node.body, scopes)
        self._postponed = False
        self._guard = other
        self._instead([node.orelse], scopes)
        self._guard = outer

    def _instead(self, bodies: Iterable[Sequence[ast.stmt]], scopes: list[Scope]) -> None:
        """Read what runs in place of what was read: what stands in there for an import tells nothing."""
        imported = {name: bound for name, bound in scopes[-1].items() if bound.path and not bound.instance}
        for body in bodies:
            self.body(body, scopes)
        now = scopes[-1]
        now.update((n, bound) for n, bound in imported.items() if now[n].instance or not now[n].path)

    def _try(self, node: ast.Try, scopes: list[Scope]) -> None:
        outer, self._guard = self._guard, guarded_by(self._guard, node)
        self.body(node.body, scopes)
        for handler in node.handlers:
            self._caught(handler.type, scopes)
        self._guard = handling(outer, node.handlers)
        self._instead((handler.body for handler in node.handlers), scopes)
        self._guard = outer
        self.body([*node.orelse, *node.finalbody], scopes)

    def _caught(self, node: ast.expr | None, scopes: Sequence[Scope]) -> None:
        """Note the errors that are looked out for."""
        for one in node.elts if isinstance(node, ast.Tuple) else (node,):
            told = looked_up(one, scopes) if one is not None else UNKNOWN
            if one is not None and told.path and not told.instance:
                place = Place(one.lineno, one.col_offset, one.end_col_offset or 0)
                self._use(Use(Kind.CAUGHT, told.path, place, told.path.rpartition(".")[2]))

    def _use(self, use: Use) -> None:
        self.read.uses.append(self._guard.on(replace(use, unsure=True) if self._postponed else use))

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
                self._waiting.append((node, list(scopes), self._guard))
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
            self.read.defined.add(f"{next(last_names(node.value), '')}.{node.attr}")
        if base.member and (held := named_after(base.path)):
            self._use(Use(Kind.MEMBER, held, place, node.attr, receiver=base.path.rpartition(".")[2]))
            return Bound(f"{held}.{node.attr}", member=True)
        if not base.path or base.member:
            if isinstance(node.ctx, ast.Load) and len(node.attr) >= DISTINCT:
                self._use(Use(Kind.LOOSE, "", place, node.attr, receiver=next(last_names(node.value), "")))
            return UNKNOWN
        if not base.instance and node.attr in base.own:
            return UNKNOWN
        if not base.instance:
            if isinstance(node.ctx, ast.Load):
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
            return Bound(
                keys=tuple(
                    Key(k.arg, keyword_place(k), valued(k.arg, k.value)) for k in node.keywords if k.arg
                )
            )
        if (
            isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "__import__")
            and len(node.args) > 1
        ):
            self._dynamic(node, scopes)
        self._named_in_text(node)
        if isinstance(node.func, ast.Name) and node.func.id == "isinstance" and len(node.args) > 1:
            self._caught(node.args[1], scopes)
        self._called_method(node, called, given, starred)
        if not called.path:
            self._loose_keywords(node)
            return UNKNOWN
        if called.closed:
            return made_by(called)
        if called.path in ("importlib.import_module",):
            self.read.unfollowed += not (node.args and isinstance(node.args[0], ast.Constant))
            return UNKNOWN
        for keyword, value in given:
            if keyword.arg and keyword.arg not in called.taken:
                known = frozenset((valued(keyword.arg, keyword.value),))
                self._use(Use(Kind.KEYWORD, called.path, keyword_place(keyword), keyword.arg, given=known))
            elif keyword.arg:
                continue
            elif value.keys is not None:
                for key in value.keys:
                    self._use(
                        Use(Kind.KEYWORD, called.path, key.place, key.name, given=frozenset((key.value,)))
                    )
            else:
                self.read.unfollowed += 1
        if not starred and not called.taken:
            place = Place(node.lineno, node.col_offset, node.end_col_offset or 0)
            names = [keyword.arg or ALL for keyword in node.keywords]
            self._use(Use(Kind.POSITION, called.path, place, count=len(node.args), given=frozenset(names)))
        return made_by(called)

    def _named_in_text(self, node: ast.Call) -> None:
        """Note the path that a call is given as a text."""
        for path, place in paths_in(node):
            self._use(Use(Kind.PATH, path, place, unsure=True))

    def _called_method(
        self, node: ast.Call, called: Bound, told: Sequence[tuple[ast.keyword, Bound]], starred: bool
    ) -> None:
        """Note the call of a method with a telling name, and all that it is given.

        Settings that go by the method's own name are what it works with, not how it works.
        """
        if not isinstance(node.func, ast.Attribute) or not is_distinct(node.func) or starred:
            return
        if called.path and not called.member and not is_class(called.path.split(".")[-2]):
            return  # a module's function
        subject = node.func.attr.partition("_")[2]
        given: set[str] = set()
        for keyword, bound in told:
            if keyword.arg:
                given |= {keyword.arg, valued(keyword.arg, keyword.value)}
            elif bound.keys is not None:
                given |= {part for key in bound.keys for part in (key.name, key.value)}
            elif not subject or subject not in ast.unparse(keyword.value):
                return
        end = node.func.end_col_offset or 0
        place = Place(node.func.end_lineno or node.lineno, end - len(node.func.attr.encode()), end)
        receiver = next(last_names(node.func.value), "")
        self._use(Use(Kind.CALL, "", place, node.func.attr, given=frozenset(given), receiver=receiver))

    def _loose_keywords(self, node: ast.Call) -> None:
        """Note the keywords of a method whose owner nothing tells."""
        if not isinstance(node.func, ast.Attribute):
            return
        receiver = next(last_names(node.func.value), "")
        self.read.defined.update(options_of(node))
        for keyword in node.keywords:
            if keyword.arg and len(node.func.attr) + len(keyword.arg) >= 2 * DISTINCT:
                place = keyword_place(keyword)
                self._use(Use(Kind.LOOSE, node.func.attr, place, keyword.arg, receiver=receiver))

    def _called(self, node: ast.expr, scopes: list[Scope]) -> Bound:
        """Return what is called; `super().method` is the base's own."""
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
            and node.value.func.id == "super"
        ):
            own = next((s["<super>"] for s in reversed(scopes) if "<super>" in s), UNKNOWN)
            return Bound(f"{own.path}.{node.attr}") if own.path and node.attr not in own.own else UNKNOWN
        return self._expression(node, scopes)

    def _dynamic(self, node: ast.Call, scopes: list[Scope]) -> None:
        if not isinstance(node.args[1], ast.Constant) and self._expression(node.args[0], scopes).path:
            self.read.unfollowed += 1
