"""What a `setup.py` says that it requires, as far as its literals tell; nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from envdoctor import lazy_re as re
from envdoctor.python_source import parse_python


def required_by(text: str) -> Iterator[str]:
    """Yield the literal `install_requires` of a call of setup(), through plain names."""
    tree = parse_python(text)
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "setup":
            for keyword in node.keywords:
                if keyword.arg == "install_requires":
                    yield from _literal_lines(keyword.value, named)


def _literal_lines(node: ast.expr, named: Mapping[str, ast.expr]) -> Iterator[str]:
    """Yield the texts of a list; `deps["name"]` stands for the text of that package in any list."""
    node = named.get(node.id, node) if isinstance(node, ast.Name) else node
    if not isinstance(node, (ast.List, ast.Tuple)):
        return
    for entry in node.elts:
        if isinstance(entry, ast.Constant) and isinstance(entry.value, str):
            yield entry.value
        elif isinstance(entry, ast.Subscript) and isinstance(entry.slice, ast.Constant):
            yield from _listed(str(entry.slice.value), named)


def _listed(name: str, named: Mapping[str, ast.expr]) -> Iterator[str]:
    lists = (node.elts for node in named.values() if isinstance(node, (ast.List, ast.Tuple)))
    texts = (e.value for entries in lists for e in entries if isinstance(e, ast.Constant))
    found = (
        t for t in texts if isinstance(t, str) and re.split(r"[^\w.-]", t.strip(), maxsplit=1)[0] == name
    )
    yield from list(found)[:1]
