"""A diagnosis as plain text, the same bytes for the same diagnosis."""

from __future__ import annotations

from envdoctor.findings import Diagnosis
from envdoctor.report.layout import lay_out


def render_text(diagnosis: Diagnosis) -> str:
    """Return the report in plain text, 100 columns wide."""
    lines = ("".join(segment.text for segment in line).rstrip() for line in lay_out(diagnosis))
    return "\n".join(lines) + "\n"
