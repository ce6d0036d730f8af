"""Rows about the places where issues are opened."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from envdoctor.matrix import forms
from envdoctor.matrix.tables.row import Fact, Row, Text, fact

_FILLS = """
    problem environment environment_folded reproduction reproduction_with_log reproduction_with_environment
    expected os gpus python system container settings remedies findings logs ds_report launcher model nobody
    nothing heading boxes
"""
FILLS = frozenset(_FILLS.split())
"""What answers a field, besides `package:NAME`."""


def _check_fill(text: str) -> str | None:
    return None if text in FILLS or text.startswith("package:") else f"{text!r} answers no field"


def _fill_parts(text: str) -> Iterator[forms.Part]:
    yield (), FILL, text
    if text.startswith("package:"):
        yield (), forms.PACKAGE, text.partition(":")[2]


FILL = forms.Form("fill", "what answers a field", _check_fill)
FILLED = forms.Form("fill", "what answers a field, or `package:NAME`", parts=_fill_parts)


@fact
class TemplateField(Fact):
    """One field of a template."""

    label: Text
    """Its heading."""
    fill: Annotated[str, FILLED]
    """What answers it."""
    id: str = ""
    """The form's id of it, if it has one."""
    type: Literal["textarea", "input", "checkboxes", "heading"] = "textarea"
    """How the form asks."""
    required: bool = False
    """True: the form cannot be sent without it."""
    options: tuple[str, ...] = ()
    """What its boxes say."""
    render: str = ""
    """The language in which the form shows the answer."""


@fact
class TrackerRow(Row):
    """A project's tracker and its template for bug reports."""

    KIND: ClassVar = "tracker"

    project: Text
    """As `--for` names it."""
    repository: Text
    """OWNER/NAME on GitHub."""
    template: str
    """The template's file; empty without one."""
    kind: Literal["form", "markdown", "none"]
    """What kind of template it is."""
    title: str
    """What a title begins with."""
    field: tuple[TemplateField, ...]
    """The template's fields, in order."""
    command: str = ""
    """The project's own command that tells the environment."""
