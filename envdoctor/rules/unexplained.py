"""What nothing explains: the decisive error line, with where it was raised and what the facts rule out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.facts import ASKED, MENDED, MOOD, REPORTED, STOPPED, WISH, ErrorSeen, Symptom
from envdoctor.findings import Certainty, CheckResult, Evidence, Finding, Outcome, Remedy, Severity
from envdoctor.matrix import Matrix, tables
from envdoctor.rules.base import UNEXPLAINED
from envdoctor.rules.blamed import ID as BLAMED
from envdoctor.rules.blamed import blamed_finding, compared
from envdoctor.rules.bounds import bound_finding, with_bound
from envdoctor.rules.calendar import package_facts
from envdoctor.rules.dated_names import dated_finding
from envdoctor.rules.detours import detour_finding, with_detour
from envdoctor.rules.generations import ID as APART
from envdoctor.rules.generations import asking_package
from envdoctor.rules.import_chains import mixed_finding, package_of
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.messages import asked_by
from envdoctor.rules.model_age import newer_model_finding
from envdoctor.rules.origins import origin_finding, origin_of
from envdoctor.rules.passed import line_of
from envdoctor.rules.places import beside_place, place_finding
from envdoctor.rules.python_says import ID as PYTHON
from envdoctor.rules.python_says import NONE, is_of_python, none_called, python_finding, stdlib_finding
from envdoctor.rules.ranges import parse_version
from envdoctor.rules.sayings import ID as SAID
from envdoctor.rules.sayings import said_finding
from envdoctor.rules.standard_names import standard_name_finding
from envdoctor.rules.suspects import ID as SUSPECTED
from envdoctor.rules.suspects import remote_finding, suspected_finding, unreleased_finding
from envdoctor.rules.told import ID as TOLD
from envdoctor.rules.told import told_finding
from envdoctor.rules.view import View, informs
from envdoctor.rules.weighing import KILLS, was_killed_after
from envdoctor.rules.written_for import companions_finding, written_for_finding
from envdoctor.values import replace

UNMET = "REQUIREMENT-UNMET"
_WEAK = frozenset({"cut", "logged", "said"})
"""Kinds of errors that tell only that something failed."""
_NOT_LINKED = "SYM-SHARED-OBJECT"
"""The loader's word for a library that is not there, whoever asks for it."""
_SENTENCE = 3
"""Words before an error by which its line is a sentence."""
_FAREWELLS = frozenset({"__del__", "_exitfunc", "_run_exitfuncs", "_python_exit"})
_LABEL = re.compile(r"^[\s#]*(?:\[[^\]]{1,40}\]:? *)*")
"""What stands in a title before its words: `# [Bug]: `."""
_WARNED = re.compile(r"\b[A-Z]\w{2,40}Warning: ")
_WENT_ON = re.compile(
    r"^[^A-Za-z\n]{0,60}(?:\([^()\n]{1,60}\) ?)?(?:[\w.]{1,40}[: -]{1,3})?\[?(?:WARNING|WARN)\b|"
    r"^W\d{4} \d\d:\d\d:\d\d|\b[A-Z]\w{2,40}Warning: "
)
"""How a line begins by which a program warns."""
_NAMED = re.compile(r"(?<![A-Za-z])[A-Z]\w{2,40}Warning: ([A-Za-z][A-Za-z0-9_.`' ]{11,})")
"""A warning that a sentence names by its class and its first words."""
_READ = frozenset({SAID, PYTHON})
"""Answers that read a message by its words alone."""
_GUESSES = frozenset({SUSPECTED, APART, BLAMED, TOLD, UNEXPLAINED}) | _READ
"""Answers that another one may stand beside: each tells of one side of the error alone."""
_BESIDE = 0.15
"""The weight of what stands beside such an answer."""
TELLING = 24
"""Letters of a quoted line by which it is known again; fewer may be a version or a name."""
_RULED_OUT = (
    ("DRIVER-TOO-OLD", "a driver too old for torch's CUDA"),
    ("TORCH-ARCH", "a torch without code for the card"),
    ("TORCH-CPU-BUILD", "a CPU build of torch"),
)
"""Checks whose passing is worth saying: what an unexplained error is not."""


