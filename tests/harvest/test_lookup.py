"""`pin` on packages that the shipped facts do not cover: looked up at once, kept, and never guessed."""

from __future__ import annotations

import time

import pytest
from fake_index import FakeIndex, Fault

from envdoctor.solve import pinning


def test_an_unknown_package_and_what_it_requires_are_read(index: FakeIndex, pin) -> None:
    index.add_wheel("unheard-of", "1.0", "numpy<2", "unheard-base>=1")
    index.add_wheel("unheard-base", "1.5", 'einops; python_version < "3.12"')
    answer = pin("unheard-of", "numpy")
    assert answer.code == 0
    assert (answer.pins["unheard-of"], answer.pins["unheard-base"]) == ("1.0", "1.5")
    assert answer.pins["numpy"].startswith("1.")
    assert "einops" in answer.pins


def test_doubts_are_weighed_once_all_that_the_answer_needs_was_looked_up(
    index: FakeIndex, pin, monkeypatch
) -> None:
    """They take many times as long as the answer itself."""
    weighed = []
    told = pinning.solve_without_doubts
    monkeypatch.setattr(pinning, "solve_without_doubts", lambda *of: weighed.append(of) or told(*of))
    index.add_wheel("unheard-of", "1.0", "unheard-base>=1")
    index.add_wheel("unheard-base", "1.5", "unheard-root")
    index.add_wheel("unheard-root", "2.0")
    assert pin("unheard-of").pins == {"unheard-of": "1.0", "unheard-base": "1.5", "unheard-root": "2.0"}
    assert len(weighed) == 1


def test_only_the_newest_that_the_request_admits_are_read(index: FakeIndex, pin) -> None:
    for minor in range(30):
        index.add_wheel("unheard-of", f"1.{minor}")
    assert pin("unheard-of<1.20").pins["unheard-of"] == "1.19"
    assert len([path for path in index.paths() if path.startswith("/files/")]) <= 12


def test_an_old_request_of_a_kept_package_reads_on(index: FakeIndex, pin) -> None:
    for minor in range(30):
        index.add_wheel("unheard-of", f"1.{minor}")
    assert pin("unheard-of").pins["unheard-of"] == "1.29"
    assert pin("unheard-of==1.3").pins["unheard-of"] == "1.3"


def test_where_the_newest_are_in_the_way_older_ones_are_read(index: FakeIndex, pin) -> None:
    for minor in range(30):
        index.add_wheel("unheard-of", f"1.{minor}", f"unheard-base=={minor}")
        index.add_wheel("unheard-base", str(minor))
    index.add_wheel("unheard-user", "1.0", "unheard-base==11")
    answer = pin("unheard-of", "unheard-user")
    assert (answer.code, answer.pins["unheard-of"]) == (0, "1.11")


