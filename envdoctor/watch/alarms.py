"""What moments give cause to say: each judge reads them one by one, live or from a recording alike."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from envdoctor.watch.cards import THROTTLES
from envdoctor.watch.foretelling import Foreteller
from envdoctor.watch.histories import Pace
from envdoctor.watch.losses import Losses
from envdoctor.watch.moment import Alarm, Card, Expectation, Header, Link, Moment
from envdoctor.watch.words import amount, duration

_HANG_S, _HANG_STOPPED_S = 45.0, 10.0
_HANG_STEPS = 15
"""Usual steps (and longest gaps so far, three times) without one before a run may hang."""
_ASIDE_S = 600.0
_START_S = 300.0
_BUSY, _IDLE = 97, 3
_IDLE_CORES = 0.3
_SLOW_S = 60.0
_SLOW_CLOCK = 0.88
_THROTTLED = 0x08 | 0x20 | 0x40 | 0x80
_DISK_MIB = 1024
_SHM_MIB = 64


class Judge:
    """All judges together; an alarm is said once, and again when it has become much nearer."""

    def __init__(self, header: Header) -> None:
        self._foreteller = Foreteller(header)
        self._judges = (self._foreteller, _Hang(), _Slow(), _Links(), Losses(), _Disk(), _Spread())

    def expect(self, expectation: Expectation) -> None:
        """Judge by this prediction from now on."""
        self._foreteller.expect(expectation)

    def feed(self, moment: Moment) -> Iterator[Alarm]:
        """Yield what this moment gives cause to say."""
        for judge in self._judges:
            yield from judge.feed(moment)


@dataclass(slots=True)
class _Hang:
    """No step and no word for long, while the cards do nothing or nothing but wait."""

    pace: Pace = field(default_factory=Pace)
    steps: int = 0
    last: int | None = None
    at: float = 0.0
    longest: float = 0.0
    gaps: deque[float] = field(default_factory=lambda: deque(maxlen=50))
    said: bool = False

    def feed(self, moment: Moment) -> Iterator[Alarm]:
        if moment.step is None:
            yield from self._before_the_first(moment)
            return
        if moment.step != self.last:
            self._moved(moment)
            return
        waited = moment.t - self.at
        if self.said or self.steps < 3 or waited < self._patience(moment):
            return
        if moment.silent is not None and moment.silent < waited / 2 and not moment.stopped:
            return
        why = _why_nothing_moves(moment)
        if why:
            self.said = True
            usual = median(self.gaps) if self.gaps else 0.0
            text = (
                f"no step for {duration(waited)} (usually {usual:.1f} s), the last was {moment.step}: {why}"
            )
            yield Alarm(moment.t, "HANG", text)

    def _before_the_first(self, moment: Moment) -> Iterator[Alarm]:
        """Say that a start stands still; a server, which waits for requests, names no such phase."""
        if self.said or moment.phase not in ("loading", "training") or (moment.silent or 0.0) < _START_S:
            return
        used = [card for card in moment.cards if _in_use(card.ours, card.used)]
        if used and all((card.util or 0) <= _IDLE for card in used) and (moment.cores or 0.0) < _IDLE_CORES:
            self.said = True
            text = (
                f"no word for {duration(moment.silent or 0.0)} before the first step, while cards and"
                " processors rest: ranks that wait for one another to start, the network or a lock"
            )
            yield Alarm(moment.t, "HANG", text)

    def _moved(self, moment: Moment) -> None:
        if self.last is not None and moment.step is not None and moment.step > self.last:
            gap = moment.t - self.at
            self.steps += 1
            if self.steps > 1:
                self.gaps.append(gap / (moment.step - self.last))
                self.longest = max(self.longest, gap)
        self.last, self.at, self.said = moment.step, moment.t, False

    def _patience(self, moment: Moment) -> float:
        usual = median(self.gaps) if self.gaps else 1.0
        if moment.stopped:
            return max(_HANG_STOPPED_S, 5 * usual)
        least = max(_HANG_S, _HANG_STEPS * usual, 3 * self.longest)
        aside = moment.phase in ("evaluation", "saving", "generating", "loading")
        return max(_ASIDE_S, least) if aside else least


def _why_nothing_moves(moment: Moment) -> str:
    """Return what the cards and processes do meanwhile; empty where they work."""
    if moment.stopped:
        pids = ", ".join(map(str, moment.stopped))
        return f"process {pids} is stopped (kill -CONT {moment.stopped[0]} lets it go on)"
    utils = [card.util for card in moment.cards if card.util is not None and _in_use(card.ours, card.used)]
    idle = [i for i, util in enumerate(utils) if util <= _IDLE]
    busy = [i for i, util in enumerate(utils) if util >= _BUSY]
    if idle and busy:
        return (
            f"GPU {_list(idle)} at rest while GPU {_list(busy)} runs at 100 %: the rank of GPU {_list(idle)}"
            " does not take part in a collective that the others wait in"
        )
    if utils and len(busy) == len(utils):
        return "every GPU at 100 %: a kernel that does not end, or a collective that all wait in"
    if (not utils or len(idle) == len(utils)) and (moment.cores is None or moment.cores < _IDLE_CORES):
        return "the GPUs and the processors are at rest: it waits for another process, the network or a lock"
    return ""


def _in_use(ours: int | None, used: int) -> bool:
    return (used if ours is None else ours) > 600


def _list(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


@dataclass(slots=True)
class Lasting:
    """What has been so of a card for a while without a break; each is told once."""

    since: dict[tuple[str, int], float] = field(default_factory=dict)
    said: set[tuple[str, int]] = field(default_factory=set)

    def is_so(self, kind: str, index: int, now: bool, t: float) -> bool:
        """Take in whether it is so now; True once it has lasted."""
        key = (kind, index)
        if not now:
            self.since.pop(key, None)
            return False
        if t - self.since.setdefault(key, t) < _SLOW_S or key in self.said:
            return False
        self.said.add(key)
        return True

    def forget(self, index: int) -> None:
        """Begin anew with a card."""
        self.since = {key: t for key, t in self.since.items() if key[1] != index}


@dataclass(slots=True)
class _Slow:
    """Cards that are held back, and one that is slower than its neighbours."""

    lasting: Lasting = field(default_factory=Lasting)
    fastest: dict[int, int] = field(default_factory=dict)

    def feed(self, moment: Moment) -> Iterator[Alarm]:
        clocks = [c.clock for c in moment.cards if c.clock and _works(c)]
        usual = median(clocks) if len(clocks) > 1 else None
        for index, card in enumerate(moment.cards):
            if not card.clock or not _works(card):
                self.lasting.forget(index)
                continue
            fastest = self.fastest[index] = max(self.fastest.get(index, 0), card.clock)
            held = bool(card.throttle & _THROTTLED) and card.clock < _SLOW_CLOCK * fastest
            if self.lasting.is_so("THROTTLE", index, held, moment.t):
                why = ", ".join(told for bit, told in THROTTLES.items() if card.throttle & bit)
                warm = f" at {card.temperature} °C" if card.temperature else ""
                text = f"GPU {index} is held back to {card.clock} of {fastest} MHz{warm}: {why}"
                yield Alarm(moment.t, "THROTTLE", text, card=index)
            behind = usual is not None and card.clock < 0.8 * usual
            if self.lasting.is_so("STRAGGLER", index, behind, moment.t):
                text = f"GPU {index} runs at {card.clock} MHz, the others at {usual:.0f}: all wait for it"
                yield Alarm(moment.t, "STRAGGLER", text, card=index)


def _works(card: Card) -> bool:
    return card.ours != 0 and (card.util or 0) > 50


_REPLAYS, _MINUTE_S = 8, 60.0
"""PCIe packets repeated within a minute of which more are a fault: the default of DCGM's health check."""


