"""From facts and logs to the archive's files: everything goes through one redactor, in one order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from envdoctor.bundling.archive import MANIFEST, make_manifest, pack, to_json_bytes
from envdoctor.bundling.excerpts import LogExcerpt
from envdoctor.bundling.issue import compose, issue_link
from envdoctor.bundling.redaction import Redactor
from envdoctor.bundling.sharing import make_redactor, redact_diagnosis
from envdoctor.bundling.trackers import Report, only_the_user_can_fill
from envdoctor.facts import to_json
from envdoctor.files import write_new_file
from envdoctor.findings import Diagnosis
from envdoctor.matrix import tables
from envdoctor.values import dataclass

_ORDER = ("report.md", MANIFEST, "facts.json", "diagnosis.json", "smoke.json")
_TIMES = ("first_ms", "repeat_ms", "duration_ms", "elapsed_ms", "seconds")


@dataclass(frozen=True, slots=True)
class Bundle:
    """The archive's files by name, and what the person who sends it needs to know."""

    files: Mapping[str, bytes]
    redactions: Mapping[str, int]
    issue_link: str | None = None
    to_fill: tuple[str, ...] = ()

    def to_json(self, path: Path | None) -> dict[str, Any]:
        """Return what `bundle --format json` prints."""
        return {
            "schema": "envdoctor.bundle/1",
            "path": str(path) if path else None,
            "files": {name: len(content) for name, content in sorted(self.files.items())},
            "redactions": dict(self.redactions),
            "issue_url": self.issue_link,
            "to_fill": list(self.to_fill),
        }


def build_bundle(
    diagnosis: Diagnosis,
    logs: Mapping[str, LogExcerpt] | None = None,
    smoke: Mapping[str, Any] | None = None,
    tracker: tables.TrackerRow | None = None,
    redactor: Redactor | None = None,
) -> Bundle:
    """Return the redacted files of a bundle; the same input gives the same bytes."""
    redactor = redactor or make_redactor(diagnosis.facts)
    texts = {name: excerpt.text() for name, excerpt in (logs or {}).items()}
    for text in texts.values():
        redactor.learn(text)
    shared = without_times(redact_diagnosis(diagnosis, redactor))
    report = Report(shared, _redact_logs(texts, redactor))
    plain = shared.to_json()
    files = {
        "report.md": compose(report, tracker).encode("utf-8", "replace"),
        "diagnosis.json": to_json_bytes(plain),
        "facts.json": to_json_bytes(to_json(shared.facts)),
        **{f"logs/{name}": text.encode("utf-8", "replace") for name, text in report.logs.items()},
    }
    if smoke is not None:
        files["smoke.json"] = to_json_bytes(_timeless(redactor.redact_json(smoke)))
    redactions = redactor.summary()
    files[MANIFEST] = to_json_bytes(make_manifest(files, redactions, plain["tool"]))
    return Bundle(
        files,
        redactions,
        issue_link(report, tracker) if tracker else None,
        only_the_user_can_fill(tracker) if tracker else (),
    )


def write_bundle(path: Path, bundle: Bundle, force: bool = False) -> None:
    """Write the archive atomically, for its owner alone.

    Raises InputError when `path` exists and `force` is false, Unavailable when it cannot be written.
    """
    write_new_file(path, pack(bundle.files), force)


def without_times(diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis without how long each check took."""
    return replace(diagnosis, checks=tuple(check._replace(duration_ms=0.0) for check in diagnosis.checks))


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: None if k in _TIMES else _timeless(v) for k, v in value.items()}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def _redact_logs(texts: Mapping[str, str], redactor: Redactor) -> dict[str, str]:
    return {
        log_name(redactor.redact(name), number): redactor.redact(text)
        for number, (name, text) in enumerate(texts.items(), 1)
    }


def log_name(name: str, number: int) -> str:
    """Return a name for a log in the archive: its number and the harmless part of its own name."""
    harmless = re.sub(r"[^A-Za-z0-9.-]+", "-", Path(name).name).strip("-.")[:60]
    return f"{number:02d}-{harmless or 'log'}"


def preview(bundle: Bundle) -> str:
    """Return every file of the bundle as it would leave the machine."""
    parts = [
        f"===== {name} ({len(content):,} bytes) =====\n{content.decode()}"
        for name, content in sorted(bundle.files.items(), key=_reading_order)
    ]
    return "\n".join(parts)


def _reading_order(item: tuple[str, bytes]) -> tuple[int, str]:
    return (_ORDER.index(item[0]) if item[0] in _ORDER else len(_ORDER), item[0])
