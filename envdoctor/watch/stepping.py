"""The next setting of a run that ran out of a card's memory, as a change of its own command and files.

What is trained stays as it is: the method, the length and the rows of an optimizer step. Only micro batch,
accumulation and checkpointing move, in the order of the modelled speed, to the first setting whose predicted
bound fits; where the run cannot be predicted, one step down, and it is said that nothing was predicted.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from envdoctor.errors import EnvdoctorError, Unavailable
from envdoctor.facts import Facts
from envdoctor.facts.numbers import whole_number
from envdoctor.facts.quantities import GIB
from envdoctor.files import replace_file
from envdoctor.matrix import Matrix, load_matrix, tables
from envdoctor.values import dataclass
from envdoctor.watch.places import Place, edited_text, edited_words, places_of, read_text
from envdoctor.watch.told import config_files, told_facts, trainer_named

if TYPE_CHECKING:
    from envdoctor.memory import TrainingRun
    from envdoctor.watch.moment import Header, Moment

_SAFER = 0.9
"""Of the bound of a setting that ran out although it should have fitted: the next one's is below this."""
_CHECKPOINTS = {"llamafactory": True, "ms-swift": True, "trl": True}
"""Frameworks that checkpoint where their settings are silent: the defaults of their arguments."""
BATCH, ACCUMULATION, CHECKPOINTING = "batch", "grad_accum", "grad_ckpt"
_WORDS = {BATCH: "micro batch", ACCUMULATION: "accumulation", CHECKPOINTING: "checkpointing"}


@dataclass(frozen=True, slots=True)
class Setting:
    """The three settings that may move."""

    batch: int
    accumulation: int
    checkpointing: bool

    def told(self) -> dict[str, str]:
        """Return them under their common keys."""
        flag = str(self.checkpointing).lower()
        return {BATCH: str(self.batch), ACCUMULATION: str(self.accumulation), CHECKPOINTING: flag}


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


def next_step(header: Header, moment: Moment | None) -> Step:
    """Return the next setting of a run that ran out of memory in `moment`; raises NoStep."""
    matrix = load_matrix()
    files = {str(path): read_text(path) for path in config_files(header)}
    places = tuple(places_of(header, files, matrix))
    if not any(place.key == BATCH for place in places):
        raise NoStep("the micro batch is named neither on the command line nor in a file that it names")
    facts = told_facts(header)
    now = _setting(facts)
    for wanted, bound in _wanted(header, moment, facts, matrix, now):
        step = _written(header, files, places, now, wanted, bound)
        if _setting(told_facts(replace(header, argv=step.argv), step.files)) == wanted:
            return step
        raise NoStep(f"{_summary(now, wanted, bound)}: it could not be written into the run's own settings")
    raise NoStep("no micro batch fits, with checkpointing either: `envdoctor profile` may choose otherwise")


def _setting(facts: Facts) -> Setting:
    told = {key: found.value for key in _WORDS if (found := facts.setting(key))}
    usual = any(_CHECKPOINTS.get(s.framework or "", False) for s in facts.settings)
    flag = told.get(CHECKPOINTING)
    batch = whole_number(told.get(BATCH)) or 1
    return Setting(
        batch, whole_number(told.get(ACCUMULATION)) or 1, usual if flag is None else flag == "true"
    )


def _wanted(
    header: Header, moment: Moment | None, facts: Facts, matrix: Matrix, now: Setting
) -> Iterator[tuple[Setting, int | None]]:
    """Yield the settings to go down to, the best first, with their predicted bounds."""
    from envdoctor.rules.base import Skip

    try:
        yield from _predicted(header, moment, facts, matrix, now)
    except (Skip, EnvdoctorError):
        yield from ((setting, None) for setting in _below(now))


def _below(now: Setting) -> Iterator[Setting]:
    """Yield the settings that take less, the nearest first."""
    for batch, accumulation in _splits(now):
        if batch < now.batch:
            yield replace(now, batch=batch, accumulation=accumulation)
    if not now.checkpointing:
        yield replace(now, checkpointing=True)


def _splits(now: Setting) -> list[tuple[int, int]]:
    """Return the micro batches that keep the rows of an optimizer step, the largest first."""
    rows = now.batch * now.accumulation
    return [(batch, rows // batch) for batch in range(now.batch, 0, -1) if rows % batch == 0]


def _predicted(
    header: Header, moment: Moment | None, facts: Facts, matrix: Matrix, now: Setting
) -> Iterator[tuple[Setting, int | None]]:
    from envdoctor.memory import predict
    from envdoctor.profile.speed import card_speed, seconds_per_sample
    from envdoctor.profile.workload import Choice
    from envdoctor.rules.settings_fit import run_of_trainer, stated_run
    from envdoctor.rules.view import View
    from envdoctor.target.cards import declare_gpus

    run, card = stated_run(View(declare_gpus(facts, header.cards[:1], matrix), matrix))
    run = _run(run_of_trainer(run, trainer_named(header), matrix), now)
    speed = card_speed(matrix.rows(tables.SpeedRow), card.gpu.compute_capability)
    died_with = predict(run, card.constants).device_bytes
    room = min(card.usable - _held_by_others(moment), died_with * _SAFER)

    def seconds(setting: Setting) -> float:
        told = {name: getattr(run, name) for name in ("method", "parallel", "gpus", "seq", "liger", "optim")}
        choice = Choice(
            "sft", **told, batch=setting.batch, grad_accum=setting.accumulation,
            grad_ckpt=setting.checkpointing,
        )  # fmt: skip
        return seconds_per_sample(run.shape, choice, speed)

    flags = (True,) if now.checkpointing else (False, True)
    others = [Setting(*split, flag) for split in _splits(now) for flag in flags]
    for setting in sorted((s for s in others if s != now), key=seconds):
        bound = predict(_run(run, setting), card.constants).device_bytes
        if bound <= room:
            yield setting, bound


def _run(run: TrainingRun, setting: Setting) -> TrainingRun:
    return replace(run, batch=setting.batch, grad_accum=setting.accumulation, grad_ckpt=setting.checkpointing)


def _held_by_others(moment: Moment | None) -> int:
    """Return what other processes hold of the card that they hold most of, in bytes."""
    return max((card.others or 0 for card in moment.cards), default=0) << 20 if moment else 0


def _summary(now: Setting, wanted: Setting, bound: int | None) -> str:
    old, new = now.told(), wanted.told()
    moved = [f"{_WORDS[key]} {old[key]} → {new[key]}" for key in _WORDS if old[key] != new[key]]
    known = "not predicted: its model or its way of training is not known here"
    return f"{', '.join(moved)} ({known if bound is None else f'at most {bound / GIB:.1f} GiB of a card'})"


def _written(
    header: Header,
    files: Mapping[str, str],
    places: Sequence[Place],
    now: Setting,
    wanted: Setting,
    bound: int | None,
) -> Step:
    old, new = now.told(), wanted.told()
    changes = {key: new[key] for key in _WORDS if old[key] != new[key]}
    argv = edited_words(header.argv, places, changes)
    texts = {name: (text, edited_text(name, text, places, changes)) for name, text in files.items()}
    changed = {name: pair for name, pair in texts.items() if pair[0] != pair[1]}
    return Step(_summary(now, wanted, bound), header.argv, argv, changed, bound)
