"""Messages that say themselves since which release something is gone: the releases of before have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envdoctor.commands import install_commands
from envdoctor.facts import Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import package_facts
from envdoctor.rules.generations import asking_package
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.origins import asked_by
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
    """Yield what an error tells; a sentence outside of one, or of a release that never was, tells nothing."""
    errors = [error for error in view.facts.errors if symptom.id in error.symptoms and error.exception]
    version = parse_version(symptom.captured.get("version", ""))
    if not errors or version is None:
        return
    error = errors[-1]
    name = _package(view, symptom.captured.get("name", ""), [asking_package(view, f) for f in error.frames])
    package = package_facts(view, name) if name else None
    if package is None or version.public not in {*package.position, *(f"{v}.0" for v in package.versions)}:
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


def _package(view: View, named: str, asking: list[str]) -> str:
    """Return the package that the message names, or in whose file it is raised."""
    known = distribution_of(view.matrix, named.lower().replace("-", "_")) if named else ""
    return known if known and package_facts(view, known) else next((p for p in reversed(asking) if p), "")


RULES = (Rule(ID, "no error says that a release took something away", check_removals),)
