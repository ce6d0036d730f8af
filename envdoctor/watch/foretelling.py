"""Memory foretold: what grows and will not fit, from moments alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from envdoctor.watch.histories import CardHistory, History, Pace
from envdoctor.watch.moment import Alarm, Card, Expectation, Header, Moment
from envdoctor.watch.trend import Growth, chance_of_passing
from envdoctor.watch.words import amount, duration

USABLE = 0.985
"""What CUDA offers of a card's memory."""
_FARTHEST = 1.2
"""A growth is followed ahead by at most this many times what was seen of it."""
_FLOOR = 0.004
_FLOOR_MIB = 48.0
"""What is no growth yet, as a share of what there is to fill and in MiB."""
_SETTLED = 3
"""Moments after the first step that are not judged: optimizer states and caches come in."""
_WITHOUT_STEPS_S = 60.0
_LIKELY = 0.9
_OVER = 1.1
"""How far a predicted step must pass the card before that is said: a prediction may be off."""
_MOST_SAID = 6
_NEARLY_S = 5.0
"""An end that was said to be so near is not said again for a while."""
_ASIDE = {"loading", "evaluation", "saving", "generating"}


@dataclass(slots=True)
class Said:
    """What was said last of one thing, so that it is said again only when it has changed."""

    eta_s: float = float("inf")
    at: float = 0.0
    count: int = 0

    def again(self, t: float, eta_s: float) -> bool:
        """True when this is new, four times nearer than when it was last said, or comes much sooner."""
        left = self.eta_s - (t - self.at)
        if self.count and eta_s > self.eta_s / 4 and eta_s > 0.6 * left:
            return False
        if self.count and self.eta_s < _NEARLY_S and t - self.at < _WITHOUT_STEPS_S:
            return False
        self.eta_s, self.at, self.count = eta_s, t, self.count + 1
        return self.count <= _MOST_SAID


