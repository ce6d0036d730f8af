"""What a text's own functions are given, by its calls: an argument without an annotation is that."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from envdoctor.upgrading.bindings import UNKNOWN, Bound, Function, Scope, last_names, named_in
from envdoctor.upgrading.guarding import Guard

OF_CLASS = "<class>"
"""Under this stands in a class's scope what the class is called."""
Waiting = tuple[Function | ast.Lambda, list[Scope], Guard]


class Typed:
    """The functions of one text, and what its calls give them: instances of classes alone."""

    def __init__(self) -> None:
        self._functions: dict[str, Waiting | None] = {}
        self._given: dict[ast.AST, dict[str, Bound]] = {}
        self._new: dict[ast.AST, Waiting] = {}
        self._done: set[ast.AST] = set()

    def defined(self, function: Function, scopes: list[Scope], guard: Guard) -> None:
        """Note a function, or a class's method; of two of one name neither is meant for certain."""
        owner = scopes[-1].get(OF_CLASS, UNKNOWN).path
        name = f"{owner}.{function.name}"
        self._functions[name] = None if name in self._functions else (function, scopes, guard)

    def called(
        self,
        node: ast.Call,
        elements: Sequence[Bound],
        given: Iterable[tuple[ast.keyword, Bound]],
        scopes: Sequence[Scope],
    ) -> None:
        """Note what a call gives one of the functions: by a name alone, or as a method on `self`."""
        match node.func:
            case ast.Name(id=called):
                name = f".{called}"
            case ast.Attribute(value=ast.Name(id="self"), attr=called):
                own = next((scope[OF_CLASS].path for scope in reversed(scopes) if OF_CLASS in scope), "")
                name = f"{own}.{called}"
            case _:
                return
        waiting = self._functions.get(name)
        if waiting is None or isinstance(waiting[0], ast.Lambda):
            return
        function, told = waiting[0], {k.arg: bound for k, bound in given if k.arg}
        for argument, bound in (*_by_position(node, function, elements), *told.items()):
            self._give(waiting, argument, bound)

    def _give(self, waiting: Waiting, argument: str, bound: Bound) -> None:
        function = waiting[0]
        untold = {one.arg for one in named_in(function.args) if one.annotation is None}
        if argument not in untold:
            return
        told = self._given.setdefault(function, {})
        if argument not in told and bound.path and bound.instance and not bound.member:
            told[argument] = bound
            if function not in self._done:
                self._new[function] = waiting
        elif argument in told and told[argument].path != bound.path:
            told[argument] = UNKNOWN

    def given(self, function: Function | ast.Lambda) -> Scope:
        """Return what a function that is read again is given."""
        return self._given.get(function, {}) if function in self._done else {}

    def again(self) -> Iterator[Waiting]:
        """Yield once each function that turned out to be given more than its own text tells."""
        new, self._new = self._new, {}
        self._done |= new.keys()
        yield from (
            one for function, one in new.items() if any(b.path for b in self._given[function].values())
        )


def _by_position(
    node: ast.Call, function: Function, elements: Sequence[Bound]
) -> Iterator[tuple[str, Bound]]:
    if any(isinstance(one, ast.Starred) for one in node.args):
        return
    static = any("staticmethod" in last_names(one) for one in function.decorator_list)
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    own = isinstance(node.func, ast.Attribute) and not static
    yield from zip(names[1:] if own else names, elements, strict=False)
