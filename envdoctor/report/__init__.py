"""Turning values into text: one function a format, and the one sanitiser before any output."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envdoctor.findings import Diagnosis

FORMATS = ("text", "json", "markdown", "html", "sarif", "junit", "github")


def render(diagnosis: Diagnosis, format: str = "text", colour: bool = False) -> str:
    """Return a diagnosis in one of `FORMATS`; `colour` is for text on a colour terminal alone.

    Only the chosen format's module is imported. Raises ValueError for an unknown format.
    """
    if format == "text" and colour:
        from envdoctor.report.terminal import render_terminal

        return render_terminal(diagnosis)
    if format == "text":
        from envdoctor.report.text import render_text

        return render_text(diagnosis)
    if format == "json":
        from envdoctor.report.as_json import render_json

        return render_json(diagnosis)
    return _render_document(diagnosis, format)


def _render_document(diagnosis: Diagnosis, format: str) -> str:
    if format == "markdown":
        from envdoctor.report.markdown import render_markdown

        return render_markdown(diagnosis)
    if format == "html":
        from envdoctor.report.html import render_html

        return render_html(diagnosis)
    if format == "sarif":
        from envdoctor.report.sarif import render_sarif

        return render_sarif(diagnosis)
    if format == "junit":
        from envdoctor.report.junit import render_junit

        return render_junit(diagnosis)
    if format == "github":
        from envdoctor.report.github import render_github

        return render_github(diagnosis)
    raise ValueError(f"unknown format {format!r}: expected one of {', '.join(FORMATS)}")
