"""Every package that running text may tell of is found under each of its names, and under no other's."""

from __future__ import annotations

from envdoctor.matrix import load_matrix, tables
from envdoctor.matrix.lexicon import PackageNames

ROWS = load_matrix().rows(tables.PackageNameRow)
NAMES = load_matrix().package_names


def test_each_name_and_label_stands_for_its_package():
    for row in ROWS:
        for label in {row.name, *row.labels, row.name.replace("-", "_"), row.name.replace("-", " ")}:
            assert NAMES.find(label) == row.name
            said = NAMES.mentions.search(f"it runs with {label} 3.2.1 on this card")
            assert said is not None, label
            assert (NAMES.find(said["name"].lower()), said["version"]) == (row.name, "3.2.1")


def test_no_two_packages_share_a_label():
    labels = [label for row in ROWS for label in {row.name, row.name.replace("-", " "), *row.labels}]
    assert len(labels) == len(set(labels))


def test_without_rows_no_name_is_known():
    assert PackageNames().find("torch") is None
    assert PackageNames().mentions.search("torch 2.1.0") is None
