from __future__ import annotations

import pytest
from ClusterShell.NodeSet import NodeSet
from hypothesis import given
from hypothesis import strategies as st

from envdoctor.fleet.nodeset import expand, fold, natural_key, node_name


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["node064"], "node064"),
        ([f"node{n:03d}" for n in range(1, 64)], "node[001-063]"),
        (["node1", "node2", "node10", "node4"], "node[1-2,4,10]"),
        ([f"n{n:02d}" for n in range(8, 12)], "n[08-11]"),
        ([f"n{n:03d}" for n in (998, 999, 1000)] + ["n001"], "n1000,n[001,998-999]"),
        (["gpu-a1", "gpu-a2", "cpu-a1"], "cpu-a1,gpu-a[1-2]"),
        (["r1n1", "r1n2", "r2n1", "r2n2"], "r[1-2]n[1-2]"),
        (["login", "node1"], "login,node1"),
        ([], ""),
    ],
)
def test_names_fold(names: list[str], folded: str) -> None:
    assert fold(names) == folded


def test_what_clustershell_folds_alike_is_written_alike() -> None:
    for text in ("node[001-063,065]", "gpu[1-8,17]", "rack[1-4]node[01-16]", "a,b[2-3]"):
        assert set(fold(NodeSet(text)).split(",")) == set(str(NodeSet(text)).split(","))


NAMES = st.lists(
    st.builds(
        lambda prefix, number, width, tail: f"{prefix}{number:0{width}d}{tail}",
        st.sampled_from(["n", "gpu-", "r1c"]),
        st.integers(0, 1200),
        st.integers(1, 4),
        st.sampled_from(["", ".cluster", "-ib0"]),
    ),
    max_size=60,
)


@given(NAMES)
def test_folding_loses_nothing(names: list[str]) -> None:
    assert set(expand(fold(names)) if names else []) == set(names)


@given(NAMES.filter(lambda names: len({len(n) for n in names}) <= 1))
def test_clustershell_reads_what_we_write(names: list[str]) -> None:
    assert {str(n) for n in NodeSet(fold(names))} == set(names)


@pytest.mark.parametrize("text", ["node[1-", "node]", "", "node[x]", "node[1-99999999]", "a,,b"])
def test_what_is_no_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a node set"):
        expand(text)


def test_names_sort_as_people_count() -> None:
    assert sorted(["n10", "n9", "n1", "m2"], key=natural_key) == ["m2", "n1", "n9", "n10"]


def test_a_file_name_becomes_a_name_that_no_set_misreads() -> None:
    assert node_name("node[1], rack 2") == "node_1___rack_2"


@pytest.mark.parametrize("digits", [19, 5000])
def test_numbers_of_any_length_are_names_and_no_ranges(digits: int) -> None:
    name = "node" + "7" * digits
    assert expand(fold([name, "node1", "node2"])) == ["node1", "node2", name]
    with pytest.raises(ValueError, match="not a node set"):
        expand(f"node[{'7' * digits}]")


def test_only_ascii_digits_are_numbers() -> None:
    assert set(expand(fold(["n\u0661", "n\u0662"]))) == {"n\u0661", "n\u0662"}
