"""URLs without the credentials that they may carry, however badly they are written."""

from __future__ import annotations

import re

HIDDEN = "***@"
_WORD = r"\S+"
_START = r"[A-Za-z][A-Za-z0-9+.-]{0,30}:/+"
_SCHEME = r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/+"
_END_OF_AUTHORITY = r"[/?#\\]"
_HOST = r"(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_REVISION = r"[A-Za-z0-9][\w.+-]*(?:[?#&\]\"',;)].*)?"


def hide_credentials(text: str) -> str:
    """Return `text` with what stands before the `@` of every URL's host replaced; unsure, it is replaced."""
    if "@" not in text:
        return text
    return re.sub(_WORD, lambda match: _hidden_in(match[0]), text)


def _hidden_in(word: str) -> str:
    start = re.search(_START, word) if "@" in word else None
    return word[: start.end()] + _without_user(word[start.end() :]) if start else word


def has_credentials(text: str) -> bool:
    """Return whether a URL in `text` carries a user name, password or token."""
    return hide_credentials(text) != text


def without_user(url: str) -> str:
    """Return one URL without user and password, otherwise as it is."""
    return hide_credentials(url).replace(HIDDEN, "", 1) if has_credentials(url) else url


def plain_url(url: str) -> str:
    """Return one URL without user, password, query and fragment: safe to show and to log."""
    scheme = re.match(_SCHEME, url)
    start = scheme.end() if scheme else 0
    rest = url[start:]
    shown = _without_user(rest) if "@" in rest else rest
    if shown.startswith(HIDDEN):
        shown = shown[len(HIDDEN) :]
    return url[:start] + re.split("[?#]", shown)[0]


def _without_user(rest: str) -> str:
    """Return what follows `scheme://` without the user's part.

    A password may hold anything, slashes and further `@` included, so the last `@` ends it; unless a host and
    its path stand before that `@`, and no more than a revision after it: `git+https://HOST/repo@v1`.
    """
    before, _, after = rest.rpartition("@")
    authority = re.split(_END_OF_AUTHORITY, rest, maxsplit=1)[0]
    _, at, host = authority.rpartition("@")
    if len(authority) <= len(before) and re.fullmatch(_HOST, host):
        if at and re.fullmatch(_REVISION, after, re.DOTALL):
            return HIDDEN + host + rest[len(authority) :]
        if not at and (":" not in host or re.fullmatch(_REVISION, after, re.DOTALL)):
            return rest
    return HIDDEN + after
