"""`envdoctor watch`: a command runs as it would alone, and what is to come of it is said."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envdoctor.cli.options import add
from envdoctor.cli.output import note
from envdoctor.errors import InputError

if TYPE_CHECKING:
    from envdoctor.watch.child import Child
    from envdoctor.watch.moment import Alarm
    from envdoctor.watch.recording import Recording
    from envdoctor.watch.watching import Watcher


EXAMPLES = (
    ("a training run", "-- python train.py --config train.yaml"),
    ("all ranks of a node", "-- torchrun --nproc-per-node 8 train.py"),
    ("with a recording of your own choice", "--record run.jsonl -- bash train.sh"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `watch`."""
    parser.usage = "envdoctor watch [options] -- CMD …"
    parser.add_argument("words", nargs="*", metavar="CMD", help="the command, after --")
    add(parser, "--record", "FILE", "where the recording goes (the user's state folder)")


def run(args: argparse.Namespace) -> int:
    """Watch the command; the exit code is its own."""
    words = args.wrapped or args.words
    if not words:
        raise InputError("watch: no command; write it after --, as in: envdoctor watch -- python train.py")
    from envdoctor.watch.child import end_as, start

    child = start(words)
    watcher = _beside(args, words, child)
    ending = child.wait()
    if watcher is not None:
        watcher.finish(ending)
    return end_as(ending)


def _beside(args: argparse.Namespace, words: Sequence[str], child: Child) -> Watcher | None:
    """Start to read beside the child; whatever hinders that is said in a line, and the child goes on."""
    try:
        from envdoctor.watch.watching import Watcher, sampler_of

        def say(alarm: Alarm) -> None:
            if not args.quiet:
                child.relay.tell(b"L", f"envdoctor: {alarm.text}")

        def show(text: str) -> None:
            if not args.quiet:
                child.relay.tell(b"S", text)

        watcher = Watcher(words, sampler_of(child), _recording(args), say, show)
        watcher.start()
    except Exception as error:
        child.relay.tell(b"L", f"envdoctor: not watched: {type(error).__name__}: {error}")
        return None
    return watcher


def _recording(args: argparse.Namespace) -> Recording | None:
    from envdoctor.watch.recording import Recording, default_path

    path = Path(args.record) if args.record else default_path()
    try:
        return Recording(path)
    except OSError as error:
        note(args, f"envdoctor: {path}: no recording: {error.strerror}")
        return None
