"""Secrets that only their surroundings give away: a telling key, a header, a flag, a URL, a PEM frame."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from envdoctor.bundling.secret_formats import FORMATS, TokenFormat
from envdoctor.bundling.secret_values import is_mixed, is_strong_secret, is_weak_secret, looks_random
from envdoctor.bundling.spans import Span

_STRONG = (
    r"passw(?:or)?d|passphrase|pwd|secret|api[-_ ]?key|auth[-_ ]?key|access[-_ ]?key|account[-_ ]?key|"
    r"private[-_ ]?key|sharedaccesskey|encryption[-_ ]?key|signing[-_ ]?key|subscription[-_ ]?key|"
    r"service[-_ ]?key|master[-_ ]?key|license[-_ ]?key|storage[-_ ]?key|consumer[-_ ]?key"
)
_WEAK = (
    r"token|credentials?|cookie|session[-_ ]?(?:id|key)|[-_]key|(?-i:_PAT|_PASS|_PW|_DSN|_AUTH)|"
    r"webhook[-_ ]?url|"
    r"_authtoken|signature|x-auth|connection[-_ ]?string"
)
KEY = re.compile(
    rf"(?i)(?P<key>_?(?P<strong>{_STRONG})|{_WEAK})(?P<rest>[A-Za-z0-9_-]{{0,24}})"
    r"(?P<sep>\\{0,2}[\"'`]?[ \t]{0,3}(?:=>|:=|[:=]|%3[dDaA])[ \t]{0,4}"
    r"|[ \t]{1,3}(?:is|was)[ \t:]{1,3}|\\{0,2}[\"']?,?[ \t]{1,4})"
)
# `token` alone is a telling key; `tokenizer`, `tokens` and `eos_token` are a model's everyday words.
_WEAK_REST = re.compile(r"(?i)[-_]?(?:value|str|string|key|secret|header|b64|base64|id|v?[0-9]{1,3})?")
_EVERYDAY = re.compile(
    r"(?i)tik$|(?:bos|eos|pad|unk|sep|cls|mask|image|video|audio|vision|special|next|new|start|end|begin|"
    r"begin_of_text|"
    r"stop|first|last|prompt|sampled|draft|input|output|num|max|min|per|type|added|boundary|tool|assistant|"
    r"user|think|fim|control|placeholder|im_start|im_end)[-_ ]$"
    r"|(?:cache|hash|sort|primary|foreign|partition|dedup|lookup|prng|rng|kernel|graph|module|query|compile|"
    r"guard|state|"
    r"dict|group|index|plan|tuning|autotune|metric|label|config|json|value|column|row|attention|weight|"
    r"public)s?$"
)
_LEFT = 48
_EVERYDAY_REACH = 20
_JUDGED = 128
_NETRC = re.compile(r"\blogin[ \t]{1,4}[^\s]{1,40}[ \t]{1,4}$")
_FLAG = re.compile(r"(?:^|[\s\"'(\[,=])--?[A-Za-z0-9_-]{0,40}$")
_UPPER_NAME = re.compile(r"(?:^|[^A-Za-z0-9_])[A-Z0-9_]{0,40}$")
_VALUE_LIMIT = 2048
_OPENING = re.compile(r"\\{0,2}[\"'`]")
_BARE_END = re.compile(r"[\s\"'`,;&|)}\]>]|\\[nrt\"']|%26")
_VARIABLE_END = re.compile(r"[\s\"'`]|\\[nrt\"']")


def find_formats(text: str, formats: tuple[TokenFormat, ...] = FORMATS) -> Iterator[Span]:
    """Find what has an issuer's format."""
    for entry in formats:
        if entry.hint not in text:
            continue
        for match in entry.regex.finditer(text):
            start, end = match.span("v") if "v" in entry.regex.groupindex else match.span()
            if not entry.mixed or is_mixed(text[start:end].partition("_")[2] or text[start:end]):
                yield Span(start, end, entry.kind)


def find_keyed(text: str) -> Iterator[Span]:
    """Find the values beside telling keys: variables, JSON, YAML, keyword arguments, flags, netrc."""
    match = KEY.search(text)
    while match:
        value = _keyed_value(text, match)
        if value:
            yield Span(*value, "secret")
        match = KEY.search(text, value[1] if value else match.end("key"))


