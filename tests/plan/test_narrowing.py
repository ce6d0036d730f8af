"""What a remedy names suits what stays: the ranges of others, the one torch, the release of another build."""

from __future__ import annotations

import pytest

import envdoctor
from envdoctor.findings import Remedy


def remedies_of(text: str) -> list[Remedy]:
    from envdoctor.matrix import load_matrix
    from envdoctor.pastes import parse_paste

    facts = parse_paste(text, "paste", load_matrix().lexicon)
    return [r for finding in envdoctor.diagnose_facts(facts).findings for r in finding.remedies]


@pytest.mark.parametrize(
    ("text", "package", "pin"),
    [
        pytest.param(
            "diffusers==0.25.0\nhuggingface-hub==0.26.2\ntransformers==4.38.2\n"
            "ImportError: cannot import name 'cached_download' from 'huggingface_hub'",
            *("huggingface-hub", "==0.25.2"),
            id="no release that another package refuses",
        ),
        pytest.param(
            "torch==2.5.1\ndiffusers==0.31.0\nModuleNotFoundError: No module named 'xformers'",
            *("xformers", "==0.0.29.post1"),
            id="the release for the torch that stays",
        ),
        pytest.param(
            "torch==2.3.0+cu121\ndeepspeed==0.14.0\nException: >- DeepSpeed Op Builder: Installed CUDA"
            " version 11.8 does not match the version torch was compiled with 12.1, unable to compile",
            *("torch", "==2.3.0"),
            id="another CUDA of the release that stands",
        ),
    ],
)
def test_pins_suit_what_stays(text: str, package: str, pin: str) -> None:
    assert pin in [remedy.pins.get(package) for remedy in remedies_of(text)]


def test_a_neighbour_moves_before_a_package_goes_back_by_years() -> None:
    text = (
        "Python version: 3.11.9\ntransformers==5.0.0\nhuggingface-hub==1.3.2\ntorch==2.9.1\n"
        "TypeError: Trainer.__init__() got an unexpected keyword argument 'tokenizer'"
    )
    lines = [line for remedy in remedies_of(text) for line in remedy.commands]
    assert any("transformers==4.57" in line and "huggingface-hub==0.36" in line for line in lines)


def test_words_that_name_a_release_that_is_left_out_tell_what_is_left() -> None:
    (remedy,) = (r for r in remedies_of("transformers==4.46.0\nllamafactory==0.9.1\n") if r.pins)
    assert remedy.pins == {"transformers": "==4.46.1"}
    assert remedy.text.endswith("The packages that stay here allow transformers ==4.46.1.")
