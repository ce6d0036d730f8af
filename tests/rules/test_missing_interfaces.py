"""Errors of the interpreter about names, members and arguments, answered by releases, with both ways out."""

from __future__ import annotations

import pytest
from declared import pasted

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Finding
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

SITE = "/opt/env/lib/python3.7/site-packages"


def judged(text: str) -> dict[str, Finding]:
    matrix = load_matrix()
    facts = parse_paste(text, "", matrix.lexicon)
    return {f.id: f for f in diagnose_facts(facts, matrix, complete=False).findings}


def traceback(error: str, *frames: tuple[str, str]) -> str:
    told = "".join(f'  File "{file}", line 7, in <module>\n    {code}\n' for file, code in frames)
    return f"Traceback (most recent call last):\n{told}{error}\n"


PILLOW = traceback(
    "ImportError: cannot import name 'PILLOW_VERSION' from 'PIL' (/opt/env/PIL/__init__.py)",
    ("main.py", "import torchvision"),
    (f"{SITE}/torchvision/transforms/functional.py", "from PIL import Image, PILLOW_VERSION"),
)


def test_both_sides_of_a_failing_import_are_named() -> None:
    found = judged(f"pillow==9.1.0\ntorchvision==0.4.0\n{PILLOW}")["INTERFACE-MISSING"]
    assert "torchvision 0.4.0 asks for it (transforms/functional.py, line 7)" in found.cause
    pins = [dict(remedy.pins) for remedy in found.remedies]
    assert any(pin.get("pillow", "").endswith("<9.0.0") for pin in pins)
    assert any(pin.get("torchvision", "").startswith(">=0.") for pin in pins)


def test_an_old_interpreter_names_no_module_but_the_quoted_line_does() -> None:
    text = traceback(
        "ImportError: cannot import name 'comb'",
        (f"{SITE}/sklearn/model_selection/_split.py", "from scipy.misc import comb"),
    )
    found = judged(f"scipy==1.3.0\nscikit-learn==0.18.1\n{text}")["INTERFACE-MISSING"]
    assert dict(found.remedies[0].pins) == {"scipy": "<1.3.0"}


@pytest.mark.parametrize(
    ("listing", "error", "code", "pins"),
    [
        ("torchvision==0.10.0", "AttributeError: 'CIFAR10' object has no attribute 'train_data'",
         "shape = data.train_data.shape", {"torchvision": "<0.2.2"}),
        ("pytorch-lightning==1.5.1", "AttributeError: can't set attribute", "self.hparams = hparams",
         {"pytorch-lightning": "<1.3.0"}),
        ("tensorboardx==1.7", "TypeError: __init__() got an unexpected keyword argument 'log_dir'",
         "w = SummaryWriter(log_dir=path)", {"tensorboardx": ">=1.8"}),
    ],
)  # fmt: skip
def test_members_and_arguments_are_answered_by_the_library_that_has_them(
    listing: str, error: str, code: str, pins: dict[str, str]
) -> None:
    found = judged(f"{listing}\n{traceback(error, ('train.py', code))}")["INTERFACE-MISSING"]
    assert dict(found.remedies[0].pins) == pins
    assert found.certainty.value == "likely"


def test_a_sentence_of_the_interpreter_is_no_librarys_own() -> None:
    text = traceback("TypeError: run() got an unexpected keyword argument 'gizmo'", ("a.py", "run(gizmo=1)"))
    assert "RAISED-BY-LIBRARY" not in judged(f"torch==2.1.0\n{text}")


def test_a_requirement_that_no_file_imports_is_a_note() -> None:
    listing = "torch==2.1.0\nlibrosa==0.8.0\n"
    found = judged(listing).get("REQUIREMENT-UNMET")
    assert found is None or found.severity.value != "error"


@pytest.mark.parametrize(
    ("text", "identity", "name", "bound"),
    [
        ("torch==1.10.0\nRuntimeError: view size is not compatible with input tensor's size and stride",
         "TORCH-VIEW-STRIDE", "torch", "<1.7"),
        ("torch==1.8.0\nAttributeError: module 'distutils' has no attribute 'version'",
         "TORCH-DISTUTILS-VERSION", "setuptools", "<59.6"),
        ("pillow==8.3.0\nTypeError: __array__() takes 1 positional argument but 2 were given",
         "PILLOW-ARRAY-DTYPE", "pillow", "!=8.3.0,>=8.2"),
        ("packaging==24.0\ntransformers==4.4.0\npackaging.version.InvalidVersion: Invalid version: "
         "'0.10.1,<0.11'", "PACKAGING-RANGE-REFUSED", "transformers", ">=4.6"),
    ],
)  # fmt: skip
def test_changes_of_behaviour_are_answered_with_the_release_that_brought_them(
    text: str, identity: str, name: str, bound: str
) -> None:
    offered = [dict(remedy.pins) for remedy in judged(text)[identity].remedies]
    assert any(pins.get(name) == bound for pins in offered)


