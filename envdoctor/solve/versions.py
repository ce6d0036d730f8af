"""PEP 440 as `packaging` decides it, for sorted versions at once: sets of versions are bit masks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from envdoctor import lazy_re as re
from envdoctor.matrix.markers import some_release_meets

if TYPE_CHECKING:
    from envdoctor.specifiers import Specifier

_USUAL = re.compile(
    r"([=!<>~]=|[<>])([0-9]+(?:\.[0-9]+)*)"
    r"|([=!<>]=)([0-9]+(?:\.[0-9]+)*(?:(?:a|b|rc)[0-9]+)?(?:\.post[0-9]+)?)|([=!]=)([0-9]+(?:\.[0-9]+)*\.\*)"
)
"""A clause that PEP 440 admits (`~=` with two numbers); `packaging`, dear to load, reads the others."""
_PLAIN = re.compile(r"(?:\d+!)?\d+(?:\.\d+)*", re.ASCII)
_NORMAL = re.compile(r"(?:(\d+)!)?(\d+(?:\.\d+)*)(?:(a|b|rc)(\d+))?(?:\.post(\d+))?(?:\.dev(\d+))?", re.ASCII)
"""A public version in its normal form."""
_PHASES = {"a": 0, "b": 1, "rc": 2}
_NEVER = float("inf")
"""The number of the development release of one that is none."""
_BARE, _FINAL = -1, 3
"""Where a development release of no phase, and a final release, stand among the phases."""
Key = tuple[int, tuple[int, ...], tuple[int, int], int, float]
"""Epoch, release without trailing zeros, phase, post-release (-1: none), development (infinite: none)."""
_MANY = 10**9
"""More than any post-release counts."""


class InvalidSpecifier(ValueError):
    """A specifier that PEP 440 does not know; the message is the clause."""


@cache
def version_key(text: str) -> Key:
    """Return what sorts as PEP 440 sorts public versions; raises ValueError."""
    told = _NORMAL.fullmatch(public(text))
    if told is None:
        from packaging.version import Version

        return version_key(str(Version(public(text))))
    epoch, release, phase, count, post, dev = told.groups()
    numbers = tuple(map(int, release.split(".")))
    while numbers and not numbers[-1]:
        numbers = numbers[:-1]
    before = (_PHASES[phase], int(count)) if phase else (_BARE if dev and post is None else _FINAL, 0)
    return int(epoch or 0), numbers, before, int(post) if post else -1, int(dev) if dev else _NEVER


def is_prerelease(text: str) -> bool:
    """True for alphas, betas, candidates and development releases."""
    _, _, (phase, _), _, dev = version_key(text)
    return phase in _PHASES.values() or dev != _NEVER


def public(text: str) -> str:
    """Return a version without its local label."""
    return text.partition("+")[0]


@cache
def clauses(spec: str) -> tuple[tuple[str, str], ...]:
    """Return a specifier's clauses; raises InvalidSpecifier."""
    parts = (part.strip() for part in spec.strip().strip("()").split(","))
    return tuple(_clause(part) for part in parts if part)


def _clause(text: str) -> tuple[str, str]:
    usual = _USUAL.fullmatch(text)
    if usual and (usual[1] != "~=" or "." in usual[2]):
        return usual[1] or usual[3] or usual[5], usual[2] or usual[4] or usual[6]
    found = _parse(text)
    return found.operator, found.version


def _parse(clause: str) -> Specifier:
    from envdoctor.specifiers import InvalidSpecifier as UnknownSpecifier
    from envdoctor.specifiers import Specifier

    try:
        return Specifier(clause)
    except UnknownSpecifier:
        raise InvalidSpecifier(clause) from None


def spec_mask(spec: str, versions: Sequence[str]) -> int:
    """Return which of the sorted `versions` satisfy `spec`, pre-releases included."""
    mask = (1 << len(versions)) - 1
    for operator, bound in clauses(spec):
        mask &= _clause_mask(operator, bound, versions)
    return mask


def satisfies(version: str, spec: str) -> bool:
    """True when a version satisfies a specifier, pre-releases included."""
    return bool(spec_mask(spec, [version]))


def runs_on_python(spec: str, python: tuple[int, ...]) -> bool:
    """True when a Python meets a Requires-Python; one told without its last number, when some release may."""
    return some_release_meets(clauses(spec), python)


def _clause_mask(operator: str, bound: str, versions: Sequence[str]) -> int:
    """Return the versions of one clause: those between two places where PEP 440 allows to say so."""
    full = (1 << len(versions)) - 1
    plain = _PLAIN.fullmatch(bound.removesuffix(".*"))
    if operator in ("==", "!=") and (plain or _NORMAL.fullmatch(bound)):
        alike = _series(bound[:-2], versions) if bound.endswith(".*") else _at(bound, versions)
        return alike if operator == "==" else full & ~alike
    if operator == ">=":
        return full & ~_below(bound, versions)
    if operator == "<=":
        return _below(bound, versions, inclusive=True)
    if not plain or operator == "===":
        return _asked(operator, bound, versions)
    if operator == "<":
        return _below(f"{bound}.dev0", versions)
    if operator == ">":
        return full & ~_below(f"{bound}.post{_MANY}", versions, inclusive=True)
    return full & ~_below(bound, versions) & _series(bound.rpartition(".")[0], versions)


def ends_below(clause: str, python: str) -> bool:
    """True for an upper bound that a Python lies above."""
    return clause.startswith("<") and not satisfies(python, clause)


def _asked(operator: str, bound: str, versions: Sequence[str]) -> int:
    specifier = _parse(operator + bound)
    return sum(1 << i for i, text in enumerate(versions) if specifier.contains(text, prereleases=True))


def _at(bound: str, versions: Sequence[str]) -> int:
    return _below(bound, versions, inclusive=True) & ~_below(bound, versions)


def _below(bound: str, versions: Sequence[str], inclusive: bool = False) -> int:
    find = bisect_right if inclusive else bisect_left
    return (1 << find(versions, version_key(bound), key=version_key)) - 1


def _series(release: str, versions: Sequence[str]) -> int:
    """Return the versions whose release begins like this one."""
    head, dot, last = release.rpartition(".")
    epoch, mark, number = last.rpartition("!")
    after = f"{head}{dot}{epoch}{mark}{int(number) + 1}"
    return _below(f"{after}.dev0", versions) & ~_below(f"{release}.dev0", versions)
