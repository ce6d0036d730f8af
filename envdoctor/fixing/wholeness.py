"""Whether all files of every package are there, as its RECORD tells: what a quick probe leaves out."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from envdoctor.errors import InputError
from envdoctor.facts import Distribution, Facts
from envdoctor.inputs import MEBIBYTE, read_input_text

_DIGITS = 15
"""Of a file's size: a petabyte has no more."""
_LARGEST = 64 * MEBIBYTE
SHOWN = 3
_WRITTEN_LATER = (".pyc", "RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "entry_points.txt")


def with_missing_files(facts: Facts) -> Facts:
    """Return the facts with what is missing of each package's files among its problems.

    What lies outside the environment's folder, in a base that it sees, is another's to keep whole.
    """
    environment = facts.environment
    folder = os.path.realpath(environment.prefix.get() or "/")
    found = {
        name: _judged(one) if one.location and _is_within(one.location, folder) else one
        for name, one in environment.distributions.items()
    }
    told = dict.fromkeys(f"{name}: {text}" for name, one in found.items() for text in one.problems)
    problems = tuple(dict.fromkeys((*environment.problems, *told)))
    return replace(facts, environment=replace(environment, distributions=found, problems=problems))


def _is_within(location: str, folder: str) -> bool:
    return Path(os.path.realpath(location)).is_relative_to(folder)


def _judged(one: Distribution) -> Distribution:
    if one.problems or one.editable or not one.location or not one.source.endswith(".dist-info"):
        return one
    site = Path(one.location)
    if not os.path.lexists(site / one.source / "RECORD"):  # not every installer writes one
        return one
    try:
        wrong = list(_wrong_files(site, _read_record(site / one.source)))
    except InputError as error:
        return replace(one, problems=(f"its list of files cannot be read: {error}",))
    if not wrong:
        return one
    more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    return replace(one, problems=(f"files are missing or cut short: {', '.join(wrong[:SHOWN])}{more}",))


def recorded(info: Path) -> list[tuple[str, int | None]]:
    """Return the files that a package's RECORD names, with sizes where it tells them; none of no list."""
    try:
        return _read_record(info)
    except InputError:
        return []


def _read_record(info: Path) -> list[tuple[str, int | None]]:
    text = read_input_text(info / "RECORD", _LARGEST)
    lines = (line for line in io.StringIO(text, newline="") if "\0" not in line)
    try:
        return [(row[0], _parse_size(row)) for row in csv.reader(lines) if row]
    except csv.Error as error:
        raise InputError(f"{info / 'RECORD'}: {error}") from None


def _parse_size(row: Sequence[str]) -> int | None:
    told = row[2] if len(row) > 2 else ""
    return int(told) if len(told) <= _DIGITS and told.isascii() and told.isdecimal() else None


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
