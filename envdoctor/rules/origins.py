"""Where an error line comes from: the releases that have it as a message, and what leads to it there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.commands import install_commands, pip_install
from envdoctor.facts import ErrorSeen, Frame
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.atlas import COMPILED, WARNINGS, Origin, load_atlas
from envdoctor.matrix.snapshot import STACK
from envdoctor.rules.asked import PYTHONS_OWN
from envdoctor.rules.calendar import standing_on_none
from envdoctor.rules.foreign import foreign_backend
from envdoctor.rules.generations import asking_package
from envdoctor.rules.guards import said_of
from envdoctor.rules.messages import asked_by, distinct, is_lacking, message_of, newer
from envdoctor.rules.ranges import parse_version
from envdoctor.rules.sayings import saying_of
from envdoctor.rules.view import View

ID = "RAISED-BY-LIBRARY"
_SPACE = re.compile(r"[\W_]+")
_BLANK = "..."
"""What stands in a template where the message has a value."""
_INSTALL = re.compile(r"`pip install ([A-Za-z][\w.-]{1,60})`")
_SYSTEM = frozenset(
    (
        "no such file or directory",
        "permission denied",
        "operation not permitted",
        "operation not supported",
        "invalid argument",
        "bad address",
        "broken pipe",
        "file exists",
        "is a directory",
        "not a directory",
        "no space left on device",
        "cannot allocate memory",
        "too many open files",
        "resource temporarily unavailable",
        "device or resource busy",
        "input output error",
        "address already in use",
        "connection refused",
        "connection reset by peer",
        "connection timed out",
        "network is unreachable",
        "no route to host",
        "expected str bytes or os pathlike object not",
        "arg is an empty sequence",
        "is an empty sequence",
        "max iterable argument is empty",
        "min iterable argument is empty",
        "object of type is not json serializable",
        "list index out of range",
        "division by zero",
        "init got multiple values for argument",
        "issubclass arg must be a class",
        "issubclass arg 1 must be a class",
        "issubclass arg 2 must be a class or tuple of classes",
        "isinstance arg 2 must be a type or tuple of types",
        "python integer out of bounds for",
    )
)
"""What the C library says of a failed call, and Python of a path that is none."""


def origin_of(view: View, error: ErrorSeen) -> Origin | None:
    """Return the most telling place whose message the error line is, or None.

    A library that the facts or the traceback name is believed before another with the same words.
    """
    atlas = load_atlas(view.matrix.folder)
    if atlas is None:
        return None
    found = [origin for origin in atlas.find(message_of(error)) if origin.kind not in WARNINGS]
    if error.exception != "RuntimeError" and any(symptom in PYTHONS_OWN for symptom in error.symptoms):
        return next((o for o in found if error.frames and _is_at(o, error.frames[-1])), None)
    found = [one for one in found if not (is_of_system(one.template) or _is_of_another(view, one, error))]
    if found and foreign_backend(view):
        found = [origin for origin in found if not origin.library.startswith("nvidia-")]
    named = [o for o in found if view.installed(o.library) or _in_frames(o, error) or o.library in error.text]
    return next(iter(named or _originals(view, found)), None)


def is_of_system(template: str) -> bool:
    """True where a message is the C library's or Python's own, which any program may print."""
    return _SPACE.sub(" ", template).strip().lower() in _SYSTEM


def _originals(view: View, found: Sequence[Origin]) -> list[Origin]:
    """Return the most telling places, without those in libraries that stand on another of them: copies.

    Of equals the one that most others are built on comes first.
    """
    alike = [origin for origin in found if origin.letters == found[0].letters]
    libraries = standing_on_none(view, {origin.library for origin in alike})
    left = [origin for origin in alike if origin.library in libraries]
    return sorted(left, key=lambda one: STACK.index(one.library) if one.library in STACK else len(STACK))


def _is_of_another(view: View, origin: Origin, error: ErrorSeen) -> bool:
    """True where the innermost frame is another package's: what Python raises is raised there."""
    if origin.kind == COMPILED or error.kind != "exception" or not error.frames:
        return False
    package = asking_package(view, error.frames[-1])
    return package not in ("", origin.library) and not _in_frames(origin, error)


def _is_at(origin: Origin, frame: Frame) -> bool:
    return frame.file.endswith(origin.file)


def _in_frames(origin: Origin, error: ErrorSeen) -> bool:
    return any(_is_at(origin, frame) for frame in error.frames)


