"""Sightings become Facts: the first known wins, what contradicts it becomes a note."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from envdoctor.facts import (
    CONTRADICTED,
    Distribution,
    Driver,
    Environment,
    Facts,
    Gpu,
    Host,
    Observed,
    Toolkit,
)
from envdoctor.facts.names import DISTRIBUTION
from envdoctor.pastes.gpus import complete_name, same_gpu
from envdoctor.pastes.sightings import Sighting

MANY = 5000
"""Distributions, settings and symptoms kept of one paste."""


GROUPS = 32
"""Lists of GPUs that are compared with one another."""


def assemble(sightings: Iterable[Sighting]) -> Facts:
    """Return the facts that sightings tell, given best informed first."""
    by_place: dict[str, list[Sighting]] = {}
    for sighting in sightings:
        by_place.setdefault(sighting.place, []).append(sighting)
    notes: list[str] = [s.value for s in by_place.get("note", ())]
    environment = _fields("environment", by_place, notes)
    distributions = _distributions(by_place.get("distribution", ()), notes)
    _take_out_pythons(distributions, environment.get("python"), notes)
    return Facts(
        origin="paste",
        driver=Driver(**_fields("driver", by_place, notes)),
        gpus=_counted(_gpus(by_place.get("gpus", ())), by_place.get("gpu_count", ())),
        host=Host(**_fields("host", by_place, notes)),
        toolkits=_toolkits(by_place.get("toolkit", ())),
        libraries=_unique(by_place.get("library", ())),
        environment=Environment(
            **environment,
            distributions=distributions,
            complete=any(s.value for s in by_place.get("complete", ())),
            builds=_builds(by_place.get("build", ()), distributions),
        ),
        variables=_first_by_name(by_place.get("variable", ())),
        settings=_settings(by_place),
        symptoms=_unique(by_place.get("symptom", ()))[:MANY],
        errors=tuple(s.value for s in by_place.get("error", ())),
        warnings=tuple(s.value for s in by_place.get("warning", ())),
        notes=tuple(dict.fromkeys(notes)),
    )


def _fields(room: str, by_place: Mapping[str, Sequence[Sighting]], notes: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for place, seen in by_place.items():
        if place.startswith(room + "."):
            best = max(seen, key=lambda s: _detail(seen[0].value, s.value))
            fields[place.partition(".")[2]] = Observed(best.value, best.source)
            notes.extend(_contradictions(place, best, seen))
    return fields


def _detail(first: Any, other: Any) -> int:
    """Return how much more `other` says than `first` while agreeing with it: `580.95.05` than `580`."""
    a, b = str(first), str(other)
    return len(b) if b.startswith(a + ".") else len(a) if a == b else 0


def _contradictions(place: str, best: Sighting, seen: Sequence[Sighting]) -> list[str]:
    mine = str(best.value)
    others = {str(s.value): s.source for s in reversed(seen)}
    return [
        f"{place}: {mine} ({best.source}), but {other} ({source})"
        for other, source in others.items()
        if not mine.startswith(other) and not other.startswith(mine)
    ][:3]


def _distributions(seen: Iterable[Sighting], notes: list[str]) -> dict[str, Distribution]:
    found: dict[str, Distribution] = {}
    for sighting in seen:
        new: Distribution = sighting.value
        if not DISTRIBUTION.holds(new.name):
            if len(notes) < MANY:
                notes.append(f"{new.name[:60]!r} ({new.source}) is no name of a distribution")
            continue
        old = found.get(new.name)
        if old is None:
            if len(found) < MANY:
                found[new.name] = new
        else:
            found[new.name] = _same_distribution(old, new, notes)
    return found


def _take_out_pythons(
    distributions: dict[str, Distribution], python: Observed[str] | None, notes: list[str]
) -> None:
    """Leave out what is told of a package in the numbers of the Python: `PyTorch 3.12` is said of that."""
    minor = ".".join(python.value.split(".")[:2]) if python else ""
    for name, told in list(distributions.items()):
        if minor and told.version is None and told.specifier == f"=={minor}.*":
            notes.append(f"{name} {minor} ({told.source}) is the Python's version, and not read as its own")
            del distributions[name]


def _same_distribution(old: Distribution, new: Distribution, notes: list[str]) -> Distribution:
    """Return the better informed of two sightings of one distribution, noting a contradiction."""
    if old.version is None or new.version is None:
        return old if old.version or (old.specifier and not new.version) else new
    public_old, public_new = old.version.partition("+")[0], new.version.partition("+")[0]
    if public_old == public_new:
        return new if "+" in new.version and "+" not in old.version else old
    if f"{old.name}{CONTRADICTED}" not in " ".join(notes[-20:]):
        notes.append(f"{old.name}{CONTRADICTED}{old.version} ({old.source}) and {new.version} ({new.source})")
    return old


def _builds(seen: Iterable[Sighting], distributions: Mapping[str, Distribution]) -> dict[str, dict[str, Any]]:
    builds: dict[str, dict[str, Any]] = {}
    for sighting in seen:
        name, told = sighting.value
        mine = builds.setdefault(name, {})
        for key, value in told.items():
            mine.setdefault(key, value)
    return builds


def _gpus(seen: Sequence[Sighting]) -> Any:
    """Return the best list: the first, or a later one that counts more of it; filled in from the others."""
    groups = [tuple(s.value) for s in seen[:GROUPS] if s.value]
    if not groups:
        return Facts().gpus
    best = next((group for group in groups if group[0].name), groups[0])
    for group in groups:
        goes_on = [g.name for g in group[: len(best)]] == [g.name for g in best]
        if len(group) > len(best) and (goes_on or all(g.name and same_gpu(g, best[0]) for g in group)):
            best = group
    others = [group for group in groups if group is not best]
    gpus = tuple(_filled(gpu, others) for gpu in best[:1024])
    return Observed(tuple(replace(gpu, index=i) for i, gpu in enumerate(gpus)), gpus[0].source)


def _counted(gpus: Any, seen: Sequence[Sighting]) -> Any:
    """Return the one GPU as often as a count says that there are such."""
    if not seen or not isinstance(gpus, Observed) or len(gpus.value) != 1:
        return gpus
    gpu = gpus.value[0]
    return Observed(tuple(replace(gpu, index=i) for i in range(min(seen[0].value, 1024) or 1)), gpus.source)


def _filled(gpu: Gpu, others: Sequence[tuple[Gpu, ...]]) -> Gpu:
    for group in others:
        twin = next((g for g in group if g.index == gpu.index and same_gpu(g, gpu)), None)
        twin = twin or next((g for g in group if same_gpu(g, gpu)), None)
        if twin is not None:
            gpu = _fill(gpu, twin)
    return gpu


def _fill(gpu: Gpu, twin: Gpu) -> Gpu:
    names = [twin.name]
    changes: dict[str, Any] = {
        name: getattr(twin, name)
        for name in ("name", "compute_capability", "memory_total_bytes", "uuid", "pci_bus", "mig")
        if getattr(gpu, name) is None and getattr(twin, name) is not None
    }
    if gpu.name and (full := complete_name(names, gpu.name)):
        changes["name"] = full
    return replace(gpu, **changes) if changes else gpu


def _toolkits(seen: Sequence[Sighting]) -> Any:
    toolkits: dict[tuple[str, str], Toolkit] = {}
    for sighting in seen:
        toolkit: Toolkit = sighting.value
        toolkits.setdefault((str(toolkit.version), toolkit.path), toolkit)
    certain = {str(t.version) for t in toolkits.values() if t.path}
    kept = tuple(t for t in toolkits.values() if t.path or str(t.version) not in certain)
    return Observed(kept, kept[0].source) if kept else Facts().toolkits


def _unique(seen: Iterable[Sighting]) -> tuple[Any, ...]:
    found: dict[Any, Any] = {}
    for sighting in seen:
        value = sighting.value
        key = tuple(
            str(getattr(value, f, ""))
            for f in ("id", "key", "name", "path", "version", "value", "captured", "framework")
        )
        found.setdefault(key, value)
    return tuple(found.values())


def _settings(by_place: Mapping[str, Sequence[Sighting]]) -> tuple[Any, ...]:
    """Return the settings, and of those that running text hints at the ones that nothing else tells."""
    told = _unique(by_place.get("setting", ()))[:MANY]
    keys = {setting.key for setting in told}
    hints: dict[str, Any] = {}
    for sighting in by_place.get("hint", ()):
        if sighting.value.key not in keys:
            hints.setdefault(sighting.value.key, sighting.value)
    return (*told, *hints.values())


def _first_by_name(seen: Iterable[Sighting]) -> dict[str, str]:
    found: dict[str, str] = {}
    for sighting in seen:
        name, value = sighting.value
        found.setdefault(name, value)
    return found
