"""Secrets that a word beside them gives away: `HF_TOKEN=…`, `"api_key": "…"`, `пароль: …`, a cell of a table.

The words and what may stand between are rows (`secrets.toml`); the names of issuers, and what their values
look like, are gitleaks' rules. A word is sought, then what follows it is read in a window of bounded length:
a gap of punctuation and small words, and a value. What the gap is and how the value reads decide together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from envdoctor.bundling.label_values import LONG_RUN, VALUE_LIMIT, Value, extent, find_below
from envdoctor.bundling.secret_values import (
    is_code,
    is_drawn,
    is_hexadecimal,
    is_path,
    is_placeholder,
    is_strong_secret,
    looks_like_password,
)
from envdoctor.bundling.sought import PLACEHOLDER, Hints, Searched
from envdoctor.bundling.spans import Span, left_of, occurrences
from envdoctor.matrix import load_matrix, tables
from envdoctor.values import dataclass

_JOINT = "[-_. ]?"
_LEFT, _GAP_LIMIT, _FAR = 64, 128, 100
_LONG_NUMBER, _LONGER_NUMBER = 12, 16

# ASCII and typographic punctuation, arrows, box drawing, CJK and full-width punctuation, all white space.
_PUNCTUATION = (
    r"\s!-/:-@\[-`{-~"
    "\u00a0-\u00bf\u2000-\u206f\u2190-\u21ff\u2500-\u25ff\u2794-\u27be\u3000-\u303f"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_AFTER_WORD = r"[\s:=,;\"'(>`" + "\u00a0\u3000\uff1a\uff1d]"
_TAG = r"</?[A-Za-z][A-Za-z0-9_.:-]{0,40}(?:[ ][^<>\n]{0,60})?>"
_WRAPPER = r"[A-Za-z_][A-Za-z0-9_.]{0,40}\([brfuBRFU]{0,2}[\"']|[brfuBRFU]{1,2}[\"']"
_ASSIGNS = re.compile("[=:>|\u2502\u2503\u2551\uff1d\uff1a\u2192\u21d2\u203a\u00bb\uff5c\u2013\u2014]")
_REST = re.compile(r"[A-Za-z0-9_-]{0,24}")
_INFLECTION = re.compile(r"\w{0,4}")
_OTHER_REST = re.compile(
    r"(?i).{0,16}(?:file|path|dir|name|length|len|count|type|url|uri|env|var|policy|limit|size|rate|parallelism|"
    r"expiry|expires|expiration|ttl|format|prefix|suffix|ref|store|class|manager|provider|version)s?"
)
# `token` alone is a telling key; `eos_token` and `cache_key` are a model's everyday words.
_EVERYDAY = re.compile(
    r"(?i)tik$|(?:^|[^a-z])(?:bos|eos|pad|unk|sep|cls|mask|image|video|audio|vision|special|next|new|start|end|begin|"
    r"begin_of_text|stop|first|last|prompt|sampled|draft|input|output|num|max|min|per|type|added|boundary|tool|"
    r"assistant|user|think|fim|control|placeholder|im_start|im_end)[-_ ]$"
    r"|(?:^|[^a-z])(?:cache|hash|sort|primary|foreign|partition|dedup|lookup|prng|rng|kernel|graph|module|query|compile|"
    r"guard|state|dict|group|index|plan|tuning|autotune|metric|label|config|json|value|column|row|attention|"
    r"weight|public|unexpected|missing|extra|registry|hot|object|map|param|buffer|tensor|layer|"
    r"cache (?:hit|miss|lookup|entry) for)s?[-_ ]?$"
)
_EVERYDAY_REACH = 20
_NETRC = re.compile(r"\blogin[ \t]{1,4}[^\s]{1,40}[ \t]{1,4}$")
_FLAG = re.compile(r"(?:^|[\s\"'(\[,=])--?[A-Za-z0-9_-]{0,40}$")
_UPPER_NAME = re.compile(r"(?:^|[^A-Za-z0-9_])[A-Z0-9_]{0,40}$")
_REVERSED = re.compile(r"[\"'](?P<v>[^\"'\s]{8,200})[\"'][ \t]{0,2}[=!]==?[ \t]{0,2}[A-Za-z0-9_.]{0,40}$")
_DIGEST_WORD = re.compile(
    r"(?i)commit|sha|hash|digest|revision|checksum|etag|uuid|md5|blob|snapshot|\bid\b|_id\b"
)
_REFERENCE_END = re.compile(r"(?:\$\{|\$\(|\{\{|\$\{\{|%\(|\$)[ \t]{0,4}$")


@dataclass(frozen=True)
class _Vocabulary:
    """The words beside secrets: a pattern, their beginnings, their strengths, issuers' values, the gap."""

    label: re.Pattern[str]
    stems: Hints
    strength: dict[str, str]
    values: dict[str, tuple[re.Pattern[str], ...]]
    gap: re.Pattern[str]


