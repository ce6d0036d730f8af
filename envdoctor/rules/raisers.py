"""Whose code raised an error, at which line and in which release: told with every finding about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise

from envdoctor import lazy_re as re
from envdoctor.facts import ErrorSeen, Frame
from envdoctor.findings import Certainty, Evidence, Finding
from envdoctor.matrix.atlas import Origin
from envdoctor.matrix.interface_ranges import places_of
from envdoctor.matrix.interface_records import Record, load_record
from envdoctor.rules.calendar import package_facts
from envdoctor.rules.generations import asking_package
from envdoctor.rules.import_chains import package_of
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.origins import origin_of, told_releases
from envdoctor.rules.view import View

FACT = "raised in"
LAST = "last shown in"
"""Where a traceback is cut off, what raised may stand further in."""
BEGINNING = 80
"""Letters of an error's text by which it is known where it is told again."""
_LACKED = "cannot import name"
"""Such a message names the file of who lacks a name, not of who asks."""
_PATH = re.compile(r"(?:site|dist)-packages[/\\][\w./\\-]{1,300}")
_OF_TORCH = re.compile(r"\blib(?:torch(?:_cpu|_cuda\w{0,20}|_python)?|c10(?:_cuda)?)\.(?:so|dylib)")
"""torch's own shared libraries, by whatever path."""

_OF_PYTHON = re.compile(r"[/\\][Pp]ython3[\d.]{0,3}[/\\](?!(?:site|dist)-packages)|^<frozen ")
"""A file of Python's own library."""
_ELSEWHERE = re.compile(r"\.(?:dylib|dll|pyd)$")
"""How a compiled library's name ends on macOS and Windows: of Linux, and its releases, it tells nothing."""
_NUMBERED = re.compile(r"\.so[\d.]*$")


