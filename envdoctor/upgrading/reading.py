"""Reads what Python code uses of libraries out of its syntax: nothing is imported or run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from envdoctor.python_source import parse_python
from envdoctor.upgrading.bindings import (
    UNKNOWN,
    Bound,
    Function,
    Scope,
    alias_place,
    annotated_in,
    answering,
    fields_of,
    instance_of,
    last_names,
    looked_up,
    named_after,
    named_in,
    needing,
    place_of,
)
from envdoctor.upgrading.classes import Brought, called_after, class_of, plain_base, with_handing
from envdoctor.upgrading.expressions import Expressions
from envdoctor.upgrading.guarding import (
    branches,
    condition_of,
    fallbacks,
    guarded_by,
    handling,
    narrowed,
)
from envdoctor.upgrading.handing import answering_with, handed_on, imported_in, made_in, standing_for
from envdoctor.upgrading.held import Held, holds_nothing
from envdoctor.upgrading.noting import text_left_out
from envdoctor.upgrading.typing_calls import OF_CLASS
from envdoctor.upgrading.uses import Kind, Read, Use

_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def _nothing(level: int, module: str, name: str) -> Bound:
    return UNKNOWN


def read_cells(
    sources: Iterable[str], brought: Brought = _nothing, held: Held = holds_nothing
) -> Iterator[Read | None]:
    """Yield what each text uses, with the names of those before it; None for one that cannot be parsed.

    `brought` tells what imports from the same project bring, `held` what members of libraries' classes are.
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
        reader = _Reader(stars, imported, brought, held)
        reader.body(tree.body, [known])
        reader.finish()
        yield reader.read