@cache
def read_vocabulary() -> _Vocabulary:
    """Return the words and values of the matrix; raises Unavailable without one."""
    strength: dict[str, str] = {}
    between: set[str] = set()
    for row in load_matrix().rows(tables.SecretWordRow):
        strength = dict.fromkeys(row.weak, "weak") | strength | dict.fromkeys(row.strong, "strong")
        between |= set(row.between)
    values: dict[str, tuple[re.Pattern[str], ...]] = {}
    for rule in load_matrix().generated("secret-rules").get("named", ()):
        for name in rule["names"]:
            values[_key(name)] = (*values.get(_key(name), ()), re.compile(rule["value"], re.ASCII))
            strength.setdefault(name, "name")
    words = sorted(strength, key=lambda word: (-len(word), word))
    label = "|".join(_JOINT.join(re.escape(part) for part in word.split(" ")) for word in words)
    stems = {word.split(" ")[0] for word in words}
    stems = {stem for stem in stems if not any(stem.startswith(o) and o != stem for o in stems)}
    return _Vocabulary(
        re.compile(label),
        Hints(stems),
        {_key(word): s for word, s in strength.items()},
        values,
        _gap_pattern(between),
    )


def _key(word: str) -> str:
    return re.sub(_JOINT, "", word)


def _gap_pattern(between: set[str]) -> re.Pattern[str]:
    spaced = "|".join(re.escape(w) for w in sorted(between, key=len, reverse=True) if w[0] < "\u1100")
    joined = "|".join(re.escape(w) for w in sorted(between, key=len, reverse=True) if w[0] >= "\u1100")
    return re.compile(
        rf"(?:{_TAG}|{_WRAPPER}|(?i:{spaced}){_AFTER_WORD}|{joined}|[{_PUNCTUATION}])*", re.DOTALL
    )


@dataclass(frozen=True)
class _Label:
    """A telling word in a text: where it begins, where the name that it is of ends, and what it tells."""

    start: int
    end: int
    word: str
    strength: str
    name: str
    left: str

    @property
    def variable(self) -> bool:
        """True for `HF_TOKEN` and the like."""
        return self.name.isupper() and bool(_UPPER_NAME.search(self.left))

    @property
    def flag(self) -> bool:
        """True for `--hf-token`."""
        return bool(_FLAG.search(self.left))


def find_labelled(searched: Searched) -> Iterator[Span]:
    """Find the values beside telling words: in variables, JSON, YAML, XML, tables, flags, prose."""
    return (span for _, span in find_with_labels(searched))


def find_with_labels(searched: Searched) -> Iterator[tuple[Span, Span]]:
    """Find the telling words whose values are secrets, and these values."""
    vocabulary, text, lowered = read_vocabulary(), searched.text, searched.lowered
    done = taken = 0
    for place in _places(searched, vocabulary.stems):
        match = vocabulary.label.match(lowered, place) if place >= done else None
        label = _read_label(text, match, vocabulary) if match else None
        found = _value_of(text, label, taken) if label else None
        if match and label and found:
            yield Span(label.start, label.end, "label"), Span(*found, "secret")
            done = taken = max(match.end(), found[1])
        elif match:
            done = match.end()


