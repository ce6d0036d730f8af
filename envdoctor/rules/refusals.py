"""Versions that a library itself refused, by its own message."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.version import Version

from envdoctor import lazy_re as re
from envdoctor.commands import commands, install_commands, pip_install
from envdoctor.facts import Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import package_facts, told_release, users_of
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.ranges import parse_specifier, parse_version, specifier_in, version_satisfies
from envdoctor.rules.standard_modules import is_standard
from envdoctor.rules.view import View
from envdoctor.values import replace

_NO_PACKAGE = frozenset({"cuda", "cuda-toolkit", "nvcc", "cudnn", "gcc", "driver", "nvidia-driver"})
"""What messages call so and no installer of Python packages brings."""
_CUT = re.compile(r"[<>=!~,]\s{0,4}$")
"""How a text ends within a range of versions."""
_REFUSALS = (
    *("SYM-REQUIRED-VERSION", "SYM-PLEASE-INSTALL", "SYM-ERROR-REQUIRES", "SYM-MINIMUM-VERSION"),
    *("SYM-MAXIMUM-VERSION", "SYM-CHECKED-VERSION", "SYM-ASKED-BY-PIP", "SYM-DIST-NOT-FOUND"),
    *("SYM-ERROR-NEEDS", "SYM-REQUIRES-BUT-GOT", "SYM-LESS-THAN-MINIMUM", "SYM-NEEDED-AT-LEAST"),
)
_OWN_TABLES = {
    library: f"https://github.com/huggingface/{library}/blob/main/src/{library}/utils/versions.py"
    for library in ("transformers", "diffusers")
}
"""Who compares versions with a table of its own, in the same words, and where."""
_NAMED = 2
"""How many of the packages that may have refused are named."""


def check_refusals(view: View) -> Iterable[Finding]:
    """Find the versions that a library itself refused, by its own message."""
    said = [s for s in view.facts.symptoms if s.id in _REFUSALS and _specifier(s)]
    rows = ((s, view.matrix.row(tables.SymptomRow, s.id)) for s in view.facts.symptoms if said)
    noticed = {s.source for s, row in rows if row and row.notice}
    lacked = (s for s in said if s.source not in noticed)
    seen = [s for s in lacked if not is_standard(view, s.captured["name"].lower())]
    if not seen:
        raise Skip("no library refused another's version")
    for symptom in {s.captured["name"].lower(): s for s in reversed(seen)}.values():
        told = symptom.captured["name"].lower()
        name = distribution_of(view.matrix, view.matrix.lexicon.packages.find(told) or told)
        have = parse_version(symptom.captured.get("found", "")) or view.version(name)
        if have is None or not _is_taken(have, _specifier(symptom)):
            yield _refusal(view, name, str(have) if have else None, symptom)
        elif not symptom.captured.get("found"):
            yield _unseen(name, str(have), symptom)


def _unseen(name: str, have: str, symptom: Symptom) -> Finding:
    """What is asked for is listed: the process that asked did not see it."""
    wanted = _specifier(symptom)
    return Finding(
        id="REQUIREMENT-UNSEEN",
        severity=Severity.ERROR,
        summary=f"the message asks for {name}{wanted}, and {name} {have} is listed: the process did not see"
        " it",
        cause=f"It was started before {name} was installed (a notebook's kernel keeps what it has imported),"
        f" or it runs another environment, or {name} itself fails to import there.",
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            Remedy("Restart the kernel, runtime or process."),
            Remedy(
                f"See whether that very interpreter imports {name}; else install it there.",
                (
                    *commands("python -c {}", f"import sys, {name.replace('-', '_')}; print(sys.executable)"),
                    *pip_install(name + wanted),
                ),
            ),
        ),
        certainty=Certainty.UNCERTAIN,
        sources=("https://docs.python.org/3/library/importlib.html#importlib.invalidate_caches",),
        explains=(symptom.id,),
        prior=0.5,
        fallback=True,
    )


def _is_taken(have: Version, wanted: str) -> bool:
    """True where a release lies in the range; libraries compare strictly: 2.1.0a0 is older than 2.1.0."""
    return version_satisfies(have, wanted) and parse_specifier(wanted).contains(have)


def _specifier(symptom: Symptom) -> str:
    """The versions asked for; empty where the message holds none that can be read."""
    least, most = symptom.captured.get("least"), symptom.captured.get("most", "")
    if re.fullmatch(r"\d{1,4}\.\d{1,4}", most):  # 2.1 means every 2.1.x, too
        major, _, minor = most.partition(".")
        return f"<{major}.{int(minor) + 1}"
    text = f">={least}" if least else symptom.captured.get("specifier", "")
    return specifier_in(f"={text}" if text.startswith("=") and not text.startswith("==") else text)


def _refusal(view: View, name: str, have: str | None, symptom: Symptom) -> Finding:
    wanted = _specifier(symptom)
    library = _of_own_table(view, name, symptom)
    users = [] if library else users_of(view, name)[:_NAMED]
    asker = f"the installed {library}" if library else "the library that raises the error"
    asker += (
        f" (of what is here, {', '.join(told_release(view, user) for user in users)} may)" if users else ""
    )
    pins = {name: wanted}
    upgrade = () if " or " in library else commands("pip install -U {}", library)
    other = (Remedy(f"Or upgrade {library}, which then takes it.", upgrade),)
    cut = _CUT.search(symptom.text)
    bare = Remedy(f"Install a release of {name} in that range.")
    way = (
        Remedy(
            f"Read the whole line: the other end of the range is cut off here; then install such a {name}."
        )
        if cut
        else bare
        if name in _NO_PACKAGE
        else replace(bare, commands=install_commands(pins), pins=pins)
    )
    return Finding(
        id="REQUIREMENT-REFUSED",
        severity=Severity.ERROR,
        summary=f"{asker} needs {name}{wanted}"
        + (" and a bound that is cut off" if cut else "")
        + (f"; {name} {have} is installed" if have else _not_so(wanted)),
        cause=(
            f"{library} compares the versions of a few libraries with its own table at its import."
            if library
            else f"The message names the releases of {name} that the code was written for."
        ),
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(way, *(other if library else ())),
        certainty=Certainty.CERTAIN if have else Certainty.LIKELY,
        sources=(_OWN_TABLES.get(library) or _OWN_TABLES["transformers"],),
        explains=(symptom.id,),
        prior=0.9,
    )


def _of_own_table(view: View, name: str, symptom: Symptom) -> str:
    """Return who asks by its own table: whose frames are shown, else which is told, else either; or none."""
    if symptom.id != "SYM-REQUIRED-VERSION" or name in _OWN_TABLES:
        return ""
    files = [frame.file for e in view.facts.errors if symptom.text in e.text for frame in e.frames]
    shown = [library for library in _OWN_TABLES if any(f"/{library}/" in file for file in files)]
    told = [library for library in _OWN_TABLES if view.installed(library)]
    return next(iter(shown or told), "") or " or ".join(one for one in _OWN_TABLES if _asks(view, one, name))


def _asks(view: View, library: str, name: str) -> bool:
    """True where a library's newest release requires a package, maybe in an extra; or nothing is known."""
    package = package_facts(view, library)
    row = package.row_of(len(package.versions) - 1) if package else -1
    extras = ("", *package.extras(row)) if package and row >= 0 else ()
    return not extras or any(
        one.name == name for extra in extras if package for one in package.requirements(row, extra)
    )


def _not_so(wanted: str) -> str:
    """Say what must be true of a release that is not told and that a bound refuses."""
    bounds = {bound[0] for bound in wanted.split(",") if bound}
    other = {"<": "newer", ">": "older"}.get("".join(bounds), "another version")
    return f"; what is installed is {other}, missing, or of a version that cannot be read"


RULES = (Rule("REQUIREMENT-REFUSED", "no library refused the version of another", check_refusals),)
