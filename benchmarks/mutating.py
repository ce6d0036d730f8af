"""Mutants of a module's functions: small edits of its syntax tree, put into the functions that run.

An edit is one that a slip of the pen makes: a comparison moved by its bound or turned round, `and` for `or`,
a condition negated, an operator swapped, a number moved by one, a key misspelled, `min` for `max`, a call
left out. Prose (text with blanks), empty text, annotations, decorators, defaults and what runs on import are
left alone.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_METHODS = {"startswith": "endswith", "endswith": "startswith", "lstrip": "rstrip", "rstrip": "lstrip"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

Edit = Callable[[], None]


@dataclass(frozen=True)
class Mutant:
    """One edit of one function: `before` and `after` are the statement's first lines."""

    path: Path
    function: str
    line: int
    statement_line: int
    number: int
    before: str
    after: str

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What stays when lines move."""
        return self.path.name, self.function, self.before, self.after


def edits_in(path: Path) -> int:
    """Return how many edits the file has."""
    return sum(1 for _ in _edits(ast.parse(path.read_bytes())))


def read_mutant(path: Path, number: int) -> Mutant:
    """Return the file's edit of that number."""
    place, edit = list(_edits(ast.parse(path.read_bytes())))[number]
    before = ast.unparse(place.statement)
    edit()
    first, changed = _first_change(before, ast.unparse(place.statement))
    return Mutant(path, place.function, place.line, place.statement.lineno, number, first, changed)


def put_in(mutant: Mutant, functions: list[FunctionType]) -> int:
    """Give the running functions of the file the mutant's code, and return how many changed."""
    tree = ast.parse(mutant.path.read_bytes())
    list(_edits(tree))[mutant.number][1]()
    code = compile(ast.fix_missing_locations(tree), str(mutant.path), "exec", dont_inherit=True)
    mutated = {_key(each): each for each in _codes(code)}
    changed = [f for f in functions if mutated.get(_key(f.__code__), f.__code__) != f.__code__]
    for function in changed:
        function.__code__ = mutated[_key(function.__code__)]
    return len(changed)


def put_in_counters(path: Path, functions: list[FunctionType], told: str) -> None:
    """Have the running functions of a file call the builtin `told`, with file and line, when they begin."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            arguments: list[ast.expr] = [ast.Constant(str(path)), ast.Constant(node.lineno)]
            call = ast.Expr(ast.Call(ast.Name(told, ast.Load()), arguments, []))
            node.body.insert(0, ast.fix_missing_locations(ast.copy_location(call, node.body[0])))
    counted = {_key(each): each for each in _codes(compile(tree, str(path), "exec", dont_inherit=True))}
    for function in functions:
        function.__code__ = counted.get(_key(function.__code__), function.__code__)


def function_lines(path: Path) -> dict[int, int]:
    """Return of each line within a function the line where the innermost begins."""
    inside = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, _FUNCTIONS)]
    inside.sort(key=lambda node: node.lineno)
    return {line: node.lineno for node in inside for line in range(node.lineno, (node.end_lineno or 0) + 1)}


def running_functions(paths: list[Path]) -> dict[Path, list[FunctionType]]:
    """Return the functions alive in this process by the file that they were written in."""
    found: dict[Path, list[FunctionType]] = {path: [] for path in paths}
    names = {str(path): path for path in paths}
    for thing in gc.get_objects():
        if type(thing) is FunctionType and (path := names.get(thing.__code__.co_filename)):
            found[path].append(thing)
    return found


@dataclass
class _Place:
    function: str
    statement: ast.stmt
    line: int


_Found = tuple[_Place, Edit]


def _edits(tree: ast.Module) -> Iterator[_Found]:
    for node in tree.body:
        yield from _edits_of(node, (), None)


def _edits_of(
    node: ast.AST, names: tuple[str, ...], statement: ast.stmt | None
) -> Iterator[tuple[_Place, Edit]]:
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        names = (*names, node.name)
        for child in node.body:
            inside = statement is not None or isinstance(node, _FUNCTIONS)
            yield from _edits_of(child, names, child if inside else None)
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    statement = node if isinstance(node, ast.stmt) and statement is not None else statement
    if statement is not None:
        for edit in _edits_at(node):
            yield _Place(".".join(names), statement, getattr(node, "lineno", statement.lineno)), edit
    for child in _children(node):
        yield from _edits_of(child, names, statement)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "type_comment") or isinstance(node, ast.JoinedStr):
            values = [v for v in value if isinstance(v, ast.FormattedValue)] if field == "values" else []
        else:
            values = value if isinstance(value, list) else [value]
        yield from (v for v in values if isinstance(v, ast.AST))


def _edits_at(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            yield lambda i=i, op=op: node.ops.__setitem__(i, _COMPARISONS[type(op)]())
    elif isinstance(node, ast.BoolOp):
        yield lambda: setattr(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield lambda: setattr(node, "operand", _negated(node.operand))
    elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _OPERATORS and not _of_text(node):
        yield lambda: setattr(node, "op", _OPERATORS[type(node.op)]())
    elif isinstance(node, ast.Constant):
        if (value := _other(node.value)) is not None:
            yield lambda: setattr(node, "value", value)
    elif isinstance(node, ast.Call):
        yield from _edits_of_call(node)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield lambda: setattr(node, "value", ast.Constant(None))
    if isinstance(node, (ast.If, ast.While, ast.IfExp)) and _plain(node.test):
        yield lambda: setattr(node, "test", _negated(node.test))


def _edits_of_call(node: ast.Call) -> Iterator[Edit]:
    called = node.func
    if isinstance(called, ast.Name) and called.id in _NAMES:
        yield lambda: setattr(called, "id", _NAMES[called.id])
    elif isinstance(called, ast.Attribute) and called.attr in _METHODS:
        yield lambda: setattr(called, "attr", _METHODS[called.attr])


def _other(value: object) -> object:
    """Return another constant of the kind, or None where the constant is prose, None or an ellipsis."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str) and value and " " not in value:
        return f"{value}X"
    return None


def _plain(test: ast.expr) -> bool:
    return not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant)


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _of_text(node: ast.BinOp | ast.AugAssign) -> bool:
    """Whether an operand is text that is written out: `+` and `%` of text have no other operator."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return any(isinstance(s, ast.JoinedStr) or isinstance(getattr(s, "value", None), str) for s in sides)


def _first_change(before: str, after: str) -> tuple[str, str]:
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return next(((b.strip(), a.strip()) for b, a in pairs if a != b), (before, after))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _key(code: CodeType) -> tuple[str, int]:
    name = code.co_qualname if sys.version_info >= (3, 11) else code.co_name
    return name, code.co_firstlineno
