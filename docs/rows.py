"""Writes what every kind of row may hold, from its type: `python docs/rows.py`.

`rows.md` tells people (each field, and a row as it stands in a file), `rows.schema.json` tells editors: point
TOML's at it, and a misspelled key is marked while it is written.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from envdoctor.matrix import load_matrix
from envdoctor.matrix.forms import Form
from envdoctor.matrix.kinds import KINDS
from envdoctor.matrix.sources import DEFAULTS
from envdoctor.matrix.tables.row import Fact, Row
from envdoctor.report.markup import fenced

DOCS = Path(__file__).parent
PAGE, SCHEMA = DOCS / "rows.md", DOCS / "rows.schema.json"
_HEAD = """\
# The rows of the matrix

Every kind of row in `matrices/*.toml`, its fields, and one row as it stands there. Made from the types by
`python docs/rows.py`; `rows.schema.json` beside this page tells an editor the same. `checked_on` and `basis`
may stand once for a file (`[defaults]`), any key once for the rows of a table (`rows = [{ … }]`).
"""
_PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number"}


class Field(NamedTuple):
    """A field of a row: its type, whether a row must have it, and what it means."""

    name: str
    type: Any
    required: bool
    means: str


def fields_of(kind: type[Fact]) -> list[Field]:
    """Return the fields of a kind of row, with what stands under each in the source."""
    meanings = {name: text for base in kind.__mro__[::-1] for name, text in _meanings(base)}
    hints = typing.get_type_hints(kind, include_extras=True)
    own = [name for name in hints if typing.get_origin(hints[name]) is not typing.ClassVar]
    return [Field(name, hints[name], name in kind._required, meanings.get(name, "")) for name in own]


def _meanings(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the names of a class's fields and the texts under them."""
    if not issubclass(kind, Fact):
        return
    [tree] = ast.parse(inspect.getsource(kind)).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            name = field.target.id if isinstance(field.target, ast.Name) else ""
            yield name, " ".join(ast.literal_eval(text.value).split())


def schema_of(kind: Any) -> dict[str, Any]:
    """Return what JSON Schema says of a type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        form: Form = arguments[1]
        return {**schema_of(arguments[0]), "description": form.says}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        told = [schema_of(one) for one in arguments if one is not type(None)]
        return told[0] if len(told) == 1 else {"anyOf": told}
    if origin is tuple:
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if isinstance(kind, type) and issubclass(kind, Fact):
        return _table(kind)
    if kind in _PLAIN or kind is Any:
        return {"type": _PLAIN[kind]} if kind in _PLAIN else {}
    return {"type": "string", "description": re.sub(r"(?<!^)(?=[A-Z])", " ", kind.__name__).lower()}


def _table(kind: type[Fact]) -> dict[str, Any]:
    fields = fields_of(kind)
    told = {f.name: {**schema_of(f.type), "title": f.means} if f.means else schema_of(f.type) for f in fields}
    required = [f.name for f in fields if f.required]
    return {"type": "object", "properties": told, "required": required, "additionalProperties": False}


def _kind_schema(name: str, kind: type[Row]) -> dict[str, Any]:
    """Return the schema of a row, or of rows and what they share: neither has all that a row must have."""
    row = _table(kind)
    within = {"type": "array", "items": {"$ref": f"#/definitions/{name}"}}
    properties = {**row["properties"], "rows": within}
    return {"title": inspect.getdoc(kind), **row, "properties": properties, "required": []}


def schema() -> str:
    """Return the JSON schema of a file of rows, a line a kind."""
    once = {f.name: schema_of(f.type) for f in fields_of(Row) if f.name in ("checked_on", "basis")}
    defaults = {"type": "object", "properties": once, "additionalProperties": False}
    tables = {name: {"type": "array", "items": {"$ref": f"#/definitions/{name}"}} for name in sorted(KINDS)}
    told = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A file of envdoctor's rows",
        "type": "object",
        "additionalProperties": False,
        "properties": {DEFAULTS: defaults, **tables},
    }
    kinds = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(_kind_schema(name, KINDS[name]), ensure_ascii=False)}"
        for name in sorted(KINDS)
    )
    return f'{json.dumps(told)[:-1]}, "definitions": {{\n{kinds}\n}}}}\n'


def page() -> str:
    """Return the page about the kinds of rows."""
    return "\n".join((_HEAD, *(_kind_section(name, kind) for name, kind in sorted(KINDS.items()))))


def _kind_section(name: str, kind: type[Row]) -> str:
    own = [field for field in fields_of(kind) if field.name not in Row.__annotations__]
    rows = "".join(
        f"| `{f.name}` | {_said(f.type)} | {'' if f.required else 'may be left out. '}{_cell(f.means)} |\n"
        for f in own
    )
    head = "| field | holds | |\n|---|---|---|\n"
    return f"## `[[{name}]]`\n\n{inspect.getdoc(kind)}\n\n{head}{rows}\n{fenced(_example(name), 'toml')}"


def _said(kind: Any) -> str:
    told = schema_of(kind)
    if "anyOf" in told:
        return " or ".join(_said_of(one) for one in told["anyOf"])
    return _said_of(told)


def _said_of(told: Mapping[str, Any]) -> str:
    if "enum" in told:
        return ", ".join(f"`{one}`" for one in told["enum"])
    if told.get("type") == "array":
        return f"a list: {_said_of(told['items'])}"
    words = told.get("description", told.get("type", "anything"))
    return "a table" if words == "object" else _cell(words)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _example(name: str) -> str:
    """Return the shortest row of a kind, whole."""
    rows = (row for kind, row in load_matrix().by_id.values() if kind == name)
    row = min(rows, key=lambda row: (len(json.dumps(row)), row["id"]))
    return "\n".join((f"[[{name}]]", *(f"{key} = {_toml(value)}" for key, value in row.items())))


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(k)} = {_toml(v)}' for k, v in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    SCHEMA.write_text(schema(), encoding="utf-8")