def with_raisers(view: View, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, those of an error with the place that raised it among their evidence."""
    return [reduce(_placed, _places(view, one), one) for one in findings]


def _placed(finding: Finding, place: Evidence) -> Finding:
    """Return a finding with the place; where it does not name that package at all, its cause does then."""
    if place.fact == LAST and any(one.fact == FACT for one in finding.evidence):
        return replace(finding, evidence=(*finding.evidence, place))
    package = place.value.partition(" ")[0]
    named = package in _words_of(finding) or package.startswith("nvidia-")
    cause = finding.cause if named else f"{finding.cause} It was met in {package}."
    return replace(finding, cause=cause, evidence=(*finding.evidence, place))


def _places(view: View, finding: Finding) -> Iterator[Evidence]:
    """Yield where the last error that a finding is about was raised.

    An error that is told twice is placed by its traceback, one without a traceback by its message; what is
    left of a traceback whose message is cut off stands for what the rest of the text tells, or beside it.
    """
    errors = [*reversed(view.facts.errors)]
    about = [error for error in errors if _is_about(finding, error)]
    traced = [error for error in errors if error.frames]
    twins = [one for one in traced if any(_same(one, error) for error in about)]
    full = [one for one in about if one.frames] or twins
    cut = [one for one in traced if one.kind == "cut" and finding.explains]
    left = [] if full else cut or (traced if about and not traced[1:] else [])
    full.sort(key=lambda error: _ran_in_own(view, error))  # what came out of a library was raised there
    telling = (error for error in about if _LACKED not in error.text)
    placed = partial(_raised_of, view, finding)
    first = next(filter(None, map(placed, (*full, *telling, *left, *about))), None)
    beside = next(filter(None, map(placed, cut)), None) if not full else None
    yield from dict.fromkeys(one for one in (first, beside) if one is not None)


def _raised_of(view: View, finding: Finding, error: ErrorSeen) -> Evidence | None:
    """Return where an error was raised, unless by its words alone, of a library that is not told.

    Several libraries may use the same words: where a finding names another one, that one is as likely.
    """
    place = raised_in(view, error)
    package = place.value.partition(" ")[0] if place else ""
    sure = error.frames or package in error.text or package.startswith("nvidia-") or view.installed(package)
    guess = finding.certainty is Certainty.UNCERTAIN
    return place if sure or guess or package in _words_of(finding) else None


def _words_of(finding: Finding) -> str:
    return f"{finding.summary} {finding.cause}".lower().replace("_", "-")


def _ran_in_own(view: View, error: ErrorSeen) -> bool:
    """True where the innermost line, Python's own aside, is of no library: it was raised on top of one."""
    outside = (frame for frame in reversed(error.frames) if not _OF_PYTHON.search(frame.file))
    return not asking_package(view, next(outside, None))


def _is_about(finding: Finding, error: ErrorSeen) -> bool:
    quoted = {evidence.value for evidence in finding.evidence}
    return error.text in quoted or not set(finding.explains).isdisjoint(error.symptoms)


def _same(traced: ErrorSeen, told: ErrorSeen) -> bool:
    """True where a traceback ends in the class that another line tells, with the same first words if any."""
    one, other = traced.text[:BEGINNING], told.text[:BEGINNING]
    alike = traced.kind == "cut" or one.startswith(other) or other.startswith(one)
    return traced.exception == told.exception != "" and alike


def raised_in(view: View, error: ErrorSeen) -> Evidence | None:
    """Return the innermost line of a library in an error's traceback, with the library's release.

    Without such a frame: the library's file that the message names, or that has the message among its own.
    None where nothing tells.
    """
    package, place = _by_frame(view, error) or _by_path(view, error) or ("", "")
    origin = None if view.version_text(package) else origin_of(view, error)
    if origin and package in ("", origin.library):
        package, place = origin.library, place or _file_of(origin)
    package, place = (package, place) if package else _by_class(view, error) or ("", "")
    if not package:
        return None
    release = view.version_text(package)
    timeless = origin and origin.always and _is_of_cuda(origin)
    telling = origin and origin.library == package and not (timeless or _ELSEWHERE.search(origin.file))
    if release is None and origin and telling:
        release = told_releases(origin)
    release = release or _by_modules(view, package, error) or "of a release that is not told"
    return Evidence(LAST if error.kind == "cut" else FACT, f"{package} {release}: {place}", error.source)


def _file_of(origin: Origin) -> str:
    """Return the file of a message, of a CUDA library no more than its name: each CUDA's lies elsewhere."""
    file = _ELSEWHERE.sub("", origin.file)
    return _NUMBERED.sub("", file.rpartition("/")[2]) if _is_of_cuda(origin) else file


def _is_of_cuda(origin: Origin) -> bool:
    return origin.library.startswith("nvidia-")


def _by_modules(view: View, package: str, error: ErrorSeen) -> str:
    """Return the releases that have each of a package's modules in a traceback; empty where all have."""
    record = load_record(view.matrix.folder, package)
    if record is None:
        return ""
    modules = (_module_of(record, frame) for frame in error.frames)
    spans = [record.modules[module] for module in modules if module in record.modules]
    common = set.intersection(*(set(places_of(some)) for some in spans)) if spans else set[int]()
    if not common:
        return ""
    first, last = record.versions[min(common)], record.versions[max(common)]
    return f"{first} and later" if last == record.versions[-1] else f"{first} to {last}"


def _module_of(record: Record, frame: Frame) -> str:
    """Return what a frame's file is imported as below the last folder called as the package, if any is."""
    path = frame.file.replace("\\", "/").removesuffix(".py").split("/")
    place = len(path) - 1 - path[::-1].index(record.root) if record.root in path else len(path)
    return ".".join(path[place:]).removesuffix(".__init__")


def _by_frame(view: View, error: ErrorSeen) -> tuple[str, str] | None:
    """Return the innermost library and its line; the script that was started is none but as its module."""
    for place, frame in reversed(list(enumerate(error.frames))):
        package = asking_package(view, frame)
        started = place == 0 and frame.function == "<module>" and not package_of(frame.file)
        if package and not (started and not _is_module(view, package, frame)):
            file = frame.file.replace("\\", "/").rpartition("/")[2]
            return package, f"{file}, line {frame.line}" if frame.line else file
    return _in_checkout(view, error)


def _in_checkout(view: View, error: ErrorSeen) -> tuple[str, str] | None:
    """Return the package of whose own repository the innermost line is: a folder in one of its name."""
    frame = next((one for one in reversed(error.frames) if not _OF_PYTHON.search(one.file)), None)
    if frame is None:
        return None
    *folders, file = (part for part in frame.file.replace("\\", "/").split("/") if part != "src")
    for above, folder in reversed(list(pairwise(folders))):
        name = distribution_of(view.matrix, folder)
        own = above.lower() == folder.lower() or _is_repository(above, folder, view, name)
        if folder.isidentifier() and own:
            return name, f"{file}, line {frame.line}" if frame.line else file
    return None


def _is_repository(above: str, folder: str, view: View, name: str) -> bool:
    """True for a folder called after a package that it holds (mmdetection/mmdet), and for a path cut off."""
    return above == "..." or (
        above.lower().startswith(folder.lower()) and package_facts(view, name) is not None
    )


def _is_module(view: View, package: str, frame: Frame) -> bool:
    """True for a file that is one of the modules on record of a package."""
    record = load_record(view.matrix.folder, package)
    return record is not None and _module_of(record, frame) in record.modules


def _by_path(view: View, error: ErrorSeen) -> tuple[str, str] | None:
    """Return the installed package whose file a message names."""
    match = _PATH.search(error.text)
    top = package_of(match[0]).partition(".")[0] if match else ""
    if match and top:
        return distribution_of(view.matrix, top), match[0].rpartition("/")[2]
    built = _OF_TORCH.search(error.text)
    return ("torch", built[0]) if built else None


def _by_class(view: View, error: ErrorSeen) -> tuple[str, str] | None:
    """Return the package whose class of exception it is, where the class is printed with its module."""
    top, dot, rest = error.exception.partition(".")
    name = distribution_of(view.matrix, top) if dot and rest else ""
    return (name, error.exception) if name and package_facts(view, name) else None
