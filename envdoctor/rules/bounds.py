"""Releases that an error's own sentence names: what it needs, was built with, where something came or went.

Libraries word such bounds in a few ways, whoever they are. Only the message of the error that nothing else
explains is read, and a bound that what is installed keeps says nothing.
"""

from __future__ import annotations

from packaging.version import Version

from envdoctor import lazy_re as re
from envdoctor.commands import commands, install_commands
from envdoctor.facts import ErrorSeen
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.snapshot import STACK
from envdoctor.rules.calendar import is_recorded, package_facts
from envdoctor.rules.generations import asking_package
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.messages import message_of
from envdoctor.rules.ranges import parse_version, specifier_in, version_satisfies
from envdoctor.rules.view import View
from envdoctor.values import dataclass, replace

ID = "BOUND-TOLD"
LONGEST = 800
"""Characters of a message that are read."""
_PYTHON = "python"
_NAME = r"(?P<name>[A-Za-z][\w-]{1,38}[A-Za-z0-9](?: [Aa]ttention(?: ?2)?)?)"
_OF = r"[`'\"]{0,2}(?:'s)? ?(?:package |library |module )?(?:version |release |ver\. ?|v\.? ?)?[`'\"(]{0,2}"
_DOTTED = r"v?(?P<version>\d{1,4}(?:\.\d{1,5}){1,3})(?![\w.%-]*\w|\s?(?:times|%|[KMGT]i?B\b|sec|of\b))"
_VERSION = r"v?(?P<version>\d{1,4}(?:\.\d{1,5}){1,3}(?:\.?(?:post|rc|dev|a|b)\d{1,8})?|\d{1,3}(?![\w.%-]))"
_RANGE = r"(?P<range>(?:[<>]=?|==|~=|!=) ?v?\d[\w.]{0,20}(?: ?,? ?(?:[<>]=?|==|~=|!=) ?v?\d[\w.]{0,20}){0,3})"
_LEAST = r"(?:newer than(?: or equal to)?|(?:greater|higher|later) than or equal to|at least|from|above)"
_UP = r"(?: ?\+| (?:or|and) (?:newer|higher|later|above|greater|up(?:wards)?)|, or (?:newer|higher|later))"
_DOWN = r"(?: (?:or|and) (?:older|lower|earlier|below|less))"
_FOUND = re.compile(
    r"(?i)[,;.(]?\s{0,2}\b(?:but|found|got|however|you(?:r| have| are)|detected|current(?:ly)?|"
    r"(?:is |are )?(?:currently |now )?installed)\b(?=[^\d]{0,48}\d{1,4}\.\d)"
)
"""Where a message goes on with what is there."""
_FOUND_FIRST = re.compile(
    r"(?i)(?:found|got|detected|you have|your|installed|current)\b"
    r"[^\d\n]{0,60}\d[\w.]{1,20}[^.;,\n]{0,40}[.;,]\s"
)
_OF_ONE = re.compile(r"(?i)\bversions?\b")
"""What a message has that speaks of a release without the package's name beside the number."""
_THERE = re.compile(r"\bv?(\d{1,4}(?:\.\d{1,5}){1,3}(?:\.?(?:post|rc|dev|a|b)\d{1,8})?)")
_NEEDS = re.compile(
    r"(?i)\b(?:requir(?:es?|ed|ing)|needs?|needed|must|please|install|upgrad\w{0,3}|updat\w{0,3}|should|use|"
    r"downgrad\w{0,3}|pin\w{0,4}|works? (?:only )?(?:with|on)|supports?|supported|depends? on|compatible|"
    r"expect\w{0,3}|has requirement)\b"
)
_WORD = re.compile(r"[A-Za-z][\w-]{2,40}")
_BETWEEN = re.compile(r"(?<=[\w.]),?(?=[<>=~!])")
_BARE_V = re.compile(r"(?<=[<>=])v(?=\d)")
FORMS = tuple(
    (re.compile(pattern), bound)
    for pattern, bound in (
        (rf"(?i)\b{_NAME}{_OF}{_RANGE}", "range"),
        (
            rf"(?i)\b{_NAME}{_OF}(?:must|should|needs? to|has to|have to) be (?:{_LEAST}|>=?)"
            rf"(?: or equal to)?(?: version)? {_VERSION}",
            "least",
        ),
        (
            rf"(?i)\b{_NAME}{_OF}(?:must|should|needs? to|has to|have to) be "
            rf"(?:(?:less|lower|smaller|older|earlier) than|below|<) {_VERSION}",
            "below",
        ),
        (rf"(?i)\b{_NAME}{_OF}is (?:older|lower|earlier|less) than {_VERSION}", "least"),
        (rf"(?i)\b{_NAME}{_OF}{_LEAST} {_VERSION}", "least"),
        (
            rf"(?i)\b{_NAME}{_OF}(?:(?:older|lower|earlier|less) than|below|before|prior to) {_VERSION}",
            "below",
        ),
        (rf"(?i)\b{_NAME}{_OF}{_VERSION}{_UP}", "least"),
        (rf"(?i)\b{_NAME}{_OF}{_VERSION}{_DOWN}", "most"),
        (
            rf"(?i)\b(?:built|compiled|linked|build) (?:with|for|against|using|on) {_NAME}{_OF}{_VERSION}",
            "minor",
        ),
        (
            rf"(?i)(?<!not )(?<!n't )\b(?:introduced|added|available|supported|new|exists?|appeared)"
            rf"(?: only)? (?:in|from|since|with|starting (?:from|with|in)) (?:{_NAME}{_OF})?{_VERSION}",
            "least",
        ),
        (
            rf"(?i)\b(?:removed|dropped|gone|deleted|discontinued|no longer (?:supported|available|exists?))"
            rf" (?:in|since|from|as of|with) (?:{_NAME}{_OF})?{_VERSION}",
            "below",
        ),
        (rf"(?i)\b{_NAME} {_VERSION} (?:has |have )?(?:removed|dropped|deleted)\b", "below"),
        (rf"(?i)\b(?:up to|until|not newer than) {_NAME}{_OF}{_VERSION}", "most"),
        (
            rf"(?i)\b(?:downgrade|roll back|step back|go back|revert|pin) (?:your |the )?{_NAME}{_OF}"
            rf"(?:to|at|from [\w.]{{1,20}} to) (?:version )?{_VERSION}",
            "most",
        ),
        (
            rf"(?i)\b(?:upgrade|update|raise) (?:your |the )?{_NAME}{_OF}"
            rf"(?:to|from [\w.]{{1,20}} to) (?:at least )?(?:version )?{_VERSION}",
            "least",
        ),
        (rf"(?i)\b(?:requires?|needs?|expects?|only supports?) (?:the )?{_NAME}{_OF}{_VERSION}", "minor"),
        (rf"(?i)\b(?:only )?versions? (?:>=?|{_LEAST}|later than) ?{_VERSION}", "least"),
        (rf"(?i)\b(?:only )?versions? (?:<|below|before|(?:older|lower|earlier) than) ?{_VERSION}", "below"),
        (rf"(?i)\bminimum(?: required| supported)? version (?:of|for) {_NAME}{_OF}is:? {_VERSION}", "least"),
        (rf"(?i)\bmaximum(?: required| supported)? version (?:of|for) {_NAME}{_OF}is:? {_VERSION}", "most"),
        (rf"(?i)\b(?:supported|compatible|allowed|required) versions?(?: are| is)?:? {_RANGE}", "range"),
        (rf"(?i)\bat least(?: version)? {_DOTTED}", "least"),
        (rf"(?i)\bexpect(?:s|ed)?:? (?:version )?{_DOTTED}", "minor"),
        (rf"(?i)\b(?:use|install) {_NAME}{_OF}{_VERSION}", "minor"),
        (
            rf"(?i)\b{_NAME}(?: version)?(?: v?\d[\d.]{{0,12}})? is (?:not new enough|too old|outdated)\b",
            "newer",
        ),
        (rf"(?i)\b{_NAME}(?: version)?(?: v?\d[\d.]{{0,12}})? is (?:not old enough|too new)\b", "older"),
    )
)
"""How a bound is worded, the plainest first, and which one it is."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What a message asks of a distribution, and the release that it says is there."""

    name: str
    specifier: str
    found: str


