"""The solver by example, on small worlds."""

from __future__ import annotations

import pytest
from solve_world import EMPTY, goal, shipped, target, versions, world

from envdoctor.errors import InputError, Unavailable
from envdoctor.matrix import Matrix
from envdoctor.solve.pinning import pin, why_not
from envdoctor.solve.report import render

CHAIN = {
    "app": {"1": ["lib>=1"], "2": ["lib>=2"], "3": ["lib>=3"]},
    "lib": {"1": [], "2": [], "3": [], "4": []},
}


def test_the_newest_of_everything_when_it_fits() -> None:
    assert versions(goal(world(CHAIN), ["app"])) == {"app": "3", "lib": "4"}


def test_nothing_unneeded_is_pulled_in() -> None:
    assert versions(goal(world(CHAIN), ["lib"])) == {"lib": "4"}


def test_packages_may_require_one_another() -> None:
    ring = {"app": {"1": ["lib[x]"]}, "lib": {"1": ["app", "end"], "2": ["app==2"]}, "end": {"1": ["lib<2"]}}
    found = {"app": "1", "lib": "1", "end": "1"}
    assert versions(goal(world(ring), ["app"])) == versions(goal(world(ring), ["end", "lib"])) == found


def test_no_package_asked_for_is_sacrificed_to_the_newest_of_another() -> None:
    """The old release without bounds goes with anything: uv's way to a two-year-old vLLM."""
    snapshot = world(
        {
            "torch": {"1": [], "2": [], "3": []},
            "engine": {
                "1": {"requires": ["torch"], "day": 0},
                "8": {"requires": ["torch==2"], "day": 700},
                "9": {"requires": ["torch==2"], "day": 720},
            },
        }
    )
    assert versions(goal(snapshot, ["torch", "engine"])) == {"torch": "2", "engine": "9"}


def test_a_hopeless_package_does_not_drag_the_others_down() -> None:
    """Beyond the cap it does not matter how stale one is: 730 days weigh less than 400 of two others."""
    snapshot = world(
        {
            "dead": {"1": {"requires": [], "day": 0}, "2": {"requires": ["one<2", "two<2"], "day": 5000}},
            "one": {"1": {"day": 4600}, "2": {"day": 5000}},
            "two": {"1": {"day": 4600}, "2": {"day": 5000}},
        }
    )
    assert versions(goal(snapshot, ["dead", "one", "two"])) == {"dead": "1", "one": "2", "two": "2"}


def test_extras_bring_their_requirements() -> None:
    snapshot = world(
        {"app": {"1": ['lib>=2; extra == "fast"', "base"]}, "lib": {"1": [], "2": []}, "base": {"1": []}}
    )
    assert versions(goal(snapshot, ["app"])) == {"app": "1", "base": "1"}
    assert versions(goal(snapshot, ["app[fast]"])) == {"app": "1", "base": "1", "lib": "2"}


def test_an_extra_that_asks_for_its_own_packages_others_is_no_reason_for_it() -> None:
    snapshot = world(
        {
            "app": {"1.0": ["lib"]},
            "lib": {"1.0": ["lib[one,two]; extra == 'all'", "a; extra == 'one'", "b; extra == 'two'"]},
            "a": {"1.0": []},
            "b": {"1.0": []},
        }
    )
    pins = {one.name: one for one in pin(goal(snapshot, ["app", "lib[all]"])).pins}
    assert pins["lib"].because == ("asked for as lib[all]", "app 1.0 requires it")
    assert pins["a"].because == ("lib 1.0 requires it",)


def test_extras_asked_for_by_a_requirement() -> None:
    snapshot = world({"top": {"1": ["app[fast]"]}, "app": {"1": ['lib; extra == "fast"']}, "lib": {"1": []}})
    assert versions(goal(snapshot, ["top"])) == {"top": "1", "app": "1", "lib": "1"}


