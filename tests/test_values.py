"""Values have what the standard library's frozen dataclasses have."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field

import pytest

from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Card:
    """A value of ours."""

    name: str
    memory: int = 80
    notes: list[str] = field(default_factory=list, compare=False)


@dataclasses.dataclass(frozen=True)
class Standard:
    """The same by the standard library."""

    name: str
    memory: int = 80
    notes: list[str] = field(default_factory=list, compare=False)


def test_it_is_written_compared_and_found_as_a_standard_one() -> None:
    assert repr(Card("H100")) == repr(Standard("H100")).replace("Standard", "Card")
    assert Card("H100", 80) == Card(name="H100") != Card("H100", memory=94)
    assert Card("H100") != Standard("H100")
    assert {Card("H100"), Card("H100", notes=["other"])} == {Card("H100")}
    assert dataclasses.asdict(Card("H100")) == dataclasses.asdict(Standard("H100"))
    match Card("H100", 94):
        case Card(name, memory):
            assert (name, memory) == ("H100", 94)


def test_it_is_changed_in_a_copy_only() -> None:
    card = Card("H100")
    assert dataclasses.replace(card, memory=94) == Card("H100", 94)
    assert copy.deepcopy(card) == pickle.loads(pickle.dumps(card)) == card
    with pytest.raises(dataclasses.FrozenInstanceError):
        card.name = "A100"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del card.name


def test_each_has_a_default_of_its_own() -> None:
    assert Card("H100").notes is not Card("H100").notes


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), (("H100",), {"name": "A100"}), (("H100",), {"cores": 1}), (("H100", 80, [], 1), {})],
    ids=["missing", "twice", "unknown", "too many"],
)
def test_it_takes_its_fields_and_no_others(values: tuple[object, ...], named: dict[str, object]) -> None:
    for kind in (Card, Standard):
        with pytest.raises(TypeError):
            kind(*values, **named)  # type: ignore[arg-type]
