"""Packages of different times: told with both names, and with releases of one time."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Finding
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

SITE = "/opt/env/lib/python3.11/site-packages"


def judged(text: str) -> dict[str, Finding]:
    matrix = load_matrix()
    facts = parse_paste(text, "", matrix.lexicon)
    return {f.id: f for f in diagnose_facts(facts, matrix, complete=False).findings}


def test_both_packages_are_named_and_the_release_of_the_others_time_is_offered() -> None:
    found = judged(
        "vllm==0.6.3\n"
        f'Traceback (most recent call last):\n  File "{SITE}/vllm/worker/worker.py", line 7, in run\n'
        "    from gguf.never_there import Reader\n"
        "ImportError: cannot import name 'Reader' from 'gguf.never_there'\n"
    )["RELEASES-APART"]
    assert "gguf" in found.summary
    assert "vllm 0.6.3" in found.summary
    assert found.certainty is Certainty.UNCERTAIN
    assert any(dict(remedy.pins).get("gguf", "").startswith("==") for remedy in found.remedies)


def test_a_name_of_another_library_is_sent_there() -> None:
    text = "trl==0.16.0\nImportError: cannot import name 'FastLanguageModel' from 'trl'\n"
    told = " ".join(remedy.text for remedy in judged(text)["RELEASES-APART"].remedies)
    assert "from unsloth import FastLanguageModel" in told


@pytest.mark.parametrize(
    ("error", "library"),
    [
        ("trl==0.16.0\nAttributeError: 'DPOTrainer' object has no attribute '_never_there'", "trl"),
        ("TypeError: _unsloth_never_there() takes 3 positional arguments but 4 were given", "unsloth"),
    ],
)
def test_a_class_is_named_after_its_base_and_a_patch_after_its_patcher(error: str, library: str) -> None:
    assert judged(f"{error}\n")["RELEASES-APART"].summary.startswith(library)


def test_what_no_release_ever_had_blames_nobody_who_is_not_listed() -> None:
    assert "RELEASES-APART" not in judged(
        "AttributeError: 'MyDPOTrainer' object has no attribute '_never_there'\n"
    )
    told = judged("trl==0.16.0\nAttributeError: 'DPOTrainer' object has no attribute '_never_there'\n")
    assert "nor has any release of trl" in told["RELEASES-APART"].summary


def test_a_builtin_type_belongs_to_no_library() -> None:
    assert "RELEASES-APART" not in judged("AttributeError: 'tuple' object has no attribute 'ndim'\n")


def test_a_missing_argument_offers_the_callers_earlier_releases() -> None:
    found = judged(
        f'Traceback (most recent call last):\n  File "{SITE}/trl/trainer/grpo_trainer.py", line 7, in x\n'
        "    super().__init__(processing_class=processing_class)\n"
        "TypeError: Trainer.__init__() got an unexpected keyword argument 'processing_class'\n"
    )["INTERFACE-MISSING"]
    pins = [dict(remedy.pins) for remedy in found.remedies]
    assert any(pin.get("transformers") == ">=4.46.0" for pin in pins)
    assert any(pin.get("trl", "").startswith("<0.1") for pin in pins)


def test_what_fails_on_an_import_between_two_packages_is_theirs() -> None:
    found = judged(
        f'Traceback (most recent call last):\n  File "{SITE}/unsloth/__init__.py", line 7, in <module>\n'
        f'    from .models import *\n  File "{SITE}/unsloth_zoo/vllm_utils.py", line 8, in <module>\n'
        "    entry = TABLE['never']\nKeyError: 'never there'\n"
    )["RELEASES-APART"]
    assert found.summary.startswith("unsloth-zoo fails while it is imported by unsloth: KeyError")


def test_a_method_that_takes_less_than_the_library_hands_it_is_older_than_the_library() -> None:
    found = judged(
        "transformers==5.4.0\nTypeError: MineForCausalLM._check_and_adjust_attn_implementation() got an"
        " unexpected keyword argument 'allow_all_kernels'\n"
    )["INTERFACE-MISSING"]
    assert found.remedies[0].text.startswith("Downgrade transformers")
    assert found.remedies[0].pins["transformers"].startswith("<")


def test_a_member_that_the_bases_of_ones_own_class_lost_names_the_releases_before() -> None:
    error = "AttributeError: 'Mine' object has no attribute '_extract_past_from_model_output'"
    pins = judged(f"transformers==4.51.3\n{error}\n")["INTERFACE-MISSING"].remedies[0].pins["transformers"]
    assert "<4.5" in pins or "<4.4" in pins


def test_a_name_that_is_spelt_otherwise_is_named() -> None:
    error = "ImportError: cannot import name 'Qwen2_5VLForConditionalGeneration' from 'transformers'"
    found = judged(f"transformers==4.54.1\n{error}\n")["RELEASES-APART"]
    told = " ".join(remedy.text for remedy in found.remedies)
    assert "Qwen2_5_VLForConditionalGeneration" in told


def test_what_the_listed_release_has_is_no_matter_of_releases() -> None:
    text = "transformers==4.53.1\nImportError: cannot import name 'AutoImageProcessor' from 'transformers'\n"
    assert judged(text).keys() & {"RELEASES-APART", "INTERFACE-STALE"} == {"INTERFACE-STALE"}


@pytest.mark.parametrize(
    "text",
    [
        "transformers==5.24.0\nImportError: cannot import name 'NeverThere' from 'transformers'\n",
        "AttributeError: 'DynamicCache' object has no attribute 'get_max_length'\n",
    ],
)
def test_a_release_that_has_it_no_more_is_not_advised(text: str) -> None:
    found = judged(text).values()
    assert not [line for one in found for r in one.remedies for line in r.commands if " -U " in line]


def test_an_object_is_of_the_package_through_which_the_line_reaches_it() -> None:
    found = judged(
        "jax==0.3.25\n"
        "Traceback (most recent call last):\n"
        '  File "/venv/lib/python3.10/site-packages/haiku/_src/module.py", line 421, in wrapped\n'
        "    if jax.config.jax_experimental_name_stack and module_name:\n"
        "AttributeError: 'Config' object has no attribute 'jax_experimental_name_stack'\n"
    )["RELEASES-APART"]
    assert found.summary.startswith("jax 0.3.25 here has no jax_experimental_name_stack in Config")
    assert not any("haiku" in command for one in found.remedies for command in one.commands)


def test_an_object_of_a_package_is_not_anothers_that_it_does_not_use() -> None:
    found = judged(
        "ray 2.6.1\n"
        "Traceback (most recent call last):\n"
        '  File "/venv/lib/python3.9/dist-packages/ray/_private/function_manager.py", line 483, in wait\n'
        "    self._worker.import_thread._do_importing()\n"
        "AttributeError: 'Worker' object has no attribute 'import_thread'\n"
    )
    assert "RELEASES-APART" not in found
    assert not any("vllm" in finding.summary for finding in found.values())


def test_a_release_that_is_called_fine_by_its_number_alone_is_the_blamed_packages() -> None:
    found = judged("After upgrading transformers to 4.50 the loss is nan from step 1. 4.49 was fine.\n")
    assert found["RELEASE-BLAMED"].remedies[0].pins == {"transformers": "==4.49"}
    other = judged("After upgrading transformers to 4.50 the loss is nan. Our score of 9.49 was fine.\n")
    assert other["RELEASE-BLAMED"].remedies[0].pins == {"transformers": "<4.50"}


def test_a_requirement_without_wheels_for_this_python_moves_whoever_requires_it() -> None:
    """torch 2.4.0 is vllm's wish: another torch alone would not do."""
    found = judged(
        "Python 3.13\nERROR: Could not find a version that satisfies the requirement torch==2.4.0 (from vllm)"
        " (from versions: 2.6.0, 2.7.0, 2.9.0)\n"
    )["PYTHON-NO-WHEEL"]
    assert found.remedies[1].pins == {"vllm": ">=0.10.2"}


