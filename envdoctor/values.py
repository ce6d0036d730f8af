"""Frozen dataclasses whose methods are shared instead of compiled for each class; named tuples; notebooks.

`dataclasses.dataclass(frozen=True)` writes and compiles six methods for every class, a millisecond each time:
a command that lives for a tenth of a second makes a hundred classes. Type checkers see the standard one.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

NONE = dataclasses.MISSING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
    from functools import cached_property as cached_property
    from typing import NamedTuple as NamedTuple
else:

    def replace(value: Any, /, **changes: object) -> Any:
        """Return a value with other fields; raises TypeError for one that it has not."""
        names = value._names
        if not changes.keys() <= names:
            raise TypeError(_complaint(value, {**vars(value), **changes}))
        made = object.__new__(type(value))
        held = vars(value)
        known = held if held.keys() <= names else {name: held[name] for name in held if name in names}
        made.__dict__.update(known)
        made.__dict__.update(changes)
        if made._checked:
            made.__post_init__()
        return made

    class cached_property:
        """What is worked out when first asked for: functools' takes a lock each time, before Python 3.12."""

        def __init__(self, func: Callable[[Any], Any]) -> None:
            self.func, self.__doc__ = func, func.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, value: Any, owner: type) -> Any:
            if value is None:
                return self
            found = value.__dict__[self.name] = self.func(value)
            return found

    class _Named(type):
        def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> type:
            fields = space.pop("__annotations__", {})
            defaults = [space.pop(field) for field in fields if field in space]
            made = namedtuple(name, fields, defaults=defaults, module=space["__module__"])
            made.__annotations__ = fields
            for key, value in space.items():
                setattr(made, key, value)
            return made

    NamedTuple = type.__new__(_Named, "NamedTuple", (), {})
    """typing's reads the types of fields, for which Python sets up its compiler: three milliseconds."""

    def dataclass(*, frozen: bool, slots: bool = True, eq: bool = True) -> Callable[[type], type]:
        """Make a class a frozen dataclass; `slots` changes nothing, as no attribute can be set anyway."""
        if not frozen:
            raise ValueError("values are frozen; for others there is dataclasses.dataclass")
        return lambda kind: _made(kind, eq)


def _made(kind: type, eq: bool) -> type:
    kind.__doc__ = kind.__doc__ or kind.__name__
    told = note_fields(kind)
    compared = [name for name, one in told.items() if one.compare]
    given = {name: one.default is not NONE or one.default_factory is not NONE for name, one in told.items()}
    methods = {
        "__match_args__": tuple(told),
        "_checked": hasattr(kind, "__post_init__"),
        "_names": frozenset(told),
        "_required": frozenset(name for name, default in given.items() if not default),
        "_compared": attrgetter(*compared) if compared else id,
        **METHODS,
        **(COMPARING if eq else {}),
    }
    for name, method in methods.items():
        if name not in vars(kind) or (name == "__hash__" and vars(kind)[name] is None):
            setattr(kind, name, method)
    return kind


def note_fields(kind: Any) -> dict[str, Any]:
    """Keep in a class what is said of its fields, for `dataclasses` and what follows; return it."""
    told: dict[str, Any] = _told(kind)
    kind._told, kind.__dataclass_fields__ = told, _Fields(kind)
    kind._factories = [(n, f.default_factory) for n, f in told.items() if f.default_factory is not NONE]
    return told


def _told(kind: type) -> dict[str, Any]:
    """Return what is said of the fields of a class, those of its bases first, and leave it their defaults."""
    told: dict[str, Any] = {}
    for base in reversed(kind.__mro__[1:]):
        told.update(vars(base).get("_told", {}))
    for name, form in vars(kind).get("__annotations__", {}).items():
        if "ClassVar" in str(form):
            continue
        one = vars(kind).get(name, NONE)
        if isinstance(one, dataclasses.Field):
            told[name] = one
            delattr(kind, name)
            if one.default is not NONE:
                setattr(kind, name, one.default)
        else:
            told[name] = _Told(one)
    return told


class _Told:
    """A field of which no more is said than its default, if that."""

    __slots__ = ("default",)
    compare, default_factory = True, NONE

    def __init__(self, default: object) -> None:
        self.default = default


def is_value(kind: object) -> bool:
    """True for a class of ours."""
    return isinstance(kind, type) and hasattr(kind, "_told")


def forms_of(kind: Any) -> dict[str, Any]:
    """Return the types of a class's fields by name, as they are written: some modules have texts."""
    forms: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        forms.update(vars(base).get("__annotations__", {}))
    return {name: forms[name] for name in kind._told}


def defaults_of(kind: Any) -> dict[str, object]:
    """Return what the fields hold where nothing is said, by name; NONE for those that must be given."""
    factories = dict(kind._factories)
    return {n: factories[n]() if n in factories else one.default for n, one in kind._told.items()}


class _Fields:
    """The fields as `dataclasses` knows them, made when first asked for: most classes are never asked."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __get__(self, value: object, owner: type) -> dict[str, Any]:
        kind = self.kind
        told: dict[str, Any] = vars(kind)["_told"]
        given = {n: one.default if isinstance(one, _Told) else one for n, one in told.items()}
        known = {name: one for name, one in given.items() if one is not NONE}
        named = {"__module__": kind.__module__, "__doc__": kind.__doc__}  # without a doc one is worked out
        plain = type(kind.__name__, (), {**known, **named, "__annotations__": forms_of(kind)})
        made: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(plain)
        fields: dict[str, Any] = made.__dataclass_fields__
        type.__setattr__(kind, "__dataclass_fields__", fields)
        return fields


def _init(self: Any, /, *values: object, **named: object) -> None:
    if values:
        if not named and len(values) == len(self.__match_args__):
            self.__dict__.update(zip(self.__match_args__, values, strict=True))
            if self._checked:
                self.__post_init__()
            return
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
