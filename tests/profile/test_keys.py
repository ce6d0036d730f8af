"""Which release has which key: read from classes, kept as ranges, asked by version."""

from __future__ import annotations

import pytest
from config_fields import Release, encode_fields
from frameworks import FRAMEWORKS
from settings_classes import Keys

from envdoctor.matrix import load_matrix, tables
from envdoctor.profile.keys import KeyFacts, Names, key_facts
from envdoctor.target.stack import Stack


def test_ranges_close_and_open_again() -> None:
    read = {"1.10": ("a",), "1.2": ("a", "b"), "1.9": ("b",)}
    encoded = encode_fields({version: Release(Keys(frozenset(names))) for version, names in read.items()})
    assert encoded["versions"] == ["1.2", "1.9", "1.10"]
    assert encoded["fields"] == {"a": [[0, 0], [2, 2]], "b": [[0, 1]]}


def test_a_release_that_was_not_read_has_no_answer() -> None:
    facts = KeyFacts("x", ("1.0", "2.0", "3.0"), {"old": [[0, 1]], "new": [[2, 2]]})
    assert facts.has("old", "2.0.0+cu128") is True
    assert facts.has("old", "3.0") is False
    assert facts.has("new") is True, "no version told: the newest"
    for version in ("2.5", "3.1", "0.1", "3.0.dev0", "nonsense"):
        assert facts.has("old", version) is None
    assert facts.nearest("2.5") == "2.0"
    assert facts.nearest("0.1") is None
    assert facts.span("old") == ("1.0", "3.0")
    assert facts.span("new") == ("3.0", None)
    assert facts.span("never") is None


def test_a_section_is_known_where_its_keys_are() -> None:
    facts = KeyFacts("x", ("1.0", "2.0"), {"data": [[0, 1]], "data.path": [[1, 1]]}, {"other:Base": [[0, 0]]})
    assert not facts.knows_section("data", "1.0")
    assert facts.knows_section("data", "2.0")
    assert facts.may_take_more("1.0")
    assert not facts.may_take_more("2.0")
    assert facts.may_take_more("1.5"), "a release that was not read may take anything"


@pytest.mark.parametrize(
    ("framework", "key", "version", "answer"),
    [
        ("transformers", "warmup_ratio", "5.14.1", True),
        ("transformers", "warmup_ratio", "5.23.0", False),
        ("transformers", "activation_checkpointing", "5.22.0", False),
        ("transformers", "activation_checkpointing", "5.23.0", True),
        ("trl", "max_seq_length", "0.19.1", True),
        ("trl", "max_seq_length", "0.20.0", False),
        ("ms-swift", "train_type", "3.12.6", True),
        ("ms-swift", "tuner_type", "4.6.0", True),
        ("vllm", "swap_space", "0.17.1", True),
        ("vllm", "swap_space", "0.18.0", False),
    ],
)
def test_keys_that_moved(framework: str, key: str, version: str, answer: bool) -> None:
    facts = key_facts(load_matrix(), framework)
    assert facts is not None
    assert facts.has(key, version) is answer


@pytest.mark.parametrize("framework", [framework.name for framework in FRAMEWORKS])
def test_every_framework_was_read(framework: str) -> None:
    facts = key_facts(load_matrix(), framework)
    assert facts is not None
    assert len(facts.versions) >= 5 and len(facts.fields) >= 90  # noqa: PT018


def test_an_inherited_key_is_found_in_the_release_it_is_inherited_from() -> None:
    new = Names(load_matrix(), Stack({"transformers": "5.23.0", "trl": "1.16.0"}))
    old = Names(load_matrix(), Stack({"transformers": "4.57.0", "trl": "0.24.0"}))
    names = ("activation_checkpointing", "gradient_checkpointing")
    assert new.pick("trl", *names) == "activation_checkpointing"
    assert old.pick("trl", *names) == "gradient_checkpointing"
    assert Names(load_matrix(), Stack()).has("trl", "per_device_train_batch_size")


def test_every_renamed_key_is_gone_and_its_successor_is_there() -> None:
    matrix = load_matrix()
    names = Names(matrix, Stack())
    for row in matrix.rows(tables.RenamedRow):
        facts = key_facts(matrix, row.framework)
        assert facts is not None
        native = row.native
        nested = [key for key in facts.fields if key.endswith(f".{native}")]
        keys = [native] if native in facts.fields else nested
        assert keys, row.id
        assert row.deprecated or not any(facts.has(key) for key in keys), row.id
        assert not row.to or names.has(row.framework, row.to), row.id