def test_a_name_of_a_module_that_vanished_piece_by_piece() -> None:
    text = traceback(
        "ImportError: cannot import name 'PY3'",
        (f"{SITE}/torchvision/datasets/utils.py", "from torch._six import PY3"),
    )
    found = judged(f"torch==1.10.0\n{text}")["ATTRIBUTE-MISSING"]
    assert dict(found.remedies[0].pins) == {"torch": "<1.8"}


@pytest.mark.parametrize("module", ["modeling_bert", "tokenization_roberta", "configuration_gpt2"])
def test_modules_that_moved_into_folders(module: str) -> None:
    line = f"ModuleNotFoundError: No module named 'transformers.{module}'"
    found = judged(f"transformers==4.10.0\n{line}")["TRANSFORMERS-4-MODULES"]
    assert {"transformers": "<4"} in [dict(remedy.pins) for remedy in found.remedies]
    assert "TRANSFORMERS-4-MODULES" not in judged(f"transformers==3.1.0\n{line}")


def test_a_compiled_companion_names_the_torch_that_it_requires() -> None:
    line = "OSError: /x/torchaudio/_torchaudio.so: undefined symbol: _ZNK2at6Tensor6deviceEv"
    found = judged(f"torch==1.10.0\ntorchaudio==0.6.0\n\n{line}")["ABI-TORCHAUDIO"]
    assert {"torch": "==1.6.0"} in [dict(remedy.pins) for remedy in found.remedies]


def test_a_release_newer_than_all_that_was_read_is_not_said_to_have_anything() -> None:
    line = "ImportError: cannot import name 'PY3_NOT' from 'transformers.utils'"
    assert "INTERFACE-STALE" not in judged(f"transformers==99.1.0\n{line}")
    known = "ImportError: cannot import name 'EncoderDecoderCache' from 'transformers'"
    assert "INTERFACE-STALE" not in judged(f"transformers==99.1.0\n{known}")


def test_a_release_between_two_that_were_read_lacks_what_the_later_one_lacks() -> None:
    line = "ModuleNotFoundError: No module named 'pytorch_lightning.utilities.distributed'"
    found = judged(f"pytorch-lightning==2.0.5\n{line}\n")["INTERFACE-MISSING"]
    assert "2.0.5, which stands between them" in found.summary
    assert found.remedies[0].pins["pytorch-lightning"] in ("<=2.0.0", "==2.0.0", "==2.0")


def test_a_wrapper_that_hands_arguments_on_does_not_ask_for_them() -> None:
    found = judged(
        traceback(
            "TypeError: SFTTrainer.__init__() got an unexpected keyword argument 'dataset_text_field'",
            ("ft/train.py", "trainer = SFTTrainer("),
            (f"{SITE}/huggingface_hub/utils/_deprecation.py", "return f(*args, **kwargs)"),
        )
    )["INTERFACE-MISSING"]
    assert "ft/train.py, line 7 asks for it" in found.cause
    assert "huggingface" not in str(found.remedies)


@pytest.mark.parametrize("release", ["4.50.0", "4.52.4", "5.20.0"])
def test_a_name_that_is_exported_lazily_stands_though_its_stand_in_is_gone(release: str) -> None:
    error = "ImportError: cannot import name 'Qwen2_5_VLForConditionalGeneration' from 'transformers'"
    assert "INTERFACE-MISSING" not in judged(f"transformers=={release}\n{error}\n")
    (missing,) = [judged(f"transformers==4.48.0\n{error}\n")["INTERFACE-MISSING"]]
    assert ">=4.49.0" in missing.summary
    assert "<" not in missing.summary


