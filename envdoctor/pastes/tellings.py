"""Error lines that a person tells in words, where a text shows none: the line is taken as met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from envdoctor import lazy_re as re
from envdoctor.facts import IN_WORDS, ErrorSeen, Symptom
from envdoctor.matrix import tables
from envdoctor.pastes.moods import MENDED
from envdoctor.pastes.sentences import without_soundness
from envdoctor.pastes.sightings import HEAD, Paste, Sighting, apart_from_blocks
from envdoctor.pastes.warned import informs, is_logged

LONGEST = 1200
"""Characters of a paragraph that are read."""
_LEAST = 5
"""Words of the shortest paragraph that tells something."""
_CODE = re.compile(r"\s*(?:[|>$#+]{1,3} |\w+ ?= ?\S|import |from \w|def |class |-{1,2}\w|[\]\[{}()<])")
_TITLE = re.compile(r"#{1,4} ")
_DENIED = re.compile(
    r"(?i)\b(?:used to (?:get|have|see)|(?:no longer|never|don['’]?t|didn['’]?t|did not) "
    r"(?:get|see|have) (?:this|the|any)|"
    r"(?:fixed|solved|resolved) (?:by|it|this|the)|(?:is|was|got) (?:fixed|solved|resolved)|"
    r"(?:how|what) (?:does|is) .{0,40}\bwork)"
)
"""Words by which trouble is told that is over, or never was."""
_ASKED = re.compile(r"(?:^|[.!?:] )\W{0,3}(?:will|would|can|could|should|do|does|is|are|may) [^.!?]{0,200}\?")
"""A question that a yes or no answers: of what may come."""


def parse_tellings(
    paste: Paste, lines: Sequence[str], tellings: Sequence[tables.TellingRow]
) -> Iterator[tuple[int, Sighting]]:
    """Yield the signatures whose lines are told in words, each with the line of the text, once."""
    known: set[str] = set()
    whole = cache(lambda: "\n".join(lines[:HEAD]).lower())
    for index, told in _paragraphs(lines):
        for row in tellings:
            if row.symptom in known or not all(_stands_any(words, told) for words in row.words):
                continue
            if not row.beside or _stands_any(row.beside, whole()):
                known.add(row.symptom)
                text = " ".join(lines[index].split())[:400]
                captured = {**row.captured, IN_WORDS: row.id}
                yield index, Sighting("symptom", Symptom(row.symptom, text, paste.at("", index), captured))


def told_error(paste: Paste, index: int, text: str, met: Sequence[str]) -> Sighting:
    """Return the trouble that such a paragraph tells of."""
    return Sighting(
        "error", ErrorSeen(text, paste.at("", index), "said", line=index + 1, symptoms=tuple(met))
    )


def _paragraphs(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that a person wrote outside of code, in lower case."""
    for index, line, fenced in apart_from_blocks(lines[:HEAD]):
        if not fenced and _is_written(line) and not (_DENIED.search(line) or MENDED.match(line)):
            yield index, without_soundness(_plain(line))


def _is_written(line: str) -> bool:
    if is_logged(line) or informs(line) or (_CODE.match(line) and not _TITLE.match(line)):
        return False
    return len(line.split()) >= _LEAST or (not line.isascii() and len(line) > _LEAST)


def _plain(line: str) -> str:
    folded = line[:LONGEST].lower().replace("’", "'").replace("`", "").replace("*", "")
    return _ASKED.sub(" ", f" {' '.join(folded.split())} ".lstrip("# "))


def _stands_any(words: Sequence[str], text: str) -> bool:
    return any(_stands(word, text) for word in words)


def _is_letter(character: str) -> bool:
    """True for what goes on with a word in Latin letters; ideographs stand beside one without a blank."""
    return character.isascii() and character.isalnum()


def _stands(word: str, text: str) -> bool:
    """True where a word or phrase begins a word of the text, or ends one as `n't` does."""
    place = text.find(word)
    if word.startswith("n't"):
        return place >= 0
    while place > 0 and word[0].isascii() and word[0].isalnum() and _is_letter(text[place - 1]):
        place = text.find(word, place + 1)
    return place >= 0
