"""Secrets that nothing beside them and no issuer's format gives away: strings that can only have been drawn.

Digests, commits and UUIDs are drawn too, and are what a log is about: hexadecimal alone is left. Sought are
tokens of mixed letters and digits, and an issuer's short prefix before a drawn body (`acme_pat_9f8e…`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from envdoctor.bundling.secret_values import changes, is_drawn, is_hexadecimal, reads_like_words
from envdoctor.bundling.spans import Span, left_of, line_left_of

_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_~.:+=-]{19,}")
# What is left of `\x1b[33m` where the escape itself was lost.
_COLOUR_TAIL = re.compile(r"[0-9]{1,3}m")
_SEPARATOR = re.compile(r"[_~.:+=-]+")
_LEAST, _LEAST_ONE_CASE, _LEAST_VARIETY = 20, 26, 10
_LONGEST_PREFIX, _LEAST_BODY, _LEAST_TELLING, _LEAST_HEX, _LEAST_TELLING_HEX = 15, 16, 12, 24, 16
_JUDGED = 512
_REACH = 24
# What stands before a digest, a cache's entry, a name made by a compiler, or a public key.
_NOT_SECRET_BEFORE = re.compile(
    r"(?i)(?:sha[0-9]{1,3}|md5|blake2b|hash|digest|integrity|checksum|fingerprint|commit|revision|etag|build|"
    r"kernel|symbol|function|ssh-(?:rsa|dss|ed25519)|nistp[0-9]{3}|x509|certificate|"
    r"cache[a-z ]{0,12} key)[a-z_]{0,12}[\"']?"
    r"[\s:=@(\"'-]{0,4}$"
)
_PUBLIC_PREFIXES_WORDS = """
sha sha1 sha224 sha256 sha384 sha512 md5 blake2b git commit rev hash digest etag cmpl chatcmpl embd req
request resp response msg call toolu batch file thread asst run job task span trace step session pod
node vm gpu mig uuid urn id obj cache snapshot snap kernel triton cubin ptx fatbin model layer tmp temp
lib torch cuda cutlass nvidia libtorch image container layer volume vol ami subnet vpc eni i rtb sg
artifact version build fx fxgraph inductor graph guard code frame py cp cpython
"""
_PUBLIC_PREFIXES = frozenset(_PUBLIC_PREFIXES_WORDS.split())
_TELLING_PREFIX = re.compile(r"(?i)api|key|tok|sec|pat|sk|pk|auth|live|test|prod|acc|cred|pass")
_GROUPS = re.compile(r"(?i)[0-9a-z]{8}-[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{12}$")
_SUFFIX = re.compile(
    r"\.(?:so|py|pyc|pyd|json|bin|pt|pth|ckpt|safetensors|gguf|whl|txt|log|cu|cubin|ptx|o|a|dll|html?|css|js|md|"
    r"ya?ml|toml|cfg|zip|gz|tar|png|jpe?g|svg|h|hpp|c|cc|cpp|lock|idx|db|csv|tsv|parquet|arrow|conda|rpm|deb)"
    r"(?:[.\W]|$)"
)


def find_drawn(text: str) -> Iterator[Span]:
    """Find what was drawn and is neither a digest nor part of a path or a symbol."""
    for match in _RUN.finditer(text):
        start, end = match.start(), match.end()
        while end > start and text[end - 1] in ".:-_~+=":
            end -= 1
        start = text.rfind("=", start, end) + 1 or start
        if (tail := _COLOUR_TAIL.match(text, start, end)) and text[start - 1 : start] == "[":
            start = tail.end()
        run = text[start:end]
        public = _NOT_SECRET_BEFORE.search(left_of(text, start, _REACH))
        if run and not public and not _is_in_path(text, start, end) and _is_token(run[:_JUDGED]):
            yield Span(start, end, "secret")


def _is_in_path(text: str, start: int, end: int) -> bool:
    if _SUFFIX.search(text, start, min(len(text), end + 2)):
        return True
    beside = (text[start - 1 : start] in ("/", "\\", "_", "@", "$", "%")) or text[end : end + 1] in (
        "/",
        "\\",
        "(",
    )
    if not beside:
        return False
    left = line_left_of(text, start).rpartition(" ")[2]
    return "://" not in left and not re.search(r"\\[nrt]$", left)


def _is_token(run: str) -> bool:
    if run.startswith(("_Z", "0x")):
        return False
    parts = [part for part in _SEPARATOR.split(run) if part]
    if parts[0].lower() in _PUBLIC_PREFIXES:
        return False
    return any(_is_mixed_draw(part) for part in parts) or (len(parts) > 1 and _is_prefixed(run, parts))


def _is_mixed_draw(part: str) -> bool:
    if len(part) < _LEAST or is_hexadecimal(part) or not is_drawn(part) or len(set(part)) < _LEAST_VARIETY:
        return False
    letters = "".join(c for c in part if c.isalpha())
    if part.lower() == part or part.upper() == part:
        return len(part) >= _LEAST_ONE_CASE and changes(part) * 8 >= len(part)
    return changes(part) >= 2 and not reads_like_words(letters)


def _is_prefixed(run: str, parts: list[str]) -> bool:
    prefix = parts[0]
    if len(prefix) > _LONGEST_PREFIX or not prefix[0].isalpha():
        return False
    if group := _GROUPS.search(run):
        return not is_hexadecimal(group[0].lower()) or bool(_TELLING_PREFIX.search(run[: group.start()]))
    body = max(parts[1:], key=len)
    telling = bool(_TELLING_PREFIX.search(run[: run.rfind(body)]))
    if is_hexadecimal(body):
        least = _LEAST_TELLING_HEX if telling else _LEAST_HEX
        return len(body) >= least and not body.isdigit() and is_drawn(body)
    drawn = [part for part in parts[1:] if _is_drawn_part(part)]
    return sum(map(len, drawn)) >= (_LEAST_TELLING if telling else _LEAST_BODY)


def _is_drawn_part(part: str) -> bool:
    if len(part) >= _LEAST_BODY:
        return is_drawn(part) and changes(part) >= 2
    mixed = part.lower() != part and part.upper() != part
    return mixed and len(part) >= 6 and is_drawn(part, 6) and changes(part) >= 1
