"""What is on record of a callable's arguments, and calls that its release takes no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from packaging.version import Version

from envdoctor.findings import Certainty
from envdoctor.matrix.interface_ranges import places_of, spans_of
from envdoctor.matrix.interface_records import Record, Spans, ancestors
from envdoctor.matrix.late_tables import holding
from envdoctor.rules.interface_lookup import DISTINCT
from envdoctor.upgrading.breaks import Break
from envdoctor.upgrading.gone import Move, come_since, gone_since, lives
from envdoctor.upgrading.uses import ALL, Use

_HOMES = 3
"""Modules without inner ones in which a function stands, at most, that is defined once and exported."""


def owner_of(path: str) -> str:
    """Return the record's key of a callable: a class's `__init__`, a method with its class, a function."""
    owner, _, last = path.rpartition(".")
    if last[:1].isupper():
        return f"{last}.__init__"
    holder = owner.rpartition(".")[2]
    return f"{holder}.{last}" if holder[:1].isupper() else last


def callable_of(record: Record, path: str) -> tuple[str, Mapping[str, Spans]]:
    """Return the record's key of a callable and its arguments; a method of no other class is inherited."""
    owner = owner_of(path)
    told = record.keywords.get(owner)
    holder, _, method = owner.rpartition(".")
    if method == "__init__" and f"{holder}.__new__" in record.keywords:
        return owner, {}  # it is made by `__new__`, of which a record keeps only what came or went
    if told is None and holder:
        above = (f"{base}.{method}" for base in ancestors(record.bases, holder))
        if (inherited := next((one for one in above if one in record.keywords), None)) is not None:
            return inherited, record.keywords[inherited]
    if told is None and holder and method != "__init__":
        same = methods_named(record).get(method, ())
        if len(same) == 1 and method in record.members.get(holder, {}):
            return same[0], record.keywords[same[0]]
    return owner, told or {}


@cache
def base_of(record: Record, name: str) -> str:
    """Return the library's class of settings by whose name another's class is called; empty for none."""
    return max((one for one in settings_of(record) if name.endswith(one)), key=len, default="")


def stood_on(record: Record) -> Mapping[str, Sequence[str]]:
    """Return by module the classes of a run's arguments that a library imports from another: its bases."""
    told = {
        module: [one for one in names if one.endswith("Arguments")]
        for module, names in record.imports.items()
    }
    return {module: names for module, names in told.items() if names}


def imported_base(own: Record | None, record: Record, name: str) -> str:
    """Return the class that another library imports, and that its class of this name is called after."""
    known = own.imports.get(record.root, {}) if own else {}
    found = (one for one in known if name.endswith(one) and one in record.members)
    return max(found, key=len, default="")


@cache
def named_so(record: Record, name: str) -> str:
    """Return the class of settings by whose name a name is written: `llama_config`; empty for none."""
    told = name.replace("_", "").lower()
    found = (owner for owner in record.members if owner.endswith("Config") and owner.lower() == told)
    return next(found, "")


@cache
def settings_of(record: Record) -> Sequence[str]:
    """Return the classes of a run's arguments on record, whose names tell whose they are."""
    owners = (owner.removesuffix(".__init__") for owner in record.keywords if owner.endswith(".__init__"))
    return sorted(one for one in owners if len(one) >= DISTINCT and one.endswith("Arguments"))


@cache
def methods_named(record: Record) -> Mapping[str, Sequence[str]]:
    """Return the record's keys of methods by the method's name."""
    found: dict[str, list[str]] = {}
    for owner in record.keywords:
        found.setdefault(owner.rpartition(".")[2], []).append(owner)
    return found


def takes_any(record: Record | None, method: str, version: Version) -> bool:
    """True where a method of that name takes any argument: one that it heeds no more fails nothing."""
    owners = methods_named(record).get(method, ()) if record else ()
    return record is not None and any(
        record.has(record.keywords[one].get(ALL, ()), version) for one in owners
    )


def refuses(record: Record, path: str, version: Version) -> bool:
    """True where no callable of that path, in that release, takes arguments that it does not name."""
    owner, told = callable_of(record, path)
    holder, _, method = owner.rpartition(".")
    if holder and method != "__init__" and takes_any(record, method, version):
        return False
    return not record.has(told.get(ALL, ()), version)


def not_taken(use: Use, record: Record, move: Move) -> Break | None:
    """Judge an overriding method by what the library gives when it calls the method on itself.

    That counts where the method that is overridden takes it, and did not before.
    """
    passed = record.passed.get(use.name, {})
    own = callable_of(record, f"{use.path}.{use.name}")[1]
    if too_many := _no_longer_given(use, record, own, move):
        return too_many
    base = own or _taken_by_all(record, use.name)
    for name, spans in sorted(passed.items()):
        taken = base.get(name, ()) if name.isidentifier() else _counts_from(base, name)
        known = name in use.given if name.isidentifier() else int(name[1:]) <= use.count
        if known or not (since := come_since(record, spans, move)) or not come_since(record, taken, move):
            continue
        if own or len(use.name) >= DISTINCT:
            lacking = name if name.isidentifier() else f"{name[1:]} positional arguments"
            shown = f"{use.path}.{use.name}() without {lacking}"
            return Break(use, shown, since, f"take {lacking}", Certainty.LIKELY)
    return None


