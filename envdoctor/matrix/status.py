"""What the matrix holds and how old it is, as plain JSON terms and as text."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
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


GENERATED = ("torch", "transformers", "bitsandbytes", "xformers", "deepspeed", "pins")


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


def status_text(status: Mapping[str, Any]) -> str:
    """Return a status for people to read."""
    rows = status["rows"]
    lines = [f"matrix {status['version']}: {sum(rows.values())} rows, checked up to {status['date']}"]
    lines += [f"  {count:5} {kind}" for kind, count in rows.items()]
    facts = status["package_facts"]
    if "reason" in facts:
        lines.append(f"package facts: {facts['reason']}")
    else:
        lines.append(
            f"package facts of {facts['date']}: {facts['packages']} packages, {facts['releases']} releases"
        )
    for name, table in status["generated"].items():
        lines.append(f"  {table['releases']:5} {name} (read {table['date']})")
    if status["stale"]:
        lines.append(f"{status['age_days']} days old: run `envdoctor matrix update`")
    return "\n".join(lines)


def row_list(rows: Mapping[str, tuple[str, Mapping[str, Any]]]) -> str:
    """Return one line a row: id, kind and what it is about."""
    width = max((len(identity) for identity in rows), default=0)
    return "\n".join(
        f"{identity:<{width}}  {kind:<12}  {_about(row)}" for identity, (kind, row) in sorted(rows.items())
    )


def _about(row: Mapping[str, Any]) -> str:
    for key in ("summary", "title", "name", "message", "text"):
        if isinstance(row.get(key), str):
            return str(row[key])
    return ""


def row_text(kind: str, row: Mapping[str, Any]) -> str:
    """Return one row in full, a key a line."""
    lines = [f"{row.get('id')} ({kind})"]
    for key, value in row.items():
        if key != "id":
            lines += _entry(key, value, 2)
    return "\n".join(lines)


def _entry(key: str, value: Any, indent: int) -> list[str]:
    pad = " " * indent
    if isinstance(value, Mapping):
        return [f"{pad}{key}:", *(line for k, v in value.items() for line in _entry(k, v, indent + 2))]
    if isinstance(value, list) and any(isinstance(item, (Mapping, list)) for item in value):
        return [
            f"{pad}{key}:",
            *(line for n, item in enumerate(value, 1) for line in _entry(str(n), item, indent + 2)),
        ]
    shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return [f"{pad}{key}: {shown}"]
