"""What cares for an absence: handlers of errors, and questions that the new release answers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from envdoctor.upgrading.bindings import Scope, caught_by, instance_of, looked_up
from envdoctor.upgrading.uses import Condition, Kind, Use
from envdoctor.values import dataclass

_IMPORTS = frozenset((Kind.IMPORT, Kind.MODULE, Kind.STAR))
_CALLS = frozenset((Kind.KEYWORD, Kind.POSITION, Kind.OVERRIDE, Kind.LOOSE))
_NAMES = frozenset((Kind.PATH, Kind.MEMBER, Kind.NAME, Kind.CALL, Kind.LOOSE))
_MEMBERS = frozenset((Kind.MEMBER, Kind.CALL, Kind.LOOSE))
_EVERY = frozenset(Kind)
_NONE: frozenset[Kind] = frozenset()
_CAUGHT = {
    "ImportError": _IMPORTS,
    "ModuleNotFoundError": _IMPORTS,
    "AttributeError": _NAMES,
    "TypeError": _CALLS,
    "Exception": _EVERY,
    "": _EVERY,
}
"""The uses whose absence each exception tells of."""
_BROAD = frozenset(("Exception", ""))
_ASKING = re.compile(r"version|hasattr|signature|inspect|(?i:_v\d|_(?:ge|lt|at_least)_\d)")
"""What a condition asks that cares for the absence of a name; that of a package is another's."""
_VERSION = re.compile(r"\d{1,4}(?:\.\d{1,6}){0,3}(?:\.?(?:a|b|rc|dev|post)\d{0,8})?")
_ASKED = re.compile(r"is_(\w{2,40}?)_(?:version|available_version)")
_ASKED_OF = ("importlib.metadata.version", "importlib_metadata.version")
_INDEXED = frozenset(("tuple", "list", "Tuple", "List", "Sequence"))
_FEW = 6
"""Statements around which a handler of every error may care for the absence of a name."""
_SIGNS: dict[type[ast.cmpop], str] = {ast.GtE: ">=", ast.Gt: ">", ast.LtE: "<=", ast.Lt: "<", ast.Eq: "=="}
_TURNED = {">=": "<=", ">": "<", "<=": ">=", "<": ">", "==": "=="}


@dataclass(frozen=True, slots=True)
class Guard:
    """What stands around a use: the kinds that are cared for, and the questions that must hold."""

    kinds: frozenset[Kind] = frozenset()
    broadly: frozenset[Kind] = frozenset()
    """The kinds that a handler of every error alone cares for: what only warns is none."""
    modules: bool = False
    """True where the absence of a whole module is cared for, of a name in it not."""
    passed: bool = False
    """True where a handler lets a failing import pass, and nothing takes its place."""
    when: tuple[Condition, ...] = ()

    def on(self, use: Use) -> Use:
        """Return the use with what stands around it."""
        if self is OPEN:
            return use
        imported = use.kind in _IMPORTS
        owned = Kind.MEMBER if use.kind is Kind.LOOSE and not use.path else use.kind
        guarded = self.cares_for(owned)
        return replace(
            use,
            guarded=guarded,
            warns=guarded and owned not in self.kinds,
            modules=self.modules and imported,
            unsure=use.unsure or (self.passed and imported),
            when=self.when,
        )

    def cares_for(self, kind: Kind) -> bool:
        """True where the absence of such a use is cared for."""
        return kind in self.kinds or kind in self.broadly

    def asked(self) -> Guard:
        """Return the guard below a condition that asks what cannot be answered here."""
        return replace(self, kinds=_EVERY)

    def below(self, condition: Condition) -> Guard:
        """Return the guard below a condition on a library's release."""
        return replace(self, when=(*self.when, condition))


OPEN = Guard()