def test_what_still_stands_in_the_way_is_read_whole(
    index: FakeIndex, pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envdoctor.solve.coverage.FURTHER", (2, 100))
    for minor in range(20):
        index.add_wheel("unheard-of", f"1.{minor}", f"unheard-base=={minor}")
        index.add_wheel("unheard-base", str(minor))
    index.add_wheel("unheard-user", "1.0", "unheard-base==2")
    answer = pin("unheard-of", "unheard-user")
    assert (answer.code, answer.pins["unheard-of"]) == (0, "1.2")


def test_what_was_read_for_another_question_keeps_no_newer_release_back(index: FakeIndex, pin) -> None:
    for minor in range(20):
        index.add_wheel("unheard-of", f"1.{minor}", requires_python=">=3.13" if minor > 9 else ">=3.8")
    assert pin("unheard-of==1.3").pins["unheard-of"] == "1.3"
    assert pin("unheard-of").pins["unheard-of"] == "1.9"


def test_of_an_unread_package_is_read_what_the_release_asked_for_wants(
    index: FakeIndex, pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envdoctor.harvest.lookup.MOST_SPECIFIERS", 2)
    for minor in range(20):
        index.add_wheel("unheard-of", f"1.{minor}", f"unheard-base=={minor}")
        index.add_wheel("unheard-base", str(minor))
    pin("unheard-of")
    assert pin("unheard-of==1.9").pins["unheard-base"] == "9"


def test_what_the_facts_list_unread_is_read_before_an_older_release_is_taken(index: FakeIndex, pin) -> None:
    """The shipped facts have read the requirements of decorator 5 alone."""
    index.add_wheel("unheard-of", "1.0")
    index.add_wheel("unheard-of", "2.0", "decorator<5")
    index.add_wheel("decorator", "4.4.2")
    answer = pin("unheard-of")
    assert (answer.pins["unheard-of"], answer.pins["decorator"]) == ("2.0", "4.4.2")


def test_what_was_read_today_is_not_asked_for_again_and_serves_offline(index: FakeIndex, pin) -> None:
    index.add_wheel("unheard-of", "1.0")
    pin("unheard-of")
    index.requests.clear()
    assert pin("unheard-of").code == 0
    assert pin("unheard-of", "--offline").code == 0
    assert index.requests == []


def monthly(index: FakeIndex, name: str, months: int) -> None:
    """A release a month from January 2024 on: 1.1 requires unheard-base 1, 1.2 requires unheard-base 2, …"""
    for month in range(months):
        day = f"{2024 + month // 12}-{month % 12 + 1:02}-01T00:00:00Z"
        index.add_wheel(name, f"1.{month + 1}", f"unheard-base=={month + 1}", uploaded=day)
        index.add_wheel("unheard-base", str(month + 1), uploaded=day)


@pytest.mark.parametrize(
    ("day", "version"), [("2024-03-15", "1.3"), ("2024-02-01", "1.2"), ("2025-12-31", "1.24")]
)
def test_as_of_a_day_the_newest_of_that_day_are_read(index: FakeIndex, pin, day: str, version: str) -> None:
    monthly(index, "unheard-of", 30)
    answer = pin("unheard-of", "--exclude-newer", day)
    assert (answer.code, answer.pins["unheard-of"]) == (0, version)
    assert answer.pins["unheard-base"] == version.removeprefix("1.")
    assert not [path for path in index.paths() if "1.25-" in path or "1.30-" in path]


def test_what_was_kept_today_is_read_on_for_another_day(index: FakeIndex, pin) -> None:
    monthly(index, "unheard-of", 30)
    assert pin("unheard-of").pins["unheard-of"] == "1.30"
    assert pin("unheard-of", "--exclude-newer", "2024-03-15").pins["unheard-of"] == "1.3"


def test_what_came_out_later_alone_is_no_release_of_that_day(index: FakeIndex, pin) -> None:
    monthly(index, "unheard-of", 3)
    answer = pin("unheard-of", "--exclude-newer", "2023-06-01")
    assert answer.code == 1
    assert "unheard-of" in answer.told["conflict"]["causes"][0]["text"]


def test_an_index_without_days_leaves_nothing_out_and_says_so(index: FakeIndex, pin) -> None:
    index.add_wheel("unheard-of", "1.0", uploaded=None)
    answer = pin("unheard-of", "--exclude-newer", "2024-01-01")
    assert answer.pins["unheard-of"] == "1.0"
    assert any("does not tell when" in note for note in answer.told["notes"])


def test_what_the_index_lacks_is_carried_and_the_rest_is_solved(index: FakeIndex, pin) -> None:
    answer = pin("einops", "nowhere-to-be-found")
    assert answer.code == 3
    assert "einops" in answer.pins
    assert answer.told["carried"][0]["why"] == "the index has no such package"


def test_offline_it_is_carried_unjudged(index: FakeIndex, pin) -> None:
    index.add_wheel("unheard-of", "1.0")
    answer = pin("einops", "unheard-of", "--offline")
    assert answer.code == 3
    assert index.requests == []
    assert "no network may be used" in answer.told["carried"][0]["why"]


def test_a_server_that_fails_costs_only_what_it_holds(index: FakeIndex, pin) -> None:
    index.faults["/simple/unheard-of/"] = Fault(status=503)
    answer = pin("einops", "unheard-of")
    assert answer.code == 3
    assert "einops" in answer.pins


def test_a_release_whose_requirements_cannot_be_read_is_no_conflict(index: FakeIndex, pin) -> None:
    file = index.add_wheel("unheard-of", "1.0")
    file.content = b"rubbish"
    answer = pin("einops", "unheard-of")
    assert answer.code == 3
    assert answer.told["status"] == "solved"
    assert "not known" in answer.told["carried"][0]["why"]


def test_a_limit_of_a_looked_up_package_is_a_cause(index: FakeIndex, pin) -> None:
    index.add_wheel("unheard-of", "1.0", "transformers<4.20")
    answer = pin("unheard-of", "transformers>=5")
    assert answer.code == 1
    texts = [cause["text"] for cause in answer.told["conflict"]["causes"]]
    assert "unheard-of 1.0 requires transformers<4.20" in texts


@pytest.mark.slow
def test_twenty_unknown_packages_are_a_matter_of_seconds(index: FakeIndex, pin, monkeypatch) -> None:
    """Bounded, not measured: `benchmarks/lookups.py` measures."""
    answer_at_once = index.answer
    monkeypatch.setattr(index, "answer", lambda path: (time.sleep(0.02), answer_at_once(path))[1])
    for number in range(20):
        for minor in range(8):
            index.add_wheel(f"unheard-{number}", f"1.{minor}", "numpy")
    assert pin(*(f"unheard-{number}" for number in range(20))).code == 0


def test_a_covered_release_whose_requirements_were_not_read_is_read_now(index: FakeIndex, pin) -> None:
    index.add_wheel("decorator", "4.4.2")
    index.add_wheel("unheard-of", "1.0", "decorator<5,>=4.0.2")
    answer = pin("unheard-of", "einops")
    assert answer.code == 0
    assert (answer.pins["decorator"], "einops" in answer.pins) == ("4.4.2", True)