def decisive(view: View) -> ErrorSeen | None:
    """Return the last error that is no mere report of another one; None where the paste shows none.

    Of errors without a traceback the one in the title is what the text is about, and so it is where the last
    traceback is cut off.
    """
    seen = view.facts.errors
    strong = [error for error in seen if not is_weak(view, error)]
    title = strong[0] if strong and strong[0].line == 1 and strong[0].beside.startswith("#") else None
    traced = [error for error in strong if error.frames]
    if title and not traced:
        return title
    if title and (meant := [one for one in traced if _same_words(one.text, title.text)]):
        return meant[-1]
    if title and seen[-1].kind == "cut":
        return title  # the error that the traceback at the end would have ended in
    shown = [error for error in seen if error.kind != "said"]
    framed = [error for error in shown if error.frames]
    return (strong or framed or shown or seen)[-1] if seen else None


def is_weak(view: View, error: ErrorSeen) -> bool:
    """True for an error that tells only that something failed, or that another one did."""
    if error.kind in _WEAK or _is_farewell(error) or _reports_another(view.matrix, error) is not None:
        return True
    if error.kind == "line" and _WARNED.search(error.text[:300]):
        return True
    return bool(KILLS & set(error.symptoms)) and was_killed_after(view.facts, error)


def _is_farewell(error: ErrorSeen) -> bool:
    """True for what fails while an object or a process is taken down: what did so failed before."""
    return any(frame.function.rpartition(".")[2] in _FAREWELLS for frame in error.frames)


def _reports_another(matrix: Matrix, error: ErrorSeen) -> tables.ConsequenceRow | None:
    told = f"{error.exception} {error.text}".lower()
    rows = matrix.rows(tables.ConsequenceRow)
    return next((row for row in rows if any(needle in told for needle in row.needles)), None)


def find_unexplained(
    view: View, error: ErrorSeen | None, findings: Sequence[Finding], checks: Iterable[CheckResult]
) -> Iterable[Finding]:
    """Yield one finding for the decisive error line where no cause that was found accounts for it."""
    explained = {s for f in findings if f.severity is not Severity.NOTE for s in f.explains}
    apart = compared(view)
    if error is None:
        noted = {s for f in findings if f.certainty is not Certainty.UNCERTAIN for s in f.explains}
        told = [one for one in view.facts.symptoms if one.id not in noted and not informs(view.matrix, one)]
        left = ([] if explained else told) or [blame.symptom for blame in apart]
        error = _as_error(left[-1]) if left else None
    elif _accounted_for(view, error, explained, findings):
        about = [f for f in findings if set(f.explains) & met_in(view, error)]
        last_resort = about and all(f.is_last_resort for f in about)
        guessed = last_resort or (apart and not any(map(_is_sure, findings)))
        if guessed and (blamed := blamed_finding(view, error)):
            yield blamed
        elif about and all(f.certainty is Certainty.UNCERTAIN for f in about):
            beside = written_for_finding(view, error)
            if beside is None and all(f.id == APART for f in about):
                yield from _beside(view, error, about[0].id)
            else:
                yield from filter(None, [beside or _unquoted(told_finding(view, error), findings)])
        error = None
    if error is not None:
        asked = error.kind == "logged" and ASKED in view.facts.notes  # what a question quotes in passing
        for answer in _answers(view, error, checks):
            follows = answer.follows + _unmet_in(view, error, answer, findings)
            answer = replace(answer, follows=follows) if follows else answer
            yield replace(answer, severity=Severity.WARNING) if asked else answer


def as_printed(view: View, findings: Sequence[Finding], checks: Iterable[CheckResult]) -> list[Finding]:
    """Return findings of which an error accounts for the last error line that a program printed.

    It is the finding that explains the line, whatever its severity; where none does, the line itself. Left
    are lines that a program marks as a warning, that a person quotes in a sentence or stopped by hand, that a
    note knows to be harmless and that the run outlived, and texts that wish, ask or tell that it was mended.
    """
    if {WISH, ASKED, MENDED} & set(view.facts.notes):
        return list(findings)
    ran = max(map(line_of, _stages(view)), default=0)
    printed = [
        e for e in view.facts.errors if e.line >= ran and _is_printed(e) and not _is_told(view, e, findings)
    ]
    if not printed:
        return list(findings)
    error = next((one for one in reversed(printed) if not is_weak(view, one)), printed[-1])
    met = met_in(view, error)
    answers = [f for f in findings if f.severity is Severity.WARNING and met & set(f.explains)]
    if answers:
        return [replace(f, severity=Severity.ERROR) if f is answers[0] else f for f in findings]
    return [*findings, _finding(view, error, checks)]