def guarded_by(outer: Guard, node: ast.Try) -> Guard:
    """Return the guard of what stands under `try`; a handler that raises again cares for nothing.

    Around more than a few statements errors of every kind are caught for other reasons than an absence.
    """
    much = sum(isinstance(one, ast.stmt) for part in node.body for one in ast.walk(part)) > _FEW
    for handler in node.handlers:
        names = {name.rpartition(".")[2].strip() for name in caught_by(handler)} & _CAUGHT.keys()
        if not names or (_tells_only(handler.body) and isinstance(handler.body[-1], ast.Raise)):
            continue
        if much:
            names &= {"ImportError", "ModuleNotFoundError"}
        kinds: frozenset[Kind] = frozenset().union(*(_CAUGHT[name] for name in names))
        if not kinds:
            continue
        if kinds >= _IMPORTS and _tells_only(handler.body):
            modules = outer.modules or names == {"ModuleNotFoundError"}
            outer, kinds = replace(outer, passed=True, modules=modules), kinds - _IMPORTS
        elif names == {"ModuleNotFoundError"}:
            outer, kinds = replace(outer, modules=True), _NONE
        if names <= _BROAD:
            outer = replace(outer, broadly=outer.broadly | kinds)
        else:
            outer = replace(outer, kinds=outer.kinds | kinds)
    return outer


def handling(outer: Guard, handlers: Sequence[ast.ExceptHandler]) -> Guard:
    """Return the guard of what handlers do: it runs where something is absent."""
    names = {name.rpartition(".")[2].strip() for handler in handlers for name in caught_by(handler)}
    if names & _CAUGHT.keys() <= _BROAD:
        return replace(outer, broadly=_EVERY) if names & _BROAD else outer
    return outer.asked()


def fallbacks(handlers: Iterable[ast.ExceptHandler]) -> frozenset[int]:
    """Return the lines of the imports that stand in for one that fails: where they fail too, all does."""
    return frozenset(
        one.lineno for handler in handlers for one in handler.body if isinstance(one, ast.ImportFrom)
    )


def _tells_only(body: Iterable[ast.stmt]) -> bool:
    """True for statements that bind nothing and go nowhere: what failed stays away."""
    return all(
        isinstance(one, (ast.Pass, ast.Raise)) or (isinstance(one, ast.Expr) and not any(_leaves(one)))
        for one in body
    )


def _leaves(node: ast.Expr) -> Iterator[bool]:
    """Yield for each call of an expression whether it is called as what goes on nowhere is."""
    calls = (one for one in ast.walk(node) if isinstance(one, ast.Call))
    yield from (any(word in ast.unparse(one.func) for word in ("skip", "exit")) for one in calls)


def _asked_for(test: ast.expr, scopes: Sequence[Scope]) -> frozenset[Kind]:
    """Return the uses that a condition cares for: it asks for a release, or for a name.

    Whether what is no library's has a name tells of members alone, and of none that only a run names; so
    does whether something can be indexed.
    """
    calls = [part for part in ast.walk(test) if isinstance(part, ast.Call)]
    own = {
        call.func: call
        for call in calls
        if _is_called(call, "hasattr") and not looked_up(call.args[0], scopes).path
    }
    kinds = _NAMES if any(_is_name(call.args[0], "self") for call in own.values()) else _MEMBERS
    names = (_name_of(part) for part in ast.walk(test) if part not in own)
    if any(_ASKING.search(name) for name in names if name):
        return _EVERY
    typed = (part for call in calls if _is_called(call, "isinstance") for part in ast.walk(call.args[1]))
    if any(_name_of(part) in _INDEXED for part in typed):
        return _NAMES
    return (
        kinds if any(isinstance(one, ast.Constant) for call in own.values() for one in call.args) else _NONE
    )


