"""The answer for a cluster in every format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from envdoctor.report import PLAIN, Format, Gathered, Look, draw, refuse

if TYPE_CHECKING:
    from envdoctor.fleet.answer import FleetAnswer


def render(
    answer: FleetAnswer, format: Gathered = Format.TEXT, look: Look = PLAIN, unfold: bool = False
) -> str:
    """Return an answer in one format; only that format's module is imported."""
    match format:
        case Format.TEXT | Format.MARKDOWN | Format.HTML:
            from envdoctor.fleet.report.document import document

            return draw(document(answer, unfold), format, look)
        case Format.JSON:
            return _json(answer)
        case Format.JUNIT:
            from envdoctor.fleet.report.cases import cases
            from envdoctor.report.junit import draw_junit

            return draw_junit("envdoctor fleet", cases(answer))
        case Format.SARIF:
            from envdoctor.fleet.report.sarif import draw_fleet_sarif

            return draw_fleet_sarif(answer)
        case Format.NAGIOS:
            from envdoctor.fleet.report.nagios import draw_nagios

            return draw_nagios(answer)
        case Format.PROMETHEUS:
            from envdoctor.fleet.report.prometheus import draw_prometheus

            return draw_prometheus(answer)
    refuse(format)


def _json(answer: FleetAnswer) -> str:
    """Return the JSON with one member a line; indented, a thousand kinds of nodes take far more memory."""
    members = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in answer.to_json().items())
    return "{\n " + ",\n ".join(members) + "\n}\n"
