"""What the writer of a text says of the cause and of what helped: told again with the answer, as theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.commands import commands
from envdoctor.facts import MENDED, REPORTED, TOLD_CAUSE, TOLD_WAY, ErrorSeen
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.snapshot import STACK
from envdoctor.rules.calendar import is_recorded, package_facts
from envdoctor.rules.guards import wanted_package
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.messages import distinct
from envdoctor.rules.newest import newest_ways
from envdoctor.rules.view import View

ID = "TOLD-BY-TEXT"
FACT = "the text tells"
OLD_PYTHON = 9
"""The newest minor of Python 3 that is old enough to be left behind by new releases."""
BEGINNING = 60
"""Letters of an error by which a sentence that only tells it again is known."""
_REPLACED = re.compile(
    r"(?i)(?:(?:replaced|superseded) (?:by|with)|renamed (?:to|as|into)|in favou?r of|now (?:called|named))"
    r" (?:the )?[`'\"]{0,2}([A-Za-z_][\w.-]{2,60}\w)"
)
_NEEDED = re.compile(
    r"(?i)\b(?:requir(?:es?|ing)|needs?|depends? on|without|missing|lacks?)(?: the)? [`'\"]{0,2}"
    r"([A-Za-z][\w-]{2,40})[`'\"]{0,2}(?: ?((?:[<>]=?|==) ?\d[\w.]{0,20}\w))?"
)
_TAKEN_OUT = re.compile(
    r"(?i)[`'\"]{0,2}\b([A-Za-z]\w{1,40})\.\w[\w.]{0,60}[`'\"]{0,2} (?:module |package |class |function )?"
    r"(?:(?:is|was|were|has been|got) (?:now )?(?:removed|dropped|deleted|moved)|no longer exists?)\b"
)
_ABSENT = re.compile(
    r"(?i)[`'\"]{0,2}\b([A-Za-z][\w-]{2,40})[`'\"]{0,2} (?:(?:is|was|are)(?:n['’]t| not)|package is not|"
    r"module is not) (?:\w{1,12} )?(?:installed|there|present|found|available)"
)
_EXCLUDE = re.compile(
    r"(?i)\bincompatib|\bnot compatible|\bconflict(?:s|ing)? (?:with|between)|\bmismatch|不兼容|冲突|版本不"
)
_ON_PYTHON = re.compile(
    r"(?i)\b(?:fail|crash|break|broken|error|not (?:work|support|run)|n['’]t (?:work|support|run)|"
    r"(?:occur|happen|appear)s?(?: only)?)\w{0,4}\b[^.;]{0,40}? (?:on|with|under|in|for) python ?"
    r"3\.(\d{1,2})\b"
)
_UNSET = re.compile(
    r"(?i)\b(?:if|when|because|since) (?:the )?[`'\"]{0,2}(\w{2,40}_\w{2,40})[`'\"]{0,2} (?:is|was) "
    r"(?:undefined|none|null|not (?:explicitly )?(?:set|given|defined|passed|specified)|unset|empty|"
    r"missing)\b"
)
"""What a sentence about a cause leads to: the new name, the package that lacks, the setting that is unset."""


def told_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return what the text itself says as the answer to an error; None where it says nothing of a cause."""
    causes, ways = _told(view, TOLD_CAUSE), _told(view, TOLD_WAY)
    again = error.text[:BEGINNING] if error.kind != "said" else "\n"
    told = tuple(one for one in (*causes, *ways) if again not in one.value)
    if not told:
        return None
    remedies = distinct((*_ways(view, causes, ways), *newest_ways(view, error, [one.value for one in told])))
    return Finding(
        id=ID,
        severity=_severity(view, error),
        summary=f"the text itself tells of {'a cause' if causes else 'what helped'}: {told[0].value}",
        cause="That is what its writer says; nothing known here confirms or denies it.",
        evidence=(Evidence("error", error.text, error.source), *told),
        remedies=remedies,
        certainty=Certainty.UNCERTAIN,
        explains=error.symptoms,
        prior=0.55 if remedies else 0.2,
        fallback=True,
    )


def _severity(view: View, error: ErrorSeen) -> Severity:
    """Return how grave it is: trouble told in words alone is so where it is reported, and is not over."""
    if error.kind != "said":
        return Severity.ERROR
    if REPORTED in view.facts.notes:
        return Severity.ERROR
    return Severity.NOTE if MENDED in view.facts.notes else Severity.WARNING


def written_finding(view: View) -> Finding | None:
    """Return what a text without an error line writes of releases that exclude one another; None for none."""
    causes = [one for one in _told(view, TOLD_CAUSE) if _EXCLUDE.search(one.value)]
    if not causes or view.facts.errors:
        return None
    error = ErrorSeen(causes[0].value, causes[0].source, "said")
    return told_finding(view, error)


def _ways(view: View, causes: Sequence[Evidence], ways: Sequence[Evidence]) -> tuple[Remedy, ...]:
    """Return the ways out that a text tells of, and those that the causes it tells of lead to."""
    quoted = (Remedy(f"The text itself tells of a way: “{way.value}”") for way in ways)
    led = (way for one in (*causes, *ways) for way in _led_to(view, one.value))
    return distinct((*quoted, *led))


def _led_to(view: View, said: str) -> Iterator[Remedy]:
    for name in _REPLACED.findall(said):
        yield Remedy(f"Use {name} in its place.")
    for top in _TAKEN_OUT.findall(said):
        name = distribution_of(view.matrix, top.lower())
        if is_recorded(view, name):
            yield Remedy(
                f"Downgrade {name} to an older release that still has it, or port the code to the new one."
            )
    for name in _UNSET.findall(said):
        yield Remedy(f"Set {name} explicitly.")
    for minor in _ON_PYTHON.findall(said):
        old = int(minor) <= OLD_PYTHON
        text = f"Use Python 3.{OLD_PYTHON + 1} or newer." if old else f"Use an older Python than 3.{minor}."
        yield Remedy(text, commands("uv venv --python 3.{}", OLD_PYTHON + 1 if old else int(minor) - 1))
    for name, specifier in (*_NEEDED.findall(said), *((name, "") for name in _ABSENT.findall(said))):
        package = distribution_of(view.matrix, name.lower().replace("-", "_"))
        known = package in STACK or package_facts(view, package) is not None
        if known and not view.installed(package):
            yield from wanted_package(package, specifier.replace(" ", ""))


def _told(view: View, kind: str) -> tuple[Evidence, ...]:
    """Return the sentences of one kind, with their places."""
    notes = (note.removeprefix(kind) for note in view.facts.notes if note.startswith(kind))
    split = (note.partition(": ") for note in notes)
    return tuple(Evidence(FACT, said, place) for place, _, said in split)
