"""Reads the expressions of Python code: what each stands for, and what of libraries it uses on the way."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from envdoctor.rules.interface_lookup import DISTINCT
from envdoctor.upgrading.bindings import (
    UNKNOWN,
    Bound,
    Function,
    Key,
    Scope,
    all_of,
    either,
    filtered,
    instance_of_text,
    key_of,
    keyword_place,
    last_names,
    listed,
    literal_keys,
    looked_up,
    made_by,
    member_place,
    named_after,
    of_base,
    span_of,
    valued,
    with_element,
)
from envdoctor.upgrading.guarding import OPEN, Guard, branches, versions_compared
from envdoctor.upgrading.held import Held
from envdoctor.upgrading.noting import Notes
from envdoctor.upgrading.typing_calls import Typed
from envdoctor.upgrading.uses import Kind, Place, Use

_CALLED_ON = {"partial": 0, "submit": 0, "to_thread": 0, "run_in_executor": 1}
"""Callables that call another with what they are given by name, and which of their arguments that is."""
_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__class__"}


def _base(scopes: Sequence[Scope]) -> Bound:
    """Return what `super()` stands for."""
    return next((scope["<super>"] for scope in reversed(scopes) if "<super>" in scope), UNKNOWN)


class Expressions:
    """What expressions stand for with the names known so far; functions wait until their module is read."""

    def __init__(self, imported: set[str], held: Held) -> None:
        self.notes = Notes()
        self._held = held
        self.read = self.notes.read
        self._imported = imported
        self._loose: list[tuple[str, Place]] = []
        self._waiting: list[tuple[Function | ast.Lambda, list[Scope], Guard]] = []
        self._bound: Counter[str] = Counter()
        self.typed = Typed()
        self._heirs: dict[int, list[dict[str, Bound]]] = {}
        """What instances of deriving classes have, by the identity of what those of the class have."""
        self._taker = ""
        """What is given the answer of the call that is read next."""

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
            case ast.Await(value=waited):
                return self._expression(waited, scopes)
            case ast.Lambda():
                self._waiting.append((node, list(scopes), self.notes.guard))
                return UNKNOWN
            case ast.IfExp():
                return self._choice(node, scopes)
            case ast.Constant(value=str() as text):
                self.notes.path_in_text(node, text)
                return UNKNOWN
            case ast.Compare(left=left, ops=[sign], comparators=[right]):
                self.notes.compared(node, versions_compared(left, sign, right, scopes))
                self._expression(left, scopes)
                self._expression(right, scopes)
                return UNKNOWN
            case ast.Subscript(value=value, slice=place, ctx=ast.Load()):
                if not isinstance(place, ast.Constant) or isinstance(place.value, int):
                    self.notes.taken_apart(value, "[]", scopes)
                known = self._expression(value, scopes)
                self._expression(place, scopes)
                self.notes.looked_into(node, known, scopes)
                return known.element or UNKNOWN if not isinstance(place, ast.Slice) else known
            case ast.List():
                return all_of([self._expression(part, scopes) for part in node.elts])
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
            every = self._expression(generator.iter, inner)
            self._pairs(generator.target, generator.iter, inner)
            self._each(generator.target, generator.iter, every, inner)
            for test in generator.ifs:
                self._expression(test, inner)
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        told = [self._expression(part, inner) for part in parts]
        if isinstance(node, ast.DictComp):
            return Bound(keys=looked_up(kept, scopes).keys) if (kept := filtered(node)) else UNKNOWN
        return all_of(told)

    def _choice(self, node: ast.IfExp, scopes: list[Scope]) -> Bound:
        self._expression(node.test, scopes)
        outer = self.notes.guard
        self.notes.guard, other = branches(outer, node.test, scopes)
        one = self._expression(node.body, scopes)
        self.notes.guard = other
        instead = self._expression(node.orelse, scopes)
        self.notes.guard = outer
        return either(one, instead)

    def _pairs(self, target: ast.expr, read: ast.expr, scopes: Sequence[Scope]) -> None:
        if isinstance(target, ast.Tuple) and len(target.elts) == 2:
            self.notes.taken_apart(read, "[2]", scopes)

    def _each(self, target: ast.expr, read: ast.expr, every: Bound, scopes: list[Scope]) -> None:
        """Bind what stands for each of what is gone through, also beside its number or those of others."""
        match target, read:
            case ast.Tuple(elts=[number, one]), ast.Call(func=ast.Name(id="enumerate"), args=[told, *_]):
                self._bind(number, UNKNOWN, scopes)
                self._bind(one, listed(told, scopes).element or UNKNOWN, scopes)
            case ast.Tuple(elts=ones), ast.Call(func=ast.Name(id="zip"), args=told) if len(ones) == len(told):
                for one, other in zip(ones, told, strict=True):
                    self._bind(one, listed(other, scopes).element or UNKNOWN, scopes)
            case _:
                self._bind(target, every.element or listed(read, scopes).element or UNKNOWN, scopes)

    def _name(self, node: ast.Name, scopes: list[Scope]) -> Bound:
        bound = next((scope[node.id] for scope in reversed(scopes) if node.id in scope), None)
        place = span_of(node)
        if bound is None:
            if isinstance(node.ctx, ast.Load) and node.id not in _BUILTINS:
                self._loose.append((node.id, place))
            return UNKNOWN
        if bound.path.rpartition(".")[2] == node.id and bound.path in self._imported:
            self.read.written.setdefault(bound.path, []).append(place)
        return bound

    def _attribute(self, node: ast.Attribute, scopes: list[Scope]) -> Bound:
        self.notes.answered.add(node.value)
        base = self._expression(node.value, scopes)
        place = member_place(node)
        if of_base(node) and (above := _base(scopes)).path and node.attr not in above.own:
            self.notes.use(Use(Kind.MEMBER, above.path, place, node.attr))
            return self._member(f"{above.path}.{node.attr}")
        if base.attributes and isinstance(node.ctx, ast.Load) and node.attr in base.attributes:
            return base.attributes[node.attr]
        if isinstance(node.ctx, ast.Store):
            self.read.defined.add(f"{next(last_names(node.value), '')}.{node.attr}")
        if base.member and (held := named_after(base.path)):
            self.notes.use(Use(Kind.MEMBER, held, place, node.attr, receiver=base.path.rpartition(".")[2]))
            return self._member(f"{held}.{node.attr}")
        if not base.path or base.member:
            receiver = next(last_names(node.value), "")
            telling = len(node.attr) >= DISTINCT or receiver.endswith("config")
            stored = frozenset(("=",)) if isinstance(node.ctx, ast.Store) else frozenset[str]()
            if telling and (receiver.endswith("config") or not stored):
                self.notes.use(Use(Kind.LOOSE, "", place, node.attr, receiver=receiver, given=stored))
            return UNKNOWN
        if not base.instance and node.attr in base.own:
            return UNKNOWN
        if not base.instance:
            self.notes.use(Use(Kind.PATH, f"{base.path}.{node.attr}", place))
            return Bound(f"{base.path}.{node.attr}", own=base.own)
        if isinstance(node.ctx, ast.Load) and node.attr not in base.own:
            self.notes.use(Use(Kind.MEMBER, base.path, place, node.attr))
            return self._member(f"{base.path}.{node.attr}")
        return UNKNOWN

    def _member(self, path: str) -> Bound:
        """Return a member of an instance: what its library's annotations tell that it holds."""
        held = self._held(path)
        return Bound(path, member=True) if held is UNKNOWN else held

    def _call(self, node: ast.Call, scopes: list[Scope]) -> Bound:
        taker, self._taker = self._taker, ""
        called = self._called(node.func, scopes)
        starred = any(isinstance(a, ast.Starred) for a in node.args)
        read = node.args if next(last_names(node.func), "") != "getLogger" else ()
        elements = [self._given(argument, next(last_names(node.func), ""), scopes) for argument in read]
        self._append(node.func, elements, scopes)
        given = [(k, self._expression(k.value, scopes)) for k in node.keywords]
        if isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
            plain = ((k, k.arg) for k in node.keywords if k.arg)
            return Bound(keys=tuple(Key(name, keyword_place(k), valued(name, k.value)) for k, name in plain))
        named = node.func.id if isinstance(node.func, ast.Name) and len(node.args) > 1 else ""
        if named == "getattr":
            self._dynamic(node, scopes)
        for keyword, bound in given:
            self.notes.keys(keyword.arg or "", bound.keys or ())
        self.typed.called(node, elements, given, scopes)
        self.notes.named_in_text(node)
        if named == "isinstance":
            self.notes.caught(node.args[1], scopes)
        self.notes.called_method(node, called, given, starred)
        place = _CALLED_ON.get(next(last_names(node.func), ""), len(elements))
        other = elements[place] if place < len(elements) else UNKNOWN
        if other.path and (other.member or not other.instance):
            self.notes.arguments(node, other, given, starred=True)
        if not called.path:
            self.notes.loose_keywords(node, scopes)
            return called.answer or instance_of_text(called)
        if called.closed:
            return made_by(called)
        if called.path in ("importlib.import_module",):
            self.notes.asks()
            self.read.unfollowed += not (node.args and isinstance(node.args[0], ast.Constant))
            return UNKNOWN
        if called.instance and not called.member:
            called = replace(called, path=f"{called.path}.__call__")
        self.notes.arguments(node, called, given, starred, taker)
        made = made_by(called)
        held = called.answer or self._held(f"{called.path}()")
        if (
            called.own
            and held.instance
            and held.path.rpartition(".")[2] == called.path.rpartition(".")[0].rpartition(".")[2]
        ):
            held = replace(held, own=called.own)  # a class's own maker makes the class that it is called on
        return held if made is UNKNOWN else made

    def _called(self, node: ast.expr, scopes: list[Scope]) -> Bound:
        """Return what is called; `super().method` is the base's own."""
        if isinstance(node, ast.Attribute) and of_base(node):
            own = _base(scopes)
            if not own.path or node.attr in own.own:
                return UNKNOWN
            self.notes.use(Use(Kind.MEMBER, own.path, member_place(node), node.attr))
            return Bound(f"{own.path}.{node.attr}")
        return self._expression(node, scopes)

    def _dynamic(self, node: ast.Call, scopes: list[Scope]) -> None:
        """Read what is asked for by its name; where a default speaks for itself, its absence goes unseen."""
        name, default = node.args[1], node.args[2:]
        if not isinstance(name, ast.Constant):
            owner = self._expression(node.args[0], scopes)
            self.read.unfollowed += bool(owner.path)
            if owner.path and not owner.instance:
                self.notes.asks()
        elif isinstance(name.value, str) and all(isinstance(d, ast.Constant) and d.value for d in default):
            asked = ast.copy_location(ast.Attribute(node.args[0], name.value, ast.Load()), name)
            asked.end_col_offset = (name.end_col_offset or 1) - 1
            self.notes.postponed |= bool(default)
            self._attribute(asked, scopes)
            self.notes.postponed &= not default

    def _bind(
        self, target: ast.expr, bound: Bound, scopes: list[Scope], value: ast.expr | None = None
    ) -> None:
        self.notes.given_text(target, value, scopes)
        if isinstance(target, ast.Name):
            self._bound[target.id] += 1
            self.notes.made(target.id, value, scopes)
            self.notes.keys(target.id, bound.keys or ())
            if bound.keys is not None and self.notes.guard is not OPEN:
                bound = UNKNOWN  # below a question no one tells whether it has these keys
            scopes[-1][target.id] = bound
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one in target.elts:
                self._bind(one, UNKNOWN, scopes)
        elif isinstance(target, ast.Attribute):
            self._expression(target, scopes)
            set_on = looked_up(target.value, scopes).attributes
            if set_on is not None:
                self._set(set_on, target.attr, bound)
        elif isinstance(target, ast.Subscript) and value is not None:
            key, name = key_of(target.slice, value), next(last_names(target.value), "")
            self.notes.keys(name, (key,))
            if isinstance(target.value, ast.Name):
                self._add_key(name, key, scopes)
            self._expression(target, scopes)
        elif not isinstance(target, ast.Starred):
            self._expression(target, scopes)

    def _set(self, attributes: dict[str, Bound], name: str, bound: Bound) -> None:
        """Note what is set on instances of a class of the text, and of those that derive from it."""
        known = attributes.setdefault(name, bound)
        attributes[name] = known if known.path == bound.path else UNKNOWN
        for heir in self._heirs.get(id(attributes), ()):
            self._set(heir, name, attributes[name])

    def _given(self, argument: ast.expr, taker: str, scopes: list[Scope]) -> Bound:
        """Read what a call is given by position."""
        self._taker = taker if isinstance(argument, ast.Call) else ""
        return self._expression(argument, scopes)

    def _append(self, called: ast.expr, elements: Sequence[Bound], scopes: Sequence[Scope]) -> None:
        """Note what is added to a list that the same text made."""
        match called:
            case ast.Attribute(value=ast.Name(id=name), attr="append") if len(elements) == 1:
                scope = next((scope for scope in reversed(scopes) if name in scope), {})
                if name in scope and scope[name].element is not None:
                    scope[name] = with_element(scope[name], elements[0])

    def _add_key(self, name: str, key: Key | None, scopes: Sequence[Scope]) -> None:
        """Note a key that is set in a dictionary of known keys."""
        scope = next((scope for scope in reversed(scopes) if name in scope), {})
        told = not self.notes.guard.when and not self.notes.guard.kinds
        if told and key and name in scope and (keys := scope[name].keys) is not None:
            scope[name] = Bound(keys=(*(k for k in keys if k.name != key.name), key))
