"""Requirements in a project's own files that leave out the release it moves to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from packaging.version import InvalidVersion, Version

from envdoctor.facts.names import normalise
from envdoctor.specifiers import InvalidSpecifier, SpecifierSet
from envdoctor.upgrading.breaks import Break
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.uses import Kind, Place, Use

_NAME = re.compile(r"(?<![\w.@/-])([A-Za-z][\w.-]{0,60})(?:\[[\w,.-]{0,60}\])?")
_CLAUSES = re.compile(r"\(?((?:(?:~=|===?|[!<>]=?|\^|~|=)?[0-9][\w.*+!]{0,40},?){1,8})")
_CHECKED = re.compile(r"\b(?:check|require)\w{0,20}\(\s?f?[\"'][A-Za-z][\w.-]{0,60}\s?[<>=!~]=?")
"""A call that checks a requirement when it runs."""
_PAST = re.compile(r"python_version\s?(?:==|<=?)\s?[\"']")
"""A marker for a Python from a time before: the new release need not exist for it."""
_CLAUSE = re.compile(r"(~=|===?|[!<>]=?|\^|~|=)?([0-9][\w.*+!]{0,40})")
_BLANK = str.maketrans("", "", " \t\"'")


def judge_requirements(moves: Mapping[str, Move], text: str, code: bool = False) -> Iterator[Break]:
    """Yield the requirements that the new releases do not meet, each with its line.

    In code, those that a call checks.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("#") or (code and not _CHECKED.search(line)) or _PAST.search(line):
            continue
        for name, told in _requirements(line):
            move = moves.get(normalise(name))
            spec = _specifier(told)
            if move is not None and spec is not None and not spec.contains(move.new, prereleases=True):
                use = Use(Kind.REQUIREMENT, normalise(name), Place(number, 0, 0), name)
                yield Break(use, f"{name}{spec}", str(move.new))


def _requirements(line: str) -> Iterator[tuple[str, str]]:
    """Yield names with what follows them, quotes and blanks left out: `a[b]>=1`, `a = {version = "^1"}`."""
    plain = line.lstrip(" -").partition(" #")[0].partition(";")[0].translate(_BLANK)
    for match in _NAME.finditer(plain):
        rest = plain[match.end() :].removeprefix("={version")
        if found := _CLAUSES.match(
            rest.removeprefix("=") if rest[1:2] in ("^", "~", "<", ">", "!") else rest
        ):
            yield match[1], found[1]


def _specifier(told: str) -> SpecifierSet | None:
    """Return the clauses as PEP 440 writes them; None for what names no release."""
    clauses = [c for operator, version in _CLAUSE.findall(told) for c in _clauses(operator, version)]
    try:
        return SpecifierSet(",".join(clauses)) if clauses else None
    except InvalidSpecifier:
        return None


def _clauses(operator: str, version: str) -> Iterator[str]:
    """Give a clause in PEP 440's words: `^1.2` is `>=1.2,<2`, conda's `=1.2` is `==1.2.*`."""
    try:
        release = Version(version).release
    except InvalidVersion:
        release = ()
    match operator:
        case "":
            return
        case "^" | "~" if release:
            kept = release[:1] if operator == "^" and release[0] else release[:2]
            yield f">={version}"
            yield f"<{'.'.join(map(str, (*kept[:-1], kept[-1] + 1)))}"
        case "=":
            yield f"=={version}" if version.endswith("*") else f"=={version}.*"
        case _:
            yield f"{operator}{version}"