class _Reader(Expressions):
    """Walks statements in order with the names known so far; functions wait until their module is read."""

    def __init__(self, stars: list[str], imported: set[str], brought: Brought, held: Held) -> None:
        super().__init__(imported, held)
        self._brought = brought
        self._postponing = False
        self._stars = stars
        self._mixed: dict[str, Scope] = {}
        """What is known in the classes of the text that derive from no library's, by their names."""

    def finish(self) -> None:
        """Read the functions, then settle the names that star imports must bring."""
        while self._waiting or self._read_again():
            function, scopes, self.notes.guard = self._waiting.pop(0)
            inner = {**self._parameters(function, scopes), **self._self_of(function, scopes)}
            if isinstance(function, ast.Lambda):
                self._expression(function.body, [*scopes, inner])
            else:
                self.body(function.body, [*scopes, inner])
        self.notes.finish()
        for name, place in self._loose if self._stars else ():
            for module in self._stars:
                self.read.uses.append(Use(Kind.STAR, module, place, name))
        self.read.uses[:] = (use for use in self.read.uses if not self._comes_elsewhere(use))

    def _read_again(self) -> bool:
        """Let the functions wait again of whose arguments the calls told more than was known."""
        told = self.read.unfollowed
        self._waiting += self.typed.again()
        self.read.unfollowed = told
        return bool(self._waiting)

    def _comes_elsewhere(self, use: Use) -> bool:
        """True for an import that may fail, of a name that is bound a second time."""
        return use.unsure and use.kind is Kind.IMPORT and self._bound[use.name] > 1

    def _parameters(self, function: Function | ast.Lambda, scopes: Sequence[Scope]) -> Scope:
        rest = [one.arg for one in (function.args.vararg, function.args.kwarg) if one is not None]
        named = {one.arg: instance_of(one.annotation, scopes) for one in named_in(function.args)}
        return named | dict.fromkeys(rest, UNKNOWN) | self.typed.given(function)

    def _self_of(self, function: Function | ast.Lambda, scopes: Sequence[Scope]) -> Scope:
        own = scopes[-1].get("<self>")
        if own is None or isinstance(function, ast.Lambda) or not function.args.args:
            return {}
        return {function.args.args[0].arg: own, "<super>": scopes[-1]["<above>"]}

    def body(self, body: Iterable[ast.stmt], scopes: list[Scope]) -> None:
        """Read statements; those after a condition that is left by are read as where it does not hold."""
        outer = self.notes.guard
        for node in body:
            self._statement(node, scopes)
            test = node.test if isinstance(node, ast.If) and isinstance(node.body[-1], _LEAVING) else None
            if condition := condition_of(test, scopes):
                self.notes.guard = self.notes.guard.below(condition.turned())
            scopes[-1].update(narrowed(test, scopes, holds=False))
        self.notes.guard = outer

    def _statement(self, node: ast.stmt, scopes: list[Scope]) -> None:
        match node:
            case ast.Import():
                self._import(node, scopes)
            case ast.ImportFrom():
                self._import_from(node, scopes)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                taken = (f"{node.name}({argument.arg})" for argument in named_in(node.args))
                self.read.defined.update((node.name, *taken, *needing(node)))
                scopes[-1][node.name] = self._standing_for(node, scopes)
                for part in node.decorator_list:
                    self.notes.decorated(part, self._expression(part, scopes))
                for default in (*node.args.defaults, *node.args.kw_defaults):
                    self._expression(default, scopes)
                rest = (node.args.vararg, node.args.kwarg)
                for argument in (*named_in(node.args), *(one for one in rest if one is not None)):
                    self._annotation(argument.annotation, scopes)
                self._annotation(node.returns, scopes)
                self._waiting.append((node, list(scopes), self.notes.guard))
                self.typed.defined(node, list(scopes), self.notes.guard)
            case ast.ClassDef():
                self._class(node, scopes)
            case ast.If():
                self._if(node, scopes)
            case ast.Try():
                self._try(node, scopes)
            case ast.Assert():
                self._plain(node, scopes)
                scopes[-1].update(narrowed(node.test, scopes))
            case _:
                self._plain(node, scopes)

    def _standing_for(self, function: Function, scopes: Sequence[Scope]) -> Bound:
        called = handed_on(function)
        known = [*scopes, imported_in(function)]
        found = standing_for(function, looked_up(called, known)) if called is not None else UNKNOWN
        told = answering(function, scopes) if found is UNKNOWN or found.open else UNKNOWN
        if told is UNKNOWN and (made := made_in(function)) is not None:
            told = answering_with(looked_up(made, scopes))
        return told if found is UNKNOWN else replace(found, answer=told.answer)

    def _annotation(self, node: ast.expr | None, scopes: list[Scope]) -> None:
        self.notes.postponed = self._postponing
        self._expression(node, scopes)
        self.notes.postponed = False

    def _plain(self, node: ast.stmt, scopes: list[Scope]) -> None:
        if isinstance(node, ast.AnnAssign):
            self._annotation(node.annotation, scopes)
            bound = self._expression(node.value, scopes)
            known = bound.path or bound.keys is not None or bound.element not in (None, UNKNOWN)
            self._bind(node.target, bound if known else instance_of(node.annotation, scopes), scopes)
            return
        if isinstance(node, ast.Assign):
            self.notes.answered.add(node.value)
            self.notes.taking[node.value] = next(last_names(node.targets[0]), "")
            bound = self._expression(node.value, scopes)
            if condition := condition_of(node.value, scopes):
                bound = Bound(condition=condition)
            for target in node.targets:
                self._bind(target, bound, scopes, node.value)
            return
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self._pairs(node.target, node.iter, scopes)
            every = self._expression(node.iter, scopes)
            self._each(node.target, node.iter, every, scopes)
            for inner in (*node.body, *node.orelse):
                self._statement(inner, scopes)
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

    def _import(self, node: ast.Import, scopes: list[Scope]) -> None:
        for alias in node.names:
            root = alias.name.partition(".")[0]
            parent, _, last = alias.name.rpartition(".")
            own = self._brought(0, parent, last) if alias.asname and parent else UNKNOWN
            scopes[-1][alias.asname or root] = (
                own if own.attributes else Bound(alias.name if alias.asname else root)
            )
            self.notes.use(Use(Kind.MODULE, alias.name, alias_place(alias), statement=place_of(node)))

    def _import_from(self, node: ast.ImportFrom, scopes: list[Scope]) -> None:
        self._postponing |= node.module == "__future__" and any(a.name == "annotations" for a in node.names)
        for alias in node.names:
            self._bound[alias.asname or alias.name] += 1
            own = self._brought(node.level, node.module or "", alias.name)
            if own.attributes is not None and alias.name == "*":
                scopes[-1].update(own.attributes)
            elif node.level or not node.module or own is not UNKNOWN:
                scopes[-1][alias.asname or alias.name] = own
            elif alias.name == "*":
                self._stars.append(node.module)
            else:
                path = f"{node.module}.{alias.name}"
                scopes[-1][alias.asname or alias.name] = Bound(path)
                use = Use(Kind.IMPORT, node.module, alias_place(alias), alias.name, statement=place_of(node))
                self.notes.use(use)
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
        methods = (one for one in node.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)))
        members = {one.name: self._standing_for(one, scopes) for one in methods}
        handing = with_handing(bases, members | annotated_in(node, scopes))
        whole = replace(whole, attributes=handing)
        for base in bases:
            if base.attributes is not None:
                self._heirs.setdefault(id(base.attributes), []).append(handing)
        inner: Scope = {
            "<self>": Bound(whole.path, True, handing, whole.own) if known else Bound(attributes=handing),
            "<above>": above if not above.instance else UNKNOWN,
            OF_CLASS: Bound(node.name),
        }
        for path in (named_after(f"{base.path}.args") for base in bases if not known):
            handing |= {"args": Bound(path, True)} if path and "args" not in handing else {}
        self._mixed |= {node.name: inner} if not whole.path else {}
        for name in (one.id for one in node.bases if isinstance(one, ast.Name) and known):
            mixed = self._mixed.get(name, {})
            mixed |= {
                k: replace(one, path=whole.path, instance=True, own=whole.own)
                for k, one in mixed.items()
                if k == "<self>" and not one.path
            }
        self.read.defined.update(fields_of(node))
        self._bound[node.name] += 1
        scopes[-1][node.name] = whole
        if whole.path:
            self.notes.overrides(node, whole, any("__init__" in base.own for base in bases), node.name)
        elif (
            held := called_after(base for base, bound in zip(node.bases, bases, strict=True) if not bound.own)
        ).path:
            self.notes.overrides(node, held, made=False)
        self.body(node.body, [*scopes, inner])

    def _if(self, node: ast.If, scopes: list[Scope]) -> None:
        self._expression(node.test, scopes)
        outer = self.notes.guard
        self.notes.guard, other = branches(outer, node.test, scopes)
        self.notes.postponed = next(last_names(node.test), "") == "TYPE_CHECKING"
        known = narrowed(node.test, scopes) | text_left_out(node.test, scopes)
        before = {name: scopes[-1].get(name) for name in known}
        scopes[-1].update(known)
        self.body(node.body, scopes)
        for name in [name for name, bound in known.items() if scopes[-1].get(name) is bound]:
            del scopes[-1][name]
            if (told := before[name]) is not None:
                scopes[-1][name] = told
        self.notes.postponed = False
        self.notes.guard = other
        other_texts = text_left_out(node.test, scopes, holds=False)
        with_them = {name: scopes[-1][name] for name in other_texts if name in scopes[-1]}
        scopes[-1].update(other_texts)
        self._instead([node.orelse], scopes)
        scopes[-1].update(with_them)
        self.notes.guard = outer

    def _instead(self, bodies: Iterable[Sequence[ast.stmt]], scopes: list[Scope]) -> None:
        """Read what runs in place of what was read: what stands in there for an import tells nothing."""
        imported = {name: bound for name, bound in scopes[-1].items() if bound.path and not bound.instance}
        for body in bodies:
            self.body(body, scopes)
        now = scopes[-1]
        now.update((n, bound) for n, bound in imported.items() if now[n].instance or not now[n].path)

    def _try(self, node: ast.Try, scopes: list[Scope]) -> None:
        outer, self.notes.guard = self.notes.guard, guarded_by(self.notes.guard, node)
        first = len(self.read.uses)
        self.body(node.body, scopes)
        second = len(self.read.uses)
        for handler in node.handlers:
            self.notes.caught(handler.type, scopes, node.body)
        self.notes.guard = handling(outer, node.handlers)
        third = len(self.read.uses)
        self._instead((handler.body for handler in node.handlers), scopes)
        self.notes.same_again(first, second, third, outer)
        if not outer.cares_for(Kind.IMPORT):
            self.notes.in_turn(first, second, fallbacks(node.handlers))
        self.notes.guard = outer
        self.body([*node.orelse, *node.finalbody], scopes)
