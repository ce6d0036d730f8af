"""Which worker runs what, on which cards: pure decisions made before and while smokes run."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from envdoctor.smokes.catalogue import OpEntry

MAX_WORKERS = 6


@dataclass(frozen=True, slots=True)
class Request:
    """One op on given cards (none: the CPU)."""

    op: OpEntry
    gpus: tuple[int, ...]

    @property
    def name(self) -> str:
        """The op's name, with the cards where they are a pair: `p2p.copy[0-1]`."""
        if self.op.gpus == "pair" and len(self.gpus) == 2:
            return f"{self.op.name}[{'-'.join(map(str, self.gpus))}]"
        return self.op.name

    @property
    def gpu(self) -> int | None:
        """The card it runs on, if that is one."""
        return self.gpus[0] if self.op.gpus == "each" and self.gpus else None


def lanes(ops: Iterable[OpEntry], workers: int) -> list[tuple[OpEntry, ...]]:
    """Return the ops by lane, evened out over at most `workers`, those with imports of their own first."""
    by_lane: dict[str, list[OpEntry]] = {}
    for op in ops:
        by_lane.setdefault(op.lane, []).append(op)
    count = max(1, min(workers, MAX_WORKERS, len(by_lane)))
    merged: list[list[OpEntry]] = [[] for _ in range(count)]
    for lane in sorted(by_lane.values(), key=len, reverse=True):
        min(merged, key=len).extend(lane)
    merged.sort(key=lambda lane: -max((len(op.needs) for op in lane), default=0))
    return [tuple(lane) for lane in merged if lane]


def requests(ops: Sequence[OpEntry], cards: Sequence[int]) -> list[Request]:
    """Return what to run on these cards (none: the CPU), an op that wants a pair for each pair."""
    return [Request(op, gpus) for op in ops for gpus in _card_groups(op.gpus, tuple(cards))]


def _card_groups(wanted: str, cards: tuple[int, ...]) -> list[tuple[int, ...]]:
    if not cards or wanted == "all":
        return [cards]
    if wanted == "pair":
        return list(itertools.combinations(cards, 2)) or [cards]
    return [(card,) for card in cards]


def gpu_expected(variables: dict[str, str], root: Path = Path("/")) -> bool:
    """True when this machine shows an NVIDIA card that the environment does not hide."""
    if variables.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1", "NoDevFiles"):
        return False
    nodes = itertools.chain(
        root.glob("dev/nvidia[0-9]*"), root.glob("proc/driver/nvidia/gpus/*"), root.glob("dev/dxg")
    )
    return any(True for _ in nodes)