def test_a_file_of_ones_own_that_a_package_is_given_for_a_module_is_named() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/home/me/code.py", line 7, in <module>\n    import ray\n'
        '  File "/usr/lib/python3.11/pdb.py", line 77, in <module>\n    import code\n'
        '  File "/home/me/code.py", line 13, in <module>\n    from ray.rllib.agents import ppo\n'
        "AttributeError: module 'ray._private' has no attribute 'worker'\n"
    )
    assert judged(text)["MODULE-HIDDEN"].summary.startswith(
        "/home/me/code.py hides (shadows) the module code"
    )
    assert "MODULE-HIDDEN" not in judged(text.replace("import code", "import codeop"))


def test_a_function_put_in_the_place_of_a_librarys_own_is_of_the_release_before_the_argument() -> None:
    """As copied from a page that lost the indentation."""
    found = judged(
        "diffusers 0.21\n"
        'File "/venv/lib/python3.9/site-packages/diffusers/models/unet_2d_blocks.py", line 2227, in forward\n'
        "hidden_states = resnet(hidden_states, temb, scale=lora_scale)\n"
        'File "/venv/lib/python3.9/site-packages/torch/nn/modules/module.py", line 1501, in _call_impl\n'
        "return forward_call(*args, **kwargs)\n"
        "TypeError: forward() got an unexpected keyword argument 'scale'\n"
    )["INTERFACE-MISSING"]
    assert "calls forward with scale since 0.21.0" in found.summary
    assert found.remedies[1].pins == {"diffusers": "<0.21.0"}
