"""Which names a module's own `__getattr__` brings when they are asked for, by its syntax; nothing is run.

It is followed for each name that it looks up, and for one that nobody told: where every way of that one
ends in an error, the others are all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

MAKER = "__getattr__"
"""Brings a module's names when they are asked for."""
DEEPEST = 4
"""How many variables a table is followed through."""
_COLLECTIONS = ("dict", "frozenset", "list", "set", "sorted", "tuple")
_OWN_NAMES = re.compile(r"(?:globals|vars)\(\)|sys\.modules\[\w{1,60}\]\.__dict__")
"""What has only the names that the module binds by itself."""
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_Tables = Mapping[str, Sequence[ast.expr]]
"""By a variable's name all that was put into it."""


@dataclass(frozen=True, slots=True)
class Served:
    """What is brought when it is asked for.

    `names`: as they are looked up (`module:name` where one function serves several modules); `more`: true
    where others may be; `maker`: the function that made what is asked for the rest.
    """

    names: frozenset[str] = frozenset()
    more: bool = False
    maker: str = ""


class _End(Enum):
    FALLS = "goes on behind it"
    FAILS = "an error"
    GIVES = "a value"


@dataclass(slots=True)
class _Asked:
    """One function that is asked for a name; for one that no table holds where it is empty."""

    asked: str
    names: set[str]
    """What the name is called in it, and the texts made of it."""
    tables: dict[str, Sequence[ast.expr]]
    makers: Mapping[str, str]
    """By what a call of them made, the functions that were called with the module's name."""
    missing: set[str] = field(default_factory=set)
    """Variables that hold nothing, for the name was looked up in vain."""
    delegated: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    """Functions of its own that do nothing but fail: to be given one helps nobody."""

    def ends(self, body: Iterable[ast.stmt]) -> set[_End]:
        """Return how these statements may end, one after the other."""
        found: set[_End] = set()
        for node in body:
            ends = self._ends(node)
            found |= ends - {_End.FALLS}
            if _End.FALLS not in ends:
                return found
        return found | {_End.FALLS}

    def _ends(self, node: ast.stmt) -> set[_End]:
        match node:
            case ast.Raise():
                return {_End.FAILS}
            case ast.Return(value=value):
                return {self._given(value)}
            case ast.If(test=test, body=body, orelse=orelse):
                holds = self._holds(test)
                return (self.ends(body) if holds is not False else set()) | (
                    self.ends(orelse) if holds is not True else set()
                )
            case ast.Try():
                return self._tried(node)
            case ast.With(body=body):
                return self.ends(body)
            case ast.For(body=body) | ast.While(body=body):
                return self.ends(body) | {_End.FALLS}
            case ast.Match(cases=cases):
                return {_End.FALLS}.union(*(self.ends(case.body) for case in cases))
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                return self._set(name, value)
            case ast.Assign(targets=[ast.Subscript(value=held, slice=key)], value=value) if self._is_asked(
                key
            ):
                self.tables[ast.unparse(held)] = (ast.Constant(self.asked),)
                return {_End.FAILS if self._in_vain(value) else _End.FALLS}
            case ast.FunctionDef(name=name, body=body):
                self.failing |= {name} if self.ends(body) == {_End.FAILS} else set()
                return {_End.FALLS}
            case ast.AsyncFunctionDef() | ast.ClassDef():
                return {_End.FALLS}
            case _:
                return {_End.FAILS if self._in_vain(node) else _End.FALLS}

    def _tried(self, node: ast.Try) -> set[_End]:
        ends = self.ends(node.body)
        if _End.FALLS in ends:
            ends = (ends - {_End.FALLS}) | self.ends(node.orelse)
        if _End.FAILS in ends and node.handlers:
            ends = (ends - {_End.FAILS}).union(*(self.ends(handler.body) for handler in node.handlers))
        return ends

    def _set(self, name: str, value: ast.expr) -> set[_End]:
        if self._in_vain(value):
            return {_End.FAILS}
        if self._is_nothing(value):
            self.missing.add(name)
        elif isinstance(value, ast.JoinedStr) and any(self._is_asked(part) for part in ast.walk(value)):
            self.names.add(name)
        else:
            self.tables[name] = (value,)
        return {_End.FALLS}

    def _given(self, value: ast.expr | None) -> _End:
        match value:
            case ast.Call(func=ast.Name(id=name), args=[given]) if name in self.makers and self._is_asked(
                given
            ):
                self.delegated.add(self.makers[name])
                return _End.FAILS
            case None | ast.Constant(value=None):
                return _End.FAILS
            case ast.Name(id=name) if name in self.failing:
                return _End.FAILS
            case _:
                return _End.FAILS if self._in_vain(value) else _End.GIVES

    def _in_vain(self, node: ast.AST) -> bool:
        """True where a table is asked for the name, which it does not hold."""
        parts = (one for one in ast.walk(node) if isinstance(one, ast.Subscript))
        return any(self._is_asked(one.slice) and self._has(one.value) is False for one in parts)

    def _is_nothing(self, value: ast.expr) -> bool:
        match value:
            case (
                ast.Call(func=ast.Attribute(value=held, attr="get"), args=[asked])
                | ast.Call(func=ast.Attribute(value=held, attr="get"), args=[asked, ast.Constant(value=None)])
            ):
                return self._is_asked(asked) and self._has(held) is False
            case ast.Name(id=name):
                return name in self.missing
            case _:
                return False

    def _holds(self, test: ast.expr) -> bool | None:
        """Return what a question comes to for a name that nobody told; None where that is open."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                held = self._holds(inner)
                return None if held is None else not held
            case ast.BoolOp(op=op, values=values):
                answers = [self._holds(one) for one in values]
                decides = isinstance(op, ast.Or)
                return decides if decides in answers else None if None in answers else not decides
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                self._set(name, value)
                return False if name in self.missing else None
            case ast.Name():
                return False if self._is_nothing(test) else None
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compares(left, op, right)
            case _:
                return None

    def _compares(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool | None:
        if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
            if isinstance(left, ast.NamedExpr):
                self._holds(left)
                left = left.target
            return isinstance(op, ast.Is) if self._is_nothing(left) else None
        has = self._has(right) if self._is_asked(left) else None
        return None if has is None else has == isinstance(op, (ast.Eq, ast.In))

    def _is_asked(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id in self.names

    def _has(self, held: ast.expr) -> bool | None:
        """Return whether a table has the name; None where that is not told."""
        if self.asked in (told_in(held, self.tables, partly=True) or ()):
            return True
        return None if told_in(held, self.tables) is None else False

    def looked_up(self, body: Iterable[ast.stmt]) -> Iterator[str]:
        """Yield the names of the tables that are asked."""
        for node in (part for one in body for part in ast.walk(one)):
            match node:
                case (
                    ast.Compare(left=asked, comparators=[held])
                    | ast.Subscript(value=held, slice=asked)
                    | ast.Call(func=ast.Attribute(value=held, attr="get"), args=[asked, *_])
                ) if self._is_asked(asked):
                    yield from told_in(held, self.tables, partly=True) or ()
                case _:
                    pass


def told_in(held: ast.expr, tables: _Tables, partly: bool = False, depth: int = 0) -> frozenset[str] | None:
    """Return the texts that a table, a collection or a text holds; None where not all are told plainly.

    With `partly` those that are told are enough.
    """
    match held:
        case ast.Name(id=name) if name in tables and depth < DEEPEST:
            return _of_all(tables[name], tables, partly, depth + 1)
        case ast.Call(func=ast.Name(id=kind), args=[inner], keywords=[]) if kind in _COLLECTIONS:
            return told_in(inner, tables, partly, depth)
        case ast.Call(func=ast.Attribute(value=inner, attr="keys"), args=[]):
            return told_in(inner, tables, partly, depth)
        case ast.BinOp(left=left, op=ast.Add() | ast.BitOr(), right=right):
            return _of_all((left, right), tables, partly, depth)
        case ast.Constant(value=str(text)):
            return frozenset((text,))
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return _of_all((key or ast.Starred(value) for key, value in pairs), tables, partly, depth, True)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return _of_all(parts, tables, partly, depth, True)
        case ast.Starred(value=inner):
            return told_in(inner, tables, partly, depth)
        case ast.DictComp(key=key, generators=[ast.comprehension(target=target, iter=each, ifs=[])]):
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            columns = [_column(each, place if len(names) > 1 else -1, tables) for place in range(len(names))]
            texts = (told_in(one, tables, partly, depth) if one is not None else None for one in columns)
            spelled = (
                _spelled(key, name, some) for name, some in zip(names, texts, strict=True) if some is not None
            )
            return next((one for one in spelled if one is not None), None)
        case _:
            text = ast.unparse(held)
            own: frozenset[str] | None = frozenset() if _OWN_NAMES.fullmatch(text) else None
            return (
                _of_all(tables[text], tables, partly, depth + 1)
                if text in tables and depth < DEEPEST
                else own
            )


def _of_all(
    parts: Iterable[ast.expr], tables: _Tables, partly: bool, depth: int, inside: bool = False
) -> frozenset[str] | None:
    """Return what several hold together; `inside` one a part is what is held, unless it is spread there."""
    found: set[str] = set()
    for part in parts:
        if inside and isinstance(part, ast.Constant) and not isinstance(part.value, str):
            continue
        is_held = not inside or isinstance(part, (ast.Constant, ast.Starred))
        told = told_in(part, tables, partly, depth) if is_held else None
        if told is None and not partly:
            return None
        found |= told or set()
    return frozenset(found)


def _column(each: ast.expr, place: int, tables: _Tables) -> ast.expr | None:
    """Return what stands at one place of the rows that a loop goes over; its items where they are no rows."""
    told = tables.get(each.id, ()) if isinstance(each, ast.Name) else (each,)
    if place < 0:
        return each
    rows = told[-1].elts if told and isinstance(told[-1], (ast.List, ast.Tuple)) else []
    plain = [row.elts[place] for row in rows if isinstance(row, ast.Tuple) and place < len(row.elts)]
    return ast.List(plain) if plain and len(plain) == len(rows) else None


def _spelled(key: ast.expr, target: ast.expr, each: Iterable[str]) -> frozenset[str] | None:
    """Return the keys that a comprehension makes of texts."""
    name = target.id if isinstance(target, ast.Name) else ""
    parts = key.values if isinstance(key, ast.JoinedStr) else [key]
    plain = [one.value if isinstance(one, ast.FormattedValue) else one for one in parts]
    if not all(
        isinstance(one, ast.Constant) or (isinstance(one, ast.Name) and one.id == name) for one in plain
    ):
        return None
    return frozenset(
        "".join(str(one.value) if isinstance(one, ast.Constant) else text for one in plain) for text in each
    )


def served_by(body: Sequence[ast.stmt]) -> Served | None:
    """Return what a module's `__getattr__` brings; None for a module without one."""
    tables, makers = _tables(body), _made(body)
    found = [_served(one, tables, makers) for one in body if _is_getter(one)]
    bound = {one.id for node in body if isinstance(node, ast.Assign) for one in _targets(node)}
    if MAKER in bound and not found:
        found = [Served(maker=makers[MAKER]) if MAKER in makers else Served(more=True)]
    if not found:
        return None
    names = frozenset().union(*(one.names for one in found))
    return Served(names, any(one.more for one in found), "".join({one.maker for one in found if one.maker}))


