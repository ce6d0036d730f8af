"""Arguments that a parser refused, looked up in the keys of the frameworks' releases."""

from __future__ import annotations

import pytest
from declared import pasted

from envdoctor.findings import Finding
from envdoctor.rules.arguments import parse_keys


def refused(text: str) -> Finding:
    return pasted(text)["ARGUMENT-UNKNOWN"]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("'split']", ("split",)),
        ("'--ld_alpha', '0.8'", ("ld_alpha",)),
        ("'--adapter_name_or_path', '/saves/run-2/checkpoint-30'", ("adapter_name_or_path",)),
        ("--enable-dft-loss true --x-y 3", ("enable_dft_loss", "x_y")),
        ("'split' --x-y '3' ", ("x_y",)),
        (" enable_dft_loss", ("enable_dft_loss",)),
        ("训练报错", ()),
    ],
)
def test_names_are_told_from_values(text: str, keys: tuple[str, ...]) -> None:
    assert parse_keys(text) == keys


def test_the_releases_that_have_the_key_are_named_and_pinned() -> None:
    finding = refused("ValueError: remaining_argv: ['--ld_alpha', '0.8']")
    assert finding.summary.startswith("ms-swift refuses ld_alpha; ms-swift has ld_alpha from 3.")
    assert finding.remedies[0].pins["ms-swift"].startswith(">=3.")


def test_a_training_file_for_another_command_is_told_from_a_missing_key() -> None:
    keys = "['bf16', 'learning_rate', 'num_train_epochs', 'save_steps']"
    finding = refused(
        f"llamafactory==0.9.3\nValueError: Some keys are not used by the HfArgumentParser: {keys}"
    )
    assert "not to the command that was run" in finding.cause
    assert all(not remedy.pins for remedy in finding.remedies)


def test_a_key_of_no_release_is_said_to_be_of_none() -> None:
    finding = refused("trl==0.12.0\nerror: unrecognized arguments: --frobnicate")
    assert "No release of trl that was read has frobnicate" in finding.cause
    assert finding.certainty.value == "likely"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("train.py: error: unrecognized arguments: --use_foo_bar", "train.py does not know --use_foo_bar"),
        (
            "ValueError: Some specified arguments are not used by the HfArgumentParser: ['--llm_type', 'x']",
            "the script that was started does not know --llm_type",
        ),
    ],
)
def test_a_scripts_own_arguments_are_no_frameworks(line: str, told: str) -> None:
    finding = refused(line)
    assert finding.summary.startswith(told)
    assert not any("pip" in command for one in finding.remedies for command in one.commands)
