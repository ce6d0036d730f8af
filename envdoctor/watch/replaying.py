"""A recording judged again: the same moments give the same alarms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from envdoctor.errors import InputError
from envdoctor.watch.alarms import Judge
from envdoctor.watch.death import Story, story_of
from envdoctor.watch.moment import Alarm, Expectation, Moment, Stacks
from envdoctor.watch.recording import read_recording
from envdoctor.watch.stacks import difference


def replay(path: Path) -> Story:
    """Return a recording with the alarms that its moments give now; raises InputError."""
    lines = list(read_recording(path))
    if not lines:
        raise InputError(f"{path}: empty")
    story = story_of(lines)
    judge = Judge(story.header)
    alarms: list[Alarm] = []
    stopped: tuple[int, ...] = ()
    for line in lines:
        if isinstance(line, Expectation):
            judge.expect(line)
        elif isinstance(line, Moment):
            alarms += judge.feed(line)
            stopped = line.stopped or ()
        elif isinstance(line, Stacks) and (told := difference(line, stopped)):
            alarms.append(told)
    return replace(story, alarms=tuple(alarms))
