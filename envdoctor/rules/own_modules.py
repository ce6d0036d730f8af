"""A file of one's own that bears the name of a module: who asks for the module is given the file.

A traceback shows it: below a frame that imports a module stands a file of that name, which is not installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from envdoctor import lazy_re as re
from envdoctor.facts import ErrorSeen, Frame
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.import_chains import package_of
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.standard_modules import is_standard
from envdoctor.rules.view import View

ID = "MODULE-HIDDEN"
_IMPORTS = re.compile(r"^\s*(?:import|from)\s+([A-Za-z_]\w{0,60})\b")
_FILE = re.compile(r"(?:^|[/\\])([A-Za-z_]\w{0,60})(?:[/\\]__init__)?\.py$")
_INSTALLED = re.compile(
    r"-packages[/\\]|[/\\]Lib[/\\](?:\w{1,60}[/\\]){0,3}\w{1,60}\.py$|[/\\]python3\.\d{1,2}[/\\]|<frozen"
)
"""Files of Python itself and those that an installer laid."""


def check_own_modules(view: View) -> Iterable[Finding]:
    """Find a file of one's own that an import of Python's or of a package met."""
    if not any(error.frames[1:] for error in view.facts.errors):
        raise Skip("no traceback of several frames is told")
    for error in view.facts.errors:
        met = ((name, one, two) for one, two in pairwise(error.frames) if (name := _hidden(view, one, two)))
        if found := next(met, None):
            yield _finding(error, *found)
            return


def _hidden(view: View, asking: Frame, met: Frame) -> str:
    """Return what every installation has, where an installed file that imports it meets one's own."""
    name, file = _IMPORTS.match(asking.code), _FILE.search(met.file)
    if name is None or file is None or name[1] != file[1]:
        return ""
    if _INSTALLED.search(met.file) or not _INSTALLED.search(asking.file):
        return ""
    asker, meant = package_of(asking.file), distribution_of(view.matrix, name[1])
    if asker and distribution_of(view.matrix, asker) == meant:
        return ""
    return name[1] if is_standard(view, name[1]) or view.installed(meant) is True else ""


def _finding(error: ErrorSeen, name: str, asking: Frame, met: Frame) -> Finding:
    asker = asking.file.replace("\\", "/").rpartition("/")[2]
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{met.file} hides (shadows) the module {name}, having the same name: {asker} imports {name}"
        " and is given that file",
        cause="The script's folder and the working directory come before Python's standard library and"
        " installed packages; a file there that is called like one of their modules is taken for it by all.",
        evidence=(
            Evidence("error", error.text, error.source),
            Evidence("imported", asking.code, error.source),
        ),
        remedies=(
            Remedy(f"Rename {met.file} (and remove its __pycache__): any name that no module has."),
            Remedy("Or start the program from another folder, by its path, with python -P (3.11 and newer)."),
        ),
        certainty=Certainty.CERTAIN,
        sources=("https://docs.python.org/3/library/sys_path_init.html",),
        explains=error.symptoms,
        prior=0.95,
    )


RULES = (Rule(ID, "no file of one's own bears the name of a module that others import", check_own_modules),)
