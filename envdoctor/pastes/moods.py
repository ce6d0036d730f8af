"""How a text speaks of an error line: as printed, in a sentence, as what may come or is over, or as absent.

What is certain needs a line that a program printed: words of a sentence are told, what a guide says one may
see is supposed, and what is denied, tested for or printed by a script's own code did not happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from envdoctor import lazy_re as re
from envdoctor.facts import MOOD
from envdoctor.pastes.sentences import OVER, is_sentence
from envdoctor.pastes.sightings import fenced_lines
from envdoctor.pastes.symptoms import Sight
from envdoctor.pastes.warned import is_logged

PRINTED, TOLD, SUPPOSED, DENIED = "", "told", "supposed", "denied"
_MOST = 0.6
"""The share of a line above which it is the message itself and no sentence about it."""
_BEFORE = 160
_CLAUSE = re.compile(r"[.!?;](?:\s|$)|[。！？；]")
_SENTENCE = re.compile(r"[.!?](?:\s|$)|[。！？]")
_CODE = re.compile(
    r"^\s*(?:(?:\S{1,40} )?\|\| |(?:el)?if .{0,80}; then )?"
    r"(?:echo|printf?|grep|egrep|rg|log(?:ger|ging)?\.\w{1,12}|assert|(?:el)?if|while|case)\b[ (]"
    r"[^\n]{0,200}?[\"'][^\"'\n]{0,120}$"
)
"""What stands before a text that code prints, looks for or compares."""
_PASSED = re.compile(r"::test_\w{1,120} PASSED|\btest_\w{1,120} \.\.\. ok\b")
_SET_TO = re.compile(r"^[\w ]{0,20}\b(?:is |was )?set to \d")
_NOT = re.compile(
    r"(?i)(?:\b(?:no|not|never|nothing|without|impossible to|no longer|free of|instead of|rather than|"
    r"(?:do|does|did|has|have|had|is|was)(?:n['’]?t| not))\s(?:(?:any|an?|the|get|gets|got|see|seen|have|had|"
    r"more|errors?|of|to|this|such|cuda|gpu|longer|raise|throw|hits?|cause|runs?|into|ever|single|oom)\s){0,4}|"
    r"(?:没有|不会|不再|无)\s?|\bignoring (?:the |this )?(?:exception|error)?:? ?)[\"'`*]{0,3}$"
)
_IGNORED = re.compile(r"\bsilently ignor|\bwill be ignored silently\b")
"""Words by which a program says that it goes on without what failed."""
_NEAR = 5
_RAISED = re.compile(r"[#\s>*-]{0,8}(?:\w{1,60}\.){0,8}\w{0,60}(?:Error|Exception|Warning): ")
"""How a line begins that the interpreter printed."""
_SYSLOG = re.compile(r"(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8} \S{1,60} )?[\w./-]{2,40}\[\d{1,7}\]: ")
"""How a line begins that the system's log has of a program."""
_NEVER = re.compile(r"(?i)\b(?:nothing|never|without any)\b")
_GUIDE = re.compile(
    r"(?i)\b(?:if|in case|when|whenever|else|otherwise|should) (?:you|one|users?)\b|"
    r"\b(?:you|one|users?)(?: (?:may|might|will|would|could|can)|['’]ll)? "
    r"(?:see|get|hit|encounter|find|receive)s?\b|"
    r"\bif (?:the|your|a|there|no) |\b(?:may|might|could|would|can) (?:\w{1,12} ){1,4}[\"'`*]{0,3}$|"
    r"\b(?:to|how to) (?:fix|avoid|solve|resolve|prevent)\b|^\W{0,4}(?:otherwise|or else)\b"
)
_MAY_COME = re.compile(
    r"(?i)^(?! {4}|\t)\W{0,4}(?:if|in case|when(?:ever)?) (?!i |we |my )"
    r"(?:an? |the |you |there )?(?:[\w-]{1,20} ){0,4}$|"
    r"\b(?:may|might|could|can) (?:\w{1,12} ){0,2}(?:cause|lead to|result in|run into|trigger|raise|throw) "
    r"(?:\w{1,12} ){0,3}$|\b(?:i|we) (?:suppose|guess|assume|presume|wonder)\b"
)
"""How a hint speaks of what has not happened: `If out-of-memory occurs during capture, lower …`."""
MENDED = re.compile(
    r"(?i)^\s*[-*•+]\s+(?:\*\*)?(?:\[[\w ]{1,20}\]:?\s*)?(?:bug ?)?fix(?:e[sd])?\b(?! (?:me|this|it)\b)"
)
"""How a list of changes tells what is mended: `- Fix out-of-memory in evaluation`."""
_MEANS = re.compile(r"(?i)^[\"'`*]{0,3},?\s?(?:means?|indicates?|is (?:raised|printed|shown) (?:when|if))\b")
_MINE = re.compile(r"(?i)\b(?:i|we|my|me|our)\b")
_ASKING = re.compile(
    r"(?i)^\W{0,6}(?:do|does|did|is|are|can|could|will|would|should|what|how|which|may|when|if)\b[^?]{0,400}\?"
)


