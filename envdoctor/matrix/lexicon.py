"""What a text is searched for: symptoms, keys of settings, names of cards."""

from __future__ import annotations

from dataclasses import field

from envdoctor.matrix import tables
from envdoctor.matrix.card_names import CardNames
from envdoctor.values import dataclass


@dataclass(frozen=True)
class Lexicon:
    """The names that a reader of texts knows; without any it reads what stands in tables and listings."""

    symptoms: tuple[tables.SymptomRow, ...] = ()
    keys: tuple[tables.KeyRow, ...] = ()
    cards: CardNames = field(default_factory=CardNames)
