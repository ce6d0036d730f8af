"""A report is a document, drawn as text, Markdown or HTML; machines get JSON, JUnit, SARIF or annotations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, TypeAlias

if TYPE_CHECKING:
    from envdoctor.report.document import Document


class Format(str, Enum):
    """Every form in which an answer can be written; each command offers some."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"
    COMMENT = "comment"
    PROMETHEUS = "prometheus"
    NAGIOS = "nagios"
    CONSTRAINTS = "constraints"
    REQUIREMENTS = "requirements"
    PYLOCK = "pylock"
    ENVIRONMENT = "environment"
    UV = "uv"

    def __str__(self) -> str:
        return self.value


Drawn: TypeAlias = Literal[Format.TEXT, Format.MARKDOWN, Format.HTML]
"""The formats that people read: every document can be drawn in each."""
Told: TypeAlias = Literal[Format.TEXT, Format.JSON]
Reported: TypeAlias = Literal[Told, Format.MARKDOWN, Format.HTML]
Tested: TypeAlias = Literal[Reported, Format.JUNIT]
Judged: TypeAlias = Literal[Tested, Format.SARIF, Format.GITHUB, Format.COMMENT]
Gathered: TypeAlias = Literal[Tested, Format.SARIF, Format.PROMETHEUS, Format.NAGIOS]
Pinned: TypeAlias = Literal[
    Format.CONSTRAINTS, Format.REQUIREMENTS, Format.PYLOCK, Format.ENVIRONMENT, Format.UV, Format.JSON
]


class Look(NamedTuple):
    """How text is drawn: its width in columns, and whether in colour."""

    width: int = 80
    colour: bool = False


PLAIN = Look()


def as_json(value: Any) -> str:
    """Return `value` as JSON in ASCII, which no terminal's encoding can spoil; what is flat in a line."""
    return "".join(_pieces(value, "\n")) + "\n"


_MANY = (dict, list, tuple)
_in_a_line = json.JSONEncoder().encode


def _pieces(value: Any, newline: str) -> Iterator[str]:
    """Yield the parts of a value's JSON: `json.dumps` with an indent is many times as slow as without."""
    items: Any = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (dict, list, tuple)) or not any(
        isinstance(v, (dict, list, tuple)) for v in items
    ):
        yield _in_a_line(value)
        return
    inner = f"{newline} "
    before = inner
    yield "{" if isinstance(value, dict) else "["
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield f"{before}{_in_a_line(str(key))}: " if isinstance(value, dict) else before
        yield from _pieces(item, inner)
        before = f",{inner}"
    yield newline + ("}" if isinstance(value, dict) else "]")


def draw(document: Document, format: Drawn, look: Look = PLAIN) -> str:
    """Return the document in one format; only that format's module is imported."""
    match format:
        case Format.TEXT if look.colour:
            from envdoctor.report.terminal import draw_colour

            return draw_colour(document, look.width)
        case Format.TEXT:
            from envdoctor.report.text import draw_text

            return draw_text(document, look.width)
        case Format.MARKDOWN:
            from envdoctor.report.markdown import draw_markdown

            return draw_markdown(document)
        case Format.HTML:
            from envdoctor.report.html import draw_html

            return draw_html(document)
    refuse(format)


def refuse(format: NoReturn) -> NoReturn:
    """Raise ValueError for a format that is none; the type checker proves that none is forgotten."""
    raise ValueError(f"unknown format {format!r}")