def test_what_answers_for_a_name_that_is_not_there_does_not_ask_for_it() -> None:
    text = (
        f'Traceback (most recent call last):\n  File "{SITE}/sentiment/model.py", '
        "line 25, in predict\n    encoded = self.tokenizer.batch_encode_plus(texts)\n"
        '  File "/opt/env/lib/python3.12/site-packages/transformers/tokenization_utils_base.py", line 1291, '
        "in __getattr__\n"
        '    raise AttributeError(f"{self.__class__.__name__} has no attribute {key}")\n'
        "AttributeError: BertTokenizer has no attribute batch_encode_plus. Did you mean: '_encode_plus'?\n"
    )
    found = judged(f"transformers==5.2.0\n{text}")["INTERFACE-MISSING"]
    assert "sentiment/model.py, line 25 asks for it" in found.cause
    assert [dict(remedy.pins) for remedy in found.remedies if remedy.pins] == [
        {"transformers": ">=2.3.0,<5.0.0"}
    ]


def test_a_file_that_is_no_json_is_told_where_a_check_of_fields_passes_the_error_on() -> None:
    text = (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
        "  Value error, Expecting value: line 1 column 1 (char 0) [type=value_error, input_type=ArgsKwargs]\n"
    )
    assert "JSON-BROKEN" in judged(text)


def test_a_module_that_every_release_has_was_not_imported_or_another_bears_the_name() -> None:
    found = judged("AttributeError: module 'torch' has no attribute 'version'\n")
    assert set(found) == {"INTERFACE-STALE"}
    assert "something else bears the name torch" in found["INTERFACE-STALE"].summary
    found = judged("AttributeError: module 'scipy' has no attribute 'signal'\n")
    assert set(found) == {"INTERFACE-STALE"}
    assert "scipy alone does not bring that module" in found["INTERFACE-STALE"].summary
    assert found["INTERFACE-STALE"].remedies[0].text.endswith("import scipy.signal")


def test_an_override_that_takes_less_than_its_library_gives_is_of_another_time() -> None:
    found = pasted(
        "Traceback (most recent call last):\n"
        '  File "/venv/lib/python3.12/site-packages/transformers/trainer.py", line 2474, in _inner\n'
        "    loss = self.training_step(model, inputs, num_items_in_batch)\n"
        "TypeError: Trainer.training_step() takes 3 positional arguments but 4 were given\n"
    )["INTERFACE-MISSING"]
    assert "overrides training_step" in found.summary
    assert "num_items_in_batch=None, **kwargs" in found.remedies[0].text
    assert found.remedies[1].pins == {"transformers": "<4.46.0"}


def test_a_models_own_code_is_met_by_the_library_of_its_time_first() -> None:
    """Nobody edits what a repository brings: the release before the argument came is what helps at once."""
    found = pasted(
        "transformers==4.50.0\n"
        "Traceback (most recent call last):\n"
        '  File "/root/.cache/huggingface/modules/transformers_modules/glm/tok.py", line 2, in f\n'
        "    output = self.batch_encode_plus(\n"
        '  File "/venv/lib/site-packages/transformers/tokenization_utils_base.py", line 9, in pad\n'
        "    outputs = self._pad(\n"
        "TypeError: ChatGLM4Tokenizer._pad() got an unexpected keyword argument 'padding_side'\n"
    )["INTERFACE-MISSING"]
    assert "with padding_side since 4.45.0" in found.summary
    assert found.remedies[0].pins == {"transformers": "<4.45.0"}
    assert "newer revision" in found.remedies[1].text


def test_a_fork_in_the_same_namespace_is_told_first() -> None:
    found = pasted(
        "!pip install -U transformers adapter-transformers\n"
        "ImportError: cannot import name 'check_peft_version' from 'transformers.utils' (/x/a.py)\n"
    )["INTERFACE-STALE"]
    assert "adapter-transformers" in found.summary
    assert "pip uninstall -y adapter-transformers transformers" in found.remedies[0].commands


def test_a_member_of_another_librarys_base_class_tells_which_release_has_it() -> None:
    line = "AttributeError: 'GRPOTrainer' object has no attribute 'current_gradient_accumulation_steps'\n"
    assert "of Trainer, from which GRPOTrainer derives" in pasted(line)["INTERFACE-MISSING"].summary


def test_a_module_that_nobody_knows_is_had_from_the_project_or_looked_up_by_its_name() -> None:
    found = pasted("ModuleNotFoundError: No module named 'quirky_thing'\n")["MODULE-MISSING"]
    assert "quirky-thing is the one meant" in found.remedies[1].text
    assert not any("quirky" in command for one in found.remedies for command in one.commands)
    own = pasted("ModuleNotFoundError: No module named 'quirky_cuda'\n")["MODULE-MISSING"]
    assert not any("quirky" in command for one in own.remedies for command in one.commands)


