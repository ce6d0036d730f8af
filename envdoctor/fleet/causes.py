"""Which differences follow from which: another environment is one entry, not one for each package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from envdoctor.fleet.agreement import Agreement, named
from envdoctor.fleet.differing import Drift, DriftValue
from envdoctor.matrix import tables

MANY = 4
"""From so many packages or variables on that differ on the same nodes, their set is what differs."""
PACKAGES, VARIABLES = "packages", "variables"


def explain(found: Sequence[Drift], agreement: Agreement) -> list[Drift]:
    """Return the differences of one pool, gravest cause first, each with the root that it follows from."""
    nodes = {drift.fact: frozenset(drift.other_nodes) for drift in found}
    causes = _followed(found, nodes)
    gathered, followers = _gathered(found, causes, agreement)
    causes.update(followers)
    roots = {drift.fact: _root(drift.fact, causes) for drift in found}
    told = [replace(d, consequence_of=roots[d.fact] if roots[d.fact] != d.fact else None) for d in found]
    return _ordered([*gathered, *told])


def _followed(found: Sequence[Drift], nodes: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Return for each fact the one that its row names and in which all its odd nodes differ too."""
    named_by: dict[str, list[str]] = {}
    causes: dict[str, str] = {}
    for drift in found:
        row = drift.row
        if row.id not in named_by:
            named_by[row.id] = _named_facts(row.follows, nodes)
        mine = nodes[drift.fact]
        cause = next((f for f in named_by[row.id] if f != drift.fact and mine <= nodes[f]), None)
        if cause is not None:
            causes[drift.fact] = cause
    return causes


def _named_facts(patterns: Sequence[str], facts: Mapping[str, object]) -> list[str]:
    plain = [pattern for pattern in patterns if pattern in facts]
    globs = [pattern for pattern in patterns if "*" in pattern]
    return plain + [fact for fact in facts if globs and named(globs, fact)]


def _gathered(
    found: Sequence[Drift], causes: Mapping[str, str], agreement: Agreement
) -> tuple[list[Drift], dict[str, str]]:
    """Return one difference in place of many of a kind on the same nodes, and who follows it."""
    gathered: list[Drift] = []
    followers: dict[str, str] = {}
    for kind, rows in ((PACKAGES, agreement.packages), (VARIABLES, agreement.variables)):
        row, ids = agreement.row(agreement.facts, kind), {one.id for one in rows}
        some = [drift for drift in found if drift.fact not in causes and drift.row.id in ids]
        for number, alike in enumerate(_alike(some) if row else (), 1):
            assert row is not None
            name = kind if number == 1 else f"{kind} ({number})"
            gathered.append(_of_many(name, alike, row))
            followers.update(dict.fromkeys((drift.fact for drift in alike), name))
    return gathered, followers


def _alike(some: Sequence[Drift]) -> list[list[Drift]]:
    """Return the differences that part the nodes in the same way, where they are many."""
    found: dict[tuple[tuple[str, ...], ...], list[Drift]] = {}
    for drift in some:
        found.setdefault(tuple(value.nodes for value in drift.values), []).append(drift)
    return [alike for alike in found.values() if len(alike) >= MANY]


def _of_many(name: str, some: Sequence[Drift], row: tables.AgreementRow) -> Drift:
    first, *others = some[0].values
    words = f"{len(some)} differ or are missing: {_some(some)}"
    values = [DriftValue("one set" if some[0].tied else "as most", first.nodes)]
    values += [DriftValue(words, other.nodes) for other in others]
    severity = min((drift.severity for drift in some), key=lambda s: s.rank)
    return Drift(name, tuple(values), severity, row, tied=some[0].tied, pool=some[0].pool)


def _some(drift: Sequence[Drift]) -> str:
    gravest = sorted(drift, key=lambda d: (d.severity.rank, d.fact))
    return ", ".join(d.fact for d in gravest[:3]) + (", …" if len(drift) > 3 else "")


def _root(fact: str, causes: Mapping[str, str]) -> str:
    """Return where a chain of causes begins; of facts that name each other, always the same one."""
    seen = [fact]
    while (cause := causes.get(fact)) is not None:
        if cause in seen:
            return min(seen[seen.index(cause) :])
        fact = cause
        seen.append(fact)
    return fact


def _ordered(found: Sequence[Drift]) -> list[Drift]:
    """Return each root with what follows from it; it is as grave as the gravest of them."""
    following: dict[str, list[Drift]] = {}
    for drift in found:
        if drift.consequence_of is not None:
            following.setdefault(drift.consequence_of, []).append(drift)
    roots = [_grave(d, following.get(d.fact, ())) for d in found if d.consequence_of is None]
    roots.sort(key=lambda d: (d.severity.rank, not is_of_gpu(d.fact), len(d.odd_nodes), d.fact))
    return [drift for root in roots for drift in (root, *following.get(root.fact, ()))]


def _grave(root: Drift, following: Sequence[Drift]) -> Drift:
    severity = min((root.severity, *(d.severity for d in following)), key=lambda s: s.rank)
    return replace(root, severity=severity)


def is_of_gpu(fact: str) -> bool:
    """True for a fact of the GPUs themselves."""
    return fact.startswith(("gpu.", "xid"))
