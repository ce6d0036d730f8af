"""deepspeed: which minor CUDA mismatches its builder lets pass, from a literal in its source."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from envdoctor.fetch import Fetcher, TooLarge
from envdoctor.harvest.extract.wheels import linux_wheels
from envdoctor.harvest.index_pages import IndexFile
from envdoctor.harvest.remote_archive import BadArchive, RemoteZip, read_sdist_members
from envdoctor.python_source import parse_python

_BUILDER = "op_builder/builder.py"
_LITERAL = "cuda_minor_mismatch_ok"


def covers(version: str) -> bool:
    """Return True: every release is worth a look."""
    return bool(version)


def read(fetcher: Fetcher, files: Sequence[IndexFile]) -> dict[str, Any]:
    """Return `{"cuda_minor_mismatch_ok": {major: [versions]}}`, or `{"reason": ...}`; raises Unavailable."""
    sdists = [file for file in files if not file.is_wheel]
    chosen = (linux_wheels(files).get("x86_64") or next(iter(sdists), None)) if files else None
    if chosen is None:
        return {"reason": "no file of a kind that is read"}
    try:
        return {_LITERAL: parse_whitelist(_builder(fetcher, chosen)), "source": chosen.source}
    except (BadArchive, TooLarge) as problem:
        return {"reason": str(problem), "source": chosen.source}


def _builder(fetcher: Fetcher, file: IndexFile) -> str:
    if file.is_wheel:
        archive = RemoteZip(fetcher, file.url)
        found = {n: archive.read(n) for n in archive.members if n.endswith(f"/{_BUILDER}")}
    else:
        found = read_sdist_members(
            fetcher, file.url, lambda name: name.endswith(f"/{_BUILDER}"), lambda members: bool(members)
        )
    if not found:
        raise BadArchive(f"has no {_BUILDER}")
    return next(iter(found.values())).decode("utf-8", "replace")


def parse_whitelist(source: str) -> dict[str, list[str]]:
    """Return the CUDA versions by major that may be mixed; raises BadArchive without the list."""
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError):
        raise BadArchive(f"{_BUILDER} is no Python source") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == _LITERAL for t in node.targets
        ):
            return _majors(node.value)
    raise BadArchive(f"{_BUILDER} has no {_LITERAL}")


def _majors(value: ast.expr) -> dict[str, list[str]]:
    try:
        return {str(major): [str(v) for v in versions] for major, versions in ast.literal_eval(value).items()}
    except (ValueError, TypeError, AttributeError):
        raise BadArchive(f"{_LITERAL} is not the literal it was") from None
