"""The next setting of a run that ran out of a card's memory, as a change of its own command and files.

What is asked of the run stays as it is: method, length and rows of an optimizer step; the longest request of
an engine. What moves is in `trainings` and `engines`; here a change is written, and read again.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from envdoctor.errors import EnvdoctorError, Unavailable
from envdoctor.facts import Facts
from envdoctor.facts.quantities import GIB
from envdoctor.files import replace_file
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.values import dataclass
from envdoctor.watch.engines import is_engine, smaller_engines
from envdoctor.watch.moment import Header, Moment
from envdoctor.watch.places import (
    KEYS,
    Changes,
    Places,
    edited_text,
    edited_words,
    places_of,
    read_text,
)
from envdoctor.watch.told import config_files, told_facts
from envdoctor.watch.trainings import smaller_trainings

_WORDS = {
    "batch": "micro batch", "grad_accum": "accumulation", "grad_ckpt": "checkpointing", "optim": "optimizer",
    "liger": "Liger's kernels", "offload_optimizer": "optimizer on the host",
    "vllm_utilization": "share of the card", "max_num_seqs": "requests at once",
    "max_model_len": "longest request",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """A change of a run's command and files that should let it go on."""

    summary: str
    old_argv: tuple[str, ...]
    argv: tuple[str, ...]
    files: Mapping[str, tuple[str, str]]
    """By path the text before and after."""
    bound_bytes: int | None = None
    """What it is predicted to take of a card at most; None where that cannot be predicted."""

    @property
    def diff(self) -> str:
        """The change as a unified diff of files and of the command."""
        parts = [_difference(name, before, after) for name, (before, after) in self.files.items()]
        if self.argv != self.old_argv:
            parts.append(_difference("command", _command(self.old_argv), _command(self.argv)))
        return "".join(parts)

    def to_json(self) -> dict[str, object]:
        """Return it for a report."""
        return {
            "summary": self.summary,
            "command": list(self.argv),
            "diff": self.diff,
            "bound_bytes": self.bound_bytes,
        }

    def write(self) -> None:
        """Write the files, where they still are what was read; raises Unavailable, and then writes none."""
        for name, (before, _) in self.files.items():
            if read_text(Path(name)) != before:
                raise Unavailable(f"{name} was changed meanwhile: it is left as it is")
        for name, (_, after) in self.files.items():
            replace_file(Path(name), after)


class NoStep(EnvdoctorError):
    """There is no next setting; the text says why."""


def _difference(name: str, before: str, after: str) -> str:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(difflib.unified_diff(old, new, f"{name} (now)", f"{name} (next)", n=1))


def _command(argv: Sequence[str]) -> str:
    """Return a command with an option a line, so that a difference shows what moved."""
    lines = [""]
    for word in argv:
        if word.startswith("-") and lines[-1]:
            lines.append("")
        lines[-1] += f" {shlex.quote(word)}" if lines[-1] else shlex.quote(word)
    return " \\\n".join(lines) + "\n"


def next_step(header: Header, moment: Moment | None, log: Sequence[str] = ()) -> Step:
    """Return the next setting of a run that ran out of memory in `moment`; raises NoStep."""
    matrix = load_matrix()
    facts = told_facts(header, log=log)
    files = {str(path): read_text(path) for path in config_files(header)}
    places = places_of(header, files, matrix)
    return _first_written(header, files, places, facts, _smaller(header, moment, facts, matrix, places))


def _smaller(
    header: Header, moment: Moment | None, facts: Facts, matrix: Matrix, places: Places
) -> Iterable[tuple[Changes, int | None]]:
    if is_engine(header):
        return smaller_engines(header, moment, facts, matrix)
    if not places.states("batch"):
        raise NoStep("the micro batch is named neither on the command line nor in a file that it names")
    return smaller_trainings(header, moment, facts, matrix)


def _first_written(
    header: Header,
    files: Mapping[str, str],
    places: Places,
    facts: Facts,
    smaller: Iterable[tuple[Changes, int | None]],
) -> Step:
    """Return the first change that its own settings take, as they are read again."""
    unwritten = ""
    for changes, bound in smaller:
        summary = _summary(_told(facts), changes, bound)
        step = _written(header, files, places, changes, summary, bound)
        told = _told(told_facts(replace(header, argv=step.argv), step.files))
        if all(told.get(key) == value for key, value in changes.items()):
            return step
        unwritten = unwritten or f"{summary}: it could not be written into the run's own settings"
    raise NoStep(unwritten or "nothing smaller fits: `envdoctor profile` may choose otherwise")


def _told(facts: Facts) -> dict[str, str]:
    return {key: found.value for key in KEYS if (found := facts.setting(key))}


def _summary(now: Mapping[str, str], changes: Changes, bound: int | None) -> str:
    moved = [f"{_WORDS[key]} {now.get(key, _UNTOLD.get(key, 'unset'))} → {changes[key]}" for key in changes]
    known = "not predicted: its model or its way of running is not known here"
    return f"{', '.join(moved)} ({known if bound is None else f'at most {bound / GIB:.1f} GiB of a card'})"


_UNTOLD = {"batch": "1", "grad_accum": "1", "grad_ckpt": "false", "liger": "false"}
"""What holds where a setting is silent."""


def _written(
    header: Header,
    files: Mapping[str, str],
    places: Places,
    changes: Changes,
    summary: str,
    bound: int | None,
) -> Step:
    argv = edited_words(header.argv, places, changes)
    texts = {name: (text, edited_text(name, text, places, changes)) for name, text in files.items()}
    changed = {name: pair for name, pair in texts.items() if pair[0] != pair[1]}
    return Step(summary, header.argv, argv, changed, bound)
