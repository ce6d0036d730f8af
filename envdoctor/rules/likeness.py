"""What a message that nothing explains reads like: the known trouble whose rare words it shares most.

Wordings differ more than troubles do. A row's words are those of its summary, its cause and its symptoms; a
word that few rows have weighs most. It is a hint where there is none, never an explanation.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from envdoctor import lazy_re as re
from envdoctor.facts import ErrorSeen
from envdoctor.findings import Certainty, Evidence, Finding, Severity
from envdoctor.matrix import Matrix, tables
from envdoctor.rules.rows import resembled
from envdoctor.rules.view import View
from envdoctor.values import replace

ID = "READS-LIKE"
LEAST = 9.0
"""The weight from which shared words are more than chance."""
_TRIED = 3
"""How many rows are looked at for one that the facts do not contradict."""
LONGEST = 600
_EVEN = 0.7
"""How far a row's length counts against it."""
_WORD = re.compile(r"[A-Za-z_][\w.]*|\d[\d.]*")
_PARTS = re.compile(r"[_.]|(?<=[a-z])(?=[A-Z])")
_ENDING = re.compile(r"(?:ing|ed|es|s|ly)$")
_SYNTAX = re.compile(r"\\[a-zA-Z]|\(\?[^)]*?[>:]|[\[\](){}|?*+^$\\]")
_SHORT, _STEMMED = 3, 6


def like_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return the row that a message reads like as a guess; None where its words are too few or too common."""
    asked = {word for text in _texts(error) for word in _words(text[:LONGEST])}
    near = sorted(one for one in _ranked(view.matrix, asked) if one[0] >= LEAST)[-_TRIED:]
    rows = view.matrix.conditions_of({identity for _, identity in near})
    found = next(filter(None, (resembled(view, rows[identity]) for _, identity in reversed(near))), None)
    if found is None:
        return None
    return replace(
        found,
        id=ID,
        severity=Severity.ERROR,
        summary=f"by its words alone it reads like another trouble that is known: {found.summary}",
        cause=f"Nothing that is known accounts for this very line. Of the one that it shares its rare words"
        f" with: {found.cause}",
        evidence=(Evidence("error", error.text, error.source),),
        certainty=Certainty.UNCERTAIN,
        explains=error.symptoms,
        prior=0.1,
        fallback=True,
        follows=(),
    )


def _texts(error: ErrorSeen) -> Iterator[str]:
    yield error.text
    for frame in error.frames[-2:]:
        yield f"{frame.function} {frame.code}"


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text and the parts of its names, without endings."""
    for word in _WORD.findall(text):
        for part in dict.fromkeys((word, *(part for part in _PARTS.split(word) if len(part) >= _SHORT))):
            low = part.lower()
            yield _ENDING.sub("", low) if len(low) >= _STEMMED else low


def _told(row: tables.ConditionRow, symptoms: Mapping[str, tables.SymptomRow]) -> Iterator[str]:
    """Yield what a row and the symptoms that it explains say of a trouble."""
    yield f"{row.summary} {row.cause}"
    for symptom in filter(None, map(symptoms.get, row.symptoms)):
        yield f"{symptom.title} {_SYNTAX.sub(' ', symptom.pattern)[:LONGEST]}"


def _ranked(matrix: Matrix, asked: Iterable[str]) -> Iterator[tuple[float, str]]:
    """Yield each row that shares a word with its weight."""
    symptoms = {row.id: row for row in matrix.rows(tables.SymptomRow)}
    rows = matrix.conditions_of({head.id for head in matrix.heads if head.needs is not None})
    told = {
        row.id: Counter(word for text in _told(row, symptoms) for word in _words(text))
        for row in rows.values()
        if row.symptoms
    }
    having = Counter(word for words in told.values() for word in words)
    rare = {word: math.log(len(told) / (1 + number)) for word, number in having.items()}
    shared: dict[str, float] = defaultdict(float)
    for word in asked:
        for identity, words in told.items() if word in rare else ():
            if word in words:
                shared[identity] += rare[word] ** 2 * (1 + math.log(words[word]))
    for identity, weight in shared.items():
        length = math.sqrt(sum((rare[w] * (1 + math.log(n))) ** 2 for w, n in told[identity].items()))
        yield weight / length**_EVEN, identity
