"""Versions of distributions as people write them: a version, a prefix, a range, a build tag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from envdoctor import lazy_re as re
from envdoctor.values import dataclass

ELSEWHERE = (
    r"\b[Uu]sed to (?:work|run)\b|"
    r"\d[`'\"]{0,2} works?\b|\bwork(?:s|ed) (?:\w{1,10} ){0,2}(?:with|on|in|under)\b|回退|降级|"
    r"\d ?(?:的)?(?:版本)?(?:都|就|是|也)?(?:正常|没问题|没有问题|可以(?!复现))"
)
"""What is said of a release that works, or is gone back to: not the one that is installed."""

_NUMBER = r"\d{1,9}(?:\.\d{1,9}){0,5}"
VERSION = (
    _NUMBER + r"(?:[-_.]?(?:a|b|rc|alpha|beta)\.?\d{0,9})?(?:[-.]?post\d{1,9})?(?:[-.]?dev\d{0,12})?"
    r"(?:\+[A-Za-z0-9][A-Za-z0-9.]{0,60})?"
)
"""A PEP 440 version as printed by tools, as a pattern."""

_WHOLE = re.compile(rf"[vV]?({VERSION})(?!\.?[\w+])")
_POST_APART = re.compile(r"^([vV]?\d[\d.]{1,40}) post(?=\d{1,2}(?!\w))")
_CANDIDATE_APART = re.compile(r"^([vV]?\d[\d.]{1,40}) (rc|dev)(?=\d{1,2}(?!\w))")
"""A post-release or a candidate as people write it: `0.4.4 post2`, `5.0 rc1`."""
_WILDCARD = re.compile(rf"[vV]?({_NUMBER})\.[xX*](?!\w)")
_CLAUSE = re.compile(rf"(<=|>=|==|~=|!=|<|>)\s*[vV]?({VERSION}(?:\.\*)?)")
_APART = rf"\W{{0,3}}(?:[a-z]{{1,20}} ){{0,2}}v?(?P<number>{_NUMBER})(?:\.[x*])?(?!\.?\w|-\d)"
_WORDS = (
    (re.compile(rf"(?:newer than|later than|higher than|above|after|greater than|高于|大于){_APART}"), ">"),
    (re.compile(rf"(?:older than|lower than|before|below|less than|低于|小于){_APART}"), "<"),
    (re.compile(rf"(?:up to|at most){_APART}"), "<="),
    (re.compile(rf"\b(?:at least|from){_APART}"), ">="),
    (
        re.compile(
            rf"(?<![\w.])v?(?P<number>{_NUMBER})\s{{0,2}}(?:\+(?!\w)|(?:or|and) (?:newer|later|above)|以上)"
        ),
        ">=",
    ),
    (
        re.compile(rf"(?<![\w.])v?(?P<number>{_NUMBER})\s{{0,2}}(?:(?:or|and) (?:older|below|lower)|以下)"),
        "<=",
    ),
)
"""A number beside the words that make a range of it."""
_OPEN_ENDED = re.compile(
    r"[vV]?\d[\w.]*\s*(?:\+(?!\w)|(?:or|and) (?:newer|later|above|older|below|lower)|以[上下])"
)
_BUILD = re.compile(r"\+(cu\d{3,4}|cpu|rocm[\d.]+|xpu)\b")
_CUDA_BESIDE = re.compile(
    rf"[vV]?{_NUMBER}[ ,(]{{1,3}}(?i:with |for |built (?:with|for) )?(?i:cuda)[ -]?(1\d)\.(\d)\b"
)
"""A version of torch with the CUDA that it was built for: `1.12.1 cuda 11.3`."""
_CPU_WORDS = re.compile(r"(?i)\(cpu(?:[ -]only)?\)|\bcpu[ -]only\b")
_VAGUE = re.compile(r"(?i)^\W*(?:latest|newest|old|too old|nightly|unknown version|installed|最新)")

_NEWEST_WITH = re.compile(r"^(?i:the )?(?i:latest|newest)\b[^\d\n(]{0,24}\((?=[vV]?\d[\w.+]{0,30}\))")
"""What stands before the release that was the newest: `latest (0.39.0)`."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a text tells of a version: the version, or a specifier, and facts of the build."""

    version: str | None = None
    specifier: str = ""
    build: Mapping[str, Any] = field(default_factory=dict)


def parse_told(text: str, exact: bool = False) -> Told | None:
    """Read a version as told; None when the text holds none. `exact`: `2.4` is whole, not a prefix."""
    text = _POST_APART.sub(r"\1.post", text.strip().strip("`*'\"").strip())
    text = _NEWEST_WITH.sub("", _CANDIDATE_APART.sub(r"\1\2", text))
    build = parse_build(re.split(r";|,\s*(?=[A-Za-z])", text)[0])
    if specifier := _specifier(text):
        return Told(None, specifier, build)
    if match := _WILDCARD.match(text):
        return Told(None, f"=={match[1]}.*", build)
    match = _WHOLE.match(text)
    if match is None:
        return Told(build=build) if build or _VAGUE.match(text) else None
    version = match[1].rstrip("-.")
    whole = exact or version.count(".") >= 2 or re.search(r"[a-z+]", version)
    return Told(version, "", build) if whole else Told(None, f"=={version}.*", build)


def parse_build(text: str) -> dict[str, Any]:
    """Return what a local version tells of a build: `+cu121`, `+cpu`, `(CPU)`."""
    if match := _BUILD.search(text):
        return _build_of_tag(match[1])
    if match := _CUDA_BESIDE.match(text):
        return _build_of_tag(f"cu{match[1]}{match[2]}")
    return _build_of_tag("cpu") if _CPU_WORDS.search(text) else {}


def _build_of_tag(tag: str) -> dict[str, Any]:
    if tag.startswith("cu"):
        digits = tag[2:]
        return {"cuda": f"{int(digits[:-1])}.{digits[-1]}", "variant": tag}
    return {"cuda": None, "variant": tag}


def _specifier(text: str) -> str:
    if _WHOLE.match(text) and not _OPEN_ENDED.match(text):
        return ""
    clauses = [f"{operator}{version}" for operator, version in _CLAUSE.findall(text)]
    if not clauses:
        clauses = _worded(text)
    if not clauses:
        return ""
    from envdoctor.specifiers import InvalidSpecifier, SpecifierSet  # dear to load

    try:
        return str(SpecifierSet(",".join(clauses)))
    except InvalidSpecifier:
        return ""


def _worded(text: str) -> list[str]:
    found = ((words.search(text.lower()), operator) for words, operator in _WORDS)
    return next(([f"{operator}{match['number']}"] for match, operator in found if match), [])
