"""Modules that an error line misses altogether: which distribution brings them."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from envdoctor.commands import pip_install
from envdoctor.facts import Symptom
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.view import View


def check_missing_modules(view: View) -> Iterable[Finding]:
    """Find top-level modules that are not installed in the interpreter that failed."""
    seen = [s for s in view.facts.symptoms if s.id == "SYM-NO-MODULE" and _is_top_level(s)]
    if not seen:
        raise Skip("no missing module was pasted")
    spelt = {s.captured["module"].lower(): s for s in seen}
    for symptom in spelt.values():
        yield _finding(view, symptom.captured["module"], symptom)


def _is_top_level(symptom: Symptom) -> bool:
    module = symptom.captured.get("module", "")
    named = module.isascii() and module.isidentifier()
    return named and module not in sys.stdlib_module_names - {"distutils"}


def find_distribution(view: View, module: str) -> tuple[str, tables.ImportNameRow | None]:
    """Return the distribution that brings a module, and the row that says so when the names differ."""
    for row in view.matrix.rows(tables.ImportNameRow):
        if row.module == module:
            return row.distribution, row
    return normalise(module), None


def _finding(view: View, module: str, symptom: Symptom) -> Finding:
    name, row = find_distribution(view, module)
    installed = view.version_text(name)
    command = row.install if row else ""
    pins = {} if command else {name: ">=0"}
    elsewhere = (
        f"{name} {installed} is listed, so the failing process runs another interpreter or a broken install."
        if installed
        else "It is not among the distributions told."
    )
    return Finding(
        id="MODULE-MISSING",
        severity=Severity.ERROR,
        summary=f"the module {module} is missing from the interpreter that ran: it comes with {name}",
        cause=f"Python found no {module} on its path. {elsewhere}",
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            Remedy(
                f"Install {name} with that very interpreter.",
                (command,) if command else pip_install(name),
                pins,
            ),
            Remedy("See which interpreter runs.", ("python -c 'import sys; print(sys.executable)'",)),
        ),
        certainty=Certainty.UNCERTAIN if installed else Certainty.LIKELY,
        rows=(row.id,) if row else (),
        sources=(row.source,) if row else (f"wheel:{name}",),
        explains=(symptom.id,),
        prior=0.6,
        fallback=True,
    )


RULES = (Rule("MODULE-MISSING", "every module that the program imports is installed", check_missing_modules),)
