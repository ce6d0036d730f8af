"""`envdoctor bundle`: a redacted archive for a bug report, and the link that opens it."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from envdoctor.cli.output import look_of, note, write
from envdoctor.cli.parsing import add, add_flag, add_list
from envdoctor.errors import InputError
from envdoctor.report import Format, as_json, draw
from envdoctor.report.document import Block, Document, Row, Rows, Text

if TYPE_CHECKING:
    from envdoctor.bundling import Bundle

_DEFAULT_PATH = "envdoctor-bundle.zip"


EXAMPLES = (
    ("an archive for a bug report", "-o report.zip"),
    ("with the log of the run", "--log train.log -o report.zip"),
    ("what would go in, nothing written", "--preview"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bundle`."""
    told = "bundle what this paste or recording tells instead of this machine; - is standard input"
    add_list(parser, "--from", "FILE", told, dest="sources")
    add(parser, "--python", "PATH", "the interpreter to examine (default: the active environment's)")
    add_list(parser, "--gpu", "NAME", "the card to judge for (repeatable)")
    add_list(parser, "--log", "FILE", "a training log of any size", dest="logs")
    add(parser, "--for", "PROJECT", "fill this project's issue template", dest="project")
    add(parser, "--from-watch", "FILE", "bundle a run that `watch` recorded: its end, curve and log")
    add_flag(parser, "--preview", "print what would leave, and write nothing")
    add_flag(parser, "--smoke", "run the smoke kernels and put their verdicts in")
    add_flag(parser, "--force", "replace an existing file")


def run(args: argparse.Namespace) -> int:
    """Build the bundle, then print or write it; return 0."""
    from envdoctor.api import make_bundle
    from envdoctor.bundling import preview, write_bundle

    if args.from_watch and (args.sources or args.python or args.gpu or args.smoke):
        raise InputError("--from-watch: a recorded run goes with none of --from, --python, --gpu and --smoke")
    if args.from_watch:
        bundle = _bundle_of_recording(args)
    else:
        bundle = make_bundle(
            args.sources,
            python=args.python,
            gpus=args.gpu,
            logs=args.logs,
            project=args.project,
            smoke=args.smoke,
        )
    if args.preview:
        write(args, _preview_json(bundle) if args.format is Format.JSON else preview(bundle))
        return 0
    path = Path(args.output or _DEFAULT_PATH)
    write_bundle(path, bundle, args.force)
    args.output = None
    json = args.format is Format.JSON
    write(
        args, as_json(bundle.to_json(path)) if json else draw(_told(bundle, path), Format.TEXT, look_of(args))
    )
    note(args, "Look at it before you send it: envdoctor bundle --preview")
    return 0


def _bundle_of_recording(args: argparse.Namespace) -> Bundle:
    """Return a bundle of a recorded run: its diagnosis, and its curve and log beside the logs given."""
    from envdoctor.bundling import build_bundle, find_tracker
    from envdoctor.bundling.excerpts import read_excerpt
    from envdoctor.files import replace_file
    from envdoctor.matrix import load_matrix
    from envdoctor.watch.death import diagnose_story
    from envdoctor.watch.replaying import replay
    from envdoctor.watch.report import render

    story = replay(Path(args.from_watch))
    tracker = find_tracker(load_matrix(), args.project) if args.project else None
    with tempfile.TemporaryDirectory(prefix="envdoctor-bundle-") as folder:
        path = Path(folder) / "watch.log"
        replace_file(path, "\n".join((render(story), *story.log)))
        excerpts = {name: read_excerpt(Path(name)) for name in (*args.logs, str(path))}
    return build_bundle(diagnose_story(story), excerpts, None, tracker)


def _preview_json(bundle: Bundle) -> str:
    contents = {name: content.decode("utf-8", "replace") for name, content in sorted(bundle.files.items())}
    return as_json({**bundle.to_json(None), "contents": contents})


def _told(bundle: Bundle, path: Path) -> Document:
    replaced = ", ".join(f"{count} {kind}" for kind, count in bundle.redactions.items()) or "nothing"
    rows = [Row("Written", str(path)), Row("Replaced", replaced)]
    if bundle.to_fill:
        rows.append(Row("Left to you", "; ".join(bundle.to_fill)))
    blocks: list[Block] = [Rows(tuple(rows))]
    if bundle.issue_link:
        blocks.append(Text("Open the issue, already filled, and attach the archive:"))
        blocks.append(Text(bundle.issue_link))
    return Document("", "", tuple(blocks))