def _stages(view: View) -> Iterator[str]:
    """Yield where the lines stand by which a run tells how far it came."""
    marks = {symptom for row in view.matrix.rows(tables.ReachedRow) for symptom in row.symptoms}
    yield from (one.source for one in view.facts.symptoms if one.id in marks)


def _is_printed(error: ErrorSeen) -> bool:
    """True for a line that a program printed as an error: no words of a person, marked as no warning."""
    if error.kind == "said" or error.exception == STOPPED or is_in_sentence(error):
        return False
    return not _WENT_ON.search(f"{error.beside} {error.text}"[:300].lstrip())


def is_in_sentence(error: ErrorSeen) -> bool:
    """True where words of a person stand before an error on its line, and no traceback does."""
    words = [word for word in error.beside.strip("`'\" ").split() if word.isalpha()]
    return not error.frames and len(words) >= _SENTENCE


def _is_told(view: View, error: ErrorSeen, findings: Sequence[Finding]) -> bool:
    """True for an error that a note knows, by its signature or its words, or of which a warning is likely.

    A warning is no answer to what a program calls an exception or an error.
    """
    met = met_in(view, error)
    if any(met & set(f.explains) or _is_meant(f, error) for f in findings if f.severity is Severity.NOTE):
        return True
    likely = (f for f in findings if f.certainty is not Certainty.UNCERTAIN and met & set(f.explains))
    moods = {one.captured.get(MOOD) for one in view.facts.symptoms if one.id in met}
    return error.kind == "line" and (any(likely) or moods == {"supposed"})


