"""What a training run may be changed to so that it takes less of a card, the best first.

Micro batch, accumulation, checkpointing and, where they are installed, Liger's kernels: in the order of the
modelled speed those whose predicted bound fits. Then what `profile` would choose as well but is not the same
arithmetic or needs the host: states of 8 bits, an optimizer on the host. A run that cannot be predicted goes
one step down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from envdoctor.errors import EnvdoctorError
from envdoctor.facts import Facts
from envdoctor.facts.quantities import MIB, whole_number
from envdoctor.matrix import Matrix, tables
from envdoctor.target.stack import Stack
from envdoctor.values import dataclass
from envdoctor.watch.moment import Header, Moment, held_by_others
from envdoctor.watch.places import Changes
from envdoctor.watch.told import stack_of_run, trainer_named

if TYPE_CHECKING:
    from envdoctor.memory import TrainingRun

_SAFER = 0.9
"""Of the bound of a setting that ran out although it should have fitted: the next one's is below this."""
_EIGHT_BITS = "adamw_8bit"


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings that may move."""

    batch: int
    accumulation: int
    checkpointing: bool
    optim: str = "adamw_torch_fused"
    liger: bool = False
    offload: bool = False

    def told(self) -> dict[str, str]:
        """Return them under their common keys."""
        flags = {"grad_ckpt": self.checkpointing, "liger": self.liger, "offload_optimizer": self.offload}
        return {
            "batch": str(self.batch), "grad_accum": str(self.accumulation), "optim": self.optim,
            **{key: str(flag).lower() for key, flag in flags.items()},
        }  # fmt: skip

    def changed_to(self, other: Setting) -> Changes:
        """Return what differs in another."""
        now, new = self.told(), other.told()
        return {key: new[key] for key in now if now[key] != new[key]}


def smaller_trainings(
    header: Header, moment: Moment | None, facts: Facts, matrix: Matrix
) -> Iterator[tuple[Changes, int | None]]:
    """Yield the changes to go down by, with their predicted bounds in bytes (None: not predicted)."""
    from envdoctor.rules.base import Skip

    now = _setting_of(facts, matrix)
    try:
        yield from _predicted(header, moment, facts, matrix, now)
    except (Skip, EnvdoctorError):
        yield from ((now.changed_to(setting), None) for setting in _below(now))


def _setting_of(facts: Facts, matrix: Matrix) -> Setting:
    """Return what a run's settings say; what they do not is as its framework has it."""

    def told(key: str) -> str | None:
        found = facts.setting(key)
        return found.value if found else None

    named = (matrix.frameworks.get(s.framework or "") for s in facts.settings)
    usual = any(row.checkpoints for row in named if row)
    flag = told("grad_ckpt")
    return Setting(
        whole_number(told("batch")) or 1,
        whole_number(told("grad_accum")) or 1,
        usual if flag is None else flag == "true",
        told("optim") or "adamw_torch_fused",
        told("liger") == "true",
        told("offload_optimizer") == "true",
    )


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
) -> Iterator[tuple[Changes, int | None]]:
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
    room = min(card.usable - held_by_others(moment), died_with * _SAFER)

    def cost(setting: Setting) -> tuple[bool, bool, float, int]:
        told = {name: getattr(run, name) for name in ("method", "parallel", "gpus", "seq")}
        choice = Choice(
            "sft", **told, batch=setting.batch, grad_accum=setting.accumulation,
            grad_ckpt=setting.checkpointing, optim=setting.optim, liger=setting.liger,
            offload_optimizer=setting.offload,
        )  # fmt: skip
        seconds = seconds_per_sample(run.shape, choice, speed)
        return setting.optim != now.optim, setting.offload, seconds, len(now.changed_to(setting))

    may_offload = _may_offload(facts, run, moment)
    others = _others(now, run, stack_of_run(header), may_offload)
    for setting in sorted((s for s in others if s != now), key=cost):
        bound = predict(_run(run, setting), card.constants).device_bytes
        if bound <= room:
            yield now.changed_to(setting), bound


def _others(now: Setting, run: TrainingRun, stack: Stack, may_offload: bool) -> Iterator[Setting]:
    """Yield every setting to choose among."""
    flags = (True,) if now.checkpointing else (False, True)
    liger = (False, True) if not now.liger and stack.has("liger-kernel") else (now.liger,)
    plain = run.method == "full" and run.parallel in ("none", "ddp") and now.optim.startswith("adamw_torch")
    optims = (now.optim, _EIGHT_BITS) if plain and stack.has("bitsandbytes") else (now.optim,)
    offload = (False, True) if may_offload else (now.offload,)
    for (batch, accumulation), flag, fused, optim, host in product(
        _splits(now), flags, liger, optims, offload
    ):
        yield Setting(batch, accumulation, flag, optim, fused, host)


def _may_offload(facts: Facts, run: TrainingRun, moment: Moment | None) -> bool:
    """True where DeepSpeed's file says that the optimizer is not on the host, which has the room for it."""
    from envdoctor.memory.layout import parameters
    from envdoctor.memory.sharding import host_bytes

    told = facts.setting("offload_optimizer")
    if told is None or told.value != "false" or run.parallel not in ("zero2", "zero3"):
        return False
    needed = host_bytes(parameters(run.shape), parameters(run.shape), True, False)
    return moment is not None and moment.room is not None and needed <= moment.room * MIB


def _run(run: TrainingRun, setting: Setting) -> TrainingRun:
    return replace(
        run, batch=setting.batch, grad_accum=setting.accumulation, grad_ckpt=setting.checkpointing,
        optim=setting.optim, liger=setting.liger, offload_optimizer=setting.offload,
    )  # fmt: skip