def _no_longer_given(use: Use, record: Record, own: Mapping[str, Spans], move: Move) -> Break | None:
    """Judge an overriding method that needs what the library's own method needed, and takes no more."""
    lengths = [int(n[1:]) for n, spans in own.items() if n[:1] == "~" and record.has(spans, move.new)]
    if not lengths or use.count <= max(lengths) or record.has(own.get(ALL, ()), move.new):
        return None
    for name, spans in sorted(own.items()):
        argument = name[1:]
        needed = name[:1] == "!" and argument in use.given and f"{argument}=" not in use.given
        since = gone_since(record, spans, move) if needed else None
        if since and not record.has(own.get(argument, ()), move.new):
            shown = f"{use.path}.{use.name}() with {argument}"
            return Break(use, shown, since, f"take no {argument}", Certainty.LIKELY)
    return None


def _taken_by_all(record: Record, method: str) -> Mapping[str, Spans]:
    """Return the arguments of the methods of a name, where they are told of one class alone."""
    owners = [record.keywords[one] for one in methods_named(record).get(method, ()) if "." in one]
    return owners[0] if len(owners) == 1 else {}


def _counts_from(told: Mapping[str, Spans], count: str) -> Spans:
    """Return the releases in which a method takes at least as many arguments by position."""
    return spans_of(
        places_of(
            span
            for n, spans in told.items()
            if n[:1] == "~" and int(n[1:]) >= int(count[1:])
            for span in spans
        )
    )


def position(use: Use, record: Record | None, move: Move) -> Break | None:
    """Judge a call by how many arguments it gives without naming them, and by those it does not give."""
    owner, told = callable_of(record, use.path) if record else ("", {})
    if record is None or not lives(record, told, move.new) or _is_common(record, owner, move):
        return None
    lengths = {entry: spans for entry, spans in told.items() if entry[:1] == "~"}
    few = [spans for entry, spans in lengths.items() if int(entry[1:]) < use.count]
    enough = [spans for entry, spans in lengths.items() if int(entry[1:]) >= use.count]
    now = any(record.has(spans, move.new) for spans in few)
    if not now or any(record.has(spans, move.new) for spans in enough):
        return _lacking(use, record, told, move)
    if not any(move.old is None or record.has(spans, move.old) for spans in enough):
        return None  # what took as many before is not told: what all releases take is left out
    others = record.others([span for spans in few for span in spans])
    since = gone_since(record, others, move)
    shown = f"{use.path}() with {use.count} positional arguments"
    return None if since is None else Break(use, shown, since, "name the arguments", Certainty.LIKELY)


def has_come_elsewhere(record: Record, function: str, ended: Spans) -> bool:
    """True for a function that some module has only since what ended did: it may be another of that name."""
    end = max((last for _, last in ended), default=-1)
    told = holding(record.names, function).values()
    return any(first >= end for spans in told for first, _ in spans)


@cache
def _is_common(record: Record, owner: str, move: Move) -> bool:
    """True for a function that several modules define: how each takes its arguments is told together.

    A module that came later, or was gone before, is none of those.
    """
    releases = [release for release in (move.old, move.new) if release is not None]
    homes = {
        module
        for module, spans in holding(record.names, owner).items()
        if any(record.has(spans, release) for release in releases)
    }
    return len({home for home in homes if not any(one.startswith(f"{home}.") for one in homes)}) > _HOMES


def _now_needed(use: Use, record: Record, told: Mapping[str, Spans], move: Move) -> Break | None:
    """Judge a call that gives all that has a position, and not by name what could be left out before."""
    for name, spans in sorted(told.items()):
        argument = name[1:]
        optional = move.old is not None and record.has(told.get(argument, ()), move.old)
        asked = name[:1] == "!" and optional and argument not in use.given
        if asked and not record.has(spans, move.old or move.new) and record.has(spans, move.new):
            since = gone_since(record, record.others(spans), move)
            shown = f"{use.path}() without {argument}"
            return Break(use, shown, since, f"give {argument}", Certainty.LIKELY) if since else None
    return None


def _lacking(use: Use, record: Record, told: Mapping[str, Spans], move: Move) -> Break | None:
    """Judge a call that does not name an argument that is new and needed: it comes before the optional ones.

    Where as many went, one may have taken the place of another.
    """
    most = [
        int(entry[1:]) for entry, spans in told.items() if entry[:1] == "~" and record.has(spans, move.new)
    ]
    if ALL in use.given or move.old is None or record.has(told.get(ALL, ()), move.old):
        return None
    if most == [use.count]:
        return _now_needed(use, record, told, move)
    if (
        len(most) != 1  # none is told, or several of one name are told together
        or use.count >= max(most)
        or not any(entry[:1] == "~" and record.has(spans, move.old) for entry, spans in told.items())
    ):
        return None
    new = {
        name[1:]: spans
        for name, spans in told.items()
        if name[:1] == "!"
        and record.has(spans, move.new)
        and not record.has(told.get(name[1:], ()), move.old)
    }
    plain = ((name, spans) for name, spans in told.items() if name.isidentifier())
    went = sum(record.has(spans, move.old) and not record.has(spans, move.new) for _, spans in plain)
    lacking = {name: spans for name, spans in new.items() if name not in use.given}
    if len(lacking) <= went or not lacking:
        return None
    name, spans = min(lacking.items())
    since = gone_since(record, record.others(spans), move)
    shown = f"{use.path}() without {name}"
    return Break(use, shown, since, f"give {name}", Certainty.LIKELY) if since else None