def _places(searched: Searched, stems: Hints) -> list[int]:
    held = searched.held(stems)
    return sorted({place for stem in held for place in occurrences(searched.lowered, stem)})


def _read_label(text: str, match: re.Match[str], vocabulary: _Vocabulary) -> _Label | None:
    word = _key(match[0])
    strength = vocabulary.strength.get(word)
    if strength is None or not _begins(text, match.start(), word):
        return None
    end = _name_end(text, match)
    tail = text[match.end() : end]
    left = left_of(text, match.start(), _LEFT)
    if tail.isascii() and not _telling_rest(tail, strength, word, text[match.start() : match.end()]):
        return None
    if strength == "weak" and _EVERYDAY.search(left[-_EVERYDAY_REACH:]):
        return None
    return _Label(match.start(), end, word, strength, text[match.start() : end], left)


def _name_end(text: str, match: re.Match[str]) -> int:
    if match[0][0] >= "\u1100":
        return match.end()
    rest = (_REST if match[0].isascii() else _INFLECTION).match(text, match.end())
    return rest.end() if rest else match.end()


def _begins(text: str, start: int, word: str) -> bool:
    """True where a short word is one, and not the end of another: `x_auth` and `dbAuth`, not `oauth`."""
    before = text[start - 1 : start]
    if len(word) > 5 or word in ("key", "token", "pwd") or word[0] >= "\u1100" or not before.isalnum():
        return True
    return before.isdigit() or (before.islower() and text[start].isupper())


def _telling_rest(rest: str, strength: str, word: str, spelled: str) -> bool:
    # `secretstorage`, `passwords.txt` and `api_key_file` name no secret.
    if _OTHER_REST.fullmatch(rest):
        return False
    if not rest or rest[0] in "-_" or rest[0].isdigit() or (rest[0].isupper() and not spelled.isupper()):
        return True
    allowed = ("s", "key", "keys", "id", "value") if word != "token" else ("id", "value", "str")
    return rest in allowed or strength == "name"


def _value_of(text: str, label: _Label, taken: int) -> tuple[int, int] | None:
    settled = PLACEHOLDER.search(text, label.end, label.end + _GAP_LIMIT)
    stop = settled.start() if settled else min(len(text), label.end + _GAP_LIMIT)
    gap = read_vocabulary().gap.match(text, label.end, stop)
    end = gap.end() if gap else label.end
    if opened := _OPENED.search(text, label.end, end):
        end = opened.start("word")  # `my` and `it is` within quotes belong to what is quoted
    if settled and end == stop:
        return None
    value = Value.read(text, label.end, end, label.variable)
    if value and _is_secret(text, label, value):
        return value.whole(text)
    if "==" in label.left or "!=" in label.left:
        before = _REVERSED.search(label.left)
        if before and label.strength != "name" and is_drawn(before["v"]):
            start = label.start - len(label.left) + before.start("v")
            return (start, start + len(before["v"])) if start >= taken else None
    return find_below(text, label.start, label.end) or (
        _farther(text, label) if label.strength != "name" else None
    )


def _is_secret(text: str, label: _Label, value: Value) -> bool:
    gap, shown = value.gap, value.text
    drawn = is_drawn(shown) and not (is_path(shown) or is_code(shown))
    if is_placeholder(shown) or (gap.endswith("<") and not (drawn or looks_like_password(shown))):
        return False
    assigned = bool(_ASSIGNS.search(gap))
    if _REFERENCE_END.search(gap) and not drawn:
        return False
    if label.strength == "name":
        return assigned and any(p.fullmatch(shown) for p in read_vocabulary().values[label.word])
    if drawn:
        return _tells_drawn(label, value, assigned)
    if gap.count("\n") or "(" in gap:
        return _tells_apart(label, value)
    return _tells_any(label, value, assigned)


