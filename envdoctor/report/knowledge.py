"""The matrix as documents: its status, its rows, one row in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from envdoctor.report.document import Block, Document, Row, Rows, Section, Span, Table, Text

Entry = tuple[str, Mapping[str, Any]]
"""A row's kind and its members."""


def status_document(status: Mapping[str, Any]) -> Document:
    """Return what the matrix holds and how old it is; `status` is `envdoctor.matrix/1`."""
    rows, facts = status["rows"], status["package_facts"]
    known = (
        f"{facts['packages']} packages, {facts['releases']} releases" if "date" in facts else facts["reason"]
    )
    blocks: list[Block] = [Rows((Row(f"Package facts{_of(facts)}", known),))]
    if status["stale"]:
        late = f"{status['age_days']} days old: run `envdoctor matrix update`"
        blocks.insert(0, Text(Span(late, "warning")))
    tables = tuple(
        (name, str(table["releases"]), str(table["date"])) for name, table in status["generated"].items()
    )
    blocks.append(Table(("read from wheels", "releases", "on"), tables, (1,)))
    blocks.append(Table(("kind of row", "rows"), tuple((kind, str(n)) for kind, n in rows.items()), (1,)))
    title = f"matrix {status['version']}: {sum(rows.values())} rows, checked up to {status['date']}"
    return Document(title, "", tuple(blocks))


def _of(facts: Mapping[str, Any]) -> str:
    return f" of {facts['date']}" if "date" in facts else ""


def list_document(rows: Mapping[str, Entry]) -> Document:
    """Return one line a row: id, kind and what it is about."""
    listed = sorted(rows.items())
    return Document(
        "", "", (Rows(tuple(Row(name, f"{kind}  {_about(row)}") for name, (kind, row) in listed)),)
    )


def _about(row: Mapping[str, Any]) -> str:
    return next(
        (row[k] for k in ("summary", "title", "name", "message", "text") if isinstance(row.get(k), str)), ""
    )


def row_document(rows: Sequence[Entry]) -> Document:
    """Return rows in full."""
    return Document(
        "",
        "",
        tuple(Section(f"{row.get('id')} ({kind})", (Rows(tuple(_members(row))),)) for kind, row in rows),
    )


def _members(row: Mapping[str, Any]) -> Iterator[Row]:
    return (entry for key, value in row.items() if key != "id" for entry in members(key, value))


def members(key: str, value: Any) -> Iterator[Row]:
    """Yield what a member holds, inner ones under dotted names; nothing for what is empty."""
    if isinstance(value, Mapping):
        for inner, told in value.items():
            yield from members(f"{key}.{inner}", told)
    elif isinstance(value, (list, tuple)) and any(isinstance(item, (Mapping, list, tuple)) for item in value):
        for number, item in enumerate(value, 1):
            yield from members(f"{key}.{number}", item)
    elif isinstance(value, (list, tuple)):
        yield from [Row(key, "; ".join(map(str, value)))] if value else []
    elif value not in (None, ""):
        yield Row(key, str(value))
