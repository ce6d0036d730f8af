"""How a text is looked at before it is judged: strings sought, lines joined, escapes read, cells united."""

from __future__ import annotations

import random

import pytest

from envdoctor.bundling.issue import Section, Step, cut_end, fit
from envdoctor.bundling.literals import Literals
from envdoctor.bundling.sought import Hints, Searched
from envdoctor.bundling.spans import Span, merge
from envdoctor.bundling.trackers import cut_middle
from envdoctor.bundling.unwrapping import apply_edits, strip_escapes
from envdoctor.bundling.views import cells, decoded, joined


def longest_at_each_place(text: str, sought: set[str], width: range) -> list[tuple[int, int]]:
    """Return where strings of such lengths stand, the longest at each place, none inside another."""
    found, start = [], 0
    while start < len(text):
        lengths = [len(one) for one in sought if len(one) in width and text.startswith(one, start)]
        if lengths:
            found.append((start, start + max(lengths)))
        start += max(lengths, default=1)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_strings_are_found_as_by_looking_for_each_at_every_place(seed):
    dice = random.Random(seed)
    words = {"".join(dice.choices("ab", k=dice.randint(1, 12))) for _ in range(12)}
    text = "".join(dice.choices("abc", weights=(5, 5, 1), k=120))
    literals: Literals[str] = Literals()
    for word in (*sorted(words), *words):
        literals.add(word, word)
        literals.add(word, "the first note stands")
    long, short = range(8, 99), range(4, 8)
    found = [(one.start, one.end) for one in literals.find(text)]
    assert found == [*longest_at_each_place(text, words, long), *longest_at_each_place(text, words, short)]
    assert all(text[one.start : one.end] == one.note for one in literals.find(text))


def test_no_string_of_three_characters_is_sought():
    literals: Literals[int] = Literals()
    literals.add("abc", 1)
    literals.add("abcd", 2)
    assert [one.note for one in literals.find("abc abcd")] == [2]


@pytest.mark.parametrize(
    ("hint", "text", "parts"),
    [
        ("key", "a\nthe KEY is\nb", ["the KEY is\n"]),
        ("key", "key and key\nno\nkey", ["key and key\n", "key"]),
        ("key", "x" * 2000 + "key" + "y" * 5000, ["x" * 1024 + "key" + "y" * 4093]),
        ("key", "key" + "y" * 4093 + "key", ["key" + "y" * 4093, "key"]),
        ("ke", "a\nke", ["ke"]),
        ("kez", "a\nkey", []),
        ("user", "<user-1> no", []),
        ("ß", "AßB\nc", ["AßB\n"]),
    ],
)
def test_lines_with_a_hint_are_looked_at_long_ones_in_part(hint, text, parts):
    searched = Searched(text)
    assert [text[start:end] for start, end in searched.lines_with((hint,))] == parts
    assert searched.holds(hint) == bool(parts)
    assert searched.held(Hints([hint, "zzz"])) == ([hint] if parts else [])


def test_words_that_a_token_may_be():
    text = f'{"a" * 24} {"b" * 23} "{"c" * 30}"'
    assert [text[a:b] for a, b in Searched(text).long_words] == ["a" * 24, "c" * 30]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("TOKEN=a1b2c3\nd4e5f6 more\nx", "TOKEN=a1b2c3d4e5f6 more\n"),
        ("first\nTOKEN=a1b2c3\nd4e5f6;\nlast line", "first\nTOKEN=a1b2c3d4e5f6;\n"),
        ("TOKEN=a1b2c3 |\n| d4e5f6 |", "TOKEN=a1b2c3d4e5f6 |"),
        ('k = "a1b2c3"\n    "d4e5f6"', 'k = "a1b2c3d4e5f6"'),
        ("TOKEN=a1b2c3 \\\n  d4e5f6", "TOKEN=a1b2c3d4e5f6"),
        ("[rank0]: T=a1b2c3\n[rank0]: d4e5f6", "[rank0]: T=a1b2c3d4e5f6"),
        ("(EngineCore pid=3) T=a1b2c3\n(EngineCore pid=3) d4e5f6", "(EngineCore pid=3) T=a1b2c3d4e5f6"),
        ("> T=a1b2c3\n> d4e5f6", "> T=a1b2c3d4e5f6"),
        ("plain words\nand others", None),
        ("one line", None),
        ("a1b2c3:\nd4e5f6", None),
        ("a1b2c3\n\n\nd4e5f6", None),
        ("word\na1b2c3d4", "worda1b2c3d4"),
        ("x" * 79 + "\nword", "x" * 79 + "word"),
        ("x" * 78 + "\nword", None),
        ("a1b2c3\nd4e5f6\ng7h8i9", "a1b2c3d4e5f6g7h8i9"),
        ("a1b2c3\nd4e5f6\n\nother:\na9b8c7\nd6e5f4", "a1b2c3d4e5f6\nother:\na9b8c7d6e5f4"),
        ("a1b2c3" + " " * 120 + "\nd4e5f6", "a1b2c3d4e5f6"),
        ("a1b2c3" + " " * 121 + "\nd4e5f6", None),
    ],
)
def test_lines_that_a_token_may_go_on_over_are_joined(text, seen):
    view = joined(text)
    assert (view.text if view else None) == seen


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (r"a \"b\" c", 'a "b" c'),
        (r"{\\\"t\\\": 1}", '{"t": 1}'),
        (r"a\nb\tc", "a\nb\tc"),
        (r"\u0041\x42", "AB"),
        ("a%3Db%253Dc%252525", "a=b=c%"),
        ("&quot;a&amp;quot;&#39;&#x41;&lt;&nbsp;", '"a"\'A< '),
        ("plain\nk%3Dv\nplain", "k=v\n"),
        ("a\nb\\/c\nd%2Fe", "b/c\nd/e"),
        ("100% sure & so", None),
        ("nothing", None),
    ],
)
def test_what_is_spelled_out_is_read_as_characters(text, seen):
    view = decoded(text)
    assert (view.text if view else None) == seen


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("| key | ab |\n|     | cd |", "key | abcd | \n"),
        ("| key | ab |\n|     | cd |\n|     | ef |\n| x | y |", "key | abcdef | \n"),
        ("│ a b │ ab │\n│     │ cd │", "a b | abcd | \n"),
        ("| key | ab |\n| other | cd |", None),
        ("| key | ab |\n|     | cd | x |", None),
        ("| key |\n|     |", None),
        ("a | b", None),
        ("none", None),
    ],
)
def test_cells_that_go_on_below_are_united(text, seen):
    view = cells(text)
    assert (view.text if view else None) == seen


