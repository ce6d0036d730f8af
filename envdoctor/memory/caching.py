"""torch's caching allocator: which segments it takes of the card for a sequence of requests.

As c10/cuda/CUDACachingAllocator.cpp: requests are rounded to 512 bytes; up to 1 MiB they share segments of
2 MiB, below 10 MiB segments of 20 MiB, and from there on each gets one of its own, a multiple of 2 MiB. The
smallest free block that is large enough serves, of equal ones that of the lowest address; its rest is cut off
where it is of use; neighbours that are free are joined. A segment is given back only when the driver has none
left: then all go that lie free as a whole, and the request is tried once more. The driver hands addresses out
from the top down.

Tens of thousands of requests are played for one answer: so a block is one number, its size before its place,
both in granules, and free blocks are found by their two ends. Small ones, which never meet the others, are
only counted: each as the share of a segment that it takes where it lies with its like.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterable
from copy import copy
from functools import lru_cache
from math import inf

from envdoctor.values import NamedTuple

GRANULE = 512
SMALL = (1 << 20) // GRANULE
SMALL_SEGMENT = (2 << 20) // GRANULE
SHARED = (10 << 20) // GRANULE
SHARED_SEGMENT = (20 << 20) // GRANULE
LARGE_STEP = (2 << 20) // GRANULE
WIDE = (4 << 20) // GRANULE
"""Requests from here on are widened, where they are."""

Block = int
"""A block's size and place, of which the first orders."""
PLACES = 40
PLACE = (1 << PLACES) - 1
CUT = (SMALL + 1) << PLACES
"""What is left of a block from here on is cut off."""
SHARE = (0, *(SMALL_SEGMENT // (SMALL_SEGMENT // size) for size in range(1, SMALL + 1)))
"""What a small request takes of a segment in which as many as fit lie: it stands for the block."""

Events = tuple[tuple[int, int], ...]
"""(slot, granules) takes a block and puts it there, (slot, 0) gives it back, (TOUCHED, granules) does both at
once."""
TOUCHED = -1
FEW, MANY = 12, 40
"""Blocks that lie free at most, and requests at least, where it is looked up whether all lay so before: of
more blocks nearly each state is new, and fewer requests are served as soon."""
SOME = 40
"""Blocks that lie free at most, where it is looked up which of them requests can come to."""


class Led(NamedTuple):
    """Where large requests led: what was taken of the card, and the blocks that lie free and that slots hold,
    from places that were there before."""

    taken: tuple[int, ...]
    free: tuple[tuple[int, int], ...]
    held: tuple[tuple[int, int, int], ...]


Requests = tuple[tuple[int, int, int], ...]
"""Of large blocks: a slot, the least block that serves, and how much less what is left of a block is; twice 0
where the slot's block is given back."""


class Part(NamedTuple):
    """A script's large requests, of which `given` slots were filled by others and `kept` are not given back;
    and what its small ones come to: shares that slots hold, and what is taken then and at most. Segments
    of no more than `total` granules are taken for it, where it is not widened."""

    events: Events
    given: tuple[int, ...]
    kept: tuple[int, ...]
    shares: tuple[tuple[int, Block], ...]
    live: int
    most: int
    total: int
    led: dict[Hashable, Led]
    widths: dict[float, Requests]
    leasts: dict[float, float]

    def requests(self, widened: float) -> Requests:
        """Return the large requests, those from `WIDE` on so many times as large."""
        found = self.widths.get(widened)
        if found is None:
            found = self.widths[widened] = requests_of(self.events, widened)
        return found

    def least(self, widened: float) -> float:
        """Return the least block that serves any of them."""
        found = self.leasts.get(widened)
        if found is None:
            asked = [least for _, least, _ in self.requests(widened) if least]
            found = self.leasts[widened] = min(asked, default=inf)
        return found


def requests_of(events: Iterable[tuple[int, int]], widened: float) -> Requests:
    """Return events of large blocks as they are served."""
    found = []
    for slot, size in events:
        if size >= WIDE and widened > 1:
            size = -(-int(size * GRANULE * widened) // GRANULE)
        least = size << PLACES
        found.append((slot, least, least - size))
    return tuple(found)


class Script:
    """Events that are played many times; slots that others filled with small blocks are told then."""

    __slots__ = ("events", "given", "parts")

    def __init__(self, events: Events) -> None:
        taken = {slot for slot, size in events if size}
        self.events = events
        self.given = [slot for slot, size in events if not size and slot not in taken]
        self.parts: dict[tuple[tuple[int, Block], ...], Part] = {}

    def part(self, blocks: list[Block]) -> Part:
        """Return the requests with what their small ones come to."""
        small = tuple([(slot, block) for slot in self.given if (block := blocks[slot]) <= SMALL])
        if small not in self.parts:
            self.parts[small] = self._part(dict(small))
        return self.parts[small]

    def _part(self, shares: dict[int, Block]) -> Part:
        live, most, large, own = 0, 0, list[tuple[int, int]](), dict[int, Block]()
        for slot, size in self.events:
            if size > SMALL:
                large.append((slot, size))
            elif size:
                most = max(most, live + SHARE[size])
                if slot != TOUCHED:
                    live += SHARE[size]
                    own[slot] = SHARE[size]
            elif slot in own or slot in shares:
                live -= own.pop(slot, 0) or shares[slot]
            else:
                large.append((slot, 0))
        taken = {slot for slot, size in large if size and slot != TOUCHED}
        gone = [slot for slot, size in large if not size]
        given = tuple(slot for slot in gone if slot not in taken)
        kept = tuple(taken.difference(gone))
        total = sum(whole_of(size) for _, size in large if size)
        return Part(tuple(large), given, kept, tuple(own.items()), live, most, total, {}, {}, {})


@lru_cache(maxsize=512)
def script_of(events: Events) -> Script:
    """Return the events as a script, the same one each time."""
    return Script(events)


def granules(size: int) -> int:
    """Return what a request of so many bytes is rounded to."""
    return -(-size // GRANULE)


def whole_of(size: int) -> int:
    """Return the granules of the segment that is taken for a large request."""
    return SHARED_SEGMENT if size < SHARED else -(-size // LARGE_STEP) * LARGE_STEP


def shared(most: int) -> int:
    """Return the granules of the segments in which so many of small requests lie."""
    return -(-most // SMALL_SEGMENT) * SMALL_SEGMENT


class OutOfRoom(Exception):
    """A request that nothing is left for, with all that lies idle given back."""


class CachingAllocator:
    """What is `reserved` of the card; large requests are taken as larger by a share `widened`.

    Of the card no more than `room` bytes are had; a request beyond that raises OutOfRoom.
    """

    __slots__ = (
        "_bottom", "_ending", "_large", "_starting", "_wholes", "_widened", "large", "live", "lost", "most",
        "room", "settled",
    )  # fmt: skip

    def __init__(self, widened: float = 0.0, room: float = inf) -> None:
        self.settled = False  # whether large requests are known to find what they found before
        self.large = 0  # granules of the segments of large requests
        self.live = self.most = 0  # granules of small segments, now and at most
        self.lost = 0  # granules of segments that grow which are never given back, where most is in use
        self.room = room / GRANULE
        self._wholes: dict[int, int] = {}  # segments: where each begins, and its granules
        self._widened = 1 + widened
        self._bottom = PLACE  # of all segments; of one that grows, where what lies free at its end begins
        self._large: list[Block] = []
        self._starting: dict[int, Block] = {}  # free blocks by the place where they begin, and where they end
        self._ending: dict[int, Block] = {}

    def copy(self, room: float) -> CachingAllocator:
        """Return another that holds the same, with so many granules of the card."""
        made = copy(self)
        made.room = room
        made._wholes, made._large = dict(self._wholes), list(self._large)
        made._starting, made._ending = dict(self._starting), dict(self._ending)
        return made

    @property
    def small(self) -> int:
        """Granules of the segments that small requests share."""
        return shared(self.most)

    @property
    def reserved(self) -> int:
        """Bytes of all segments."""
        return (self.large + self.small) * GRANULE

    @property
    def free(self) -> tuple[Block, ...]:
        """What lies free of large blocks, on which what follows depends."""
        return (self._bottom, *self._large)

    def take(self, *sizes: int) -> list[Block]:
        """Return the blocks that serve requests of so many bytes."""
        blocks = [0] * len(sizes)
        events = tuple(enumerate(map(granules, sizes)))
        if self.room < inf:
            self._in_order(events, blocks)
            return blocks
        for slot, size in events:
            if 0 < size <= SMALL:
                blocks[slot] = SHARE[size]
                self.live += SHARE[size]
        self.most = max(self.most, self.live)
        if not self.settled:
            self._serve(requests_of([event for event in events if event[1] > SMALL], self._widened), blocks)
        return blocks

    def give(self, *blocks: Block) -> None:
        """Take blocks back."""
        self.live -= sum(block for block in blocks if block <= SMALL)
        if not self.settled:
            large = [block for block in blocks if block > SMALL]
            self._serve([(slot, 0, 0) for slot in range(len(large))], large)

    def play(self, events: Events, blocks: list[Block]) -> None:
        """Serve requests in their order; `blocks` holds what each slot was given."""
        self.perform(script_of(events), blocks)

    def _in_order(self, events: Iterable[tuple[int, int]], blocks: list[Block]) -> None:
        """Serve requests one by one."""
        for slot, size in events:
            if size > SMALL or (not size and blocks[slot] > SMALL):
                if not self.settled:
                    self._serve(requests_of(((slot, size),), self._widened), blocks)
            elif size:
                share = SHARE[size]
                self.most = max(self.most, self.live + share)
                if slot >= 0:
                    blocks[slot] = share
                    self.live += share
            else:
                self.live -= blocks[slot]

    def _serve(self, requests: Iterable[tuple[int, int, int]], blocks: list[Block]) -> None:
        """Serve large requests. A block that is given back is joined with its free neighbours."""
        starting, ending, free = self._starting, self._ending, self._large
        leave, follow, find, put = ending.pop, starting.pop, bisect_left, insort
        for slot, least, less in requests:
            if not least:
                block = blocks[slot]
                place = block & PLACE
                end = place + (block >> PLACES)
                before, after = leave(place, 0), follow(end, 0)
                if before:
                    del free[find(free, before)]
                    place = before & PLACE
                if after:
                    del free[find(free, after)]
                    end += after >> PLACES
                starting[place] = ending[end] = joined = (end - place) << PLACES | place
                put(free, joined)
                continue
            found = find(free, least)
            if found == len(free):
                block = self._segment(least - less)
                place = block & PLACE
                free.append(block)  # larger than all others
                starting[place] = ending[place + (block >> PLACES)] = block
                found = len(free) - 1
            if slot < 0:
                continue
            block = free[found]
            place = block & PLACE
            del starting[place]
            cut = block - less  # ends where the whole did
            if cut >= CUT:
                if not found or free[found - 1] < cut:
                    free[found] = cut
                else:
                    del free[found]
                    put(free, cut)
                starting[cut & PLACE] = ending[place + (block >> PLACES)] = cut
                block = least | place
            else:
                del free[found], ending[place + (block >> PLACES)]
            blocks[slot] = block

    def perform(self, script: Script, blocks: list[Block]) -> None:
        """Serve a script's requests; `blocks` holds what each slot was given.

        What serves a large one hangs on sizes, on the order of places and on which blocks are neighbours, of
        those that lie free or are given back: where all this is as it was once, so is what follows.
        """
        part = script.part(blocks)
        most = max(self.most, self.live + part.most)
        limited = self.room < inf and not self.settled
        if limited and shared(most) > self.small and self.large + shared(most) + part.total > self.room:
            self._in_order(script.events, blocks)  # what small ones took before decides what is given back
            return
        self.most = most
        self.live += part.live
        for slot, share in part.shares:
            blocks[slot] = share
        if self.settled:
            return
        few = not limited and len(part.events) >= MANY and len(self._large) <= SOME
        free = self._within_reach(part, blocks) if few else self._large
        if not few or len(free) > FEW:
            self._serve(part.requests(self._widened), blocks)
            return
        near = [(block & PLACE, block >> PLACES, n) for n, block in enumerate(free)]
        for n, slot in enumerate(part.given):
            near.append((blocks[slot] & PLACE, blocks[slot] >> PLACES, ~n))
        near.sort()
        end, told = -1, list[int]()
        for place, size, n in near:
            told += (size, n, place == end)
            end = place + size
        state = type(self), self._widened, len(free), tuple(told), end == self._bottom
        marks = [place for place, _, _ in near]
        led = part.led.get(state)
        idle = [] if len(free) == len(self._large) else list(set(self._large).difference(free))
        if led is None:
            part.led[state] = self._lead(part, blocks, marks, idle)
        else:
            self._follow(led, blocks, marks, idle)

    def _within_reach(self, part: Part, blocks: list[Block]) -> list[Block]:
        """Return what lies free and may serve a request, or be joined with what is given back."""
        free = self._large
        if len(free) <= FEW:
            return free
        ends = set[int]()
        for slot in part.given:
            place = blocks[slot] & PLACE
            ends.update((place, place + (blocks[slot] >> PLACES)))
        fits = part.least(self._widened)
        return [
            block
            for block in free
            if block >= fits or block & PLACE in ends or (block & PLACE) + (block >> PLACES) in ends
        ]

    def _lead(self, part: Part, blocks: list[Block], marks: list[int], idle: list[Block]) -> Led:
        """Serve large requests, and return where that leads from those places, but for what stays `idle`."""
        extent = self._extent()
        self._serve(part.requests(self._widened), blocks)
        taken, marks = self._taken(extent, marks)

        def told(block: Block) -> tuple[int, int]:
            n = bisect_right(marks, block & PLACE) - 1
            return n, block - marks[n]

        held = tuple((slot, *told(blocks[slot])) for slot in part.kept)
        free = [block for block in self._large if block not in idle] if idle else self._large
        return Led(taken, tuple(map(told, free)), held)

    def _follow(self, led: Led, blocks: list[Block], marks: list[int], idle: list[Block]) -> None:
        """Do as was done before, from these places."""
        marks = self._take_as(led.taken, marks)
        free = self._large
        free[:] = [block + marks[n] for n, block in led.free]
        if idle:
            free += idle
            free.sort()
        self._starting = {block & PLACE: block for block in free}
        self._ending = {(block & PLACE) + (block >> PLACES): block for block in free}
        for slot, n, block in led.held:
            blocks[slot] = block + marks[n]
        self._used_as(led.taken)

    def _extent(self) -> tuple[int, ...]:
        """How far what is taken of the card reaches."""
        return (len(self._wholes),)

    def _taken(self, extent: tuple[int, ...], marks: list[int]) -> tuple[tuple[int, ...], list[int]]:
        """Return the segments taken since then, and the marks with theirs, which lie before all others."""
        new = list(self._wholes)[extent[0] :]
        return tuple(self._wholes[place] for place in new), [*reversed(new), *marks]

    def _take_as(self, taken: tuple[int, ...], marks: list[int]) -> list[int]:
        """Take such segments, and return the marks with theirs."""
        for whole in taken:
            self.large += whole
            self._bottom -= whole + 1
            self._wholes[self._bottom] = whole
            marks.insert(0, self._bottom)
        return marks

    def _used_as(self, taken: tuple[int, ...]) -> None:
        """Note what is in use after it."""

    def _segment(self, size: int) -> Block:
        whole = whole_of(size)
        if self.large + self.small + whole > self.room:
            self.release()
            if self.large + self.small + whole > self.room:
                raise OutOfRoom
        self.large += whole
        self._bottom -= whole + 1  # a gap: segments are never joined
        self._wholes[self._bottom] = whole
        return whole << PLACES | self._bottom

    def release(self) -> None:
        """Give every segment back that lies free as a whole."""
        for block in [b for b in self._large if self._wholes.get(b & PLACE) == b >> PLACES]:
            place, whole = block & PLACE, block >> PLACES
            self._large.remove(block)
            del self._starting[place], self._ending[place + whole], self._wholes[place]
            self.large -= whole
