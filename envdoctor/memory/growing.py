"""torch's caching allocator with expandable segments, which grow at their end.

Each pool is one segment that grows at its end, by whole steps of 2 or 20 MiB; any
rest is cut off, and the free block at the end, which could grow, serves last. So it does not matter how large
that one is: where it begins is all that is kept of it. When the driver has none left, each whole step that
lies free is given back, wherever it is: what is `lost` then is what shares a step with a block in use.
https://github.com/pytorch/pytorch/blob/v2.11.0/c10/cuda/CUDACachingAllocator.cpp
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from math import inf

from envdoctor.memory.caching import PLACE, PLACES, SHARED_SEGMENT, Block, CachingAllocator

NEAR = 0.99
"""Share of the height from which on it is looked at what lies between blocks."""


class GrowingAllocator(CachingAllocator):
    """With expandable segments: what lies free before the end is in `_large`, all behind `_bottom` is."""

    __slots__ = ("_high", "_highest", "_lives", "_peak")

    def __init__(self, widened: float = 0.0) -> None:
        super().__init__(widened)
        self._bottom = self._highest = 0
        self._lives = self._peak = self._high = 0  # granules that are in use: now, lately at most, and ever

    def _extent(self) -> tuple[int, int, int, int]:
        extent = self._bottom, self._highest, self._lives, self._peak
        self._highest = self._peak = 0
        return extent

    def _taken(self, extent: tuple[int, ...], marks: list[int]) -> tuple[tuple[int, ...], list[int]]:
        """Return how far the end moved since then and what was reached, of places and of what is in use, and
        the marks with that end."""
        bottom, highest, lives, peak = extent
        taken = self._bottom - bottom, self._highest - bottom, self._lives - lives, self._peak - lives
        self._reach(highest)
        self._peak = max(self._peak, peak)
        return taken, [*marks, bottom]

    def _take_as(self, taken: tuple[int, ...], marks: list[int]) -> list[int]:
        bottom = self._bottom
        self._bottom = bottom + taken[0]
        self._reach(bottom + taken[1])
        return [*marks, bottom]

    def _used_as(self, taken: tuple[int, ...]) -> None:
        self._use(self._lives + taken[2], self._lives + taken[3])

    def _reach(self, place: int) -> None:
        self._highest = max(self._highest, place)
        self.large = -(-self._highest // SHARED_SEGMENT) * SHARED_SEGMENT

    def _use(self, lives: int, peak: int) -> None:
        """Note what is in use, and near its height what of the steps that hold it cannot be given back."""
        self._lives = lives
        self._peak = max(self._peak, peak)
        if peak >= NEAR * self._high:
            self._high = max(self._high, peak)
            lost = sum(map(_beside_steps, self._large)) + -self._bottom % SHARED_SEGMENT
            self.lost = max(self.lost, lost - (self._high - peak))

    def _serve(self, requests: Iterable[tuple[int, int, int]], blocks: list[Block]) -> None:
        """Serve large requests, as the other does."""
        starting, ending, free = self._starting, self._ending, self._large
        bottom, highest, lives, peak = self._bottom, self._highest, self._lives, 0
        leave, follow, find, put = ending.pop, starting.pop, bisect_left, insort
        for slot, least, less in requests:
            if not least:
                block = blocks[slot]
                place = block & PLACE
                size = block >> PLACES
                end = place + size
                lives -= size
                if before := leave(place, 0):
                    del free[find(free, before)]
                    place = before & PLACE
                if end == bottom:
                    if before:
                        del starting[place]
                    bottom = place
                    continue
                if after := follow(end, 0):
                    del free[find(free, after)]
                    end += after >> PLACES
                starting[place] = ending[end] = joined = (end - place) << PLACES | place
                put(free, joined)
                continue
            size = least - less
            if lives + size > peak:
                peak = lives + size
            if slot >= 0:
                lives += size
            found = find(free, least)
            if found == len(free):
                end = bottom + size
                if end > highest:
                    highest = end
                if slot >= 0:
                    blocks[slot] = least | bottom
                    bottom = end
            elif slot >= 0:
                block = free[found]
                place = block & PLACE
                del starting[place]
                cut = block - less
                if cut > PLACE:
                    if not found or free[found - 1] < cut:
                        free[found] = cut
                    else:
                        del free[found]
                        put(free, cut)
                    starting[cut & PLACE] = ending[place + (block >> PLACES)] = cut
                else:
                    del free[found], ending[place + (block >> PLACES)]
                blocks[slot] = least | place
        self._bottom = bottom
        self._reach(highest)
        self._use(lives, peak)


def _beside_steps(block: Block) -> int:
    """Granules of a block that share their step with a neighbour."""
    place, size = block & PLACE, block >> PLACES
    whole = (place + size) // SHARED_SEGMENT - -(-place // SHARED_SEGMENT)
    return size - max(0, whole) * SHARED_SEGMENT


def allocator_of(expandable: bool, widened: float = 0.0, room: float = inf) -> CachingAllocator:
    """Return the allocator of a run; one that grows is asked for no limited room."""
    return GrowingAllocator(widened) if expandable else CachingAllocator(widened, room)