def test_markers_speak_of_the_target() -> None:
    snapshot = world(
        {
            "app": {"1": ['old; python_version < "3.10"', 'new; python_version >= "3.10"']},
            "old": {"1": []},
            "new": {"1": []},
        }
    )
    assert versions(goal(snapshot, ["app"])) == {"app": "1", "new": "1"}


def test_what_a_release_works_with_binds_only_what_is_there() -> None:
    """Run-time minimums inside a wheel: nothing is pulled in, but what is there must fit."""
    snapshot = world(
        {"app": {"1": [], "2": {"deep": {"requires": {"lib": ">=3"}}}}, "lib": {"1": [], "2": []}}
    )
    assert versions(goal(snapshot, ["app"])) == {"app": "2"}
    assert versions(goal(snapshot, ["app", "lib"])) == {"app": "1", "lib": "2"}


@pytest.mark.parametrize(
    ("release", "why"),
    [
        ({"yanked": True}, "yanked"),
        ({"python": ">=3.12"}, "python"),
        ({"files": ["cp312-cp312-manylinux2014_x86_64"]}, "wheel"),
        ({"files": ["cp311-cp311-manylinux_2_31_x86_64"]}, "glibc"),
        ({"files": ["cp38-cp38-manylinux_2_17_x86_64", "sdist"]}, "source"),
        ({"day": 5000}, "date"),
    ],
)
def test_a_release_that_cannot_be_used_is_no_candidate(release: dict[str, object], why: str) -> None:
    snapshot = world({"lib": {"1": [], "2": release}})
    assert versions(goal(snapshot, ["lib"], exclude_newer="2030-01-01")) == {"lib": "1"}, why


def test_a_yanked_release_pinned_exactly_is_meant() -> None:
    assert versions(goal(world({"lib": {"1": [], "2": {"yanked": True}}}), ["lib==2"])) == {"lib": "2"}


def test_prereleases_only_when_asked_for_or_when_there_is_nothing_else() -> None:
    snapshot = world({"lib": {"1": [], "2rc1": []}, "beta": {"1b1": [], "1b2": []}})
    assert versions(goal(snapshot, ["lib", "beta"])) == {"lib": "1", "beta": "1b2"}
    assert versions(goal(snapshot, ["lib>=2rc1"])) == {"lib": "2rc1"}


def test_prereleases_stand_in_where_every_final_release_was_withdrawn() -> None:
    packages = {"lib": {"1": {"yanked": True}, "2b1": [], "2b2": []}, "app": {"1": ["lib>=2b1"]}}
    assert versions(goal(world(packages), ["app"])) == {"app": "1", "lib": "2b2"}


def test_a_prerelease_or_a_withdrawn_release_is_named_as_such_where_it_would_have_served() -> None:
    snapshot = world({"lib": {"1": [], "2rc1": []}, "old": {"1": [], "2": {"yanked": True}}, "a": {"1": []}})
    rc, yanked = pin(goal(snapshot, ["lib>1"])), pin(goal(snapshot, ["old>1"]))
    assert "lib 2rc1 is a pre-release, which installers take only when it is asked for" in rc.causes[1].text
    assert "old 2 was withdrawn from the index" in yanked.causes[1].text


def test_a_prerelease_that_a_requirement_pins_is_taken_but_for_nobody_else() -> None:
    packages = {"lib": {"1": [], "2rc1": []}, "app": {"1": ["lib==2rc1"]}, "other": {"1": ["lib"]}}
    assert versions(goal(world(packages), ["app"])) == {"app": "1", "lib": "2rc1"}
    assert versions(goal(world(packages), ["other"])) == {"other": "1", "lib": "1"}
    assert versions(goal(world(packages), ["app", "other"])) == {"app": "1", "other": "1", "lib": "2rc1"}


def test_source_builds_only_when_allowed_and_then_said() -> None:
    snapshot = world({"lib": {"1": {"files": ["cp38-cp38-manylinux_2_17_x86_64", "sdist"]}}})
    answer = pin(goal(snapshot, ["lib"]))
    assert answer.status == "conflict"
    assert "only a source build exists of lib 1" in answer.causes[1].text
    assert [r.drop for r in answer.relaxations] == ["the ban on source builds (--allow-source)"]
    assert versions(goal(snapshot, ["lib"], allow_source=True)) == {"lib": "1"}


