"""Where an error line comes from: the releases that have it as a message, and what leads to it there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.commands import commands, install_commands, pip_install
from envdoctor.facts import ErrorSeen, Frame
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.atlas import WARNINGS, Origin, load_atlas
from envdoctor.rules.asked import PYTHONS_OWN
from envdoctor.rules.calendar import package_facts
from envdoctor.rules.view import View

ID = "RAISED-BY-LIBRARY"
_CLASS = re.compile(r"^(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Za-z_]\w{0,80}:\s*")

_RAISING = re.compile(r"^raise \w{1,80}\(\s{0,4}[rfb]{0,2}(?:\"([^\"]{8,400})|'([^']{8,400}))")
_VALIDATOR = re.compile(r"(?:Value error|Assertion failed), (.{3,600}?)(?: \[type=|$)")
"""How pydantic wraps what a validator raised."""
_FIELD = re.compile(r"\{[^{}]{0,120}\}")
_SENTENCE = re.compile(r"(?<=[.!;])\s{1,4}|\s\d\.\s")
_ASKING = re.compile(
    r"^(?:so |either |otherwise,? |alternatively,? |if [^,]{3,120}, )?"
    r"(?:please|try|consider|use|set|make sure|you (?:can(?! find)|should|need|must|have to)|run|install|"
    r"upgrade|update|reduce|increase|decrease|lower|raise|pass|ensure|check|specify|disable|enable|add|remove|"
    r"provide)\b",
    re.IGNORECASE,
)
_LACKING = re.compile(
    r"\b(?:not (?:yet |currently )?(?:supported|implemented|recognized)|only supports?|unsupported)\b",
    re.IGNORECASE,
)
_VARIABLE = re.compile(
    r"\b([A-Z][A-Z0-9]{1,30}(?:_[A-Z0-9]{1,30}){1,6})\b\W{1,3}(?:must|should|needs to|has to) be (?:set to )?"
    r"[\"'`=]{0,2}(\d{1,6}|[Tt]rue|[Ff]alse)\b"
)
"""What a message says that an environment variable must be."""
ASKED = 3
"""How many sentences of a message that ask for something are taken for ways out."""


def asked_by(text: str) -> tuple[Remedy, ...]:
    """Return what an error message itself asks to be done."""
    validator = _VALIDATOR.search(text)
    message = validator[1] if validator else _CLASS.sub("", text, count=1)
    sentences = (part.strip() for part in _SENTENCE.split(message))
    asking = [part for part in sentences if len(part) <= 300 and _ASKING.match(part)]
    told = tuple(Remedy(f"The message itself asks: {part}") for part in asking[:ASKED])
    return (*_asked_variables(message), *told)


def _asked_variables(message: str) -> Iterator[Remedy]:
    for name, value in dict(_VARIABLE.findall(message)).items():
        yield Remedy(f"The message itself asks for {name}.", commands("export {}={}", name, value))


def origin_of(view: View, error: ErrorSeen) -> Origin | None:
    """Return the most telling place whose message the error line is, or None.

    A library that the facts or the traceback name is believed before another with the same words.
    """
    atlas = load_atlas(view.matrix.folder)
    if atlas is None:
        return None
    found = [origin for origin in atlas.find(_message_of(error)) if origin.kind not in WARNINGS]
    if error.exception != "RuntimeError" and any(symptom in PYTHONS_OWN for symptom in error.symptoms):
        return next((o for o in found if error.frames and _is_at(o, error.frames[-1])), None)
    named = [o for o in found if view.installed(o.library) or _in_frames(o, error) or o.library in error.text]
    return next(iter(named or _originals(view, found)), None)


def _originals(view: View, found: Sequence[Origin]) -> list[Origin]:
    """Return the most telling places, without those in libraries that stand on another of them: copies."""
    alike = [origin for origin in found if origin.letters == found[0].letters]
    libraries = {origin.library for origin in alike}
    return [origin for origin in alike if libraries.isdisjoint(_required_by(view, origin.library))]


def _required_by(view: View, library: str) -> set[str]:
    """Return what the newest release of a library requires."""
    package = package_facts(view, library)
    row = package.row_of(len(package.versions) - 1) if package else -1
    return {one.name for one in package.requirements(row)} if package and row >= 0 else set()


def _message_of(error: ErrorSeen) -> str:
    """Return the message alone: of a validation error what the validator said, of a cut one its code's."""
    validator = _VALIDATOR.search(error.text)
    return validator[1] if validator else _quoted_by_code(error) or _CLASS.sub("", error.text, count=1)


def _quoted_by_code(error: ErrorSeen) -> str:
    """Return the message in the line of code at which a traceback is cut off; empty where there is none."""
    code = error.frames[-1].code if error.kind == "cut" and error.frames else ""
    match = _RAISING.search(code)
    return _FIELD.sub("...", match[1] or match[2]) if match else ""


def _is_at(origin: Origin, frame: Frame) -> bool:
    return frame.file.endswith(origin.file)


def _in_frames(origin: Origin, error: ErrorSeen) -> bool:
    return any(_is_at(origin, frame) for frame in error.frames)


def origin_finding(view: View, error: ErrorSeen, origin: Origin) -> Finding:
    """Return what the origin tells of the error: who says so, in which releases, under what."""
    version = view.version(origin.library)
    place = told_place(origin)
    guard = f" when {origin.guard}" if origin.guard else ""
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{origin.library} stops{guard}: {error.text[:240]}",
        cause=f"The line is one of {origin.library}'s own, in {told_releases(origin)} ({place})."
        + (f" The condition there: {origin.guard}." if origin.guard else "")
        + (f" Here is {version}." if version else " Its release is not told here."),
        evidence=(Evidence("error", error.text, error.source),),
        remedies=(*asked_by(error.text), *_remedies(view, origin), *_newer(error, origin)),
        certainty=Certainty.LIKELY if origin.guard else Certainty.UNCERTAIN,
        sources=(f"wheel:{origin.library}",),
        explains=error.symptoms,
        prior=0.3,
    )


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


def _remedies(view: View, origin: Origin) -> Iterator[Remedy]:
    if origin.guard:
        yield Remedy(f"Change what the condition names, so that it no longer holds: {origin.guard}.")
    last = origin.spans[-1][1]
    if last != origin.newest:
        pins = {origin.library: f">{last}"}
        yield Remedy(
            f"Releases of {origin.library} after {last} no longer say so.", install_commands(pins), pins
        )


def _newer(error: ErrorSeen, origin: Origin) -> Iterator[Remedy]:
    """Where the newest release that was read says that it lacks something, a later one may have it."""
    if origin.spans[-1][1] == origin.newest and _LACKING.search(error.text):
        text = f"Upgrade {origin.library}: what a release does not have yet, a newer one may."
        yield Remedy(text, pip_install(origin.library, options="-U"))
