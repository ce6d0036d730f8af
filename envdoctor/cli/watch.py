"""`envdoctor watch`: a command runs as it would alone, and what is to come of it is said."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envdoctor.cli.options import add, add_flag
from envdoctor.cli.output import complain, look_of, note, write
from envdoctor.errors import EnvdoctorError, InputError
from envdoctor.report import PLAIN, Format

if TYPE_CHECKING:
    from envdoctor.watch.child import Child, Stage
    from envdoctor.watch.inside import Inside
    from envdoctor.watch.moment import Alarm, End
    from envdoctor.watch.recording import Recording
    from envdoctor.watch.stepping import Step
    from envdoctor.watch.watching import Watcher


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
    add(parser, "--replay", "FILE", "judge and draw a recording again; no command is run")
    add(parser, "--pid", "N", "watch a process that runs already; its output is not read", type=int)
    add(parser, "--listen", "ADDR", "serve /metrics (Prometheus) and a page: PORT or HOST:PORT")
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
        return _replay(args)
    words = args.wrapped or args.words
    if args.pid is not None:
        return _watch_process(args)
    if not words:
        raise InputError("watch: no command; write it after --, as in: envdoctor watch -- python train.py")
    address = _address(args)
    if args.retry < 0:
        raise InputError(f"--retry {args.retry}: expected a count")
    return _attempt(args, tuple(words), address)


_PATIENCE_S = 60.0
"""How long what a command left behind may hold its cards before no other attempt is made."""


def _attempt(args: argparse.Namespace, words: tuple[str, ...], address: tuple[str, int] | None) -> int:
    """Run the command, and with `--retry` again with the next setting, which was shown before."""
    from envdoctor.watch.child import Stage
    from envdoctor.watch.inside import Inside

    stage = Stage() if args.retry else None
    inside = Inside() if args.inside else None
    try:
        return _attempts(args, words, address, stage, inside)
    finally:
        if inside is not None:
            inside.close()


def _attempts(
    args: argparse.Namespace,
    words: tuple[str, ...],
    address: tuple[str, int] | None,
    stage: Stage | None,
    inside: Inside | None,
) -> int:
    from envdoctor.watch.child import end_as, start

    attempt = 0
    while True:
        child = start(words, inside.environment(os.environ) if inside else None)
        watcher = _beside(args, words, child, address if attempt == 0 else None, attempt, inside)
        ending = child.wait()
        step = _explain(args, watcher, watcher.finish(ending)) if watcher is not None else ""
        if stage is None or attempt == args.retry or not ending.code or ending.sent:
            return end_as(ending)
        again = _written(args, step, child)
        if again is None:
            return end_as(ending)
        stage.restore()
        words, attempt = again, attempt + 1


def _written(args: argparse.Namespace, step: Step | str, child: Child) -> tuple[str, ...] | None:
    """Write the next setting into the run's files and return its command; None where it is not to be run."""
    if isinstance(step, str):
        note(args, "envdoctor: not run again: " + (step or "no card's memory ran out"))
        return None
    if not child.leave(_PATIENCE_S):
        note(args, "envdoctor: not run again: processes that it started still run")
        return None
    try:
        if args.quiet or args.output:
            complain(step.diff)
        step.write()
    except EnvdoctorError as error:
        note(args, f"envdoctor: not run again: {error}")
        return None
    note(args, f"envdoctor: run again with {step.summary}")
    return step.argv


def _address(args: argparse.Namespace) -> tuple[str, int] | None:
    if not args.listen:
        return None
    from envdoctor.watch.listening import parse_address

    return parse_address(args.listen)


def _watch_process(args: argparse.Namespace) -> int:
    """Watch a process until it has ended; its exit code is not ours to know, so 0, or 1 for an alarm."""
    from envdoctor.watch.watching import Watcher, sampler_of_process, wait_for

    address = _address(args)
    argv, sampler = sampler_of_process(args.pid)
    watcher = Watcher(argv, sampler, _recording(args), lambda alarm: note(args, f"envdoctor: {alarm.text}"))
    _serve(args, watcher, address)
    watcher.start()
    wait_for(args.pid)
    end = watcher.finish(None)
    if args.output:
        _explain(args, watcher, end)
    return int(bool(watcher.alarms))


