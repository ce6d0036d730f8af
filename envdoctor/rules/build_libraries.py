"""Libraries that a build from source looks for and does not find: what brings them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from envdoctor.facts import Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.patterns import glob_matches
from envdoctor.rules.base import NO_LINE, Rule, Skip
from envdoctor.rules.view import View

ID = "BUILD-LIBRARY-ABSENT"
_ASKED: Mapping[str, tuple[str, str]] = {
    "header": ("headers", "the header {}"),
    "library": ("libraries", "the library {} (-l{})"),
    "lib": ("libraries", "{}.lib"),
    "module": ("packages", "CMake's package {}"),
    "package": ("packages", "the package {} (CMake, pkg-config)"),
    "missing": ("packages", "CMake's package {}"),
    "target": ("packages", "the target {}, which CMake's find_package defines where the library is there,"),
    "crate": ("packages", "what the crate {} wraps"),
    "symbol": ("symbols", "the definition of {}"),
}
"""By what a line captures: the names of a row that it is among, and how it is told."""
_SYMPTOMS = (
    "SYM-HEADER-ABSENT",
    "SYM-LINK-ABSENT",
    "SYM-CMAKE-PACKAGE-ABSENT",
    "SYM-PKG-CONFIG-LIBRARIES",
    "SYM-BUILD-SYS-CRATE",
    "SYM-UNDEFINED-REFERENCE",
)


def check_build_libraries(view: View) -> Iterable[Finding]:
    """Find the libraries that compilers, linkers, CMake and pkg-config did not find."""
    seen = [one for one in view.facts.symptoms if one.id in _SYMPTOMS]
    if not seen:
        raise Skip(NO_LINE)
    told: set[str] = set()
    for symptom in seen:
        for row, asked in _rows(view, symptom):
            if row.id not in told:
                told.add(row.id)
                yield _finding(view, row, asked, symptom)


def _rows(view: View, symptom: Symptom) -> Iterator[tuple[tables.BuildLibraryRow, str]]:
    """Yield the rows that have what a line asks for, with how that is told."""
    for group, (names, told) in _ASKED.items():
        asked = symptom.captured.get(group)
        for row in view.matrix.rows(tables.BuildLibraryRow) if asked else ():
            if _is_among(asked or "", getattr(row, names), of_code=names != "packages"):
                yield row, told.format(asked, asked)
                break


def exporting(view: View, symbol: str) -> tables.BuildLibraryRow | None:
    """Return the library that exports a symbol; None where none on record does."""
    rows = view.matrix.rows(tables.BuildLibraryRow)
    return next((row for row in rows if _is_among(symbol, row.symbols, of_code=True)), None)


def _is_among(asked: str, globs: Iterable[str], *, of_code: bool) -> bool:
    if of_code:
        return any(glob_matches(asked, glob) for glob in globs)
    return any(glob_matches(asked.lower(), glob.lower()) for glob in globs)


def _finding(view: View, row: tables.BuildLibraryRow, asked: str, symptom: Symptom) -> Finding:
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{asked} is missing: it comes with {row.what}, which is not installed for building (its"
        " development files), or not where the build or its linker looks",
        cause=f"Something is compiled from source here and {asked} is not found. A library's headers and what"
        " is linked with come in its development package (-dev, -devel), not with the library itself."
        + (f" {row.note}" if row.note else ""),
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            Remedy("Install it with its development files, by one of these.", row.commands),
            Remedy(
                "Where it is installed: show the build its folder; or take a release that has a ready wheel.",
                ("export CMAKE_PREFIX_PATH=/its/prefix CPATH=/its/include LIBRARY_PATH=/its/lib",),
            ),
        ),
        certainty=Certainty.LIKELY,
        rows=(row.id,),
        sources=(row.source,),
        explains=(symptom.id,),
        prior=0.9,
    )


RULES = (Rule(ID, "every library that a build looks for is there", check_build_libraries),)
