"""Everything that is read of a text, not only what one test asks for.

`whole_readings.tsv` is the record for the texts of `whole/` and `samples/`: the text's name, the fact, its
value. After a reader changed, `python tests/pastes/test_whole_readings.py` writes it anew, and its diff says
what else is read otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envdoctor.facts.codec import to_json
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste, reader

HERE = Path(__file__).parent
RECORD = HERE / "whole_readings.tsv"
TEXTS = [*sorted((HERE / "whole").iterdir()), *sorted((HERE / "samples").iterdir())]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the paths and values of what is known; of a build it counts that it is for no CUDA."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{place}]")
    elif value not in (None, "", "unknown") or (value is None and ".builds." in path):
        yield path, value


def lines() -> list[str]:
    """Return the record as it would be written today."""
    said = []
    for path in TEXTS:
        facts = to_json(parse_paste(path.read_text(encoding="utf-8"), "", load_matrix().lexicon, path.name))
        said += [f"{path.name}\t{fact}\t{value!r}" for fact, value in leaves(facts)]
    return said


def test_every_text_of_the_record_is_read_as_it_was() -> None:
    assert lines() == RECORD.read_text(encoding="utf-8").splitlines()


def test_no_reader_finds_anything_where_none_of_its_signs_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "SIGNS", dict.fromkeys(reader.SIGNS, ("",)))
    assert lines() == RECORD.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    RECORD.write_text("\n".join(lines()) + "\n", encoding="utf-8")
