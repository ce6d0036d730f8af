"""Code judged against a release: what breaks, since when, what stands instead, and the patch that says so."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from packaging.version import Version

from envdoctor.cli import main
from envdoctor.findings import Certainty
from envdoctor.matrix import load_matrix
from envdoctor.matrix.interface_records import Record
from envdoctor.upgrading.arguments import not_taken
from envdoctor.upgrading.breaks import Break
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.judging import Judge
from envdoctor.upgrading.patching import patched
from envdoctor.upgrading.reading import read_cells
from envdoctor.upgrading.upgrading import judge_paths
from envdoctor.upgrading.uses import Kind, Place, Use

MOVES = {
    "transformers": Move(Version("5.0.0")),
    "numpy": Move(Version("2.0.0")),
    "librosa": Move(Version("0.10.1")),
    "pytorch-lightning": Move(Version("2.0.0")),
}


@cache
def usual_judge() -> Judge:
    """What goes with a library is found once a judge."""
    return Judge(load_matrix(), MOVES)


def breaks(code: str) -> list[Break]:
    read = next(read_cells([code]))
    assert read is not None
    return list(usual_judge().breaks(read.uses))


def told(code: str) -> list[tuple[int, str, str]]:
    return [(b.use.place.line, b.name, b.replacement) for b in breaks(code)]


def after(code: str) -> str:
    read = next(read_cells([code]))
    assert read is not None
    return patched(code, breaks(code), read.written)


@pytest.mark.parametrize(
    ("code", "name", "replacement"),
    [
        ("import numpy as np\nx = np.float_(1)", "numpy.float_", "numpy.float64"),
        ("from numpy import Inf", "numpy.Inf", "numpy.inf"),
        ("from numpy import *\nx = Inf", "numpy.Inf", "numpy.inf"),
        ("import numpy\nn = numpy\nx = n.NaN", "numpy.NaN", "numpy.nan"),
        ("import numpy as np\nx = np.math.log(2)", "numpy.math", "math"),
        ("from transformers import AdamW", "transformers.AdamW", "torch.optim.AdamW"),
        ("from transformers import TrainingArguments as T\nT(evaluation_strategy='no')",
         "transformers.TrainingArguments(evaluation_strategy)", "eval_strategy"),
        ("import transformers\nkw = {'evaluation_strategy': 'no'}\ntransformers.TrainingArguments(**kw)",
         "transformers.TrainingArguments(evaluation_strategy)", "eval_strategy"),
        ("from transformers import Trainer\nclass Mine(Trainer):\n    pass\nMine(tokenizer=None)",
         "transformers.Trainer(tokenizer)", "processing_class"),
        ("from transformers import Trainer\nclass Mine(Trainer):\n    def __init__(self, t):\n"
         "        super().__init__(tokenizer=t)", "transformers.Trainer.__init__(tokenizer)",
         "processing_class"),
        ("import numpy as np\ndef f(x: np.float_): ...", "numpy.float_", "numpy.float64"),
        ("from transformers import Qwen3MoeConfig as C\nC.from_pretrained('x').rope_theta",
         "transformers.Qwen3MoeConfig.rope_theta", "rope_parameters['rope_theta']"),
        ("from transformers import LlavaForConditionalGeneration as L\n"
         "m = L.from_pretrained('x')\nm.vision_tower",
         "transformers.LlavaForConditionalGeneration.vision_tower",
         "It is a part of the model inside: model.model."),
        ("import numpy as np\nx: list[np.float_] = []", "numpy.float_", "numpy.float64"),
        ("from transformers import AutoConfig\nc = AutoConfig.from_pretrained('x')\nprint(c.rope_theta)",
         "transformers.PreTrainedConfig.rope_theta", "rope_parameters['rope_theta']"),
        ("from transformers import PreTrainedConfig\ndef f(c: PreTrainedConfig | None):\n    c.rope_theta",
         "transformers.PreTrainedConfig.rope_theta", "rope_parameters['rope_theta']"),
        ("import transformers\ndef f(hf_config):\n    hf_config.rope_theta",
         "transformers.PreTrainedConfig.rope_theta", "rope_parameters['rope_theta']"),
        ("import transformers\ndef f(config):\n    return getattr(config, 'rope_theta', 10000)",
         "transformers.PreTrainedConfig.rope_theta", "rope_parameters['rope_theta']"),
        ("from transformers import AutoConfig\nclass A:\n    def __init__(self):\n"
         "        self.c = AutoConfig.from_pretrained('x')\n    def f(self):\n        self.c.rope_theta",
         "transformers.PreTrainedConfig.rope_theta", "rope_parameters['rope_theta']"),
        ("from transformers import AutoModel\nAutoModel.from_pretrained('x', use_auth_token=True)",
         "transformers.AutoModel.from_pretrained(use_auth_token)", "token"),
        ("from transformers import Trainer\nclass Mine(Trainer):\n"
         "    def compute_loss(self, model, inputs, return_outputs=False): ...",
         "transformers.Trainer.compute_loss() without num_items_in_batch", "take num_items_in_batch=None"),
        ("if is_transformers_available():\n    from transformers import AdamW",
         "transformers.AdamW", "torch.optim.AdamW"),
        ("from transformers import Trainer\nk: dict = {'tokenizer': 1}\n"
         "k = {a: b for a, b in k.items() if b}\nTrainer(**k)",
         "transformers.Trainer(tokenizer)", "processing_class"),
    ],
)  # fmt: skip
def test_uses_are_followed_to_what_broke(code: str, name: str, replacement: str) -> None:
    assert [(n, r) for _, n, r in told(code)] == [(name, replacement)]


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    from transformers import AdamW\nexcept ImportError:\n    from torch.optim import AdamW",
        "import numpy as np\nif hasattr(np, 'float_'):\n    x = np.float_",
        "import numpy as np\nx = np.float64(np.inf)\ny = np.bool(1)",
        "from transformers import Trainer\nTrainer(model=None, processing_class=None)",
        "def f(np):\n    return np.float_",
        "import mine as np\nx = np.float_",
        "from transformers import BertTokenizerFast",
        "from transformers import Trainer\nclass Mine(Trainer):\n    def compute_loss(self, **kwargs): ...",
        "from transformers import AutoTokenizer\nt = AutoTokenizer.from_pretrained('x')\nt.pad_token_id",
        "from transformers import PreTrainedTokenizerFast\ndef f(t: PreTrainedTokenizerFast):\n"
        "    t.backend_tokenizer",
        "from transformers import BatchEncoding\ndef f(b: BatchEncoding):\n    b.keys()",
    ],
)
def test_what_is_guarded_or_another_is_no_break(code: str) -> None:
    assert told(code) == []


def test_positions_that_are_no_longer_taken() -> None:
    code = "from librosa.filters import mel\nmel(22050, 1024, 80, 0, 8000)"
    assert [(line, name) for line, name, _ in told(code)] == [
        (2, "librosa.filters.mel() with 5 positional arguments")
    ]


def test_a_module_that_came_later_does_not_define_what_a_call_meets() -> None:
    code = "from vllm.entrypoints.openai.api_server import init_app_state\ninit_app_state(a, b, c, d)\n"
    read = next(read_cells([code]))
    moves = {"vllm": Move(Version("0.12.0"), Version("0.11.0"))}
    assert read is not None
    assert [one.name for one in Judge(load_matrix(), moves).breaks(read.uses)] == [
        "vllm.entrypoints.openai.api_server.init_app_state() with 4 positional arguments"
    ]


def test_a_hook_that_nothing_calls_any_more_is_told_where_it_is_overridden() -> None:
    code = (
        "import pytorch_lightning as pl\nclass Mine(pl.LightningModule):\n"
        "    def training_epoch_end(self, outputs): ...\n    def training_step(self, batch): ...\n"
    )
    assert told(code) == [(3, "pytorch_lightning.LightningModule.training_epoch_end", "")]
    code = (
        "import pytorch_lightning as pl\nclass Mine(pl.callbacks.Callback):\n"
        "    def on_batch_end(self, trainer, module): ...\n    def on_train_batch_end(self, *rest): ...\n"
    )
    assert told(code) == [(3, "pytorch_lightning.callbacks.Callback.on_batch_end", "")]


@pytest.mark.parametrize(
    "call",
    [
        "loop.run_in_executor(None, partial(transformers.TrainingArguments, evaluation_strategy='no'))",
        "pool.submit(transformers.TrainingArguments, evaluation_strategy='no')",
        "asyncio.to_thread(transformers.TrainingArguments, evaluation_strategy='no')",
        "transformers.PreTrainedTokenizer(x).add_special_tokens(replace_additional_special_tokens=1)",
    ],
)
def test_a_keyword_is_told_where_another_calls_what_takes_it(call: str) -> None:
    assert [line for line, *_ in told(f"import transformers\n{call}\n")] == [2]


def test_arguments_that_went_together_are_told_where_bases_are_on_record() -> None:
    code = "import pytorch_lightning as pl\npl.Trainer(gpus=1, max_epochs=2)\n"
    assert told(code) == [(2, "pytorch_lightning.Trainer(gpus)", "")]


RECORD = Record(
    library="gizmo",
    root="gizmo",
    versions=["1.0", "2.0"],
    modules={},
    names={},
    keywords={"Engine.turn": {"speed": [[1, 1]], "~1": [[0, 0]], "~2": [[1, 1]]}, "Far.run": {"x": [[0, 0]]}},
    members={},
    imports={},
    passed={"turn": {"speed": [[1, 1]], "~2": [[1, 1]]}},
    bases={"Fast": {"Engine": [[0, 1]]}, "Faster": {"Fast": [[0, 1]]}},
    variables={},
)


@pytest.mark.parametrize(
    ("base", "count", "given", "name"),
    [
        ("Engine", 2, {"self", "angle"}, "gizmo.Engine.turn() without speed"),
        ("Faster", 2, {"self", "angle"}, "gizmo.Faster.turn() without speed"),
        ("Engine", 1, {"self", "angle", "speed"}, "gizmo.Engine.turn() without 2 positional arguments"),
        ("Engine", 2, {"self", "angle", "speed"}, None),
    ],
)
def test_an_overriding_method_takes_what_the_library_gives_it(
    base: str, count: int, given: set[str], name: str | None
) -> None:
    use = Use(Kind.OVERRIDE, f"gizmo.{base}", Place(1, 0, 1), "turn", count, given=frozenset(given))
    found = not_taken(use, RECORD, Move(Version("2.0"), Version("1.0")))
    assert (found and found.name) == name
    assert not_taken(use, RECORD, Move(Version("2.0"), Version("2.0"))) is None


def test_the_keys_of_a_dictionary_of_a_trainings_arguments_are_its_settings(tmp_path: Path) -> None:
    keys = (
        "temperature",
        "lmbda",
        "beta",
        "max_completion_length",
        "disable_dropout",
        "seq_kd",
        "use_uld_loss",
    )
    lines = "".join(f"        '{key}': 1,\n" for key in (*keys, "use_transformers_paged"))
    (tmp_path / "params.py").write_text(f"def to_trl():\n    return {{\n{lines}    }}\n")
    moves = {"trl": Move(Version("1.3.0"), Version("1.1.0"))}
    found = judge_paths(load_matrix(), moves, [str(tmp_path)]).breaks
    assert [(one.told.use.place.line, one.told.name) for one in found] == [
        (10, "trl: use_transformers_paged")
    ]


def judged(folder: Path, moves: dict[str, Move], **files: str) -> list[tuple[str, int, str]]:
    for name, code in files.items():
        (folder / f"{name}.py").write_text(code)
    found = judge_paths(load_matrix(), moves, [str(folder)]).breaks
    return [(Path(one.file).stem, one.told.use.place.line, one.told.name) for one in found]


GRADIO = {"gradio": Move(Version("4.26.0"), Version("3.44.0"))}


def test_what_a_stub_tells_of_what_is_made_when_a_module_is_loaded_stands(tmp_path: Path) -> None:
    code = (
        "import gradio as gr\nwith gr.Blocks() as demo:\n    one = gr.Button('x')\n"
        "    one.click(f, None, None, show_progress=True)\n    one.click(f, _js='x').then(g, None, _js='y')\n"
        "    shared['two'].change(f, None, _js='z')\n"
        "try:\n    go()\n    x = gr.Button.update(value=1)\nexcept Exception as error:\n"
        "    x = gr.Button.update(value=2)\n"
    )
    assert judged(tmp_path, GRADIO, ui=code) == [
        ("ui", 5, "gradio.Button.click(_js)"),
        ("ui", 5, "then(_js)"),
        ("ui", 6, "change(_js)"),
        ("ui", 9, "gradio.Button.update"),
        ("ui", 11, "gradio.Button.update"),
    ]


def test_a_star_brings_what_the_projects_own_file_imports(tmp_path: Path) -> None:
    one, two = "import gradio as gr\nfrom numpy import *\n", "from .one import *\n"
    three = "from two import *\nx = gr.Markdown.update()\nif hasattr(x, 'y'):\n    gr.Radio.update()\n"
    assert judged(tmp_path, GRADIO, one=one, two=two, three=three) == [
        ("three", 2, "gradio.Markdown.update"),
        ("three", 4, "gradio.Radio.update"),
    ]


def test_a_frame_is_appended_to_no_more() -> None:
    moves = {"pandas": Move(Version("2.0.2"), Version("1.5.3"))}
    read = next(read_cells(["import pandas as pd\nf = pd.DataFrame()\nf = f.append({})\n"]))
    assert read is not None
    found = list(Judge(load_matrix(), moves).breaks(read.uses))
    assert [(one.name, one.since, one.replacement) for one in found] == [
        ("pandas.DataFrame.append", "2.0.0", "pandas.concat")
    ]


def test_what_is_not_followed_is_counted() -> None:
    read = next(read_cells(["import numpy as np\nnp.array(**options())\ngetattr(np, name)\n"]))
    assert read is not None
    assert read.unfollowed == 2


def test_a_patch_leaves_nothing_to_report_and_keeps_the_rest() -> None:
    code = (
        "import numpy as np  # arrays\n"
        "from transformers import AdamW, Trainer, TrainingArguments\n\n"
        "args = TrainingArguments('x',  evaluation_strategy='no')  # twice\n"
        "t = Trainer(args=args, tokenizer=None)\nprint(np.Inf, np.float_( 1 ), np.float(2), AdamW)\n"
    )
    new = after(code)
    assert told(new) == []
    assert "import numpy as np  # arrays" in new
    assert "TrainingArguments('x',  eval_strategy='no')  # twice" in new
    assert "from torch.optim import AdamW\nfrom transformers import Trainer, TrainingArguments" in new
    assert "print(np.inf, np.float64( 1 ), float(2), AdamW)" in new


def test_a_renamed_name_is_renamed_where_it_is_used() -> None:
    code = (
        "from transformers import AutoModelForVision2Seq\nm = AutoModelForVision2Seq.from_pretrained('x')\n"
    )
    assert after(code) == code.replace("AutoModelForVision2Seq", "AutoModelForImageTextToText")


def test_lines_that_use_what_an_import_no_longer_brings_are_told(tmp_path: Path) -> None:
    sources = (
        "from transformers import AutoModelForVision2Seq, AdamW",
        "m = AutoModelForVision2Seq",
        "AdamW()",
    )
    cells = [{"cell_type": "code", "source": [source]} for source in sources]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    judged = judge_paths(load_matrix(), MOVES, [str(tmp_path)])
    assert [(f.cell, f.told.name) for f in judged.breaks] == [
        (1, "transformers.AdamW"),
        (1, "transformers.AutoModelForVision2Seq"),
        (2, "transformers.AutoModelForVision2Seq"),
    ]


def test_an_annotation_that_no_run_evaluates_is_only_likely() -> None:
    (one,) = breaks("from __future__ import annotations\nimport numpy as np\ndef f(x: np.float_): ...")
    assert one.certainty is Certainty.LIKELY


def test_what_still_works_and_warns_fails_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("import numpy as np\nnp.trapz([1])\n", encoding="utf-8")
    judged = judge_paths(load_matrix(), MOVES, [str(path)])
    assert [(f.told.name, f.told.since) for f in judged.breaks] == [("numpy.trapz", "2.4.0")]
    assert judged.failing == []
    assert "+np.trapezoid([1])" in judged.patch


def test_options_of_a_launcher_and_deeper_keys_are_anothers(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(
        "accelerate launch --no_cuda \\\n  --no_cuda \\\n  train.py --no_cuda\n", encoding="utf-8"
    )
    keys = "".join(
        f"    {key}: 1\n" for key in ("output_dir", "learning_rate", "num_train_epochs", "no_cuda")
    )
    (tmp_path / "mine.yaml").write_text(f"train:\n{keys}", encoding="utf-8")
    judged = judge_paths(load_matrix(), MOVES, [str(tmp_path)])
    assert [(Path(f.file).name, f.told.use.place.line) for f in judged.breaks] == [("run.sh", 3)]


def test_a_short_option_of_a_projects_own_script_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("python sft_train.py --dataset x\ntrl sft --dataset x\n")
    judged = judge_paths(load_matrix(), {"trl": Move(Version("0.26.2"))}, [str(tmp_path)])
    assert [(f.told.name, f.told.use.place.line) for f in judged.breaks] == [("trl: dataset", 2)]


def test_notebooks_settings_and_commands_are_judged(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "source": ["%matplotlib inline\n", "import numpy as np\n", "np.Inf"]}]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    settings = "output_dir: x\nlearning_rate: 1e-4\nnum_train_epochs: 1\nevaluation_strategy: steps\n"
    (tmp_path / "train.yaml").write_text(settings, encoding="utf-8")
    (tmp_path / "run.sh").write_text("python run_clm.py \\\n  --evaluation_strategy no\n", encoding="utf-8")
    (tmp_path / "broken.py").write_text("def (", encoding="utf-8")
    judged = judge_paths(load_matrix(), MOVES, [str(tmp_path)])
    found = {(Path(f.file).name, f.cell, f.told.use.place.line, f.told.replacement) for f in judged.breaks}
    assert found == {
        ("a.ipynb", 1, 3, "numpy.inf"),
        ("train.yaml", 0, 4, "eval_strategy"),
        ("run.sh", 0, 2, "eval_strategy"),
    }
    assert [Path(name).name for name in judged.unread] == ["broken.py"]


def test_the_command_writes_the_contracts_json_and_a_patch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "freeze.txt").write_text("numpy==1.26.4\n", encoding="utf-8")
    (tmp_path / "a.py").write_text("import numpy as np\nx = np.Inf\n", encoding="utf-8")
    patch = tmp_path / "out.diff"
    code = main(
        [
            "upgrade",
            "numpy==2.1.0",
            str(tmp_path / "a.py"),
            "--target",
            str(tmp_path / "freeze.txt"),
            "--python-version",
            "3.11",
            "--format",
            "json",
            "--patch",
            str(patch),
        ]
    )
    answer = json.loads(capsys.readouterr().out)
    assert code == answer["exit_code"] == 1
    assert answer["schema"] == "envdoctor.upgrade/1"
    (found,) = answer["breaks"]
    assert (found["line"], found["name"], found["since"]) == (2, "numpy.Inf", "2.0.0")
    assert answer["pins"]["changes"] == [{"name": "numpy", "from": "1.26.4", "to": "2.1.0"}]
    assert "+x = np.inf" in patch.read_text(encoding="utf-8")


def test_what_a_requirements_file_pins_is_what_is_there_and_gives_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pins = tmp_path / "requirements.txt"
    pins.write_text("transformers==4.36.2\npeft==0.7.1\nnumpy<2\n", encoding="utf-8")
    (tmp_path / "a.py").write_text(
        "from transformers import TrainingArguments as A\nA('x', no_cuda=True)\n", encoding="utf-8"
    )
    asked = ["upgrade", "transformers>=5", str(tmp_path / "a.py"), "-r", str(pins)]
    code = main([*asked, "--python-version", "3.11", "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert code == 1
    assert [one["line"] for one in answer["breaks"]] == [2]
    assert answer["pins"]["status"] == "solved"
    moved = {one["name"]: (one["from"], one["to"]) for one in answer["pins"]["changes"]}
    assert moved["transformers"][0] == "4.36.2"
    assert moved["peft"][0] == "0.7.1"  # transformers 5 takes no peft of that time
    numpy = next(one["version"] for one in answer["pins"]["pins"] if one["name"] == "numpy")
    assert numpy.startswith("1.")


def test_lines_are_counted_once_however_much_breaks_on_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "from peft import prepare_model_for_int8_training\nfrom datasets import load_dataset\n"
        "load_dataset('x', use_auth_token='a')\n"
        "from transformers import TrainingArguments as A\nA('x', evaluation_strategy='no', no_cuda=True)\n"
    )
    (tmp_path / "train.py").write_text(code)
    wanted = ["peft>=0.15", "datasets>=4", "transformers>=5"]
    main(["upgrade", *wanted, str(tmp_path / "train.py"), "--python-version", "3.11"])
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("✗ 3 lines of 1 file would break")
    assert "since 0.10.0; instead: peft.prepare_model_for_kbit_training" in told
    assert "load_dataset(use_auth_token) is gone since 3.0.0; instead: token" in told


def test_a_function_that_takes_any_argument_no_longer_names_one_that_nothing_else_takes() -> None:
    code = (
        "import pandas as pd\nfrom datasets import get_dataset_config_names, load_dataset_builder\n"
        "from scipy.spatial import cKDTree\nfrom transformers import BertTokenizer\n"
        "get_dataset_config_names('x', trust_remote_code=True)\n"
        "load_dataset_builder('x', trust_remote_code=True)\n"
        "pd.read_clipboard(delim_whitespace=True, sep=',')\n"
        "BertTokenizer.from_pretrained('x').batch_encode_plus(['a'])\n"
    )
    moved = {"datasets": "4.0.0", "pandas": "3.0.0", "scipy": "1.15.0", "transformers": "5.0.0"}
    read = next(read_cells([code]))
    assert read is not None
    judge = Judge(load_matrix(), {name: Move(Version(to)) for name, to in moved.items()})
    assert [(b.use.place.line, b.since) for b in judge.breaks(read.uses)] == [
        (5, "4.0.0"), (6, "4.0.0"), (7, "3.0.0"), (8, "5.0.0"),
    ]  # fmt: skip


def test_a_call_without_a_requirement_or_with_no_such_path_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["upgrade", str(tmp_path)]) == 2
    assert main(["upgrade", "numpy>=2", str(tmp_path / "none.py")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_code_is_diagnosed_with_what_is_installed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "freeze.txt").write_text("numpy==2.1.0\n", encoding="utf-8")
    (tmp_path / "a.py").write_text("import numpy as np\nx = np.Inf\ny = np.Inf\n", encoding="utf-8")
    call = ["diagnose", "--from", str(tmp_path / "freeze.txt"), "--code", str(tmp_path / "a.py")]
    assert main([*call, "--format", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert found["id"] == "CODE-BREAKS"
    assert found["summary"].endswith("a.py:2 and 1 more")
    assert [remedy["pins"] for remedy in found["remedies"]] == [{}, {"numpy": "<2.0.0"}]


@pytest.mark.parametrize(
    "code",
    [
        "import torch\nx = torch.load('x.pt')\ny = torch.tensor(1)\ndef f(z: torch.tensor): ...",
        "import argparse, torch\np = argparse.ArgumentParser()\np.add_argument('--x')",
        "import transformers\ndef f(config):\n    return getattr(config, 'rope_theta', 1e4)",
        "from transformers import PreTrainedTokenizerBase\ndef f(t: PreTrainedTokenizerBase):\n"
        "    return t('x', add_special_tokens=False)",
        "from transformers import PreTrainedConfig\nclass C(PreTrainedConfig):\n"
        "    def __init__(self, **kw):\n        super().__init__(**kw)",
        "from dataclasses import dataclass\nfrom transformers import TrainingArguments\n@dataclass\n"
        "class A(TrainingArguments):\n    group_by_length: bool = False\nA(group_by_length=True)",
        "import trl\ntrl.GRPOConfig(seed=1, per_device_train_batch_size=1)\nkwargs = {'seed': 1}",
        "from transformers import LlamaConfig\nLlamaConfig(num_hidden_layers=1)",
        "from PIL import Image\nx = Image.LANCZOS",
        "import pandas as pd\ndef f(i: pd.DatetimeIndex):\n    return i.hour",
        "import numpy as np\nx = np.round(1.25, 1)",
        "from pytorch_lightning import LightningModule, seed_everything\nclass M(LightningModule):\n"
        "    def training_step(self, batch): ...",
        "import gradio as gr\ngr.Button().click(print, show_progress='hidden')",
    ],
)
def test_code_that_runs_with_what_is_installed_breaks_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    (tmp_path / "freeze.txt").write_text(
        "torch==2.10.0\ntransformers==5.10.1\ntrl==1.7.1\npillow==12.2.0\npandas==2.3.2\nnumpy==2.2.6\n"
        "pytorch-lightning==2.5.5\ngradio==6.17.3\n"
    )
    (tmp_path / "a.py").write_text(code)
    main(
        [
            "diagnose",
            "--from",
            str(tmp_path / "freeze.txt"),
            "--code",
            str(tmp_path / "a.py"),
            "--format",
            "json",
        ]
    )
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [one["summary"] for one in findings if one["id"] == "CODE-BREAKS"] == []


@pytest.mark.parametrize(
    "code",
    [
        "import numpy as np\nx = np.random.rand(3)",
        "import numpy.typing\ny = numpy.typing.NDArray",
        "from numpy.typing import NDArray\nfrom numpy import random, linalg",
    ],
)
def test_what_a_package_makes_up_or_brings_from_elsewhere_stands(code: str) -> None:
    assert told(code) == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import transformers\ndef f(args):\n    print(args.save_safetensors)", [".save_safetensors"]),
        ("def f(args):\n    print(args.save_safetensors)", []),
        (
            "import transformers\ndef f(m):\n    m.save_pretrained('x', safe_serialization=True)",
            ["save_pretrained(safe_serialization)"],
        ),
        ("import transformers\ndef f(t):\n    return t.sep_token_id + t.pad_token_id", []),
        ("def f(t, c):\n    return t.apply_chat_template(c)", ["apply_chat_template() without"]),
        ("def f(t, c):\n    return t.apply_chat_template(c, tokenize=False)", []),
        ("def f(t, c):\n    return t.apply_chat_template(c, return_dict=True)", []),
        ("def f(t, c, k):\n    return t.apply_chat_template(c, **k)", []),
    ],
)
def test_telling_names_are_judged_though_nothing_tells_whose_they_are(code: str, found: list[str]) -> None:
    names = [one.name for one in breaks(code)]
    assert len(names) == len(found)
    assert all(name.startswith(start) for name, start in zip(names, found, strict=True))
    assert after(code) == code


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import numpy as np\nnp.array([1], copy=False)", ["numpy.array(copy)"]),
        ("import numpy as np\nnp.array([1], copy=True)", []),
        ("import numpy as np\nf(1).itemset(0, 1)", [".itemset()"]),
        ("import numpy as np\nx = np.zeros(3).dtype.newbyteorder('<')", []),
        ("import numpy as np\nnp.lib.function_base.interp", ["numpy.lib.function_base"]),
        ("import transformers\ndef f(m):\n    m.get_head_mask(None, 1)", [".get_head_mask()"]),
        ("import transformers\ndef f(t):\n    t.batch_encode_plus(['a'])", [".batch_encode_plus()"]),
        ("from transformers import Trainer\nclass T(Trainer):\n    def __init__(self, x, **kw):\n"
         "        super().__init__(**kw)\nT(x=1, tokenizer=None)", ["transformers.Trainer(tokenizer)"]),
        ("from transformers import Trainer\nclass T(Trainer):\n    def __init__(self, tokenizer, **kw):\n"
         "        super().__init__(**kw)\nT(tokenizer=None)", []),
        ("from transformers import AutoTokenizer as A\nA.from_pretrained('x', model_max_length=1)", []),
        ("from transformers import DynamicCache\nDynamicCache.from_legacy_cache(1)",
         ["transformers.DynamicCache.from_legacy_cache"]),
        ("from transformers import PreTrainedTokenizer\ndef f(t: PreTrainedTokenizer):\n"
         "    t.additional_special_tokens", ["transformers.PreTrainedTokenizer.additional_special_tokens"]),
        ("from transformers import PreTrainedModel as P\nclass M(P):\n    def _init_weights(self, m):\n"
         "        m.q.weight.data.normal_(mean=0.0)\n        m.weight.data.zero_()\n"
         "        torch.nn.init.zeros_(m.k)",
         ["transformers.PreTrainedModel._init_weights(data)"]),
        ("from transformers import PreTrainedModel as P\nclass M(P):\n    def _init_weights(self, m):\n"
         "        data = m.weight.data\n        data.zero_()", []),
        ("from transformers import PreTrainedModel as P\nclass M(P):\n    _tied_weights_keys = ['a', 'b']",
         ["transformers.PreTrainedModel._tied_weights_keys(list)"]),
        ("from transformers import PreTrainedModel as P\nclass M(P):\n    _tied_weights_keys = {}", []),
        ("from transformers import Qwen2VLModel as Q\nclass M(Q):\n    def f(self):\n"
         "        return self.config.hidden_size, self.config.text_config.hidden_size",
         ["transformers.Qwen2VLConfig.hidden_size"]),
        ("P = {'a': 'transformers.deepspeed:HfDeepSpeedConfig', 'b': 'transformers.models.bert:X'}",
         ["transformers.deepspeed"]),
    ],
)  # fmt: skip
def test_methods_modules_and_values_that_went_are_told(code: str, found: list[str]) -> None:
    assert sorted(name for _, name, _ in told(code)) == sorted(found)


def test_a_module_that_made_up_names_in_one_release_alone_is_closed_in_the_next() -> None:
    code = "from vllm.utils import FlexibleArgumentParser\nfrom vllm import LLM\n"
    read = next(read_cells([f"{code}LLM('x', use_v2_block_manager=1)"]))
    moves = {"vllm": Move(Version("0.15.0"))}
    assert read is not None
    names = [one.name for one in Judge(load_matrix(), moves).breaks(read.uses)]
    assert names == ["vllm.utils.FlexibleArgumentParser", "vllm.LLM(use_v2_block_manager)"]


VLLM = "from vllm import LLM\nfrom vllm.config import VllmConfig\n"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("LLM('x', task='embed', max_num_seqs=4)", ["vllm.LLM(task)"]),
        ("LLM('x').generate(prompt_token_ids=[1])", ["vllm.LLM.generate(prompt_token_ids)"]),
        ("def f(c: VllmConfig):\n    return c.model_config.task, c.model_config.dtype",
         ["vllm.ModelConfig.task"]),
        ("import mock\nif here:\n    from vllm import LLM as L\nelse:\n    L = mock.Mock()\n"
         "L('x').generate(prompt_token_ids=[1])", ["vllm.LLM.generate(prompt_token_ids)"]),
        ("class A(LLM): ...\nclass B(A): ...\nC = A if x else B\nC('x', task='embed')", ["vllm.LLM(task)"]),
    ],
)  # fmt: skip
def test_settings_that_a_class_hands_on_are_judged(code: str, found: list[str]) -> None:
    read = next(read_cells([f"{VLLM}{code}"]))
    assert read is not None
    assert [
        one.name for one in Judge(load_matrix(), {"vllm": Move(Version("0.16.0"))}).breaks(read.uses)
    ] == found


def test_the_options_in_a_commands_words_are_judged(tmp_path: Path) -> None:
    words = '["--model", m, "--served_model_name", n, "--task", t, "--max-num-seqs", "4"]'
    (tmp_path / "serve.py").write_text(f"run({words})\nparse(['--task', '--mine', '--yours'])\n")
    judged = judge_paths(load_matrix(), {"vllm": Move(Version("0.16.0"))}, [str(tmp_path)])
    assert [(one.told.name, one.told.use.place.line) for one in judged.breaks] == [("vllm: task", 1)]


def test_requirements_and_variables_that_the_release_leaves_behind_are_told(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        'dependencies = ["transformers[torch]>=4.40,<5", "numpy>=1.2"]\nnumpy = { version = "^1.2" }\n'
    )
    (tmp_path / "requirements.txt").write_text("# numpy<2\nnumpy==1.26.4 ; x\ntransformers\n")
    (tmp_path / "environment.yml").write_text("- numpy=1.26\n- python=3.10\n")
    (tmp_path / "run.sh").write_text(
        "export VLLM_USE_V1=0\nexport VLLM_LOGGING_LEVEL=1\nexport HF_ENDPOINT=x\n"
    )
    moves = MOVES | {"vllm": Move(Version("0.15.0"))}
    judged = judge_paths(load_matrix(), moves, [str(tmp_path)])
    assert sorted((Path(f.file).name, f.told.use.place.line, f.told.name) for f in judged.breaks) == [
        ("environment.yml", 1, "numpy==1.26.*"),
        ("pyproject.toml", 1, "transformers<5,>=4.40"),
        ("pyproject.toml", 2, "numpy<2,>=1.2"),
        ("requirements.txt", 2, "numpy==1.26.4"),
        ("run.sh", 1, "VLLM_USE_V1"),
    ]


def test_a_method_that_the_code_defines_itself_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import transformers\ndef f(m):\n    return m.get_head_mask(None)\n")
    assert judge_paths(load_matrix(), MOVES, [str(tmp_path)]).breaks
    (tmp_path / "b.py").write_text("class M:\n    def get_head_mask(self, x): ...\n")
    assert not judge_paths(load_matrix(), MOVES, [str(tmp_path)]).breaks


def test_a_call_that_gives_nothing_is_no_call_of_the_codes_own_method_that_needs_something(
    tmp_path: Path,
) -> None:
    own = "class Beam:\n    def ptp(self, key, unit=None): ...\n"
    (tmp_path / "a.py").write_text(
        f"import numpy as np\n{own}def f(z):\n    z.ptp('x')\n    return z.ptp()\n"
    )
    judged = judge_paths(load_matrix(), {"numpy": Move(Version("2.0.0"))}, [str(tmp_path)])
    assert [one.told.use.place.line for one in judged.breaks] == [6]


def test_what_derives_from_a_librarys_class_is_judged_where_nothing_names_the_library(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("from transformers import Trainer\nclass Mine(Trainer): ...\n")
    (tmp_path / "use.py").write_text("from own import Mine\nMine(tokenizer=None)\n")
    (tmp_path / "other.py").write_text("def f(\n")
    judged = judge_paths(load_matrix(), MOVES, [str(tmp_path)])
    assert [(Path(one.file).name, one.told.name) for one in judged.breaks] == [
        ("use.py", "transformers.Trainer(tokenizer)")
    ]
    assert [Path(name).name for name in judged.unread] == ["other.py"]


def test_what_a_class_of_the_code_defines_and_what_a_library_redirects_stands(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "from sentence_transformers.SentenceTransformer import SentenceTransformer\n"
        "class Own(SentenceTransformer):\n    def skip_some(self): ...\nOwn.skip_some(None)\n"
        "def f(processor, own):\n    processor.apply_chat_template([1])\n"
        "    own.Some.from_pretrained('x', load_in_8bit=True)\n"
    )
    moves = MOVES | {"sentence-transformers": Move(Version("5.4.0"), Version("5.1.1"))}
    assert judge_paths(load_matrix(), moves, [str(tmp_path)]).breaks == []


@pytest.mark.parametrize(
    ("keys", "name", "found"),
    [
        ("'load_in_4bit': True", "kwargs", 1),
        ("'load_in_4bit': True, 'bnb_4bit_quant_type': 'nf4'", "kwargs", 0),
        ("'load_in_4bit': True", "quant_config_kwargs", 0),
    ],
)
def test_arguments_of_a_quantization_are_not_those_of_what_is_loaded(
    keys: str, name: str, found: int
) -> None:
    code = f"import transformers\ndef f(made):\n    {name} = {{{keys}}}\n    return made(**{name})\n"
    assert len(told(code)) == found


def test_a_pipeline_is_that_of_the_library_of_pipelines_where_the_text_uses_it() -> None:
    save = "def f(pipeline):\n    pipeline.save_pretrained('x', safe_serialization=True)\n"
    assert len(told(f"import transformers\n{save}")) == 1
    assert not told(f"import transformers, diffusers\n{save}")


def test_a_field_that_a_class_of_the_code_declares_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import transformers\ndef f(a):\n    return a.save_safetensors\n")
    assert judge_paths(load_matrix(), MOVES, [str(tmp_path)]).breaks
    (tmp_path / "b.py").write_text("class Kept:\n    save_safetensors: bool = True\n")
    assert not judge_paths(load_matrix(), MOVES, [str(tmp_path)]).breaks


def test_a_call_of_an_unknown_owner_is_diagnosed_as_the_librarys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text("import transformers\ndef f(m):\n    return m.get_head_mask(None)\n")
    (tmp_path / "freeze.txt").write_text("transformers==5.3.0\n")
    main(["diagnose", "--code", str(tmp_path / "a.py"), "--from", str(tmp_path / "freeze.txt")])
    assert ".get_head_mask() is gone since transformers 5" in capsys.readouterr().out


def judged_files(
    tmp_path: Path, files: dict[str, str], moves: dict[str, Move] = MOVES
) -> list[tuple[str, int, str]]:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = judge_paths(load_matrix(), moves, [str(tmp_path)]).breaks
    return sorted(
        (str(Path(f.file).relative_to(tmp_path)), f.told.use.place.line, f.told.name) for f in found
    )


HUB = {"huggingface-hub": Move(Version("1.0.0"), Version("0.35.3"))}
TF5 = {"transformers": Move(Version("5.0.0"), Version("4.57.6"))}


@pytest.mark.parametrize(
    ("code", "moves", "lines"),
    [
        (
            "import huggingface_hub, requests\ntry:\n    huggingface_hub.whoami()\n"
            "except (requests.exceptions.HTTPError, OSError):\n    pass\n",
            HUB,
            [4],
        ),
        (
            "import huggingface_hub, requests\ntry:\n    requests.get('x')\n"
            "except requests.HTTPError:\n    pass\n",
            HUB,
            [],
        ),
        ("from huggingface_hub import HfFolder, HfApi\n", HUB, [1]),
        (
            "from sentence_transformers import SentenceTransformerTrainingArguments as A\n"
            "A('x', overwrite_output_dir=True, fp16=True)\n",
            TF5,
            [2],
        ),
        (
            "from unittest import mock\nmock.patch('transformers.AutoModelForVision2Seq')\n"
            "mock.patch('transformers.AutoModel')\n",
            TF5,
            [2],
        ),
        (
            "import transformers\ndef f(x, m):\n    if transformers.__version__ >= '4.40' and m == 'a_v2':\n"
            "        return transformers.AutoModel\n    elif m:\n        return transformers.AdamW\n"
            "    return transformers.AutoModelForVision2Seq\n",
            TF5,
            [7],
        ),
        (
            "import transformers\nfrom packaging.version import parse\ndef f():\n"
            "    if parse(transformers.__version__) >= parse('5'):\n        return None\n"
            "    return transformers.AutoModelForVision2Seq\n",
            TF5,
            [],
        ),
        (
            "from transformers import PreTrainedTokenizerBase\ndef f(t: PreTrainedTokenizerBase):\n"
            "    try:\n        t.encode_plus('x')\n    except TypeError:\n        pass\n",
            TF5,
            [4],
        ),
        (
            "from transformers.models.gpt_oss import GptOssConfig\ndef f(c: GptOssConfig):\n"
            "    return c.pad_token_id\n",
            TF5,
            [],
        ),
        (
            "import gradio as gr\nkw = {}\nif gr.__version__ < '4':\n    kw = {'concurrency_count': 5}\n"
            "gr.Blocks().queue(**kw)\n",
            {"gradio": Move(Version("5.0.0"))},
            [],
        ),
        ("import trl\ntrl.SFTConfig(logging_steps=1)\n", {"trl": Move(Version("1.0.0"))}, []),
        ("import numpy as np\nnp.ptp([1])\nx.ptp()\n", {"numpy": Move(Version("2.0.0"))}, [3]),
        (
            "from torch.multiprocessing import Queue\nimport torch\ntorch.distributed.get_rank(None)\n",
            {"torch": Move(Version("2.10.0"), Version("2.9.1"))},
            [],
        ),
        (
            "from sentence_transformers.losses import SoftmaxLoss\n"
            "SoftmaxLoss(m, sentence_embedding_dimension=1)",
            {"sentence-transformers": Move(Version("5.4.0"), Version("5.1.1"))},
            [],
        ),
    ],
)
def test_what_is_known_of_other_libraries_and_of_questions(
    tmp_path: Path, code: str, moves: dict[str, Move], lines: list[int]
) -> None:
    assert [line for _, line, _ in judged_files(tmp_path, {"a.py": code}, moves)] == lines


def test_what_is_written_for_another_release_or_an_old_python_is_not_judged(tmp_path: Path) -> None:
    moved = "from transformers import AutoModelForVision2Seq\n"
    files = {
        "other/transformers_4_50/a.py": moved,
        "other/transformers_v5_0/a.py": moved,
        "constraints.txt": "transformers==4.9; python_version == '3.7'\ntransformers==4.57\n",
    }
    found = [(name, line) for name, line, _ in judged_files(tmp_path, files, TF5)]
    assert found == [("constraints.txt", 2), ("other/transformers_v5_0/a.py", 1)]


def test_a_module_that_went_takes_along_what_it_made_up(tmp_path: Path) -> None:
    numpy = {"numpy": Move(Version("2.0.0"), Version("1.26.4"))}
    code = {"a.py": "from numpy.lib.function_base import _calculate_shapes\n"}
    assert [line for _, line, _ in judged_files(tmp_path, code, numpy)] == [1]


def test_a_model_that_nothing_loads_need_not_be_made_as_the_loader_asks(tmp_path: Path) -> None:
    model = "from transformers import PreTrainedModel\nclass A(PreTrainedModel):\n"
    made = "    def __init__(self, c):\n        super().__init__(c)\n        self.x = 1\n"
    assert judged_files(tmp_path, {"a.py": model + made}, TF5) == []
    files = {"a.py": model + made, "b.py": "from a import A\nA.from_pretrained('x')\n"}
    assert [(name, line) for name, line, _ in judged_files(tmp_path, files, TF5)] == [("a.py", 3)]


MINE = "from transformers import Trainer\nclass Mine(Trainer):\n    pass\n"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (
            {
                "pkg/__init__.py": "from .base import Mine\n",
                "pkg/base.py": MINE,
                "pkg/sub.py": "from pkg import Mine\nclass Sub(Mine):\n"
                "    def compute_loss(self, model, inputs): ...\n"
                "    def f(self):\n        return self.tokenizer\n",
                "run.py": "from pkg.sub import Sub as S\nS(tokenizer=None)\n",
            },
            [
                ("pkg/sub.py", 3, "transformers.Trainer.compute_loss() without num_items_in_batch"),
                ("pkg/sub.py", 5, "transformers.Trainer.tokenizer"),
                ("run.py", 2, "transformers.Trainer(tokenizer)"),
            ],
        ),
        (
            {
                "own.py": f"{MINE}Other = Mine\nLoop = Loop\n",
                "run.py": "from own import Other, Loop\nOther(tokenizer=None)\nLoop(tokenizer=None)\n",
            },
            [("run.py", 2, "transformers.Trainer(tokenizer)")],
        ),
        (
            {
                "mix.py": f"{MINE}class Own:\n    tokenizer = None\n",
                "sub.py": "from mix import Mine, Own\nclass Sub(Own, Mine):\n    def f(self):\n"
                "        return self.tokenizer\n",
            },
            [],
        ),
        (
            {
                "mix.py": MINE,
                "sub.py": "from mix import Mine\nfrom other import Base\nclass Sub(Base, Mine):\n"
                "    def f(self):\n        return self.tokenizer\n",
            },
            [],
        ),
        (
            {
                "own.py": f"{MINE}class Kept(Mine):\n    def __init__(self, tokenizer):\n"
                "        super().__init__(model=tokenizer)\n",
                "run.py": "from own import Kept\nKept(tokenizer=None)\n",
            },
            [],
        ),
        (
            {
                "own.py": f"{MINE}",
                "run.py": "from own import Mine\nclass M(Mine):\n    def f(self):\n"
                "        return self.args.no_cuda\n",
            },
            [("run.py", 4, "transformers.TrainingArguments.no_cuda")],
        ),
    ],
)
def test_classes_are_followed_from_file_to_file(
    tmp_path: Path, files: dict[str, str], found: list[tuple[str, int, str]]
) -> None:
    assert judged_files(tmp_path, files) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("try:\n    from transformers import AdamW\nexcept ImportError:\n    pass\n", 1),
        ("try:\n    from transformers import AdamW\nexcept ImportError as e:\n    raise E from e\n", 1),
        ("try:\n    from transformers import AdamW\nexcept ImportError:\n    AdamW = None\n", 0),
        ("try:\n    from transformers import AdamW\nexcept Exception:\n    pass\n", 1),
        ("try:\n    from transformers import AdamW\nexcept Exception:\n    AdamW = None\n", 0),
        ("try:\n    from transformers import AdamW\nexcept ImportError:\n    pass\nAdamW = 1\n", 0),
        ("try:\n    from transformers import AdamW\nexcept ModuleNotFoundError:\n    AdamW = None\n", 1),
        ("try:\n    from transformers import AdamW\nexcept ImportError:\n    pytest.skip('old')\n", 0),
        ("try:\n    from transformers import AdamW\nexcept ImportError:\n    print('skipped')\n", 1),
        ("try:\n    from transformers import AdamW\nexcept ImportError:\n"
         "    from transformers.optimization import AdamW\n", 2),
        ("try:\n    from transformers import AutoModel\nexcept ImportError:\n"
         "    from transformers import AdamW\n", 0),
        ("try:\n    from transformers import AdamW\nexcept ImportError:\n    try:\n"
         "        from transformers.optimization import AdamW\n    except ImportError:\n"
         "        AdamW = None\n", 0),
        ("import numpy as np\ntry:\n    np.Inf\nexcept ImportError:\n    x = 1\n", 1),
        ("import numpy as np\ntry:\n    np.Inf\nexcept AttributeError:\n    x = 1\n", 0),
        ("import numpy as np\ntry:\n" + "    f()\n" * 6 + "    np.Inf\nexcept Exception:\n    x = 1\n", 1),
        ("import transformers as t\nif Version(t.__version__) < Version('5'):\n    t.AdamW\n", 0),
        ("import transformers as t\nif Version(t.__version__) >= Version('5'):\n    t.AdamW\n", 1),
        ("import transformers as t\nOLD = parse('4.60') > parse(t.__version__)\nif OLD:\n    t.AdamW\nelse:\n"
         "    t.AdamW\n", 1),
        ("import transformers as t\nif int(t.__version__.split('.')[0]) < 5:\n    t.AdamW\n", 0),
        ("import transformers as t\nif not is_transformers_version('<', '5'):\n    t.AdamW\n", 1),
        ("import transformers as t\nif version('torch') >= '2':\n    t.AdamW\n", 0),
    ],
)  # fmt: skip
def test_what_cares_for_an_absence_and_what_does_not(code: str, found: int) -> None:
    assert len(told(code)) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("class A(LlamaPreTrainedModel):\n    def __init__(self, c):\n        super().__init__(c)\n"
         "        self.head = 1\n", 1),
        ("class A(LlamaPreTrainedModel):\n    def __init__(self, c):\n        super().__init__(c)\n"
         "        self.head = 1\n        self.post_init()\n", 0),
        ("class A(LlamaPreTrainedModel):\n    def __init__(self, *a):\n        super().__init__(*a)\n", 0),
        ("def f(base_pretrained_model):\n    class A(base_pretrained_model):\n"
         "        def __init__(self, c):\n            self.x = 1\n    return A\n", 1),
        ("class A(LlamaPreTrainedModel):\n    def __init__(self, c):\n        self.x = 1\n"
         "        self.post_init()\nclass B(A):\n    def __init__(self, c):\n        self.y = 1\n", 0),
    ],
)  # fmt: skip
def test_a_model_calls_what_its_base_no_longer_does(code: str, found: int) -> None:
    start = "from transformers.models.llama.modeling_llama import LlamaPreTrainedModel\n"
    assert len(told(start + code)) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("t.apply_chat_template(c, **self.cfg.chat_template_kwargs)", 1),
        ("t.apply_chat_template(c, **options)", 0),
        ("t.apply_chat_template(c, tokenize=wanted)", 0),
        ("k = {'tokenize': True}\nk['x'] = 1\nt.apply_chat_template(c, **k)", 1),
        ("k = {'tokenize': True}\nk['return_dict'] = False\nt.apply_chat_template(c, **k)", 0),
        ("k = {'tokenize': False}\nt.apply_chat_template(c, **k)", 0),
    ],
)
def test_what_a_call_is_given_is_read_off_its_dictionaries(code: str, found: int) -> None:
    assert len(told(code)) == found


@pytest.mark.parametrize(
    ("asking", "found"),
    [
        ("getattr(transformers, name)", 1),
        ("getattr(importlib.import_module(library), name)", 1),
        ("getattr(self, name)", 0),
    ],
)
def test_a_class_that_is_named_as_a_text_is_told_where_names_are_asked_for(asking: str, found: int) -> None:
    table = "TABLE = {'image-to-text': ('AutoModelForVision2Seq', 'AutoModelForCausalLM')}\n"
    code = f"import importlib, transformers\n{table}def load(self, library, name):\n    return {asking}\n"
    assert [name for _, name, _ in told(code)] == ["transformers.AutoModelForVision2Seq"] * found


def test_what_tests_define_is_theirs_and_a_tokenizer_is_the_librarys(tmp_path: Path) -> None:
    call = "def f(tokenizer, lm, c):\n    lm.apply_chat_template(c)\n    tokenizer.apply_chat_template(c)\n"
    mock = "class Fake:\n    def apply_chat_template(self, c): ...\n"
    files = {"a.py": call, "tests/test_a.py": f"{mock}{call}"}
    assert [(name, line) for name, line, _ in judged_files(tmp_path, files)] == [
        ("a.py", 2), ("a.py", 3), ("tests/test_a.py", 5),
    ]  # fmt: skip
    assert [(name, line) for name, line, _ in judged_files(tmp_path, {"b.py": mock})] == [
        ("a.py", 3), ("tests/test_a.py", 5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "found"), [("a, b", 1), ("a, b, c", 0), ("a, b, device=c", 0), ("a, **c", 0)]
)
def test_an_argument_that_became_needed_is_told(tmp_path: Path, call: str, found: int) -> None:
    code = f"from transformers import Trainer\ndef f(t: Trainer):\n    t.get_batch_samples({call})\n"
    moves = {"transformers": Move(Version("4.50.0"), Version("4.49.0"))}
    assert len(judged_files(tmp_path, {"a.py": code}, moves)) == found


def test_settings_in_lists_and_dictionaries_of_arguments_are_told(tmp_path: Path) -> None:
    names = [
        "output_dir",
        "learning_rate",
        "weight_decay",
        "max_grad_norm",
        "seed",
        "save_safetensors",
        "mine",
    ]
    code = f"for a in {names}:\n    pass\n" + "".join(
        f"{name}['save_safetensors'] = 1\n" for name in ("training_args_kwargs", "other")
    )
    assert [(line, name) for _, line, name in judged_files(tmp_path, {"a.py": code})] == [
        (1, "transformers: save_safetensors"), (3, "transformers: save_safetensors"),
    ]  # fmt: skip
    put = "".join(f"training_args_kwargs['{name}'] = 1\n" for name in ("remove_unused_columns", "rpo_alpha"))
    (tmp_path / "a.py").write_text(put)
    judged = judge_paths(load_matrix(), {"trl": Move(Version("0.29.0"))}, [str(tmp_path)])
    assert [found.told.name for found in judged.breaks] == ["trl: rpo_alpha"]
    (tmp_path / "a.py").write_text("import trl\ntrl.GRPOConfig(gradient_checkpointing_kwargs={})\n")
    assert not judge_paths(load_matrix(), {"trl": Move(Version("1.7.1"))}, [str(tmp_path)]).breaks


def test_what_a_project_takes_and_declares_itself_is_its_own(tmp_path: Path) -> None:
    call = "import transformers\ndef f(m, peft_model, v):\n    m.save_pretrained(v, safe_serialization=v)\n"
    own = "def save_pretrained(self, safe_serialization): ...\n"
    other = call.replace("import ", "import peft, ").replace(" m.save", " peft_model.save")
    keys = "output_dir: a\nlearning_rate: 1\nnum_train_epochs: 1\noverwrite_output_dir: true\n"
    files = {"a.py": call, "b.py": f"{call}{own}", "c.py": other, "d.yaml": keys}
    assert [(name, line) for name, line, _ in judged_files(tmp_path, files)] == [("a.py", 3), ("d.yaml", 4)]
    declared = {"e.py": "class Mine:\n    overwrite_output_dir: bool = False\n"}
    assert [(name, line) for name, line, _ in judged_files(tmp_path, declared)] == [("a.py", 3)]


def test_an_argument_on_its_way_to_the_library_is_told(tmp_path: Path) -> None:
    code = (
        "from transformers import AutoModel\nfrom own import load, load_named\ndef f(kwargs, table, v):\n"
        "    kwargs['torch_dtype'] = v\n    kwargs.setdefault('torch_dtype', v)\n"
        "    kwargs.update(torch_dtype=v)\n"
        "    load('a', torch_dtype=v)\n    table['torch_dtype'] = v\n    load_named('a', torch_dtype=v)\n"
    )
    files = {"a.py": code, "own.py": "def load(name, **rest): ...\ndef load_named(name, torch_dtype): ...\n"}
    found = [(line, name) for _, line, name in judged_files(tmp_path, files)]
    assert found == [(line, "transformers: torch_dtype") for line in (4, 5, 6, 7)]
    others = {"b.py": code.replace("import AutoModel", "import AutoModel\nimport diffusers")}
    assert judged_files(tmp_path, {**others, "own.py": files["own.py"], "a.py": ""}) == []


def test_a_key_that_a_row_renames_is_told_though_the_release_still_takes_it(tmp_path: Path) -> None:
    keys = "output_dir: a\nlearning_rate: 1\nnum_train_epochs: 1\nwarmup_ratio: 0.1\n"
    moves = {"transformers": Move(Version("5.5.0"), Version("4.57.6"))}
    assert judged_files(tmp_path, {"d.yaml": keys}, moves) == [("d.yaml", 4, "transformers: warmup_ratio")]


def test_what_a_dictionary_is_given_for_another_release_is_left_out() -> None:
    code = (
        "import transformers as t\nk = {'model': 1}\nif parse(t.__version__) < parse('5'):\n"
        "    k['tokenizer'] = 1\nt.Trainer(**k)\n"
    )
    assert told(code) == []


def test_a_requirement_that_code_checks_is_told(tmp_path: Path) -> None:
    code = "check_version('transformers>=4.45.0,<4.48.0')\nprint('transformers<4')\n"
    assert [line for _, line, _ in judged_files(tmp_path, {"a.py": code})] == [1]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from transformers import Gemma3Processor as P\nclass Mine(P):\n"
         "    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)\n",
         ["transformers.Gemma3Processor.__init__(*)() without tokenizer"]),
        ("from transformers import Gemma3Processor as P\nclass Mine(P):\n"
         "    def __init__(self, image_processor, tokenizer, *args):\n        pass\n", []),
        ("from transformers import PreTrainedConfig as C\nclass Mine(C):\n"
         "    def f(self):\n        return super().rope_theta\n",
         ["transformers.PreTrainedConfig.rope_theta"]),
        ("import transformers\ndef f(self):\n    self.tokenizer.additional_special_tokens[0]\n",
         [".additional_special_tokens"]),
        ("from transformers.models.auto import AutoConfig\nAutoConfig.from_pretrained('x').rope_scaling\n",
         ["transformers.PreTrainedConfig.rope_scaling"]),
        ("import transformers\ndef f(m):\n    m.save_pretrained('x', safe_serialization=True)\n",
         ["save_pretrained(safe_serialization)"]),
        ("import transformers\nfrom mine import make\nm = make()\ndef f(ms):\n"
         "    return [m.save_pretrained('x', safe_serialization=True) for m in ms]\n",
         ["save_pretrained(safe_serialization)"]),
        ("import transformers\nfrom diffusers import A, B\nmade = A if 1 else B\nm = made()\n"
         "m.save_pretrained('x', safe_serialization=True)\n", []),
    ],
)  # fmt: skip
def test_whose_a_part_is_told_by_who_made_it(code: str, found: list[str]) -> None:
    assert [name for _, name, _ in told(code)] == found


@pytest.mark.parametrize(
    ("tried", "found"), [("api.delete_repo('x')", 1), ("requests.get('x')", 0), ("f('x')", 0)]
)
def test_errors_are_those_of_what_is_tried(tmp_path: Path, tried: str, found: int) -> None:
    code = (
        f"import huggingface_hub, requests\nrequests.put('y')\ntry:\n    {tried}\n"
        "except requests.HTTPError:\n    pass\n"
    )
    moves = {"huggingface-hub": Move(Version("1.0.0"), Version("0.36.0"))}
    assert len(judged_files(tmp_path, {"a.py": code}, moves)) == found


def test_what_every_release_takes_and_warns_of_breaks_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "from transformers import AutoModel\nAutoModel.from_pretrained('x', torch_dtype='auto')\n"
    )
    told = judge_paths(load_matrix(), MOVES, [str(tmp_path)])
    assert [(one.told.replacement, one.told.since, one.told.warned) for one in told.breaks] == [
        ("dtype", "", True)
    ]
    assert not told.failing


@pytest.mark.parametrize(
    ("code", "old", "found"),
    [
        ("import vllm\nNEW = vllm.__version__ >= '0.9.2'\n", "0.9.2", 1),
        ("import vllm\nNEW = '0.9.2' < vllm.__version__\n", "0.9.2", 1),
        ("import vllm\nNEW = vllm.__version__ >= '0.9.2'\n", "0.10.0", 0),
        ("import vllm\nNEW = vllm.__version__ >= '0.10.0'\n", "0.9.2", 0),
        ("import vllm\nfrom packaging.version import parse as p\nNEW = p(vllm.__version__) >= p('0.9.2')\n",
         "0.9.2", 0),
        ("from importlib.metadata import version\nNEW = version('vllm') >= '0.9.2'\n", "0.9.2", 1),
    ],
)  # fmt: skip
def test_releases_that_are_compared_as_texts_are_told_where_the_order_turns(
    tmp_path: Path, code: str, old: str, found: int
) -> None:
    moves = {"vllm": Move(Version("0.10.1"), Version(old))}
    assert len(judged_files(tmp_path, {"a.py": code}, moves)) == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("x: Optional[int]", ["a default: a field that may be None is no longer None by itself"]),
        ("x: int | None = Field(description='d')",
         ["a default: a field that may be None is no longer None by itself"]),
        ("x: Optional[int] = None", []),
        ("x: Optional[int] = Field(None, description='d')", []),
        ("x: int", []),
        ("__root__: list[int]", ["a class of pydantic.RootModel, with the field root"]),
        ('a: str = Field("x", const=True)', ["an annotation Literal[...]"]),
        ('a: str = Field("x", regex="^x")', ["pattern"]),
        ("@root_validator\n    def f(cls, v): ...", ["model_validator, or skip_on_failure=True"]),
        ("@root_validator()\n    def f(cls, v): ...", ["model_validator, or skip_on_failure=True"]),
        ("@root_validator(pre=True)\n    def f(cls, v): ...", []),
        ("x = 4", ["an annotation: a value without one is no field"]),
        ("x = Field(4)", ["an annotation: a value without one is no field"]),
        ("_x = 4", []),
        ("x = staticmethod(len)", []),
    ],
)  # fmt: skip
def test_models_of_fields_are_judged_by_how_the_release_reads_them(
    tmp_path: Path, body: str, found: list[str]
) -> None:
    code = (
        "from typing import Optional\nfrom pydantic import BaseModel, Field, root_validator\n"
        f"class A(BaseModel):\n    {body}\n"
    )
    (tmp_path / "a.py").write_text(code)
    moves = {"pydantic": Move(Version("2.3.0"), Version("1.10.12"))}
    assert [b.told.replacement for b in judge_paths(load_matrix(), moves, [str(tmp_path)]).failing] == found
    installed = {"pydantic": Move(Version("2.3.0"))}
    told = judge_paths(load_matrix(), installed, [str(tmp_path)]).failing
    assert not any("None" in b.told.replacement for b in told)


def test_what_still_works_and_is_to_be_written_otherwise_is_warned_of(tmp_path: Path) -> None:
    code = "from pydantic import BaseModel\nclass A(BaseModel):\n    class Config:\n        frozen = True\n"
    (tmp_path / "a.py").write_text(code + "print(A().dict())\n")
    moves = {"pydantic": Move(Version("2.3.0"), Version("1.10.12"))}
    judged = judge_paths(load_matrix(), moves, [str(tmp_path)])
    assert [one.told.replacement for one in judged.breaks] == ["model_config, a ConfigDict", "model_dump"]
    assert judged.failing == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("    return m(x).past_key_values[0][0]\n", 1),
        ("    p = m(x).past_key_values\n    for k, v in p:\n        print(k)\n", 1),
        ("    return [k for k, v in m(x).past_key_values]\n", 1),
        ("    p = m(x).past_key_values\n    return p[0] if isinstance(p, tuple) else p.layers[0]\n", 0),
        ("    p = m(x).past_key_values\n    if isinstance(p, (tuple, list)):\n        return p[0]\n", 0),
        ("    for layer in m(x).past_key_values.layers:\n        print(layer)\n", 0),
        ("    return x[0]\n", 0),
    ],
)
def test_what_is_taken_apart_as_it_no_longer_can_be_is_told(code: str, found: int) -> None:
    assert len(told(f"import transformers\ndef f(m, x):\n{code}")) == found


def test_what_a_text_asks_of_itself_cares_for_members_alone_and_a_loggers_name_for_nothing() -> None:
    asked = "import transformers as t\nclass A:\n    def f(self, name):\n        if not hasattr(self, {}):\n"
    assert len(told(asked.format("name") + "            t.AdamW()\n")) == 1
    assert len(told(asked.format("'x'") + "            t.AutoModel.from_pretrained('x', use_auth_token=1)\n"))
    assert told("import logging, transformers\nlogging.getLogger('transformers.generation_utils')\n") == []
    assert len(told("import importlib\nimportlib.import_module('transformers.generation_utils')\n")) == 1


PYD2 = {"pydantic": Move(Version("2.10.6"), Version("1.10.21"))}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("env_settings import SettingsSourceCallable", 1),
        ("error_wrappers import ErrorList", 1),
        ("fields import Field", 0),
    ],
)
def test_a_module_that_passes_on_what_its_table_tells_lacks_the_rest(
    tmp_path: Path, name: str, found: int
) -> None:
    assert len(judged_files(tmp_path, {"a.py": f"from pydantic.{name}\n"}, PYD2)) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("    kept = []\n    for x in xs:\n        kept.append(A())\n"
         "    for one in kept:\n        one.dict()\n", 1),
        ("    kept = [A(), A()]\n    kept[0].dict()\n    kept[1:][0].dict()\n", 2),
        ("    kept = [A() for x in xs]\n    return [one.dict() for one in kept]\n", 1),
        ("    kept: list[A] = load()\n    kept[-1].dict()\n", 1),
        ("    kept = [A(), xs]\n    kept[0].dict()\n", 0),
        ("    a = A()\n    for a in xs:\n        a.dict()\n", 0),
    ],
)  # fmt: skip
def test_elements_of_lists_are_what_was_put_there(tmp_path: Path, code: str, found: int) -> None:
    head = "from pydantic import BaseModel\nclass A(BaseModel):\n    pass\n"
    (tmp_path / "a.py").write_text(f"{head}def f(xs):\n{code}")
    told = judge_paths(load_matrix(), PYD2, [str(tmp_path)]).breaks
    assert [one.told.replacement for one in told] == ["model_dump"] * found


TORCH = {"torch": Move(Version("2.6.0"), Version("2.5.1"))}


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("x = torch.load('a', map_location='cpu')", 1),
        ("x = torch.load('a', weights_only=True)", 0),
        ("x = torch.load('a', **kw)", 0),
        ("m.load_state_dict(torch.load('a'))", 0),
        ("x = torch.jit.load('a')", 0),
        ("x = json.load('a')", 0),
    ],
)
def test_a_function_that_answers_otherwise_without_an_argument_is_told_by_its_path(
    tmp_path: Path, call: str, found: int
) -> None:
    (tmp_path / "a.py").write_text(f"import json, torch\n{call}\n")
    told = judge_paths(load_matrix(), TORCH, [str(tmp_path)]).breaks
    assert [(one.told.since, one.told.certainty) for one in told] == [("2.6.0", Certainty.LIKELY)] * found


def test_a_function_that_hands_the_rest_on_takes_what_the_library_takes(tmp_path: Path) -> None:
    mix = (
        "class Mix:\n    @staticmethod\n    def fetch(*args, **kwargs):\n"
        "        from huggingface_hub import hf_hub_download\n"
        "        return hf_hub_download(*args, **kwargs)\n"
    )
    own = (
        "from huggingface_hub import hf_hub_download\ndef fetch(name, **rest):\n"
        "    return hf_hub_download(name, **rest)\ndef other(use_auth_token, **rest):\n"
        "    return hf_hub_download(use_auth_token, **rest)\n"
    )
    files = {
        "mix.py": f"{mix}    @classmethod\n    def load(cls):\n        cls.fetch(use_auth_token=1)\n",
        "own.py": own,
        "run.py": "from mix import Mix\nfrom own import fetch, other\nclass A(Mix):\n    def f(self):\n"
        "        self.fetch(use_auth_token=1)\nclass B(Mix):\n    def fetch(self, **kw): ...\n"
        "    def f(self):\n        self.fetch(use_auth_token=1)\n"
        "fetch(use_auth_token=1)\nother(use_auth_token=1)\n",
    }
    moves = {"huggingface-hub": Move(Version("1.0.0"), Version("0.36.0"))}
    assert [(name, line) for name, line, _ in judged_files(tmp_path, files, moves)] == [
        ("mix.py", 8),
        ("run.py", 5),
        ("run.py", 10),
    ]


def test_a_method_of_super_that_went_is_told(tmp_path: Path) -> None:
    code = (
        "import pytorch_lightning as pl\nclass M(pl.LightningModule):\n    def get_progress_bar_dict(self):\n"
        "        return super().get_progress_bar_dict()\n"
    )
    found = judged_files(tmp_path, {"a.py": code})
    assert ("a.py", 4) in [(name, line) for name, line, _ in found]


def test_methods_called_one_after_the_other_are_told_where_a_text_does_not_import_the_library(
    tmp_path: Path,
) -> None:
    other = "def g(x):\n    return x.newbyteorder()\n"
    files = {"a.py": f"def f(x):\n    return x.byteswap().newbyteorder()\n{other}", "b.py": "import numpy\n"}
    assert [(name, line) for name, line, _ in judged_files(tmp_path, files)] == [("a.py", 2)]


@pytest.mark.parametrize(("freq", "found"), [("M", 1), ("h", 0), ("H", 1), ("D", 0)])
def test_values_that_went_are_told_one_by_one(tmp_path: Path, freq: str, found: int) -> None:
    code = f"import pandas as pd\npd.date_range('2020', periods=3, freq='{freq}')\n"
    moves = {"pandas": Move(Version("3.0.0"), Version("2.1.0"))}
    assert len(judged_files(tmp_path, {"a.py": code}, moves)) == found


def test_arguments_of_a_class_that_is_made_by_new_are_not_those_of_its_annotations(tmp_path: Path) -> None:
    code = "import pandas as pd\npd.DatetimeIndex(['2020-01-01'], freq='D')\n"
    moves = {"pandas": Move(Version("3.0.0"), Version("1.5.3"))}
    assert judged_files(tmp_path, {"a.py": code}, moves) == []


@pytest.mark.parametrize(("base", "found"), [("", 1), ("(Base)", 0)])
def test_settings_in_the_body_of_a_plain_class_are_told(tmp_path: Path, base: str, found: int) -> None:
    names = ("output_dir", "do_train", "save_steps", "label_names", "logging_strategy", "evaluation_strategy")
    body = "".join(f"    {name} = 1\n" for name in names)
    files = {"a.py": f"import transformers\nclass Defaults{base}:\n{body}"}
    assert [line for _, line, _ in judged_files(tmp_path, files)] == [8] * found


def since_move(code: str, library: str, old: str, new: str) -> list[tuple[int, str, str]]:
    judge = Judge(load_matrix(), {library: Move(Version(new), Version(old))})
    read = next(read_cells([code], held=judge.held))
    assert read is not None
    return [(b.use.place.line, b.name, b.since) for b in judge.breaks(read.uses)]


@pytest.mark.parametrize(
    "reached",
    [
        "def f(c: VllmConfig):\n    c.compilation_config.pass_config.enable_fusion",
        "def f(c: 'VllmConfig'):\n    p = c.compilation_config.pass_config\n    p.enable_fusion",
        "class A:\n    c: VllmConfig\n    def f(self):\n"
        "        self.c.compilation_config.pass_config.enable_fusion",
        "def g() -> VllmConfig: ...\ng().compilation_config.pass_config.enable_fusion",
        "class A:\n    def g(self) -> VllmConfig: ...\n    def f(self):\n"
        "        self.g().compilation_config.pass_config.enable_fusion",
        "class A:\n    @property\n    def g(self) -> VllmConfig: ...\n    def f(self):\n"
        "        self.g.compilation_config.pass_config.enable_fusion",
        "async def f(c: VllmConfig):\n    (await c).compilation_config.pass_config.enable_fusion",
    ],
)
def test_members_are_followed_by_annotations(reached: str) -> None:
    code = f"from vllm.config import VllmConfig\n{reached}"
    found = [(name, since) for _, name, since in since_move(code, "vllm", "0.11.0", "0.15.0")]
    assert found == [("vllm.PassConfig.enable_fusion", "0.13.0")]
    assert not since_move(code, "vllm", "0.10.0", "0.11.0")


def test_a_name_that_its_old_module_only_passes_on_is_warned_of() -> None:
    judge = Judge(load_matrix(), {"vllm": Move(Version("0.11.2"), Version("0.11.0"))})
    read = next(read_cells(["from vllm.utils import FlexibleArgumentParser, get_open_port, random_uuid"]))
    assert read is not None
    found = [(one.use.name, one.warned, one.since, one.replacement) for one in judge.breaks(read.uses)]
    assert found == [
        ("FlexibleArgumentParser", False, "0.11.1", "vllm.utils.argparse_utils.FlexibleArgumentParser"),
        ("get_open_port", True, "0.14.0", "vllm.utils.network_utils.get_open_port"),
    ]
    assert not since_move("from vllm.utils import get_open_port", "vllm", "0.11.1", "0.11.2")


def test_an_inner_method_is_gone_whatever_a_base_from_elsewhere_has() -> None:
    code = (
        "from trl import DPOTrainer\nclass M(DPOTrainer):\n"
        "    def f(self):\n        self._prepare_deepspeed(1)"
    )
    assert since_move(code, "trl", "0.9.6", "0.24.0") == [(4, "trl.DPOTrainer._prepare_deepspeed", "0.18.0")]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("df = values.append(row)", True),
        ("values.append(row).sort_index()", True),
        ("values.append(row)", False),
        ("f = lambda: values.append(row)", False),
        ("df = values.append", False),
    ],
)
def test_what_answers_append_is_no_list(line: str, found: bool) -> None:
    code = f"import pandas as pd\ndef f(values, row):\n    {line}"
    names = [name for _, name, _ in since_move(code, "pandas", "1.5.3", "2.0.3")]
    assert names == ([".append()"] if found else [])


def test_a_model_that_is_moved_is_still_the_model_and_what_else_is_given_hides_no_call() -> None:
    code = (
        "def f(x):\n    from transformers import CLIPModel\n"
        "    m = CLIPModel.from_pretrained('x').to('cuda')\n    m.get_text_features(**x)"
    )
    found = since_move(code, "transformers", "4.57.3", "5.0.0")
    assert [(line, since) for line, _, since in found] == [(4, "5.0.0")]
    unsaid = "import transformers\ndef f(t, k):\n    return t.apply_chat_template([], **k)"
    assert not since_move(unsaid, "transformers", "4.57.3", "5.0.0")


def test_an_import_that_is_cared_for_still_tells_whose_methods_are_called() -> None:
    code = (
        "try:\n    from transformers import CLIPModel\nexcept ImportError:\n    CLIPModel = None\n"
        "def f(m):\n    m.get_text_features()"
    )
    assert [line for line, *_ in since_move(code, "transformers", "4.57.3", "5.0.0")] == [6]


@pytest.mark.parametrize(("optimizer", "found"), [("optimizer_idx", True), ("optimizer_idx=None", False)])
def test_an_overriding_method_must_not_need_what_is_given_no_more(optimizer: str, found: bool) -> None:
    rest = "metric=None" if "=" in optimizer else "metric"
    code = (
        "import pytorch_lightning as pl\nclass S(pl.LightningModule):\n"
        f"    def lr_scheduler_step(self, scheduler, {optimizer}, {rest}): ..."
    )
    names = [name for _, name, _ in since_move(code, "pytorch-lightning", "1.7.7", "2.0.9")]
    said = "pytorch_lightning.LightningModule.lr_scheduler_step() with optimizer_idx"
    assert names == ([said] if found else [])


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return hub.hf_hub_download(a, **kw)", True),
        ("try:\n        b = hub.hf_hub_download(a, **kw)\n    finally:\n        return a", True),
        ("t = kw.pop('proxies')\n    b = hub.hf_hub_download(a, **kw)\n    return b", False),
        ("b = hub.hf_hub_download(a, **kw)\n    return other(**kw)", False),
    ],
)
def test_a_function_hands_on_what_it_does_not_take_itself(body: str, found: bool) -> None:
    code = f"import huggingface_hub as hub\ndef f(a, **kw):\n    {body}\nf(1, proxies=2)"
    lines = [line for line, *_ in since_move(code, "huggingface-hub", "0.35.3", "1.0.0")]
    assert lines == ([code.count("\n") + 1] if found else [])


def test_what_is_mixed_with_a_library_s_class_has_its_members() -> None:
    mixed = "class Mixed:\n    def f(self):\n        self.get_batch_samples(1, 2)\n"
    code = f"from transformers import Trainer\n{mixed}"
    assert not since_move(code, "transformers", "4.49.0", "4.51.0")
    told = since_move(f"{code}class Own(Mixed, Trainer): ...", "transformers", "4.49.0", "4.51.0")
    assert [line for line, *_ in told] == [4]


def test_a_class_has_what_its_own_library_imports_for_it() -> None:
    code = "from trl import SFTTrainer\nclass Own(SFTTrainer):\n    def f(self):\n        self.tokenizer"
    assert since_move(code, "transformers", "4.57.6", "5.0.0") == [
        (4, "transformers.Trainer.tokenizer", "5.0.0")
    ]


def test_long_names_among_settings_tell_where_half_of_them_are_the_framework_s(tmp_path: Path) -> None:
    known = "num_train_epochs learning_rate weight_decay logging_steps save_steps max_grad_norm"
    keys = [*known.split(), "include_tokens_per_second", "save_safetensors", *"abcdef"]
    files = {"build/a.py": f"import transformers\nx = {dict.fromkeys(keys, 1)}\n", "dist/a.json": "{}"}
    found = judged_files(tmp_path, files, {"transformers": Move(Version("5.2.0"), Version("4.55.4"))})
    assert [name for *_, name in found] == ["transformers: include_tokens_per_second"]


def lines_told(code: str, library: str, old: str, new: str) -> list[tuple[int, str]]:
    read = next(read_cells([code]))
    assert read is not None
    judge = Judge(load_matrix(), {library: Move(Version(new), Version(old))})
    return [(b.use.place.line, b.short) for b in judge.breaks(read.uses)]


def test_what_isinstance_tells_of_a_name_is_what_it_is() -> None:
    code = (
        "from transformers import MllamaForConditionalGeneration as M\n"
        "def one(model):\n"
        "    if isinstance(model, M) and model.training:\n"
        "        model.language_model.vocab_size = 1\n"
        "    model.language_model\n"
        "def two(model):\n"
        "    if not isinstance(model, M):\n"
        "        return model.language_model\n"
        "    return model.language_model\n"
        "def three(model):\n"
        "    assert isinstance(model, M)\n"
        "    model.language_model\n"
    )
    told = lines_told(code, "transformers", "4.57.6", "5.2.0")
    assert told == [(4, "language_model"), (9, "language_model"), (12, "language_model")]


def test_an_import_is_told_where_what_stands_in_for_it_fails_too() -> None:
    code = (
        "try:\n    from transformers.utils.fx import HFTracer\n"
        "except ModuleNotFoundError:\n"
        "    from transformers.utils.fx import gen_constructor_wrapper as HFTracer\n"
    )
    assert [line for line, _ in lines_told(code, "transformers", "4.57.6", "5.0.0")] == [2, 4]


def test_a_handler_of_type_errors_cares_for_no_method_that_is_gone() -> None:
    code = (
        "import transformers\ndef of(model):\n    try:\n"
        "        return model.config._get_non_default_generation_parameters()\n"
        "    except (KeyError, TypeError):\n        return {}\n"
    )
    assert lines_told(code, "transformers", "4.57.6", "5.0.0") == [
        (4, "_get_non_default_generation_parameters")
    ]


def test_what_a_base_brings_that_moved_to_another_module_stays() -> None:
    code = "import vllm\nvllm.LLM('m').llm_engine.worker.execute_method('run')\n"
    assert lines_told(code, "vllm", "0.11.0", "0.12.0") == []


def test_a_function_that_came_to_another_module_hands_on_what_it_no_longer_names() -> None:
    code = (
        "from vllm.transformers_utils.tokenizer import get_tokenizer\n"
        "get_tokenizer('m', tokenizer_mode='auto')\n"
    )
    assert lines_told(code, "vllm", "0.10.1.1", "0.14.1") == []


def test_options_of_a_command_are_fields_of_the_classes_that_its_script_parses(tmp_path: Path) -> None:
    script = (
        "from dataclasses import dataclass\nfrom trl import GRPOConfig, ModelConfig, TrlParser\n"
        "@dataclass\nclass Own:\n    max_source_length: int = 1\n"
        "parser = TrlParser((Own, GRPOConfig, ModelConfig))\n"
    )
    command = (
        "torchrun --nproc_per_node 2 grpo.py \\\n  --torch_dtype bfloat16 --bf16 \\\n"
        "  --max_prompt_length 9 --max_source_length 9\npython other.py --max_prompt_length 9\n"
    )
    moves = {"trl": Move(Version("0.29.0"), Version("0.15.2"))}
    (tmp_path / "grpo.py").write_text(script)
    (tmp_path / "run.sh").write_text(command)
    found = judge_paths(load_matrix(), moves, [str(tmp_path)]).breaks
    assert [(one.told.use.place.line, one.told.use.name) for one in found] == [
        (2, "torch_dtype"), (3, "max_prompt_length"),
    ]  # fmt: skip


def test_what_could_be_left_out_and_is_needed_now_is_told() -> None:
    code = (
        "from huggingface_hub.utils import RepositoryNotFoundError as R\n"
        "R('no such model')\nR('no', response=x)\nR('no', **told)\n"
    )
    assert [line for line, _ in lines_told(code, "huggingface-hub", "0.36.2", "1.3.0")] == [2]
