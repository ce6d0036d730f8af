"""Small worlds for the solver: packages as plain dicts, compiled like the real store."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envdoctor.facts import DriverVersion
from envdoctor.harvest.snapshot_compile import Compiler
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.matrix.snapshot import Snapshot, parse_snapshot
from envdoctor.solve.asking import options_of
from envdoctor.solve.goal import Goal
from envdoctor.solve.nodes import Context
from envdoctor.solve.requests import Asked, parse_requests
from envdoctor.target.cards import named_cards
from envdoctor.target.platforms import parse_platform
from envdoctor.target.resolve import Target

EMPTY = Matrix({}, "test", "2026-01-01", Path("nowhere"))
START = datetime.date(2025, 1, 1)

Release = Sequence[str] | Mapping[str, Any]


def release(name: str, version: str, told: Release, day: int) -> dict[str, Any]:
    """Return one release as the store has it; `told` is its requirements, or a table of more."""
    table = dict(told) if isinstance(told, Mapping) else {"requires": list(told)}
    uploaded = (START + datetime.timedelta(days=table.get("day", day))).isoformat() + "T00:00:00Z"
    files = [
        {
            "filename": f"{name}-{version}-{tag}.whl" if tag != "sdist" else f"{name}-{version}.tar.gz",
            "requires_python": table.get("python"),
            "yanked": table.get("yanked", False),
            "uploaded": uploaded,
        }
        for tag in table.get("files", ["py3-none-any"])
    ]
    return {"files": files, "requires": table.get("requires", []), "deep": table.get("deep", {})}


def world(packages: Mapping[str, Mapping[str, Release]]) -> Snapshot:
    """Compile a world; each version came out ten days after the one before unless it says otherwise."""
    compiler = Compiler()
    for name, versions in packages.items():
        releases = {
            version: release(name, version, told, 10 * place)
            for place, (version, told) in enumerate(versions.items())
        }
        compiler.add({"name": name, "releases": releases})
    assert compiler.problems == []
    return parse_snapshot(compiler.bytes("2026-01-01"), "test")


def target(
    python: tuple[int, ...] = (3, 11),
    platform: str = "x86_64-manylinux_2_28",
    gpus: Sequence[str] = (),
    driver: str | None = None,
    matrix: Matrix = EMPTY,
) -> Target:
    """Return a target; cards by name or capability."""
    return Target(
        python,
        parse_platform(platform),
        named_cards(gpus, matrix),
        DriverVersion.parse(driver) if driver else None,
    )


def goal(
    snapshot: Snapshot,
    requests: Sequence[str],
    *,
    on: Target | None = None,
    matrix: Matrix = EMPTY,
    installed: Mapping[str, str] | None = None,
    least_change: bool = False,
    exclude_newer: str | None = None,
    allow_source: bool = False,
) -> Goal:
    """Return a goal on a snapshot."""
    parsed = tuple(parse_requests(requests))
    options = options_of(Asked(parsed), exclude_newer, allow_source)
    context = Context(snapshot, matrix, on or target(), options, dict(installed or {}))
    return Goal(context, parsed, least_change)


def versions(one: Goal) -> dict[str, str] | None:
    """Return the versions of the best answer, or None."""
    from envdoctor.solve.solver import solve

    picks = solve(one)
    if picks is None:
        return None
    return {name: one.context.node(name).version(bit) for name, bit in picks.bits.items()}  # type: ignore[union-attr]


def shipped() -> tuple[Snapshot, Matrix]:
    """Return the shipped package facts and matrix."""
    matrix = load_matrix()
    path = Path(matrix.folder, "releases", "snapshot.bin")
    return parse_snapshot(path.read_bytes(), str(path)), matrix
