"""Errors in libraries' own code that no cause accounts for: whose releases to suspect, and which to take.

A traceback shows who calls whom; the days of the releases show which of the two is too young for the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from envdoctor import lazy_re as re
from envdoctor.commands import install_commands, pip_install
from envdoctor.facts import REPORTED, ErrorSeen, Frame
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.matrix.snapshot import STACK
from envdoctor.rules.asked import PASSES_ON, REMOTE
from envdoctor.rules.calendar import day_here, day_of, package_facts, told_day, told_release
from envdoctor.rules.generations import ID as APART
from envdoctor.rules.generations import after_it, asking_package, of_one_time
from envdoctor.rules.view import View
from envdoctor.values import dataclass

ID = "RELEASE-SUSPECTED"
_BETWEEN = "a build between two releases, which may have bugs that neither has"
_TRIED = "a pre-release, which came out to be tried, and for which what is beside it was not made"
_MAJOR_IS_NEW = 548
"""Days after which what others call was written for that major, mostly."""
YOUNGER = 45
"""Days by which a release that is called is younger than its caller before that is worth saying."""
_PYTHONS = re.compile(r"[/\\]python3?\.?\d{0,2}[/\\](?!site-packages|dist-packages)|^<frozen |^<string>")
_MISFITS = frozenset(
    [
        "AttributeError",
        "TypeError",
        "NameError",
        "UnboundLocalError",
        "ImportError",
        "ModuleNotFoundError",
        "KeyError",
        "IndexError",
        "RecursionError",
        "AssertionError",
        "SyntaxError",
        "IndentationError",
    ]
)
"""What Python raises where code and what it calls do not suit one another, not of what a user set."""
_ANSWERS = ("__getattr__", "__getattribute__")
"""They raise for what is asked of them: who asks has failed."""
_MARK = re.compile(r"has no attribute '(\w{2,80})'")


@dataclass(frozen=True, slots=True)
class _Calls:
    """Who failed in a traceback, and which other package called it; `importing` where an import did."""

    failing: str
    caller: str
    importing: bool


_MODULE = "<module>"


def suspected_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return which releases to suspect of an error that libraries raise themselves; None for another.

    An error without a place of its own stands for the text's one traceback.
    """
    traced = [one for one in view.facts.errors if one.frames]
    calls = _calls(view, error if error.frames or len(traced) != 1 else traced[0]) or _marked(view, error)
    if calls is None or not (calls.importing or _is_misfit(error)):
        return None
    if not calls.caller:
        return _alone(view, error, calls)
    return _apart(view, error, calls)


def _is_misfit(error: ErrorSeen) -> bool:
    return (error.exception or "").rpartition(".")[2] in _MISFITS


def _calls(view: View, error: ErrorSeen) -> _Calls | None:
    """Return who calls whom at the end of a traceback; None where code of one's own is innermost."""
    frames = [frame for frame in error.frames if not _is_passed(frame)]
    packages = [asking_package(view, frame) for frame in frames]
    if not packages or not packages[-1]:
        return None
    failing = packages[-1]
    at_import = [name for name, frame in zip(packages, frames, strict=True) if _imports(frame)]
    caller = next((name for name in reversed(packages) if name and name != failing), "")
    return _Calls(failing, caller, any(at_import) or frames[-1].function == _MODULE)


def _imports(frame: Frame) -> bool:
    """True for a module's own code where it imports; a script that is started calls there as well."""
    return frame.function == _MODULE and (not frame.code or frame.code.startswith(("import ", "from ")))


def _marked(view: View, error: ErrorSeen) -> _Calls | None:
    """Return the library after which an attribute is named, where nothing else tells who failed."""
    match = _MARK.search(error.text) if not error.frames else None
    traits = view.matrix.rows(tables.PackageTraitRow) if match else ()
    named = (row.name for row in traits if match and match[1].startswith(row.marks))
    return _Calls(name, "", importing=False) if (name := next(named, "")) else None


def _is_passed(frame: Frame) -> bool:
    """True for a frame of Python's own library, one that hands on what it was given, or says it has not."""
    if frame.function in _ANSWERS:
        return True
    if "site-packages" in frame.file or "dist-packages" in frame.file:
        return bool(PASSES_ON.search(frame.code))
    return bool(_PYTHONS.search(frame.file))


def _apart(view: View, error: ErrorSeen, calls: _Calls) -> Finding:
    failing, caller = calls.failing, calls.caller
    when = "while it is imported by" if calls.importing else "when it is called by"
    age = _age(view, failing, caller)
    return Finding(
        id=APART,
        severity=Severity.ERROR,
        summary=f"{told_release(view, failing)} fails {when} {told_release(view, caller)}:"
        f" {error.text[:240]}",
        cause=f"{age or f'Of {failing} and {caller} one may be of another time than the other.'}"
        " What packages raise among themselves often comes of that; what changed between these two is not on"
        " record here.",
        evidence=(Evidence("error", error.text, error.source),),
        remedies=tuple(_ways_of_two(view, failing, caller)),
        certainty=Certainty.UNCERTAIN,
        sources=("https://docs.python.org/3/tutorial/errors.html#exceptions",),
        explains=error.symptoms,
        prior=0.3,
    )


def _age(view: View, failing: str, caller: str) -> str:
    """Say which of two releases is the younger; empty where a release or its day is not known."""
    days = [(day_here(view, name), name) for name in (failing, caller)]
    known = [(day, name) for day, name in days if day is not None]
    if len(known) < 2 or abs(known[0][0] - known[1][0]) < YOUNGER:
        return ""
    (older, old), (younger, young) = sorted(known)
    return (
        f"{young} {view.version(young)} ({told_day(younger)}) is younger than {old} {view.version(old)}"
        f" ({told_day(older)}), which cannot have been tried with it."
    )


