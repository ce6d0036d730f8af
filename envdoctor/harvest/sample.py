"""Some recorded releases, drawn by lot and read again from their files: interfaces and messages."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from envdoctor.errors import Unavailable
from envdoctor.fetch import Fetcher
from envdoctor.harvest.atlas import SOURCES, Source, read_release
from envdoctor.harvest.interface_reader import Reader
from envdoctor.harvest.interface_sources import LIBRARIES, Library
from envdoctor.harvest.interface_tables import inheriting
from envdoctor.harvest.interfaces import UNLISTED, Interface, without_inner
from envdoctor.harvest.workers import Workers
from envdoctor.matrix.atlas import COMPILED, Atlas, key_of, load_atlas
from envdoctor.matrix.interface_records import Record, load_record, recorded_versions

SHARE = 100
"""One of so many recorded releases is read again unless a number is told."""
AT_ONCE = 2
"""Releases that are read at once: while one is fetched another is parsed."""
Check = tuple[str, Callable[[], Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Draw:
    """How many recorded releases are drawn (None: a hundredth of them), and by which seed."""

    count: int | None = None
    seed: int = 0


def read_again(
    fetcher: Fetcher, index: str, folder: Path, progress: Callable[[str, int, int], None], draw: Draw
) -> Iterator[tuple[str, str]]:
    """Yield, of the releases drawn, those whose files say otherwise, each with the reason.

    The same seed draws the same of the same records; those of one library are read one after the other.
    """
    checks = [*_interfaces(fetcher, index, folder), *_messages(fetcher, index, folder)]
    count = max(1, round(len(checks) / SHARE)) if draw.count is None else draw.count
    order = random.Random(draw.seed).sample(range(len(checks)), min(len(checks), count))
    chosen = [checks[place] for place in sorted(order)]
    with Workers(AT_ONCE) as pool:
        answers = pool.map(_answer, (check for _, check in chosen))
        for done, ((what, _), wrong) in enumerate(zip(chosen, answers, strict=True), 1):
            progress(what, done, len(chosen))
            if wrong:
                yield what, wrong


def _answer(check: Callable[[], Sequence[str]]) -> str:
    """Return what is wrong; empty where the files say what is recorded."""
    try:
        wrong = check()
    except Unavailable as error:
        return f"could not be read again: {error}"
    return f"{len(wrong)} entries are recorded otherwise: {', '.join(wrong[:3])}" if wrong else ""


def _interfaces(fetcher: Fetcher, index: str, folder: Path) -> Iterator[Check]:
    for library in LIBRARIES:
        for version in recorded_versions(folder, library.record):
            check = partial(_interface_differs, fetcher, index, folder, library, version)
            yield f"interface of {library.record} {version}", check


def _interface_differs(
    fetcher: Fetcher, index: str, folder: Path, library: Library, version: str
) -> list[str]:
    record = load_record(folder, library.record)
    if record is None:
        return []
    with tempfile.TemporaryDirectory() as empty:
        told = Reader(fetcher, index, Path(empty)).read_release(library, version)
    return differing(record, version, inheriting(without_inner(told, library.inner)))


def differing(record: Record, version: str, told: Interface) -> list[str]:
    """Return the recorded entries of a release that are not what its files tell."""
    place = list(record.versions).index(version)
    unlisted = {entry.rpartition(":")[0] for entry in told.names if entry.endswith(f":{UNLISTED}")}
    tables = (
        ({"": record.modules}, frozenset(f":{module}" for module in told.modules)),
        ({m: names for m, names in record.names.items() if m not in unlisted}, told.names | told.foreign),
        (record.served, told.served),
        (record.keywords, told.keywords),
        (record.members, told.members),
        (record.passed, told.passed),
        (record.bases, told.bases),
        ({"": record.variables}, frozenset(f":{name}" for name in told.variables)),
    )
    return sorted(
        f"{owner}:{name}".lstrip(":")
        for table, found in tables
        for owner, entries in table.items()
        for name, spans in entries.items()
        if name and any(a <= place <= z for a, z in spans) != (f"{owner}:{name}" in found)
    )


def _messages(fetcher: Fetcher, index: str, folder: Path) -> Iterator[Check]:
    atlas = load_atlas(folder)
    if atlas is None:
        return
    versions = dict(atlas.libraries)
    for source in SOURCES:
        for version in versions.get(source.name, ()):
            check = partial(_messages_differ, fetcher, index, atlas, source, version)
            yield f"messages of {source.name} {version}", check


def _messages_differ(fetcher: Fetcher, index: str, atlas: Atlas, source: Source, version: str) -> list[str]:
    read = read_release(fetcher, index, source, version)
    rows = (row for rows in read.values() for row in rows)
    told = {template for template, *_ in rows if key_of(template) is not None}
    kept = {t for t, kind in atlas.templates(source.name, version) if kind != COMPILED}
    return sorted(told ^ kept)
