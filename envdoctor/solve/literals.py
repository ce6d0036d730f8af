"""What a `setup.py` says that it requires, as far as its literals tell; nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from envdoctor import lazy_re as re
from envdoctor.python_source import parse_python


def required_by(text: str) -> list[str]:
    """Return the literal `install_requires` of calls of setup(), through names, sums and tables of lists."""
    tree = parse_python(text)
    known: dict[str, Any] = {}
    for node in _statements(tree.body):
        if isinstance(node, ast.Assign):
            value = _value(node.value, known)
            known |= {target.id: value for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            known[node.target.id] = _value(ast.BinOp(node.target, node.op, node.value), known)
    given = (_value(asked, known) for asked in _asked_of_setup(tree))
    return [line for lines in given if isinstance(lines, list) for line in lines if isinstance(line, str)]


def texts_behind(text: str) -> set[str]:
    """Return the literal texts from which the `install_requires` of calls of setup() is made, through names.

    `fetch("base.txt")` names a file to whoever reads it, whatever `fetch` is.
    """
    tree = parse_python(text)
    made: dict[str, list[ast.expr]] = {}
    for node in _statements(tree.body):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                made.setdefault(getattr(target, "id", ""), []).append(node.value)
    todo, told = [*_asked_of_setup(tree)], set[str]()
    for expression in todo:
        for part in ast.walk(expression):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                told.add(part.value)
            elif isinstance(part, ast.Name):
                todo += made.pop(part.id, ())
    return told


def _asked_of_setup(tree: ast.Module) -> Iterator[ast.expr]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return (
        keyword.value
        for call in calls
        if getattr(call.func, "id", getattr(call.func, "attr", "")) == "setup"
        for keyword in call.keywords
        if keyword.arg == "install_requires"
    )


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, and those within `with`, `try` and what a script alone does: a build runs them."""
    for node in body:
        yield node
        if isinstance(node, ast.With | ast.Try) or (isinstance(node, ast.If) and _is_of_script(node.test)):
            yield from _statements(node.body)


def _is_of_script(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """Return the text, list or table that an expression is; None where it is neither or not told."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return known.get(name)
        case ast.List(elts=entries) | ast.Tuple(elts=entries):
            return list(_entries(entries, known))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            sides = (_value(left, known), _value(right, known))
            return [one for side in sides if isinstance(side, list) for one in side]
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {key.value: _value(value, known) for key, value in pairs if isinstance(key, ast.Constant)}
        case ast.Subscript(value=table, slice=ast.Constant(value=key)):
            told = _value(table, known)
            return told.get(key) if isinstance(told, dict) else None
        case _:
            return None


def _entries(entries: list[ast.expr], known: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what a list holds; `deps["name"]` stands for the text of that package in any list."""
    for entry in entries:
        if isinstance(entry, ast.Starred):
            inner = _value(entry.value, known)
            yield from inner if isinstance(inner, list) else ()
        elif (told := _value(entry, known)) is not None:
            yield told
        elif isinstance(entry, ast.Subscript) and isinstance(entry.slice, ast.Constant):
            yield _listed(str(entry.slice.value), known)


def _listed(name: str, known: Mapping[str, Any]) -> str | None:
    texts = (text for value in known.values() if isinstance(value, list) for text in value)
    return next(
        (t for t in texts if isinstance(t, str) and re.split(r"[^\w.-]", t.strip(), maxsplit=1)[0] == name),
        None,
    )