@pytest.mark.parametrize(
    "text",
    [
        "evaluation_strategy argument is deprecated.\nan error popped out when instantiating `Trainer`\n",
        "transformers: >=4.52\nthe evaluation_strategy parameter is deprecated in favor of eval_strategy\n"
        "This change causes errors\n",
    ],
)
def test_an_argument_that_words_tell_to_be_deprecated_is_told_with_its_new_name(text: str) -> None:
    finding = pasted(text)["INTERFACE-MISSING"]
    assert "eval_strategy" in finding.remedies[0].text
    assert "transformers" in finding.summary


@pytest.mark.parametrize(
    ("told", "error", "releases"),
    [
        ("", "ChatGLM4Tokenizer._pad() got an unexpected keyword argument 'padding_side'", "<4.45.0"),
        # a copy of that class in diffusers, which is not told, is not the one that is meant
        (
            "transformers==4.45.2\n",
            "ChatGLMTokenizer._pad() got an unexpected keyword argument 'padding_side'",
            "<4.45.0",
        ),
        (
            "transformers==4.46.3\n",
            "CustomTrainer.training_step() takes 3 positional arguments but 4 were given",
            ">=3.1.0,<4.46.0",
        ),
    ],
)
def test_an_override_is_handed_what_its_base_took_on(told: str, error: str, releases: str) -> None:
    found = judged(f"{told}TypeError: {error}\n")["INTERFACE-MISSING"]
    assert dict(found.remedies[0].pins) == {"transformers": releases}


def test_a_family_that_the_engine_has_no_code_for_is_answered_by_the_engines_release() -> None:
    text = (
        "ValueError: The checkpoint you are trying to load has model type `qwen3_moe` but Transformers does"
        " not recognize this architecture.\n"
    )
    found = judged(f"transformers==4.50.0\nvllm==0.8.2\n{text}")["MODEL-UNKNOWN"]
    assert [set(r.pins) for r in found.remedies] == [{"vllm"}, {"transformers"}]
    assert dict(found.remedies[0].pins)["vllm"] == ">=0.8.4"
    alone = judged(f"transformers==4.50.0\n{text}")["MODEL-UNKNOWN"]
    assert [set(r.pins) for r in alone.remedies] == [{"transformers"}]


@pytest.mark.parametrize(
    ("text", "identity", "pins"),
    [
        (
            "torch==2.0.0\nAttributeError: module 'torch.distributed' has no attribute 'device_mesh'\n",
            "ATTRIBUTE-MISSING",
            {"torch": ">=2.2"},
        ),
        (
            "transformers==4.42\nAttributeError: 'ChatGLMTokenizer' object has no attribute 'sp_model'\n",
            "ATTRIBUTE-MISSING",
            {"transformers": "<4.34"},
        ),
        (
            "numpy==1.21.0\n\nImportError: numpy.core.multiarray failed to import\n",
            "NUMPY-OLDER-THAN-EXTENSION",
            {"numpy": ">=1.23,<2"},
        ),
    ],
)
def test_a_release_that_has_it_is_named(text: str, identity: str, pins: dict[str, str]) -> None:
    assert dict(judged(text)[identity].remedies[0].pins) == pins


def test_an_old_numpy_alone_is_no_failing_extension() -> None:
    assert "NUMPY-OLDER-THAN-EXTENSION" not in judged("numpy==1.20.0\ntorch==2.0.0\n")


def test_a_nightly_on_the_way_to_a_release_without_a_name_is_not_said_to_have_it() -> None:
    lacked = "ModuleNotFoundError: No module named 'compressed_tensors.config.format'"
    finding = judged(f"compressed-tensors: 0.14.1a20260317\n\n{lacked}")["INTERFACE-MISSING"]
    assert finding.certainty is Certainty.LIKELY
    assert finding.remedies[0].pins == {"compressed-tensors": "<=0.14.0.1"}


def test_one_of_two_libraries_that_ask_in_the_same_words_is_told_by_what_it_requires() -> None:
    asked = "ImportError: {} is required for a normal functioning of this module, but found {}"
    of_models = judged(asked.format("tokenizers>=0.22,<0.24", "tokenizers==0.21.0"))["REQUIREMENT-REFUSED"]
    assert of_models.summary.startswith("the installed transformers needs")
    told = judged("diffusers: 0.36.0\n\n" + asked.format("peft>=0.17.0", "peft==0.7.0"))[
        "REQUIREMENT-REFUSED"
    ]
    assert told.summary.startswith("the installed diffusers needs")
