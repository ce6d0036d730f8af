"""Keys of settings files: certain where the release was read, silent where it was not."""

from __future__ import annotations

import pytest

from envdoctor.facts import Facts
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.pastes.merge import merge_facts
from envdoctor.rules.base import Skip
from envdoctor.rules.settings_files import check_keys
from envdoctor.rules.view import View

LLAMA = "model_name_or_path: a/b-7b\nfinetuning_type: lora\ncutoff_len: 1024\ndataset_dir: data\n"
GRPO = "num_generations: 8\nmax_completion_length: 256\nuse_vllm: true\n"


def found_in(text: str, *pins: str, name: str = "train.yaml") -> dict[str, Finding]:
    """Judge a file beside pins; return the findings by the key that they are about."""
    matrix = load_matrix()
    parts: list[Facts] = [parse_paste(pin, "pins", matrix.lexicon) for pin in pins]
    facts = merge_facts([*parts, parse_paste(text, "", matrix.lexicon, name)])
    try:
        return {f.evidence[0].fact: f for f in check_keys(View(facts, matrix))}
    except Skip:
        return {}


def test_inherited_keys_pass_whatever_transformers_is_not_told() -> None:
    assert not found_in(LLAMA + "evaluation_strategy: steps\neval_strategy: steps\n", "llamafactory==0.9.3")


def test_a_misspelt_key_is_certain_where_every_release_at_hand_was_read() -> None:
    text = LLAMA + "learnin_rate: 1e-4\n"
    told = found_in(text, "llamafactory==0.9.3", "transformers==4.52.4")["learnin_rate"]
    assert (told.severity, told.certainty) == (Severity.ERROR, Certainty.CERTAIN)
    assert told.remedies[0].text == "Write learning_rate."
    half = found_in(text, "llamafactory==0.9.3")["learnin_rate"]
    assert (half.severity, half.certainty) == (Severity.ERROR, Certainty.LIKELY)
    none = found_in(text)["learnin_rate"]
    assert (none.severity, none.certainty) == (Severity.WARNING, Certainty.LIKELY)


def test_a_misspelt_key_of_a_section_is_passed_over_where_one_of_the_whole_stops_the_parser() -> None:
    text = "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precison: bf16\n"
    text += "fsdp_config:\n  fsdp_sharding_strateg: FULL_SHARD\n"
    told = found_in(text, "accelerate==1.0.0")
    inner, outer = told["fsdp_config.fsdp_sharding_strateg"], told["mixed_precison"]
    assert (inner.severity, outer.severity) == (Severity.WARNING, Severity.ERROR)


@pytest.mark.parametrize("version", ["0.9.4.dev0", "0.6.3", "1.99.0"])
def test_a_release_that_was_not_read_has_no_gone_and_no_foreign_keys(version: str) -> None:
    text = LLAMA + "dpo_beta: 0.1\nsomething_of_its_own: 1\n"
    assert not found_in(text, f"llamafactory=={version}")
    assert found_in(text, "llamafactory==0.9.3").keys() == {"dpo_beta", "something_of_its_own"}


def test_a_base_that_is_not_known_leaves_keys_open() -> None:
    """From 0.9.4 on the training arguments may inherit from mcore_adapter, which is in no index."""
    assert not found_in(LLAMA + "tensor_model_parallel_size: 2\n", "llamafactory==0.9.4")
    assert found_in(LLAMA + "tensor_model_parallel_size: 2\n", "llamafactory==0.9.3")


def test_a_key_that_only_another_trainer_still_has_is_likely_gone() -> None:
    text = GRPO + "max_prompt_length: 512\n"
    pins = ("trl==1.16.0", "transformers==5.23.0")
    gone = found_in(text, *pins)["max_prompt_length"]
    assert (gone.severity, gone.certainty) == (Severity.WARNING, Certainty.LIKELY)
    assert not found_in(GRPO, *pins)
    assert not found_in(text, "trl==0.18.2", "transformers==4.52.4")


def test_sections_are_judged_where_their_keys_are_known_and_others_are_free() -> None:
    axolotl = "base_model: a/b-7b\nsequence_len: 1024\nmicro_batch_size: 1\nadapter: lora\n"
    text = f"{axolotl}trl:\n  num_generation: 4\nfsdp_config:\n  fsdp_offload_params: true\n"
    text += "lr_scheduler_kwargs:\n  any_thing: 1\n"
    found = found_in(text, "axolotl==0.16.1")
    assert found.keys() == {"trl.num_generation"}
    assert found["trl.num_generation"].severity is Severity.WARNING


def test_a_dead_key_that_is_passed_over_is_a_note() -> None:
    text = "base_model: a/b-7b\nsequence_len: 1024\nmicro_batch_size: 1\nnothing_like_it: 1\n"
    assert found_in(text, "axolotl==0.16.1")["nothing_like_it"].severity is Severity.NOTE


def test_a_section_of_another_program_is_not_judged() -> None:
    text = "rlhf_type: grpo\ntuner_type: lora\nmax_length: 1024\nrollout:\n  gpus: 4\n"
    assert not found_in(text, "ms-swift==4.5.2")


def test_a_key_within_a_section_that_is_handed_on_as_it_stands_may_be_read() -> None:
    text = "base_model: a/b\nsequence_len: 64\ndatasets:\n  - path: x\n    field_chosen: y\n"
    assert all(f.severity is Severity.NOTE for f in found_in(text, "axolotl==0.9.0").values())


def test_a_file_that_holds_a_script_s_own_settings_beside_trl_s_is_not_judged() -> None:
    usual = (
        "model_name: a/b\nmax_completion_length: 64\nnum_generations: 8\noutput_dir: out\nreport_to: none\n"
    )
    assert "model_name" in found_in(usual, "trl==1.5.1")
    assert not found_in(f"{usual}task: office\nproject_name: mine\n", "trl==1.5.1")


def test_a_section_handed_to_another_program_does_not_make_the_file_that_program_s() -> None:
    served = "vllm:\n  gpu_memory_utilization: 0.85\n  max_model_len: 4096\n"
    assert not found_in(f"base_model: a/b\nrl: grpo\n{served}", "vllm==0.10.0")


def test_a_section_that_went_as_a_whole_is_said_once() -> None:
    text = "zero_optimization:\n  stage: 2\ntrain_batch_size: 8\nelasticity:\n  min_time: 20\n  max_gpus: 4\n"
    assert found_in(text, "deepspeed==0.19.8").keys() == {"elasticity.min_time"}
    assert not found_in(text, "deepspeed==0.19.4")
