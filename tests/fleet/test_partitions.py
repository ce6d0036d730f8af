"""Partitions that overlap: each node is compared in one, and expected to be what any of its own says."""

from __future__ import annotations

from envdoctor.findings import Severity
from envdoctor.fleet.expecting import Expectation
from envdoctor.fleet.nodeset import expand
from envdoctor.fleet.partitions import home_partitions, memberships


def homes(**partitions: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node, name in sorted(
        home_partitions({n: frozenset(expand(t)) for n, t in partitions.items()}).items()
    ):
        found.setdefault(name, []).append(node)
    return {name: sorted(nodes) for name, nodes in found.items()}


def test_a_partition_over_others_is_none_of_its_own() -> None:
    assert homes(all="a[1-4],h[1-6],x1", a100="a[1-4]", h100="h[1-6]") == {
        "a100": ["a1", "a2", "a3", "a4"],
        "h100": ["h1", "h2", "h3", "h4", "h5", "h6"],
        "all": ["x1"],
    }


def test_a_shorter_limit_on_some_nodes_makes_no_other_nodes() -> None:
    assert set(homes(main="n[1-8]", debug="n[1-2]")) == {"main"}
    assert set(homes(main="n[1-8]", short="n[1-5]", long="n[3-8]")) == {"main"}


def test_few_nodes_of_many_owners_stay_together() -> None:
    owners = {f"owner{n}": f"n{n}" for n in range(1, 9)}
    assert set(homes(all="n[1-8]", **owners)) == {"all"}


def test_two_names_for_the_same_nodes_are_one_partition() -> None:
    assert set(homes(main="n[1-8]", preempt="n[1-8]")) == {"main"}


def test_a_site_may_expect_of_any_partition_of_a_node() -> None:
    partitions = {"main": frozenset(("n1", "n2")), "debug": frozenset(("n1",))}
    expectation = Expectation("E", {"driver": "1"}, Severity.ERROR, partition="debug")
    of_nodes = memberships(partitions)
    assert [node for node in ("n1", "n2") if expectation.is_for(node, of_nodes[node])] == ["n1"]
