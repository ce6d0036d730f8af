"""The run of `envdoctor watch -- CMD…`: its attempts, what is said beside it, and its end explained."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from envdoctor.cli.output import complain, look_of, note, write
from envdoctor.errors import EnvdoctorError, InputError, Unavailable
from envdoctor.report import PLAIN, Format

if TYPE_CHECKING:
    from envdoctor.report.document import Document
    from envdoctor.watch.child import Child, Ending, Stage
    from envdoctor.watch.dashboard import Dashboard
    from envdoctor.watch.inside import Inside
    from envdoctor.watch.moment import Alarm, End
    from envdoctor.watch.recording import Recording
    from envdoctor.watch.stepping import Step
    from envdoctor.watch.watching import Watcher


_PATIENCE_S = 60.0
"""How long what a command left behind may hold its cards before no other attempt is made."""


@dataclass(frozen=True)
class Sitting:
    """What all attempts of one watch share; `terminal` is a copy of the dashboard's."""

    args: argparse.Namespace
    address: tuple[str, int] | None
    inside: Inside | None
    stage: Stage | None
    terminal: int | None


def watch_command(args: argparse.Namespace, words: tuple[str, ...]) -> int:
    """Run the command, and with `--retry` again with the next setting, which was shown before."""
    from envdoctor.watch.child import Stage, end_as
    from envdoctor.watch.inside import Inside

    sitting = Sitting(
        args,
        _address(args),
        Inside() if args.inside else None,
        Stage() if args.retry else None,
        _terminal(args),
    )
    try:
        ending = _attempts(sitting, words)
    finally:
        if sitting.inside is not None:
            sitting.inside.close()
    return end_as(ending)


def _terminal(args: argparse.Namespace) -> int | None:
    """Return a copy of the terminal that a dashboard is shown on; raises InputError where there is none."""
    if not args.dashboard:
        return None
    stream = next((fd for fd in (2, 1) if os.isatty(fd)), None)
    if stream is None:
        raise InputError("--dashboard: neither standard output nor standard error is a terminal")
    return os.dup(stream)


def _attempts(sitting: Sitting, words: tuple[str, ...]) -> Ending:
    from envdoctor.watch.child import start

    args, attempt = sitting.args, 0
    while True:
        recording = _recording(args, attempt)
        said = _file_for_output(args, recording) if sitting.terminal is not None else None
        more = sitting.inside.environment(os.environ) if sitting.inside else None
        child = start(words, more, said)
        board = _board(sitting)
        watcher = _beside(sitting, words, child, recording, attempt, board)
        ending = child.wait(board.away) if board is not None else child.wait()
        end = watcher.finish(ending) if watcher is not None else None
        if board is not None:
            board.close()
        step = _explain(args, watcher, end) if watcher is not None and end is not None else ""
        if sitting.stage is None or attempt == args.retry or not ending.code or ending.sent:
            return ending
        again = _written(args, step, child)
        if again is None:
            return ending
        sitting.stage.restore()
        words, attempt = again, attempt + 1


def _file_for_output(args: argparse.Namespace, recording: Recording | None) -> int:
    """Return the file that takes what the command says while its terminal shows the dashboard."""
    from envdoctor.files import open_stream
    from envdoctor.watch.recording import LOG, default_path

    path = (recording.path if recording else default_path()).with_suffix(LOG)
    with open_stream(path) as stream:
        note(args, f"envdoctor: what it says goes to {path}")
        return os.dup(stream.fileno())


def _board(sitting: Sitting) -> Dashboard | None:
    if sitting.terminal is None:
        return None
    from envdoctor.watch.dashboard import Dashboard

    return Dashboard(sitting.terminal, look_of(sitting.args).colour)


def _frame_of(watcher: Watcher) -> Callable[[int, int], Document]:
    """Return what draws how a run stands on a terminal of so many columns and lines."""
    from envdoctor.watch.dashboard import frame

    log = watcher.sampler.log.tail
    return partial(frame, watcher.header, watcher.moments, watcher.alarms, watcher.expected, log)


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


def watch_process(args: argparse.Namespace) -> int:
    """Watch a process until it has ended; its exit code is not ours to know, so 0, or 1 for an alarm."""
    from envdoctor.watch.sampling import sampler_of_process
    from envdoctor.watch.watching import Watcher, wait_for

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
        last = watcher.moments[-1] if watcher.moments else None
        return metrics_of(last, watcher.alarms, list(watcher.links.values()))

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
    sitting: Sitting,
    words: Sequence[str],
    child: Child,
    recording: Recording | None,
    attempt: int,
    board: Dashboard | None,
) -> Watcher | None:
    """Start to read beside the child; whatever hinders that is said in a line, and the child goes on."""
    args = sitting.args
    try:
        from envdoctor.watch.sampling import sampler_of
        from envdoctor.watch.watching import Watcher

        def say(alarm: Alarm) -> None:
            if not args.quiet and board is None:
                child.relay.tell(b"L", f"envdoctor: {alarm.text}")

        def show(text: str) -> None:
            if board is not None:
                board.show(_frame_of(watcher))
            elif not args.quiet:
                child.relay.tell(b"S", text)

        sampler = sampler_of(child, sitting.inside)
        watcher = Watcher(words, sampler, recording, say, show, args.stop_before_oom, _gathering(args))
        _serve(args, watcher, sitting.address if attempt == 0 else None)
        watcher.start()
    except Exception as error:
        child.relay.tell(b"L", f"envdoctor: not watched: {type(error).__name__}: {error}")
        return None
    return watcher


def _gathering(args: argparse.Namespace) -> Callable[[float], Iterable[Alarm]] | None:
    """Return what looks at all ranks together: in the first rank's watch alone."""
    from envdoctor.watch.surroundings import rank_of

    if not args.collect or rank_of(os.environ) not in (0, None):
        return None
    from envdoctor.watch.collecting import Gathering

    return Gathering(Path(args.collect)).look


def _collected(args: argparse.Namespace) -> Path | None:
    if not args.collect:
        return None
    from envdoctor.watch.collecting import place_of

    return place_of(Path(args.collect))


def _recording(args: argparse.Namespace, attempt: int = 0) -> Recording | None:
    from envdoctor.watch.recording import Recording, default_path

    path = Path(args.record) if args.record else _collected(args) or default_path()
    if (args.record or args.collect) and attempt:
        path = path.with_name(f"{path.stem}-{attempt + 1}{path.suffix}")
    try:
        return Recording(path)
    except (OSError, Unavailable) as error:
        note(args, f"envdoctor: {path}: no recording: {getattr(error, 'strerror', None) or error}")
        return None
