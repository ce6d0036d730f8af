"""What every row has: an id, and where its fact comes from."""

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from envdoctor.facts import ComputeCapability
from envdoctor.matrix import forms
from envdoctor.values import NONE, defaults_of, note_fields

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):  # noqa: D103
        return lambda decorator: decorator


Capability = Annotated[ComputeCapability, forms.CAPABILITY]
Bound = Annotated[str, forms.BOUND]
Match = Annotated[str, forms.MATCH]
Text = Annotated[str, forms.TEXT]
Template = Annotated[str, forms.TEMPLATE]
Package = Annotated[str, forms.PACKAGE]
SymptomGlob = Annotated[str, forms.SYMPTOM]
SettingName = Annotated[str, forms.SETTING]
Conditions = Annotated[Mapping[str, str], forms.CONDITIONS]
Severity = Literal["error", "warning", "note"]
Basis = Literal["wheel inspection", "upstream statement", "measured run", "upstream source", "issue thread"]


C = TypeVar("C", bound=type)


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False, field_specifiers=(field,))
def fact(kind: C) -> C:
    """Make a class a frozen dataclass whose methods are inherited from `Fact`.

    `dataclass(frozen=True)` writes and compiles them for each class anew: 30 ms for all kinds of rows.
    """
    told, made = note_fields(kind), defaults_of(kind)
    for name, default in made.items():
        if default is not NONE:
            setattr(kind, name, default)
    kind._required = frozenset(name for name in told if made[name] is NONE)  # type: ignore[attr-defined]
    return kind


class Fact:
    """A value whose fields are given by name and never change; compared by identity."""

    _required: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)
        if missing := self._required - values.keys():
            raise TypeError(f"{type(self).__name__}: {', '.join(sorted(missing))} missing")

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")


@fact
class Row(Fact):
    """One fact with its provenance; each stands once in a matrix."""

    KIND: ClassVar[str]

    id: Annotated[str, forms.ID]
    """Stable: findings, `--select` and issues name it."""
    source: Annotated[str, forms.SOURCE]
    """What was opened to know it."""
    checked_on: Annotated[str, forms.DAY]
    """The day it was last held against its source."""
    basis: Basis
    """What kind of knowledge it is."""

    def problem(self) -> str | None:
        """Return what is wrong between the fields, which each for itself are right."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id})"