def _ways_of_two(view: View, failing: str, caller: str) -> Iterator[Remedy]:
    yield from of_one_time(view, failing, caller)
    yield from _below_major(view, failing)
    yield from after_it(view, failing, caller)
    yield Remedy(
        f"Or upgrade {failing} and {caller} together; install {failing} anew where an upgrade was cut short.",
        pip_install(failing, caller, options="-U"),
    )


def _below_major(view: View, name: str) -> Iterator[Remedy]:
    """Offer the releases before a major one: its installed one, or the newest where none is told."""
    package = package_facts(view, name)
    version = view.version(name) or (Version(package.versions[-1]) if package else None)
    if package is None or version is None or version.major < 1 or name == "torch":
        return
    first, _ = package.majors.get(version.major, (package.days[-1], 0))
    if (day_of(view, name, version.public) or package.days[-1]) - first > _MAJOR_IS_NEW:
        return  # nobody's code is from before it any more
    pins = {name: f"<{version.major}"}
    yield Remedy(
        f"Or stay below {name} {version.major}: a major release changes what others call.",
        install_commands(pins),
        pins,
    )


def _alone(view: View, error: ErrorSeen, calls: _Calls) -> Finding | None:
    """Return what is to be tried of a package that fails in its own code; torch asks too much of a guess."""
    name = calls.failing
    if package_facts(view, name) is None:
        return None
    when = " while it is imported" if calls.importing else ""
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{told_release(view, name)} fails in its own code{when}: {error.text[:240]}",
        cause=f"The code that raises it is {name}'s: mostly a bug of one release, or something given to it"
        " that another release takes. Which, is not on record here.",
        evidence=(Evidence("error", error.text, error.source),),
        remedies=tuple(_ways_of_one(view, name)),
        certainty=Certainty.UNCERTAIN,
        sources=(f"wheel:{name}",),
        explains=error.symptoms,
        prior=0.2,
    )


def _ways_of_one(view: View, name: str) -> Iterator[Remedy]:
    """Offer the next releases and those from before."""
    version, package = view.version(name), package_facts(view, name)
    if version is None or package is None:
        yield Remedy(
            f"Upgrade {name}; where it is new already, downgrade to a release with which it worked.",
            pip_install(name, options="-U"),
        )
        return
    above, here = (">=", version.base_version) if version.is_prerelease else (">", version.public)
    if Version(package.versions[-1]) > version:
        pins = {name: f"{above}{here}"}
        text = f"Take a {name} newer than {version}: a bug of one release is mostly mended in the next."
        yield Remedy(text, install_commands(pins), pins)
    pins = {name: f"<{here}"}
    yield Remedy(f"Or go back to a {name} from before {version}.", install_commands(pins), pins)


def remote_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return what is to be suspected where a model's own code runs in a transformers that is younger."""
    frames = any(REMOTE in frame.file for frame in error.frames)
    if not frames and not (_is_misfit(error) and _takes_remote_code(view)):
        return None
    name = "transformers"
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary="the model's own code (custom code, trust_remote_code) may not suit"
        f" {told_release(view, name)}: {error.text[:240]}",
        cause="A repository's own modelling code was written for the transformers of its day, whose base"
        " classes, caches and loading change; a major release changes them most.",
        evidence=(Evidence("error", error.text, error.source),),
        remedies=(
            *_below_major(view, name),
            Remedy(
                "Or downgrade to the transformers that the repository's requirements or config.json name"
                " (transformers_version), or take"
                " a newer revision of its code; where transformers has the architecture itself, leave"
                " trust_remote_code off."
            ),
        ),
        certainty=Certainty.UNCERTAIN,
        sources=("https://huggingface.co/docs/transformers/main/en/custom_models",),
        explains=error.symptoms,
        prior=0.3,
    )


def _takes_remote_code(view: View) -> bool:
    return any(symptom.id == "SYM-REMOTE-CODE" for symptom in view.facts.symptoms)


def unreleased_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return what is to be suspected where a package of the stack is no release: a build between two, or
    what came out before one to be tried (dev, rc)."""
    built = [n for n in STACK if (v := view.version(n)) and v.is_prerelease]
    own = {row.name for row in view.matrix.rows(tables.PackageTraitRow) if row.from_source} if built else ()
    name = next((n for n in built if n not in own), "")
    version = view.version(name) if name else None
    if version is None or (error.kind == "said" and REPORTED not in view.facts.notes):
        return None
    pins = {name: f"<{version.base_version}"}
    between = version.is_devrelease
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{name} {version} is {_BETWEEN if between else _TRIED}: {error.text[:240]}",
        cause=("It was installed from the repository's main branch. " if between else "")
        + f"Nothing on record accounts for the error; a release of {name} was at least tested whole.",
        evidence=(Evidence("error", error.text, error.source),),
        remedies=(
            Remedy(f"Take the last release before {version.base_version}.", install_commands(pins), pins),
            Remedy(
                f"Or the release itself, where it is out by now: {version.base_version} or newer.",
                install_commands(out := {name: f">={version.base_version}"}),
                out,
            ),
        ),
        certainty=Certainty.UNCERTAIN,
        sources=("https://packaging.python.org/en/latest/specifications/version-specifiers/",),
        explains=error.symptoms,
        prior=0.2,
    )
