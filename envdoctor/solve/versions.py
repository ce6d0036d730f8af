"""PEP 440 order and specifiers as bit masks, without importing `packaging` at solving time."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache
from typing import Any

_VERSION = re.compile(
    r"v?(?:(\d+)!)?(\d+(?:\.\d+)*)"
    r"(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d*))?"
    r"(?:-(\d+)|[-_.]?(post|rev|r)[-_.]?(\d*))?"
    r"(?:[-_.]?(dev)[-_.]?(\d*))?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
    re.IGNORECASE | re.ASCII,
)
_CLAUSE = re.compile(r"\s*(===|~=|==|!=|<=|>=|<|>)\s*([^\s,;()]+)\s*")
_PHASES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_FIRST, _LAST = (-1, 0), (9, 0)

Key = tuple[Any, ...]


class InvalidSpecifier(ValueError):
    """A specifier that PEP 440 does not know; the message is the clause."""


@cache
def version_key(text: str) -> Key:
    """Return a key that sorts like PEP 440, local labels left out; raises ValueError."""
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a version: {text[:40]!r}")
    epoch, release, phase, phase_number, dash, post, post_number, dev, dev_number, _ = match.groups()
    pre = (_PHASES[phase.lower()], int(phase_number or 0)) if phase else _LAST
    after = int(dash) if dash else int(post_number or 0) if post else -1
    if dev and not phase and after < 0:
        pre = _FIRST
    return (int(epoch or 0), _trimmed(release), pre, after, int(dev_number or 0) if dev else 1 << 60)


def _trimmed(release: str) -> tuple[int, ...]:
    parts = [int(part) for part in release.split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def is_prerelease(text: str) -> bool:
    """True for alphas, betas, candidates and development releases."""
    key = version_key(text)
    return bool(key[2] != _LAST or key[4] != 1 << 60)


def public(text: str) -> str:
    """Return a version without its local label."""
    return text.partition("+")[0]


def clauses(spec: str) -> list[tuple[str, str]]:
    """Return a specifier's clauses; raises InvalidSpecifier."""
    found = []
    for part in filter(None, (part.strip() for part in spec.strip().strip("()").split(","))):
        match = _CLAUSE.fullmatch(part)
        if match is None:
            raise InvalidSpecifier(part)
        if not _fits(match[1], match[2]):
            raise InvalidSpecifier(part)
        found.append((match[1], match[2]))
    return found


def _fits(operator: str, bound: str) -> bool:
    """True when an operator may stand before a bound: a series for `==` and `!=` only, two parts for `~=`."""
    series = bound.endswith(".*")
    try:
        version_key(bound[:-2] if series else bound)
    except ValueError:
        return False
    if operator == "~=":
        return not series and len(_release_of(bound)) > 1
    return not series or operator in ("==", "!=")


def spec_mask(spec: str, versions: Sequence[str]) -> int:
    """Return which of the sorted `versions` satisfy `spec`, pre-releases included."""
    mask = (1 << len(versions)) - 1
    for operator, bound in clauses(spec):
        mask &= _clause_mask(operator, bound, versions)
    return mask


def satisfies(version: str, spec: str) -> bool:
    """True when a version satisfies a specifier, pre-releases included."""
    return bool(spec_mask(spec, [version]))


def _clause_mask(operator: str, bound: str, versions: Sequence[str]) -> int:
    full = (1 << len(versions)) - 1
    if operator == "===":
        return sum(1 << i for i, version in enumerate(versions) if version == bound)
    if operator in ("==", "!="):
        mask = _equal_mask(bound, versions)
        return mask if operator == "==" else full & ~mask
    if operator == "~=":
        prefix = bound.split("+")[0].split(".")
        series = ".".join(re.match(r"\d*", part)[0] for part in prefix[:-1] if part[:1].isdigit())  # type: ignore[index]
        if re.search(r"[a-z]", prefix[-1]) and not prefix[-1][:1].isdigit():
            series = ".".join(prefix[:-2])
        return _clause_mask(">=", bound, versions) & _equal_mask(f"{series}.*", versions)
    return _ordered_mask(operator, bound, versions)


def _ordered_mask(operator: str, bound: str, versions: Sequence[str]) -> int:
    full = (1 << len(versions)) - 1
    key = version_key(bound)
    start = bisect_left(versions, key, key=version_key)
    end = bisect_right(versions, key, key=version_key)
    if operator == ">=":
        return full & ~((1 << start) - 1)
    if operator == "<=":
        return (1 << end) - 1
    if operator == "<":
        if not is_prerelease(bound):
            start = min(start, bisect_left(versions, _first_of(key), key=version_key))
        return (1 << start) - 1
    if key[3] < 0:
        end = max(end, bisect_left(versions, _beyond_posts(key), key=version_key))
    return full & ~((1 << end) - 1)


def _first_of(key: Key) -> Key:
    """The smallest key of the same release: before its first development release."""
    if key[3] >= 0:
        return (*key[:4], -1)
    return (key[0], key[1], _FIRST, -1, -1)


def _beyond_posts(key: Key) -> Key:
    return (*key[:3], 1 << 60, 1 << 60)


def _equal_mask(bound: str, versions: Sequence[str]) -> int:
    if bound.endswith(".*"):
        epoch, release = version_key(bound[:-2])[0], [int(p) for p in _release_of(bound[:-2])]
        return sum(1 << i for i, version in enumerate(versions) if _in_series(version, epoch, release))
    key = version_key(bound)
    start = bisect_left(versions, key, key=version_key)
    end = bisect_right(versions, key, key=version_key)
    found = ((1 << end) - 1) & ~((1 << start) - 1)
    if "+" not in bound:
        return found
    return sum(1 << i for i in range(start, end) if _local(versions[i]) == _local(bound))


def _local(text: str) -> str:
    return re.sub(r"[-_]", ".", text.partition("+")[2].lower())


def _release_of(text: str) -> list[str]:
    match = _VERSION.fullmatch(text)
    return match[2].split(".") if match else []


def _in_series(version: str, epoch: int, release: list[int]) -> bool:
    key = version_key(version)
    parts = [*key[1], *([0] * len(release))][: len(release)]
    return key[0] == epoch and parts == release
