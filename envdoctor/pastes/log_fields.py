"""Log lines made of fields (logfmt, JSON, what docker keeps), told as their level and message."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from envdoctor import lazy_re as re

_FIELD = re.compile(r'(?<![^\s>|])([A-Za-z][\w.-]{0,40})=("(?:[^"\\]|\\.){0,1000}"|[^\s"=]{1,400})(?=\s|$)')
_LEVELS = ("level", "lvl", "severity", "levelname")
_MESSAGES = ("msg", "message", "event")
_CAUSES = ("error", "err", "exception", "exc_info")
_ASIDE = {
    *(*_LEVELS, *_MESSAGES, *_CAUSES, "time", "ts", "timestamp", "asctime", "@timestamp"),
    *("source", "caller", "logger", "name", "target", "stream", "stacktrace", "pid"),
}
"""Where and when a line was written: nothing is told by it."""
_NAMES = {"warn": "WARNING", "err": "ERROR", "crit": "CRITICAL", "panic": "CRITICAL", "dpanic": "CRITICAL"}
_NOTHING = ("", "null", "None", "<nil>", "nil")


def without_fields(line: str) -> str:
    """Return a line of fields as `LEVEL: message: cause key=value`; any other as it is."""
    start = line.find("{")
    if start >= 0 and line.rstrip().endswith("}"):
        fields = _object(line[start:])
    else:
        found = list(_FIELD.finditer(line))
        start = found[0].start() if found else 0
        fields = {match[1]: _unquoted(match[2]) for match in found}
    said = _said(fields)
    return line[:start] + said if said else line


def _object(text: str) -> Mapping[str, Any]:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _unquoted(value: str) -> str:
    return (
        value[1:-1].replace('\\"', '"').replace("\\n", " ").replace("\\t", " ") if value[0] == '"' else value
    )


def _said(fields: Mapping[str, Any]) -> str:
    """Return what a program says by fields; empty where they are none of a log's."""
    if isinstance(kept := fields.get("log"), str) and fields.get("stream") in ("stdout", "stderr"):
        return " ".join(kept.splitlines())
    level, message = (_first(fields, names) for names in (_LEVELS, _MESSAGES))
    if not level.isalpha() or not message:
        return ""
    cause = _first(fields, _CAUSES)
    rest = [
        f"{key}={value}"
        for key, value in fields.items()
        if key not in _ASIDE and isinstance(value, str | int)
    ]
    parts = [
        _NAMES.get(level.lower(), level.upper()),
        message,
        *([cause] if cause and cause not in message else []),
    ]
    return " ".join([": ".join(parts), *rest])


def _first(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    told = (fields.get(name) for name in names)
    return next((" ".join(one.split()) for one in told if isinstance(one, str) and one not in _NOTHING), "")
