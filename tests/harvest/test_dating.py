"""The releases in which a traceback's lines stand, read from an index; what is stated is never overruled."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from fake_index import FakeFile, FakeIndex, sdist_bytes, wheel_bytes
from packaging.version import Version

from envdoctor.errors import Unavailable
from envdoctor.facts import Facts, Frame
from envdoctor.harvest.dating import Dater, Sight, Stood
from envdoctor.online import NEAR, SOURCE, sights_of, with_releases

FRAMES = (
    Frame("train.py", 3, "<module>", "gizmo.spin()"),
    Frame("/opt/env/lib/python3.11/site-packages/gizmo/core.py", 3, "spin", "raise ValueError('no')"),
)
BODIES = {
    "1.0.0": "def spin():\n    raise ValueError('no')\n",
    "1.1.0": "\ndef spin():\n    raise ValueError('no')\n",
    "1.1.1": "\ndef spin():\n    raise ValueError('no')\n\n\n",
    "1.2.0": "\ndef spin():\n    raise TypeError('no')\n",
}


@pytest.fixture
def dater(index: FakeIndex, tmp_path: Path):
    files = [
        FakeFile(
            f"gizmo-{v}-py3-none-any.whl", wheel_bytes("gizmo", v, members={"gizmo/core.py": b.encode()})
        )
        for v, b in BODIES.items()
    ]
    files.append(
        FakeFile("gizmo-0.9.tar.gz", sdist_bytes("gizmo", "0.9", {"gizmo/core.py": BODIES["1.0.0"]}))
    )
    index.add("gizmo", *files)
    with index.fetcher() as fetcher:
        yield Dater(fetcher, index.url, tmp_path, time.monotonic() + 60)


def dated(dater: Dater, *frames: Frame) -> list[str]:
    return list(dater.releases("gizmo", [sight for _, sight in sights_of(frames or FRAMES)]).releases)


def test_lines_date_the_releases_that_have_them(dater: Dater) -> None:
    assert dated(dater) == ["1.1.0", "1.1.1"]


def test_what_runs_where_it_was_built_may_be_any_commit_around_the_releases_that_have_its_lines(
    dater: Dater,
) -> None:
    built = [Sight("gizmo/core.py", 3, "spin", "raise ValueError('no')", built=True)]
    stood = dater.releases("gizmo", built)
    assert stood.releases == ["1.0.0", "1.1.0", "1.1.1", "1.2.0"]
    assert [stood.has(Version(one)) for one in ("0.9", "1.1.1.dev3+gabc", "1.2.0")] == [False, True, True]
    ((_, sight),) = sights_of([Frame("/src/vllm/vllm/core.py", 3, "spin")])
    assert (sight.path, sight.built) == ("vllm/core.py", True)


def test_a_function_dates_where_no_line_is_quoted(dater: Dater) -> None:
    file = FRAMES[1].file
    assert dated(dater, Frame(file, 2, "spin")) == ["0.9", "1.0.0", "1.1.0", "1.1.1", "1.2.0"]
    assert dated(dater, Frame(file, 1, "spin")) == ["0.9", "1.0.0"]
    assert dated(dater, Frame(file, 2, "turn")) == []


def test_lines_that_stand_in_no_release_are_near_those_that_need_them_least_moved(dater: Dater) -> None:
    changed = [Sight("gizmo/core.py", 4, "spin", "raise ValueError('no')")]
    stood = dater.releases("gizmo", changed)
    assert (stood.near, stood.told) == (True, "1.0.0 to 1.2.0")
    lacking = [*changed, Sight("gizmo/core.py", 3, "spin", "turn()")]
    assert dater.releases("gizmo", lacking).releases == []  # as many lack as stand
    older = [Sight("gizmo/core.py", 1, "spin", "raise ValueError('no')")]
    assert dater.releases("gizmo", older).releases == []  # may be older than what the index has


def test_a_near_range_is_marked_told_why_and_never_held_against_a_stated_version() -> None:
    near = Stood(["1.0.0", "1.2.0"], near=True)
    facts = with_releases(Facts(), "gizmo", near)
    assert facts.environment.distributions["gizmo"].specifier == ">=1.0.0,<=1.2.0"
    assert facts.environment.distributions["gizmo"].source == NEAR
    (note,) = facts.notes
    assert "a commit between releases, or a changed file" in note


def test_what_was_read_is_kept(dater: Dater, index: FakeIndex) -> None:
    first = dated(dater)
    asked = len([path for path in index.paths() if "/files/" in path])
    assert dated(dater) == first
    assert len([path for path in index.paths() if "/files/" in path]) == asked


def test_time_that_is_over_gives_no_half_answer(dater: Dater) -> None:
    late = Dater(dater.fetcher, dater.index, dater.cache, time.monotonic() - 1)
    with pytest.raises(Unavailable, match="time was over"):
        dated(late)


def test_an_inferred_range_is_marked_and_a_stated_version_stays() -> None:
    from envdoctor.facts import Distribution, Environment

    inferred = with_releases(Facts(), "gizmo", Stood(["1.1.0", "1.1.1"])).distribution("gizmo")
    assert inferred is not None
    assert (inferred.version, inferred.specifier, inferred.source) == (None, ">=1.1.0,<=1.1.1", SOURCE)
    stated = Facts(environment=Environment(distributions={"gizmo": Distribution("gizmo", "list", "1.0.0")}))
    after = with_releases(stated, "gizmo", Stood(["1.1.0", "1.1.1"]))
    assert after.distribution("gizmo") == stated.distribution("gizmo")
    assert after.notes == ("gizmo: the traceback's lines are those of 1.1.0 to 1.1.1, and 1.0.0 is stated",)
    assert with_releases(stated, "gizmo", Stood(["1.0.0"])).notes == ()


def test_lines_that_stand_in_the_newest_release_may_stand_in_later_ones() -> None:
    open_ = Stood(["1.1.0", "1.1.1"], on=True)
    inferred = with_releases(Facts(), "gizmo", open_).distribution("gizmo")
    assert (inferred and inferred.specifier, open_.told) == (">=1.1.0", "1.1.0 or later")
    assert [open_.has(Version(one)) for one in ("1.0.0", "1.1.1", "2.0.0")] == [False, True, True]


def test_the_newest_release_is_told_to_be_open(dater: Dater) -> None:
    every = dater.releases("gizmo", [])
    assert (every.on, every.releases[-1]) == (True, "1.2.0")
