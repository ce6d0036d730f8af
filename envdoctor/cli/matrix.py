"""`envdoctor matrix`: what is known, from when, and how to bring it up to date."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdoctor.cli.output import Progress, note, tell, write
from envdoctor.cli.parsing import add, add_flag, add_list
from envdoctor.errors import InputError, Unavailable, nearest
from envdoctor.report import Format, as_json

if TYPE_CHECKING:
    from envdoctor.harvest.sample import Draw
    from envdoctor.harvest.update import PackageOutcome, UpdateReport
    from envdoctor.specifiers import SpecifierSet


EXAMPLES = (
    ("what is known, and how old it is", "status"),
    ("newer facts of releases", "update"),
    ("facts derived again from their sources", "verify"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the four actions and the options of `update` and `verify`."""
    parser.add_argument("action", choices=("status", "show", "update", "verify"), help="what to do with it")
    parser.add_argument("ids", nargs="*", metavar="ID", help="with show: these rows (default: list all)")
    add(parser, "--index-url", "URL", "package index (default: the one pip or uv uses)")
    add_list(parser, "--package", "NAME", "only it and what it requires")
    add_list(
        parser, "--reread", "REQUIREMENT", "with update: read again what these releases (torch<1.5) require"
    )
    add(parser, "--store", "DIR", "this build store, not the user's data")
    add(parser, "--releases", "DIR", "with --store: write snapshot and tables there")
    add_flag(parser, "--all", "with verify: re-read every release of the generated tables")
    add(parser, "--sample", "N", "with verify: only read N recorded releases again, drawn by lot", type=int)
    add(
        parser,
        "--seed",
        "N",
        "with verify: draw by this seed (default: another each time, and told)",
        type=int,
    )


def run(args: argparse.Namespace) -> int:
    """Run one action; 1 when `verify` finds something that no longer holds."""
    if args.ids and args.action != "show":
        raise InputError(f"matrix {args.action} takes no ID ({args.ids[0]})")
    if args.releases and not args.store:
        raise InputError("--releases needs --store")
    if args.reread and args.action != "update":
        raise InputError("--reread goes with update")
    _check_draw(args)
    args.package = [_package_name(name) for name in args.package]
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "status": _status,
        "show": _show,
        "update": _update,
        "verify": _verify,
    }
    return actions[args.action](args)


def _package_name(text: str) -> str:
    from packaging.utils import canonicalize_name

    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", text):
        raise InputError(f"--package: {text!r} is not the name of a package")
    return str(canonicalize_name(text))


def _releases(texts: Sequence[str]) -> dict[str, SpecifierSet]:
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    try:
        parsed = [Requirement(text) for text in texts]
    except InvalidRequirement as error:
        raise InputError(f"--reread: {str(error).splitlines()[0]}") from None
    return {str(canonicalize_name(r.name)): r.specifier for r in parsed}


def _status(args: argparse.Namespace) -> int:
    from envdoctor.matrix import load_matrix
    from envdoctor.matrix.status import matrix_status
    from envdoctor.report.knowledge import status_document

    status = matrix_status(load_matrix())
    tell(args, lambda: status, lambda: status_document(status))
    return 0


def _show(args: argparse.Namespace) -> int:
    from envdoctor.matrix import load_matrix
    from envdoctor.report.knowledge import list_document, row_document

    rows = load_matrix().by_id
    for identity in args.ids:
        if identity not in rows:
            raise InputError(f"no row {identity!r} in the matrix{nearest(identity, rows)}")
    tell(
        args,
        lambda: {
            "schema": "envdoctor.matrix-rows/1",
            "rows": [{"kind": rows[i][0], **rows[i][1]} for i in args.ids or sorted(rows)],
        },
        lambda: row_document([rows[i] for i in args.ids]) if args.ids else list_document(rows),
    )
    return 0


