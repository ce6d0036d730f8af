"""A diagnosis as the JSON that scripts rely on."""

from __future__ import annotations

import json

from envdoctor.findings import Diagnosis


def render_json(diagnosis: Diagnosis) -> str:
    """Return `envdoctor.diagnosis/1`, indented; controls and lone surrogates are escaped."""
    return json.dumps(diagnosis.to_json(), indent=1, ensure_ascii=True) + "\n"
