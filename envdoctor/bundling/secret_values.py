"""Is this a secret, or only a word beside a telling key? Pure judgements on one value."""

from __future__ import annotations

import re
from itertools import pairwise

# Values that stand for a secret but are none: placeholders, references, types, booleans.
_PLACEHOLDER = re.compile(
    r"(?i)(?:none|null|nil|undefined|true|false|yes|no|on|off|auto|default|required|optional|missing|empty|"
    r"unset|"
    r"not|set|is|str|int|bool|bytes|any|list|dict|tuple|union|redacted|hidden|masked|string|secretstr|"
    r"required|invalid|expired|found|provided|input|output|with|from|for|the|and|or|to|in|of|a|an|"
    r"your|my|x{3,}|\*{2,}.{0,8}|\.{2,}|-{2,}|_{2,}|change[-_]?me|todo|example|placeholder)"
)
_REFERENCE = re.compile(
    r"\$\{?[A-Za-z_][A-Za-z0-9_]{0,60}\}?|\$\(.*|<[^>]{0,80}>?|\{[^}]{0,80}\}?|\[.*|\(.*|%\(.*|%[sdrv]|"
    r"&[a-z]{1,8};.*"
)
_CODE = re.compile(
    r"(?:self|cls|os|args|cfg|config|kwargs|settings|env|environ|opt|opts|params|conf|getpass|secrets|"
    r"userdata|"
    r"process|typing|Optional|Union|Secret)[.\[(].*|[A-Za-z_][A-Za-z0-9_.]{0,60}[(\[].*"
)
_IDENTIFIER = re.compile(r"[A-Za-z_]{1,40}(?:\.[A-Za-z_]{1,40}){0,4}")
_NUMBER = re.compile(r"[-+]?[0-9][0-9_,]{0,12}(?:\.[0-9]{0,12})?(?:[eE][-+]?[0-9]{1,3})?%?")
_VERSION = re.compile(r"v?[0-9]{1,4}(?:\.[0-9]{1,6}){1,4}(?:[-+._a-zA-Z0-9]{0,24})?")
_PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.@+-]+)+/?")


_DIGIT, _LETTER = re.compile(r"[0-9]"), re.compile(r"[A-Za-z]")
_JUDGED = 128
"""Characters of a value that are looked at to tell whether it was drawn."""


def is_mixed(value: str) -> bool:
    """True when letters and digits occur together, as in an issued token and in few words."""
    return bool(_DIGIT.search(value) and _LETTER.search(value))


def changes_case(value: str) -> bool:
    """True for letters whose case changes as often as in drawn ones: `kQzfRtYb`, not `CamelCaseWord`."""
    return sum(a.islower() != b.islower() for a, b in pairwise(value)) >= len(value) // 3


def looks_random(value: str) -> bool:
    """True for a value of eight or more characters that reads as drawn, not as a word or a number."""
    value = value[:_JUDGED]
    if len(value) < 8 or not value.isascii() or " " in value:
        return False
    if is_mixed(value):
        return not (_VERSION.fullmatch(value) or _NUMBER.fullmatch(value))
    return value.isalpha() and len(value) >= 16 and changes_case(value)


_PLAIN_WORD = re.compile(r"[a-z]+|[A-Z]+|[A-Z][a-z]+|[0-9]{1,4}")


def is_name(value: str) -> bool:
    """True for words and small numbers joined by dots, hyphens or underscores: `model.layers.3.q_proj`."""
    parts = re.split(r"[-_.]", value[:_JUDGED])
    return len(parts) > 1 and all(not part or _PLAIN_WORD.fullmatch(part) for part in parts)


def is_placeholder(value: str) -> bool:
    """True for `None`, `***`, `<token>`, `$TOKEN`, `{token}` and the like."""
    return bool(not value or _PLACEHOLDER.fullmatch(value) or _REFERENCE.fullmatch(value))


def is_code(value: str) -> bool:
    """True for an expression that names a secret: `args.token`, `os.environ["KEY"]`, `getpass()`."""
    return bool(_CODE.fullmatch(value))


def is_strong_secret(value: str, key: str, quoted: bool) -> bool:
    """True when `value` beside a key such as `password` is the secret and not code that names one."""
    if len(value) < 3 or is_placeholder(value) or value.lower() == key.lower():
        return False
    named = _IDENTIFIER.fullmatch(value) and ("." in value or value.lower() in key.lower())
    return quoted or not (named or is_code(value) or (_NUMBER.fullmatch(value) and len(value) < 4))


def is_weak_secret(value: str) -> bool:
    """True when `value` beside an everyday key such as `token` reads like drawn letters."""
    if not looks_random(value) or is_name(value):
        return False
    return not (is_placeholder(value) or is_code(value) or _PATH.fullmatch(value))


_WORDS = re.compile(r"(?:[A-Z]?[a-z]{2,}){1,8}|[A-Z]+|[a-z]?")
_WORD_WITH_NUMBER = re.compile(r"[A-Z]?[a-z]+[0-9]{1,3}|[A-Z]+[0-9]{1,4}|[0-9]{1,3}[A-Za-z]{1,3}|[0-9]+")


def is_continuation(piece: str, following: str) -> bool:
    """True when the first word of the next line reads like the rest of a broken token, not like a new line.

    `following` is what stands after it: `rank0:` and `NAME=` begin a line of their own.
    """
    if re.match(r"[:(]|=[^=\s]", following) or re.match(r"[A-Za-z_]\w*=[^=]|[0-9]{2,4}[-/:.][0-9]", piece):
        return False
    if piece.partition(" ")[0].endswith(":"):
        return False
    longest = max(re.split(r"[-_./+=%~ ]", piece), key=len)[:_JUDGED]
    if len(longest) < 4 or _WORD_WITH_NUMBER.fullmatch(longest):
        return False
    return not _WORDS.fullmatch(longest)
