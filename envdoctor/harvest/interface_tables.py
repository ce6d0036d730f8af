"""The interfaces of a library's releases as ranges of releases, which is how they are recorded.

What all scanned releases share is left out; the rest answers "cannot import name X from Y" with the versions
that have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from envdoctor.harvest.interfaces import OWN, UNLISTED, Interface
from envdoctor.harvest.module_syntax import OPEN
from envdoctor.matrix.interface_ranges import joined, places_of, spans_of
from envdoctor.matrix.interface_records import ancestors

Entries = dict[str, list[list[int]]]
"""The ranges of releases of what an owner has, by name."""


def encode(releases: Mapping[str, Interface], root: str = "") -> dict[str, Any]:
    """Return the interfaces of a library's releases (oldest first) as ranges; constant entries left out.

    A keyword or member is left out when it is as old as its owner and gone only with it. What the package
    `root` itself exports is kept whole: whatever moves ends there.
    """
    versions = list(releases)
    whole = [[0, len(versions) - 1]]
    modules = _ranges([releases[v].modules for v in versions])
    owned = frozenset().union(*(releases[v].names for v in versions))
    names = _with_unlisted(_ranges([releases[v].names | releases[v].foreign & owned for v in versions]))
    keywords = _grouped(_ranges([releases[v].keywords for v in versions]))
    imports = _ranges([releases[v].imports for v in versions])
    passed = _ranges([releases[v].passed for v in versions])
    variables = _ranges([releases[v].variables for v in versions])
    served = _ranges([releases[v].served for v in versions])
    bases = _grouped(_ranges([releases[v].bases for v in versions]))
    members = with_inherited(_grouped(_ranges([releases[v].members for v in versions])), bases)
    shown = {n: spans for n, spans in names.items() if spans != whole or n.rpartition(":")[0] == root}
    taken = {owner: kept for owner, spans in keywords.items() if (kept := _changing(spans, whole))}
    told = {owner: kept for owner, spans in members.items() if (kept := _changing(spans, whole))}
    methods = {owner: owner.rpartition(".")[2] for owner in keywords}
    return {
        "versions": versions,
        "modules": {module: spans for module, spans in modules.items() if spans != whole},
        "names": _grouped(shown),
        "served": _grouped({name: spans for name, spans in served.items() if spans != names[name]}),
        "imports": _grouped(imports),
        "keywords": taken | _own_anyway(keywords, taken, bases),
        "members": told,
        "stays": _staying(members, told, dict.fromkeys(members, "")) | _staying(keywords, taken, methods),
        "passed": _grouped({given: spans for given, spans in passed.items() if spans != whole}),
        "bases": bases,
        "variables": {name: spans for name, spans in variables.items() if spans != whole},
    }


def with_inherited(members: Mapping[str, Entries], bases: Mapping[str, Entries]) -> dict[str, Entries]:
    """Return the members of classes, with the releases in which one that only defines its own inherits them.

    Told are the members that a class or one that it derives from defines itself; what comes from a class of
    which all is told counts where the class had it itself before or after.
    """
    known: dict[tuple[str, str], set[int]] = {}

    def places(owner: str, name: str, asked: frozenset[str]) -> set[int]:
        if (owner, name) not in known:
            found = set(places_of(members.get(owner, {}).get(name, ())))
            if OWN in members.get(owner, {}) and name != OPEN:
                for base, spans in bases.get(owner, {}).items():
                    if base not in asked:
                        found |= set(places_of(spans)) & places(base, name, asked | {owner})
            if asked:
                return found  # of a circle a part alone
            known[owner, name] = found
        return known[owner, name]

    def entries(owner: str) -> set[str]:
        above = (base for base in ancestors(bases, owner) if OWN in members.get(base, {}))
        return {name for one in (owner, *above) for name in members[one]} - {OWN}

    return {
        owner: {name: spans_of(sorted(places(owner, name, frozenset()))) for name in sorted(entries(owner))}
        if OWN in told
        else dict(told)
        for owner, told in members.items()
    }


def inheriting(release: Interface) -> Interface:
    """Return one release's interface in which all classes have what they inherit."""
    bases, members = _told(release.bases), _told(release.members)
    more = (
        f"{owner}:{name}"
        for owner, told in members.items()
        for base in (ancestors(bases, owner) if OWN in told else ())
        for name in members.get(base, set()) - {OPEN}
    )
    return replace(release, members=release.members.union(more))