def with_moods(sights: Sequence[Sight], lines: Sequence[str]) -> list[Sight]:
    """Return the signatures that are not denied, each that no program printed with how it is spoken of."""
    if not sights:
        return []
    fenced = fenced_lines(lines)
    spoken = ((sight, _mood_of(sight, lines, fenced)) for sight in sights)
    return [
        replace(sight, captured={**sight.captured, MOOD: mood}) if mood else sight
        for sight, mood in spoken
        if mood != DENIED
    ]


def _mood_of(sight: Sight, lines: Sequence[str], fenced: frozenset[int]) -> str:
    if any(_IGNORED.search(line) for line in lines[max(0, sight.line - 1) : sight.line + _NEAR]):
        return SUPPOSED
    if any(line in fenced or not is_sentence(lines[line], titled=False) for line in sight.again):
        return PRINTED
    line, first, last = sight.spans[-1]
    trouble = sight.pattern.fault == "said"  # such words deny themselves: `not working`, `never able to`
    mood = mood_of(lines[line], _word(lines[line], first), last, line in fenced, denies=not trouble)
    return mood if len(sight.spans) == 1 or mood == TOLD else PRINTED


def _word(line: str, first: int) -> int:
    """Return where the first whole word stands from a column on."""
    while 0 < first < len(line) and line[first - 1].isalnum() and line[first].isalnum():
        first += 1
    return first + (first < len(line) and line[first] == " ")


def mood_of(line: str, first: int, last: int, fenced: bool = False, denies: bool = True) -> str:
    """Return how a line speaks of what stands in it between two columns; `denies`: a never within denies."""
    before, after = line[:first][-_BEFORE:], line[last : last + _BEFORE]
    if _CODE.search(before) or _PASSED.search(line) or _SET_TO.match(after):
        return DENIED
    clause = _CLAUSE.split(before)[-1]
    if _MAY_COME.search(clause) or MENDED.match(line):
        return SUPPOSED  # a program's hint, too, tells what one may do then
    if fenced or is_logged(line) or _RAISED.match(line) or _SYSLOG.match(line):
        return PRINTED
    titled = line.startswith("#")
    said = is_sentence(line.strip(" -*>"), titled)
    if _NOT.search(clause) or (said and denies and _NEVER.search(line[first:last])):
        return DENIED
    sentence = clause + line[first:last] + _CLAUSE.split(after)[0]
    asks = _ASKING.match(sentence + ("?" if "?" in after else ""))
    if OVER.search(clause + line[first:last] + _SENTENCE.split(after)[0]) or asks or _MEANS.match(after):
        return SUPPOSED
    if _GUIDE.search(clause) and not _MINE.search(clause):
        return SUPPOSED
    letters = sum(map(str.isalnum, line))
    whole = sum(map(str.isalnum, line[first:last])) >= _MOST * letters
    return TOLD if (said and not whole) or _MINE.search(clause) else PRINTED
