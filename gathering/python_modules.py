"""Reads which modules each Python has of itself, from the lists of the package stdlibs.

    python gathering/python_modules.py

writes `matrices/releases/python.json`: `pythons`, the minors in order; `modules`, for each name the ranges of
them, as positions in that list, that have it, empty for all. CPython's own tests are left out.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path

from packaging.version import Version
from release_sources import Sources, best_file, read_sources

from envdoctor.errors import Unavailable
from envdoctor.fact_files import find_folder
from envdoctor.fetch import Fetcher, FetchSettings
from envdoctor.files import replace_file
from envdoctor.harvest.index_pages import read_project_page
from envdoctor.matrix.interface_ranges import spans_of

PACKAGE = "stdlibs"
MINORS = range(6, 15)
TESTS = ("_test", "_xx", "xx", "__hello", "__phello")


def read_names(sources: Sources, minor: int) -> frozenset[str]:
    """Return the modules of Python 3.`minor`; raises Unavailable where they are not listed."""
    tree = ast.parse(sources.read(f"{PACKAGE}/py3{minor}.py"))
    lists = [node for node in ast.walk(tree) if isinstance(node, ast.List)]
    if len(lists) != 1:
        raise Unavailable(f"{PACKAGE}: the modules of Python 3.{minor} are not one list")
    names = ast.literal_eval(lists[0])
    return frozenset(name for name in names if not name.startswith(TESTS))


def encode_names(found: Mapping[int, frozenset[str]]) -> dict[str, object]:
    """Return the minors, and of each module the ranges of them that have it."""
    minors = sorted(found)
    every = sorted(frozenset[str]().union(*found.values()))
    having = {name: [place for place, minor in enumerate(minors) if name in found[minor]] for name in every}
    return {
        "pythons": [f"3.{minor}" for minor in minors],
        "modules": {
            n: [] if len(places) == len(minors) else spans_of(places) for n, places in having.items()
        },
    }


def main() -> None:
    """Read the newest release of the lists and write the file."""
    from envdoctor.harvest.index_settings import read_index_settings

    settings = read_index_settings()
    patience = FetchSettings(certificates=settings.certificates, proxy=settings.proxy)
    with Fetcher(patience) as fetcher:
        page = read_project_page(fetcher, settings.url, PACKAGE)
        releases = page.releases() if page else {}
        file = best_file(releases[max(releases, key=Version)]) if releases else None
        if file is None:
            raise Unavailable(f"{PACKAGE}: no release was found")
        sources = read_sources(fetcher, file)
        found = {minor: read_names(sources, minor) for minor in MINORS}
    head = {"made_by": "python gathering/python_modules.py", "source": f"wheel:{file.filename}"}
    text = json.dumps({**head, **encode_names(found)}, separators=(",", ":"), sort_keys=True) + "\n"
    replace_file(Path(find_folder(), "releases", "python.json"), text)


if __name__ == "__main__":
    main()
