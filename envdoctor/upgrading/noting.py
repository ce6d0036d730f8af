"""What is noted of a text while it is read: each use of a library, with what stands around it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from envdoctor.rules.interface_lookup import DISTINCT
from envdoctor.upgrading.bindings import (
    UNKNOWN,
    Bound,
    Key,
    Scope,
    called_on_self,
    calls_in,
    defaulted,
    fields_in,
    is_class,
    is_distinct,
    key_of,
    keyword_place,
    last_names,
    listed_in,
    looked_up,
    member_place,
    most_given,
    named_in,
    options_of,
    paths_in,
    place_of,
    sets_on_self,
    span_of,
    valued,
    written_past,
)
from envdoctor.upgrading.guarding import OPEN, Guard
from envdoctor.upgrading.uses import ALL, TELLING, Condition, Kind, Place, Read, Use, is_telling

_CLASS = re.compile(r"[A-Z]\w{8,60}")
_DOTTED = re.compile(r"[a-z]\w{1,40}(?:[.:][A-Za-z_]\w{0,60}){2,12}")
_HANDED = re.compile(r"(?:\w{0,60}_)?(?:kwargs|args|arguments|options|params)\d?")
"""How dictionaries of arguments are called."""
_INTO = ("update", "setdefault")
Told = Sequence[tuple[ast.keyword, Bound]]
"""The keywords of a call, and what stands behind each."""


def _same_library(use: Use, others: Iterable[Use]) -> frozenset[tuple[str, str]]:
    root = use.path.partition(".")[0]
    imports = (one for one in others if one.kind is Kind.IMPORT)
    return frozenset((one.path, one.name) for one in imports if one.path.partition(".")[0] == root)


def _text_of(target: ast.expr) -> str:
    return f"<text {ast.unparse(target)}>" if isinstance(target, (ast.Name, ast.Attribute)) else ""


def text_left_out(test: ast.expr, scopes: Sequence[Scope], holds: bool = True) -> Scope:
    """Return a name or a member without the text that it is not where a test holds, or where it does not."""
    match test:
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=str(text))]) if isinstance(
            op, ast.NotEq if holds else ast.Eq
        ):
            return {_text_of(left): Bound(own=frozenset(looked_up_text(left, scopes)) - {text})}
        case _:
            return {}


def looked_up_text(node: ast.expr, scopes: Sequence[Scope]) -> Iterable[str]:
    """Return the texts that a name or a member was given."""
    name = _text_of(node)
    found = next((scope[name].own for scope in reversed(scopes) if name in scope), frozenset[str]())
    return sorted(one for one in found if one.isidentifier())


def _held_as(name: str) -> str:
    return f"<held {name}>"


def _held_by(node: ast.expr | None, scopes: Sequence[Scope]) -> str:
    """Return the member that is taken of something else than `self`, or that a name was given."""
    match node:
        case ast.Attribute(value=ast.Name(id="self")):
            return ""
        case ast.Attribute(attr=name):
            return name
        case ast.Name(id=name):
            scope = next((scope for scope in reversed(scopes) if name in scope), {})
            return next(iter(scope.get(_held_as(name), UNKNOWN).own), "")
        case _:
            return ""


def _made_as(name: str) -> str:
    return f"<made {name}>"


def _makers_of(name: str, scopes: Sequence[Scope]) -> frozenset[str]:
    """Return the libraries that made what a name stands for where it is bound last, as far as told."""
    scope = next((scope for scope in reversed(scopes) if name in scope), {})
    return scope.get(_made_as(name), UNKNOWN).taken


class Notes:
    """The uses of one text, each noted under the guard that stands around what is being read."""

    def __init__(self) -> None:
        self.read = Read()
        self.guard = OPEN
        self._asked = False
        self._texts: list[Use] = []
        self.taking: dict[ast.expr, str] = {}
        """The name that is given the answer of a call."""
        self.answered: set[ast.expr] = set()
        """The calls whose answer is bound to a name, or asked for a member."""
        self.postponed = False
        """True below what no run evaluates."""

    def use(self, use: Use) -> None:
        """Note a use."""
        self.read.uses.append(self.guard.on(replace(use, unsure=True) if self.postponed else use))

    def same_again(self, first: int, second: int, third: int, outer: Guard) -> None:
        """Let what is tried and what handles its failure, where they use the same, stand as outside of both.

        The uses tried are those from the first on up to the second, those of the handlers from the third on.
        """
        tried, handling = (
            {(use.kind, use.path, use.name) for use in part if use.kind is not Kind.IMPORT}
            for part in (self.read.uses[first:second], self.read.uses[third:])
        )
        for position, use in enumerate(self.read.uses[first:], first):
            if use.guarded and (use.kind, use.path, use.name) in tried & handling:
                self.read.uses[position] = outer.on(replace(use, guarded=False, warns=False))

    def in_turn(self, first: int, second: int, lines: Collection[int]) -> None:
        """Let the imports that are tried, and those on the lines of what stands in for them, know each other.

        They are the uses from the first on, and from the second on.
        """
        tried, others = self.read.uses[first:second], self.read.uses[second:]
        others = [use for use in others if use.statement and use.statement.line in lines]
        for start, ones, rest in ((first, tried, others), (second, self.read.uses[second:], tried)):
            for position, use in enumerate(ones, start):
                if use.kind is Kind.IMPORT and (use in tried or use in others):
                    self.read.uses[position] = replace(use, instead=_same_library(use, rest))

    def overrides(self, node: ast.ClassDef, base: Bound, made: bool, called: str = "") -> None:
        """Note the methods that may stand for a library's; `made`: a base of the text's makes the rest.

        By what it is `called` a class is loaded; one made in a function is what its caller calls it.
        What is loaded by a way of its own need not be made as the library's loader asks.
        """
        functions = [one for one in node.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
        brought = any(one.name == "from_pretrained" for one in functions)
        for name, place in listed_in(node):
            self.use(Use(Kind.OVERRIDE, base.path, place, f"{name}(list)"))
        for name, place in fields_in(node):
            self.use(Use(Kind.OVERRIDE, base.path, place, name))
        for method in functions:
            for place in written_past(method) if method.name == "_init_weights" else ():
                self.use(Use(Kind.OVERRIDE, base.path, place, "_init_weights(data)"))
            if method.name == "__init__" and (rest := method.args.vararg) is not None:
                given = frozenset(argument.arg for argument in named_in(method.args))
                place = Place(rest.lineno, rest.col_offset, rest.end_col_offset or 0)
                self.use(Use(Kind.OVERRIDE, base.path, place, "__init__(*)", given=given))
            if method.name == "__init__" and not made and not brought and sets_on_self(method):
                given = called_on_self(method)
            elif method.name != "__init__" and method.args.kwarg is None:
                given = frozenset(argument.arg for argument in named_in(method.args)) | defaulted(method.args)
            else:
                continue
            named = called if method.name == "__init__" else ""
            place, count = place_of(method), most_given(method)
            self.use(Use(Kind.OVERRIDE, base.path, place, method.name, count, given=given, receiver=named))

    def caught(self, node: ast.expr | None, scopes: Sequence[Scope], tried: Sequence[ast.stmt] = ()) -> None:
        """Note the errors that are looked out for, with what is called where they may be raised."""
        given = frozenset(calls_in(tried, scopes))
        for one in node.elts if isinstance(node, ast.Tuple) else (node,):
            told = looked_up(one, scopes) if one is not None else UNKNOWN
            if one is not None and told.path and not told.instance:
                name = told.path.rpartition(".")[2]
                self.use(Use(Kind.CAUGHT, told.path, span_of(one), name, given=given))

    def named_in_text(self, node: ast.Call) -> None:
        """Note the path that a call is given as a text."""
        for path, place in paths_in(node):
            self.use(Use(Kind.PATH, path, place, unsure=True))

    def compared(self, node: ast.expr, asked: Condition | None) -> None:
        """Note a release that is asked for by comparing texts: it stands among its conditions alone."""
        if asked is not None:
            place = Place(node.lineno, node.col_offset, node.end_col_offset or 0)
            use = Use(Kind.COMPARED, asked.library, place, asked.version, receiver=asked.operator)
            self.read.uses.append(self.guard.on(use))

    def taken_apart(self, node: ast.expr, how: str, scopes: Sequence[Scope]) -> None:
        """Note a member that is indexed (`[]`) or read as pairs (`[2]`): it may be no such thing now."""
        name = _held_by(node, scopes)
        if len(name) >= DISTINCT:
            receiver = next(last_names(node.value), "") if isinstance(node, ast.Attribute) else ""
            self.use(Use(Kind.LOOSE, "", span_of(node), f"{name}{how}", receiver=receiver))

    def given_text(self, target: ast.expr, value: ast.expr | None, scopes: Sequence[Scope]) -> None:
        """Note a text that a name or a member is given: of those that it may be in turn each."""
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            name = _text_of(target)
            kept = scopes[-1].get(name, UNKNOWN).own
            scopes[-1][name] = Bound(own=kept | {value.value})

    def looked_into(self, node: ast.Subscript, known: Bound, scopes: Sequence[Scope]) -> None:
        """Note the key, or what it may be, under which a library's own table is asked for something."""
        if not known.path or known.instance or known.member:
            return
        key = node.slice
        match key:
            case ast.Constant(value=str(text)):
                self.use(Use(Kind.PATH, f"{known.path}[{text}]", span_of(node)))
            case _:
                for text in looked_up_text(key, scopes):
                    self.use(Use(Kind.PATH, f"{known.path}[{text}]", span_of(node), unsure=True))

    def asks(self) -> None:
        """Note that a module is asked for a name that only a run tells."""
        self._asked = True

    def finish(self) -> None:
        """Note the texts that may be such names."""
        self.read.uses += self._texts if self._asked else ()

    def path_in_text(self, node: ast.Constant, text: str) -> None:
        """Note a text that is a dotted path into a module, as tables of what is loaded later hold them."""
        if _CLASS.fullmatch(text) and is_class(text):
            place = Place(node.lineno, node.col_offset + 1, (node.end_col_offset or 0) - 1)
            self._texts.append(self.guard.on(Use(Kind.ASKED, "", place, text, unsure=True)))
        if _DOTTED.fullmatch(text):
            place = Place(node.lineno, node.col_offset + 1, (node.end_col_offset or 0) - 1)
            parts = text.replace(":", ".").split(".")
            for end in range(2, len(parts) + 1):
                self.use(Use(Kind.PATH, ".".join(parts[:end]), place, unsure=True))

    def decorated(self, node: ast.expr, bound: Bound) -> None:
        """Note a library's decorator that stands without a call: nothing is given."""
        if bound.path and not bound.instance and isinstance(node, (ast.Name, ast.Attribute)):
            self.use(Use(Kind.DECORATED, bound.path, span_of(node)))

    def called_method(self, node: ast.Call, called: Bound, told: Told, starred: bool) -> None:
        """Note the call of a method with a telling name, and all that it is given; `**` where more may be.

        Settings that go by the method's own name are what it works with, not how it works.
        """
        answers = node in self.answered and not called.path
        if not isinstance(node.func, ast.Attribute) or not is_distinct(node.func, answers):
            return
        if called.path and not called.member and not is_class(called.path.split(".")[-2]):
            return  # a module's function
        subject = node.func.attr.partition("_")[2]
        given: set[str] = {ALL} if starred else set()
        for keyword, bound in told:
            if keyword.arg:
                given |= {keyword.arg, valued(keyword.arg, keyword.value)}
            elif bound.keys is not None:
                given |= {part for key in bound.keys for part in (key.name, key.value)}
            elif not subject or subject not in ast.unparse(keyword.value):
                given.add(ALL)
        receiver, place = next(last_names(node.func.value), ""), member_place(node.func)
        made = frozenset((called.path.partition(".")[0],)) if called.path else frozenset[str]()
        given |= {f"to {self.taking[node]}"} if node in self.taking else set()
        use = Use(Kind.CALL, "", place, node.func.attr, len(node.args), given=frozenset(given))
        self.use(replace(use, receiver=receiver, made=made))

    def arguments(self, node: ast.Call, called: Bound, told: Told, starred: bool, taker: str = "") -> None:
        """Note what a library's callable is given, by name and by position, and what takes its answer."""
        for keyword, value in told:
            if keyword.arg and keyword.arg not in called.taken:
                known = frozenset((valued(keyword.arg, keyword.value),))
                self.use(Use(Kind.KEYWORD, called.path, keyword_place(keyword), keyword.arg, given=known))
            elif keyword.arg:
                continue
            elif value.keys is not None:
                for key in value.keys:
                    known = frozenset((key.value,))
                    self.use(Use(Kind.KEYWORD, called.path, key.place, key.name, given=known))
            else:
                self.read.unfollowed += 1
        if not starred and not called.taken:
            plain = (valued(f"#{place}", one) for place, one in enumerate(node.args[:1]))
            names = frozenset((*(keyword.arg or ALL for keyword in node.keywords), f"for {taker}()", *plain))
            self.use(Use(Kind.POSITION, called.path, span_of(node), count=len(node.args), given=names))

    def made(self, name: str, value: ast.expr | None, scopes: Sequence[Scope]) -> None:
        """Note whose callables a name is one of, or is made by: all those that it may be in turn."""
        held = _held_by(value, scopes)
        scopes[-1][_held_as(name)] = Bound(own=frozenset((held,))) if held else UNKNOWN
        found = self._makers(value, scopes)
        if found:
            kept = scopes[-1].get(_made_as(name), UNKNOWN).taken
            scopes[-1][_made_as(name)] = Bound(taken=kept | found)

    def _makers(self, node: ast.expr | None, scopes: Sequence[Scope]) -> frozenset[str]:
        match node:
            case ast.IfExp():
                return self._makers(node.body, scopes) | self._makers(node.orelse, scopes)
            case ast.Call():
                return self._makers(node.func, scopes)
            case ast.Name() | ast.Attribute():
                found = looked_up(node, scopes)
                named = node.id if isinstance(node, ast.Name) else ""
                root = found.path.partition(".")[0] or ("." if found.own else "")
                return frozenset((root,)) if root else _makers_of(named, scopes)
            case _:
                return frozenset()

    def keys(self, name: str, keys: Iterable[Key | None]) -> None:
        """Note what is put into a dictionary that is called as arguments are."""
        told = [key for key in keys if key is not None] if _HANDED.fullmatch(name) else []
        given = frozenset(key.name for key in told)
        for key in told:
            self.use(Use(Kind.KEY, "", key.place, key.name, given=given, receiver=name))

    def loose_keywords(self, node: ast.Call, scopes: Sequence[Scope]) -> None:
        """Note the keywords of a function or method whose owner nothing tells."""
        if isinstance(node.func, ast.Name) and not is_class(node.func.id):
            for keyword in node.keywords:
                if keyword.arg and len(keyword.arg) >= TELLING:
                    self.use(Use(Kind.KEY, node.func.id, keyword_place(keyword), keyword.arg))
        if not isinstance(node.func, ast.Attribute):
            return
        receiver = next(last_names(node.func.value), "")
        if node.func.attr in _INTO:
            named = (Key(k.arg, keyword_place(k), "") for k in node.keywords if k.arg)
            first = key_of(node.args[0], node.args[-1]) if node.args else None
            self.keys(receiver, (*named, first))
            return
        self.read.defined.update(options_of(node))
        for keyword in node.keywords:
            told = keyword.arg and keyword.arg[:1] == "_" and is_telling(keyword.arg)
            if keyword.arg and (told or len(node.func.attr) + len(keyword.arg) >= 2 * DISTINCT):
                place = keyword_place(keyword)
                made = _makers_of(receiver, scopes)
                self.use(Use(Kind.LOOSE, node.func.attr, place, keyword.arg, receiver=receiver, made=made))
