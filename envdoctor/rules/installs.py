"""What the environment's own files show damaged: a lost interpreter, broken and doubled installations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envdoctor.commands import pip_install
from envdoctor.facts import Distribution
from envdoctor.findings import Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.view import View

SOURCE = "https://packaging.python.org/en/latest/specifications/recording-installed-packages/"
VENV = "https://docs.python.org/3/library/venv.html"
SHOWN = 8


def check_installs(view: View) -> Iterable[Finding]:
    """Tell what is damaged about the environment itself, whatever versions it holds."""
    environment = view.facts.environment
    if not environment.distributions and not environment.problems:
        raise Skip("no environment was looked at")
    damaged = [one for one in environment.distributions.values() if one.problems]
    told = {f"{one.name}: {text}" for one in damaged for text in one.problems}
    others = [text for text in environment.problems if text not in told]
    gone = [text for text in others if "interpreter" in text and "is gone" in text]
    yield from _gone(gone)
    yield from _damaged(damaged)
    yield from _odd([text for text in others if text not in gone])


def _gone(texts: list[str]) -> Iterator[Finding]:
    if texts:
        yield Finding(
            id="INTERPRETER-GONE",
            severity=Severity.ERROR,
            summary="The interpreter of this virtual environment is gone: nothing in it starts.",
            cause="A virtual environment borrows the interpreter it was made from; that was moved or lost.",
            evidence=tuple(Evidence("environment", text, "its files") for text in texts),
            remedies=(
                Remedy("Make the environment again with a Python that is there, and install into it anew."),
            ),
            sources=(VENV,),
        )


def _damaged(damaged: list[Distribution]) -> Iterator[Finding]:
    if damaged:
        wanted = [f"{d.name}=={d.version}" if d.version else d.name for d in damaged[:SHOWN]]
        again = pip_install(*wanted, options="--force-reinstall --no-deps")
        yield Finding(
            id="INSTALL-DAMAGED",
            severity=Severity.WARNING,
            summary=f"Installed, but not whole: {_some([one.name for one in damaged])}.",
            cause="Their files do not match what an installer leaves: an installation or removal was cut "
            "short, or two installers wrote over each other.",
            evidence=tuple(Evidence(d.name, "; ".join(d.problems), d.source) for d in damaged[:SHOWN]),
            remedies=(Remedy("Install them again over what is there.", again),),
            sources=(SOURCE,),
        )


def _odd(texts: list[str]) -> Iterator[Finding]:
    if texts:
        yield Finding(
            id="INSTALL-ODD",
            severity=Severity.NOTE,
            summary=f"The packages folders hold what does not belong together ({len(texts)}).",
            cause="Doubled packages hide one another in the order of the import path; leftovers of a broken "
            "removal are ignored by Python and confuse installers.",
            evidence=tuple(Evidence("environment", text, "the packages folders") for text in texts[:SHOWN]),
            remedies=(Remedy("Remove what is not meant to be there, or make the environment again."),),
            sources=(SOURCE,),
        )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


RULES = (Rule("INSTALL", "The environment's interpreter and packages are whole", check_installs),)
