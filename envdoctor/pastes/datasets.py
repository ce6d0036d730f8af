"""Training data: which structure its rows have, which rows break it, and how long they are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from envdoctor.facts import Setting
from envdoctor.pastes.sightings import Sighting

ROWS = 20_000
"""Rows that are looked at."""
_STRUCTURES = (
    ("sharegpt", ("conversations",)),
    ("messages", ("messages",)),
    ("preference", ("chosen", "rejected")),
    ("alpaca", ("instruction", "output")),
    ("prompt", ("prompt", "completion")),
    ("text", ("text",)),
)
_ASKS = frozenset({"human", "user", "observation", "tool", "function_response", "ipython"})
_ANSWERS = frozenset({"gpt", "assistant", "model", "chatgpt", "bard", "function_call", "bot"})
_SYSTEM = frozenset({"system", "developer"})


@dataclass(slots=True)
class Survey:
    """What was seen of the rows: counts of faults, unknown roles, and the longest row in estimated tokens."""

    structure: str
    rows: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    roles: Counter[str] = field(default_factory=Counter)
    lengths: list[int] = field(default_factory=list)


def parse_dataset(text: str, name: str, file_name: str) -> Iterator[Sighting]:
    """Yield what the rows of a data file tell, as settings under `data.`; nothing for any other JSON."""
    rows = _rows(text, file_name.lower().endswith(".jsonl"))
    structure = _structure(rows)
    if structure is None:
        return
    survey = Survey(structure)
    for row in rows:
        _look(row, survey)
    yield from _told(survey, name)


def _rows(text: str, lines: bool) -> list[Mapping[str, Any]]:
    """The rows of a JSON list, or of JSON lines."""
    if text.lstrip()[:1] == "[":
        data = _loaded(text)
        return [row for row in data[:ROWS] if isinstance(row, dict)] if isinstance(data, list) else []
    if not lines:
        return []
    return [row for line in text.splitlines()[:ROWS] if isinstance(row := _loaded(line), dict)]


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _structure(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """The structure that most rows have; None when hardly any row has one."""
    counts = Counter(
        next((name for name, keys in _STRUCTURES if all(key in row for key in keys)), "") for row in rows
    )
    best = counts.most_common(1)
    return best[0][0] or None if best else None


def _look(row: Mapping[str, Any], survey: Survey) -> None:
    survey.rows += 1
    keys = next(keys for name, keys in _STRUCTURES if name == survey.structure)
    if any(key not in row for key in keys):
        survey.faults["structure"] += 1
        return
    if survey.structure in ("sharegpt", "messages"):
        _look_at_turns(_with_preferred(row[keys[0]], row), survey)
    elif not all(str(row[key] or "").strip() for key in keys[-1:]):
        survey.faults["empty"] += 1
    survey.lengths.append(tokens_of(_text(row)))


def _with_preferred(turns: Any, row: Mapping[str, Any]) -> Any:
    """Return a conversation with the answer of a row that sets two against one another: it stands beside."""
    chosen = row.get("chosen") if "rejected" in row else None
    answers = chosen if isinstance(chosen, list) else [chosen]
    return [*turns, *answers] if chosen and isinstance(turns, list) else turns


def _look_at_turns(turns: Any, survey: Survey) -> None:
    """Judge a conversation: roles that are known, a question first, an answer last, taking turns."""
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, dict) for turn in turns):
        survey.faults["structure"] += 1
        return
    roles = [str(turn.get("from", turn.get("role", ""))).lower() for turn in turns]
    survey.roles.update(role for role in roles if role not in _ASKS | _ANSWERS | _SYSTEM)
    spoken = [role for role in roles if role not in _SYSTEM]
    if not any(role in _ANSWERS for role in spoken):
        survey.faults["unanswered"] += 1
    elif any((role in _ASKS) != (n % 2 == 0) for n, role in enumerate(spoken)) or len(spoken) % 2:
        survey.faults["turns"] += 1
    if any(
        not str(turn.get("value", turn.get("content")) or turn.get("tool_calls") or "").strip()
        for turn in turns
    ):
        survey.faults["empty"] += 1


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return " ".join(_text(item) for item in value.values())
    return " ".join(_text(item) for item in value) if isinstance(value, list) else ""


def tokens_of(text: str) -> int:
    """Estimate the tokens of a text: four characters each, one and a half where the script is dense."""
    dense = sum(1 for character in text if ord(character) > 0x2E7F)
    return (len(text) - dense) // 4 + int(dense / 1.5)


def _told(survey: Survey, name: str) -> Iterator[Sighting]:
    lengths = sorted(survey.lengths) or [0]
    values: dict[str, object] = {
        "format": survey.structure,
        "rows": survey.rows,
        "longest": lengths[-1],
        "p99": lengths[min(len(lengths) - 1, len(lengths) * 99 // 100)],
        "median": lengths[len(lengths) // 2],
        **survey.faults,
    }
    if survey.roles:
        values["roles"] = ",".join(role or "(none)" for role, _ in survey.roles.most_common(5))
    source = f"{name}: {survey.rows} rows"
    for key, value in values.items():
        yield Sighting("setting", Setting(f"data.{key}", str(value), source), source)
