"""What a line of Python prints where it asks packages for what they are: a pattern of the printed line."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from envdoctor import lazy_re as re
from envdoctor.python_source import parse_python

_KNOWN = re.compile(
    r"(?P<name>[a-z_]{2,30})\.(?P<what>__version__|version\.cuda|"
    r"cuda\.(?:get_device_name|get_device_capability|get_arch_list|is_available|device_count)"
    r"\([\w ,.:\"']{0,30}\))"
)
_VALUES = {
    "__version__": r"\d[\w.+]{0,40}",
    "version.cuda": r"\d{1,2}\.\d{1,2}|None",
    "get_device_name": r"[^\n]{2,80}?",
    "get_device_capability": r"\(\d{1,2}, \d\)",
    "get_arch_list": r"\[[^\]\n]{0,400}\]",
    "is_available": "True|False",
    "device_count": r"\d{1,3}",
}
"""How Python prints the value of an expression."""
_ANYTHING = r"[^\n]{1,80}?"
PIECES = 8
"""Values and texts of one printed line that are told apart."""
Asked = tuple[str, str]
"""A package and what of it is asked: `torch`, `version.cuda`."""


def parse_printed(code: str, prompt: bool) -> Iterator[tuple[list[Asked], str]]:
    """Yield of each line that `code` prints what it asks, and a pattern with one group for each of them.

    At a `prompt` the value of an expression is printed, too. Nothing for what is no Python.
    """
    try:
        body = parse_python(code).body
    except SyntaxError:
        return
    for value in (node.value for node in body if isinstance(node, ast.Expr)):
        given = _printed(value)
        if given is None and not prompt:
            continue
        asked: list[Asked] = []
        pieces = [value] if given is None else given
        looks = r"\s{1,8}".join(_looks(one, asked) for one in pieces)
        vague = looks.count("80}?") > 1 or len(pieces) > PIECES
        yield asked, "(?!)" if vague else looks


def _printed(node: ast.expr) -> list[ast.expr] | None:
    """Return what a call of print is given; None for whatever is no such call."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return None
    return node.args if node.func.id == "print" and not node.keywords else None


def _looks(node: ast.expr, asked: list[Asked]) -> str:
    """Return the pattern of a printed value; what it asks is added to `asked`."""
    if isinstance(node, ast.Constant):
        return r"\s{0,8}".join(map(re.escape, re.split(r"\s{1,80}", str(node.value))))
    if isinstance(node, ast.JoinedStr):
        return "".join(_looks(one, asked) for one in node.values)
    if isinstance(node, ast.FormattedValue):
        return _looks(node.value, asked)
    match = _KNOWN.fullmatch(ast.unparse(node))
    if match is None:
        return _ANYTHING
    asked.append((match["name"], match["what"]))
    value = next(pattern for key, pattern in _VALUES.items() if key in match["what"])
    return f"['\"]?({value})['\"]?"
