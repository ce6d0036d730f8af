"""What the matrix holds and how old it is, as plain JSON terms and as text."""

from __future__ import annotations

import datetime
from typing import Any

from envdoctor.errors import Unavailable
from envdoctor.matrix.load import Matrix
from envdoctor.matrix.snapshot import Package, Snapshot, load_snapshot

STALE_AFTER = 45
"""Days; torch and transformers each bring a minor release in less."""


def matrix_status(matrix: Matrix, today: datetime.date | None = None) -> dict[str, Any]:
    """Return versions, dates and counts; `stale` is None when the package facts are missing."""
    today = today or datetime.date.today()
    facts = _package_facts(matrix)
    age = (today - datetime.date.fromisoformat(facts["date"])).days if "date" in facts else None
    return {
        "schema": "envdoctor.matrix/1",
        "version": matrix.version,
        "date": matrix.date,
        "rows": {kind: len(rows) for kind, rows in sorted(matrix.tables.items())},
        "package_facts": facts,
        "generated": {name: _table(matrix, name) for name in GENERATED if matrix.generated(name)},
        "age_days": age,
        "stale": None if age is None else age > STALE_AFTER,
    }


GENERATED = ("torch", "transformers", "bitsandbytes", "xformers", "deepspeed", "pins", "sizes")


def _table(matrix: Matrix, name: str) -> dict[str, Any]:
    table = matrix.generated(name)
    return {"date": table.get("generated"), "releases": len(table.get("releases", {}))}


def _package_facts(matrix: Matrix) -> dict[str, Any]:
    try:
        snapshot = load_snapshot(matrix.folder)
    except Unavailable as error:
        return {"reason": str(error)}
    packages = crawled_packages(snapshot)
    releases = sum(len(package.versions) for package in packages)
    return {"date": snapshot.date, "packages": len(packages), "releases": releases}


def crawled_packages(snapshot: Snapshot) -> list[Package]:
    """Return the packages whose versions a snapshot knows."""
    packages = (snapshot.package(name) for name in snapshot.names())
    return [package for package in packages if package is not None and package.crawled]
