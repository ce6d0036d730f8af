"""A known range of versions against a condition: always, never, or it depends."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envdoctor.rules.ranges import range_satisfies, version_satisfies


@pytest.mark.parametrize(
    ("known", "condition", "verdict"),
    [
        ("<0.46.1", "<0.46.1", True),
        ("<0.46.1", "<0.50", True),
        ("<0.46.1", ">=0.46.1", False),
        ("<0.46.1", "<0.45", None),
        (">4.33.0", "<4.39", None),
        (">4.33.0", ">=4.30", True),
        ("==2.4.*", ">=2.4", True),
        ("==2.4.*", "<2.4", False),
        ("==0.14.*", "<0.14.4", None),
        (">=2,<2", ">=0", None),
        ("==12.4.*", "==12.4.*", True),
        (">=525", ">=525.60.13", None),
    ],
)
def test_ranges(known: str, condition: str, verdict: bool | None) -> None:
    assert range_satisfies(known, condition) is verdict


@pytest.mark.parametrize(
    ("version", "specifier", "verdict"),
    [
        ("2.1.0+cu121", ">=2.1", True),
        ("2.1.0+cu121", "<2.1", False),
        ("2.9.0.dev20250909+cu128", ">=2.9", True),
        ("2.2.0a0+81ea7a4", ">=2.2", True),
        ("2.8.3.post1", "<=2.8.3", False),
        ("0.8.4.dev0", "<0.9", True),
    ],
)
def test_builds_before_a_release_count_as_it(version: str, specifier: str, verdict: bool) -> None:
    assert version_satisfies(Version(version), specifier) is verdict


@pytest.mark.parametrize("release", ["0", "1", "1.0", "2.0.0", "2.6", "2.6.1", "2.10", "12.8", "2.8.0.1"])
@pytest.mark.parametrize("clause", ["<2.6", "<=2.6", "==2.6.0", "!=2.6", ">2.6", ">=2.6", ">=2,<2.10", "==0"])
def test_plain_numbers_are_compared_as_packaging_does(release: str, clause: str) -> None:
    version = Version(release)
    assert version_satisfies(version, clause) is SpecifierSet(clause, prereleases=True).contains(version)
