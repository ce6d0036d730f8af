"""What is suspected where nothing on record accounts for an error: releases, by who calls whom, by names."""

from __future__ import annotations

import pytest

from envdoctor.findings import Certainty
from tests.rules.test_generations import SITE, judged

CALLED = (
    f'Traceback (most recent call last):\n  File "{SITE}/ray/air/config.py", line 5, in run\n'
    f'    check(model)\n  File "{SITE}/pydantic/dataclasses.py", line 139, in dataclass\n'
    "    assert init is False\nAssertionError: only init=False\n"
)


def test_a_release_younger_than_its_caller_is_suspected_with_pins_of_the_caller_s_day() -> None:
    found = judged(f"ray==2.5.0\npydantic==2.5.0\n{CALLED}")["RELEASES-APART"]
    assert found.certainty is Certainty.UNCERTAIN
    assert "pydantic 2.5.0 (2023-11-13) is younger than ray 2.5.0 (2023-06-08)" in found.cause
    pins = [dict(remedy.pins) for remedy in found.remedies if remedy.pins]
    assert {"pydantic": "==1.10.9"} in pins
    assert {"pydantic": "<2"} in pins
    assert any(pin.get("ray", "").startswith(">=2.") for pin in pins)


def test_without_releases_both_are_named_and_no_age_is_claimed() -> None:
    found = judged(CALLED)["RELEASES-APART"]
    assert found.summary.startswith("pydantic fails when it is called by ray: AssertionError")
    assert "younger" not in found.cause


def test_a_library_that_fails_in_its_own_code_is_offered_the_releases_beside_it() -> None:
    found = judged(
        "diffusers==0.19.3\nTraceback (most recent call last):\n"
        f'  File "{SITE}/diffusers/odd.py", line 5, in go\n'
        "    flow[0]\nIndexError: never seen before\n"
    )["RELEASE-SUSPECTED"]
    assert found.summary.startswith("diffusers 0.19.3 fails in its own code")
    assert [dict(remedy.pins) for remedy in found.remedies] == [
        {"diffusers": ">0.19.3"},
        {"diffusers": "<0.19.3"},
    ]


def test_what_a_user_s_own_code_raises_suspects_no_library() -> None:
    text = 'Traceback (most recent call last):\n  File "run.py", line 5, in go\n    f[0]\nIndexError: odd\n'
    assert not {"RELEASES-APART", "RELEASE-SUSPECTED"} & judged(text).keys()


def test_a_library_that_answers_for_what_an_object_lacks_has_not_failed() -> None:
    text = (
        'Traceback (most recent call last):\n  File "run.py", line 5, in go\n    self.layer.gizmo\n'
        '  File "/opt/lib/python3.11/site-packages/torch/nn/modules/module.py", line 9, in __getattr__\n'
        "    raise AttributeError(\nAttributeError: 'Layer' object has no attribute 'gizmo'\n"
    )
    assert not {"RELEASES-APART", "RELEASE-SUSPECTED"} & judged(text).keys()


def test_a_name_that_only_some_releases_have_dates_the_error() -> None:
    found = judged("# [Bug] ALL_PARALLEL_STYLES TypeError: argument of type 'NoneType' is not iterable\n")
    suspected = found["RELEASE-SUSPECTED"]
    assert suspected.summary.startswith("ALL_PARALLEL_STYLES is a name of transformers >=4.52.0")
    assert dict(suspected.remedies[0].pins) == {"transformers": "<4.52.0"}


def test_a_model_s_own_code_is_suspected_before_the_libraries() -> None:
    found = judged(
        "transformers==5.5.3\nTraceback (most recent call last):\n"
        '  File "/h/modules/transformers_modules/a/b/modeling.py", line 5, in forward\n    x[i]\n'
        "IndexError: never seen before\n"
    )["RELEASE-SUSPECTED"]
    assert "custom code" in found.summary
    assert dict(found.remedies[0].pins) == {"transformers": "<5"}


def test_a_build_between_two_releases_is_suspected_last() -> None:
    found = judged("transformers==5.2.0.dev0\nKeyError: 'never seen'\n")["RELEASE-SUSPECTED"]
    assert dict(found.remedies[0].pins) == {"transformers": "<5.2.0"}


def test_a_name_that_all_releases_of_the_last_years_have_dates_nothing() -> None:
    found = judged("TypeError: CLIPTextModel has failed in an odd way\n")
    assert "RELEASE-SUSPECTED" not in found


@pytest.mark.parametrize(
    ("text", "identity", "said"),
    [
        (
            "deepspeed==0.16.5\nAttributeError: 'Linear' object has no attribute 'ds_parts_left'",
            "RELEASE-SUSPECTED",
            "deepspeed 0.16.5 fails in its own code",
        ),
        (
            "Could not find a version that satisfies the requirement vllm==0.6.3 (from versions: none)",
            "INDEX-OFFERS-NONE",
            "vllm",
        ),
        (
            "ERROR: Could not find a version that satisfies the requirement diffusers>=0.30.4"
            " (from versions: 0.30.1, 0.30.2, 0.30.3)",
            "INDEX-OFFERS-OTHERS",
            "the newest that pip was offered is 0.30.3",
        ),
        (
            "model = AutoModel.from_pretrained(m, trust_remote_code=True)\nIndexError: odd",
            "RELEASE-SUSPECTED",
            "custom code",
        ),
        (
            "x = F.scaled_dot_product_attention(q, k, v)\n"
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 23.41 GiB.",
            "OOM-ATTENTION",
            "MAX_PIXELS",
        ),
        (
            "KeyError: \"Unknown task kv-press-text-generation, available tasks are ['any-to-any']",
            "PIPELINE-TASK-UNKNOWN",
            "registers it when it is imported",
        ),
        (
            "ERROR: Could not find a version that satisfies the requirement torch (from versions: none)",
            "INDEX-OFFERS-NONE",
            "torch",
        ),
        (
            "accelerate==0.31.0\nImportError: the `Trainer` with `PyTorch` requires `accelerate>=0.20.1`",
            "REQUIREMENT-UNSEEN",
            "accelerate 0.31.0 is listed",
        ),
        (
            "ERROR: Cannot install tokenizers==0.10.3 because these package versions have conflicting"
            " dependencies.\nThe conflict is caused by:\n    The user requested tokenizers==0.10.3\n"
            "    transformers 4.32.0 depends on tokenizers!=0.11.3, <0.14 and >=0.11.1",
            "PIP-CLASH",
            "transformers 4.32.0 wants !=0.11.3,<0.14,>=0.11.1",
        ),
        (
            "ImportError: /lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by"
            " .../libtorch_python.so)",
            "GLIBCXX-OLD",
            "It was met in torch.",
        ),
        (
            "The hook `LightningModule.on_epoch_end` was removed in v1.8",
            "REMOVED-IN",
            "pytorch-lightning 1.8",
        ),
        ("ImportError: cannot import name 'HfFolder' `", "INTERFACE-MISSING", "gone from 1.0.0 on"),
    ],
)
def test_what_words_tell_is_found(text: str, identity: str, said: str) -> None:
    found = judged(text)[identity]
    assert said in f"{found.summary} {found.cause}"
