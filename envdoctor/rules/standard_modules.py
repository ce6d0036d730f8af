"""Which modules and names Python has of itself: by the Python that is told, else any that had it."""

from __future__ import annotations

from envdoctor.matrix import Matrix
from envdoctor.rules.ranges import parse_version
from envdoctor.rules.view import View

NAMES = "python-names"
"""The generated table of names that not every Python has."""


def standard_members(view: View, end: str) -> list[str]:
    """Return the names that not every Python has and that end so: `Thread.isAlive`, `dataclass(slots`."""
    known = view.matrix.generated(NAMES).get("names", {})
    return [one for one in known if one.startswith(f"builtins.{end}") or f".{end}" in one]


def is_standard(view: View, module: str) -> bool:
    """True where the top module of a dotted name is of Python's own library, as `is_in_python` tells it."""
    return is_in_python(view.matrix, module, view.python.get() or "")


def is_in_python(matrix: Matrix, module: str, minor: str) -> bool:
    """True where the top module of a dotted name is of a Python's own library ("": of any's).

    Modules came and went (distutils, imp, tomllib): a Python that the table does not hold is taken for the
    nearest one.
    """
    table = matrix.generated("python")
    spans = table.get("modules", {}).get(module.partition(".")[0])
    python = parse_version(minor) if minor else None
    if not spans or python is None:
        return spans is not None
    pythons = [parse_version(one) for one in table["pythons"]]
    place = max(sum(1 for one in pythons if one is not None and one.release <= python.release[:2]) - 1, 0)
    return any(first <= place <= last for first, last in spans)


def python_with(matrix: Matrix, name: str, minor: str) -> str:
    """Return the nearest Python that has a dotted name which a Python lacks, by typeshed; "" for none."""
    table, parts = matrix.generated(NAMES), name.split(".")
    pythons = table["pythons"]
    if minor not in pythons:
        return ""
    here = pythons.index(minor)
    for end in range(1, len(parts) + 1):
        first, last, *_ = table["names"].get(".".join(parts[:end])) or (here, here)
        if not first <= here <= last:
            return str(pythons[last if here > last else first])
    return ""