def origin_finding(view: View, error: ErrorSeen, origin: Origin) -> Finding:
    """Return what the origin tells of the error: who says so, in which releases, under what."""
    version = view.version(origin.library)
    place = told_place(origin)
    terms = said_of(view, origin.guard, error.text, origin.function, origin.library) if origin.guard else ()
    told = "; ".join(term.words for term in terms)
    denied = [term.words for term in terms if term.holds is False]
    held = not denied and bool(terms and terms[-1].holds)
    guard = f" because {told}" if told else f" when {origin.guard}" if origin.guard else ""
    saying = saying_of(view, error, origin.library)
    causes = (
        saying.cause if saying else "",
        f"It stops there because {told}." if told else "",
        f"The line is one of {origin.library}'s own, in {told_releases(origin)} ({place}).",
        f"The condition there: {origin.guard}." if origin.guard else "",
        f"By what is listed here it is not so that {' and '.join(denied)}: what is listed is not what ran."
        if denied
        else "",
        f"Here is {version}." if version else "Its release is not told here.",
    )
    of_machine = any(term.of_machine for term in terms)
    said = saying.remedies if saying and not of_machine else ()
    ways = (*(way for term in terms for way in term.ways), *said)
    asked = asked_by(error.text) or _asked_by_whole(origin)
    of_releases = (*_remedies(view, origin, told, bool(ways or asked), held), *_newer(error, origin))
    remedies = (*asked, *ways, *(() if of_machine else of_releases))
    shown = (*(saying.evidence if saying else ()), *(one for term in terms for one in term.evidence))
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{origin.library} stops{guard}: {error.text[:240]}",
        cause=" ".join(part for part in causes if part),
        evidence=(Evidence("error", error.text, error.source), *dict.fromkeys(shown)),
        remedies=distinct(remedies),
        certainty=Certainty.LIKELY if origin.guard or (saying and saying.evidence) else Certainty.UNCERTAIN,
        rows=(saying.row,) if saying else (),
        sources=(f"wheel:{origin.library}",),
        explains=error.symptoms,
        prior=0.5 if held else 0.3,
    )


def _asked_by_whole(origin: Origin) -> tuple[Remedy, ...]:
    """Return what the whole message asks where a text has only its beginning, with the command it names."""
    asked = (way for way in asked_by(origin.template) if _BLANK not in way.text)
    named = ((way, _INSTALL.search(way.text)) for way in asked)
    return tuple(Remedy(way.text, pip_install(match[1]) if match else ()) for way, match in named)


def told_place(origin: Origin) -> str:
    """Return the file, and the function in it, that has the message."""
    return f"{origin.file.rpartition('/')[2]}{f', {origin.function}' if origin.function else ''}"


def told_releases(origin: Origin) -> str:
    """Return the releases that have the message in words; of each minor the last release was read."""
    return " and ".join(_told(first, last, origin.newest) for first, last in origin.spans)


def _told(first: str, last: str, newest: str) -> str:
    if last == newest:
        return f"{first} and later"
    return first if first == last else f"{first} to {last}"


def _remedies(view: View, origin: Origin, told: str, known: bool, held: bool) -> Iterator[Remedy]:
    """Yield what the place tells: its condition where nothing better follows from it, and other releases.

    Where the facts show that the condition holds, those from before it are a way out as well.
    """
    if origin.guard and not (known or origin.guard.isidentifier()) and " is raised" not in origin.guard:
        yield Remedy(f"Change what it stops at: {told or origin.guard}.")
    last = origin.spans[-1][1]
    if last != origin.newest:
        pins = {origin.library: f">{last}"}
        yield Remedy(
            f"Upgrade {origin.library}: releases after {last} no longer say so.", install_commands(pins), pins
        )
    if held or last != origin.newest or _came_with_a_major(origin):
        yield from _before(view, origin)


def _came_with_a_major(origin: Origin) -> bool:
    """True where a line came with a major's first release: what calls it was written for the major before."""
    first = parse_version(origin.spans[0][0])
    return first is not None and first.major > 0 and first.minor == 0


def _before(view: View, origin: Origin) -> Iterator[Remedy]:
    """Offer the releases from before a line that later releases took out again."""
    first = parse_version(origin.spans[0][0])
    if first and not origin.first:
        pins = {origin.library: f"<{first.major}.{first.minor}"}
        text = f"Or downgrade {origin.library}: the line came with {first.major}.{first.minor}."
        yield Remedy(text, install_commands(pins), pins)


def _newer(error: ErrorSeen, origin: Origin) -> Iterator[Remedy]:
    """Where the newest release that was read says that it lacks something, a later one may have it."""
    if origin.spans[-1][1] == origin.newest and is_lacking(error.text):
        yield newer(origin.library)
