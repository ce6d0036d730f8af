"""Any document is drawn in every format: nothing breaks, nothing is lost, nothing acts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.report import Drawn, Format, Look, draw
from envdoctor.report.document import (
    Bar,
    Bars,
    Code,
    Document,
    Fold,
    Row,
    Rows,
    Run,
    Section,
    Span,
    Table,
    Text,
    opened,
    trees,
)
from envdoctor.report.text import cells

WORD = st.sampled_from(["weights", "7.20", "GiB", "显卡", "✗", "a|b", "<b>", "node[001-007]", "", "x" * 30])
TEXT = st.lists(WORD, max_size=12).map(" ".join)
WORDS = st.one_of(TEXT, st.tuples(TEXT, TEXT.map(lambda t: Span(t, "strong"))))
TONES = st.sampled_from(["", "error", "warning", "note", "ok", "dim"])


def tables(columns: int) -> st.SearchStrategy[Table]:
    cells = st.lists(st.tuples(*[WORDS] * columns), max_size=25).map(tuple)
    return st.builds(Table, st.just(("head",) * columns), cells, st.sampled_from([(), (columns - 1,)]))


SPANS = st.tuples(st.floats(0, 100), st.floats(0, 100)).map(sorted)
RUNS = st.lists(st.builds(lambda ends, tone, told: Run(*ends, tone, told), SPANS, TONES, TEXT), max_size=4)
BARS = st.lists(st.builds(Bar, TEXT, RUNS.map(tuple), TEXT), min_size=1, max_size=5).map(tuple)
ROWS = st.lists(st.builds(Row, TEXT, WORDS, TEXT, st.lists(TEXT, max_size=2).map(tuple)), max_size=5).map(
    tuple
)
LEAVES = st.one_of(
    st.builds(Text, WORDS),
    st.builds(Rows, ROWS),
    st.integers(1, 5).flatmap(tables),
    st.builds(Bars, BARS, st.just(100.0), st.one_of(st.none(), st.floats(0, 100))),
    st.builds(Code, st.lists(TEXT, max_size=3).map("\n".join)),
)
BLOCKS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Section, WORDS, st.lists(inner, max_size=3).map(tuple), TONES),
        st.builds(Fold, TEXT, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
DOCUMENTS = st.builds(Document, WORDS, TONES, st.lists(BLOCKS, max_size=4).map(tuple), TEXT)


@given(DOCUMENTS)
@settings(max_examples=30, deadline=None)
def test_every_document_is_drawn(document: Document) -> None:
    for format in get_args(Drawn):
        assert isinstance(draw(document, format), str)
    draw(document, Format.TEXT, Look(40))


@given(TEXT, st.integers(40, 100))
@settings(max_examples=60, deadline=None)
def test_words_stay_within_the_width(words: str, width: int) -> None:
    drawn = draw(Document("t", "", (Text(words), Rows((Row("label", words),)))), Format.TEXT, Look(width))
    assert all(cells(line) <= width for line in drawn.splitlines())


class Nesting(HTMLParser):
    """Raises when a tag that must be closed is not, or in the wrong order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "dt", "dd", "tr", "td", "th", "rect", "line"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in {"rect", "line"}:
            assert self.open.pop() == tag


@given(DOCUMENTS)
@settings(max_examples=30, deadline=None)
def test_html_is_well_nested(document: Document) -> None:
    page = Nesting()
    page.feed(draw(document, Format.HTML))
    assert page.open == []


def test_html_never_parts_a_number_from_its_unit() -> None:
    page = draw(Document("t", "", (Text("needs 23.99 GiB of 24 GiB in 5 minutes"),)), Format.HTML)
    assert "23.99&#160;GiB of 24&#160;GiB in 5 minutes" in page


def test_long_tables_fold_in_html() -> None:
    table = Table(("n",), tuple((str(n),) for n in range(50)), (0,))
    page = draw(Document("t", "", (table,)), Format.HTML)
    assert "<summary>30 more rows</summary>" in page
    assert page.count("<td class=n>") == 50


def test_a_long_label_stands_on_a_line_of_its_own() -> None:
    label = "node[" + ",".join(f"{n:03d}" for n in range(1, 60, 2)) + "]"
    lines = draw(Document("", "", (Rows((Row(label, "one kind"), Row("node002", "other"))),)), Format.TEXT)
    assert lines.splitlines() == [label, "         one kind", "node002  other"]


@pytest.mark.parametrize("count", [3, 5, 6, 20])
def test_only_five_stand_open(count: int) -> None:
    sections = [Section(str(n), ()) for n in range(count)]
    blocks = opened(sections, "finding", unfold=False)
    assert [b for b in blocks if isinstance(b, Section)] == sections[:5]
    folded = [b for b in blocks if isinstance(b, Fold)]
    assert [len(f.blocks) for f in folded] == ([count - 5] if count > 5 else [])
    assert opened(sections, "finding", unfold=True) == sections


@given(st.lists(st.tuples(st.integers(0, 8), st.one_of(st.none(), st.integers(0, 8))), max_size=20))
def test_trees_hold_every_item_once(items: list[tuple[int, int | None]]) -> None:
    def name(item: tuple[int, int | None]) -> str:
        return str(item[0])

    def cause(item: tuple[int, int | None]) -> str | None:
        return None if item[1] is None else str(item[1])

    drawn = trees(items, name, cause, lambda item, inner: Section(name(item), inner))
    assert sorted(_titles(tuple(drawn))) == sorted(name(item) for item in items)


def _titles(sections: tuple[Section, ...]) -> list[str]:
    return [t for s in sections for t in (str(s.title), *_titles(s.blocks))]  # type: ignore[arg-type]


def test_colour_codes_stand_once_a_run_of_words() -> None:
    drawn = draw(Document(Span("three red words", "error"), "", ()), Format.TEXT, Look(colour=True))
    assert re.findall(r"\x1b\[[0-9;]+m", drawn) == ["\x1b[1;31m", "\x1b[0m"]
