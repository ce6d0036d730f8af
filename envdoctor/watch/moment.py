"""What a recording consists of: moments a second apart or more, alarms, telling log lines, the end.

Memory is in MiB and times are in seconds since the start: a day must fit into 20 MiB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, field
from typing import Any

from envdoctor.values import dataclass

SCHEMA = "envdoctor.watch/1"


@dataclass(frozen=True, slots=True)
class Card:
    """One card: memory used now and at most since the last moment, in all and by this run; MiB, %, W, MHz.

    `ours` is None where the driver's process numbers are not this machine's, as in a container.
    """

    used: int
    top: int
    total: int
    ours: int | None = None
    util: int | None = None
    power: int | None = None
    clock: int | None = None
    throttle: int = 0
    temperature: int | None = None

    @property
    def others(self) -> int | None:
        """What is used and not by this run."""
        return None if self.ours is None else max(0, self.used - self.ours)


@dataclass(frozen=True, slots=True)
class Link:
    """What joins a card to the rest, and its memory's errors: MiB/s, counts since the driver was loaded.

    None is what the card does not tell.
    """

    card: int
    generation: int | None = None
    """Of PCIe, now and at most with this card in this machine."""
    generation_most: int | None = None
    width: int | None = None
    width_most: int | None = None
    sent: int | None = None
    received: int | None = None
    replays: int | None = None
    nvlink_sent: int | None = None
    nvlink_received: int | None = None
    nvlink_errors: int | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """What was read up to one time. None is not known."""

    t: float
    step: int | None = None
    of: int | None = None
    loss: float | None = None
    phase: str = ""
    part: tuple[int, int] | None = None
    """How far an evaluation or another inner loop is."""
    host: int | None = None
    """Memory of the run's processes, without mapped files."""
    room: int | None = None
    """Host memory that can still be had."""
    cores: float | None = None
    processes: int | None = None
    disk: int | None = None
    shm: int | None = None
    silent: float | None = None
    """Seconds since it last said something; None where its output is not read."""
    allocated: int | None = None
    """What torch's allocator gave out at most so far, in the process that reserved most (`--inside`)."""
    reserved: int | None = None
    """What it has taken of its cards."""
    nan: bool | None = None
    """True once a loss or a gradient was no number."""
    stopped: tuple[int, ...] | None = None
    """Processes of the run that are stopped."""
    cards: tuple[Card, ...] = ()
    links: tuple[Link, ...] = ()
    """Those that were read anew: each card's every ten seconds or more."""
    same_loss: int | None = None
    """Reports in a row of one loss, to the last of four digits or more; from `STILL` on."""
    no_gradient: int | None = None
    """Reports in a row of a gradient of 0; from `STILL` on."""


STILL = 10


def held_by_others(moment: Moment | None) -> int:
    """Return what other processes hold of the card that they hold most of, in bytes."""
    return max((card.others or 0 for card in moment.cards), default=0) << 20 if moment else 0


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that is coming or has come, in a sentence; `eta_s` is how long until then."""

    t: float
    kind: str
    text: str
    eta_s: float | None = None
    step: int | None = None
    """The step at which it is expected."""
    margin: int | None = None
    """How many steps sooner or later that may be."""
    card: int | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the largest step should take of a card, MiB, and for what run that was predicted."""

    t: float
    longest: int
    what: str = ""


@dataclass(frozen=True, slots=True)
class Stack:
    """Where a process stood: its frames, the innermost first, or why they are not known."""

    pid: int
    rank: int | None = None
    frames: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Stacks:
    """Where the ranks of a run that hangs stood, and what NCCL told of them."""

    t: float
    ranks: tuple[Stack, ...]
    notes: tuple[str, ...] = ()
    behind: tuple[int, ...] = ()
    """Ranks whose flight recorder ended with an earlier collective than the others'."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A telling line of the log."""

    t: float
    text: str


@dataclass(frozen=True, slots=True)
class End:
    """How the command ended; `text` says who sent the signal, and what the kernel tells of it."""

    t: float
    code: int | None
    signal: int | None
    text: str = ""
    oom_kills: int = 0
    max_rss: int | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """What is watched, on which cards, and what it should need (MiB by phase)."""

    argv: tuple[str, ...] = ()
    started: str = ""
    cwd: str = ""
    pid: int = 0
    rank: int | None = None
    host: str = ""
    bound: str = ""
    cards: tuple[str, ...] = ()
    tool: str = ""
    expected: Mapping[str, Any] = field(default_factory=dict)
    """The terms of an expectation that was there from the start."""
    unread: tuple[str, ...] = ()
    """What could not be read, and why."""


Line = Header | Moment | Alarm | Expectation | Stacks | LogLine | End

_STACK = ("pid", "rank", "frames", "why")
_SHORT = {
    "step": "step", "of": "of", "loss": "loss", "phase": "phase", "part": "part", "host": "host",
    "room": "room", "cores": "cores", "processes": "n", "disk": "disk", "shm": "shm", "silent": "silent",
    "allocated": "alloc", "reserved": "reserved", "nan": "nan", "stopped": "stopped",
    "same_loss": "same_loss", "no_gradient": "no_gradient",
}  # fmt: skip


