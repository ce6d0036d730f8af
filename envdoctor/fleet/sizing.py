"""A training profile for a whole fleet: what fits the smallest card fits every card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from envdoctor.errors import InputError
from envdoctor.fleet.merge import Group
from envdoctor.fleet.nodeset import fold
from envdoctor.matrix import Matrix


def profile_fleet(groups: Sequence[Group], model: str, matrix: Matrix) -> dict[str, Any]:
    """Return a profile for `model` on the nodes with the smallest card, as JSON with `nodes` and `told`.

    Raises InputError when no card's memory is known or the model is unknown, Unavailable without the Hub.
    """
    from envdoctor.memory import find_shape
    from envdoctor.profile.choosing import find_profile, write_profile
    from envdoctor.profile.emit import USUAL
    from envdoctor.profile.workload import Workload
    from envdoctor.target.cards import cards_in
    from envdoctor.target.stack import stack_of

    group = smallest(groups)
    cards = cards_in(group.facts, matrix)
    work = Workload(find_shape(model), cards, stack=stack_of(group.facts), model=model)
    profile = write_profile(find_profile(work, matrix), USUAL[work.task], matrix)
    choice = profile.found.choice
    where = f"{len(cards)} × {work.card.name} of {fold(group.nodes)}, the smallest"
    told = (
        f"{model} fits on {where}: {_words(choice.to_json())}"
        if choice
        else f"{model} does not fit on {where}"
    )
    return {
        "holds": choice is not None,
        "nodes": fold(group.nodes),
        "profile": profile.to_json(),
        "told": told,
    }


def smallest(groups: Sequence[Group]) -> Group:
    """Return the nodes whose smallest card has the least memory; raises InputError when none is known."""
    known = [(min(sizes), -len(group.nodes), group) for group in groups if (sizes := _sizes(group))]
    if not known:
        raise InputError("--profile: no node told its GPUs' memory")
    return min(known, key=lambda one: one[:2])[2]


def _sizes(group: Group) -> list[int]:
    return [g.memory_total_bytes for g in group.facts.gpus.get() or () if g.memory_total_bytes]


def _words(choice: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {value}" for key, value in choice.items() if value not in (None, False, "none", "")
    )