def test_a_pinned_release_that_only_a_build_reads_is_taken_with_builds_allowed() -> None:
    snapshot = world({"lib": {"1": {"requires": None, "files": ["sdist"]}, "2": []}})
    assert versions(goal(snapshot, ["lib==1"], allow_source=True)) == {"lib": "1"}
    assert versions(goal(snapshot, ["lib<3"], allow_source=True)) == {"lib": "2"}
    assert pin(goal(snapshot, ["lib==1"])).status != "solved"


def test_a_late_patch_of_an_old_line_is_not_newer() -> None:
    snapshot = world(
        {
            "lib": {"1.0": {"day": 0}, "1.1": {"day": 900}, "2.0": {"day": 100}},
            "app": {"1": ["lib<2"], "2": ["lib"]},
        }
    )
    assert versions(goal(snapshot, ["app", "lib"])) == {"app": "2", "lib": "2.0"}


def test_least_change_keeps_what_is_installed() -> None:
    installed = {"app": "1", "lib": "2"}
    assert versions(goal(world(CHAIN), ["lib>=3"], installed=installed, least_change=True)) == {
        "app": "1",
        "lib": "4",
    }
    assert versions(goal(world(CHAIN), ["app>=2"], installed=installed, least_change=True)) == {
        "app": "2",
        "lib": "2",
    }


def test_nothing_goes_further_than_it_must_though_what_is_newer_asks_no_more() -> None:
    packages = {
        "app": {"1": ["lib==1"], "2": ["lib>=2"]},
        "lib": {"1": {"day": 0}, "2": {"day": 10}, "3": {"day": 900}},
    }
    asked = goal(world(packages), ["app==2"], installed={"app": "1", "lib": "1"}, least_change=True)
    assert versions(asked) == {"app": "2", "lib": "2"}


def test_least_change_reports_the_changes() -> None:
    answer = pin(goal(world(CHAIN), ["app>=3"], installed={"app": "1", "lib": "1"}, least_change=True))
    assert [(c.name, c.old, c.new) for c in answer.changes] == [("app", "1", "3"), ("lib", "1", "4")]


def row(identity: str, when: dict[str, str], **more: object) -> dict[str, object]:
    return {
        "id": identity,
        "when": when,
        "severity": "error",
        "summary": "they clash",
        "cause": "They clash.",
        "source": "https://example.org/issue",
        "checked_on": "2026-01-01",
        "basis": "issue thread",
        **more,
    }


def rows(*tables: dict[str, object]) -> Matrix:
    return Matrix({"row": tables}, "test", "2026-01-01", EMPTY.folder)


def test_a_row_forbids_what_metadata_allows() -> None:
    matrix = rows(row("PAIR", {"app": ">=3", "lib": ">=4"}))
    assert versions(goal(world(CHAIN), ["app"], matrix=matrix)) == {"app": "3", "lib": "3"}


def test_a_row_with_an_exception() -> None:
    matrix = rows(row("PAIR", {"app": ">=3"}, unless={"lib": "<4"}))
    assert versions(goal(world(CHAIN), ["app"], matrix=matrix)) == {"app": "3", "lib": "3"}


def test_a_row_about_another_python_is_silent() -> None:
    matrix = rows(row("PAIR", {"app": ">=3", "python": "<3.11"}))
    assert versions(goal(world(CHAIN), ["app"], matrix=matrix)) == {"app": "3", "lib": "4"}


def test_a_row_about_a_setting_or_a_symptom_is_not_the_solvers() -> None:
    matrix = rows(row("A", {"app": "*", "setting.bf16": "true"}), row("B", {"app": "*"}, solve=False))
    assert versions(goal(world(CHAIN), ["app"], matrix=matrix)) == {"app": "3", "lib": "4"}


