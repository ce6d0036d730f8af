"""Imports that fail on their way through packages: where the packages of one traceback come from."""

from __future__ import annotations

from envdoctor import lazy_re as re
from envdoctor.commands import pip_install
from envdoctor.facts import ErrorSeen
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity

ID = "PACKAGES-MIXED"
_RELEASE = re.compile(r"-\d.{0,80}\.egg$")
_MARKS = ("site-packages", "dist-packages")


def package_of(path: str) -> str:
    """Return the top package that a traceback's path lies in; empty outside site-packages."""
    _, rest = _split(path)
    return _RELEASE.sub("", rest.partition("/")[0]).removesuffix(".py")


def module_of(path: str) -> str:
    """Return the top package that a path lies in with the folder below it: of a namespace that tells more."""
    _, rest = _split(path)
    folders = rest.split("/")[:-1]
    return ".".join(folders[:2]) if len(folders) > 1 else package_of(path)


def _split(path: str) -> tuple[str, str]:
    """Return the folder that packages are installed in, and the path below it; both empty elsewhere."""
    told = path.replace("\\", "/")
    for mark in _MARKS:
        before, found, rest = told.partition(f"{mark}/")
        if found:
            return before + mark, rest
    return "", ""


def mixed_finding(error: ErrorSeen) -> Finding | None:
    """Return a finding where an import leads from one environment's package into another environment's."""
    frames = [frame for frame in error.frames if package_of(frame.file)]
    if not frames or not frames[-1].code.startswith(("from ", "import ")):
        return None
    last = frames[-1]
    folder, package = _split(last.file)[0], package_of(last.file)
    importer = next((f for f in reversed(frames) if package_of(f.file) != package), None)
    if importer is None or _split(importer.file)[0] == folder:
        return None
    name = normalise(package)
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{package_of(importer.file)} of one environment imports {package} of another ({folder}),"
        " which fails",
        cause=f"The traceback runs through {_split(importer.file)[0]} and {folder}: a package that the"
        " environment lacks is taken from the system or base environment, of a release that was not chosen"
        " for its torch and companions.",
        evidence=(Evidence("error", error.text, error.source),),
        remedies=(
            Remedy(f"Install the {name} that fits into the environment itself.", pip_install(name)),
            Remedy(
                f"Or uninstall {name} where nothing needs it, or make the environment without system ones."
            ),
        ),
        certainty=Certainty.LIKELY,
        explains=error.symptoms,
        prior=0.7,
    )
