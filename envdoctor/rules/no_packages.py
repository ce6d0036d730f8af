"""What is asked of an index and is no package: a module of Python itself, a name inside another module."""

from __future__ import annotations

from envdoctor.facts import Symptom
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.view import View
from envdoctor.values import replace


def of_python(name: str, symptom: Symptom) -> Finding:
    """What is asked of an index and comes with Python itself."""
    return _finding(
        symptom,
        f"{name} is a module of Python itself: no index has it, it is there to be imported",
        f"The installer looked for a distribution {name}, and the standard library is none.",
        f"Leave {name} out of the command and of requirements; import it as it is.",
        "https://docs.python.org/3/library/index.html",
    )


def missed_as_a_name(view: View, name: str) -> Symptom | None:
    """Return the import that failed for want of the name which was then asked of an index."""
    imports = (s for s in view.facts.symptoms if s.id in ("SYM-IMPORT-NAME", "SYM-IMPORT-NAME-ONLY"))
    return next((one for one in imports if normalise(one.captured.get("name", "")) == name), None)


def of_a_module(name: str, missed: Symptom, symptom: Symptom) -> Finding:
    """What is asked of an index and is a name inside a module."""
    module = missed.captured.get("module") or "the module that it is imported from"
    found = _finding(
        symptom,
        f"{name} is no package of an index: it is a name that {module} should hold",
        "The import failed because another release of that package has the name; it cannot be installed by"
        " itself.",
        f"Leave it out of the command; mend the import from {module}.",
        "https://docs.python.org/3/library/exceptions.html#ImportError",
    )
    return replace(found, severity=Severity.WARNING, follows=("INTERFACE-MISSING",))


def _finding(symptom: Symptom, summary: str, cause: str, remedy: str, source: str) -> Finding:
    return Finding(
        id="INDEX-OFFERS-NONE",
        severity=Severity.ERROR,
        summary=summary,
        cause=cause,
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(Remedy(remedy),),
        certainty=Certainty.LIKELY,
        sources=(source,),
        explains=("SYM-NO-VERSION-FOUND", "SYM-NO-MATCHING"),
        prior=0.7,
        follows=("PIP-NETWORK-NONE",),
    )
