"""Running text: of it only versions, cards, settings and words of trouble are read, and that is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.facts import NOT_JUDGED, ErrorSeen
from envdoctor.pastes.sightings import HEAD, Paste, Sighting
from envdoctor.pastes.symptoms import Sight, met_within
from envdoctor.pastes.warned import is_logged
from envdoctor.patterns import row_pattern

_NO_PERSON = re.compile(
    r"\s*(?:[|+$>({\[\"'<@`#]|\d{2,4}[-:/. ]|[A-Z]{4,8}\b|(?:INFO|WARN|DEBUG)|"
    r"(?:[*-] )?\w[\w .()?/-]{0,60}:(?: |$)|\S+==|.{0,40}\.{4}|"
    r"Copy-and-paste the text|Checking that the|During handling of|The above exception)"
)
"""How lines of logs, tables, prompts, listings, programs and reports of tools begin."""
_SOUND = re.compile(
    r"(?i)\b(?:no|without(?: an(?:y|other))?|zero|0|avoid(?:s|ing)?|fix(?:es|ed)?) (?:[\w-]{1,20} )?"
    r"(?:errors?|failures?|crashes|problems?|issues?|conflicts?|warnings?|bugs?|exceptions?)\b|"
    r"\b(?:errors?|failed|failures?|failed requests|exceptions?)\b[\"']?\s{0,4}[:=|]\s{0,40}"
    r"(?:0(?![\d.])|none|false|null)|"
    r"\btrial[- ]and[- ]error|\berror (?:bars?|correction|handling|rates?|margins?)|\becc[. _]errors?|"
    r"\bdescribe the (?:bug|issue|problem)\b|\bcould not collect\b|\brelated to a problem\b|"
    r"\b(?:fail|error)[- ](?:fast|safe|free|over)\b|\b(?:bug|issue)[- ](?:fix|tracker|report|template)"
)
"""Words of trouble where there is none."""
_OF_A_MODEL = re.compile(
    r"(?i)[\s>*#-]{0,6}(?:prompt: .{0,200}?)?"
    r"(?:(?:generated|output|completion|response)[ _]?(?:text|tokens)?|assistant|answer|reply|bot|"
    r"model(?:'s)? (?:output|answer|response)|模型(?:输出|回答|回复)|回答)\W{0,4}[:：]\W{0,3}['\"“‘「]"
)
"""How a line begins that quotes what a model wrote: its words are no person's."""
_PIN = re.compile(r"\s*[\w.\[\],-]{1,100}==")
_LOGGED = re.compile(r"[\s\[]{0,4}(?:WARN(?:ING)?|INFO|DEBUG)\b")
_WORDS, _SHARE = 6, 0.6
_IDEOGRAPHS = 10


def without_soundness(text: str) -> str:
    """Return a text without its words of trouble where there is none: `no errors`, `error rate`."""
    return _SOUND.sub("", text)


def parse_told(paste: Paste, lines: Sequence[str], sights: Sequence[Sight]) -> Iterator[Sighting]:
    """Yield the first line that tells of trouble in words and that no reader has understood.

    `lines` are the paste's before recognised words were taken out.
    """
    said = next((sight.pattern for sight in sights if sight.pattern.fault == "said"), None)
    if said is None:
        return
    pattern = row_pattern(said.pattern)
    for index, line in _told_lines(paste, lines):
        if not _PIN.match(line) and not _LOGGED.match(line) and pattern.search(without_soundness(line)):
            met, text = met_within(sights, index, index), " ".join(line.split())[:400]
            yield Sighting(
                "error", ErrorSeen(text, paste.at("", index), "said", line=index + 1, symptoms=met)
            )
            return


def _told_lines(paste: Paste, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield what a person may have written: a title, sentences, and what no reader has understood."""
    left = {index for index, _ in paste.loose()}
    for index, line in enumerate(lines):
        title = index == 0 and line.startswith("# ")
        if title or index in left or (index < HEAD and is_sentence(line, titled=False)):
            yield index, line


def parse_sentences(paste: Paste, lines: Sequence[str]) -> Iterator[Sighting]:
    """Yield a note that quotes the first sentence that a person wrote outside of code."""
    fenced = False
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    for index, line in enumerate(lines):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and index not in paste.claimed and _is_said(line, titled=index == first):
            quoted = " ".join(line.split())[:160]
            yield Sighting("note", f"{NOT_JUDGED}{paste.at('', index)}: {quoted}")
            return


def _is_said(line: str, titled: bool) -> bool:
    return is_sentence(line, titled) and not is_logged(line)


def is_generated(line: str) -> bool:
    """True for a line that quotes what a model wrote."""
    return bool(_OF_A_MODEL.match(line))


def is_sentence(line: str, titled: bool) -> bool:
    """True for a line of six words and more, most of them plain, or of ten ideographs or kana."""
    line = line.lstrip("# ") if titled else line
    if len(line) < _IDEOGRAPHS or _NO_PERSON.match(line) or is_generated(line):
        return False
    if not line.isascii() and sum("\u3040" <= character <= "\u9fff" for character in line) >= _IDEOGRAPHS:
        return True
    words = line.split()
    plain = sum(word.strip(".,;:!?()'\"*_`-").replace("'", "").isalpha() for word in words)
    return plain >= max(_WORDS, _SHARE * len(words))
