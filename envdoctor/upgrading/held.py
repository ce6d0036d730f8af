"""What members of libraries' classes are, and what their calls yield: as the libraries' annotations tell."""

from __future__ import annotations

from collections.abc import Callable

from envdoctor.matrix import Matrix
from envdoctor.matrix.held import load_held
from envdoctor.matrix.interface_records import ancestors, load_record
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.upgrading.bindings import UNKNOWN, Bound, is_class

Held = Callable[[str], Bound]
"""What a member's dotted path stands for; `path()` for what its call yields."""


def holds_nothing(path: str) -> Bound:
    """Tell nothing of any member."""
    return UNKNOWN


def held_by(matrix: Matrix) -> Held:
    """Return what looks members up in the generated table."""
    known: dict[str, Bound] = {}

    def held(path: str) -> Bound:
        if path not in known:
            known[path] = _looked_up(matrix, path)
        return known[path]

    return held


def _looked_up(matrix: Matrix, path: str) -> Bound:
    owner, _, name = path.rpartition(".")
    holder = owner.rpartition(".")[2]
    library = distribution_of(matrix, path)
    told = load_held(matrix.folder).get(library)
    record = load_record(matrix.folder, library) if told else None
    if told is None or record is None:
        return UNKNOWN
    if not is_class(holder):
        answer = told.get(name, "") if name.endswith("()") else ""
    else:
        holders = (holder, *ancestors(record.bases, holder))
        answer = next((found for one in holders if (found := told.get(f"{one}.{name}"))), "")
    if not answer:
        return UNKNOWN
    instance = Bound(f"{record.root}.{answer.strip('[]')}", True)
    return Bound(element=instance) if answer[0] == "[" else instance