def _serve(args: argparse.Namespace, watcher: Watcher, address: tuple[str, int] | None) -> None:
    if address is None:
        return
    from envdoctor.watch.death import Story
    from envdoctor.watch.listening import metrics_of, serve
    from envdoctor.watch.report import render

    def metrics() -> str:
        return metrics_of(watcher.moments[-1] if watcher.moments else None, watcher.alarms)

    def page() -> str:
        story = Story(
            watcher.header, tuple(watcher.moments), tuple(watcher.alarms), (), None, watcher.expected
        )
        return render(story, None, Format.HTML)

    server = serve(address, metrics, page)
    host, port = server.server_address[:2]
    note(args, f"envdoctor: http://{host if isinstance(host, str) else host.decode()}:{port}/ and /metrics")


def _explain(args: argparse.Namespace, watcher: Watcher, end: End) -> Step | str:
    """Say on standard error, or in `--output`, why it ended; a run that is well ends without a word.

    Returns the next setting, or why there is none.
    """
    failed = bool(end.code or end.signal)
    quiet = args.quiet and not args.retry
    if not args.output and (quiet or not (failed or watcher.alarms)):
        return ""
    try:
        from envdoctor.watch.death import Story, diagnose_story, next_setting
        from envdoctor.watch.report import render

        log = (*watcher.failures, *watcher.sampler.log.tail[-200:])
        story = Story(
            watcher.header, tuple(watcher.moments), tuple(watcher.alarms), log, end, watcher.expected,
            watcher.stacks,
        )  # fmt: skip
        step = next_setting(story) if failed else ""
        diagnosis = diagnose_story(story, step=step) if failed else None
        change = None if isinstance(step, str) else step
        if args.output:
            write(args, render(story, diagnosis, args.format, look_of(args), args.all, change))
        if not quiet:
            where = watcher.recording.path if watcher.recording else None
            brief = f"envdoctor: {args.output} written" if args.output else ""
            note(args, brief or render(story, diagnosis, Format.TEXT, PLAIN, args.all, change))
            note(args, f"envdoctor: recording {where}" if where else "envdoctor: no recording")
    except Exception as error:
        note(args, f"envdoctor: the end could not be explained: {type(error).__name__}: {error}")
        return ""
    return step


def _beside(
    args: argparse.Namespace,
    words: Sequence[str],
    child: Child,
    address: tuple[str, int] | None,
    attempt: int = 0,
    inside: Inside | None = None,
) -> Watcher | None:
    """Start to read beside the child; whatever hinders that is said in a line, and the child goes on."""
    try:
        from envdoctor.watch.watching import Watcher, sampler_of

        def say(alarm: Alarm) -> None:
            if not args.quiet:
                child.relay.tell(b"L", f"envdoctor: {alarm.text}")

        def show(text: str) -> None:
            if not args.quiet:
                child.relay.tell(b"S", text)

        recording = _recording(args, attempt)
        watcher = Watcher(words, sampler_of(child, inside), recording, say, show, args.stop_before_oom)
        _serve(args, watcher, address)
        watcher.start()
    except Exception as error:
        child.relay.tell(b"L", f"envdoctor: not watched: {type(error).__name__}: {error}")
        return None
    return watcher


def _recording(args: argparse.Namespace, attempt: int = 0) -> Recording | None:
    from envdoctor.watch.recording import Recording, default_path

    path = Path(args.record) if args.record else default_path()
    if args.record and attempt:
        path = path.with_name(f"{path.stem}-{attempt + 1}{path.suffix}")
    try:
        return Recording(path)
    except OSError as error:
        note(args, f"envdoctor: {path}: no recording: {error.strerror}")
        return None


def _replay(args: argparse.Namespace) -> int:
    """Draw a recording; 0, or 1 when it ended in a failure or an alarm was given."""
    from envdoctor.watch.death import diagnose_story, next_setting
    from envdoctor.watch.replaying import replay
    from envdoctor.watch.report import render

    story = replay(Path(args.replay))
    failed = story.end is not None and bool(story.end.code or story.end.signal)
    step = next_setting(story) if failed else ""
    diagnosis = diagnose_story(story, here=False, step=step) if failed else None
    change = None if isinstance(step, str) else step
    write(args, render(story, diagnosis, args.format, look_of(args), args.all, change))
    return int(failed or bool(story.alarms))
