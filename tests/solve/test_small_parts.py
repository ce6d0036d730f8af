"""What small functions of the solver answer, at both sides of what decides them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from envdoctor.solve.documents import asked_extras
from envdoctor.solve.problem import needs_of
from envdoctor.solve.requests import Carried


def test_a_line_that_is_only_carried_along_shows_no_credentials() -> None:
    line = Carried("git+https://me:secret@example.com/a.git", "reqs.txt:3", "an address", True)
    assert line.as_json() == {
        "text": "git+https://example.com/a.git",
        "source": "reqs.txt:3",
        "why": "an address",
        "judged": True,
    }


@pytest.mark.parametrize(
    ("demands", "needs"),
    [
        ([("a", 0b110, ()), ("b", 0b1, ("x",))], {"a": (0b110, ()), "b": (0b1, ("x",))}),
        ([("a", 0b110, ("x",)), ("a", 0b011, ("y",))], {"a": (0b010, ("x", "y"))}),
        ([("a", 0b110, ()), ("a", 0b001, ())], {"a": (0, ())}),
    ],
)
def test_two_wishes_for_one_package_leave_what_both_take(
    demands: list[tuple[str, int, tuple[str, ...]]], needs: dict[str, tuple[int, tuple[str, ...]]]
) -> None:
    asked = [SimpleNamespace(name=n, mask=m, extras=e, limit=False) for n, m, e in demands]
    limit = SimpleNamespace(name="a", mask=0, extras=(), limit=True)
    assert needs_of([*asked, limit]) == needs  # type: ignore[list-item]


def test_the_extras_that_were_asked_for() -> None:
    answer = SimpleNamespace(asked=("trl[vllm]>=0.15", "torch", "sglang[srt,all]"))
    assert asked_extras(answer) == {"trl": ("vllm",), "sglang": ("all", "srt")}  # type: ignore[arg-type]
