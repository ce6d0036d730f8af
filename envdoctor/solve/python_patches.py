"""What wants a later release of the Python that is told without its last number (`3.11` may be 3.11.0)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envdoctor.matrix.markers import clauses_hold
from envdoctor.solve.nodes import Node
from envdoctor.solve.versions import clauses, runs_on_python


def later_pythons(nodes: Mapping[str, Node], bits: Mapping[str, int]) -> Iterator[str]:
    """Yield what an answer picks that the first release of a Python told without its last number refuses."""
    for name, node in nodes.items():
        python = node.context.target.python
        asked = node.pythons(node.places[bits[name]]) if len(python) < 3 else []
        late = sorted({one for one in asked if not clauses_hold(clauses(one), (*python, 0))})
        if late and all(runs_on_python(one, python) for one in late):
            minor = node.context.target.python_minor
            yield f"{node.shown(bits[name])} needs Python {late[0]}: not every {minor} serves"