def to_json(line: Line) -> dict[str, Any]:
    """Return a line's plain terms; what is not known is left out."""
    match line:
        case Header():
            return {"schema": SCHEMA, **_told(line, Header)}
        case Moment():
            return _moment_json(line)
        case Alarm():
            told = {"t": _time(line.t), "alarm": line.kind, "text": line.text, "eta_s": line.eta_s}
            return {**told, **_some({"step": line.step, "margin": line.margin, "card": line.card})}
        case Expectation():
            return {"t": _time(line.t), "expected": {"longest": line.longest, "what": line.what}}
        case Stacks():
            ranks = [_some({name: getattr(s, name) for name in _STACK}) for s in line.ranks]
            return {
                "t": _time(line.t),
                "stacks": ranks,
                **_some({"notes": line.notes, "behind": line.behind}),
            }
        case LogLine():
            return {"t": _time(line.t), "log": line.text}
        case End():
            return {"t": _time(line.t), "end": _some(
                {"code": line.code, "signal": line.signal, "text": line.text or None,
                 "oom_kills": line.oom_kills or None, "max_rss": line.max_rss}
            )}  # fmt: skip


def from_json(told: Mapping[str, Any]) -> Line | None:
    """Return the line that these terms tell; None for one of a kind that is not known.

    Raises ValueError, TypeError or KeyError where they are malformed.
    """
    if "schema" in told:
        return _header(told)
    t = float(told["t"])
    if "alarm" in told:
        return Alarm(
            t, str(told["alarm"]), str(told["text"]), told.get("eta_s"), told.get("step"),
            told.get("margin"), told.get("card"),
        )  # fmt: skip
    if "expected" in told:
        return Expectation(t, int(told["expected"]["longest"]), str(told["expected"].get("what", "")))
    if "stacks" in told:
        ranks = tuple(_stack(stack) for stack in told["stacks"])
        late = tuple(int(rank) for rank in told.get("behind", ()))
        return Stacks(t, ranks, tuple(str(note) for note in told.get("notes", ())), late)
    if "log" in told:
        return LogLine(t, str(told["log"]))
    if "end" in told:
        return End(t, **{"code": None, "signal": None, **told["end"]})
    return _moment(t, told)


def _stack(told: Mapping[str, Any]) -> Stack:
    rank = told.get("rank")
    frames = tuple(str(frame) for frame in told.get("frames", ()))
    return Stack(int(told["pid"]), None if rank is None else int(rank), frames, str(told.get("why", "")))


def _header(told: Mapping[str, Any]) -> Header:
    if told["schema"] != SCHEMA:
        raise ValueError(f"schema {told['schema']!r} is not {SCHEMA}")
    names = Header.__dataclass_fields__.keys() & told.keys()
    terms: dict[str, Any] = {n: tuple(v) if isinstance(v := told[n], list) else v for n in names}
    return Header(**terms)


def _told(line: Any, kind: Any) -> dict[str, Any]:
    return _some({name: getattr(line, name) for name in kind.__dataclass_fields__})


def _some(terms: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in terms.items() if value not in (None, "", (), {})}


def _moment_json(moment: Moment) -> dict[str, Any]:
    told: dict[str, Any] = {"t": _time(moment.t)}
    for name, short in _SHORT.items():
        value = getattr(moment, name)
        if value not in (None, "", ()):
            told[short] = round(value, 4) if isinstance(value, float) else value
    if moment.cards:
        told["cards"] = [_card_json(card) for card in moment.cards]
    if moment.links:
        told["links"] = [_short(astuple(link), 1) for link in moment.links]
    return told


def _card_json(card: Card) -> list[int | None]:
    fields: list[int | None] = [
        card.used, card.top, card.total, card.ours, card.util, card.power, card.clock,
        card.throttle or None, card.temperature,
    ]  # fmt: skip
    return _short(fields, 3)


def _short(fields: Sequence[int | None], least: int) -> list[int | None]:
    """Return the fields but for those at the end that tell nothing: a reader fills them in."""
    end = max((i + 1 for i, field in enumerate(fields) if field is not None), default=least)
    return list(fields[: max(least, end)])


def seconds_a_step(moments: Sequence[Moment]) -> float | None:
    """Return the seconds between the first and the last step, for each; None where none was seen to pass."""
    stepped = [m for m in moments if m.step is not None]
    if not stepped or stepped[-1].step == stepped[0].step:
        return None
    return (stepped[-1].t - stepped[0].t) / ((stepped[-1].step or 0) - (stepped[0].step or 0))


def _moment(t: float, told: Mapping[str, Any]) -> Moment:
    known = {name: told[short] for name, short in _SHORT.items() if short in told}
    if "part" in known:
        done, whole = known["part"]
        known["part"] = (int(done), int(whole))
    if "stopped" in known:
        known["stopped"] = tuple(int(pid) for pid in known["stopped"])
    cards = tuple(_card(fields) for fields in told.get("cards", ()))
    return Moment(t, **known, cards=cards, links=tuple(_link(fields) for fields in told.get("links", ())))


def _link(fields: Sequence[int | None]) -> Link:
    if not fields or fields[0] is None or not all(f is None or isinstance(f, int) for f in fields):
        raise ValueError("a link without its card")
    return Link(fields[0], *fields[1:])


def _card(fields: Sequence[int | None]) -> Card:
    if len(fields) < 3 or not all(isinstance(f, int) for f in fields[:3]):
        raise ValueError("a card without its memory")
    if len(fields) > 7 and fields[7] is None:
        fields = [*fields[:7], 0, *fields[8:]]
    return Card(*fields)  # type: ignore[arg-type]


def _time(t: float) -> float:
    return round(t, 1)
