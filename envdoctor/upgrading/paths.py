"""What is on record of the path of a module: whether something stands there, and whose it is."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from importlib import import_module

from envdoctor.matrix.interface_records import Record, Spans
from envdoctor.upgrading.gone import Move, come_since
from envdoctor.upgrading.uses import ALL


def stands(record: Record, path: str, move: Move) -> bool:
    """True when a module of that path has something of its own in the new release."""
    modules = _modules(record)
    first, last = (bisect_left(modules, f"{path}{end}") for end in "./")
    below = (record.modules[module] for module in modules[first:last])
    own = record.names.get(path, {}).values()
    return any(record.has(spans, move.new) for spans in (*below, *own))


@cache
def _modules(record: Record) -> Sequence[str]:
    return sorted(record.modules)


def is_module_alone(record: Record, path: str) -> bool:
    """True for a path of which nothing but a module is on record."""
    module, _, name = path.rpartition(".")
    return path in record.modules and name not in record.names.get(module, {})


def is_open(record: Record, path: str, move: Move) -> bool:
    """True where the new release's module makes up names when they are asked: its file does not list all.

    Where it did so while the name was on record, the names that it makes up are read from what it lists.
    """
    if path in record.modules and not record.has(record.modules[path], move.new):
        return False
    module, _, name = path.rpartition(".")
    if module in record.modules and not record.has(record.modules[module], move.new):
        return False
    names = record.names.get(module, {})
    if record.has(names.get(ALL, ()), move.new):
        return True  # a loop puts names there
    made_up = names.get("__getattr__", ())
    last = max((last for _, last in names.get(name, ())), default=-1)
    listed = any(first <= last <= end for first, end in made_up)
    if _is_standard(module.rpartition(".")[2], name):
        return True
    unstubbed = record.library == "numpy" and not (record.bases and name in names)
    return (record.has(made_up, move.new) and not listed) or unstubbed


@cache
def _is_standard(module: str, name: str) -> bool:
    """True for what a module of the standard library has: `torch.multiprocessing` brings all of its own."""
    return module in sys.stdlib_module_names and hasattr(import_module(module), name)


def passed_on_until(record: Record, spans: Spans, move: Move, path: str) -> str:
    """Return the release without a name that its module only passes on since the move; empty for others."""
    module, _, name = path.rpartition(".")
    after = spans[-1][1] + 1 if spans else len(record.versions)
    passed = come_since(record, record.served.get(module, {}).get(name, ()), move)
    return record.versions[after] if passed and after < len(record.versions) else ""
