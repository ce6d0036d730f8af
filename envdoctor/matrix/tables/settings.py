"""Rows about settings: what their common names mean, and which keys are gone."""

from typing import Annotated, ClassVar

from envdoctor.matrix import forms
from envdoctor.matrix.tables.lexicon import Framework
from envdoctor.matrix.tables.row import Row, Text, fact


@fact
class SettingRow(Row):
    """The common name of a setting, to which the keys of frameworks lead and by which rows speak of it."""

    KIND: ClassVar = "setting"

    name: Annotated[str, forms.NAME]
    """The common name; after `other.` a framework's own key that none of its settings classes has."""
    meaning: Text
    """What it sets."""


@fact
class RenamedRow(Row):
    """A key that a framework renamed or removed."""

    KIND: ClassVar = "renamed"

    framework: Framework
    """Whose key it was."""
    native: Text
    """The former key."""
    to: str
    """What to write now; empty where it is to be removed."""
    note: str = ""
    """What else to know."""
    deprecated: Annotated[str, forms.VERSION] | None = None
    """The release that took up the new name and still warns of the former one."""
