"""What small functions of a room answer by themselves: asked of drawn values, each argument by its type.

What a whole answer is made of may be wrong in a part that the rest makes up for. `differing` tells the
functions that answer otherwise than on record.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

Pools = Mapping[str, Sequence[object]]
"""Values by the annotation of the parameter that takes them."""
ASKED, MOST = 160, 60
"""How often a function is asked, and how much of what it yields is looked at."""
EDGES = ("read", "write", "run", "open", "fetch", "load", "print", "warn", "send", "main")
"""How the names begin of what does more than answer."""


class Made:
    """Stands for a value that is made anew for each question, as the asked one changes it."""

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make


def plain(value: Any, depth: int = 4) -> object:
    """Return a value as what prints the same in every process."""
    if value is None or isinstance(value, str | int | float | bytes):
        return value
    if depth == 0:
        return type(value).__name__
    if isinstance(value, Mapping):
        return [(plain(key, 1), plain(one, depth - 1)) for key, one in islice(value.items(), MOST)]
    if isinstance(value, set | frozenset):
        return sorted(repr(plain(one, depth - 1)) for one in value)
    if isinstance(value, Sequence | Iterator):
        return [plain(one, depth - 1) for one in islice(value, MOST)]
    names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
    named = {name: getattr(value, name, None) for name in names if not name.startswith("_")}
    return (type(value).__name__, plain(named, depth - 1) if named else "")


def functions(package: str, pools: Pools) -> Iterator[tuple[str, str, Callable[..., object], list[str]]]:
    """Yield module, name, function and its parameters' annotations, of those that the pools can ask."""
    room = importlib.import_module(package)
    for found in pkgutil.iter_modules(room.__path__, f"{package}."):
        module = importlib.import_module(found.name)
        for name, function in vars(module).items():
            if not inspect.isfunction(function) or function.__module__ != found.name:
                continue
            parameters = inspect.signature(function).parameters.values()
            asks = [str(one.annotation) for one in parameters]
            edge = name.lstrip("_").startswith(EDGES) or name.startswith("__")
            if asks and not edge and all(one in pools for one in asks):
                yield found.name.removeprefix(f"{package}."), name, function, asks


def asked(function: Callable[..., object], asks: Sequence[str], pools: Pools) -> Iterator[str]:
    """Yield what a function answers to values drawn from the pools, or what it raises."""
    for turn in range(min(ASKED, max(len(pools[one]) for one in asks))):
        places = [turn + place * asks[:place].count(one) for place, one in enumerate(asks)]
        drawn = [pools[one][place % len(pools[one])] for place, one in zip(places, asks, strict=True)]
        values = [one.make() if isinstance(one, Made) else one for one in drawn]
        try:
            said = repr(plain(function(*values)))
        except Exception as error:
            said = type(error).__name__
        changed = [plain(one, 2) for one, made in zip(values, drawn, strict=True) if isinstance(made, Made)]
        yield f"{said} {changed}" if changed else said


def answers(package: str, pools: Pools) -> dict[str, str]:
    """Return by module: each of its functions that can be asked, with a digest of its answers."""
    told: dict[str, list[str]] = {}
    for module, name, function, asks in functions(package, pools):
        digest = crc32("\n".join(asked(function, asks, pools)).encode("utf-8", "backslashreplace"))
        told.setdefault(module, []).append(f"{name} {digest:08x}")
    return {module: "\t".join(sorted(lines)) for module, lines in sorted(told.items())}


def differing(record: Path, package: str, pools: Pools) -> list[str]:
    """Return the functions that answer otherwise than on record, are new or gone.

    With ENVDOCTOR_RECORD they are put on record instead.
    """
    told = answers(package, pools)
    if os.environ.get("ENVDOCTOR_RECORD"):
        record.write_text("".join(f"{module}\t{line}\n" for module, line in told.items()), encoding="utf-8")
    lines = [line.split("\t") for line in record.read_text(encoding="utf-8").splitlines()]
    known = {f"{module}.{one}" for module, *rest in lines for one in rest}
    now = {f"{module}.{one}" for module, line in told.items() for one in line.split("\t")}
    return sorted({one.split(" ")[0] for one in known ^ now})
