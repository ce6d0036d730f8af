"""Messages that say themselves since which release something is gone: the releases of before have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.version import Version

from envdoctor.commands import install_commands
from envdoctor.facts import Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.interface_records import libraries_with
from envdoctor.matrix.snapshot import Package
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import package_facts, standing_on_none
from envdoctor.rules.generations import asking_package
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.messages import asked_by
from envdoctor.rules.ranges import parse_version, version_satisfies
from envdoctor.rules.view import View

ID = "REMOVED-IN"
_SYMPTOM = "SYM-REMOVED-IN"


def check_removals(view: View) -> Iterable[Finding]:
    """Find the package whose error says that a release of it took something away."""
    seen = [symptom for symptom in view.facts.symptoms if symptom.id == _SYMPTOM]
    if not seen:
        raise Skip("no error says since which release something is gone")
    found = {f.summary: f for symptom in seen for f in _findings(view, symptom)}
    yield from found.values()


def _findings(view: View, symptom: Symptom) -> Iterator[Finding]:
    """Yield what an error or a complaint tells; of a release that never was it tells nothing."""
    errors = [error for error in view.facts.errors if symptom.id in error.symptoms]
    version = parse_version(symptom.captured.get("version", ""))
    if not errors or version is None:
        return
    error = next((e for e in reversed(errors) if e.exception), errors[-1])
    asking = [asking_package(view, frame) for frame in error.frames] if error.exception else []
    name = _package(view, symptom, asking)
    package = (
        package_facts(view, name) if name and (error.exception or _is_told(view, symptom, name)) else None
    )
    if package is None or not _was_released(package, version):
        return
    installed = view.version(name)
    if installed is not None and version_satisfies(installed, f"<{version}"):
        return
    pins = {name: f"<{version}"}
    yield Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{name} {version} took away what the code here still uses: {error.text[:240]}",
        cause=f"The message names the release. The code was written for {name} below {version}"
        + (f"; here is {installed}." if installed else "."),
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            Remedy(f"Downgrade {name} to a release from before.", install_commands(pins), pins),
            *asked_by(error.text),
            Remedy("Or change the code (or upgrade the package that holds it) to what stands in its place."),
        ),
        certainty=Certainty.LIKELY,
        sources=(f"wheel:{name}",),
        explains=error.symptoms,
        prior=0.7,
        fallback=True,
    )


def _is_told(view: View, symptom: Symptom, name: str) -> bool:
    """True where words alone tell enough: what is gone, or the release that is here."""
    captured = symptom.captured
    return bool(captured.get("thing") or captured.get("dotted") or view.version(name))


def _was_released(package: Package, version: Version) -> bool:
    """True where a release bears the number, with or without its last zeros."""
    return any(parse_version(known) == version for known in package.versions)


def _package(view: View, symptom: Symptom, asking: list[str]) -> str:
    """Return the package that the message names, whose thing it names, or in whose file it is raised."""
    thing = symptom.captured.get("thing") or symptom.captured.get("dotted") or ""
    for word in (symptom.captured.get("name", ""), thing.partition(".")[0] if "." in thing else ""):
        known = distribution_of(view.matrix, word.lower().replace("-", "_")) if word else ""
        if known and package_facts(view, known):
            return known
        having = standing_on_none(view, set(libraries_with(view.matrix.folder, word)))
        if len(having) == 1 and word[:1].isupper():
            return having.pop()
    return next((p for p in reversed(asking) if p), "")


RULES = (Rule(ID, "no error says that a release took something away", check_removals),)
