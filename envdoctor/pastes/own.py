"""envdoctor's own JSON: facts, a diagnosis, or anything else of ours that holds facts."""

from __future__ import annotations

import json
from typing import Any

from envdoctor.errors import InputError
from envdoctor.facts import Facts, FactsFormatError, from_json
from envdoctor.inputs import parse_json

_KINDS = ("envdoctor.facts/", "envdoctor.diagnosis/", "envdoctor.bundle/")


def parse_own(text: str) -> Facts | None:
    """Return the facts in envdoctor's own JSON, or None; raises InputError when they are malformed."""
    if not any(kind in text for kind in _KINDS):
        return None
    try:
        data: Any = parse_json(text)
    except json.JSONDecodeError:
        return None  # a part of such a file may still tell something, line by line
    except ValueError as error:
        raise InputError(f"no facts of envdoctor: {error}") from None
    if not isinstance(data, dict) or not str(data.get("schema", "")).startswith(_KINDS):
        return None
    facts = data if "environment" in data or "facts" not in data else data["facts"]
    try:
        return from_json(facts)
    except (FactsFormatError, RecursionError) as error:
        raise InputError(f"no facts of envdoctor: {error}") from None
