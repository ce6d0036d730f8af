"""Rows of unlike length: what the caching allocator may reserve for them, and what of that must be had.

A batch is as wide as its longest row. Blocks of one width do not serve a wider one, and what they were cut up
for does not come back whole: each step that is wider than all before it may take new segments beside the old.
When the driver has none left, torch gives those back that lie free as a whole, and asks once more: so a card
may hold far less than what a larger one reserves.
https://github.com/pytorch/pytorch/blob/v2.11.0/c10/cuda/CUDACachingAllocator.cpp
"""

from __future__ import annotations

from functools import lru_cache
from math import inf

from envdoctor.memory.caching import OutOfRoom
from envdoctor.memory.replay import Replay
from envdoctor.memory.run import TrainingRun
from envdoctor.values import NamedTuple

RISING = ((0.77, 0.85, 0.92, 1.0), (0.4, 0.55, 0.7, 0.85, 1.0))
"""Widths that each need more than those before, as shares of the way from the shortest row to the longest: of
600 orders of 20 steps that were drawn by lot, nearly all reserve no more than the worse of these two. A
segment that grows holds no blocks of narrower rows apart: there the first does."""
MIXED = (0.7, 1.0, 0.4, 0.85, 1.0, 0.55, 0.95, 1.0)
"""Widths that come and go, which a card of limited room must hold."""
ROOMIER = 0.05
"""By what share of the bound for rows of one length more room is tried, when it does not do."""
ROOMIEST = 8


class Uneven(NamedTuple):
    """Bytes reserved at most where the card has them, and those without which some order does not run."""

    reserved: int
    needed: int


@lru_cache(maxsize=64)
def play_uneven(run: TrainingRun, workspace: int, upcasts: bool, even: int, enough: float = inf) -> Uneven:
    """Return what orders of widths reserve, for a run whose widest rows alone reserve `even` bytes.

    Of what is needed that passes `enough` only so much is found out.
    """
    from envdoctor.memory.sharded_replay import ShardedReplay

    kind = ShardedReplay if run.parallel == "fsdp" else Replay
    kept = run.expandable_segments or run.parallel == "fsdp"
    needed = inf if kept else _room(run, workspace, upcasts, even, enough)
    limit = enough if needed == inf else inf
    reserved = even
    for order in RISING[: 1 if run.expandable_segments else None]:
        if reserved > limit:
            break
        played = kind(run, workspace, upcasts, widths=widths_of(run, order))
        reserved = max(reserved, played.reserved(limit))
    return Uneven(reserved, int(min(needed, reserved)))


def widths_of(run: TrainingRun, order: tuple[float, ...]) -> tuple[int, ...]:
    """Return the widths in tokens that lie so far from the shortest row to the longest."""
    shortest = run.shortest_row or run.seq
    return tuple(round(shortest + share * (run.seq - shortest)) for share in order)


def _room(run: TrainingRun, workspace: int, upcasts: bool, even: int, enough: float) -> float:
    """Return the least room, no more than is `enough`, in which batches of changing width run through."""
    widths = widths_of(run, MIXED)
    for more in range(ROOMIEST):
        room = int(even * (1 + more * ROOMIER))
        if room > enough:
            break
        try:
            Replay(run, workspace, upcasts, widths=widths, room=room).reserved()
        except OutOfRoom:
            continue
        return room
    return inf
