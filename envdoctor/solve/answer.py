"""The answer as a value: pins with reasons, two sets, or a conflict with its causes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envdoctor.solve.goal import Goal, Picks
from envdoctor.solve.nodes import TORCH
from envdoctor.solve.reasons import Explained, Pin
from envdoctor.solve.requests import Carried
from envdoctor.solve.variants import followers
from envdoctor.target.resolve import Target
from envdoctor.values import Shown, dataclass

SCHEMA = "envdoctor.pins/1"
UNKNOWN = (
    "A release's requirements are not known (`envdoctor matrix update --package NAME` reads what an index"
    " has of them; --allow-source takes a release as if it required nothing)."
)
"""How an answer opens that is neither a solution nor a conflict."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One of the things that together allow no answer; `kind` is request, target, metadata or row."""

    kind: str
    text: str
    source: str

    def as_json(self) -> dict[str, str]:
        """Return the cause as the pins' JSON shows it."""
        return {"kind": self.kind, "text": self.text, "source": self.source}


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A cause to give up, and the versions of what was asked for that it would give."""

    drop: str
    gives: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """Return the relaxation as the pins' JSON shows it."""
        return {"drop": self.drop, "gives": dict(self.gives)}


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it was asked for, where it stands, and what would do in its place; "": it is to go."""

    old: str
    new: str
    source: str

    def as_json(self) -> dict[str, str]:
        """Return the line as the pins' JSON shows it."""
        return {"old": self.old, "new": self.new, "source": self.source}


@dataclass(frozen=True, slots=True)
class Change:
    """An installed package whose version changes."""

    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class PinSet(Shown):
    """What `pin` answers. `status` is solved, split (then `sets` holds two answers), conflict or unknown.

    Unknown: an answer may exist, but a release's requirements could not be read; `causes` says whose.
    """

    status: str
    target: Target
    asked: tuple[str, ...]
    pins: tuple[Pin, ...] = ()
    changes: tuple[Change, ...] = ()
    causes: tuple[Cause, ...] = ()
    also: tuple[tuple[Cause, ...], ...] = ()
    """Other conflicts, each with its causes, that stand when one of `causes` is given up."""
    relaxations: tuple[Relaxation, ...] = ()
    lines: tuple[Line, ...] = ()
    """The smallest change to what was asked for that would do."""
    sets: tuple[PinSet, ...] = ()
    notes: tuple[str, ...] = ()
    carried: tuple[Carried, ...] = ()
    options: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    """Packages that others require and of which nothing is known."""
    looked_up: tuple[tuple[str, str], ...] = ()
    """Packages read from the index because the facts do not cover them, with the day of each."""
    besides: tuple[str, ...] = ()
    """What was asked for by the code alone."""

    @property
    def unjudged(self) -> tuple[Carried, ...]:
        """The lines asked for of which something is not known."""
        return tuple(one for one in self.carried if not one.judged)

    @property
    def indexes(self) -> tuple[str, ...]:
        """The variants' indexes that the pins need beside the default one."""
        return tuple(sorted({pin.index for pin in self.pins if pin.index}))

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the contract."""
        return {
            "schema": SCHEMA,
            "status": self.status,
            "sets": [one.as_json() for one in self.sets],
            "target": self.target.as_json(),
            "pins": [
                {"name": p.name, "version": p.version, "index": p.index, "because": list(p.because)}
                for p in self.pins
            ],
            "changes": [{"name": c.name, "from": c.old, "to": c.new} for c in self.changes],
            "conflict": {
                "causes": [cause.as_json() for cause in self.causes],
                "relaxations": [relaxation.as_json() for relaxation in self.relaxations],
                "lines": [line.as_json() for line in self.lines],
                "also": [[cause.as_json() for cause in causes] for causes in self.also],
            },
            "notes": [*self.gaps, *self.notes],
            "carried": [one.as_json() for one in self.carried],
        }


def explained(goal: Goal, picks: Picks) -> Explained:
    """Return an answer explained; it is kept, since who looks for gaps in it and who writes it both ask."""
    last: Explained | None = goal.context.explained
    if last is None or last.goal is not goal or last.picks is not picks:
        last = goal.context.explained = Explained(goal, picks)
    return last


def solved(goal: Goal, picks: Picks) -> PinSet:
    """Return the answer for picks."""
    told = explained(goal, picks)
    direct = {request.name for request in goal.requests if request.line}
    pins = tuple(pin for pin in told.pins() if pin.name not in direct)
    installed = goal.context.installed
    changes = [
        Change(pin.name, installed[pin.name], pin.label)
        for pin in pins
        if pin.name in installed and not goal_keeps(goal, pin, picks)
    ]
    return PinSet(
        "solved",
        goal.context.target,
        asked_words(goal),
        pins,
        tuple(changes),
        notes=told.notes(),
        gaps=told.gaps(),
        carried=goal.carried,
        options=goal.options,
        looked_up=tuple(sorted(goal.coverage.read.items())) if goal.coverage else (),
    )


def asked_words(goal: Goal) -> tuple[str, ...]:
    """Return the requests of a goal as text, each once."""
    return tuple(dict.fromkeys(str(request) for request in goal.requests if not request.line))


def goal_keeps(goal: Goal, pin: Pin, picks: Picks) -> bool:
    """True when a pin is what is installed."""
    node = goal.context.node(pin.name)
    stands = node is not None and bool(node.installed >> picks.bits[pin.name] & 1)
    follows = pin.name in followers(goal.context.matrix, "same")
    return stands and (not follows or _fits_torch(goal, pin, picks))


def _fits_torch(goal: Goal, pin: Pin, picks: Picks) -> bool:
    """False for a companion of torch that is built for another CUDA than the torch that comes in."""
    torch = goal.context.node(TORCH) if TORCH in picks.bits else None
    if torch is None or torch.builds is None or torch.installed >> picks.bits[TORCH] & 1:
        return True
    build, label = torch.builds[picks.bits[TORCH]], goal.context.installed[pin.name].partition("+")[2]
    return build.answers(label) if label else build.variant is None