def _unmet_in(view: View, error: ErrorSeen, answer: Finding, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return what a guess follows from: a package that failed is no release that another one requires."""
    if answer.certainty is not Certainty.UNCERTAIN or not error.frames:
        return ()
    failing = {asking_package(view, frame) for frame in error.frames} - {""}
    sure = (f for f in findings if f.id == UNMET and f.certainty is Certainty.CERTAIN and f.evidence)
    known = any(f.evidence[-1].fact in failing and f.severity is not Severity.NOTE for f in sure)
    return (UNMET,) if known else ()


def _accounted_for(view: View, error: ErrorSeen, explained: set[str], findings: Sequence[Finding]) -> bool:
    """True where a finding explains the error; mere words are likely about what the facts show to fail."""
    if any(_is_meant(one, error) or (error.kind == "said" and _is_told_of(one, error)) for one in findings):
        return True
    if explained & met_in(view, error):
        return True
    # a warning's own trouble is not what a traceback ends in
    graver = not error.frames or any(f.explains and f.severity is Severity.ERROR for f in findings)
    return bool(explained and is_weak(view, error) and graver)


def _is_meant(finding: Finding, error: ErrorSeen) -> bool:
    """True where an error's words are those of a line that a note explains: a known warning, a notice."""
    known = finding.severity is Severity.NOTE and finding.certainty is not Certainty.UNCERTAIN
    quoted = [evidence.value for evidence in finding.evidence]
    title = _LABEL.sub("", error.text)[:TELLING] if error.line == 1 else ""
    named = _NAMED.search(error.text) if error.kind == "said" else None
    if known and named and any(named[1][:TELLING] in text for text in quoted):
        return True
    return known and (any(_is_known_by(error.text, text) for text in quoted) or _is_in(title, quoted))


def _is_in(words: str, quoted: Sequence[str]) -> bool:
    """True where a text begins like one of those quoted, and says enough to be told from others."""
    return len(words) >= TELLING and any(words in text for text in quoted)


def _is_sure(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR and finding.certainty is Certainty.CERTAIN


def _is_told_of(finding: Finding, error: ErrorSeen) -> bool:
    """True for a likely error, and for one that hangs on a card that the words name."""
    if finding.severity is not Severity.ERROR:
        return False
    cards = (e.value.partition(" (")[0].lower() for e in finding.evidence if e.fact == "gpu")
    named = any(card and card in error.text.lower() for card in cards)
    return named or finding.certainty is not Certainty.UNCERTAIN


def met_in(view: View, error: ErrorSeen) -> set[str]:
    """Return the signatures met in an error, and in those of the same words: each is noted once in a text.

    A signature that begins above the line, in a title that tells the message before, was met in it too.
    """
    same = [one for one in view.facts.errors if one is error or _same_words(one.text, error.text)]
    around = {symptom.id for symptom in view.facts.symptoms if _quotes(symptom.text, error.text)}
    return around.union(*(one.symptoms for one in same))


def _quotes(line: str, message: str) -> bool:
    """True where a line holds the message, or the message the whole line."""
    return bool(message) and (message in line or _is_known_by(message, line))


def _is_known_by(message: str, quoted: str) -> bool:
    """True where a message holds a quoted text that is long enough to tell it from others."""
    return len(quoted) >= TELLING and quoted in message


def _same_words(one: str, other: str) -> bool:
    """True where one of two messages is the beginning of the other."""
    return bool(one and other) and (one.startswith(other) or other.startswith(one))


def _answers(view: View, error: ErrorSeen, checks: Iterable[CheckResult]) -> Iterator[Finding]:
    """Yield what can be said of an error that no cause accounts for, the best first.

    A guess about releases says nothing of what the message means: where that can be told, it stands beside.
    """
    first = _answer(view, error, checks)
    yield with_detour(view, first, error) if first.id != UNEXPLAINED else first
    if first.id in _GUESSES and first.certainty is Certainty.UNCERTAIN:
        yield from _beside(view, error, first.id)
    elif first.certainty is Certainty.UNCERTAIN and error.kind != "said":
        yield from filter(None, [blamed_finding(view, error)])


def _beside(view: View, error: ErrorSeen, but: str) -> Iterator[Finding]:
    """Yield what an error's own sentence means, whoever raised it, and what the text tells of its cause.

    What usually fails where it was raised is told in place of such a sentence.
    """
    if error.kind == "said":
        return
    read = companions_finding(view, error) or (None if but in _READ else _read(view, error))
    read = read or beside_place(view, error)
    if read is not None and read.id != but:
        yield replace(read, prior=_BESIDE, follows=(but,))
    if but not in _READ and but != TOLD and (told := told_finding(view, error)):
        yield replace(told, follows=(but,))


def _unquoted(told: Finding | None, findings: Sequence[Finding]) -> Finding | None:
    """Return what a text tells of a cause, unless that is the very line that a finding explains."""
    quoted = [evidence.value for one in findings for evidence in one.evidence]
    own = [one.value for one in told.evidence[1:]] if told else []
    return None if own and all(any(words in line for line in quoted) for words in own) else told


def _read(view: View, error: ErrorSeen) -> Finding | None:
    read = python_finding(view, error) if is_of_python(error.text) else None
    return read or said_finding(view, error, _speaker(view, error))


def _answer(view: View, error: ErrorSeen, checks: Iterable[CheckResult]) -> Finding:
    """Return the best that can be said of an error that no cause accounts for."""
    if of_python := standard_name_finding(view, error):
        return of_python
    said = [one for one in view.facts.errors if one.kind == "said"] if error.kind == "said" else []
    for one in (error, *said):
        of_none = NONE.search(one.text)  # Python's own words, whoever else has them in a message
        if not of_none and not _reports_another(view.matrix, one) and (origin := origin_of(view, one)):
            return with_bound(view, origin_finding(view, one, origin), one)
    place = place_finding(view, error, empty=_reports_another(view.matrix, error) is not None)
    blamed = None if place else blamed_finding(view, error)
    return (
        mixed_finding(error)
        or bound_finding(view, error)
        or place
        or written_for_finding(view, error)
        or newer_model_finding(view, error)
        or blamed
        or dated_finding(view, error)
        or stdlib_finding(view, error)
        or none_called(view, error)
        or (None if is_of_python(error.text) else said_finding(view, error, _speaker(view, error)))
        or (python_finding(view, error) if _NOT_LINKED in error.symptoms else None)
        or suspected_finding(view, error)
        or remote_finding(view, error)
        or unreleased_finding(view, error)
        or python_finding(view, error)
        or told_finding(view, error)
        or detour_finding(view, error)
        or _finding(view, error, checks)
    )


def _speaker(view: View, error: ErrorSeen) -> str:
    """Return the package whose code raised an error; empty where no frame of one is innermost."""
    return asking_package(view, error.frames[-1]) if error.frames else ""


def _as_error(symptom: Symptom) -> ErrorSeen:
    return ErrorSeen(symptom.text, symptom.source, symptoms=(symptom.id,))


def _finding(view: View, error: ErrorSeen, checks: Iterable[CheckResult]) -> Finding:
    if error.kind == "said":
        return _told_in_words(view, error)
    if error.exception == STOPPED:
        return _stopped(view, error)
    where = _raised_in(error)
    passed = {check.rule for check in checks if check.outcome is Outcome.PASSED and check.reason is None}
    report = _reports_another(view.matrix, error)
    excluded = [words for rule, words in _RULED_OUT if rule in passed]
    cause = [
        f"No row of the matrix and no rule accounts for this line{where}; what caused it is not known here.",
        f"It ended as: {error.ended.rstrip('.')}." if error.ended else "",
        "It only reports that something else failed: the error that started it is not in the text."
        if report
        else "",
        f"The facts rule out {_listed(excluded)}." if excluded else "",
        *_beyond(view, error),
    ]
    return Finding(
        id=UNEXPLAINED,
        severity=Severity.ERROR,
        summary=f"unexplained: {error.text[:300]}",
        cause=" ".join(part for part in cause if part),
        evidence=(Evidence("error", error.text, error.source),),
        remedies=(*asked_by(error.text), *(Remedy(way) for way in (report.ways if report else ()))),
        certainty=Certainty.UNCERTAIN,
        explains=error.symptoms,
        prior=0.0,
    )


def _beyond(view: View, error: ErrorSeen) -> Iterator[str]:
    """Yield which libraries that the error ran through are newer than all that is known of them."""
    folders = dict.fromkeys(package_of(frame.file) for frame in error.frames)
    for name in dict.fromkeys(distribution_of(view.matrix, folder) for folder in folders if folder):
        told, package = view.version(name), package_facts(view, name)
        newest = parse_version(package.versions[-1]) if package else None
        if told is not None and newest is not None and newest.release < told.release:
            yield f"{name} {told} is newer than what is known of it here, which ends with {newest}."


def _told_in_words(view: View, error: ErrorSeen) -> Finding:
    summary = "the text tells of trouble, but shows no error line that is recognised: "
    return _as_reported(
        view,
        error,
        "text",
        summary + error.text.lstrip("# ")[:200],
        "Nothing that was found accounts for these words, and they do not say what failed. The last"
        " lines of the log and the versions (`pip list`, `nvidia-smi`) would.",
    )


def _stopped(view: View, error: ErrorSeen) -> Finding:
    """What a person ended may have hung, or been done with."""
    return _as_reported(
        view,
        error,
        "error",
        f"the run was stopped by hand (Ctrl-C, SIGINT){_raised_in(error).replace('raised', 'while')}",
        "Nothing that was found failed before. Where it hung, the traceback shows what it waited for"
        " when it was stopped.",
    )


def _as_reported(view: View, error: ErrorSeen, fact: str, summary: str, cause: str) -> Finding:
    """Return what is an error only where somebody says that something failed, a note where it is over."""
    over = error.kind == "said" and MENDED in view.facts.notes
    otherwise = Severity.NOTE if over else Severity.WARNING
    return Finding(
        id=UNEXPLAINED,
        severity=Severity.ERROR if REPORTED in view.facts.notes else otherwise,
        summary=summary,
        cause=cause,
        evidence=(Evidence(fact, error.text, error.source),),
        certainty=Certainty.UNCERTAIN,
        explains=error.symptoms,
        prior=0.0,
    )


def _raised_in(error: ErrorSeen) -> str:
    if not error.frames:
        return ""
    frame = error.frames[-1]
    package = package_of(frame.file)
    place = f"{frame.function or 'a module'} ({frame.file.rpartition('/')[2]}, line {frame.line})"
    return f", raised by {package} in {place}" if package else f", raised in {place}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
