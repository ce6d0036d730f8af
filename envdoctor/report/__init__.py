"""A report is a document, drawn as text, Markdown or HTML; machines get JSON, JUnit, SARIF or annotations."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

from envdoctor.values import NamedTuple

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
    return _written(value, "\n") + "\n"


_NESTING = frozenset((dict, list, tuple))
_quoted = json.encoder.encode_basestring_ascii
_ENCODER = json.JSONEncoder()
_make: Any = getattr(json.encoder, "c_make_encoder", None)
_flat = _make and _make(None, _ENCODER.default, _quoted, None, ": ", ", ", False, False, True)
"""CPython's encoder, made once: `JSONEncoder.encode` makes one for each call."""


def _written(value: Any, newline: str) -> str:
    """Return a value's JSON: `json.dumps` with an indent is many times as slow as without."""
    kind = type(value)
    if kind is str:
        return _quoted(value)
    items: Any = value.values() if kind is dict else value
    if kind not in _NESTING or _NESTING.isdisjoint(map(type, items)):
        return "".join(_flat(value, 0)) if _flat else _ENCODER.encode(value)
    inner = f"{newline} "
    if kind is dict:
        parts = [f"{_quoted(str(key))}: {_written(item, inner)}" for key, item in value.items()]
        return f"{{{inner}{f',{inner}'.join(parts)}{newline}}}"
    return f"[{inner}{f',{inner}'.join(_written(item, inner) for item in value)}{newline}]"


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


def told(format: Reported, look: Look, document: Callable[[], Document], plain: Callable[[], Any]) -> str:
    """Return an answer in one format: its document drawn, or its plain terms as JSON."""
    return as_json(plain()) if format is Format.JSON else draw(document(), format, look)


def refuse(format: NoReturn) -> NoReturn:
    """Raise ValueError for a format that is none; the type checker proves that none is forgotten."""
    raise ValueError(f"unknown format {format!r}")
