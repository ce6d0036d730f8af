"""Which release has which key: read from classes, kept as ranges, asked by version."""

from __future__ import annotations

import pytest

from envdoctor.harvest.config_fields import FRAMEWORKS, encode_fields, fields_of
from envdoctor.matrix import load_matrix, tables
from envdoctor.profile.keys import KeyFacts, Names, key_facts
from envdoctor.profile.workload import Stack

SOURCE = '''
BATCH = "train_batch_size"
HELP = "two words"

class SFTConfig(Base):
    """Settings."""
    max_length: int | None = field(default=1024)
    _hidden: int = 0
    fsdp_config: dict = Field(alias="fsdp")

    def method(self): ...

class Other:
    unrelated: int = 1
'''


def test_the_keys_of_the_wanted_classes_and_their_aliases() -> None:
    assert set(fields_of(SOURCE, ("SFT*",))) == {"max_length", "fsdp_config", "fsdp"}


def test_constants_name_keys_only_where_asked() -> None:
    assert "train_batch_size" in set(fields_of(SOURCE, ("*", "CONFIG_KEYS")))
    assert "two words" not in set(fields_of(SOURCE, ("*", "CONFIG_KEYS")))


def test_what_is_no_python_has_no_keys() -> None:
    assert list(fields_of("class {", ("*",))) == []


def test_ranges_close_and_open_again() -> None:
    encoded = encode_fields({"1.10": {"a"}, "1.2": {"a", "b"}, "1.9": {"b"}})
    assert encoded["versions"] == ["1.2", "1.9", "1.10"]
    assert encoded["fields"] == {"a": [[0, 0], [2, 2]], "b": [[0, 1]]}


def test_a_version_between_two_that_were_read_is_the_older_one() -> None:
    facts = KeyFacts("x", ("1.0", "2.0", "3.0"), {"old": [[0, 1]], "new": [[2, 2]]})
    assert facts.has("old", "2.5") is True
    assert facts.has("old", "3.1") is False
    assert facts.has("new") is True
    assert facts.has("old", "0.1") is None
    assert facts.span("old") == ("1.0", "3.0")
    assert facts.span("new") == ("3.0", None)
    assert facts.span("never") is None


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
        assert row.native in facts.fields, row.id
        assert row.deprecated or facts.has(row.native) is False, row.id
        assert not row.to or names.has(row.framework, row.to), row.id
