"""What a program calls: a framework's own `env` command, an exception hook, a test.

import envdoctor

diagnosis = envdoctor.diagnose()
envdoctor.bundle("report.zip", logs=["train.log"])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from envdoctor.bundling import Bundle, build_bundle, find_tracker, write_bundle
from envdoctor.bundling.excerpts import LogExcerpt, read_excerpt
from envdoctor.diagnosis import diagnose, diagnose_facts, read_facts, smoked_python, with_verdicts
from envdoctor.facts import Facts
from envdoctor.matrix import Matrix, load_matrix

__all__ = ["bundle", "diagnose", "diagnose_facts", "make_bundle"]


def bundle(
    path: str | Path,
    sources: Sequence[str] = (),
    *,
    logs: Sequence[str] = (),
    project: str | None = None,
    smoke: bool = False,
    force: bool = False,
) -> Bundle:
    """Write a redacted bundle of this machine (or of what `sources` tell) to `path` and return it.

    Raises InputError when `path` exists without `force` or an input is unusable, Unavailable when it
    cannot be written.
    """
    made = make_bundle(sources, logs=logs, project=project, smoke=smoke)
    write_bundle(Path(path), made, force)
    return made


def make_bundle(
    sources: Sequence[str] = (),
    *,
    logs: Sequence[str] = (),
    project: str | None = None,
    smoke: bool = False,
) -> Bundle:
    """Return a redacted bundle without writing it; raises InputError for an unusable input."""
    matrix = load_matrix()
    tracker = find_tracker(matrix, project) if project else None
    excerpts = {log: read_excerpt(Path(log)) for log in logs}
    facts = _with_log_symptoms(read_facts(sources, None, matrix), excerpts, matrix)
    verdicts = None
    if smoke:
        facts, report = with_verdicts(facts, smoked_python(facts, sources, None), matrix)
        verdicts = report.to_json()
    return build_bundle(diagnose_facts(facts, matrix), excerpts, verdicts, tracker)


def _with_log_symptoms(facts: Facts, logs: dict[str, LogExcerpt], matrix: Matrix) -> Facts:
    if not logs:
        return facts
    from envdoctor.pastes import parse_paste

    for path, excerpt in logs.items():
        told = parse_paste(excerpt.text(), Path(path).name, matrix.lexicon)
        facts = replace(facts, symptoms=(*facts.symptoms, *told.symptoms))
    return facts
