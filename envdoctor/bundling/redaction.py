"""The one choke point: every text that leaves goes through a `Redactor`, and nothing else decides what is
secret.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from envdoctor.bundling.hosts import COMMON_HOSTS
from envdoctor.bundling.identities import find_identities
from envdoctor.bundling.known_values import (
    KnownValues,
    base64_cores,
    encodings,
    is_secret_name,
    is_worth_hiding,
)
from envdoctor.bundling.literals import Literals
from envdoctor.bundling.secret_formats import find_formats
from envdoctor.bundling.secret_search import find_secrets, spread
from envdoctor.bundling.secret_values import is_drawn, is_placeholder
from envdoctor.bundling.serials import find_gpu_uuids
from envdoctor.bundling.sought import PLACEHOLDER, Searched
from envdoctor.bundling.spans import Span, merge, occurrences
from envdoctor.bundling.unwrapping import Edit, apply_edits, strip_escapes
from envdoctor.bundling.users import COMMON_ACCOUNTS, is_home_path
from envdoctor.bundling.views import joined

_BASE64_RUN = re.compile(r"[A-Za-z0-9+/_=-]*")
_ROUNDS = 8
_LINES_BESIDE = 5
_SHORT_WORD = 16
_LONGEST_LEARNED = 2048
_SECRET_KINDS_THAT_REPEAT = frozenset({"secret", "password", "credentials"})


class Redactor:
    """Replaces what must not leave by placeholders, the same value by the same one: `<user-1>`.

    `known` are this machine's own values; `keep` are versions, which read like addresses, and the names of
    packages, which a user may bear too. One instance serves one bundle: `learn` every text first, then
    `redact` each. Its memory of values stays in the process; `summary` tells kinds and counts only.
    """

    def __init__(self, known: KnownValues | None = None, keep: Iterable[str] = ()) -> None:
        known = known or KnownValues()
        self._keep = frozenset(keep)
        self._names: dict[str, str] = {}
        self._used: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._words: Literals[str] = Literals()
        self._secrets: set[str] = set()
        self._literals: Literals[tuple[str, bool]] = Literals()
        self._scanned: dict[str, list[Span]] = {}
        self._homes = known.homes
        for secret in known.secrets:
            self._know(secret)
        for kind, words in (("user", known.users), ("host", known.hosts)):
            for word in words:
                self._learn_word(kind, word)

    def learn(self, text: str) -> None:
        """Remember the users, hosts and secrets that a context in `text` gives away, to find them bare."""
        text = strip_escapes(text)
        for span in self._scan(text):
            value = span.value or text[span.start : span.end]
            if span.kind in ("user", "host"):
                self._learn_word(span.kind, value)
            elif (
                span.kind in _SECRET_KINDS_THAT_REPEAT and is_drawn(value) and len(value) <= _LONGEST_LEARNED
            ):
                self._know(value)

    def _scan(self, text: str) -> list[Span]:
        """Return what `text` itself gives away; once for each text."""
        if text not in self._scanned:
            plain = text.isalnum() and len(text) < _SHORT_WORD
            searched = Searched(text)
            found = (
                ()
                if plain
                else (*find_secrets(searched), *find_identities(searched, self._keep.__contains__))
            )
            self._scanned[text] = list(found)
        return self._scanned[text]

    def learn_json(self, value: Any, key: str = "") -> None:
        """Remember what JSON terms give away, by their texts and by their fields' names."""
        if isinstance(value, str):
            kind = _field_kind(key, value)
            if kind in ("user", "host"):
                self._learn_word(kind, value)
            elif kind == "secret":
                self._know(value)
            self.learn(value)
        elif isinstance(value, Mapping):
            for name, inner in value.items():
                self.learn_json(inner, _inner_key(str(name), key))
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.learn_json(item, key)

    def redact(self, text: str) -> str:
        """Return `text` without terminal escapes, and with a placeholder for all that must not leave.

        A placeholder changes what stands beside its neighbours: the lines around one are looked at again
        until nothing more is found, so that to redact twice is to redact once.
        """
        text = strip_escapes(text)
        self._reserve(text)
        edits = self._edits(text)
        for _ in range(_ROUNDS):
            if not edits:
                break
            text = apply_edits(text, edits)
            around = _beside(text, edits)
            edits = [edit for start, end in around for edit in self._look_again(text, start, end)]
        return text

    def _look_again(self, text: str, start: int, end: int) -> Iterator[Edit]:
        part = text[start:end]
        self.learn(part)
        yield from ((start + begin, start + stop, shown) for begin, stop, shown in self._edits(part))

    def _edits(self, text: str) -> list[Edit]:
        return [
            (s.start, s.end, "" if s.kind == "" else self._name(s.kind, s.value or text[s.start : s.end]))
            for s in merge(_outside(text, self._find(text)))
        ]

    def _reserve(self, text: str) -> None:
        # A placeholder that is there already stands for a value of its own.
        for match in PLACEHOLDER.finditer(text):
            self._used[match["kind"]] = max(self._used[match["kind"]], int(match["number"]))

    def redact_json(self, value: Any, key: str = "") -> Any:
        """Return JSON terms with every string redacted; a string under a telling key is replaced whole."""
        if isinstance(value, str):
            return self.redact_field(key, value)
        if isinstance(value, Mapping):
            return {
                self.redact(str(k)): self.redact_json(v, _inner_key(str(k), key)) for k, v in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.redact_json(item, key) for item in value]
        return value

    def redact_field(self, key: str, value: str) -> str:
        """Return the value of the field or variable `key`, redacted."""
        kind = _field_kind(key, value)
        if kind == "version":
            return value
        if kind and value and not PLACEHOLDER.fullmatch(value):
            return self._name(kind, value)
        return self.redact(value)

    def summary(self) -> dict[str, int]:
        """Return how many places were replaced, by kind."""
        return dict(sorted(self._counts.items()))

    def _know(self, secret: str) -> None:
        if secret not in self._secrets:
            self._secrets.add(secret)
            for form in encodings(secret):
                self._literals.add(form, (secret, False))
            for core in base64_cores(secret):
                self._literals.add(core, (secret, True))

    def _learn_word(self, kind: str, word: str) -> None:
        common = COMMON_ACCOUNTS if kind == "user" else COMMON_HOSTS
        telling = len(word) >= 4 and word.lower() not in common and not re.fullmatch(r"[0-9.]+|.*<.*", word)
        if telling and word.lower() not in self._keep:
            self._words.add(word, kind)
        label = word.partition(".")[0]
        if kind == "host" and label != word and any(c.isdigit() or c == "-" for c in label):
            self._learn_word(kind, label)

    def _name(self, kind: str, value: str) -> str:
        self._counts[kind] += 1
        if value not in self._names:
            self._used[kind] += 1
            self._names[value] = f"<{kind}-{self._used[kind]}>"
        return self._names[value]

    def _find(self, text: str) -> Iterator[Span]:
        yield from self._find_known(text)
        yield from self._scan(text)
        yield from self._find_wrapped(text)
        yield from self._find_words(text)

    def _find_known(self, text: str) -> Iterator[Span]:
        for start, end, (secret, core) in self._literals.find(text):
            if core:
                run = _BASE64_RUN.match(text, end)
                yield Span(_run_start(text, start), run.end() if run else end, _known_kind(secret), secret)
            elif end - start >= 8 or not _inside_word(text, start, end):
                yield Span(start, end, _known_kind(secret), secret)
        for home in self._homes:
            if not is_home_path(home):
                yield from (Span(s, s + len(home), "home") for s in occurrences(text, home))

    def _find_words(self, text: str) -> Iterator[Span]:
        for start, end, kind in self._words.find(text):
            if not _inside_word(text, start, end):
                yield Span(start, end, kind)

    def _find_wrapped(self, text: str) -> Iterator[Span]:
        if "\n" in text and (view := joined(text, every=True)) is not None:
            for span in (*self._find_known(view.text), *find_gpu_uuids(Searched(view.text))):
                if view.is_split(span.start, span.end):
                    yield from spread(view, span)


