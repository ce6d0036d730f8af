"""What the parts of the redaction decide at their edges, one example beside the other."""

from __future__ import annotations

import pytest

from envdoctor.bundling import Redactor
from envdoctor.bundling.literals import Literals
from envdoctor.bundling.secret_values import is_assignment, is_continuation


@pytest.mark.parametrize("piece", ["warmupStepsMax=10", "myMaxLrDecay=3e4", "aBcdEfghIjklMno=zz", "lr=3e-4"])
def test_a_line_of_a_name_and_its_value_is_no_rest_of_a_token(piece: str) -> None:
    assert is_assignment(piece)


@pytest.mark.parametrize(
    "piece", ["mKdaWxTbRq=zzz", "kAbCdEfGh=xyzw", "a_b_c_d=10", "Zm9vYmFyMTIzNDU2Nzg5MA=="]
)
def test_the_rest_of_broken_base64_is_no_line_of_its_own(piece: str) -> None:
    assert not is_assignment(piece)


def test_a_word_with_a_colon_begins_a_line_of_its_own() -> None:
    assert is_continuation("a8Kd92xQ", "")
    assert is_continuation("x9Qz7Lw2Ab done", "")
    assert not is_continuation("a8Kd92xQ:", "")
    assert not is_continuation("x9Qz7Lw2Ab: done", "")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("abcdzz", "abcd"),
        ("abcdefg", "abcdefg"),
        ("abcdefzz", "abcdef"),
        ("abcz", "abcz"),
        ("abczzz", "abcz"),
        ("abce", None),
        ("abcdefh", "abcdef"),
    ],
)
def test_of_strings_that_begin_alike_the_longest_that_stands_there_is_found(text, found) -> None:
    sought: Literals[str] = Literals()
    for literal in ("abcz", "abcdefg", "abcd", "abcdef"):
        sought.add(literal, literal)
    assert [one.note for one in sought.find(text)] == ([found] if found else [])


@pytest.mark.parametrize("name", ["key", "token", "pwd"])
def test_short_words_for_secrets_count_at_the_end_of_any_name(name: str) -> None:
    assert "Qx7" not in Redactor().redact(f"my{name}=Qx7wLp2Rk9Ta\n")


def test_the_cells_of_tables_without_spaces_are_joined() -> None:
    rows = "|name|value|\n|hf_token|hf_AbCdEfGhIjKl|\n||MnOpQrStUvWxYz012345|\n"
    assert "AbCdEf" not in Redactor().redact(rows)
    assert "OpQrSt" not in Redactor().redact(rows)


@pytest.mark.parametrize(("number", "stays"), [("12345678901", True), ("123456789012", False)])
def test_a_long_number_after_bearer_is_a_credential(number: str, stays: bool) -> None:
    assert (number in Redactor().redact(f"sent with bearer {number} at night\n")) is stays


def test_a_bucket_is_not_the_service() -> None:
    assert "s3-eu-west-1" in Redactor().redact("https://s3-eu-west-1.amazonaws.com/x\n")
    assert "acme-models" not in Redactor().redact("https://acme-models.s3.amazonaws.com/x\n")
