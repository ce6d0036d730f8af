"""PEP 440 order and specifiers agree with `packaging`."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.specifiers import Specifier
from packaging.version import Version

from envdoctor.solve.versions import InvalidSpecifier, clauses, is_prerelease, spec_mask, version_key

releases = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))
suffixes = st.sampled_from(
    ["", "", "", "a1", "b2", "rc1", ".post1", ".dev1", "rc1.dev2", ".post1.dev1", "+cu121"]
)
version_texts = st.builds("{}{}".format, releases, suffixes)
operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "~="])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(version_texts, max_size=12))
def test_keys_sort_as_packaging_sorts(texts: list[str]) -> None:
    public = [text.partition("+")[0] for text in texts]
    assert sorted(public, key=lambda t: (version_key(t), t)) == sorted(public, key=lambda t: (Version(t), t))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sets(version_texts, max_size=8), operators, version_texts)
def test_specifiers_admit_what_packaging_admits(texts: set[str], operator: str, bound: str) -> None:
    bound = bound.partition("+")[0]
    if operator == "~=" and "." not in str(Version(bound).base_version):
        return
    ordered = sorted((text.partition("+")[0] for text in texts), key=Version)
    mask = spec_mask(f"{operator}{bound}", ordered)
    admitted = [version for place, version in enumerate(ordered) if mask >> place & 1]
    specifier = Specifier(f"{operator}{bound}")
    assert admitted == [v for v in ordered if specifier.contains(v, prereleases=True)]


SUFFIXES = ("", ".dev1", "a1", "rc1.dev2", "rc1", ".post1.dev1", ".post1", ".post2")
BOUNDS = [f"{release}{suffix}" for release in ("1", "1.0", "1.0.1", "1.1", "2") for suffix in SUFFIXES]


@pytest.mark.parametrize("operator", ["==", "!=", "<", "<=", ">", ">=", "~=", "==="])
def test_every_clause_admits_what_packaging_admits(operator: str) -> None:
    ordered = sorted(BOUNDS, key=lambda text: (Version(text), text))
    series = [f"{release}.*" for release in ("1", "1.0", "1.1")] if operator in ("==", "!=") else []
    for bound in (*BOUNDS, *series):
        if operator == "~=" and "." not in Version(bound).base_version:
            continue
        mask, specifier = spec_mask(f"{operator}{bound}", ordered), Specifier(f"{operator}{bound}")
        admitted = [version for place, version in enumerate(ordered) if mask >> place & 1]
        assert admitted == [v for v in ordered if specifier.contains(v, prereleases=True)], bound


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("==2.1.*", ["2.1.0", "2.1.2"]),
        ("!=2.1.*,>=2", ["2.0", "2.2rc1", "2.2"]),
        ("~=2.1.0", ["2.1.0", "2.1.2"]),
        ("<2.2", ["1.13", "2.0", "2.1.0", "2.1.2"]),
        ("===2.0", ["2.0"]),
        ("==2.2rc1", ["2.2rc1"]),
        ("!=2.2rc1,!=2.1.0.post1", ["1.13", "2.0", "2.1.0", "2.1.2", "2.2"]),
        ("", ["1.13", "2.0", "2.1.0", "2.1.2", "2.2rc1", "2.2"]),
    ],
)
def test_specifiers_by_example(spec: str, expected: list[str]) -> None:
    versions = ["1.13", "2.0", "2.1.0", "2.1.2", "2.2rc1", "2.2"]
    mask = spec_mask(spec, versions)
    assert [version for place, version in enumerate(versions) if mask >> place & 1] == expected


def test_what_packages_usually_write_is_read_without_packaging(monkeypatch: pytest.MonkeyPatch) -> None:
    """To load it takes a tenth of what an answer takes."""
    monkeypatch.setattr("envdoctor.solve.versions._parse", None)
    assert spec_mask("!=6.30.*,!=6.33.0.*,==6.31.1.post1", ["6.30.1", "6.31.1", "6.31.1.post1"]) == 0b100


@pytest.mark.parametrize("spec", [">=", "=>2", ">=two", "torch", "==1.0;"])
def test_what_is_no_specifier_is_refused(spec: str) -> None:
    with pytest.raises(InvalidSpecifier):
        clauses(spec)


def test_prereleases_are_recognised() -> None:
    assert [t for t in ("2.0", "2.0rc1", "2.0.dev1", "2.0.post1", "2.0a1+cpu") if is_prerelease(t)] == [
        "2.0rc1",
        "2.0.dev1",
        "2.0a1+cpu",
    ]