def test_a_row_about_a_card_counts_for_every_card() -> None:
    matrix = rows(row("CARD", {"app": ">=2", "gpu.cc": "<7.5"}))
    both = target(gpus=["sm_90", "sm_70"])
    assert versions(goal(world(CHAIN), ["app"], matrix=matrix, on=both)) == {"app": "1", "lib": "4"}
    assert versions(goal(world(CHAIN), ["app"], matrix=matrix)) == {"app": "3", "lib": "4"}


def test_why_not_names_the_card_and_the_row() -> None:
    matrix = rows(row("CARD", {"app": ">=2", "gpu.cc": "<7.5"}))
    answer = why_not(goal(world(CHAIN), ["app>=2"], matrix=matrix, on=target(gpus=["sm_70"])))
    assert [(cause.kind, cause.text) for cause in answer.causes] == [
        ("request", "app>=2 is asked for"),
        ("target", "the card is sm_70"),
        ("row", "app >=2 with gpu.cc <7.5 does not work: They clash"),
    ]


def test_nothing_forbids_what_can_be_had() -> None:
    assert render(why_not(goal(world(CHAIN), ["app"]))) == "nothing forbids it\n"


def test_causes_are_minimal_and_near() -> None:
    snapshot = world(
        {
            "a": {"1": ["lib<2", "noise"]},
            "b": {"1": ["lib>=2", "noise"]},
            "lib": {"1": [], "2": []},
            "noise": {"1": []},
            "c": {"1": ["noise"]},
        }
    )
    answer = pin(goal(snapshot, ["a", "b", "c"]))
    assert [cause.text for cause in answer.causes] == [
        "a is asked for",
        "b is asked for",
        "a 1 requires lib<2",
        "b 1 requires lib>=2",
    ]
    assert {relaxation.drop: dict(relaxation.gives) for relaxation in answer.relaxations} == {
        "a": {"b": "1", "c": "1"},
        "b": {"a": "1", "c": "1"},
    }


def test_a_pin_says_who_holds_it_back() -> None:
    snapshot = world({"torch": {"1": [], "2": []}, "engine": {"1": ["torch==1"]}})
    pins = {one.name: one for one in pin(goal(snapshot, ["torch", "engine"])).pins}
    assert pins["torch"].because == (
        "asked for",
        "engine 1 requires ==1",
        "not 2: engine 1 requires torch==1",
    )


def test_a_requirement_that_the_facts_do_not_cover_is_said() -> None:
    answer = pin(goal(world({"app": {"1": ["stranger>=2"]}}), ["app"]))
    assert [one.name for one in answer.pins] == ["app"]
    assert answer.gaps == ("app 1 requires stranger, which is not pinned: the package facts do not cover it",)


def test_an_unknown_package_is_not_a_conflict() -> None:
    with pytest.raises(Unavailable, match="nosuch: not among the package facts"):
        pin(goal(world(CHAIN), ["nosuch"]))


@pytest.mark.parametrize("text", ["torch=>2", "./local", "to rch"])
def test_an_unreadable_request_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="request:"):
        goal(world(CHAIN), [text])


def test_where_no_single_change_is_enough_several_are_named_together() -> None:
    snapshot = world(
        {
            "first": {"1": ["base<2"]},
            "second": {"1": ["other<2"]},
            "base": {"1": [], "2": []},
            "other": {"1": [], "2": []},
        }
    )
    answer = pin(goal(snapshot, ["first", "second", "base==2", "other==2"]))
    assert [relaxation.drop for relaxation in answer.relaxations] == [
        "==2 of base and second",
        "==2 of base and ==2 of other",
    ]


def test_what_windows_wheels_of_bitsandbytes_carry_is_not_known_and_forbids_nothing() -> None:
    snapshot, matrix = shipped()
    on = target((3, 12), "windows", ["RTX 3060"], matrix=matrix)
    answer = pin(goal(snapshot, ["torch", "bitsandbytes"], on=on, matrix=matrix))
    assert answer.status == "solved"
