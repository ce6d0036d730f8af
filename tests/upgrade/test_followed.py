"""What objects are, followed from where they are made to where they are used: calls, classes, files."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from envdoctor.matrix import load_matrix
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.reading import read_cells
from envdoctor.upgrading.upgrading import judge_paths
from envdoctor.upgrading.uses import Kind

MOVES = {"transformers": Move(Version("5.0.0"), Version("4.57.6"))}


def members(code: str) -> set[tuple[str, str]]:
    read = next(read_cells([code]))
    assert read is not None
    return {(use.path, use.name) for use in read.uses if use.kind is Kind.MEMBER}


def broken(folder: Path, **files: str) -> set[tuple[str, str]]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    found = judge_paths(load_matrix(), MOVES, [str(folder)]).breaks
    return {(Path(one.file).stem, one.told.name.rpartition(".")[2]) for one in found}


INNER = """import torch
from lib import Trainer
class Inner(torch.nn.Module):
    def __init__(self):
        self.t = Trainer()
"""


@pytest.mark.parametrize(
    "code",
    [
        """class Outer:
    def __init__(self):
        self.inner = Inner()
    def go(self):
        self.inner.t.old
""",
        """class Outer(Inner):
    def go(self):
        self.t.old
""",
        """def go(inner: Inner):
    inner.t.old
""",
        """def go(thing):
    thing.old
def start():
    go(Inner().t)
""",
        """class Outer(Inner):
    def help(self, a, thing):
        thing.old
    def go(self):
        self.help(1, thing=self.t)
""",
    ],
)
def test_what_an_object_of_the_texts_own_classes_holds_is_followed(code: str) -> None:
    assert ("lib.Trainer", "old") in members(INNER + code)


def test_an_argument_that_calls_give_different_things_is_none_of_them() -> None:
    code = "from lib import A, B\ndef go(thing):\n    thing.old\ngo(A())\ngo(B())\n"
    assert members(code) == set()


def test_an_annotation_is_believed_before_a_call() -> None:
    code = "from lib import A, B\ndef go(thing: B):\n    thing.old\ngo(A())\n"
    assert members(code) == {("lib.B", "old")}


def test_what_a_class_of_another_file_holds_is_followed(tmp_path: Path) -> None:
    held = (
        "from transformers import PaliGemmaForConditionalGeneration as P\n"
        "class Held:\n    def __init__(self, config):\n        self.model = P(config)\n"
    )
    use = "from held import Held\nclass Sub(Held):\n    def go(self): return self.model.language_model\n"
    assert ("use", "language_model") in broken(tmp_path, held=held, use=use)


def test_a_class_that_a_package_brings_when_it_is_asked_for_is_the_one_below_it(tmp_path: Path) -> None:
    (tmp_path / "kit").mkdir()
    lazy = "import lazy_loader\n__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)\n"
    held = "from transformers import PaliGemmaForConditionalGeneration as P\nclass Held(P): pass\n"
    use = "from kit import Held\nHeld.from_pretrained('x').language_model\n"
    files = {"kit/__init__": lazy, "kit/held": held, "use": use}
    assert ("use", "language_model") in broken(tmp_path, **files)


def test_a_models_class_is_told_by_the_record_of_models(tmp_path: Path) -> None:
    code = (
        "from transformers.models.t5.modeling_t5 import T5Stack\n"
        "from transformers import PaliGemmaForConditionalGeneration as P\n"
        "T5Stack(config, shared)\nmodel = P.from_pretrained('x')\n"
        "model.vision_tower\nmodel.get_input_embeddings()\n"
    )
    told = {name for _, name in broken(tmp_path, code=code)}
    assert told == {"T5Stack() with 2 positional arguments", "vision_tower"}


def test_a_member_of_a_class_that_is_another_name_now_is_told_where_no_class_has_it(tmp_path: Path) -> None:
    code = (
        "from transformers import PretrainedConfig\nx = make()\nx._get_non_default_generation_parameters()\n"
    )
    assert ("code", "_get_non_default_generation_parameters") in broken(tmp_path, code=code)


@pytest.mark.parametrize(
    "made",
    [
        "def make(x):\n    return Trainer(x)\n",
        "def make(x):\n    t = Trainer(x)\n    print(t)\n    return t\n",
        "def inner(x):\n    return Trainer(x)\ndef make(x):\n    return inner(x)\n",
        "async def make(x) -> Trainer: ...\n",
    ],
)
def test_a_function_answers_with_all_that_it_returns(made: str) -> None:
    code = f"from lib import Trainer\n{made}async def go():\n    t = await make(1)\n    t.old\n"
    assert members(code) == {("lib.Trainer", "old")}


def test_a_function_that_returns_different_things_tells_nothing() -> None:
    code = "from lib import A, B\ndef make(x):\n    if x:\n        return A()\n    return B()\nmake(1).old\n"
    assert members(code) == set()


def test_what_a_function_of_another_file_makes_is_followed(tmp_path: Path) -> None:
    make = "from transformers import PaliGemmaForConditionalGeneration as P\ndef make(c):\n    return P(c)\n"
    use = "from make import make\ndef go():\n    model = make(1)\n    return model.vision_tower\n"
    assert ("use", "vision_tower") in broken(tmp_path, make=make, use=use)


def test_a_setting_by_its_former_name_is_told_where_it_is_set_and_any_other_is_there_then(
    tmp_path: Path,
) -> None:
    code = "import transformers\ndef go(text_config):\n    text_config.torch_dtype = 1\n"
    code += "    text_config.other = 2\n"
    assert broken(tmp_path, code=code) == {("code", "torch_dtype")}
