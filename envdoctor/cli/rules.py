"""`envdoctor rules [ID]`: every check with its id, or one explained."""

from __future__ import annotations

import argparse
from typing import Any

from envdoctor.cli.output import tell
from envdoctor.errors import InputError, nearest
from envdoctor.matrix import load_matrix
from envdoctor.report.document import Block, Document, Row, Rows
from envdoctor.report.knowledge import members
from envdoctor.rules.listing import explained_checks

EXAMPLES = (
    ("every check", ""),
    ("one explained", "PAIR-TRIU-BF16"),
    ("as data", "--format json"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `rules`."""
    parser.add_argument("id", nargs="?", metavar="ID", help="explain this check")


def run(args: argparse.Namespace) -> int:
    """List the checks or explain one."""
    matrix = load_matrix()
    entries = list(explained_checks(matrix))
    if args.id:
        near = nearest(args.id, (entry["id"] for entry in entries)) or " (see `envdoctor rules`)"
        entries = [entry for entry in entries if entry["id"] == args.id.upper()]
        if not entries:
            raise InputError(f"{args.id}: no check has this id{near}")
    terms = {"schema": "envdoctor.rules/1", "matrix": matrix.version, "rules": entries}
    tell(args, lambda: terms, lambda: Document("", "", (_drawn(entries, bool(args.id)),)))
    return 0


def _drawn(entries: list[dict[str, Any]], explain: bool) -> Block:
    if not explain:
        return Rows(tuple(Row(entry["id"], entry["title"]) for entry in entries))
    return Rows(
        tuple(row for entry in entries for key, value in entry.items() for row in members(key, value))
    )
