"""Whether all files of every package are there, as its RECORD tells: what a quick probe leaves out."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from envdoctor.facts import Distribution, Facts

SHOWN = 3
_WRITTEN_LATER = (".pyc", "RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "entry_points.txt")


def with_missing_files(facts: Facts) -> Facts:
    """Return the facts with what is missing of each package's files among its problems."""
    environment = facts.environment
    found = {name: _judged(one) for name, one in environment.distributions.items()}
    told = dict.fromkeys(f"{name}: {text}" for name, one in found.items() for text in one.problems)
    problems = tuple(dict.fromkeys((*environment.problems, *told)))
    return replace(facts, environment=replace(environment, distributions=found, problems=problems))


def _judged(one: Distribution) -> Distribution:
    if one.problems or one.editable or not one.location or not one.source.endswith(".dist-info"):
        return one
    site = Path(one.location)
    wrong = list(_wrong_files(site, recorded(site / one.source)))
    if not wrong:
        return one
    more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    return replace(one, problems=(f"files are missing or cut short: {', '.join(wrong[:SHOWN])}{more}",))


def recorded(info: Path) -> list[tuple[str, int | None]]:
    """Return the files that a package's RECORD names, with their sizes where it tells them."""
    try:
        with open(info / "RECORD", encoding="utf-8", newline="") as stream:
            rows = [row for row in csv.reader(stream) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        return []
    return [(row[0], int(row[2]) if len(row) > 2 and row[2].isdigit() else None) for row in rows]


def _wrong_files(site: Path, files: Sequence[tuple[str, int | None]]) -> Iterator[str]:
    for name, size in files:
        if name.endswith(_WRITTEN_LATER) or name.startswith(".."):
            continue
        try:
            told = os.stat(site / name).st_size
        except OSError:
            yield name
            continue
        if size is not None and told != size:
            yield name
