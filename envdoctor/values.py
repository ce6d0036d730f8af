"""Frozen dataclasses whose methods are shared instead of compiled for each class; what a notebook shows.

`dataclasses.dataclass(frozen=True)` writes and compiles six methods for every class, a millisecond each time:
a command that lives for a tenth of a second makes a hundred classes. Type checkers see the standard one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

NONE = dataclasses.MISSING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool, slots: bool = True, eq: bool = True) -> Callable[[type], type]:
        """Make a class a frozen dataclass; `slots` changes nothing, as no attribute can be set anyway."""
        if not frozen:
            raise ValueError("values are frozen; for others there is dataclasses.dataclass")
        return lambda kind: _made(kind, eq)


def _made(kind: type, eq: bool) -> type:
    kind.__doc__ = kind.__doc__ or kind.__name__  # or `dataclasses` writes one, from a signature it looks up
    return _with_methods(dataclasses.dataclass(init=False, repr=False, eq=False)(kind), eq)


def _with_methods(kind: type, eq: bool) -> type:
    """Give a dataclass the shared methods that it does not define itself, and what they ask it for."""
    fields = dataclasses.fields(kind)
    compared = [field.name for field in fields if field.compare]
    methods = {
        "_factories": [
            (f.name, f.default_factory) for f in fields if f.default_factory is not dataclasses.MISSING
        ],
        "_checked": hasattr(kind, "__post_init__"),
        "_names": frozenset(f.name for f in fields),
        "_required": frozenset(
            f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING
        ),
        "_compared": attrgetter(*compared) if compared else id,
        **METHODS,
        **(COMPARING if eq else {}),
    }
    for name, method in methods.items():
        if name not in vars(kind) or (name == "__hash__" and vars(kind)[name] is None):
            setattr(kind, name, method)
    return kind


def _init(self: Any, /, *values: object, **named: object) -> None:
    if values:
        placed = dict(zip(self.__match_args__, values, strict=False))
        if len(placed) < len(values) or not placed.keys().isdisjoint(named):
            raise TypeError(f"{type(self).__name__}: too many values")
        named = {**placed, **named} if named else placed
    for name, make in self._factories:
        if name not in named:
            named[name] = make()
    given = named.keys()
    if not self._required <= given <= self._names:
        raise TypeError(_complaint(self, named))
    self.__dict__.update(named)
    if self._checked:
        self.__post_init__()


def _complaint(self: Any, named: dict[str, object]) -> str:
    missing, odd = sorted(self._required - named.keys()), sorted(named.keys() - self._names)
    told = [f"{', '.join(missing)} missing"] if missing else []
    return f"{type(self).__name__}: {'; '.join([*told, *(f'no field {name}' for name in odd)])}"


def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return self is other or self._compared(self) == self._compared(other)


def _hash(self: Any) -> int:
    return hash(self._compared(self))


def _refuse(self: Any, name: str, *value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")


METHODS = {"__init__": _init, "__repr__": _repr, "__setattr__": _refuse, "__delattr__": _refuse}
COMPARING = {"__eq__": _eq, "__hash__": _hash}


class Shown:
    """A value of the library that a notebook shows as its report."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from importlib import import_module

        html: str = import_module("envdoctor.notebook").html_of(self)
        return html
