"""Texts that ask for something new, describe a change, or tell of what was mended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.facts import ASKED, MENDED, WISH, ErrorSeen
from envdoctor.pastes.errors import HEADER
from envdoctor.pastes.sentences import told_part
from envdoctor.pastes.sightings import Paste, Sighting, fenced_lines

_TITLE = re.compile(
    r"^[\W_]{0,6}\[?(?:feature(?: request)?|rfc|proposal|enhancement|roadmap|new model|bug ?fix)\b[\]: ]",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"^[\W_]{0,6}(?:add|support|allow|implement|introduce|expose) "
    r"(?!.{0,80}\b(?:fails?|error|crash|broken|doesn.t)\b)",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"^#{1,5} [\W_]{0,4}(?:the feature, motivation and pitch|feature request|your contribution|"
    r"is your feature request related|describe the solution you.d like)",
    re.IGNORECASE,
)
_COMMIT = re.compile(
    r"^#{0,5}\s?(?:fix|feat|docs?|chore|refactor|perf|test|build|ci)(?:\([\w ./-]{1,40}\))?!?: [^?]*$"
)
"""The title of a commit."""
_CHANGE = re.compile(
    r"^#{0,5}\s?(?:What does this PR do|Test [Pp]lan|Summary of [Cc]hanges|How was this (?:patch )?tested)\b|"
    r"\b[Tt]his (?:PR|pull request|patch) (?:\w+ )?"
    r"(?:adds?|fix(?:es)?|chang|remov|updat|mak|introduc|expand|falls? back|switch|handl)"
)
"""Headings of pull requests, and how those speak of themselves."""
_MENDED = re.compile(
    r"(?i)\b(?:i|we)(?:'ve| have)? "
    r"(?:(?:also|finally|already|just|was able to|were able to|managed to) ){0,2}"
    r"(?:fix|solv|resolv)(?:ed|e)? |"
    r"\b(?:problem|issue|error|it|bug|hang|crash|leak|regression|failure) (?:(?:at|in|on|with) \w{1,20} )?"
    r"(?:is|was|has been|got)(?: now)? (?:solved|fixed|resolved|gone)\b|"
    r"\b(?:solved|fixed|resolved) (?:it |this |the \w{1,20} )?by\b|已解决|解决了"
)
_SOLVED = re.compile(r"(?i)^#{1,3} \W{0,3}(?:solved|resolved|fixed)(?:\]|:|\W*$)")
"""A title that tells a solution: `# [Solved] …`."""
_ASKED = re.compile(r"\W{0,6}Q(?:uestion)?(?:\W{0,2}\d{1,3})?\W{0,3}[:.] ")
"""How a list of questions with their answers begins one."""
_LISTED = 2
"""Questions of the shortest such list."""
_NOT_MENDED = re.compile(r"(?i)\?|\bhow\b|\bbut\b|\buntil\b|\bif\b|\bonly (?:when|if)\b|未解决|没有解决|不能")
_QUESTION = re.compile(
    r"^#{1,3} (?:\[\w{1,20}\]:? )?(?:where|what|which|how|why|when|who|is|are|can|could|does|do|should|will)"
    r"\b.{8,200}\?\s*$",
    re.IGNORECASE,
)
_ONE_SENTENCE = re.compile(r"(?<=[.!?])\s{1,4}")
_TO_MEND = re.compile(
    r"(?i)\b(?:fix|solve|resolve|repair|why|get rid|workaround|anyone else|"
    r"(?:i|we) (?:get|got|see|have|hit))\b"
)
_QUOTED = re.compile(r"[^`\"“]{1,300}[`\"“]")
_SENTENCE = 3
"""Words before a quoted error by which its line is a sentence."""
_LINES = 60
_LONGEST = 600


def parse_wishes(paste: Paste, errors: Sequence[ErrorSeen], met: Sequence[int]) -> Iterator[Sighting]:
    """Yield a note where the text is a request for a feature, or a question, and shows no error of its own.

    An error that stands on a line of its own was printed to the writer, whatever is asked for; one within a
    sentence may be an example. Of a title that is no more than a verb (support a card) the lines in blocks of
    output are such as well, `met`: where signatures stand, from 0. A list of questions and answers, and a
    title that tells of a solution, speak of what others may see and of what is over.
    """
    lines = paste.lines[:_LINES]
    first = next((line for line in lines if line.strip()), "")
    titled = first.startswith("#") and not first.startswith("#!")
    wishes = bool((titled and _TITLE.search(first)) or _COMMIT.search(first))
    wishes = wishes or any(line.startswith("#") and _HEADING.search(line) for line in lines)
    wishes = wishes or any(_CHANGE.search(line) for line in lines)
    if any(HEADER in line for line in paste.lines):
        return
    asks = titled and _ASKING.search(first) and fenced_lines(paste.lines).isdisjoint(met)
    listed = sum(1 for line in lines if _ASKED.match(line)) >= _LISTED
    solved = bool(_SOLVED.match(first))
    logged = any(error.kind == "logged" for error in errors)  # a program's own question is no person's
    if listed or (
        (wishes or asks or solved or (not logged and _only_asks(paste.lines)))
        and not any(map(_is_printed, errors))
    ):
        yield Sighting("note", WISH)
    elif _QUESTION.match(first):
        yield Sighting("note", ASKED)


def _only_asks(lines: Sequence[str]) -> bool:
    """True for a short text of questions alone, none of which asks how to mend something."""
    written = " ".join(line.strip("#> ") for line in lines if line.strip())
    asked = _ONE_SENTENCE.split(written) if len(written) <= _LONGEST else []
    return bool(asked) and all(map(_is_asked, asked)) and not _TO_MEND.search(written)


def _is_asked(sentence: str) -> bool:
    return sentence.endswith("?") and told_part(sentence) == sentence


def _is_printed(error: ErrorSeen) -> bool:
    """True for an error that is no mere words, and before which no words of a sentence stand."""
    quoted = _QUOTED.match(error.text) if error.kind == "line" else None
    before = quoted[0] if quoted else error.beside
    return error.kind not in ("said", "logged") and sum(map(str.isalpha, before.split())) < _SENTENCE


def parse_mended(paste: Paste, lines: Sequence[str], last_error: int) -> Iterator[Sighting]:
    """Yield a note where a person tells, below the last error, that it was mended and no other came."""
    for line in lines[last_error:]:
        if len(line) < _LONGEST and _MENDED.search(line) and not _NOT_MENDED.search(line):
            yield Sighting("note", MENDED)
            return