def bound_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return the bound that an error tells of a package as its answer; None for none and for one kept."""
    bound = bound_in(view, error)
    if bound is None:
        return None
    have = parse_version(bound.found) or _version(view, bound.name)
    if have is None and error.kind == "said":
        return None  # a person's words of a release that nothing tells
    if have is not None and version_satisfies(have, bound.specifier):
        return None
    if have is None and _admits_all(view, bound):
        return None
    shown = Evidence(bound.name, str(have), "the message" if bound.found else "the facts")
    pins = {bound.name: bound.specifier}
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"the message itself asks for {bound.name}{bound.specifier}"
        + (f"; {bound.name} {have} is installed" if have else "")
        + f": {error.text[:200]}",
        cause=f"The failing code was written for, or built with, the releases of {bound.name} that it names.",
        evidence=(Evidence("error", error.text, error.source), *((shown,) if have else ())),
        remedies=(_way(bound, pins),),
        certainty=Certainty.LIKELY,
        sources=("https://packaging.python.org/en/latest/specifications/version-specifiers/",),
        explains=error.symptoms,
        prior=0.7,
    )


def _admits_all(view: View, bound: Bound) -> bool:
    """True for a bound that every release on record keeps: what it is about is not known here."""
    package = package_facts(view, bound.name)
    known = map(parse_version, package.versions[-1:]) if package else ()
    return bound.specifier.startswith("<") and any(v and version_satisfies(v, bound.specifier) for v in known)


def _way(bound: Bound, pins: dict[str, str]) -> Remedy:
    if bound.name == _PYTHON:
        version = bound.specifier.strip("<>=~!").partition(",")[0]
        return Remedy(f"Use a Python {bound.specifier}.", commands("uv venv --python {}", version), pins)
    return Remedy(f"Install a release of {bound.name} in that range.", install_commands(pins), pins)


def bound_in(view: View, error: ErrorSeen) -> Bound | None:
    """Return the first bound of a package that the message of an error tells."""
    message = " ".join(message_of(error)[:LONGEST].split())
    asked, there = _split(message)
    speaker = _of_release(view, there) or (asking_package(view, error.frames[-1]) if error.frames else "")
    for pattern, kind in FORMS:
        for match in pattern.finditer(asked):
            if kind == "range" and not _NEEDS.search(asked):
                continue
            if "name" in pattern.groupindex:
                word = match["name"]
                name = _package(view, word, plain=kind != "range") if word else _only(view, asked, speaker)
            else:
                name = _of_release(view, there) or (
                    _only(view, message, "") if _OF_ONE.search(message) else ""
                )
            if name and (specifier := _specifier(kind, match, _version(view, name))):
                return Bound(name, specifier, _there(there))
    return None


def _version(view: View, name: str) -> Version | None:
    return parse_version(view.python.get() or "") if name == _PYTHON else view.version(name)


def _split(message: str) -> tuple[str, str]:
    """Return what a message asks for, and what it says is there."""
    if first := _FOUND_FIRST.match(message):
        return message[first.end() :], first[0]
    match = next((m for m in _FOUND.finditer(message) if m.start() > 8), None)
    return (message[: match.start()], message[match.start() :]) if match else (message, "")


def _there(text: str) -> str:
    match = _THERE.search(text[:80])
    return match[1] if match else ""


def _package(view: View, word: str, plain: bool) -> str:
    """Return the distribution that a word of a message stands for; empty for a word that is none.

    `plain` is a word of a sentence: it has to be a name that is read from running text, as many words are
    some distribution's name.
    """
    told = " ".join(word.lower().split())
    if told == _PYTHON:
        return _PYTHON
    name = view.matrix.lexicon.packages.find(told) or ""
    other = "" if name or plain else distribution_of(view.matrix, told.replace("-", "_"))
    return name or (other if other in STACK or is_recorded(view, other) else "")


def _of_release(view: View, there: str) -> str:
    """Return the only package that is told of in the release that a message finds; empty for none."""
    found = _there(there)
    told = [
        name for name in view.facts.environment.distributions if found and view.version_text(name) == found
    ]
    return told[0] if len(told) == 1 else ""


def _only(view: View, message: str, speaker: str) -> str:
    """Return whose release a bare number is: of the package that speaks, or of the only one that is named."""
    named = {_package(view, word, plain=True) for word in _WORD.findall(message)} - {""}
    return speaker or (named.pop() if len(named) == 1 else "")


def _specifier(kind: str, match: re.Match[str], have: Version | None) -> str:
    if kind in ("newer", "older"):
        return f"{'>' if kind == 'newer' else '<'}{have.public}" if have else ""
    if kind == "range":
        return specifier_in(_BARE_V.sub("", _BETWEEN.sub(",", match["range"].replace(" ", ""))))
    version = parse_version(match["version"])
    if version is None:
        return ""
    release = [str(number) for number in version.release]
    after = ".".join((*release[:1], str(version.minor + 1))) if len(release) > 1 else str(version.major + 1)
    match kind:
        case "least":
            return f">={version}"
        case "below":
            return f"<{version}"
        case "most":
            return f"<{after}" if len(release) < 3 else f"<={version}"
        case _:
            return f"=={'.'.join(release[:2])}.*"


def with_bound(view: View, finding: Finding, error: ErrorSeen) -> Finding:
    """Return an answer to an error with the way that the error's own bound leads to, where it lacks it."""
    told = bound_finding(view, error)
    if told is None or any(told.remedies[0].pins.keys() & one.pins.keys() for one in finding.remedies):
        return finding
    return replace(finding, remedies=(*told.remedies, *finding.remedies))
