"""Messages that a library's Python files raise, warn of or log: templates, and what leads to them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from envdoctor.python_source import parse_python

HOLE = "\x00"
"""Stands in a template for what is filled in when the message is made."""
LEAST = 14
"""Letters and digits that a template must hold to be told from others."""
LONGEST = 400
GUARDS = 2
GUARD_LENGTH = 160
_PERCENT = re.compile(r"%(?:\(\w{1,60}\))?[-#0 +]{0,4}\d{0,4}(?:\.\d{1,4})?[diouxXeEfFgGcrsa]")
_BRACES = re.compile(r"\{[^{}]{0,60}\}")
_LOGGED = frozenset({"error", "exception", "critical", "fatal", "warning", "warning_once", "warn"})
Guards = tuple[tuple[str, ast.expr], ...]
"""The conditions that lead to a statement, each with its form: few statements say anything, so they wait."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message: how it is given (`ValueError`, `warning`, `error`, `assert`), where, and under what."""

    template: str
    kind: str
    function: str
    guard: str


def scan_messages(source: str) -> Iterator[Message]:
    """Yield the messages of one file; nothing for one that is no Python of today."""
    try:
        tree = parse_python(source)
    except SyntaxError:
        return
    yield from _Scan().visit(tree.body, "", ())


class _Scan:
    """Walks statements with the name of the function and the conditions that lead to them."""

    def visit(self, body: list[ast.stmt], function: str, guards: Guards) -> Iterator[Message]:
        for statement in body:
            yield from self._statement(statement, function, guards)

    def _statement(self, node: ast.stmt, function: str, guards: Guards) -> Iterator[Message]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{function}.{node.name}" if function else node.name
            yield from self.visit(node.body, inner, ())
        elif isinstance(node, ast.If):
            yield from self.visit(node.body, function, (*guards, ("%s", node.test)))
            yield from self.visit(node.orelse, function, (*guards, ("not (%s)", node.test)))
        elif isinstance(node, ast.Try):
            yield from self.visit(node.body, function, guards)
            for handler in node.handlers:
                caught = ("%s is raised", handler.type or ast.Name("an exception"))
                yield from self.visit(handler.body, function, (*guards, caught))
            yield from self.visit(node.orelse + node.finalbody, function, guards)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith)):
            yield from self.visit(node.body + getattr(node, "orelse", []), function, guards)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                yield from self.visit(case.body, function, guards)
        else:
            yield from self._said(node, function, guards)

    def _said(self, node: ast.stmt, function: str, guards: Guards) -> Iterator[Message]:
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for argument in node.exc.args[:2]:
                yield from _message(argument, _last_name(node.exc.func), function, guards)
        elif isinstance(node, ast.Assert) and node.msg is not None:
            failed = ("not (%s)", node.test)
            yield from _message(node.msg, "AssertionError", function, (*guards, failed))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Attribute) and call.func.attr in _LOGGED and call.args:
                yield from _message(call.args[0], call.func.attr, function, guards, len(call.args) > 1)


def _message(
    node: ast.expr, kind: str, function: str, guards: Guards, filled: bool = False
) -> Iterator[Message]:
    """Yield the message of a string expression; `filled`: its `%s` are filled in by the call's arguments."""
    text = _holed(_template(node), "%") if filled else _template(node)
    template = " ".join(text.split())[:LONGEST]
    if is_telling(template):
        told = " and ".join(form % _text(test) for form, test in guards[-GUARDS:])
        yield Message(template, kind, function, told)


def is_telling(template: str) -> bool:
    """True for a template of several words that is long enough to be told from others."""
    return sum(character.isalnum() for character in template) >= LEAST and " " in template.strip(HOLE)


def _template(node: ast.expr) -> str:
    """Return the text of a string expression, with a hole for each part that is not literal."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else HOLE
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _template(node.left) + _template(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _holed(_template(node.left), "%")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _holed(_template(node.func.value), "{")
    return HOLE


def _holed(text: str, mark: str) -> str:
    """Put holes in place of `%s` or `{name}`."""
    return (_PERCENT if mark == "%" else _BRACES).sub(HOLE, text)


def _text(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= GUARD_LENGTH else text[: GUARD_LENGTH - 1] + "…"


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
