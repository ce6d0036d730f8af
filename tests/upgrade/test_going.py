"""What is on its way out, or is told by more than a name: warnings, keys of tables, texts, own settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from envdoctor.matrix import load_matrix
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.upgrading import judge_paths

PYD = {"pydantic": Move(Version("2.5.2"), Version("1.10.13"))}
NP = {"numpy": Move(Version("2.0.0"), Version("1.26.4"))}
TF = {"transformers": Move(Version("5.2.0"), Version("4.57.6"))}
TRL = {"trl": Move(Version("1.0.0"), Version("0.19.1"))}
MODEL = "from pydantic import BaseModel, Field\nclass A(BaseModel):\n    x: int = 1\n"


def told(folder: Path, code: str, moves: dict[str, Move]) -> list[tuple[int, str, bool]]:
    (folder / "a.py").write_text(code)
    found = judge_paths(load_matrix(), moves, [str(folder)]).breaks
    return [(one.told.use.place.line, one.told.name.partition(".")[2], one.told.warned) for one in found]


@pytest.mark.parametrize(
    ("handler", "found"),
    [
        (
            "except Exception:\n    print(A().dict())\n",
            [(5, "BaseModel.json", True), (7, "BaseModel.dict", True)],
        ),
        ("except:\n    pass\n", [(5, "BaseModel.json", True)]),
        ("except AttributeError:\n    print(A().model_dump())\n", []),
        ("except ValueError:\n    pass\n", [(5, "BaseModel.json", True)]),
    ],
)
def test_a_handler_of_every_error_cares_for_no_warning(
    tmp_path: Path, handler: str, found: list[tuple[int, str, bool]]
) -> None:
    assert told(tmp_path, f"{MODEL}try:\n    A().json()\n{handler}", PYD) == found


def test_a_handler_of_every_error_cares_for_what_fails(tmp_path: Path) -> None:
    code = "import numpy as np\ntry:\n    x = np.float_(1)\nexcept Exception:\n    x = 1.0\n"
    assert told(tmp_path, code, NP) == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("from numpy.core.numeric import normalize_axis_tuple", "core"),
        ("import numpy.core.records", "core"),
        ("import numpy as np; np.core.multiarray.ndarray", "core"),
        ("from numpy.fft.helper import fftfreq", "fft.helper"),
    ],
)
def test_what_lies_in_a_module_on_its_way_out_goes_with_it(tmp_path: Path, line: str, name: str) -> None:
    assert told(tmp_path, f"{line}\n", NP) == [(1, name, True)]


def test_what_is_gone_in_such_a_module_fails(tmp_path: Path) -> None:
    found = told(tmp_path, "from numpy.core.umath_tests import inner1d\n", NP)
    assert found == [(1, "core.umath_tests.inner1d", False)]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("from pydantic.utils import deep_update", "utils.deep_update"),
        ("from pydantic.tools import parse_obj_as", "tools.parse_obj_as"),
        ("from pydantic.generics import GenericModel", "generics.GenericModel"),
    ],
)
def test_what_a_module_passes_on_warns(tmp_path: Path, line: str, name: str) -> None:
    assert told(tmp_path, f"{line}\n", PYD) == [(1, name, True)]


def test_what_a_class_inside_of_a_model_sets_by_its_former_name(tmp_path: Path) -> None:
    code = f"{MODEL}    class Config:\n        orm_mode = True\n        extra = 'forbid'\n"
    assert [(line, name) for line, name, _ in told(tmp_path, code, PYD)] == [
        (4, "BaseModel.Config(class)"),
        (5, "BaseModel.orm_mode(key)"),
    ]


def test_an_argument_that_no_release_names_is_told_where_a_row_does(tmp_path: Path) -> None:
    code = f"{MODEL}    y: int = Field(1, new_param='z', description='d')\n"
    assert told(tmp_path, code, PYD) == [(4, "Field(new_param)", True)]


def test_what_is_set_on_a_module_that_has_it_no_more(tmp_path: Path) -> None:
    code = "import transformers\ntransformers.modeling_utils._init_weights = False\ntransformers.mine = 1\n"
    assert told(tmp_path, code, TF) == [(2, "modeling_utils._init_weights", False)]


@pytest.mark.parametrize(
    "asked",
    [
        "f = ROPE_INIT_FUNCTIONS['default']",
        "kind = 'default'\nf = ROPE_INIT_FUNCTIONS[kind]",
        "if x:\n    self.kind = y\nelse:\n    self.kind = 'default'\nf = ROPE_INIT_FUNCTIONS[self.kind]",
    ],
)
def test_the_key_of_a_library_s_table(tmp_path: Path, asked: str) -> None:
    code = f"from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS\n{asked}\n"
    line = len(code.splitlines())
    assert told(tmp_path, code, TF) == [(line, "modeling_rope_utils.ROPE_INIT_FUNCTIONS[default]", False)]
    assert told(tmp_path, code.replace("default", "linear"), TF) == []


def test_a_text_that_is_given_first(tmp_path: Path) -> None:
    code = "from transformers import pipeline\npipeline('summarization')\npipeline('text-generation')\n"
    assert told(tmp_path, code, TF) == [(2, "pipeline('summarization')", False)]


def test_a_keyword_that_a_method_takes_among_any_and_reads_no_more(tmp_path: Path) -> None:
    code = (
        "from transformers import AutoModel\nm = AutoModel.from_pretrained('x')\n"
        "m.save_pretrained('y', safe_serialization=True)\n"
    )
    assert told(tmp_path, code, TF) == [(3, "PreTrainedModel.save_pretrained(safe_serialization)", True)]


def test_a_setting_of_a_class_s_own_is_gone_where_the_class_below_never_had_it(tmp_path: Path) -> None:
    code = "from trl import DPOConfig\nDPOConfig('o', rpo_alpha=1.0, learning_rate=1e-5, bf16=True)\n"
    assert told(tmp_path, code, TRL) == [(2, "DPOConfig(rpo_alpha)", False)]
