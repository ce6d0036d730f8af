"""Which class an attribute holds and a call yields, out of annotations."""

from __future__ import annotations

from envdoctor.harvest.held import chosen_of, of_record, read_held
from envdoctor.matrix.interface_records import Record

CODE = b"""
class Inner:
    pass
class Outer:
    inner: Inner | None
    many: list[Inner]
    either: Inner | int
    def made(self) -> "Inner": ...
    def again(self) -> Self: ...
    @classmethod
    def parsed(cls: type[Model], text) -> Model: ...
    @property
    def first(self) -> Inner: ...
class Holder:
    def __init__(self, outer: Outer, other):
        self.outer = outer
        self.inner = outer.inner
        self.own = Inner()
        self.other = other
async def wait() -> Inner: ...
"""


def test_annotations_tell_classes() -> None:
    told = read_held([CODE, None, b"def broken("])
    assert told == {
        "Outer.inner": "Inner",
        "Outer.many": "[Inner]",
        "Outer.made()": "Inner",
        "Outer.again()": "Outer",
        "Outer.parsed()": "Outer",
        "Outer.first": "Inner",
        "Holder.outer": "Outer",
        "Holder.inner": "Inner",
        "Holder.own": "Inner",
        "wait()": "Inner",
    }


def test_what_two_classes_of_one_name_tell_differently_is_told_of_none() -> None:
    assert "Outer.inner" not in read_held([CODE, b"class Outer:\n    inner: Outer\n"])


def test_only_ways_to_what_is_on_record_are_kept() -> None:
    record = Record("x", "x", ["1"], {}, {}, {}, {"Inner": {"a": [[0, 0]]}}, {}, {}, {}, {})
    told = {"Outer.inner": "Inner", "Holder.outer": "Outer", "A.b": "C"}
    assert of_record(told, record) == {"Outer.inner": "Inner", "Holder.outer": "Outer"}


def test_the_newest_release_is_read() -> None:
    assert chosen_of(["1", "2", "3"]) == ["1", "2", "3"]
    assert chosen_of([str(n) for n in range(9)]) == ["2", "4", "6", "8"]