@dataclass(slots=True)
class _Links:
    """A card whose link to the host is narrower than it might be, repeats itself, or whose memory errs."""

    first: dict[int, Link] = field(default_factory=dict)
    replays: dict[int, deque[tuple[float, int]]] = field(default_factory=dict)
    lasting: Lasting = field(default_factory=Lasting)
    said: set[tuple[str, int]] = field(default_factory=set)

    def feed(self, moment: Moment) -> Iterator[Alarm]:
        for link in moment.links:
            if link.card >= len(moment.cards) or moment.cards[link.card].ours == 0:
                continue
            first = self.first.setdefault(link.card, link)
            for kind, what, text in (
                ("LINK", "narrow", self._narrow(link, moment)),
                ("LINK", "replays", self._repeated(link, moment.t)),
                ("LINK", "nvlink", _nvlink_errors(first, link)),
                ("ECC", "ecc", _memory_errors(first, link)),
            ):
                if text and (what, link.card) not in self.said:
                    self.said.add((what, link.card))
                    yield Alarm(moment.t, kind, f"GPU {link.card}'s {text}", card=link.card)

    def _narrow(self, link: Link, moment: Moment) -> str:
        """Say that a link is below what card and machine allow while the card works: at rest it may be."""
        pairs = ((link.generation, link.generation_most), (link.width, link.width_most))
        less = any(now is not None and most and now < most for now, most in pairs)
        works = _works(moment.cards[link.card])
        if not self.lasting.is_so("LINK", link.card, less and works, moment.t):
            return ""
        (generation, best), (width, widest) = pairs
        return (
            f"PCIe link runs at generation {generation} ×{width} of {best} ×{widest}"
            " while it works: what goes to and from the host is slow"
        )

    def _repeated(self, link: Link, t: float) -> str:
        if link.replays is None:
            return ""
        told = self.replays.setdefault(link.card, deque())
        told.append((t, link.replays))
        while t - told[0][0] > _MINUTE_S:
            told.popleft()
        count = link.replays - told[0][1]
        if count <= _REPLAYS:
            return ""
        return f"PCIe link repeated {count} packets within a minute: a slot, riser or cable that is not sound"


