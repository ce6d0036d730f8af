"""What small functions of the redaction answer, at both sides of what decides them."""

from __future__ import annotations

import pytest

from envdoctor.bundling import Redactor
from envdoctor.bundling.issue import _open_fence
from envdoctor.bundling.label_values import _value_start, find_below
from envdoctor.bundling.labels import _gap_pattern
from envdoctor.bundling.secret_values import _is_plain, is_path
from envdoctor.bundling.sought import _lower


@pytest.mark.parametrize("text", ["ABC İ KEY", "İİ", "Straße", "ABC", "", "ẞ Token"])
def test_small_letters_stay_in_their_places(text: str) -> None:
    lowered = _lower(text)
    assert len(lowered) == len(text)
    assert all(low in (c, c.lower()) for low, c in zip(lowered, text, strict=True))
    assert "key" in lowered if "KEY" in text else True


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("/data/models/llama", True),
        ("./runs/checkpoint-100/model.safetensors", True),
        ("/data/kQzfRtYbWmLpHxVnJdSgCb", False),
        ("~/kQzfRtYbWmLpHxVnJdSgCb/run", False),
    ],
)
def test_a_path_holds_no_drawn_part(value: str, path: bool) -> None:
    assert is_path(value) is path


@pytest.mark.parametrize(
    ("part", "plain"),
    [("1ab2cd3layers", False), ("ab12cd34", False), ("layer12", True), ("train12x12x12layers", True)],
)
def test_letters_and_digits_that_take_turns_are_drawn(part: str, plain: bool) -> None:
    assert _is_plain(part) is plain


@pytest.mark.parametrize(
    ("text", "fence"),
    [
        ("a\n```text\nb\n", "```"),
        ("a\n```text\nb\n```\nc", ""),
        ("````X\nb\n```\nc", "````"),
        ("```X`\n", "```"),
        ("```Xy\nb", "```"),
        ("``\nb", ""),
    ],
)
def test_the_fence_that_a_cut_text_leaves_open(text: str, fence: str) -> None:
    assert _open_fence(text) == fence


def test_words_of_other_scripts_join_a_label_to_its_value() -> None:
    pattern = _gap_pattern({"is", "是", "ᄀ", "の"})
    for gap in (" is ", "是", "ᄀ", "の", "是: "):
        assert pattern.match(gap)
        assert pattern.match(gap).end() == len(gap), gap  # type: ignore[union-attr]


def test_a_value_begins_behind_a_quote_an_equals_sign_or_a_blank() -> None:
    for text, end, start in (
        ('token="-Ab12', 8, 7),
        ("token=-Ab12", 7, 6),
        ("token -Ab12", 7, 6),
        ("tokenx-Ab12", 7, 7),
    ):
        assert _value_start(text, 5, end) == start, text


def test_the_value_under_a_label_that_heads_its_column() -> None:
    table = "name   token\n----   -----\nmine   kQzfRtYbWmLpHxVnJd\n"
    start = table.index("token")
    found = find_below(table, start, start + 5)
    assert found is not None
    assert table[slice(*found)] == "kQzfRtYbWmLpHxVnJd"
    assert find_below("token", 0, 5) is None
    assert find_below("token\nkQzfRtYbWmLpHxVnJd", 0, 5) is not None
    assert find_below("tokens\nkQzfRtYbWmLpHxVnJd", 0, 5) is None


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("read /home/alice/run.log", "alice"),
        ("user=alice.wonder", "alice.wonder"),
        ("USER: alice.sh", ""),
        ("USER: alice.py", ""),
        ("see https://example.com/home/alice/x", ""),
        ("read /home/conda/work", ""),
    ],
)
def test_the_names_of_accounts(text: str, gone: str) -> None:
    answered = Redactor().redact(text)
    assert (answered == text) is not bool(gone)
    assert not gone or gone not in answered
