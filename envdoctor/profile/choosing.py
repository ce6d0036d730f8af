"""From a workload to a profile: the search, the files, our own check of them, and the contract's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from envdoctor.matrix import Matrix, tables
from envdoctor.memory import Constants, read_constants
from envdoctor.profile.emit import emit
from envdoctor.profile.emit.plan import Plan
from envdoctor.profile.keys import Names
from envdoctor.profile.search import Found, find_training
from envdoctor.profile.speed import CardSpeed, card_speed
from envdoctor.profile.workload import Workload
from envdoctor.values import Shown, dataclass

SCHEMA = "envdoctor.profile/1"
PREDICTED: Mapping[str, Any] = {"status": "predicted"}
SPEED_NOTE = (
    "relative_speed compares a simple cost model's samples a second (arithmetic and traffic, or launches,"
    " whichever is slower, and transfers) with the chosen setting's; nothing was timed"
)


@dataclass(frozen=True, slots=True)
class Profile(Shown):
    """A search's answer with the files that say it to a framework, and what measuring it found."""

    found: Found
    files: Mapping[str, str]
    validated: Mapping[str, Any] = field(default_factory=lambda: PREDICTED)

    @property
    def exit_code(self) -> int:
        """0 when something fits, else 1."""
        return 0 if self.found.choice else 1

    def to_json(self) -> dict[str, Any]:
        """Return the contract's `envdoctor.profile/1` object."""
        found = self.found
        return {
            "schema": SCHEMA,
            "model": found.work.model or found.work.shape.name,
            "gpus": [c.name for c in found.work.cards],
            "usable_bytes": found.work.room,
            "choice": found.choice.to_json() if found.choice else None,
            "memory": _memory(found, found.work.card_bytes),
            "rejected": [rejection.to_json() for rejection in found.rejected],
            "validated": dict(self.validated),
            "files": dict(self.files),
            "notes": list(found.notes),
            "speed": SPEED_NOTE,
            "search": {"considered": found.considered, "predicted": found.predicted},
        }


def _memory(found: Found, gpu_bytes: int) -> dict[str, Any] | None:
    if found.need is None:
        return None
    memory = found.need.prediction.to_json(gpu_bytes)
    memory["device_bytes"] = found.need.device_bytes
    memory["fits"] = found.need.device_bytes <= found.work.room
    if found.need.engine_bytes:
        memory["components"].append({"name": "vLLM beside it", "bytes": found.need.engine_bytes})
    return memory


def constants_of(work: Workload, matrix: Matrix) -> Constants:
    """Return the memory room's constants for the examined versions and card."""
    capability = work.card.capability
    pair = (capability.major, capability.minor) if capability else None
    return read_constants(matrix.rows(tables.MemoryRow), work.stack.versions, pair)


def speed_of(work: Workload, matrix: Matrix) -> CardSpeed:
    """Return the speed figures of the workload's smallest card."""
    return card_speed(matrix.rows(tables.SpeedRow), work.card.capability)


def find_profile(work: Workload, matrix: Matrix) -> Found:
    """Return the fastest setting that fits the workload's cards, or why nothing does."""
    constants = constants_of(work, matrix)
    if work.task == "serve":
        from envdoctor.profile.serving import find_serving

        return find_serving(work, constants)
    return find_training(work, constants, speed_of(work, matrix))


def write_profile(found: Found, framework: str, matrix: Matrix) -> Profile:
    """Return the profile with the framework's files; raises InputError when it cannot express the setting."""
    if found.choice is None:
        return Profile(found, {})
    return Profile(found, emit(framework, Plan(found.choice, found.work, Names(matrix, found.work.stack))))
