"""Which modules Python has of itself: by the Python that is told, and where none is, any that had it."""

from __future__ import annotations

from envdoctor.rules.ranges import parse_version
from envdoctor.rules.view import View


def is_standard(view: View, module: str) -> bool:
    """True where the top module of a dotted name is of Python's own library.

    Modules came and went (distutils, imp, tomllib): a Python that the table does not hold is taken for the
    nearest one.
    """
    table = view.matrix.generated("python")
    spans = table.get("modules", {}).get(module.partition(".")[0])
    told = view.python.get()
    python = parse_version(told) if told else None
    if not spans or python is None:
        return spans is not None
    pythons = [parse_version(one) for one in table["pythons"]]
    place = max(sum(1 for one in pythons if one is not None and one.release <= python.release[:2]) - 1, 0)
    return any(first <= place <= last for first, last in spans)