def _tells_apart(label: _Label, value: Value) -> bool:
    """Judge what was not drawn and stands on the next line, or as an argument."""
    shown, strong = value.text, label.strength == "strong"
    if strong and shown.isdigit() and len(shown) >= _LONGER_NUMBER:
        return True
    if value.gap.count("\n") and not (_NEXT_LINE.search(value.gap) or "</" in value.gap):
        return False
    if "(" not in value.gap and strong and is_strong_secret(shown, label.name, True):
        return True
    return looks_like_password(shown) or (strong and shown.isdigit() and len(shown) >= _LONG_NUMBER)


def _tells_drawn(label: _Label, value: Value, assigned: bool) -> bool:
    gap = value.gap
    if gap.count("\n") > 2 or (gap.count("\n") and not assigned and len(value.text) < 16):
        return False
    said = any(c.isalpha() for c in gap)
    if label.strength == "strong" or assigned or said or label.variable or label.flag or value.closing:
        return True
    return len(value.text) >= 12


def _tells_any(label: _Label, value: Value, assigned: bool) -> bool:
    shown, name = value.text, label.left.rpartition("\n")[2] + label.name
    if label.word == "pwd" and shown.startswith(("/", "~", ".")):
        return False
    said = any(c.isalpha() for c in value.gap)
    strong = label.strength == "strong"
    told = bool((assigned and not said) or label.flag or _NETRC.search(label.left))
    if shown.isdigit() and len(shown) >= _LONG_NUMBER:
        return told or assigned or said or strong or label.word == "bearer" or len(shown) >= _LONGER_NUMBER
    if told and (strong or (label.variable and label.word != "key")):
        return is_strong_secret(shown, name, bool(value.closing))
    pair = bool(value.closing) and "," in value.gap
    told = told or said or strong or pair or label.word == "bearer" or bool(_ALIGNED.search(value.gap))
    return told and looks_like_password(shown) and not is_path(shown)


# A YAML value on the next line, or one that is called so: `value: …`.
_NEXT_LINE = re.compile(
    r"^[\"']?[ \t]{0,40}:[ \t]{0,40}(?:[>|][-+]?)?[ \t]{0,40}\n[ \t]{1,80}[\"']?$|"
    r"\n[ \t-]{0,80}[\"']?(?:[Vv]alue|default)[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?$"
)
_OPENED = re.compile(r"[=:][ \t]{0,4}[\"'`](?P<word>[A-Za-z0-9])")
_ALIGNED = re.compile(r"[\s._" "\u00b7\u2026-]{4,}")


def _farther(text: str, label: _Label) -> tuple[int, int] | None:
    """Find a drawn value later in the line: `the api key must have 40 characters, yours was …`."""
    newline = text.find("\n", label.end, label.end + _FAR)
    window = text[label.end : newline if newline >= 0 else label.end + _FAR]
    if PLACEHOLDER.search(window):
        return None
    for run in LONG_RUN.finditer(window):
        shown, between = run[0].strip("."), window[: run.start()]
        if (
            not is_drawn(shown, 16)
            or between.endswith("/")
            or window[run.end() : run.end() + 1] in ("/", "(")
        ):
            continue
        if _SAID.search(between) or (
            label.strength == "strong" and not (is_hexadecimal(shown) and _DIGEST_WORD.search(between))
        ):
            start = label.end + run.start()
            _, end = extent(text, start, "", False, VALUE_LIMIT)
            return start, max(end, label.end + run.end())
    return None


_SAID = re.compile(
    r"(?i)(?:\b(?:is|was|were|got|gave|given|provided|received|sent|using|value)[ :=]{1,3}|› )[\"'`<(]?$"
)
