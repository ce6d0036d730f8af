"""Names that were never bound in a package's code: what it imports behind a guard, and who brings that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envdoctor.commands import ANY, commands, pip_install
from envdoctor.facts import Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.interface_records import libraries_with, load_record, recorded_libraries
from envdoctor.matrix.late_tables import holding
from envdoctor.rules.asked import Wanted, wanted_of
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import package_facts, told_release
from envdoctor.rules.generations import asking_package
from envdoctor.rules.interface_lookup import DISTINCT, distribution_of
from envdoctor.rules.view import View

ID = "NAME-UNBOUND"
_MOST = 2
"""Libraries that are named at most: a name that more of them have tells of none."""


def check_unbound_names(view: View) -> Iterable[Finding]:
    """Name the package whose guarded import left a name unbound in the code that uses it."""
    seen = [s for s in view.facts.symptoms if s.id == "SYM-NAME-UNDEFINED"]
    if not seen:
        raise Skip("no name that is not defined was pasted")
    for symptom in seen:
        for wanted in wanted_of(view.facts, symptom):
            names = list(_bringing(view, wanted))
            if names and len(names) <= _MOST:
                yield _finding(view, wanted, symptom, names)


def _bringing(view: View, wanted: Wanted) -> Iterator[str]:
    """Yield the packages that may bring a name: itself a module, or one that a library's modules have."""
    asker = asking_package(view, wanted.asker)
    module = distribution_of(view.matrix, wanted.name)
    if module != asker and ("_" in wanted.name or package_facts(view, module)) and _is_module(view, wanted):
        yield module
        return
    folder = view.matrix.folder
    record = load_record(folder, asker) if asker else None
    asked = [*holding(record.imports, wanted.name)] if record else []
    if told := list(dict.fromkeys(distribution_of(view.matrix, module) for module in asked)):
        yield from told
        return
    if len(wanted.name) >= DISTINCT:
        having = libraries_with(folder, wanted.name) or _defining(view, wanted.name)
        yield from (name for name in having if name != asker)


def _is_module(view: View, wanted: Wanted) -> bool:
    """True for a name that is a package's: one on record, or whose first import failed behind a guard."""
    name = distribution_of(view.matrix, wanted.name)
    return package_facts(view, name) is not None or f"import {wanted.name}" in " ".join(view.facts.notes)


def _defining(view: View, name: str) -> list[str]:
    """Return the libraries that ask others for a name or have it themselves."""
    found = []
    for library in recorded_libraries(view.matrix.folder):
        record = load_record(view.matrix.folder, library)
        asked = [*holding(record.imports, name)] if record else []
        found += [distribution_of(view.matrix, module) for module in asked]
    return list(dict.fromkeys(found))


def _finding(view: View, wanted: Wanted, symptom: Symptom, names: list[str]) -> Finding:
    told = " or ".join(names)
    asker = asking_package(view, wanted.asker)
    whose = told_release(view, asker) if asker else "the code that fails"
    absent = [name for name in names if not view.installed(name)]
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"the name {wanted.name} was never bound in {whose}: it comes with {told}, which is missing"
        " (not installed), does not import, or is of a release that has no such name",
        cause=f"{whose} imports {wanted.name} behind a guard, and goes on where that import fails; used later"
        " the name is not there. In a notebook the import from before an installation stays until the"
        " restart.",
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            *(
                Remedy(f"Install {name} for this interpreter, or upgrade it.", pip_install(name), {name: ANY})
                for name in absent
            ),
            Remedy(
                "See why it does not import.",
                commands("python -c {}", f"import {names[0].replace('-', '_')}"),
            ),
            *(
                (Remedy(f"Or upgrade {asker}, which may do without it.", pip_install(asker, options="-U")),)
                if asker
                else ()
            ),
        ),
        certainty=Certainty.UNCERTAIN,
        sources=("https://docs.python.org/3/library/exceptions.html#NameError",),
        explains=(symptom.id,),
        prior=0.62,
        fallback=True,
    )


RULES = (Rule(ID, "no name is left unbound by an import that was skipped", check_unbound_names),)