class Foreteller:
    """Judges the memory of the host and of each card."""

    def __init__(self, header: Header) -> None:
        longest = header.expected.get("longest")
        self._expected = Expectation(0.0, int(longest), "") if longest else None
        self._host = History()
        self._inner: dict[str, History] = {}
        self._cards: dict[int, CardHistory] = {}
        self._said: dict[str, Said] = {}
        self._pace = Pace()
        self._since: float | None = None
        self._stepped = False

    def expect(self, expectation: Expectation) -> None:
        """Judge by this prediction from now on."""
        self._expected = expectation

    def feed(self, moment: Moment) -> Iterator[Alarm]:
        """Yield what this moment makes plain."""
        self._pace.feed(moment)
        if not self._is_settled(moment):
            self._note_rows(moment)
            return
        yield from self._judge_host(moment)
        for index, card in enumerate(moment.cards):
            if card.ours != 0:  # a card that the run does not use is others' alone
                yield from self._judge_card(index, card, moment)

    def _is_settled(self, moment: Moment) -> bool:
        if moment.step and not self._stepped:
            self._stepped, self._since = True, moment.t
        if self._since is None and moment.step is None and moment.t > _WITHOUT_STEPS_S:
            self._since = moment.t
        return self._since is not None and moment.t > self._since + _SETTLED

    def _judge_host(self, moment: Moment) -> Iterator[Alarm]:
        if moment.host is None or moment.room is None:
            return
        limit = float(moment.host + moment.room)
        for growth, where in self._grown("host", self._host, moment, moment.host, limit):
            rate = f"host memory grows {amount(growth.slope)} {self._per(where)}"
            yield from self._foretell("HOST-LEAK", rate, growth, limit - self._host.excursion, moment, where)

    def _note_rows(self, moment: Moment) -> None:
        """Note maxima of quick steps, which are many before anything else is judged."""
        for index, card in enumerate(moment.cards):
            if moment.step is not None and card.ours != 0 and moment.phase not in _ASIDE:
                history = self._cards.setdefault(index, CardHistory())
                history.take_record(_most(card), moment.step - self._pace.first)

    def _judge_card(self, index: int, card: Card, moment: Moment) -> Iterator[Alarm]:
        history = self._cards.setdefault(index, CardHistory())
        limit = card.total * USABLE
        ours = card.used if card.ours is None else card.ours
        most = _most(card)
        yield from self._neighbour(index, card, history, moment)
        mine = limit - (card.others or 0)
        for growth, where in self._grown(f"card {index}", history.ours, moment, ours, mine, most):
            rate = f"memory of GPU {index} grows {amount(growth.slope)} {self._per(where)}"
            yield from self._foretell(
                "OOM-FORETOLD", rate, growth, mine - history.ours.excursion, moment, where, index
            )
        yield from self._longest_rows(index, history, most, mine, moment)

    def _per(self, where: str) -> str:
        return {"step": "a step", "part": "a batch of this evaluation"}.get(where, "a second")

    def _grown(
        self, name: str, history: History, moment: Moment, now: float, limit: float, most: float | None = None
    ) -> Iterator[tuple[Growth, str]]:
        """Take the reading and yield the growths that it ends, with the x that they are over."""
        floor = max(_FLOOR_MIB, _FLOOR * limit)
        if moment.phase in _ASIDE:
            history.stand_out(now if most is None else most)
            yield from self._grown_inside(name, moment, now, floor)
            return
        self._inner.pop(name, None)
        where = "step" if self._pace.by_steps else "time"
        x = float(moment.step or 0) if where == "step" else moment.t
        new = history.add(x, now)
        if most is not None:
            history.excursion = max(history.excursion, 0.0)
        for growth in history.growths(new, floor):
            yield growth, where

    def _grown_inside(
        self, name: str, moment: Moment, now: float, floor: float
    ) -> Iterator[tuple[Growth, str]]:
        if moment.part is None:
            return
        history = self._inner.setdefault(name, History())
        if history.tiers[0] and moment.part[0] < history.tiers[0][-1][0]:
            history = self._inner[name] = History()
        for growth in history.growths(history.add(float(moment.part[0]), now), floor):
            yield growth, "part"

    def _foretell(
        self, kind: str, rate: str, growth: Growth, limit: float, moment: Moment, where: str,
        card: int | None = None,
    ) -> Iterator[Alarm]:  # fmt: skip
        ahead, soonest, latest = growth.until(limit)
        if ahead > _FARTHEST * growth.span:
            return
        if where == "part" and moment.part is not None:
            at = moment.part[0] + ahead
            if at > moment.part[1]:
                return
            text = f"out of memory at about batch {at:.0f} of {moment.part[1]} of this {moment.phase}: {rate}"
            eta = ahead * self._pace.part_s
            yield from self._say(f"{kind} part {card}", Alarm(moment.t, kind, text, round(eta, 1), card=card))
            return
        if where == "time":
            text = f"out of memory in about {duration(ahead)} (±{duration((latest - soonest) / 2)}): {rate}"
            yield from self._say(f"{kind} {card}", Alarm(moment.t, kind, text, round(ahead, 1), card=card))
            return
        step = (moment.step or 0) + ahead
        if moment.of is not None and step > moment.of:
            return
        margin = max(1, round((latest - soonest) / 2))
        text = f"out of memory at about step {step:.0f} (±{margin}): {rate}"
        eta = round(ahead * self._pace.step_s, 1)
        yield from self._say(f"{kind} {card}", Alarm(moment.t, kind, text, eta, round(step), margin, card))

    def _say(self, key: str, alarm: Alarm) -> Iterator[Alarm]:
        if self._said.setdefault(key, Said()).again(alarm.t, alarm.eta_s or 0.0):
            yield alarm

    def _say_once(self, key: str, alarm: Alarm) -> Iterator[Alarm]:
        if key not in self._said:
            yield from self._say(key, alarm)

    def _longest_rows(
        self, index: int, history: CardHistory, most: float, limit: float, moment: Moment
    ) -> Iterator[Alarm]:
        """Foretell from maxima that go on rising that one of the rows to come will be too long."""
        if moment.phase in _ASIDE or not self._pace.by_steps or moment.step is None:
            return
        seen = history.take_record(most, moment.step - self._pace.first)
        ahead = (moment.of or 4 * moment.step) - moment.step
        if not seen or most > limit or f"OOM-FORETOLD {index}" in self._said:
            return  # what others took is said of them, and a growth of its own
        chance = chance_of_passing(history.records, max(1, moment.step - self._pace.first), limit, ahead)
        expected = self._expected
        if expected is not None and expected.longest > _OVER * limit and history.rows_differ:
            text = (
                f"out of memory when a row of the longest comes: GPU {index} then needs about"
                f" {amount(expected.longest)} of {amount(limit)} ({expected.what}); so far {amount(most)}"
            )
            yield from self._say_once(f"rows {index}", Alarm(moment.t, "OOM-FORETOLD", text, card=index))
        elif chance >= _LIKELY:
            text = (
                f"out of memory is likely ({chance:.0%}) before the last step: the longest rows so far took"
                f" GPU {index} to {amount(most)} of {amount(limit)}, and longer ones go on coming"
            )
            yield from self._say_once(f"rows {index}", Alarm(moment.t, "OOM-FORETOLD", text, card=index))

    def _neighbour(self, index: int, card: Card, history: CardHistory, moment: Moment) -> Iterator[Alarm]:
        others = card.others
        if others is None:
            return
        if history.others_first is None:
            history.others_first = others
        came = others - history.others_first
        free = card.total * USABLE - card.used
        least = max(1024.0, 0.02 * card.total)
        if came > least and free < max(0.1 * card.total, 1.2 * history.swing(card)):
            text = (
                f"another process took {amount(came)} of GPU {index} since the start;"
                f" {amount(max(0, free))} are left"
            )
            yield from self._say_once(f"neighbour {index}", Alarm(moment.t, "NEIGHBOUR", text, card=index))
        for growth in history.others.growths(history.others.add(moment.t, others), least / 4):
            ahead, _, _ = growth.until(card.total * USABLE - (card.ours or 0))
            if ahead <= _FARTHEST * growth.span and came > least / 4:
                text = (
                    f"another process on GPU {index} grows {amount(growth.slope * 60)} a minute:"
                    f" nothing is left in about {duration(ahead)}"
                )
                yield from self._say(
                    f"neighbour {index}", Alarm(moment.t, "NEIGHBOUR", text, round(ahead, 1), card=index)
                )


def _most(card: Card) -> int:
    """Return what the run held of a card at most since the last moment, MiB."""
    return card.top if card.ours is None else max(card.ours, card.top - (card.others or 0))
