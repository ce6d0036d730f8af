"""`pin --code`: no release that lost what the code asks for, where an older one will do."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from envdoctor.api import pin
from envdoctor.cli import main
from envdoctor.matrix import load_matrix
from envdoctor.solve.answer import PinSet
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.upgrading import judge_paths

ON = {"python_version": "3.11", "platform": "x86_64-manylinux_2_35", "offline": True}


def pinned(folder: Path, text: str, *requests: str) -> PinSet:
    (folder / "train.py").write_text(text)
    return pin(requests, code=[str(folder)], **ON)  # type: ignore[arg-type]


def version(answer: PinSet, name: str) -> tuple[int, ...]:
    return next(tuple(map(int, one.version.split(".")[:2])) for one in answer.pins if one.name == name)


def test_an_import_that_the_newest_lost_holds_it_back_and_says_where(tmp_path: Path) -> None:
    answer = pinned(tmp_path, "import os\nfrom transformers import AdamW\n", "transformers")
    assert answer.status == "solved"
    assert version(answer, "transformers") < (5, 0)
    assert any("train.py, line 2 asks for transformers.AdamW" in note for note in answer.notes)


def test_a_name_that_came_and_went_within_the_time_of_the_code_holds_it_back(tmp_path: Path) -> None:
    text = "from transformers.models.llama.modeling_llama import LlamaFlashAttention2\n"
    answer = pinned(tmp_path, text, "transformers")
    assert version(answer, "transformers") < (4, 48)


@pytest.mark.parametrize(
    "text",
    [
        "from transformers import AutoModel\n",
        "try:\n    from transformers import AdamW\nexcept ImportError:\n    from torch.optim import AdamW\n",
        "import torch\nx = torch.tensor([1])\n",
    ],
)
def test_code_that_runs_with_the_newest_holds_nothing(tmp_path: Path, text: str) -> None:
    held = pinned(tmp_path, text, "transformers", "torch")
    assert version(held, "transformers") >= (5, 0)
    assert held.notes == ()


def test_a_name_that_was_gone_for_some_releases_holds_them_back(tmp_path: Path) -> None:
    answer = pinned(tmp_path, "import numpy as np\n\nKIND = np.bool\n", "numpy<2")
    assert answer.status == "solved"
    assert version(answer, "numpy") < (1, 24)


def test_what_was_asked_for_goes_before_the_code(tmp_path: Path) -> None:
    answer = pinned(tmp_path, "from transformers import AdamW\n", "transformers>=5")
    assert answer.status == "solved"
    assert version(answer, "transformers") >= (5, 0)
    assert any("no older release fits what was asked for" in note for note in answer.notes)


def test_the_file_says_why_and_a_file_of_requirements_beside_code_is_told_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("from transformers import AdamW\n")
    (tmp_path / "requirements.txt").write_text("transformers\n")
    on = ["--python-version", "3.11", "--platform", "x86_64-manylinux_2_35", "--offline"]
    asked = ["pin", "-r", str(tmp_path / "requirements.txt"), *on, "-o", str(tmp_path / "pins.txt")]
    assert main(asked) == 0
    assert f"--code {tmp_path}" in capsys.readouterr().err
    assert main([*asked, "--code", str(tmp_path)]) == 0
    assert "asks for transformers.AdamW" in capsys.readouterr().err
    assert "# note: transformers<4" in (tmp_path / "pins.txt").read_text()


@pytest.mark.parametrize(
    ("text", "asked", "brought"),
    [
        ("from torch.utils.tensorboard import SummaryWriter\n", "torch", "tensorboard"),
        ("from torch.utils import tensorboard\n", "torch", "tensorboard"),
        ("import safetensors.torch as st\n", "safetensors", "torch"),
        ("from modelscope.pipelines import pipeline\n", "modelscope", "addict"),
        ("from fastchat.llm_judge.common import load_questions\n", "fschat", "openai"),
    ],
)
def test_what_an_imported_module_needs_is_pinned_and_told(
    tmp_path: Path, text: str, asked: str, brought: str
) -> None:
    answer = pinned(tmp_path, text, asked)
    assert any(one.name == brought for one in answer.pins)
    assert any("train.py, line 1 imports" in note for note in answer.notes)
    assert answer.besides


@pytest.mark.parametrize(
    "text",
    [
        "import torch.utils.data\n",
        "try:\n    from torch.utils.tensorboard import SummaryWriter\nexcept ImportError:\n    pass\n",
        "def log():\n    from torch.utils.tensorboard import SummaryWriter\n",
    ],
)
def test_what_code_can_do_without_is_not_pinned(tmp_path: Path, text: str) -> None:
    answer = pinned(tmp_path, text, "torch")
    assert not any(one.name == "tensorboard" for one in answer.pins)
    assert not answer.besides


def test_what_has_no_place_beside_what_was_asked_for_is_noted(tmp_path: Path) -> None:
    text = "from fastchat.llm_judge.common import load_questions\n"
    answer = pinned(tmp_path, text, "fschat==0.2.36", "openai>=1")
    assert answer.status == "solved"
    assert any("no place beside what was asked for" in note for note in answer.notes)


@pytest.mark.parametrize(
    "text",
    [
        "from langchain.retrievers.document_compressors.base import BaseDocumentCompressor\n",
        "from langchain.chains import LLMChain\n",
        "from langchain import hub\n",
    ],
)
def test_what_lies_in_a_module_that_a_row_says_is_gone_is_gone(tmp_path: Path, text: str) -> None:
    (tmp_path / "rag.py").write_text(text + "from langchain.agents import create_agent\n")
    moves = {"langchain": Move(Version("1.5.2"), Version("0.3.27"))}
    failing = judge_paths(load_matrix(), moves, [str(tmp_path)]).failing
    assert [(one.told.use.place.line, one.told.since) for one in failing] == [(1, "1.0.0")]


def test_an_argument_that_a_method_may_still_take_holds_nothing(tmp_path: Path) -> None:
    text = (
        "from transformers import AutoModelForCausalLM\n"
        "model = AutoModelForCausalLM.from_pretrained('gpt2')\n"
        "model.generate([1], max_length=2, eos_token_id=0, do_sample=False)\n"
    )
    assert version(pinned(tmp_path, text, "transformers"), "transformers") >= (5, 0)


def test_what_code_imports_of_later_releases_goes_before_what_it_lost(tmp_path: Path) -> None:
    held = "from transformers import AdamW\n"
    assert version(pinned(tmp_path, held, "transformers"), "transformers") < (4, 50)
    later = "from transformers.models.qwen3_next.configuration_qwen3_next import Qwen3NextConfig\n"
    torn = pinned(tmp_path, held + later, "transformers")
    assert version(torn, "transformers") >= (4, 57)
    assert any("asks for transformers.AdamW" in one and "no release has both" in one for one in torn.notes)


@pytest.mark.parametrize(("python", "is_met"), [("3.9", True), ("3.10", False)])
def test_what_a_module_needs_on_some_pythons_is_pinned_there(
    tmp_path: Path, python: str, is_met: bool
) -> None:
    (tmp_path / "train.py").write_text("from torch.distributed.checkpoint import save\n")
    answer = pin(["torch==2.7.1"], code=[str(tmp_path)], **{**ON, "python_version": python})  # type: ignore[arg-type]
    assert ("importlib-metadata" in {one.name for one in answer.pins}) is is_met
