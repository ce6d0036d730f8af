"""Facts of several pastes as one: the first known wins, contradictions become notes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from envdoctor.facts import Distribution, Environment, Facts, Observed, Unknown

R = TypeVar("R")


def merge_facts(parts: Sequence[Facts]) -> Facts:
    """Return one Facts of all `parts`; an empty sequence gives Facts that know nothing."""
    if not parts:
        return Facts(origin="paste")
    merged = parts[0]
    for part in parts[1:]:
        merged = _merge_two(merged, part)
    return merged


def _merge_two(first: Facts, second: Facts) -> Facts:
    notes: list[str] = []
    return Facts(
        origin=first.origin,
        driver=_merge_record(first.driver, second.driver, "driver", notes),
        gpus=_merge_gpus(first.gpus, second.gpus, notes),
        host=_merge_record(first.host, second.host, "host", notes),
        toolkits=_joined_toolkits(first.toolkits, second.toolkits),
        libraries=_joined(first.libraries, second.libraries),
        environment=_merge_environment(first.environment, second.environment, notes),
        variables={**second.variables, **first.variables},
        astray={**second.astray, **first.astray},
        settings=_joined(first.settings, second.settings),
        symptoms=_joined(first.symptoms, second.symptoms),
        verdicts=_joined(first.verdicts, second.verdicts),
        errors=_joined(first.errors, second.errors),
        warnings=_joined(first.warnings, second.warnings),
        notes=_joined(_joined(first.notes, second.notes), tuple(notes)),
        unread={**second.unread, **first.unread},
    )


def _merge_record(first: R, second: R, room: str, notes: list[str]) -> R:
    changes: dict[str, Any] = {}
    for item in dataclasses.fields(first):  # type: ignore[arg-type]
        mine, other = getattr(first, item.name), getattr(second, item.name)
        if isinstance(mine, (Observed, Unknown)):
            changes[item.name] = _first_known(mine, other, f"{room}.{item.name}", notes)
        elif isinstance(mine, tuple):
            changes[item.name] = _joined(mine, other)
        elif isinstance(mine, Mapping):
            changes[item.name] = {**other, **mine}
    return dataclasses.replace(first, **changes)  # type: ignore[type-var]


def _first_known(mine: Any, other: Any, place: str, notes: list[str]) -> Any:
    if isinstance(mine, Unknown):
        return other if isinstance(other, Observed) else mine
    if isinstance(other, Observed) and not _agree(mine.value, other.value):
        notes.append(f"{place}: {mine.value} ({mine.source}), but {other.value} ({other.source})")
    return mine


def _agree(mine: Any, other: Any) -> bool:
    a, b = str(mine), str(other)
    return a.startswith(b) or b.startswith(a)


def _merge_gpus(mine: Any, other: Any, notes: list[str]) -> Any:
    if isinstance(mine, Unknown) or isinstance(other, Unknown):
        return other if isinstance(mine, Unknown) and isinstance(other, Observed) else mine
    if [g.name for g in mine.value] != [g.name for g in other.value]:
        names = [", ".join(g.name or "?" for g in gpus.value) for gpus in (mine, other)]
        notes.append(f"gpus: {names[0]} ({mine.source}), but {names[1]} ({other.source})")
    return mine


def _joined_toolkits(mine: Any, other: Any) -> Any:
    if isinstance(mine, Unknown):
        return other
    if isinstance(other, Unknown):
        return mine
    return Observed(_joined(mine.value, other.value), mine.source)


def _joined(mine: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return mine + tuple(item for item in other if item not in mine)


def _merge_environment(first: Environment, second: Environment, notes: list[str]) -> Environment:
    distributions = dict(first.distributions)
    for name, new in second.distributions.items():
        distributions[name] = _merge_distribution(distributions.get(name), new, notes)
    builds = {name: {**second.builds.get(name, {}), **told} for name, told in first.builds.items()}
    for name, told in second.builds.items():
        builds.setdefault(name, dict(told))
    merged = _merge_record(first, second, "environment", notes)
    complete = first.complete or second.complete
    return dataclasses.replace(merged, distributions=distributions, builds=builds, complete=complete)


def _merge_distribution(old: Distribution | None, new: Distribution, notes: list[str]) -> Distribution:
    if old is None or (old.version is None and new.version is not None):
        return new
    if old.version and new.version and old.version.partition("+")[0] != new.version.partition("+")[0]:
        notes.append(f"{old.name}: {old.version} ({old.source}), but {new.version} ({new.source})")
    elif old.version and new.version and len(new.version) > len(old.version):
        return new
    return old