def _is_called(call: ast.Call, name: str) -> bool:
    return _is_name(call.func, name) and len(call.args) == 2


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def narrowed(test: ast.expr | None, scopes: Sequence[Scope], holds: bool = True) -> Scope:
    """Return the names that are instances of one class where a test holds, or where it does not."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), known]) if holds:
            told = instance_of(known, scopes)
            return {name: told} if told.path else {}
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return narrowed(inner, scopes, not holds)
        case ast.BoolOp(op=op, values=parts) if isinstance(op, ast.And if holds else ast.Or):
            every = (narrowed(part, scopes, holds) for part in parts)
            return {name: bound for one in every for name, bound in one.items()}
        case _:
            return {}


def branches(outer: Guard, test: ast.expr, scopes: Sequence[Scope]) -> tuple[Guard, Guard]:
    """Return the guards of what runs where a test holds, and where it does not."""
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    asked = [(part, condition_of(part, scopes)) for part in parts]
    known = [condition for _, condition in asked if condition]
    rest = [part for part, condition in asked if not condition]
    kinds = _NONE.union(*(_asked_for(part, scopes) for part in rest))
    plain = replace(outer, kinds=outer.kinds | kinds) if kinds else outer
    if not known:
        return plain, plain
    one = len(parts) == 1
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return outer.asked(), _all(plain, [condition.turned() for condition in known])
    other = outer.below(known[0].turned()) if one else plain if rest else outer.asked()
    return _all(plain, known), other


def _all(guard: Guard, conditions: Iterable[Condition]) -> Guard:
    for condition in conditions:
        guard = guard.below(condition)
    return guard


def condition_of(test: ast.expr | None, scopes: Sequence[Scope]) -> Condition | None:
    """Return what a test asks of one library's release; None for what is more, or something else."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            found = condition_of(inner, scopes)
            return found.turned() if found else None
        case ast.Name():
            return looked_up(test, scopes).condition
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _SIGNS:
            return _compared(left, _SIGNS[type(sign)], right, scopes)
        case ast.Call(
            func=ast.Name(id=asked) | ast.Attribute(attr=asked),
            args=[ast.Constant(value=str(operator)), ast.Constant(value=str(version))],
        ) if (match := _ASKED.fullmatch(asked)) and operator in _TURNED and _VERSION.fullmatch(version):
            return Condition(match[1], operator, version)
        case _:
            return None


def versions_compared(
    left: ast.expr, sign: ast.cmpop, right: ast.expr, scopes: Sequence[Scope]
) -> Condition | None:
    """Return what is asked of a release by comparing its text with another, letter by letter."""
    operator = _SIGNS.get(type(sign), "==")
    for one, other, asked in ((left, right, operator), (right, left, _TURNED[operator])):
        plain = isinstance(other, ast.Constant) and isinstance(other.value, str)
        version = _version(other) if plain and asked != "==" else ""
        library = _release_text(one, scopes) if "." in version else ""
        if library:
            return Condition(library, asked, version)
    return None


def _release_text(node: ast.expr, scopes: Sequence[Scope]) -> str:
    """Return the library whose release a text is; torch's compares itself as releases do."""
    path = looked_up(node, scopes).path
    if isinstance(node, ast.Call) and looked_up(node.func, scopes).path in _ASKED_OF:
        library = _library(node, scopes)
    else:
        library = path.removesuffix(".__version__") if path.endswith(".__version__") else ""
    return "" if library == "torch" and path else library


def _compared(left: ast.expr, operator: str, right: ast.expr, scopes: Sequence[Scope]) -> Condition | None:
    for one, other, sign in ((left, right, operator), (right, left, _TURNED[operator])):
        library, version = _library(one, scopes), _version(other)
        whole = version.isdigit() and isinstance(other, ast.Constant)
        if (
            library
            and version
            and not (whole and ("split" not in ast.unparse(one) or sign not in (">=", "<")))
        ):
            return Condition(library, sign, version)
    return None


def _library(node: ast.expr, scopes: Sequence[Scope]) -> str:
    """Return the library whose release an expression is: `x.__version__`, `version("x")`."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr == "__version__":
            return looked_up(part.value, scopes).path.partition(".")[0]
        if isinstance(part, ast.Call) and ast.unparse(part.func).rpartition(".")[2] == "version":
            told = part.args[0] if part.args else None
            if isinstance(told, ast.Constant) and isinstance(told.value, str) and told.value[:1].isalpha():
                return told.value
    return ""


def _version(node: ast.expr) -> str:
    told = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    text = str(told[0]) if len(told) == 1 and type(told[0]) in (str, int) else ""
    return text if _VERSION.fullmatch(text) else ""
