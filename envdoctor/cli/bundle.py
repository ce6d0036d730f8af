"""`envdoctor bundle`: a redacted archive for a bug report, and the link that opens it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from envdoctor.cli.output import note, write

if TYPE_CHECKING:
    from envdoctor.bundle import Bundle

_DEFAULT_PATH = "envdoctor-bundle.zip"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bundle`."""
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        default=[],
        metavar="FILE",
        help="bundle what this paste or recording tells instead of this machine; - is standard input",
    )
    parser.add_argument(
        "--log", dest="logs", action="append", default=[], metavar="FILE", help="a training log of any size"
    )
    parser.add_argument("--for", dest="project", metavar="PROJECT", help="fill this project's issue template")
    parser.add_argument("--preview", action="store_true", help="print what would leave, and write nothing")
    parser.add_argument(
        "--smoke", action="store_true", help="run the smoke kernels and put their verdicts in"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def run(args: argparse.Namespace) -> int:
    """Build the bundle, then print or write it; return 0."""
    from envdoctor.bundle import preview, write_bundle
    from envdoctor.library import make_bundle

    bundle = make_bundle(args.sources, logs=args.logs, project=args.project, smoke=args.smoke)
    if args.preview:
        write(args, _preview_json(bundle) if args.format == "json" else preview(bundle))
        return 0
    path = Path(args.output or _DEFAULT_PATH)
    write_bundle(path, bundle, args.force)
    args.output = None
    write(args, json.dumps(bundle.to_json(path), indent=1) if args.format == "json" else _told(bundle, path))
    note(args, "Look at it before you send it: envdoctor bundle --preview")
    return 0


def _preview_json(bundle: Bundle) -> str:
    contents = {name: content.decode("utf-8", "replace") for name, content in sorted(bundle.files.items())}
    return json.dumps({**bundle.to_json(None), "contents": contents}, indent=1)


def _told(bundle: Bundle, path: Path) -> str:
    from envdoctor.report.sanitise import visible

    replaced = ", ".join(f"{count} {kind}" for kind, count in bundle.redactions.items()) or "nothing"
    lines = [f"Written: {visible(str(path))}", f"Replaced: {replaced}"]
    if bundle.to_fill:
        lines.append("Only you can fill: " + "; ".join(bundle.to_fill))
    if bundle.issue_link:
        lines += ["Open the issue, already filled, and attach the archive:", bundle.issue_link]
    return "\n".join(lines)