def _nvlink_errors(first: Link, link: Link) -> str:
    count = _risen(first.nvlink_errors, link.nvlink_errors)
    return f"NVLink had {count} replays or recoveries since the start: it should have none" if count else ""


def _memory_errors(first: Link, link: Link) -> str:
    count = _risen(first.ecc_uncorrected, link.ecc_uncorrected)
    errors = "an error" if count == 1 else f"{count} errors"
    return f"memory had {errors} that ECC could not correct: do not trust what came after" if count else ""


def _risen(first: int | None, now: int | None) -> int:
    return 0 if first is None or now is None else max(0, now - first)


@dataclass(slots=True)
class _Disk:
    """A disk that will not hold the next checkpoint, or nearly nothing more."""

    said: set[str] = field(default_factory=set)
    before_save: int | None = None
    checkpoint: int = 0
    saving: bool = False

    def feed(self, moment: Moment) -> Iterator[Alarm]:
        if moment.disk is None:
            return
        if moment.phase != "saving":
            if self.saving and self.before_save is not None:
                self.checkpoint = max(self.checkpoint, self.before_save - moment.disk)
            self.before_save = moment.disk
        self.saving = moment.phase == "saving"
        if moment.disk < _DISK_MIB:
            yield from self._say("disk", moment, f"{amount(moment.disk)} of disk are left")
        elif self.checkpoint > 256 and moment.disk < self.checkpoint and not self.saving:
            text = f"the next checkpoint will not fit: the last took {amount(self.checkpoint)},"
            yield from self._say("checkpoint", moment, f"{text} {amount(moment.disk)} of disk are left")
        if moment.shm is not None and moment.shm < _SHM_MIB:
            yield from self._say(
                "shm", moment, f"{amount(moment.shm)} of /dev/shm are left: loaders will die"
            )

    def _say(self, key: str, moment: Moment, text: str) -> Iterator[Alarm]:
        if key not in self.said:
            self.said.add(key)
            yield Alarm(moment.t, "DISK", text)


_SPREAD = 0.15
"""What is reserved beyond all that was ever allocated counts from this share of the card on.

And once more is lost than is left: before, the allocator takes anew what it cannot use.
"""


@dataclass(slots=True)
class _Spread:
    """Memory that the allocator holds in pieces too small to use, where it tells of itself."""

    said: bool = False

    def feed(self, moment: Moment) -> Iterator[Alarm]:
        if moment.reserved is None or moment.allocated is None or not moment.cards or self.said:
            return
        if moment.step is None or moment.step < 5:
            return
        gap = moment.reserved - moment.allocated
        fullest = max(moment.cards, key=lambda card: card.used / card.total)
        left = fullest.total - fullest.used
        if gap > max(_SPREAD * fullest.total, 0.25 * moment.reserved, left):
            self.said = True
            text = (
                f"{amount(gap)} of {amount(moment.reserved)} that the allocator reserved were never"
                " given out: fragmentation (PYTORCH_ALLOC_CONF=expandable_segments:True mends it)"
            )
            yield Alarm(moment.t, "FRAGMENTATION", text)
