"""Where a command's data goes: standard output or `--output`, written whole or not at all."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from envdoctor.errors import Unavailable


def write(args: argparse.Namespace, text: str) -> None:
    """Write `text` (with a final newline) to `args.output` or standard output.

    Raises Unavailable when the file cannot be written.
    """
    text = text if text.endswith("\n") else text + "\n"
    if not args.output:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    write_file(Path(args.output), text)


def write_file(path: Path, text: str) -> None:
    """Replace `path` by `text` atomically; raises Unavailable with the reason."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise Unavailable(f"{path}: cannot be written: {error.strerror or error}") from None


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def note(args: argparse.Namespace, text: str) -> None:
    """Say something to the person on standard error, unless `--quiet`."""
    if not args.quiet:
        print(text, file=sys.stderr)


def colour_wanted(args: argparse.Namespace) -> bool:
    """True when the data goes to a colour terminal and nobody asked for none."""
    if args.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or args.output:
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()
