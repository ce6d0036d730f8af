"""Whole answers to stated runs, and the refusals: the verdict, the parts, the phase, what was assumed.

A line of `questions.tsv` holds a model and what is stated of its run (`gpu=`, `stack=` and the fields of
`StatedRun`); then the answer, on a card with its growth, and rough unless `close=true` replays the allocator.
To add one, write it alone and run `python tests/memory/test_questions.py`: it fills the answer in, and its
diff says what else is so.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envdoctor.errors import EnvdoctorError, InputError
from envdoctor.memory.answer import answer
from envdoctor.memory.curves import otherwise
from envdoctor.memory.deepspeed_file import parse_deepspeed, read_deepspeed
from envdoctor.memory.report import render
from envdoctor.memory.stated import StatedRun, ask
from envdoctor.report import Format

RECORD = Path(__file__).parent / "questions.tsv"
RECORDED = [line.partition("\t")[::2] for line in RECORD.read_text(encoding="utf-8").splitlines()]


def read_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def told(question: str) -> str:
    """Return the answer as JSON on one line and as text, or the refusal."""
    model, *words = shlex.split(question)
    stated = {name: read_value(value) for name, _, value in (word.partition("=") for word in words)}
    gpu, stack, close = stated.pop("gpu", None), stated.pop("stack", ""), stated.pop("close", False)
    try:
        asked = replace(ask(model, StatedRun(**stated), gpu=gpu, stack=stack), close=close)
        said = answer(asked)
    except EnvdoctorError as error:
        return f"{type(error).__name__}: {error}"
    plain = json.dumps(said.to_json(asked.gpu_bytes), ensure_ascii=False)
    curves = otherwise(asked, said)[0] if gpu else ()
    text = render(said, asked.gpu_bytes, Format.TEXT, title=model, curves=curves)
    return f"{plain} | {' '.join(text.split())}"


def lines() -> list[str]:
    """Return the record as it would be written today."""
    return [f"{question}\t{told(question)}" for question, _ in RECORDED]


@pytest.mark.parametrize(("question", "said"), RECORDED, ids=range(len(RECORDED)))
def test_a_question_is_answered_as_it_was(question: str, said: str) -> None:
    assert told(question) == said


@pytest.mark.parametrize(
    ("file", "stated", "parallel", "offloads"),
    [
        ({}, {}, "none", (False, False)),
        ({"stage": 0}, {}, "none", (False, False)),
        ({"stage": 1, "offload_optimizer": {"device": "none"}}, {"gpus": 2}, "zero1", (False, False)),
        ({"stage": 2, "offload_optimizer": {}}, {"gpus": 2}, "zero2", (False, False)),
        ({"stage": 0}, {"gpus": 2}, "ddp", (False, False)),
        ({"stage": 2}, {}, "zero2", (False, False)),
        ({"stage": 3, "offload_param": {"device": "cpu"}}, {"gpus": 2}, "zero3", (False, True)),
        ({"stage": 3, "offload_optimizer": {"device": "cpu"}}, {"gpus": 2}, "zero3", (True, False)),
        ({"stage": 3}, {"gpus": 2, "offload_params": True}, "zero3", (False, True)),
        ({"stage": 2}, {"gpus": 2, "offload_optimizer": True, "parallel": "zero2"}, "zero2", (True, False)),
    ],
)
def test_deepspeeds_file_says_how_the_run_is_sharded(tmp_path, file, stated, parallel, offloads) -> None:
    path = tmp_path / "ds.json"
    path.write_text(json.dumps({"zero_optimization": {**file, "reduce_bucket_size": 1000}}))
    run = ask("gpt2", StatedRun(seq=512, deepspeed=str(path), **stated), stack="").run
    assert (run.parallel, (run.offload_optimizer, run.offload_params)) == (parallel, offloads)
    assert run.deepspeed.reduce_bucket == 1000


def test_a_deepspeed_file_that_says_otherwise_is_refused(tmp_path) -> None:
    path = tmp_path / "ds.json"
    path.write_text('{"zero_optimization": {"stage": 2}}')
    with pytest.raises(InputError, match=r"--parallel zero3: .*ds\.json says zero2"):
        ask("gpt2", StatedRun(gpus=2, seq=512, deepspeed=str(path), parallel="zero3"), stack="")


@pytest.mark.parametrize("size", [True, "many", -1, [1]])
def test_what_is_no_size_in_deepspeeds_file_is_refused(size) -> None:
    with pytest.raises(InputError, match=r"ds\.json: zero_optimization\.reduce_bucket_size: .* is no size"):
        parse_deepspeed({"stage": 2, "reduce_bucket_size": size}, "ds.json", 64)


@pytest.mark.parametrize("stage", [True, "2", 4, -1])
def test_what_is_no_stage_in_deepspeeds_file_is_refused(stage) -> None:
    with pytest.raises(InputError, match=r"ds\.json: zero_optimization\.stage: .* is none of 0, 1, 2, 3"):
        parse_deepspeed({"stage": stage}, "ds.json", 64)


@pytest.mark.parametrize(
    ("text", "message"), [("{", "not a JSON file"), ("[]", "zero_optimization: missing"), ("{}", "missing")]
)
def test_what_is_no_deepspeed_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(text)
    with pytest.raises(InputError, match=rf"ds\.json: .*{message}"):
        read_deepspeed(str(tmp_path / "ds.json"), 64)


def test_sizes_left_to_deepspeed_go_by_the_models_width() -> None:
    names = ("reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold")
    sizes = parse_deepspeed(
        {"stage": 3, **dict.fromkeys(names, "auto"), "sub_group_size": 0}, "ds.json", 64
    ).sizes
    assert (sizes.reduce_bucket, sizes.prefetch_bucket, sizes.persistence_threshold) == (4096, 3686, 640)
    assert (sizes.sub_group, sizes.overlap_comm, sizes.contiguous_gradients) == (0, True, True)
    told = {"allgather_bucket_size": 7, "stage3_max_live_parameters": 8e3, "contiguous_gradients": False}
    sizes = parse_deepspeed({"stage": 2, **told, "overlap_comm": 1}, "ds.json", 64).sizes
    assert (sizes.allgather_bucket, sizes.max_live) == (7, 8000)
    assert (sizes.contiguous_gradients, sizes.overlap_comm) == (False, True)


if __name__ == "__main__":
    RECORD.write_text("\n".join(lines()) + "\n", encoding="utf-8")