def _keyed_value(text: str, match: re.Match[str]) -> tuple[int, int] | None:
    key, rest, separator = match["key"], match["rest"], match["sep"]
    left = text[max(0, match.start() - _LEFT) : match.start()]
    if match["strong"]:
        telling = _telling_rest(key, rest)
    else:
        telling = bool(_WEAK_REST.fullmatch(rest)) and not _EVERYDAY.search(left[-_EVERYDAY_REACH:])
    if not telling:
        return None
    variable = key.isupper() and bool(_UPPER_NAME.search(left))
    whole_word = variable and "=" in separator
    # The first part decides; only what is a secret is followed to its end.
    start, end, quoted = value_at(text, match.end(), whole_word, _JUDGED)
    if not _is_keyed_secret(match, left, text[start:end], quoted, variable):
        return None
    start, end, _ = value_at(text, match.end(), whole_word)
    return start, end


def _is_keyed_secret(match: re.Match[str], left: str, value: str, quoted: bool, variable: bool) -> bool:
    key, separator, strong = match["key"], match["sep"], bool(match["strong"])
    if value.startswith("="):
        return False
    assigned = any(c in separator for c in "=:%")
    if is_weak_secret(value):
        said = " is" in separator or " was" in separator
        return assigned or said or strong or variable or bool(_FLAG.search(left))
    if not strong or (key.lower() == "pwd" and value.startswith(("/", "~", "."))):
        return False
    told = assigned or _FLAG.search(left) or _NETRC.search(left)
    name = left.rpartition("\n")[2] + key + match["rest"]
    return bool(told) and is_strong_secret(value, name, quoted)


def _telling_rest(key: str, rest: str) -> bool:
    # `secretstorage`, `passwords.txt` and `api_key_file` name no secret.
    if re.fullmatch(
        r"(?i).{0,8}[-_]?(?:file|path|dir|name|length|len|count|type|url|env|var|policy)s?", rest
    ):
        return False
    return not rest or rest[0] in "-_" or not rest[0].islower() or rest in ("s", "key", "keys", "id", "value")


def value_at(
    text: str, start: int, variable: bool = False, limit: int = _VALUE_LIMIT
) -> tuple[int, int, bool]:
    """Return where the value that begins at `start` lies, without its quotes, and whether it had any.

    A variable's value ends at white space only; no value is longer than `limit` characters.
    """
    opening = _OPENING.match(text, start)
    if opening:
        begin, closing = opening.end(), opening[0]
        return begin, _closing(text, closing, begin, min(len(text), begin + limit)), True
    end_pattern = _VARIABLE_END if variable else _BARE_END
    furthest = min(len(text), start + limit)
    stop = end_pattern.search(text, start, furthest)
    end = stop.start() if stop else furthest
    while end > start and text[end - 1] in ",;.:!":
        end -= 1
    return start, end, False


def _closing(text: str, closing: str, begin: int, limit: int) -> int:
    newline = text.find("\n", begin, limit)
    limit = newline if newline >= 0 else limit
    end = text.find(closing, begin, limit)
    while end > 0 and len(closing) == 1 and text[end - 1] == "\\" and text[end - 2 : end] != "\\\\":
        end = text.find(closing, end + 1, limit)
    return end if end >= 0 else limit


_HEADER = re.compile(
    r"(?i)(?:authorization|x-api-key|x-auth-token|api-key)[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?"
    r"(?:(?:bearer|basic|token|digest|apikey|negotiate)[ \t]{1,3})?(?P<v>[^\s\"'<>,;]{4,1000})"
)
_BEARER = re.compile(r"(?i)\b(?:bearer|basic)[ \t]{1,3}(?P<v>[A-Za-z0-9._~+/=-]{12,})")
_COOKIE = re.compile(r"(?i)\bcookie[\"']?[ \t]{0,3}:[ \t]{0,3}[\"']?(?P<v>[^\n\"'<>]{4,1000})")
_LOGIN = re.compile(
    r"(?i)\b(?:login|auth)[ (]{1,2}(?:--?(?:token|key|password|relogin|api-key)[ =]{1,2}|(?:key|token|"
    r"api_key)=)?"
    r"[\"']?(?P<v>[A-Za-z0-9._~+/=-]{12,1000})"
)
_SHORT_FLAG = re.compile(
    r"(?:sshpass[ \t]{1,4}-p|docker[ \t]login[^\n]{0,200}[ \t]-p|"
    r"mysql[^\n]{0,200}[ \t]-p)[ \t]{0,4}[\"']?(?P<v>[^\s\"']{3,200})"
)
_CURL_USER = re.compile(
    r"(?:[ \t]-u|[ \t]--user|--proxy-user)[ \t=]{1,4}[\"']?(?P<v>[^\s:\"']{1,100}:[^\s\"']{1,200})"
)
_NAME_VALUE = re.compile(
    r"(?i)\bname[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?[A-Z0-9_]{0,40}(?:token|secret|passw(?:or)?d|key|"
    r"credential)"
    r"[A-Z0-9_]{0,20}[\"']?[ \t]{0,3},?\s{1,24}[\"']?value[\"']?[ \t]{0,3}[:=]"
    r"[ \t]{0,3}[\"']?(?P<v>[^\s\"',}]{3,1000})"
)
_KAGGLE = re.compile(
    r"\"username\"\s{0,4}:\s{0,4}\"[^\"\n]{1,80}\"\s{0,4},\s{0,8}\"key\"\s{0,4}:\s{0,4}\"(?P<v>[0-9a-f]{32})\""
)
_SCHEMES = frozenset({"bearer", "basic", "token", "digest", "apikey", "negotiate"})
_PLAIN = (_HEADER, _COOKIE, _SHORT_FLAG, _CURL_USER, _NAME_VALUE, _KAGGLE)
_DRAWN = (_BEARER, _LOGIN)


