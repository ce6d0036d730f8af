"""Packed records: what is asked of them is what was packed, and other bytes are refused."""

from __future__ import annotations

import pytest

from envdoctor.matrix.late_tables import holding, pack_tables, read_tables

RECORD = {
    "library": "gears",
    "versions": ["1.0", "2.0"],
    "modules": {"gears": [[0, 1]], "gears.new": [[1, 1]]},
    "names": {"gears": {"Gear": [[0, 1]], "grind": [[0, 0]]}, "gears.new": {"grind": [[1, 1]]}},
    "passed": {},
}


def test_a_record_is_read_as_it_was_packed() -> None:
    read = read_tables(pack_tables(RECORD))
    assert read == RECORD
    assert list(read["names"]) == ["gears", "gears.new"]
    assert "gears.old" not in read["names"]
    assert len(read["modules"]) == 2


def test_the_same_record_has_the_same_bytes_whatever_its_order() -> None:
    turned = {name: RECORD[name] for name in reversed(RECORD)}
    assert pack_tables(turned) == pack_tables(RECORD)


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("grind", {"gears": [[0, 0]], "gears.new": [[1, 1]]}),
        ("Gear", {"gears": [[0, 1]]}),
        ("ears", {}),
    ],
)
def test_the_parts_that_hold_a_key_are_found(key: str, told: dict[str, object]) -> None:
    assert holding(read_tables(pack_tables(RECORD))["names"], key) == told
    assert holding(RECORD["names"], key) == told  # type: ignore[arg-type]


@pytest.mark.parametrize("other", [b"", b"\x01", b"\x02\x00\x00\x00{}"])
def test_other_bytes_are_refused(other: bytes) -> None:
    with pytest.raises(ValueError):
        read_tables(other)
