"""torch's caching allocator: which segments it takes of the card for a sequence of requests.

As c10/cuda/CUDACachingAllocator.cpp: requests are rounded to 512 bytes; up to 1 MiB they share segments of
2 MiB, below 10 MiB segments of 20 MiB, and from there on each gets one of its own, a multiple of 2 MiB. The
smallest free block that is large enough serves, of equal ones that of the lowest address; its rest is cut off
where it is of use; neighbours that are free are joined; a segment is never given back while training goes on.
The driver hands addresses out from the top down.
"""

from __future__ import annotations

from bisect import bisect_left, insort

GRANULE = 512
SMALL = 1 << 20
SMALL_SEGMENT = 2 << 20
SHARED = 10 << 20
SHARED_SEGMENT = 20 << 20
LARGE_STEP = 2 << 20
WIDE = 4 << 20
"""Requests from here on are widened, where they are."""


class Block:
    """A piece of a segment, and its neighbours there."""

    __slots__ = ("after", "before", "free", "place", "size")

    def __init__(self, place: int, size: int) -> None:
        self.place = place
        self.size = size
        self.free = False
        self.before: Block | None = None
        self.after: Block | None = None


Free = list[tuple[int, int, Block]]


class CachingAllocator:
    """Bytes `reserved` of the card; large requests are taken as larger by a share `widened`."""

    __slots__ = ("_bottom", "_large", "_small", "_widened", "reserved")

    def __init__(self, widened: float = 0.0) -> None:
        self.reserved = 0
        self._widened = 1 + widened
        self._bottom = 0
        self._small: Free = []
        self._large: Free = []

    def take(self, requested: int) -> Block:
        """Return the block that serves a request of so many bytes."""
        if requested >= WIDE and self._widened > 1:
            requested = int(requested * self._widened)
        size = -(-requested // GRANULE) * GRANULE
        small = size <= SMALL
        free = self._small if small else self._large
        place = bisect_left(free, (size,))
        block = free.pop(place)[2] if place < len(free) else self._segment(size)
        rest = block.size - size
        if rest > SMALL or (small and rest):
            self._cut(block, size, free)
        block.free = False
        return block

    def _segment(self, size: int) -> Block:
        if size <= SMALL:
            whole = SMALL_SEGMENT
        else:
            whole = SHARED_SEGMENT if size < SHARED else -(-size // LARGE_STEP) * LARGE_STEP
        self.reserved += whole
        self._bottom -= whole
        return Block(self._bottom, whole)

    def _cut(self, block: Block, size: int, free: Free) -> None:
        rest = Block(block.place + size, block.size - size)
        rest.free = True
        rest.before, rest.after = block, block.after
        if block.after is not None:
            block.after.before = rest
        block.after, block.size = rest, size
        insort(free, (rest.size, rest.place, rest))

    def give(self, block: Block) -> None:
        """Take a block back, and join it with its free neighbours."""
        before, after = block.before, block.after
        free = self._small if block.size <= SMALL else self._large
        if before is not None and before.free:
            del free[bisect_left(free, (before.size, before.place))]
            block.place, block.before = before.place, before.before
            block.size += before.size
            if block.before is not None:
                block.before.after = block
        if after is not None and after.free:
            del free[bisect_left(free, (after.size, after.place))]
            block.after = after.after
            block.size += after.size
            if block.after is not None:
                block.after.before = block
        block.free = True
        insort(free, (block.size, block.place, block))