def find_headers(text: str) -> Iterator[Span]:
    """Find HTTP credentials, log-in commands and name-value pairs."""
    for pattern in _PLAIN:
        for match in pattern.finditer(text):
            if not match["v"].startswith(("<", "$", "*")) and match["v"].lower() not in _SCHEMES:
                yield Span(*match.span("v"), "secret")
    for pattern in _DRAWN:
        for match in pattern.finditer(text):
            if looks_random(match["v"]):
                yield Span(*match.span("v"), "secret")


_USERINFO = re.compile(r"://(?P<user>[^\s/@:\"'<>]{0,200}):(?P<password>[^\s/\"'<>]{1,400})@")
_TOKEN_USER = re.compile(r"://(?P<user>[^\s/@:\"'<>]{16,400})@")
_SIGNED = re.compile(
    r"(?i)(?:[?&;]|%3F|%26)(?:X-(?:Amz|Goog)-(?:Signature|Credential|Security-Token)|Signature|sig|token|"
    r"access_token|"
    r"auth(?:_token|key)?|api[-_]?key|key|password|passwd|secret|code|Key-Pair-Id|AWSAccessKeyId|"
    r"GoogleAccessId|Policy|"
    r"client_secret|refresh_token|sas|hdnea|hdnts|__token__|x-oss-signature|x-oss-credential|OSSAccessKeyId|"
    r"x-cos-security-token|q-signature|q-ak)(?:=|%3D)(?P<v>[^\s&\"'<>;]{6,})"
)


def find_urls(text: str) -> Iterator[Span]:
    """Find credentials before a URL's host and in its query."""
    for match in _USERINFO.finditer(text):
        yield Span(match.start("user"), match.end("password"), "credentials")
        if looks_random(match["password"]):
            yield Span(*match.span("password"), "password")
    for match in _TOKEN_USER.finditer(text):
        if looks_random(match["user"]):
            yield Span(*match.span("user"), "credentials")
    for match in _SIGNED.finditer(text):
        if not match["v"].isdigit():
            yield Span(*match.span("v"), "signature")


_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(
    r"(?:[ \t|>│\"'+]{0,24}(?:[A-Za-z0-9+/=]{16,100}|[A-Za-z0-9+/=]{1,15}=)[ \t|│\"'+,]{0,8}(?:\\n|\r?\n|$)|"
    r"\s|\\n)*(?:[A-Za-z0-9+/=]{1,64}(?:\\n|\n|\"|$))?"
)


def find_private_keys(text: str) -> Iterator[Span]:
    """Find PEM private keys, whole, cut off, wrapped, or inside a JSON string."""
    begins = [(m.start(), m.end()) for m in _PEM.finditer(text)]
    ends = [(m.start(), m.end()) for m in _PEM_END.finditer(text)]
    starts = [start for start, _ in begins] + [len(text)]
    for i, (start, opened) in enumerate(begins):
        at = bisect_left(ends, (opened, 0))
        if at < len(ends) and ends[at][0] < starts[i + 1]:
            yield Span(start, ends[at][1], "private-key")
        else:
            body = _PEM_BODY.match(text, opened, starts[i + 1])
            yield Span(start, body.end() if body else opened, "private-key")
