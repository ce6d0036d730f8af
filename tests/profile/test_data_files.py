"""Training data is judged by its structure and its lengths."""

from __future__ import annotations

import json
from pathlib import Path

from envdoctor.diagnosis import diagnose_facts, read_facts
from envdoctor.matrix import load_matrix


def found(folder: Path, name: str, text: str, settings: str = "") -> dict[str, str]:
    (folder / name).write_text(text, encoding="utf-8")
    paths = [str(folder / name)]
    if settings:
        (folder / "train.yaml").write_text(settings)
        paths.append(str(folder / "train.yaml"))
    matrix = load_matrix()
    return {f.id: f.summary for f in diagnose_facts(read_facts(paths, None, matrix), matrix).findings}


def turns(*spoken: tuple[str, str]) -> dict[str, object]:
    return {"conversations": [{"from": role, "value": text} for role, text in spoken]}


GOOD = turns(("system", "be kind"), ("human", "hello"), ("gpt", "hello to you"))


def test_good_conversations_are_left_alone(tmp_path: Path) -> None:
    assert found(tmp_path, "data.json", json.dumps([GOOD] * 3)) == {}
    chat = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hi"}]}
    assert found(tmp_path, "data.jsonl", "\n".join([json.dumps(chat)] * 3)) == {}
    alpaca = {"instruction": "add", "input": "", "output": "3"}
    assert found(tmp_path, "data.json", json.dumps([alpaca])) == {}


def test_the_answers_that_a_row_prefers_and_rejects_end_its_conversation(tmp_path: Path) -> None:
    row = {**turns(("human", "hello")), "chosen": {"from": "gpt", "value": "hi"}, "rejected": {"value": "no"}}
    assert found(tmp_path, "data.json", json.dumps([row] * 3)) == {}


def test_broken_conversations_are_counted(tmp_path: Path) -> None:
    rows = [
        GOOD,
        turns(("human", "one"), ("human", "two"), ("gpt", "three")),
        turns(("human", "only a question")),
        turns(("human", "hello"), ("gpt", "")),
        {"conversation": []},
    ]
    answer = found(tmp_path, "data.json", json.dumps(rows, indent=1))
    assert set(answer) == {"DATA-TURNS", "DATA-UNANSWERED", "DATA-EMPTY", "DATA-STRUCTURE"}
    assert answer["DATA-TURNS"].startswith("1 of 5 rows")


def test_unknown_roles_are_named(tmp_path: Path) -> None:
    rows = [turns(("问", "hello"), ("答", "hello"))]
    assert "问" in found(tmp_path, "data.json", json.dumps(rows, ensure_ascii=False))["DATA-ROLES"]


def test_rows_longer_than_the_cap(tmp_path: Path) -> None:
    rows = [turns(("human", "word " * 4000), ("gpt", "yes"))] * 5
    settings = "finetuning_type: lora\ncutoff_len: 1024\ntemplate: qwen\ndo_train: true\n"
    assert "1024" in found(tmp_path, "data.json", json.dumps(rows), settings)["DATA-LENGTH"]
    longer = settings.replace("1024", "8192")
    assert "DATA-LENGTH" not in found(tmp_path, "data.json", json.dumps(rows), longer)


def test_error_lines_inside_data_are_no_symptoms(tmp_path: Path) -> None:
    rows = [turns(("human", "CUDA out of memory. Tried to allocate 2.00 MiB"), ("gpt", "buy a card"))]
    assert found(tmp_path, "data.json", json.dumps(rows)) == {}
