"""The names of `typing` that are written here; to load `typing` takes longer than to read most facts."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import (
        Any,
        BinaryIO,
        Callable,
        Collection,
        Dict,
        Iterable,
        Iterator,
        List,
        Mapping,
        NamedTuple,
        Optional,
        Sequence,
        Set,
        Tuple,
        Union,
    )
else:
    from operator import itemgetter

    class _Form:
        """What stands for a type as it runs: any parameters of it are itself."""

        def __getitem__(self, _):
            return self

    Any = BinaryIO = Callable = Collection = Dict = Iterable = Iterator = List = _Form()
    Mapping = Optional = Sequence = Set = Tuple = Union = Any

    class NamedTuple(tuple):
        """A tuple whose members have the names that the class annotates, with its defaults."""

        __slots__ = ()

        def __init_subclass__(cls):
            cls._fields = tuple(cls.__annotations__)
            cls._defaults = {name: vars(cls)[name] for name in cls._fields if name in vars(cls)}
            for place, name in enumerate(cls._fields):
                setattr(cls, name, property(itemgetter(place)))

        def __new__(cls, *values, **named):  # noqa: D102
            if len(values) == len(cls._fields) and not named:
                return tuple.__new__(cls, values)
            told = {**cls._defaults, **dict(zip(cls._fields, values)), **named}  # noqa: B905
            if len(values) > len(cls._fields) or set(told) != set(cls._fields):
                raise TypeError("%s takes %s" % (cls.__name__, ", ".join(cls._fields)))
            return tuple.__new__(cls, [told[name] for name in cls._fields])

        def _replace(self, **named):
            return type(self)(**{**dict(zip(self._fields, self)), **named})  # noqa: B905


__all__ = [
    "TYPE_CHECKING", "Any", "BinaryIO", "Callable", "Collection", "Dict", "Iterable", "Iterator", "List",
    "Mapping", "NamedTuple", "Optional", "Sequence", "Set", "Tuple", "Union",
]  # fmt: skip
