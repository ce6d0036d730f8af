"""The answer for a cluster as text: one function a format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envdoctor.fleet.answer import FleetAnswer

FORMATS = ("text", "json", "junit", "html", "prometheus")


def render(answer: FleetAnswer, format: str = "text", colour: bool = False) -> str:
    """Return an answer in one of `FORMATS`; only the chosen format's module is imported."""
    if format == "json":
        return _json(answer)
    if format == "junit":
        from envdoctor.fleet.report.junit import render_junit

        return render_junit(answer)
    if format == "html":
        from envdoctor.fleet.report.html import render_html

        return render_html(answer)
    if format == "prometheus":
        from envdoctor.fleet.report.prometheus import render_prometheus

        return render_prometheus(answer)
    from envdoctor.fleet.report.text import render_text

    return render_text(answer, colour)


def _json(answer: FleetAnswer) -> str:
    """Return the JSON with one member a line; indented, a thousand kinds of nodes take far more memory."""
    members = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in answer.to_json().items())
    return "{\n " + ",\n ".join(members) + "\n}"
