"""Three-valued judgement of versions: a known version, or only a known range, against a condition."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion, Version

from envdoctor import lazy_re as re
from envdoctor.patterns import glob_matches

if TYPE_CHECKING:
    from envdoctor.specifiers import SpecifierSet

MAX_VERSION = 200
_EVERYTHING = ("", "*")


@cache
def parse_specifier(text: str) -> SpecifierSet:
    """Return a specifier set that admits pre-releases; raises ValueError."""
    from envdoctor.specifiers import InvalidSpecifier, SpecifierSet  # takes a tenth of a diagnosis to load

    try:
        return SpecifierSet("" if text in _EVERYTHING else text, prereleases=True)
    except InvalidSpecifier:
        raise ValueError(f"not a version specifier: {text[:60]!r}") from None


def specifier_in(text: str) -> str:
    """Return a message's specifier in its normal form; empty where it holds none that can be read."""
    from envdoctor.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return str(SpecifierSet(text.replace(" ", "").rstrip(".,)")))
    except InvalidSpecifier:
        return ""


def is_specifier(text: str) -> bool:
    """True for a specifier that can be read."""
    if all(map(_CLAUSE.fullmatch, text.split(","))):
        return len(text) <= MAX_VERSION
    try:
        parse_specifier(text)
    except ValueError:
        return False
    return len(text) <= MAX_VERSION


@cache
def parse_version(text: str) -> Version | None:
    """Return the version, or None when the text is none (or its numbers are longer than Python reads)."""
    try:
        return Version(text) if len(text) <= MAX_VERSION else None
    except InvalidVersion:
        return None


def version_satisfies(version: Version, specifier: str) -> bool:
    """True when the version lies in the range; a development build counts as the release it leads to."""
    if (plainly := _plainly_satisfies(version, specifier)) is not None:
        return plainly
    if parse_specifier(specifier).contains(version):
        return True
    if version.is_devrelease or version.is_prerelease:
        return parse_specifier(specifier).contains(Version(version.base_version))
    return False


_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(\d{1,9}(?:\.\d{1,9}){0,5})\s*")


def _plainly_satisfies(version: Version, specifier: str) -> bool | None:
    """Compare a released version with clauses of plain numbers, for which packaging's rules are these."""
    if version.is_prerelease or version.is_postrelease or version.local or version.epoch:
        return None
    clauses = _plain_clauses(specifier)
    if clauses is None:
        return None
    release = _without_zeros(version.release)
    return all(compare(release, bound) for compare, bound in clauses)


@cache
def _plain_clauses(specifier: str) -> tuple[tuple[Callable[..., bool], tuple[int, ...]], ...] | None:
    clauses = [_CLAUSE.fullmatch(clause) for clause in specifier.split(",")]
    if not all(clauses):
        return None
    return tuple((_COMPARED[clause[1]], _numbers(clause[2])) for clause in clauses if clause)


def _numbers(text: str) -> tuple[int, ...]:
    return _without_zeros(tuple(int(part) for part in text.split(".")))


def _without_zeros(release: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers of a release without the zeros at its end, which mean nothing."""
    while release and release[-1] == 0:
        release = release[:-1]
    return release


_COMPARISON = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(-?\d+(?:\.\d+)?)\s*")
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def number_satisfies(value: str, condition: str) -> bool | None:
    """Compare decimal numbers (0.85 is less than 0.9, which is false of versions).

    None when the value is no number or the condition no comparison of numbers.
    """
    clauses = [_COMPARISON.fullmatch(clause) for clause in condition.split(",")]
    try:
        number = float(value)
    except ValueError:
        return None
    if not all(clauses):
        return None
    return all(_COMPARED[clause[1]](number, float(clause[2])) for clause in clauses if clause)


def range_satisfies(known: str, condition: str) -> bool | None:
    """True when every version of the range `known` meets `condition`, False when none does, else None.

    Both ranges are unions of intervals between the versions they name, so it is enough to look at those
    versions and at points just below and just above each. Of a `known` that is no range nothing is known.
    """
    if not is_specifier(known):
        return None
    points = _sample_points(known) | _sample_points(condition)
    inside = [p for p in points if parse_specifier(known).contains(p)]
    if not inside:
        return None
    verdicts = {parse_specifier(condition).contains(p) for p in inside}
    return verdicts.pop() if len(verdicts) == 1 else None


@cache
def _sample_points(specifier: str) -> frozenset[Version]:
    points = {Version("0"), Version("999999")}
    for clause in parse_specifier(specifier):
        base = clause.version.removesuffix(".*")
        version = parse_version(base)
        if version is None:
            continue
        release = ".".join(str(part) for part in version.release)
        last = ".".join(str(part) for part in (*version.release[:-1], version.release[-1] + 1))
        points.update(
            Version(v) for v in (base, f"{release}.0.0.1", f"{release}.9999", last, _below(version))
        )
    return frozenset(points)


def _below(version: Version) -> str:
    parts = list(version.release)
    while parts and parts[-1] == 0:
        parts.pop()
    if not parts:
        return "0"
    parts[-1] -= 1
    return ".".join(str(part) for part in (*parts, 9999))


def text_matches(value: str, text: str) -> bool | None:
    """`a|b` alternatives (globs), `!x` negation, or a comparison such as `>=4096`."""
    value = value.strip()
    if text[:1] in "<>=" or (text.startswith("!=") and text[2:3].isdigit()):
        number = parse_version(value)
        return version_satisfies(number, text) if number else None
    if text.startswith("!"):
        matched = text_matches(value, text[1:])
        unread = not matched and parse_version(text[1:].partition("|")[0]) and not parse_version(value)
        return None if unread else not matched  # a variable's name is no other number
    return any(glob_matches(value.lower(), option.strip().lower()) for option in text.split("|"))
