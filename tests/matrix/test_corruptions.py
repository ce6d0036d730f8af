"""Rows spoilt at random, of every kind: each is refused with its file and line.

`ENVDOCTOR_CORRUPTIONS` says how many.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pytest

from envdoctor.errors import Unavailable
from envdoctor.fact_files import find_folder, read_files
from envdoctor.matrix.forms import Form
from envdoctor.matrix.kinds import KINDS
from envdoctor.matrix.references import Known, check_references, is_known, known_names
from envdoctor.matrix.sources import (
    SourceRow,
    check_row,
    leaves,
    line_of,
    parse_file,
    parse_sources,
)

FOLDER = Path(find_folder())
COUNT = int(os.environ.get("ENVDOCTOR_CORRUPTIONS", "60"))
BOUNDS = (">=2,,", "=>2", ">=2.x.y", ">>=2", "2>=", ">= ", "<2 3", "~2", ">=2;<3")
BOUNDED = {"bound", "presence", "capability bound", "number bound"}
MISTAKES = ("key", "type", "bound", "package", "symptom", "setting", "capability")
LONGEST_VALUE = 12
"""Lines that a value, or a row with something missing, may take up."""


@cache
def files() -> dict[str, bytes]:
    return read_files(FOLDER)


@cache
def rows() -> tuple[SourceRow, ...]:
    return tuple(parse_sources(files()))


@cache
def known() -> Known:
    return known_names(rows(), FOLDER)


@lru_cache(maxsize=1)
def parsed(name: str, content: bytes) -> tuple[SourceRow, ...]:
    """The rows of a spoilt file, parsed once for who made it and for who judges it."""
    return tuple(parse_file(name, content))


@cache
def sound() -> dict[tuple[str, Any], Any]:
    """The rows as they ship, by file and place."""
    return {(row.file.name, row.place): row.data for row in rows()}


def misspelt(word: str, random_: random.Random) -> str:
    """Return the word with a letter swapped, doubled, lost or replaced."""
    place = random_.randrange(len(word))
    before, letter, after = word[:place], word[place], word[place + 1 :]
    forms = [before + after, before + letter * 2 + after, before + random_.choice("xqz7") + after]
    if after:
        forms.append(before + after[0] + letter + after[1:])
    return next((form for form in random_.sample(forms, len(forms)) if form != word), word + "x")


def spelt_in(row: SourceRow, path: tuple[Any, ...], old: str, new: str) -> Iterator[bytes]:
    """Yield the file with one occurrence of a word of a row replaced, each in turn."""
    lines = row.file.text.split("\n")
    start = line_of(row.file, row.place, path) - 1
    for number in range(start, min(start + LONGEST_VALUE, len(lines))):
        for found in re.finditer(rf"(?<![\w.-]){re.escape(old)}(?![\w-])", lines[number]):
            spoilt = lines[number][: found.start()] + new + lines[number][found.end() :]
            yield "\n".join([*lines[:number], spoilt, *lines[number + 1 :]]).encode()


def says(row: SourceRow, content: bytes, mistake: str, new: str) -> bool:
    """True when it is this very row that now says the new word, and says it where the mistake is meant."""
    try:
        spoilt = next(r for r in parsed(row.file.name, content) if r.place == row.place)
        if mistake == "key":
            return new in spoilt.data
        return any(
            text == new and fits(form, mistake) for _, form, text in leaves(KINDS[row.kind], spoilt.data)
        )
    except (Unavailable, StopIteration, KeyError):
        return False


def fits(form: Form, mistake: str) -> bool:
    return form.name in BOUNDED if mistake == "bound" else form.refers == mistake


def corruptions(
    row: SourceRow, mistake: str, random_: random.Random
) -> Iterator[tuple[tuple[Any, ...], str, str]]:
    """Yield what may be spoilt in a row in this way: where, the word and what it becomes."""
    if mistake == "key":
        own = [
            key for key in row.data if line_of(row.file, row.place, (key,)) >= line_of(row.file, row.place)
        ]
        yield from (((key,), key, misspelt(key, random_)) for key in own)
        return
    for path, form, text in leaves(KINDS[row.kind], row.data):
        if not fits(form, mistake):
            continue
        if mistake == "bound":
            if text[:1] in "<>=!~":
                yield path, text, random_.choice(BOUNDS)
        elif "*" not in text and not is_known(mistake, new := misspelt(text, random_), known()):
            yield path, text, new


def wrong_type(row: SourceRow, random_: random.Random) -> tuple[int, bytes] | None:
    """Give a scalar of the row a table for its value."""
    lines = row.file.text.split("\n")
    scalars = [k for k, v in row.data.items() if isinstance(v, (str, int, float))]
    for key in random_.sample(scalars, len(scalars)):
        number = line_of(row.file, row.place, (key,))
        value = rf'(?<![\w"]){key} = ("(?:[^"\\]|\\.)*"|[\w.+-]+)'
        spoilt = re.sub(value, f"{key} = {{ x = 1 }}", lines[number - 1], count=1)
        if spoilt != lines[number - 1]:
            return number, "\n".join([*lines[: number - 1], spoilt, *lines[number:]]).encode()
    return None


def spoil(seed: int) -> tuple[SourceRow, int, bytes]:
    """Return a row, the line of the mistake and the spoilt text of its file."""
    random_ = random.Random(seed)
    mistake = MISTAKES[seed % len(MISTAKES)]
    kinds = sorted({row.kind for row in rows()})
    kind = kinds[seed // len(MISTAKES) % len(kinds)] if mistake in ("key", "type") else None
    among = [row for row in rows() if kind in (None, row.kind)]
    while True:
        row = random_.choice(among)
        if mistake == "type":
            if typed := wrong_type(row, random_):
                return row, *typed
            continue
        options = list(corruptions(row, mistake, random_))
        if options:
            path, old, new = random_.choice(options)
            for content in spelt_in(row, path, old, new):
                if says(row, content, mistake, new):
                    return row, line_of(row.file, row.place, path), content


def complaint(name: str, content: bytes) -> str:
    """Return what is said of a spoilt file beside the other files; empty when nothing is.

    Rows that stand as they did are right: the folder would not compile else.
    """
    try:
        spoilt = [row for row in parsed(name, content) if row.data != sound().get((name, row.place))]
        for row in spoilt:
            check_row(row)
        check_references(spoilt, known())
    except Unavailable as error:
        return str(error)
    return ""


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_spoilt_row_is_refused_with_file_and_line(seed: int) -> None:
    row, line, content = spoil(seed)
    told = complaint(row.file.name, content)
    match = re.match(rf"{re.escape(row.file.name)}:(\d+): ", told)
    assert match, f"{MISTAKES[seed % len(MISTAKES)]} at {row.file.name}:{line} is taken: {told}"
    assert abs(int(match[1]) - line) <= LONGEST_VALUE, told


def test_a_whole_folder_with_one_mistake_does_not_compile(tmp_path: Path) -> None:
    from envdoctor.matrix.compile import compile_rows

    for name, content in files().items():
        (tmp_path / name).write_bytes(content.replace(b"peft = ", b"pft = "))
    (tmp_path / "releases").symlink_to(FOLDER / "releases")
    with pytest.raises(Unavailable, match=r"\.toml:\d+: [A-Z0-9.-]+: \w+: 'pft' is no package that is known"):
        compile_rows(tmp_path)


def test_words_of_one_letter_are_refused() -> None:
    content = files()["mended.toml"].replace(b'  { text = "', b'  { text = "O" },\n  { text = "', 1)
    assert re.match(r"mended\.toml:\d+: [A-Z0-9.-]+: remedies: no words", complaint("mended.toml", content))
