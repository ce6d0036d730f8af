"""The one choke point: every text that leaves goes through a `Redactor`, and nothing else decides what is "
"secret."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from envdoctor.bundling import identities, secret_contexts
from envdoctor.bundling.addresses import find_addresses
from envdoctor.bundling.known_values import (
    KnownValues,
    base64_cores,
    encodings,
    is_secret_name,
    is_worth_hiding,
)
from envdoctor.bundling.secret_formats import FORMATS
from envdoctor.bundling.secret_values import is_continuation, is_placeholder, looks_random
from envdoctor.bundling.spans import Span, merge
from envdoctor.bundling.unwrapping import Joined, apply_edits, join, strip_escapes

_FIXED = tuple(entry for entry in FORMATS if entry.fixed)
_FIXED_JOINED = tuple(entry.unbounded for entry in _FIXED)
_WRAPPED_WIDTH = 40
_OPEN = tuple(entry for entry in FORMATS if not entry.fixed)
_LEARNED_LIMIT = 500
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/_=-]*")
_PLACEHOLDER = re.compile(r"<(?P<kind>[a-z](?:-?[a-z0-9]){0,30})-(?P<number>[0-9]{1,6})>")
_ROUNDS = 8
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
        self._words: dict[str, str] = {}
        self._secrets: set[str] = set()
        self._literals: list[tuple[str, str, bool]] = []
        self._homes = known.homes
        for secret in known.secrets:
            self._know(secret)
        for kind, words in (("user", known.users), ("host", known.hosts)):
            for word in words:
                self._learn_word(kind, word)

    def learn(self, text: str) -> None:
        """Remember the users, hosts and secrets that a context in `text` gives away, to find them bare."""
        text = strip_escapes(text)
        for span in (*identities.find_users(text), *identities.find_hosts(text)):
            self._learn_word(span.kind, text[span.start : span.end])
        for span in _find_secrets(text):
            if span.kind in _SECRET_KINDS_THAT_REPEAT and looks_random(text[span.start : span.end]):
                self._know(text[span.start : span.end])

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
        """Return `text` without terminal escapes, and with a placeholder for everything that must not "
        "leave.

        A placeholder changes what stands beside its neighbours: what was redacted is looked at again until
        nothing more is found, so that to redact twice is to redact once.
        """
        text = strip_escapes(text)
        for _ in range(_ROUNDS):
            self._reserve(text)
            shown = strip_escapes(self._replace(text))
            if shown == text:
                break
            self.learn(shown)
            text = shown
        return text

    def _replace(self, text: str) -> str:
        edits = [
            (s.start, s.end, "" if s.kind == "" else self._name(s.kind, s.value or text[s.start : s.end]))
            for s in merge(self._find(text))
        ]
        return apply_edits(text, edits)

    def _reserve(self, text: str) -> None:
        # A placeholder that is there already stands for a value of its own.
        for match in _PLACEHOLDER.finditer(text):
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
        if kind and value and not _PLACEHOLDER.fullmatch(value):
            return self._name(kind, value)
        return self.redact(value)

    def summary(self) -> dict[str, int]:
        """Return how many places were replaced, by kind."""
        return dict(sorted(self._counts.items()))

    def _know(self, secret: str) -> None:
        if secret not in self._secrets and len(self._secrets) < _LEARNED_LIMIT:
            self._secrets.add(secret)
            self._literals += [(form, secret, False) for form in encodings(secret)]
            self._literals += [(core, secret, True) for core in base64_cores(secret)]

    def _learn_word(self, kind: str, word: str) -> None:
        common = identities.COMMON_ACCOUNTS if kind == "user" else identities.COMMON_HOSTS
        telling = len(word) >= 4 and word.lower() not in common and not re.fullmatch(r"[0-9.]+|.*<.*", word)
        if telling and word.lower() not in self._keep and len(self._words) < _LEARNED_LIMIT:
            self._words.setdefault(word, kind)
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
        yield from _find_secrets(text)
        yield from self._find_wrapped(text)
        yield from identities.find_indexes(text)
        yield from identities.find_emails(text)
        yield from identities.find_users(text)
        yield from identities.find_hosts(text)
        yield from find_addresses(text, self._keep.__contains__)
        yield from identities.find_serials(text)
        yield from self._find_words(text)

    def _find_known(self, text: str) -> Iterator[Span]:
        for literal, secret, core in self._literals:
            for start in _occurrences(text, literal):
                end = start + len(literal)
                if core:
                    run = _BASE64_RUN.match(text, end)
                    end = run.end() if run else end
                    start = _run_start(text, start)
                elif len(literal) < 8 and _inside_word(text, start, end):
                    continue
                yield Span(start, end, _known_kind(secret), secret)
        for home in self._homes:
            if not identities.is_home_path(home):
                yield from (Span(s, s + len(home), "home") for s in _occurrences(text, home))

    def _find_words(self, text: str) -> Iterator[Span]:
        for word, kind in self._words.items():
            for start in _occurrences(text, word):
                if not _inside_word(text, start, start + len(word)):
                    yield Span(start, start + len(word), kind)

    def _find_wrapped(self, text: str) -> Iterator[Span]:
        joined = join(text)
        if not joined.joins:
            return
        # Where a token of known length begins, no longer one is sought.
        settled = {s.start for s in secret_contexts.find_formats(text, _FIXED)}
        exact = secret_contexts.find_formats(joined.text, _FIXED_JOINED)
        for span in (*exact, *self._find_known(joined.text), *identities.find_gpu_uuids(joined.text)):
            if joined.spans_join(span.start, span.end):
                settled.add(joined.pieces(span.start, span.end)[0][0])
                yield from _wrapped_spans(joined, span)
        for span in (*secret_contexts.find_formats(joined.text, _OPEN), *_find_in_context(joined.text)):
            begins = joined.pieces(span.start, span.end)[0][0]
            if joined.spans_join(span.start, span.end) and begins not in settled:
                # What does not go on over a break is judged in the text as it stands, not with the next line.
                trimmed = _trim(text, joined, span)
                if joined.spans_join(trimmed.start, trimmed.end):
                    yield from _wrapped_spans(joined, trimmed)


def _find_secrets(text: str) -> Iterator[Span]:
    yield from secret_contexts.find_private_keys(text)
    yield from secret_contexts.find_formats(text)
    yield from _find_in_context(text)


def _find_in_context(text: str) -> Iterator[Span]:
    yield from secret_contexts.find_keyed(text)
    yield from secret_contexts.find_headers(text)
    yield from secret_contexts.find_urls(text)


def _wrapped_spans(joined: Joined, span: Span) -> Iterator[Span]:
    first, *rest = joined.pieces(span.start, span.end)
    yield Span(*first, span.kind, span.value or joined.text[span.start : span.end])
    yield from (Span(*piece, "") for piece in rest)


def _trim(text: str, joined: Joined, span: Span) -> Span:
    # A value of unknown length goes on over a break only as long as the next line reads like its rest,
    # or as the lines are cut at one width.
    pieces = joined.pieces(span.start, span.end)
    end = span.start
    for i, (start, stop) in enumerate(pieces):
        if i and not _goes_on(text, pieces[:i], text[start:stop], text[stop : stop + 2]):
            break
        end += stop - start
    return Span(span.start, end, span.kind)


def _goes_on(text: str, before: list[tuple[int, int]], piece: str, following: str) -> bool:
    widths = [stop - 1 - text.rfind("\n", 0, start) for start, stop in before]
    if widths[-1] >= _WRAPPED_WIDTH and (
        widths[-1] in widths[:-1] or (piece.isdigit() and following[:1] != ":")
    ):
        return True
    return is_continuation(piece, following)


def _known_kind(secret: str) -> str:
    return next(
        (s.kind for s in secret_contexts.find_formats(secret) if s.end - s.start == len(secret)), "secret"
    )


def _occurrences(text: str, literal: str) -> Iterator[int]:
    start = text.find(literal)
    while start >= 0:
        yield start
        start = text.find(literal, start + len(literal))


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
    "uuid": "gpu-uuid",
    "serial": "serial",
    "username": "user",
    "user": "user",
}


def _field_kind(key: str, value: str) -> str | None:
    if key in _VERSION_FIELDS and _VERSION.fullmatch(value):
        return "version"
    if key in _FIELD_KINDS:
        return _FIELD_KINDS[key] if value.lower() not in identities.COMMON_ACCOUNTS else None
    if is_secret_name(key) and is_worth_hiding(value) and not is_placeholder(value):
        return "secret" if looks_random(value) or key.isupper() else None
    return None
