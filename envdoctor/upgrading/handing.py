"""Functions of a text that hand the rest of their arguments on to a library's: what they stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from envdoctor.upgrading.bindings import UNKNOWN, Bound, Function, Scope, last_names, made_by, named_in

_PARTS = ("finalbody", "handlers", "orelse", "cases", "body")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def handed_on(function: Function) -> ast.expr | None:
    """Return what a function hands the rest of its arguments on to: what it returns, else the only one."""
    rest = function.args.kwarg
    if rest is None or not all(map(is_kind, function.decorator_list)):
        return None
    last = function.body[-1]
    calls = [one for one in ast.walk(function) if isinstance(one, ast.Call) and _is_given(one, rest.arg)]
    if isinstance(last, ast.Return) and last.value in calls:
        return last.value.func
    return calls[0].func if len(calls) == 1 else None


def answering_with(called: Bound) -> Bound:
    """Return what a function stands for that answers with what a class makes."""
    made = called.answer or (UNKNOWN if called.instance else made_by(called))
    return Bound(answer=made) if made is not UNKNOWN else UNKNOWN


def made_in(function: Function) -> ast.expr | None:
    """Return what a plain function without an annotation calls, whose answer is all that it returns."""
    if function.returns is not None or function.decorator_list:
        return None
    returned = [one.value for one in _own(function) if isinstance(one, ast.Return)]
    calls = [_call_of(value, function) for value in returned]
    first = calls[0] if calls else None
    same = {ast.dump(call) for call in calls if call is not None}
    return first if len(same) == 1 and None not in calls else None


def _call_of(value: ast.expr | None, function: Function) -> ast.expr | None:
    if isinstance(value, ast.Name):
        bound = [one for one in _own(function) if isinstance(one, ast.Assign) and _binds(one, value.id)]
        value = bound[0].value if len(bound) == 1 else None
    return value.func if isinstance(value, ast.Call) else None


def _binds(node: ast.Assign, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in node.targets)


def _own(function: Function) -> Iterator[ast.stmt]:
    """Yield the statements of a function's own body: those of functions inside of it are theirs."""
    yield from statements_in(function, (*_FUNCTIONS, ast.ClassDef))


def statements_in(node: ast.AST, closed: tuple[type[ast.stmt], ...] = ()) -> Iterator[ast.stmt]:
    """Yield the statements below a node, not those inside of `closed` kinds."""
    waiting: list[ast.AST] = [node]
    while waiting:
        one = waiting.pop()
        for part in ("finalbody", "handlers", "orelse", "cases", "body"):
            inner = getattr(one, part, ())
            waiting += (
                reversed(inner)
                if isinstance(inner, list) and (one is node or type(one) not in closed)
                else ()
            )
        if one is not node and isinstance(one, ast.stmt):
            yield one


def _is_given(call: ast.Call, rest: str) -> bool:
    return any(k.arg is None and isinstance(k.value, ast.Name) and k.value.id == rest for k in call.keywords)


def is_kind(decorator: ast.expr) -> bool:
    """True for a decorator that only says what a method is called on."""
    return next(last_names(decorator), "") in ("staticmethod", "classmethod")


def imported_in(function: Function) -> Scope:
    """Return what the imports in a function's own body bring."""
    found = (one for one in function.body if isinstance(one, ast.ImportFrom) and not one.level)
    return {a.asname or a.name: Bound(f"{one.module}.{a.name}") for one in found for a in one.names}


def standing_for(function: Function, called: Bound) -> Bound:
    """Return what a function stands for that hands the rest of its arguments on to a library's callable.

    Where it does not return what that answers, its own answer is another.
    """
    if not called.path or called.instance or called.path.rpartition(".")[2] == function.name:
        return UNKNOWN
    taken = frozenset((*(argument.arg for argument in named_in(function.args)), *_taken_out(function)))
    last = function.body[-1]
    returned = isinstance(last, ast.Return) and getattr(last.value, "func", None) is handed_on(function)
    return Bound(called.path, taken=taken if returned else taken | {""}, open=not returned)


def _taken_out(function: Function) -> Iterator[str]:
    """Yield what a function takes out of the rest of its arguments."""
    rest = function.args.kwarg.arg if function.args.kwarg else ""
    for node in ast.walk(function):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="pop"), args=[ast.Constant(str(key)), *_]
            ) if name == rest:
                yield key
            case _:
                pass
