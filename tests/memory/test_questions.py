"""Whole answers to stated runs, and the refusals: the verdict, the parts, the phase, what was assumed.

A line of `questions.tsv` holds a model and what is stated of its run (`gpu=`, `stack=` and the fields of
`StatedRun`); then the answer, rough (without the allocator's replay). To add one, write the question alone
and run `python tests/memory/test_questions.py`: it fills the answer in, and its diff says what else is so.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from envdoctor.errors import EnvdoctorError
from envdoctor.memory.answer import answer
from envdoctor.memory.report import render
from envdoctor.memory.stated import StatedRun, ask
from envdoctor.report import Format

RECORD = Path(__file__).parent / "questions.tsv"


def read_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def told(question: str) -> str:
    """Return the answer as JSON on one line and as text, or the refusal."""
    model, *words = shlex.split(question)
    stated = {name: read_value(value) for name, _, value in (word.partition("=") for word in words)}
    gpu, stack = stated.pop("gpu", None), stated.pop("stack", "")
    try:
        asked = replace(ask(model, StatedRun(**stated), gpu=gpu, stack=stack), close=False)
        said = answer(asked)
    except EnvdoctorError as error:
        return f"{type(error).__name__}: {error}"
    plain = json.dumps(said.to_json(asked.gpu_bytes), ensure_ascii=False)
    text = render(said, asked.gpu_bytes, Format.TEXT, title=model)
    return f"{plain} | {' '.join(text.split())}"


def lines() -> list[str]:
    """Return the record as it would be written today."""
    questions = [line.partition("\t")[0] for line in RECORD.read_text(encoding="utf-8").splitlines()]
    return [f"{question}\t{told(question)}" for question in questions]


def test_every_question_is_answered_as_it_was() -> None:
    assert lines() == RECORD.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    RECORD.write_text("\n".join(lines()) + "\n", encoding="utf-8")
