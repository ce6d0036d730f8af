"""A release that an installer passes over between older and newer ones: pips that refuse its metadata."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from envdoctor.commands import commands, install_commands, pip_install
from envdoctor.facts import Observed, Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.snapshot import Package, Snapshot
from envdoctor.rules.ranges import parse_version, version_satisfies
from envdoctor.rules.view import View

PASSED_OVER = (
    ", and older ones: pip passed that one over (pip 24.1 and newer refuse invalid metadata, or it is yanked"
    " or for another Python)"
)
"""What is said of such a release."""
_USUAL_PYTHONS = ("3.11", "3.12", "3.10", "3.13", "3.9", "3.14", "3.8")


def left_out(asked: str, symptom: Symptom) -> str:
    """Return the exact release that was asked for where it is listed, or lies between those; else empty."""
    exact = parse_version(asked.removeprefix("==")) if asked.startswith("==") else None
    offered = [one for text in _offered(symptom) if (one := parse_version(text)) is not None]
    if exact is None:
        return ""
    between = any(one < exact for one in offered) and any(one > exact for one in offered)
    return str(exact) if exact in offered or between else ""


def of_older_pip(name: str, exact: str, symptom: Symptom) -> Iterator[Remedy]:
    """Offer the pip that still takes invalid metadata, and a release that was mended for the newer."""
    text = (
        "Use a pip before 24.1, which refuses releases whose metadata is invalid (such as `torch (>=1.7.*)`)."
    )
    release = commands("python -m pip install {}", f"{name}=={exact}")
    yield Remedy(text, ("python -m pip install 'pip<24.1'", *release))
    for mended in [one for one in _offered(symptom) if one.startswith(f"{exact}.post")][-1:]:
        yield Remedy(f"Or the mended release {mended}.", pip_install(f"{name}=={mended}"))


def _offered(symptom: Symptom) -> list[str]:
    return [text.strip() for text in symptom.captured.get("offered", "").split(",")]


def refused_by(view: View, snapshot: Snapshot, package: Package, chosen: int) -> str:
    """Return the Requires-Python of the chosen releases where no file of theirs admits the Python told."""
    python = parse_version(str(view.python.get() or ""))
    numbers = {file.python for mask, files in package.file_groups() if mask & chosen for file in files}
    asked = [snapshot.python(number)[0] for number in sorted(numbers)]
    return (
        asked[-1] if asked and python and all(a and not version_satisfies(python, a) for a in asked) else ""
    )


def not_offered(name: str, asked: str, newest: str, lacking: str, symptom: Symptom) -> Finding:
    """The release that was asked for is not among those that an installer was offered."""
    why = f": it has no wheel for {lacking} (platform), and no source" if lacking else ""
    if exact := "" if lacking else left_out(asked, symptom):
        why = PASSED_OVER
    return Finding(
        id="INDEX-OFFERS-OTHERS",
        severity=Severity.ERROR,
        summary=f"{name}{asked} was asked for, and the newest that pip was offered is {newest}{why}",
        cause="The release is of a later day than the index's answer, wants another Python or platform than"
        " this one, lies on another index, or the number was never released there.",
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            *(of_older_pip(name, exact, symptom) if exact else ()),
            what_is_offered(name, newest),
            Remedy(
                "Or use a Python that the wanted release supports, a newer pip, or the project's own index or"
                " repository (git).",
                ("python -VV", *pip_install("pip", options="-U")),
            ),
        ),
        certainty=Certainty.LIKELY,
        sources=(f"wheel:{name}",),
        explains=("SYM-NO-VERSION-FOUND", "SYM-NO-MATCHING"),
        prior=0.65,
    )


def what_is_offered(name: str, newest: str) -> Remedy:
    """Offer the newest release that an installer saw."""
    pins = {name: f"<={newest}"}
    return Remedy(f"Take what is offered: {name} {newest}.", install_commands(pins), pins)


def python_refused(view: View, name: str, asked: str, pythons: str, symptom: Symptom, newest: str) -> Finding:
    """The release is not for the Python that is told, by its own metadata: pip passes it over in silence."""
    told, pins = view.python, {"python": pythons}
    shown = (Evidence("Python", told.value, told.source),) if isinstance(told, Observed) else ()
    fitting = next((one for one in _USUAL_PYTHONS if version_satisfies(Version(one), pythons)), pythons)
    return Finding(
        id="PYTHON-REFUSED",
        severity=Severity.ERROR,
        summary=f"{name} {asked.lstrip('=')} requires Python {pythons}, and this is {told.get()}: pip passes"
        " such releases over and offers those before alone",
        cause="A release names the Pythons that it is for (Requires-Python); none other is offered it.",
        evidence=(*shown, Evidence(symptom.id, symptom.text, symptom.source)),
        remedies=(
            Remedy(
                f"Make an environment with Python {fitting}.", commands("uv venv --python {}", fitting), pins
            ),
            *([what_is_offered(name, newest)] if newest else []),
        ),
        certainty=Certainty.CERTAIN,
        sources=(f"wheel:{name}",),
        explains=("SYM-NO-VERSION-FOUND", "SYM-NO-MATCHING"),
        prior=0.9,
    )