def _update(args: argparse.Namespace) -> int:
    from envdoctor.harvest.index_settings import read_index_settings

    settings = read_index_settings(args.index_url)
    progress = Progress(args)
    report, written = (_update_store if args.store else _update_user)(args, settings, progress)
    progress.end()
    for path in written:
        note(args, f"wrote {path}")
    if report.problems:
        raise Unavailable(_problem_line(report))
    write(args, _update_text(args, report))
    return 0


def _update_user(args: argparse.Namespace, settings: Any, progress: Progress) -> tuple[UpdateReport, Any]:
    from envdoctor.fact_files import user_folder
    from envdoctor.harvest.refresh import refresh_user_data
    from envdoctor.matrix import load_matrix

    done = refresh_user_data(
        load_matrix(), Path(user_folder()), settings, args.package, _shown(progress), _releases(args.reread)
    )
    return done.report, done.written


def _update_store(args: argparse.Namespace, settings: Any, progress: Progress) -> tuple[UpdateReport, Any]:
    from envdoctor.harvest.refresh import publish, refresh_store
    from envdoctor.harvest.store import PackageStore

    folder = Path(args.store)
    report = refresh_store(folder, settings, args.package, _shown(progress), _releases(args.reread))
    if not args.releases or report.problems:
        return report, ()
    return report, publish(PackageStore(folder), Path(args.releases))


def _problem_line(report: UpdateReport) -> str:
    count = len(report.problems)
    first = report.problems[0]
    more = f" (and {count - 1} more)" if count > 1 else ""
    return f"{count} of {len(report.outcomes)} packages keep their former facts: {first}{more}"


def _update_text(args: argparse.Namespace, report: UpdateReport) -> str:
    packages, releases = len(report.outcomes), report.read
    if args.format is Format.JSON:
        changed = {o.name: o.read for o in report.outcomes if o.read}
        counts = {"packages": packages, "releases": releases, "read": changed}
        return as_json({"schema": "envdoctor.matrix-update/1", **counts})
    return f"{packages} packages are up to date; {releases} new releases were read"


def _verify(args: argparse.Namespace) -> int:
    from envdoctor.harvest.index_settings import read_index_settings
    from envdoctor.harvest.verify import verify_draw, verify_matrix

    progress, draw = Progress(args), _draw(args)
    settings = read_index_settings(args.index_url)
    shown = _shown(progress)
    if args.sample:
        mismatches = verify_draw(settings, shown, draw)
    else:
        mismatches = verify_matrix(
            settings, args.store, args.package, shown, every_release=args.all, draw=draw
        )
    progress.end()
    if not args.package:
        note(args, f"recorded releases were drawn by --seed {draw.seed}")
    if args.format is Format.JSON:
        found = [{"kind": m.kind, "what": m.what, "text": m.text} for m in mismatches]
        write(args, as_json({"schema": "envdoctor.matrix-verify/1", "holds": not found, "mismatches": found}))
    else:
        lines = [f"{m.kind} {m.what}: {m.text}" for m in mismatches]
        held = "what was drawn holds" if args.sample else "everything that can be re-derived holds"
        write(args, "\n".join(lines) or held)
    return 1 if mismatches else 0


def _draw(args: argparse.Namespace) -> Draw:
    """Return which recorded releases are drawn; a seed that was not told is another each time."""
    from random import SystemRandom

    from envdoctor.harvest.sample import Draw

    return Draw(args.sample, SystemRandom().randrange(1_000_000) if args.seed is None else args.seed)


def _check_draw(args: argparse.Namespace) -> None:
    drawn = args.sample is not None or args.seed is not None
    if drawn and (args.action != "verify" or args.package):
        raise InputError("--sample and --seed go with verify of all packages")
    if args.sample is not None and (args.all or args.store):
        raise InputError("--sample reads only what it draws: it goes with neither --all nor --store")
    if args.sample is not None and args.sample < 1:
        raise InputError(f"--sample {args.sample}: at least one is drawn")


def _shown(line: Progress) -> Callable[[PackageOutcome | str, int, int], None]:
    return lambda what, done, total: line.step(done, total, what if isinstance(what, str) else what.name)