def _outside(text: str, spans: Iterator[Span]) -> Iterator[Span]:
    """Yield the spans without those that are empty or lie in a placeholder; none cuts one in two."""
    places = [match.span() for match in PLACEHOLDER.finditer(text)]
    for span in spans:
        start, end = span.start, span.end
        at = bisect_right(places, (start, len(text))) - 1
        if at >= 0 and places[at][1] > start:
            if end <= places[at][1]:
                continue
            start = places[at][0]
        at = bisect_right(places, (end - 1, len(text))) - 1
        if at >= 0 and places[at][1] > end > places[at][0]:
            end = places[at][1]
        if end > start:
            yield span._replace(start=start, end=end)


def _beside(text: str, edits: Iterable[Edit]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the lines around what the edits have put into `text`, overlapping ones as one."""
    begin = done = shift = 0
    for start, end, shown in edits:
        first, last = start + shift, start + shift + len(shown)
        shift += len(shown) - (end - start)
        for _ in range(_LINES_BESIDE):
            first = text.rfind("\n", 0, max(0, first - 1)) + 1
            last = text.find("\n", last) + 1 or len(text)
        if first > done:
            if done:
                yield begin, done
            begin = first
        done = max(done, last)
    if done:
        yield begin, done


@cache
def _known_kind(secret: str) -> str:
    return next(
        (s.kind for _, s in find_formats(Searched(secret)) if s.end - s.start == len(secret)), "secret"
    )


def _run_start(text: str, start: int) -> int:
    floor = max(0, start - 400)
    while start > floor and (text[start - 1].isalnum() or text[start - 1] in "+/_-"):
        start -= 1
    return start


def _inside_word(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return (before.isalnum() and not text[max(0, start - 2) : start].startswith("\\")) or after.isalnum()


def _inner_key(name: str, key: str) -> str:
    # An observed fact is `{"value": …, "source": …}` under the field's own name.
    return key if name == "value" else "" if name == "source" else name


_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!_-]{0,60}")
_VERSION_FIELDS = frozenset({"version", "specifier", "user_version", "cuda", "python", "kernel", "glibc"})
_FIELD_KINDS = {
    "hostname": "host",
    "server": "host",
    "uuid": "gpu-uuid",
    "serial": "serial",
    "username": "user",
    "user": "user",
}


def _field_kind(key: str, value: str) -> str | None:
    if key in _VERSION_FIELDS and _VERSION.fullmatch(value):
        return "version"
    if key in _FIELD_KINDS:
        kind = _FIELD_KINDS[key]
        return None if value.lower() in (COMMON_HOSTS if kind == "host" else COMMON_ACCOUNTS) else kind
    if is_secret_name(key) and is_worth_hiding(value) and not is_placeholder(value):
        return "secret" if is_drawn(value) or key.isupper() else None
    return None
