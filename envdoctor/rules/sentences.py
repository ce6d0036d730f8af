"""Running text in which nothing was found is no clean bill: what it asks or tells was not judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envdoctor.commands import commands
from envdoctor.facts import NOT_JUDGED
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import SENTENCES
from envdoctor.rules.told import written_finding
from envdoctor.rules.view import View


def _ways_to_ask(view: View) -> tuple[Remedy, ...]:
    """Return the commands that answer what people ask of a card."""
    names = [gpu.name for gpu in view.gpus.get() or () if gpu.name]
    card = names[0] if names else "NAME"
    driver = view.driver().get()
    engines = (name for name, row in view.matrix.frameworks.items() if row.role == "engine")
    engine = next((name for name in engines if view.installed(name)), None)
    asked = (engine,) if engine else ("torch", "transformers")
    pin = " ".join(("envdoctor pin", *("{}" for _ in asked), "--gpu {}"))
    return (
        Remedy(
            "Which releases work together on a card (and under a driver) is asked with pin.",
            commands(pin + " --driver {}", *asked, card, driver) if driver else commands(pin, *asked, card),
        ),
        Remedy(
            "Whether a run fits its memory, with memory or profile.",
            commands("envdoctor memory --model MODEL --method qlora --gpu {}", card),
        ),
    )


def find_sentences(view: View, findings: Sequence[Finding]) -> Iterable[Finding]:
    """Yield one note where a person's sentences stand in the text and no finding answers them."""
    told = next((note for note in view.facts.notes if note.startswith(NOT_JUDGED)), None)
    if any(f.severity is not Severity.NOTE for f in findings):
        return
    if written := written_finding(view):
        yield written
        return
    if told is None or view.facts.unread:
        return
    place, _, quoted = told.removeprefix(NOT_JUDGED).partition(": ")
    yield Finding(
        id=SENTENCES,
        severity=Severity.NOTE,
        summary="nothing wrong was found in what is judged; what the text asks or tells in sentences is not",
        cause="Of running text only versions, cards, settings, commands and words of trouble are read. If"
        " something fails, the error's last lines and the versions (`pip list`, `nvidia-smi`) show what.",
        evidence=(Evidence("text", quoted, place),),
        remedies=_ways_to_ask(view),
        certainty=Certainty.CERTAIN,
    )
