"""Layers alike, one after the other, as they are played into the allocator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from envdoctor.memory.caching import TOUCHED, Block, CachingAllocator, Events, Script, script_of
from envdoctor.memory.programs import Program
from envdoctor.values import NamedTuple

T = TypeVar("T")
ABRIDGED = 2
"""Layers alike of which only what stays is placed, between two that are played whole."""
DEEP = 14
"""Of a deep model more are: one for so many of its layers."""
EMPTY = Script(())


class Turns:
    """Layers alike that are played one after the other.

    Once two of them have asked for as much of the card, only what stays of the next few is placed; then one
    is played whole again, since blocks that are kept use up what was free, and so is the last. Where all are
    to be played `whole`, what passes may lie in the way of what stays.
    """

    def __init__(self, heap: CachingAllocator, layers: int = 0, whole: bool = False) -> None:
        self.heap = heap
        self.whole = whole
        self.abridged = max(ABRIDGED, layers // DEEP)
        self.events: Events = ()
        self.script = self.stays = EMPTY
        self.asked: int | None = None
        self.left = 0

    def play(self, events: Events, blocks: list[Block], last: bool) -> None:
        """Play a layer."""
        if events is not self.events:
            self.events, self.script, self.asked, self.left = events, script_of(events), None, 0
            self.stays = self.script if self.whole else script_of(lasting(events))
        if self.whole:
            self.heap.perform(self.script, blocks)
            return
        before = self.heap.large
        whole = last or not self.left
        self.heap.perform(self.script if whole else self.stays, blocks)
        asked = self.heap.large - before
        left = self.abridged if whole else self.left - 1
        self.left = left if asked == self.asked else 0
        self.asked = asked


def paired(things: Sequence[T]) -> Iterator[tuple[T, T | None]]:
    """Yield each with the one that follows it."""
    yield from zip(things, (*things[1:], None), strict=True)


def lasting(events: Events) -> Events:
    """Return the events without the blocks that are taken and given back within them."""
    taken, given = ({slot for slot, size in events if bool(size) is takes} for takes in (True, False))
    passing = taken & given | {TOUCHED}
    return tuple(event for event in events if event[0] not in passing)


class Frame(NamedTuple):
    """A program with the blocks of one call of it."""

    program: Program
    blocks: list[Block]


def frame_of(program: Program, given: Block) -> Frame:
    """Return a program whose input is a block that is there."""
    blocks = [given] * program.slots
    return Frame(program, blocks)
