"""Where a command's data goes: standard output or `--output`, written whole or not at all."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from envdoctor.files import replace_file


def write(args: argparse.Namespace, text: str) -> None:
    """Write `text` (with a final newline) to `args.output` or standard output.

    Raises Unavailable when the file cannot be written.
    """
    text = text if text.endswith("\n") else text + "\n"
    if not args.output:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    replace_file(Path(args.output), text)


def note(args: argparse.Namespace, text: str) -> None:
    """Say something to the person on standard error, unless `--quiet`."""
    if not args.quiet:
        print(text, file=sys.stderr)


def colour_wanted(args: argparse.Namespace) -> bool:
    """True when the data goes to a colour terminal and nobody asked for none."""
    if args.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or args.output:
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()