def test_a_view_leads_back_to_where_each_part_lay():
    text = "T=a1b2c3\nd4e5f6 %41"
    view = joined(text)
    assert [text[a:b] for a, b in view.pieces(2, 14)] == ["a1b2c3", "d4e5f6"]
    assert [text[a:b] for a, b in view.pieces(3, 7)] == ["1b2c"]
    assert (view.is_split(7, 9), view.is_split(8, 9), view.is_split(2, 8)) == (True, False, False)
    spelled = decoded("x %41%42 y")
    assert spelled.pieces(2, 3) == [(2, 5)]
    assert spelled.pieces(2, 4) == [(2, 8)]
    assert spelled.pieces(0, 6) == [(0, 10)]


@pytest.mark.parametrize(
    ("spans", "merged"),
    [
        ([], []),
        ([(0, 3, "a"), (3, 5, "b")], [(0, 3, "a"), (3, 5, "b")]),
        ([(4, 6, "b"), (0, 3, "a")], [(0, 3, "a"), (4, 6, "b")]),
        ([(0, 3, "a"), (2, 9, "b")], [(0, 9, "b")]),
        ([(0, 7, "a"), (5, 9, "b")], [(0, 9, "a")]),
        ([(0, 9, "a"), (2, 4, "b")], [(0, 9, "a")]),
        ([(0, 9, "a"), (0, 9, "b")], [(0, 9, "a")]),
    ],
)
def test_spans_that_overlap_are_one_of_the_longer_ones_kind(spans, merged):
    assert [one[:3] for one in merge(Span(*span) for span in spans)] == merged


def test_of_equal_spans_the_one_that_knows_its_value_stands():
    assert merge([Span(0, 4, "a"), Span(0, 4, "b", "v")]) == [Span(0, 4, "b", "v")]
    assert merge([Span(0, 4, "a"), Span(0, 3, "b", "v")]) == [Span(0, 4, "a")]


def test_of_edits_that_overlap_the_first_stands():
    assert apply_edits("abcdef", [(4, 5, "Y"), (1, 3, "X"), (2, 4, "Z")]) == "aXdYf"
    assert apply_edits("abc", [(1, 1, "-"), (1, 2, "B")]) == "a-Bc"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        (r"\x1b[31mred\033[0m\u001b[1m\e[2m^[[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("to\u200bken so\u00adft", "token soft"),
        ("a\u200db", "ab"),
        ("क\u200dष", "क\u200dष"),
        ("[31m", "[31m"),
    ],
)
def test_colours_and_invisible_joints_are_taken_out(text, plain):
    assert strip_escapes(text) == plain


@pytest.mark.parametrize(
    ("length", "head", "tail"), [(900, 900, 0), (901, 297, 595), (5000, 297, 599), (1200, 297, 597)]
)
def test_of_a_long_text_a_third_is_kept_before_and_two_after(length, head, tail):
    text = "".join(f"{n:08d}\n" for n in range(1000))[:length]
    first, _, rest = cut_middle(text, 900).partition("\n[… ")
    left_out, _, last = rest.partition(" characters left out …]\n")
    assert (len(first) + (1 if tail else 0), len(last)) == (head, tail)
    assert not tail or int(left_out.replace(",", "")) == length - head - tail


def test_a_report_is_cut_after_a_line_and_closed():
    body = "<details>\n```text\n" + "line\n" * 400
    cut = cut_end(body, 600)
    note = "\n*Cut here: the whole is in the archive.*\n"
    assert cut == "<details>\n```text\n" + "line\n" * 36 + "```\n\n</details>\n" + note
    assert cut_end("short\n", 6) == "short\n"
    assert cut_end("😀" * 500, 900) == note
    assert cut_end("a\n" * 300, 599) == "a\n" * 99 + note
    assert cut_end("````\n```\n" + "a\n" * 300, 500) == "````\n```\n" + "a\n" * 45 + "````\n" + note


def test_what_matters_least_is_shortened_first_and_no_more_than_needed():
    sections = [
        Section("a" * 100, (Step(50, "a" * 10), Step(90, ""))),
        Section("b" * 100, (Step(20, "b" * 60), Step(70, "b" * 20))),
        Section("c" * 100, (Step(10, "c" * 200), Step(60, "c"))),
    ]
    lengths = [
        [text.count(letter) for letter in "abc"] for text in (fit(sections, n) for n in (303, 302, 262))
    ]
    assert lengths == [[100, 100, 100], [100, 60, 100], [10, 60, 100]]
    shorter = [[fit(sections, n).count(letter) for letter in "abc"] for n in (173, 172, 73, 33, 31)]
    assert shorter == [[10, 60, 100], [10, 60, 1], [10, 20, 1], [0, 20, 1], [0, 20, 1]]
