"""Deep facts: what a release's files know that its metadata does not say, one file a family."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Protocol, cast

from envdoctor.fetch import Fetcher
from envdoctor.harvest.index_pages import IndexFile

FAMILIES = ("torch", "transformers", "bitsandbytes", "xformers", "deepspeed")


class Extractor(Protocol):
    """A family's module: which releases hold its facts, and how they are read."""

    def covers(self, version: str) -> bool:
        """Return True when this version's files can hold the facts."""

    def read(self, fetcher: Fetcher, files: Sequence[IndexFile]) -> dict[str, Any]:
        """Return the facts of one release, `{"reason": ...}` when its files lack them.

        Raises Unavailable when the line breaks.
        """


def extractor_of(name: str) -> Extractor | None:
    """Return the extractor of a package, or None when its metadata says it all."""
    if name not in FAMILIES:
        return None
    return cast(Extractor, importlib.import_module(f"envdoctor.harvest.extract.{name}"))
