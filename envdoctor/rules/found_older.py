"""A library finds an optional package that is there, and too old for it: either of the two may move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.version import Version

from envdoctor.commands import commands, install_commands
from envdoctor.facts import ErrorSeen, Symptom
from envdoctor.facts.names import normalise
from envdoctor.findings import Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import NO_LINE, Rule, Skip
from envdoctor.rules.calendar import askers_before, finals
from envdoctor.rules.generations import asking_package
from envdoctor.rules.ranges import parse_version
from envdoctor.rules.view import View, symptoms

ID = "FOUND-INCOMPATIBLE"
_FOUND = "SYM-FOUND-INCOMPATIBLE"


def check_found(view: View) -> Iterable[Finding]:
    """Say which release the one that looks takes, and which of its own still took what is there."""
    seen = [one for one in symptoms(view, _FOUND) if {"package", "have", "least"} <= one.captured.keys()]
    if not seen:
        raise Skip(NO_LINE)
    for symptom in {one.captured["package"]: one for one in seen}.values():
        yield _finding(view, symptom)


def _finding(view: View, symptom: Symptom) -> Finding:
    told = symptom.captured
    name, least = told["package"], told["least"]
    pins = {name: f">={least}"}
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{name} {told['have']} is older than the library that looks for it takes: it wants {name}"
        f" {least} or newer",
        cause="peft, transformers, optimum and others look whether optional packages are installed, and"
        " stop at one that is there but too old, even where it is not needed.",
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            Remedy("Upgrade it.", install_commands(pins), pins),
            Remedy("Or take it out where nothing needs it.", commands("pip uninstall {}", name)),
            *_from_before(view, symptom),
        ),
        sources=("https://github.com/huggingface/peft/blob/main/src/peft/import_utils.py",),
        explains=(symptom.id,),
        prior=0.95,
    )


def _from_before(view: View, symptom: Symptom) -> Iterator[Remedy]:
    """Offer the releases of the one that looks from before the first that it takes was out."""
    name, least = normalise(symptom.captured["package"]), parse_version(symptom.captured["least"])
    later = (v for v, _ in reversed([*finals(view, name)]) if least and Version(v) >= least)
    first = next(later, "")
    asker = next((who for error in view.facts.errors if (who := _asker(view, error, symptom, name))), "")
    pins = askers_before(view, asker, name, first) if asker and first else {}
    if pins:
        text = f"Or a release of {asker} from before {name} {first}, which cannot ask for it."
        yield Remedy(text, install_commands(pins), pins)
        return
    yield Remedy("Or an older release of the library that looks for it, from before it asked for that one.")


def _asker(view: View, error: ErrorSeen, symptom: Symptom, name: str) -> str:
    """Return the package whose code looked, by the innermost frame above the line."""
    told = asking_package(view, error.frames[-1]) if error.frames and symptom.id in error.symptoms else ""
    return told if told != name else ""


RULES = (Rule(ID, "an optional package that a library looks for is new enough for it", check_found),)
