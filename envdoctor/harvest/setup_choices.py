"""What a `setup.py` asks for by what is installed beside it: where it is built, in isolation, nothing is.

The record inside an sdist was written on its author's machine, where one of several that serve alike was
there (`opencv-python` for albumentations 0.4). pip and uv build in an environment of its own
(https://pip.pypa.io/en/stable/reference/build-system/#build-isolation), where the last choice is left.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from packaging.requirements import InvalidRequirement, Requirement

from envdoctor.python_source import parse_python

_ASKS = re.compile(r"\b(?:DistributionNotFound|PackageNotFoundError)\b")
"""A setup that looks for what is installed is ready for its absence."""


def as_built_alone(lines: Sequence[str], setup: str) -> list[str]:
    """Return the lines that a record holds with those in their place that a build alone asks for."""
    if not _ASKS.search(setup):
        return list(lines)
    try:
        tree = parse_python(setup)
    except SyntaxError:
        return list(lines)
    chosen: dict[str, str] = {}
    for firsts, last in _choices(tree):  # outer ones first: several first ones are no choice of their own
        for line in firsts:
            chosen.setdefault(line, last)
    return [chosen.get(_plain(line), line) for line in lines]


def _choices(tree: ast.Module) -> Iterator[tuple[list[str], str]]:
    """Yield requirements that serve alike with the one that is taken where none of them is installed.

    `[("opencv-python>=4.1", "opencv-python-headless>=4.1")]`, the first of a pair maybe a tuple of several,
    or `{"opencv-python-headless": ["opencv-python", …]}`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            yield from _choice(*node.elts)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                yield from _choice(value, key) if key and isinstance(value, ast.List | ast.Tuple) else ()


def _choice(first: ast.expr, last: ast.expr) -> Iterator[tuple[list[str], str]]:
    firsts = first.elts if isinstance(first, ast.List | ast.Tuple) else [first]
    named = [_plain(one.value) if isinstance(one, ast.Constant) else "" for one in [*firsts, last]]
    if all(named):
        yield named[:-1], named[-1]


def _plain(line: object) -> str:
    """Return a requirement as its parser writes it; "" for what is none."""
    try:
        return str(Requirement(line)) if isinstance(line, str) else ""
    except InvalidRequirement:
        return ""
