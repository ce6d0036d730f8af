"""Modules that an error line misses altogether: which distribution brings them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envdoctor.commands import ANY, commands, pip_install
from envdoctor.facts import Symptom
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.patterns import glob_matches
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import is_recorded
from envdoctor.rules.standard_modules import is_standard
from envdoctor.rules.view import View
from envdoctor.rules.wheels import has_linux_alone, on_linux, system_without_wheel

COMPILED = "a compiled extension of it, which an installation without a build for this torch leaves out"


def check_missing_modules(view: View) -> Iterable[Finding]:
    """Find top-level modules that are not installed in the interpreter that failed."""
    seen = [s for s in view.facts.symptoms if s.id == "SYM-NO-MODULE" and _is_top_level(view, s)]
    if not seen:
        raise Skip("no missing module was pasted")
    spelt = {s.captured["module"].lower(): s for s in seen}
    for symptom in spelt.values():
        yield _finding(view, symptom.captured["module"], symptom)


def _is_top_level(view: View, symptom: Symptom) -> bool:
    module = symptom.captured.get("module", "")
    named = module.isascii() and module.isidentifier()
    if not named:
        return is_root_in_folder(view, module)
    return module == "distutils" or not is_standard(view, module)


def is_root_in_folder(view: View, module: str) -> bool:
    """True for the root of a distribution in a folder that many share: `google.protobuf`."""
    shared = "." in module and is_shared(view, module.partition(".")[0])
    return shared and any(row.module == module for row in view.matrix.rows(tables.ImportNameRow))


def is_shared(view: View, folder: str) -> bool:
    """True for a folder of the import path that many distributions put their modules into."""
    return any(folder in row.names for row in view.matrix.rows(tables.SharedFolderRow))


def find_distribution(view: View, module: str) -> tuple[str, tables.ImportNameRow | None]:
    """Return the distribution that brings a module, and the row that says so when the names differ."""
    for row in view.matrix.rows(tables.ImportNameRow):
        if row.module == module:
            return row.distribution, row
    return normalise(module), None


def extension_of(view: View, module: str) -> tables.ExtensionRow | None:
    """Return the package one of whose compiled extensions a module is, where it is no package itself."""
    name = normalise(module)
    rows = () if is_recorded(view, name) else view.matrix.rows(tables.ExtensionRow)
    named = (r for r in rows if r.package != name)
    return next((r for r in named if any(glob_matches(module, one) for one in r.libraries)), None)


def _finding(view: View, module: str, symptom: Symptom) -> Finding:
    name, row = find_distribution(view, module)
    compiled = None if row else extension_of(view, module)
    name = compiled.package if compiled else name
    installed = view.version_text(name)
    known = row is not None or compiled is not None or bool(installed) or is_recorded(view, name)
    part = f" ({COMPILED})" if compiled else ""
    whose = f"it comes with {name}{part}" if known else "which package brings it is not on record"
    if system := system_without_wheel(view, name) if known and not installed else "":
        whose += f", of which no release has a wheel for {system}"
    asked = not installed and normalise(name) in {
        normalise(one.partition("[")[0]) for one in view.asked_of_installers
    }
    alone = known and not installed and not system and has_linux_alone(view, name)
    if alone:
        whose += "; its wheels are for Linux alone (Windows and macOS are not supported by it)"
    elsewhere = (
        f"{name} {installed} is listed, so the failing process runs another interpreter or a broken install"
        + (", or another copy of the folder hides it." if "." in module else ".")
        if installed
        else f"An installer was asked for {name} all the same: it belongs to another Python (the system's"
        " pip3, another environment) than the one that runs, or it failed."
        if asked
        else "It is not among the distributions told."
    )
    shown = row or compiled
    return Finding(
        id="MODULE-MISSING",
        severity=Severity.ERROR,
        summary=f"the module {module} is missing from the interpreter that ran: {whose}",
        cause=f"Python found no {module} on its path. {elsewhere}",
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            *_elsewhere(name, system, alone),
            *((_same_python(name),) if asked or installed else ()),
            *((_installing(name, row, compiled),) if known else _finding_out(view, module)),
            Remedy(
                "See which interpreter runs; a launcher (deepspeed, accelerate, torchrun, jupyter) of another"
                " environment brings its own Python: start it as `python -m`, or install it in this one.",
                ("python -c 'import sys; print(sys.executable)'", "which -a python pip deepspeed torchrun"),
            ),
        ),
        certainty=Certainty.UNCERTAIN if installed else Certainty.LIKELY,
        rows=(shown.id,) if shown else (),
        sources=(shown.source,) if shown else (f"wheel:{name}",) if known else (),
        explains=(symptom.id,),
        prior=0.6,
        fallback=True,
        follows=(f"{name.upper()}-*", f"ABI-{name.upper()}") if normalise(module) != name else (),
    )


def _same_python(name: str) -> Remedy:
    return Remedy(
        "Install it with the pip of the interpreter that runs (activate its environment, venv or conda,"
        " first): python -m pip, with the same python that starts the program.",
        commands("python -m pip install {}", name),
    )


def _installing(name: str, row: tables.ImportNameRow | None, compiled: tables.ExtensionRow | None) -> Remedy:
    command = row.install if row else compiled.rebuild if compiled else ""
    text = f"Install {name} with that very interpreter."
    return Remedy(text, (command,), {}) if command else Remedy(text, pip_install(name), {name: ANY})


def _elsewhere(name: str, system: str, alone: bool) -> Iterator[Remedy]:
    """Offer Linux where no wheel is for the system that is told, or for any other."""
    if alone:
        yield Remedy(
            f"On Windows run it in WSL 2 or Docker, leave {name} out where it is optional, or take a build"
            " that others make for Windows (triton-windows for triton)."
        )
    if system:
        why = f"where {name} has wheels, or without what needs {name}."
        yield on_linux("Run it", why, windows=system == "Windows")


def _finding_out(view: View, module: str) -> Iterator[Remedy]:
    """What to do of a module that nobody knows: an index holds strangers' packages under any name."""
    own = Remedy(
        "If it is the project's own, install the project (pip install -e .) or run from its root; a compiled"
        " one (a folder ops/ or csrc/ with a setup.py or make.sh) is built there, against this torch."
    )
    rows = view.matrix.rows(tables.OwnModuleRow)
    is_own = any(glob_matches(module, name) for row in rows for name in row.names)
    if is_own:
        yield own
    yield Remedy(
        "Install what the project (or the custom node, the plugin) that imports it lists, with the Python"
        " that runs it (a portable program brings its own).",
        ("python -m pip install -r requirements.txt",),
    )
    if not is_own:
        yield Remedy(
            "Mostly a package bears its module's name: look at its page in the index whether"
            f" {module.replace('_', '-')} is the one meant (a stranger's may bear it), before you install it."
        )
        yield own


RULES = (Rule("MODULE-MISSING", "every module that the program imports is installed", check_missing_modules),)