def _told(entries: Iterable[str]) -> dict[str, set[str]]:
    told: dict[str, set[str]] = {}
    for owner, _, name in (entry.rpartition(":") for entry in entries):
        told.setdefault(owner, set()).add(name)
    return told


def _staying(
    every: Mapping[str, Mapping[str, list[list[int]]]],
    told: Mapping[str, Mapping[str, list[list[int]]]],
    groups: Mapping[str, str],
) -> dict[str, dict[str, list[list[int]]]]:
    """Return, by group, when any owner has what ends at one, where only owners left untold have it longer."""
    ever: dict[str, dict[str, set[int]]] = {}
    shown: dict[str, dict[str, set[int]]] = {}
    for owner, entries in told.items():
        for name, spans in entries.items():
            shown.setdefault(groups[owner], {}).setdefault(name, set()).update(places_of(spans))
    for owner, entries in every.items():
        asked = shown.get(groups[owner], {})
        for name, spans in entries.items():
            if name in asked:
                ever.setdefault(groups[owner], {}).setdefault(name, set()).update(places_of(spans))
    longer = {
        group: {name: spans_of(places) for name, places in names.items() if places != shown[group][name]}
        for group, names in ever.items()
    }
    return {group: names for group, names in longer.items() if names}


def _with_unlisted(names: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
    """Carry on the names that end where their package stops listing its exports: they may still be there."""
    unlisted = {
        entry.rpartition(":")[0]: names.pop(entry) for entry in [*names] if entry.endswith(f":{UNLISTED}")
    }
    for entry, spans in names.items():
        for first, last in unlisted.get(entry.partition(":")[0], ()):
            if any(end == first - 1 for _, end in spans):
                spans[:] = spans_of(sorted({*places_of(spans), *range(first, last + 1)}))
    return names


def _changing(spans: Mapping[str, list[list[int]]], whole: list[list[int]]) -> dict[str, list[list[int]]]:
    """Keep the entries whose ranges differ from their owner's own, and what judging them takes.

    That is `**` where there is one, and under "" the owner's own ranges where it is not in all releases.
    """
    own = places_of(span for ranges in spans.values() for span in ranges)
    kept = {entry: ranges for entry, ranges in spans.items() if places_of(ranges) != own}
    if kept:
        kept |= {"**": spans["**"]} if "**" in spans else {}
        life = spans_of(own)
        kept |= {"": life} if life != whole else {}
    return kept


def _own_anyway(
    keywords: Mapping[str, Mapping[str, list[list[int]]]],
    kept: Mapping[str, object],
    bases: Mapping[str, Iterable[str]],
) -> dict[str, dict[str, list[list[int]]]]:
    """Return the methods that never changed, of classes whose bases have one of that name that did."""
    found = {}
    for owner in keywords.keys() - kept.keys():
        holder, _, method = owner.rpartition(".")
        if holder and any(f"{base}.{method}" in kept for base in ancestors(bases, holder)):
            found[owner] = {"": joined(keywords[owner].values())}
    return found


def _ranges(history: list[frozenset[str]]) -> dict[str, list[list[int]]]:
    """Return for each entry the index ranges [first, last] of releases that have it."""
    places: dict[str, list[int]] = {}
    for index, entries in enumerate(history):
        for entry in entries:
            places.setdefault(entry, []).append(index)
    return {entry: spans_of(found) for entry, found in sorted(places.items())}


def _grouped(ranges: Mapping[str, list[list[int]]]) -> dict[str, dict[str, list[list[int]]]]:
    grouped: dict[str, dict[str, list[list[int]]]] = {}
    for entry, spans in ranges.items():
        owner, _, name = entry.rpartition(":")
        grouped.setdefault(owner, {})[name] = spans
    return grouped
