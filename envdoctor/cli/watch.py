"""`envdoctor watch`: a command runs as it would alone, and what is to come of it is said."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from envdoctor.cli.output import look_of, tell, write
from envdoctor.cli.parsing import add, add_flag
from envdoctor.errors import InputError

EXAMPLES = (
    ("a training run", "-- python train.py --config train.yaml"),
    ("all ranks of a node", "-- torchrun --nproc-per-node 8 train.py"),
    ("what a recording tells, as a page", "--replay run.jsonl --format html -o run.html"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `watch`."""
    parser.usage = "envdoctor watch [options] -- CMD …"
    parser.add_argument("words", nargs="*", metavar="CMD", help="the command, after --")
    add(parser, "--record", "FILE", "where the recording goes (the user's state folder)")
    add(parser, "--replay", "FILE", "judge and draw a recording again, or a folder of ranks; nothing is run")
    add(parser, "--pid", "N", "watch a process that runs already; its output is not read", type=int)
    add(parser, "--listen", "ADDR", "serve /metrics (Prometheus) and a page: PORT or HOST:PORT")
    add_flag(parser, "--dashboard", "show the run on a full screen; what it says goes to a file meanwhile")
    add(parser, "--collect", "DIR", "record into a folder that all ranks share, and read them together")
    told = "end it by SIGTERM just before memory runs out, so that it can save"
    add_flag(parser, "--stop-before-oom", told)
    told = "let torch's allocator tell of itself, through a hook in the command's environment"
    add_flag(parser, "--inside", told)
    told = "after an end for want of a card's memory, go on with the next setting that fits, at most N times"
    add(parser, "--retry", "N", told, type=int, default=0)
    add_flag(parser, "--all", "show everything, fold nothing")


def run(args: argparse.Namespace) -> int:
    """Watch the command; the exit code is its own."""
    if args.replay:
        return _replay_folder(args) if Path(args.replay).is_dir() else _replay(args)
    if args.pid is not None:
        from envdoctor.cli.watched import watch_process

        return watch_process(args)
    if not args.wrapped and args.words[:1] == ["compare"]:
        return _compare(args, args.words[1:])
    words = args.wrapped or args.words
    if not words:
        raise InputError("watch: no command; write it after --, as in: envdoctor watch -- python train.py")
    if args.retry < 0:
        raise InputError(f"--retry {args.retry}: expected a count")
    from envdoctor.cli.watched import watch_command

    return watch_command(args, tuple(words))


def _compare(args: argparse.Namespace, names: Sequence[str]) -> int:
    """Set two recordings side by side; 0."""
    if len(names) != 2:
        raise InputError(
            "watch compare: expected two recordings, as in: envdoctor watch compare a.jsonl b.jsonl"
        )
    from envdoctor.watch.comparing import document, to_json
    from envdoctor.watch.replaying import replay

    first, second = (replay(Path(name)) for name in names)
    both = (names[0], names[1])
    tell(args, lambda: to_json(first, second, both), lambda: document(first, second, both))
    return 0


def _replay_folder(args: argparse.Namespace) -> int:
    """Draw the recordings of all ranks together; 0, or 1 when one failed or an alarm was given."""
    from envdoctor.watch.collecting import as_terms, document, exit_code_of, read_together

    told = read_together(Path(args.replay))
    tell(args, lambda: as_terms(told), lambda: document(told))
    return exit_code_of(told)


def _replay(args: argparse.Namespace) -> int:
    """Draw a recording; 0, or 1 when it ended in a failure or an alarm was given."""
    from envdoctor.watch.death import diagnose_story, next_setting
    from envdoctor.watch.replaying import replay
    from envdoctor.watch.report import render

    story = replay(Path(args.replay))
    step = next_setting(story) if story.failed else ""
    diagnosis = diagnose_story(story, here=False, step=step) if story.failed else None
    change = None if isinstance(step, str) else step
    write(args, render(story, diagnosis, args.format, look_of(args), args.all, change))
    return int(story.failed or bool(story.alarms))
