"""What GitHub tells of an issue: a workflow's event, or the issue as its API gives it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from envdoctor.inputs import parse_json

_SUBJECTS = ("issue", "pull_request", "discussion")


def event_text(text: str) -> str | None:
    """Return title and text of the issue that an event's JSON tells, None for anything else.

    A comment counts when the issue's own author wrote it: what others say of their machines is theirs.
    """
    if '"body"' not in text or '"title"' not in text:
        return None
    try:
        data: Any = parse_json(text)
    except (json.JSONDecodeError, ValueError):
        return None
    if not isinstance(data, dict):
        return None
    subject = next((data[name] for name in _SUBJECTS if isinstance(data.get(name), dict)), data)
    if not isinstance(subject.get("title"), str):
        return None
    parts = [subject["title"], subject.get("body")]
    comment = data.get("comment")
    if isinstance(comment, dict) and _author(comment) == _author(subject):
        parts.append(comment.get("body"))
    return "\n\n".join(part for part in parts if isinstance(part, str))


def _author(told: Mapping[str, Any]) -> Any:
    user = told.get("user")
    return user.get("login") if isinstance(user, dict) else None