def makers_in(body: Sequence[ast.stmt]) -> dict[str, Served]:
    """Return, by the function that makes it, what another module's `__getattr__` brings."""
    tables = _tables(body)
    return {
        node.name: _served(inner, tables, {})
        for node in body
        if isinstance(node, ast.FunctionDef) and len(node.args.args) == 1
        for inner in node.body
        if isinstance(inner, ast.FunctionDef) and len(inner.args.args) == 1 and _gives(node, inner.name)
    }


def _gives(node: ast.FunctionDef, name: str) -> bool:
    last = node.body[-1]
    return isinstance(last, ast.Return) and isinstance(last.value, ast.Name) and last.value.id == name


def _is_getter(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == MAKER and len(node.args.args) == 1


def _served(node: ast.stmt, tables: _Tables, makers: Mapping[str, str]) -> Served:
    assert isinstance(node, ast.FunctionDef)

    def ask(name: str) -> tuple[_Asked, set[_End]]:
        asked = _Asked(name, {node.args.args[0].arg}, dict(tables), makers)
        return asked, asked.ends(node.body)

    nobodys, ends = ask("")
    names = frozenset(name for name in nobodys.looked_up(node.body) if _End.GIVES in ask(name)[1])
    is_stub = ends == {_End.FALLS}
    return Served(
        names, _End.GIVES in ends or is_stub or len(nobodys.delegated) > 1, "".join(nobodys.delegated)
    )


def _targets(node: ast.Assign) -> Iterator[ast.Name]:
    for target in node.targets:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        yield from (one for one in parts if isinstance(one, ast.Name))


def _tables(body: Sequence[ast.stmt]) -> dict[str, list[ast.expr]]:
    """Return what is put into a module's variables while it is loaded."""
    found: dict[str, list[ast.expr]] = {}
    loading = (one for one in body if not isinstance(one, (*_FUNCTION, ast.ClassDef)))
    for node in (part for one in loading for part in ast.walk(one)):
        match node:
            case ast.Assign(value=value):
                for name in _targets(node):
                    found.setdefault(name.id, []).append(value)
                kept = ((one.value, one.slice) for one in node.targets if isinstance(one, ast.Subscript))
                for held, key in kept:
                    found.setdefault(ast.unparse(held), []).append(key)
            case (
                ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                | ast.AugAssign(target=ast.Name(id=name), value=value)
                | ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr="add" | "append" | "extend" | "update"),
                    args=[value],
                )
            ):
                found.setdefault(name, []).append(value)
            case _:
                pass
    return found


def _made(body: Sequence[ast.stmt]) -> dict[str, str]:
    """Return, by what was made of it, the function that was called with the module's own name alone."""
    found = {}
    for node in body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=made)],
                value=ast.Call(func=ast.Name(id=maker), args=[ast.Name(id="__name__")], keywords=[]),
            ):
                found[made] = maker
            case _:
                pass
    return found
