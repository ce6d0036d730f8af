"""Two recordings side by side: what differs in command, memory, speed, loss, alarms and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from envdoctor.report.document import Block, Code, Document, Row, Rows, Section, Table, Text
from envdoctor.values import dataclass
from envdoctor.watch.death import Story
from envdoctor.watch.moment import Moment, seconds_a_step
from envdoctor.watch.report import curves, how_it_ended
from envdoctor.watch.words import amount, duration

_MATTERS = 0.02
"""A difference below this share is told as none."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity of both runs, in words and as numbers; None is not known."""

    name: str
    unit: str
    values: tuple[float | None, float | None]
    words: tuple[str, str]

    @property
    def change(self) -> str:
        """How the second differs from the first."""
        first, second = self.values
        if first is None or second is None:
            return "not known of both"
        if first == second or (first and abs(second - first) < _MATTERS * abs(first)):
            return "the same"
        return f"{(second - first) / abs(first):+.0%}" if first else "new"


def compare(first: Story, second: Story) -> list[Measure]:
    """Return what can be measured of both recordings."""
    return [measure for make in (_times, _memory, _cards, _loss) for measure in make(first, second)]


def document(first: Story, second: Story, names: tuple[str, str]) -> Document:
    """Return both recordings as a report."""
    told = [(m.name, *m.words, m.change) for m in compare(first, second)]
    rows = [
        Row(f"{name} {what}", words(story))
        for what, words in (("said", _alarms), ("end", how_it_ended))
        for name, story in zip("AB", (first, second), strict=True)
    ]
    blocks: list[Block] = [Table(("", "A", "B", "B beside A"), tuple(told)), Rows(tuple(rows))]
    if changed := words_that_differ(first.header.argv, second.header.argv):
        blocks.append(Section("What differs in the command", (Code("\n".join(changed), "diff"),)))
    else:
        blocks.append(Text("The commands are the same."))
    for name, story in zip("AB", (first, second), strict=True):
        if story.moments:
            blocks.append(Section(f"Curves of {name}", (Code("\n".join(curves(story))),)))
    return Document(f"A {names[0]}, B {names[1]}", "", tuple(blocks))


def to_json(first: Story, second: Story, names: tuple[str, str]) -> dict[str, object]:
    """Return both recordings' measures."""
    return {
        "schema": "envdoctor.watch-compare/1",
        "recordings": list(names),
        "measures": [
            {"name": m.name, "unit": m.unit, "a": m.values[0], "b": m.values[1]}
            for m in compare(first, second)
        ],
        "alarms": {k: [a.kind for a in s.alarms] for k, s in (("a", first), ("b", second))},
        "command": words_that_differ(first.header.argv, second.header.argv),
        "exit_code": 0,
    }


def words_that_differ(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Return the options that one command has and the other has not, as lines of a difference."""
    ours, theirs = _options(first), _options(second)
    return [f"-{o}" for o in ours if o not in theirs] + [f"+{o}" for o in theirs if o not in ours]


def _options(argv: Sequence[str]) -> list[str]:
    found: list[str] = []
    for word in argv:
        if found and found[-1].startswith("-") and not word.startswith("-") and " " not in found[-1]:
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found


def _pair(name: str, unit: str, values: Sequence[float | None]) -> Measure:
    words = tuple("?" if value is None else _IN_WORDS[unit](value) for value in values)
    return Measure(name, unit, (values[0], values[1]), (words[0], words[1]))


_IN_WORDS: dict[str, Callable[[float], str]] = {
    "s": lambda value: duration(value) if value >= 10 else f"{value:.3g}",
    "MiB": amount,
    "%": lambda value: f"{value:.0f} %",
    "W": lambda value: f"{value:.0f} W",
    "": lambda value: f"{value:.10g}",
}


def _times(*stories: Story) -> Iterator[Measure]:
    yield _pair("time", "s", [s.end.t if s.end else _last(s).t for s in stories])
    yield _pair("steps", "", [_last(s).step for s in stories])
    yield _pair("seconds a step", "s", [seconds_a_step(s.moments) for s in stories])


def _memory(*stories: Story) -> Iterator[Measure]:
    yield _pair("host at most", "MiB", [max((m.host or 0 for m in s.moments), default=None) for s in stories])


def _cards(*stories: Story) -> Iterator[Measure]:
    for index in range(max(max((len(m.cards) for m in s.moments), default=0) for s in stories)):
        held = [[m.cards[index] for m in s.moments if index < len(m.cards)] for s in stories]
        if not any(card.ours != 0 for cards in held for card in cards):
            continue
        yield _pair(f"GPU {index} at most", "MiB", [max((c.top for c in h), default=None) for h in held])
        utils = [[c.util for c in h if c.util is not None] for h in held]
        yield _pair(f"GPU {index} busy", "%", [median(u) if u else None for u in utils])
        power = [[c.power for c in h if c.power is not None] for h in held]
        yield _pair(f"GPU {index} power", "W", [median(p) if p else None for p in power])


def _loss(*stories: Story) -> Iterator[Measure]:
    """The last loss of each, and those at the last step that both reached."""
    yield _pair("last loss", "", [_last_loss(s.moments) for s in stories])
    both = min((_last(s).step or 0 for s in stories), default=0)
    at = [_last_loss([m for m in s.moments if (m.step or 0) <= both]) for s in stories]
    yield _pair("loss where both were", "", at)


def _last(story: Story) -> Moment:
    return story.moments[-1] if story.moments else Moment(0.0)


def _last_loss(moments: Sequence[Moment]) -> float | None:
    return next((m.loss for m in reversed(moments) if m.loss is not None), None)


def _alarms(story: Story) -> str:
    return ", ".join(dict.fromkeys(alarm.kind for alarm in story.alarms)) or "none"
