"""Measures the releases that a traceback's lines tell, against versions that the same text states.

    python benchmarks/datings.py PASTE... [--most N] [--show]

Each PASTE is a text (or JSON with a `text`, or a file of upgrades as `upgrades.py` reads them) that states
the versions of libraries whose files its tracebacks quote. The stated version is kept back; counted are the
true releases within the range that the lines tell, and how many minor releases a range spans; a version that
the index does not have is none that lines could tell. Reads the index.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version
from platformdirs import user_cache_path

from envdoctor.errors import Unavailable
from envdoctor.fetch import Fetcher, FetchSettings
from envdoctor.harvest.dating import Dater, Sight
from envdoctor.harvest.index_pages import read_project_page
from envdoctor.harvest.index_settings import read_index_settings
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.online import library_sights
from envdoctor.pastes import parse_paste
from envdoctor.rules.ranges import parse_version


@dataclass(frozen=True)
class Asked:
    """A library in a traceback whose version is stated."""

    text: str
    library: str
    version: Version
    sights: Sequence[Sight]


def read_texts(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each paste."""
    for path in paths:
        if path.name.endswith(".jsonl.gz"):
            with gzip.open(path, "rt") as stream:
                rows = [json.loads(row) for row in stream]
            yield from (
                (row["case"], f"```\n{row['freeze']}\n```\n\n```\n{row['traceback']}\n```\n")
                for row in rows
                if row["crash"] and row["traceback"]
            )
        elif path.suffix == ".json":
            yield path.stem, json.loads(path.read_text())["text"]
        else:
            yield path.name, path.read_text("utf-8", "replace")


def asked_of(name: str, text: str, matrix: Matrix) -> Iterator[Asked]:
    """Yield the libraries of a text whose lines can be looked for and whose final release is stated.

    A build of a commit calls itself by the release before it: it is none.
    """
    facts = parse_paste(text, "", matrix.lexicon)
    for library, sights in library_sights(facts, matrix).items():
        known = facts.distribution(library)
        version = parse_version(known.version) if known and known.version else None
        if version is not None and not version.is_prerelease and "git" not in (version.local or ""):
            yield Asked(name, library, Version(version.public), sights)


def is_on_index(fetcher: Fetcher, index: str, library: str, version: Version) -> bool:
    """True for a release that the index has; raises Unavailable."""
    page = read_project_page(fetcher, index, library)
    return page is not None and str(version) in page.releases()


def minors(releases: Sequence[str]) -> int:
    """Return how many minor releases a range spans."""
    return len({Version(release).release[:2] for release in releases})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pastes", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=100)
    parser.add_argument("--show", action="store_true", help="name what is outside or wide")
    options = parser.parse_args()
    matrix = load_matrix()
    found = [one for name, text in read_texts(options.pastes) for one in asked_of(name, text, matrix)]
    distinct = {(a.library, a.version, tuple(a.sights)): a for a in found}
    asked = random.Random(0).sample(
        sorted(distinct.values(), key=lambda a: (a.text, a.library)), len(distinct)
    )
    settings = read_index_settings()
    inside, near, widths, none, failed, unheard = 0, 0, list[int](), 0, 0, 0
    with Fetcher(FetchSettings(certificates=settings.certificates, proxy=settings.proxy)) as fetcher:
        for one in asked[: options.most]:
            dater = Dater(
                fetcher, settings.url, user_cache_path("envdoctor") / "lines", time.monotonic() + 600
            )
            try:
                if not is_on_index(fetcher, settings.url, one.library, one.version):
                    unheard += 1
                    continue
                stood = dater.releases(one.library, one.sights)
                releases = stood.releases
            except Unavailable as error:
                failed += 1
                print(f"    {one.library}: {error}")
                continue
            if not releases:
                none += 1
            else:
                widths.append(minors(releases))
                right = Version(releases[0]) <= one.version and (
                    stood.on or one.version <= Version(releases[-1])
                )
                inside += right
                near += stood.near
            if options.show and (not releases or not right or widths[-1] > 3):
                told = f"{releases[0]} to {releases[-1]}" if releases else "none"
                print(
                    f"    {one.text}: {one.library} {one.version}: {told} ({len(one.sights)} lines)",
                    flush=True,
                )
    print(
        f"{len(asked)} asked, {unheard} of no release on the index, {failed} not read;"
        f" {none} told none, inside {inside} of {len(widths)}, {near} of them only near"
    )
    print(
        f"width in minor releases: median {statistics.median(widths)}, mean {statistics.mean(widths):.1f},"
        f" most {max(widths)}"
    )


if __name__ == "__main__":
    main()
