"""Is this a secret, or only a word beside a telling key? Pure judgements on one value."""

from __future__ import annotations

import re
from itertools import pairwise

# Values that stand for a secret but are none: placeholders, references, types, booleans.
_PLACEHOLDER = re.compile(
    r"(?i)(?:none|null|nil|undefined|true|false|yes|no|on|off|auto|default|required|optional|missing|empty|"
    r"unset|not|set|is|str|int|bool|bytes|any|list|dict|tuple|union|redacted|hidden|masked|string|secretstr|"
    r"required|invalid|expired|incorrect|wrong|found|provided|valid|failed|denied|input|output|with|from|for|"
    r"the|and|or|to|in|of|a|an|your|my|x{3,}|\*{2,}.{0,8}|\.{2,}|-{2,}|_{2,}|change[-_]?me|todo|example|"
    r"placeholder)"
)
_REFERENCE = re.compile(
    r"\$\{?[A-Za-z_][A-Za-z0-9_]{0,60}\}?|\$\(.*|<[^>]{0,80}>?|\{[^}]{0,80}\}?|\[.*|\(.*|%\(.*|%[sdrv]|"
    r"&[a-z]{1,8};.*"
)
_CODE = re.compile(
    r"(?:self|cls|os|args|cfg|config|kwargs|settings|env|environ|opt|opts|params|conf|getpass|secrets|"
    r"userdata|process|typing|Optional|Union|Secret)[.\[(].*|[A-Za-z_.][A-Za-z0-9_.]{0,60}[(\[].*"
)
_IDENTIFIER = re.compile(r"[A-Za-z_]{1,40}(?:\.[A-Za-z_]{1,40}){0,4}")
_PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.@+-]+)+/?")
_NUMBER = re.compile(r"[-+]?[0-9][0-9_,]{0,12}(?:\.[0-9]{0,12})?(?:[eE][-+]?[0-9]{1,3})?%?")
# A version, a date, a time, an address in memory, a measure: letters and digits that were not drawn.
_MEASURED = re.compile(
    r"v?[0-9]{1,4}(?:\.[0-9]{1,6}){1,4}(?:[-+._a-zA-Z0-9]{0,24})?|"
    r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}[T_-]?(?:[0-9]{2}[:.h-]?){0,3}[0-9.,]{0,9}(?:Z|[+-][0-9:]{4,5})?|"
    r"0x[0-9A-Fa-f]{1,16}|[-+]?[0-9][0-9_,]{0,12}(?:\.[0-9]{0,12})?(?:[eE][-+]?[0-9]{1,3})?[A-Za-z%/]{0,8}"
)
_UUID = re.compile(r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HEXADECIMAL = re.compile(r"[0-9a-f-]+|[0-9A-F-]+")

_DIGIT, _LETTER = re.compile(r"[0-9]"), re.compile(r"[A-Za-z]")
_JUDGED = 128
"""Characters of a value that are looked at to tell whether it was drawn."""

# Letter pairs that make up three quarters of English text and of identifiers, and a fifth of drawn letters.
_COMMON_PAIRS_WORDS = """
th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi
ri ro ic ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc
et ut ss so rs un lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir su id os iv
ia am fi ci vi pl ig tu ev ld ry mp fe bl ab gh ty op wo sa ay ex ke ui ck ef ag ap up da do bo cu ue
"""
_COMMON_PAIRS = frozenset(_COMMON_PAIRS_WORDS.split())
_SHORT_WORDS, _LONG_WORD = 8, 16
_DIGITS, _CAMEL = re.compile(r"[0-9]+"), re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def is_mixed(value: str) -> bool:
    """True when letters and digits occur together, as in an issued token and in few words."""
    return bool(_DIGIT.search(value) and _LETTER.search(value))


def _readable(letters: str) -> float:
    """Return the share of letter pairs that are common ones."""
    pairs = [a + b for a, b in pairwise(letters.lower())]
    return sum(pair in _COMMON_PAIRS for pair in pairs) / max(1, len(pairs))


def reads_like_words(letters: str) -> bool:
    """True for letters that make up words, whatever their case: `GradientCheckpointing`."""
    return _readable(letters) >= 0.5


_LETTERS = re.compile(r"[A-Za-z]{8,}")
_KEY_GROUPS = re.compile(r"[A-Z0-9]{3,8}(?:-[A-Z0-9]{3,8}){2,7}")
_SIGNS = frozenset("!#$%^&*@?+~")
_LONGEST_PASSWORD = 64


def looks_like_password(value: str) -> bool:
    """True for what people choose: letters of both cases with signs, or that are no words."""
    value = value[:_JUDGED]
    if not 8 <= len(value) <= _LONGEST_PASSWORD or not value.isascii() or not _LETTER.search(value):
        return False
    if any(_readable(letters) < 0.2 for letters in _LETTERS.findall(value)):
        return True
    if _KEY_GROUPS.fullmatch(value):
        return is_mixed(value)
    if value.lower() == value or value.upper() == value or is_code(value):
        return False
    letters = "".join(c for c in value if c.isalpha())
    return any(c in _SIGNS for c in value) or (is_mixed(value) and _readable(letters) < 0.35)


_WORD_AND_NUMBER = re.compile(r"[A-Za-z]*[0-9]*|[A-Za-z]+[0-9]{1,5}[A-Za-z]{1,3}|[0-9]{1,5}[A-Za-z]{1,4}")


_MANY_CHANGES, _SCRAMBLED = 4, 4
_MEASURES = re.compile(r"[0-9]x[0-9]")


def changes(part: str) -> int:
    """Return how often letters and digits take turns."""
    return sum(a.isdigit() != b.isdigit() for a, b in pairwise(part))


def _is_plain(part: str) -> bool:
    if part.isalpha():
        return len(part) < _LONG_WORD or reads_like_words(part)
    letters = _DIGITS.sub("", part)
    if _WORD_AND_NUMBER.fullmatch(part) and len(letters) < _LONG_WORD:
        return len(letters) < _SHORT_WORDS or _readable(letters) >= 0.3
    words = _CAMEL.findall(part)
    if changes(part) >= _MANY_CHANGES and not _MEASURES.search(part):
        return False
    return len(letters) >= max(_SHORT_WORDS, 3 * len(words)) and len(words) <= 8 and reads_like_words(letters)


def is_drawn(value: str, least: int = 8) -> bool:
    """True for a value of `least` or more characters that reads as drawn, not as words, versions or numbers.

    `layer_12`, `cu126` and `2026-11-20T10:11:12` are words and numbers; `a1b2c3d4` and `kQzfRtYbWmLpHxVn` are
    neither.
    """
    value = value[:_JUDGED].strip("./=~$#*!?&^+-_")
    if len(value) < least or not value.isascii() or " " in value:
        return False
    if _UUID.fullmatch(value):
        return True
    if _MEASURED.fullmatch(value):
        return False
    return not all(_is_plain(part) for part in re.split(r"[^A-Za-z0-9]", value) if part)


def is_hexadecimal(value: str) -> bool:
    """True for what a digest, a commit or a UUID is written in."""
    return bool(_HEXADECIMAL.fullmatch(value))


def is_placeholder(value: str) -> bool:
    """True for `None`, `***`, `<token>`, `$TOKEN`, `{token}` and the like."""
    return bool(not value or _PLACEHOLDER.fullmatch(value) or _REFERENCE.fullmatch(value))


def is_code(value: str) -> bool:
    """True for an expression that names a secret: `args.token`, `os.environ["KEY"]`, `getpass()`."""
    return bool(_CODE.fullmatch(value))


def is_path(value: str) -> bool:
    """True for a path of names, none of them drawn."""
    return bool(_PATH.fullmatch(value)) and not any(is_drawn(part, _LONG_WORD) for part in value.split("/"))


def is_strong_secret(value: str, key: str, quoted: bool) -> bool:
    """True when `value` beside a key such as `password` is the secret and not code that names one."""
    if len(value) < 3 or is_placeholder(value) or value.lower() == key.lower():
        return False
    named = _IDENTIFIER.fullmatch(value) and ("." in value or value.lower() in key.lower())
    return quoted or not (named or is_code(value) or (_NUMBER.fullmatch(value) and len(value) < 4))


_WORDS = re.compile(r"(?:[A-Z]?[a-z]{2,}){1,8}|[A-Z]+|[a-z]?")
_WORD_WITH_NUMBER = re.compile(r"[A-Z]?[a-z]+[0-9]{1,3}|[A-Z]+[0-9]{1,4}|[0-9]{1,3}[A-Za-z]{1,3}|[0-9]+")


_DATE = re.compile(r"[0-9]{2,4}[-/:.][0-9]")
_NAME_AND_VALUE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,40})[=:][^=]")


def is_assignment(piece: str) -> bool:
    """True for a line that begins with a name and its value; the rest of broken base64 is none."""
    match = _NAME_AND_VALUE.match(piece)
    if match is None:
        return False
    words = _CAMEL.findall(match["name"])
    scrambled = len(words) >= _SCRAMBLED and len(match["name"]) < 3 * len(words)
    return not (scrambled or is_drawn(match["name"]))


def is_continuation(piece: str, following: str) -> bool:
    """True when the first word of the next line reads like the rest of a broken token, not like a new line.

    `following` is what stands after it: `rank0:` and `NAME=` begin a line of their own.
    """
    if re.match(r"[:(]|=[^=\s]", following) or is_assignment(piece) or _DATE.match(piece):
        return False
    if piece.partition(" ")[0].endswith(":"):
        return False
    longest = max(re.split(r"[-_./+=%~ ]", piece), key=len)[:_JUDGED]
    if len(longest) < 4 or _WORD_WITH_NUMBER.fullmatch(longest):
        return False
    return not _WORDS.fullmatch(longest)
