"""Words from nodes made harmless for the HTML report and its map."""

from __future__ import annotations

from html import escape

from envdoctor.report.sanitise import visible


def text(words: str) -> str:
    """Return words harmless inside HTML."""
    return escape(visible(words.encode("utf-8", "replace").decode()))
