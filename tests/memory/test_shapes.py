"""Shapes: what a config.json says, and what is wrong with it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from model_rows import main as model_rows

from envdoctor.errors import InputError, Unavailable
from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import find_shape, hub, parse_shape, read_shape
from envdoctor.memory.catalogue import catalogue_name, hub_config, hub_id
from envdoctor.memory.layout import active_parameters, parameters

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


ROWS = load_matrix().rows(tables.ModelRow)


@pytest.mark.parametrize("row", [row for row in ROWS if row.parameters_b], ids=lambda row: row.name)
def test_a_catalogued_shape_has_its_published_number_of_parameters(row: tables.ModelRow) -> None:
    count = parameters(parse_shape(row.config, row.name))
    assert count / 1e9 == pytest.approx(row.parameters_b, rel=0.007)


def test_a_generated_shape_is_of_the_size_that_its_name_tells() -> None:
    told = 0
    for row in (row for row in ROWS if row.hub):
        shape = parse_shape(row.config, row.name)
        size = re.search(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)b(?![a-z0-9])", row.name)
        if shape.known and size:
            told += 1
            # names round: Falcon3-1B has 1.67 billion
            assert 0.9 < parameters(shape) / 1e9 / float(size[1]) < 1.7, row.name
    assert told > 80


def test_the_catalogue_is_large_and_its_names_are_their_own() -> None:
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names)) >= 300
    assert all(catalogue_name(name) == name for name in names)


@pytest.mark.parametrize(
    ("hub", "name"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("meta-llama/Llama-2-13b-chat-hf", "llama-2-13b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b"),
        ("google/gemma-2-2b-it", "gemma-2-2b"),
    ],
)
def test_a_hub_name_finds_its_catalogue_name(hub: str, name: str) -> None:
    assert catalogue_name(hub) == name


def test_experts_count_by_total_and_by_active_parameters() -> None:
    row = next(row for row in load_matrix().rows(tables.ModelRow) if row.name == "mixtral-8x7b")
    shape = parse_shape(row.config, "x")
    assert active_parameters(shape) / 1e9 == pytest.approx(12.9, rel=0.01)


def test_an_unknown_architecture_is_said_to_be_uncertain() -> None:
    shape = parse_shape({**LLAMA, "model_type": "novelty"}, "x")
    assert "novelty" in shape.uncertain


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": None}, "hidden_size: missing"),
        ({"hidden_size": -1}, "hidden_size: -1 is no size"),
        ({"vocab_size": "many"}, "vocab_size: 'many' is no size"),
        ({"num_key_value_heads": 5}, "5 does not divide 32 heads"),
        ({"model_type": None}, "model_type: missing"),
    ],
)
def test_a_bad_config_is_told_in_one_line(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, **change}))
    with pytest.raises(InputError, match=message) as caught:
        read_shape(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00", '"x"'])
def test_a_file_that_is_no_config_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match=r"config\.json"):
        read_shape(tmp_path)


def test_a_vision_model_is_taken_by_its_text_part() -> None:
    assert parse_shape({"model_type": "mllama", "text_config": LLAMA}, "x").layers == 32


@pytest.mark.parametrize(
    ("name", "wanted", "stored"),
    [
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b", ""),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "llama-3.1-8b", "nf4"),
        ("unsloth/Qwen2.5-7B-Instruct-unsloth-bnb-4bit", "qwen2.5-7b", "nf4"),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "qwen2.5-7b", "awq"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "qwen2.5-7b", "gptq"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "qwen2.5-7b", "int8"),
        ("Qwen/Qwen3-8B-FP8", "qwen3-8b", "fp8"),
        ("qwen2.5:7b", "qwen2.5-7b", ""),
        ("Qwen2.5 7B Instruct", "qwen2.5-7b", ""),
        ("google/gemma-2-2b-it", "gemma-2-2b", ""),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek-v3.1", "fp8"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-r1", "fp8"),
        ("Qwen/Qwen3-4B-Instruct-2507", "qwen3-4b", ""),
        ("internlm/internlm2_5-7b-chat", "internlm2.5-7b", ""),
        ("nvidia/Kimi-K2.6-NVFP4", "kimi-k2.6", "nvfp4"),
        ("01-ai/Yi-34B-Chat-4bits", "yi-34b", ""),
        ("zai-org/GLM-4.5-Air-FP8", "glm-4.5-air", "fp8"),
    ],
)
def test_names_resolve_as_people_write_them(name: str, wanted: str, stored: str) -> None:
    shape, plain = find_shape(name), find_shape(wanted)
    assert (shape.hidden, shape.layers, shape.vocab) == (plain.hidden, plain.layers, plain.vocab)
    assert shape.stored == stored


@pytest.mark.parametrize(
    ("name", "akin"),
    [
        ("NousResearch/Hermes-3-Llama-3.1-8B", "llama-3.1-8b"),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "qwen3-8b"),
        ("someone/Qwen3-8B-Base-Medical", "qwen3-8b"),
    ],
)
def test_a_tuned_model_is_taken_for_what_it_is_named_after_and_said_so(
    name: str, akin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    shape = find_shape(name)
    assert shape.hidden == find_shape(akin).hidden
    assert f"is taken for {akin} by its name" in shape.uncertain


@pytest.mark.parametrize(
    "name", ["llava-hf/llava-v1.6-mistral-7b-hf", "hfl/chinese-llama-2-7b", "x/Qwen3-8B-Eagle3"]
)
def test_a_model_with_other_parts_is_not_taken_for_what_it_is_named_after(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(Unavailable, match=r"a config\.json will do"):
        find_shape(name)


@pytest.mark.parametrize(
    ("place", "variables", "there"),
    [
        ("a", {"HF_HUB_CACHE": "a"}, True),
        ("a/hub", {"HF_HOME": "a"}, True),
        (".cache/huggingface/hub", {}, True),
        (".cache/huggingface/hub", {"HF_HUB_CACHE": "", "HF_HOME": ""}, True),
        ("a", {"HF_HOME": "a"}, False),
        ("a/hub", {"HF_HUB_CACHE": "b", "HF_HOME": "a"}, False),
    ],
)
def test_a_config_is_taken_from_the_hubs_cache(
    place: str, variables: dict[str, str], there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, text in enumerate(("{", "[]", json.dumps(LLAMA), "{}")):  # the first are cut short
        folder = tmp_path / place / "models--our--model" / "snapshots" / str(number)
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(text)
    for name in ("HF_HUB_CACHE", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)
    told = {name: str(tmp_path / value) if value else "" for name, value in variables.items()}
    for name, value in {**told, "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}.items():
        monkeypatch.setenv(name, value)
    assert hub_config("our/model") == (LLAMA if there else None)
    assert hub_config("our/other") is None


def test_a_config_that_is_not_cached_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(hub, "fetch_config", lambda model: {"fetched": model})
    assert hub_config("our/other") is None
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert hub_config("our/other") == {"fetched": "our/other"}
    for name in ("our", "our/model/x", "our/mo del"):
        with pytest.raises(InputError, match=f"--model {name}: no Hub id"):
            hub_config(name)


def test_the_hubs_id_is_as_the_row_tells() -> None:
    for row in ROWS[::40]:
        page = re.match(r"https://huggingface\.co/([^/]+/[^/]+)/", row.source)
        assert hub_id(row.name) == (page[1] if page else row.hub or row.name)
    assert sum(bool(row.hub) for row in ROWS) > 0
    assert hub_id("our/model") == "our/model"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        *(("meta-llama-3.1-8b", True), ("Yi-34B-Chat-4bits", True), ("mistral-7b-v0.3", True)),
        *(("./qwen2.5-7b-x", False), ("folder/a/qwen3-8b-medical", False), ("x/qwen3-8b-embed", False)),
        *(("qwen3-8b-7b-mix", False), ("qwen3-8b-mine", True), ("mine.json", False), ("x/qwen3-9b", False)),
    ],
)
def test_what_a_name_stands_for_is_told_by_its_size(
    name: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    try:
        found = find_shape(name).name == name
    except (InputError, Unavailable):
        found = False
    assert found is known


def test_rows_are_written_from_configs_with_what_decides_the_shape(tmp_path: Path) -> None:
    folder, target = tmp_path / "configs", tmp_path / "rows.toml"
    folder.mkdir()
    told = {**LLAMA, "architectures": ["X"], "sliding_window": None, "rope_parameters": {"rope_theta": 1.0}}
    (folder / "Ours--Novel-9B-Instruct_config.json").write_text(json.dumps(told))
    (folder / "Qwen--Qwen2.5-7B_config.json").write_text(json.dumps(LLAMA))  # which models.toml has
    assert model_rows([str(target), f"{folder}=https://example.com/{{hub}}/{{file}}"]) == 0
    text = target.read_text()
    assert 'name = "novel-9b"\nhub = "Ours/Novel-9B-Instruct"' in text
    assert 'source = "https://example.com/Ours/Novel-9B-Instruct/Ours--Novel-9B-Instruct_config.json"' in text
    assert text.count("[[model]]") == 1
    assert "architectures" not in text
    (folder / "bare_config.json").write_text("{}")
    assert model_rows([str(target), f"{folder}=https://example.com"]) == 2
    assert target.read_text() == text


def test_an_unknown_name_lists_the_nearest() -> None:
    with pytest.raises(InputError, match=r"nearest: .*qwen2\.5-7b"):
        find_shape("qwen2.5-7bb")
