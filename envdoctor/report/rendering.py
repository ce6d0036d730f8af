"""A diagnosis in every format; only what the chosen one needs is loaded."""

from __future__ import annotations

from envdoctor.findings import Diagnosis
from envdoctor.report import PLAIN, Format, Judged, Look, as_json, draw, refuse


def render(
    diagnosis: Diagnosis, format: Judged = Format.TEXT, look: Look = PLAIN, unfold: bool = False
) -> str:
    """Return a diagnosis in one of its formats; `unfold` shows every finding and package."""
    match format:
        case Format.TEXT | Format.MARKDOWN | Format.HTML:
            from envdoctor.report.diagnosis import document

            return draw(document(diagnosis, unfold), format, look)
        case Format.JSON:
            return as_json(diagnosis.to_json())
        case Format.SARIF:
            from envdoctor.report.sarif import draw_sarif

            return draw_sarif(diagnosis)
        case Format.JUNIT:
            from envdoctor.report.cases import cases
            from envdoctor.report.junit import draw_junit

            return draw_junit("envdoctor", cases(diagnosis))
        case Format.GITHUB:
            from envdoctor.report.github import draw_github

            return draw_github(diagnosis)
        case Format.COMMENT:
            from envdoctor.report.comment import draw_comment

            return draw_comment(diagnosis)
    refuse(format)
