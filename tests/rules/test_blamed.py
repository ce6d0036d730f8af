"""What a text itself tells of releases answers it where nothing on record does."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

ERROR = "RuntimeError: shapes of the frobnicator differ\n"
BLAMED = {
    "# Frobnicating fails with transformers 4.51.0\n": ("transformers", "==4.50.3"),
    "It is broken with trl >= 0.17.0.\n": ("trl", "==0.16.1"),
    "There is a bug within peft (>0.15.2)\nAny error since peft > 0.15.2\n": ("peft", "==0.15.2"),
    "transformers==4.51.3 is not a correct version\n": ("transformers", "==4.50.3"),
    "When I upgraded to ray 2.40.0, it fails.\n": ("ray", "==2.39.0"),
    "升级 transformers 到 4.50.0 以后报错\n": ("transformers", "==4.49.0"),
    "transformers==4.39.1 is ok, but all fails with transformers 4.40.0\n": ("transformers", "==4.39.1"),
    "The code works fine in peft-0.5.0, but there are errors with peft 0.6.2\n": ("peft", "==0.5.0"),
    "Fails with transformers < 4.40.0\n": ("transformers", ">=4.40.2"),
    "# DeepSpeed v0.14.0 is not compatible with the latest PyTorch image\n": ("deepspeed", ">0.14.0"),
    "# DeepSpeed v0.14.0 fails on my RTX 5090\n": ("deepspeed", ">0.14.0"),
    "# DeepSpeed v0.14.0 fails on my RTX 4090\n": ("deepspeed", "==0.13.5"),
    "# Fails with transformers 4.40.0 on Blackwell cards\n": ("transformers", ">4.40.0"),
    "transformers: newer than 4.29.2\n": ("transformers", "==4.29.2"),
    "trl: older than 0.12.0\n": ("trl", ">=0.12.2"),
    "peft: newest (0.15.0)\n": ("peft", "==0.14.0"),
    "(vllm raises at model load with transformers 4.50.0)\n": ("transformers", "==4.49.0"),
}


def found(text: str) -> dict[str, Finding]:
    matrix = load_matrix()
    facts = parse_paste(text, "", matrix.lexicon, "issue.md")
    return {finding.id: finding for finding in diagnose_facts(facts, matrix).findings}


@pytest.mark.parametrize(("text", "pin"), BLAMED.items(), ids=lambda one: str(one)[:30].strip())
def test_the_blamed_release_is_left(text: str, pin: tuple[str, str]) -> None:
    finding = found(f"{text}\n{ERROR}")["RELEASE-BLAMED"]
    name, specifier = pin
    assert finding.remedies[0].pins == {name: specifier}
    assert name in finding.summary
    assert "frobnicator" in finding.summary
    assert finding.severity is Severity.ERROR


@pytest.mark.parametrize(
    "text",
    [
        "After upgrading to the latest version of TRL.\n",
        "The latest version of trl breaks the app\n",
        "The newest trl version causes errors\n",
        "# Pin trl so it doesn't error out\n",
    ],
)
def test_a_latest_release_is_blamed_without_a_number(text: str) -> None:
    finding = found(f"{text}\n{ERROR}")["RELEASE-BLAMED"]
    assert "a newer trl" in finding.summary
    assert not finding.remedies[0].pins


def test_one_that_worked_beside_one_that_fails_is_likelier_than_a_name_alone() -> None:
    both = found(f"Works with trl 0.15.2, fails with trl 0.16.0\n\n{ERROR}")["RELEASE-BLAMED"]
    alone = found(f"Fails with trl 0.16.0\n\n{ERROR}")["RELEASE-BLAMED"]
    assert (both.certainty, alone.certainty) == (Certainty.LIKELY, Certainty.UNCERTAIN)


def test_what_is_planned_is_the_release_that_worked_and_not_one_beside_it() -> None:
    matrix = load_matrix()
    text = "I use transformers 4.50.0 and accelerate 1.5.2. It worked with transformers 4.49.0.\n\n" + ERROR
    answer = diagnose_facts(parse_paste(text, "", matrix.lexicon, "issue.md"), matrix)
    assert answer.plan is not None
    assert [(move.name, move.old, move.new) for move in answer.plan.moves] == [
        ("transformers", "4.50.0", "4.49.0")
    ]


def test_what_the_next_sentence_names_is_not_blamed() -> None:
    text = "Since upgrading to transformers 4.50.0 the training crashes. I use torch 2.6.0 on an RTX 3090.\n"
    finding = found(text)["RELEASE-BLAMED"]
    assert "torch 2.6.0:" not in finding.summary
    assert finding.remedies[0].pins == {"transformers": "==4.49.0"}
    assert not any("tells of a way" in remedy.text for remedy in finding.remedies)


def test_what_is_installed_is_blamed_where_another_worked() -> None:
    finding = found(f"trl: 0.16.0\n\nWhen I downgrade to trl 0.15.2 it runs.\n\n{ERROR}")["RELEASE-BLAMED"]
    assert "trl 0.16.0 (0.15.2 worked)" in finding.summary


def test_the_asking_package_may_be_raised_instead() -> None:
    frame = (
        "Traceback (most recent call last):\n"
        '  File "/opt/lib/python3.11/site-packages/peft/tuners/lora/model.py", line 9, in frobnicate\n'
        "    a.frobnicate()\n"
    )
    finding = found(f"It fails with transformers 4.50.0\n\n{frame}{ERROR}")["RELEASE-BLAMED"]
    assert any("peft" in remedy.pins for remedy in finding.remedies)


@pytest.mark.parametrize(
    "text",
    [
        "ERROR: x 1.0 requires trl<0.15, but you have trl 0.16.0 which is incompatible.\n",
        "Using 8-bit quantization fails: it requires the latest version of bitsandbytes\n",
        "It should work with trl 0.16.0\n",
        "foo depends on trl (<0.16), version solving failed.\n",
        "The model fails with version 4.50.0 of our data\n",
        "This image fails with frobnicator 1.2.3\n",
        "After upgrading to the latest docker\n",
        "It fails with transformers 400.1.0\n",
    ],
)
def test_what_blames_no_release_is_no_blame(text: str) -> None:
    assert "RELEASE-BLAMED" not in found(f"{text}\n{ERROR}")


def test_a_cause_that_is_known_is_not_beset_by_what_was_guessed() -> None:
    line = "cannot import name 'AutoModelForVision2Seq' from 'transformers'"
    answers = found(f"It fails with torch 2.5.1\n\ntransformers: 5.2.0\nImportError: {line}\n")
    assert "INTERFACE-MISSING" in answers
    assert "RELEASE-BLAMED" not in answers


TAKEN = "ValueError: 'aimv2' is already used by a Transformers config, pick another name.\n"


def test_a_model_type_that_transformers_took_over_tells_since_when() -> None:
    finding = found(f"vllm: 0.9.1\n{TAKEN}")["MODEL-TYPE-TAKEN"]
    assert finding.remedies[0].pins == {"transformers": "==4.53.3"}
    assert finding.remedies[1].pins["vllm"].startswith(">=0.10")


def test_a_config_class_tells_its_model_type() -> None:
    line = (
        "ValueError: '<class 'sglang.srt.configs.qwen2_5_vl_config.Qwen2_5_VLConfig'>' is already used by a"
    )
    finding = found(f"sglang: 0.4.4\n{line} Transformers model.\n")["MODEL-TYPE-TAKEN"]
    assert finding.remedies[0].pins == {"transformers": "==4.48.3"}


def test_a_model_type_that_no_release_has_is_nobodys() -> None:
    assert "MODEL-TYPE-TAKEN" not in found(TAKEN.replace("aimv2", "frobnicator"))


@pytest.mark.parametrize(
    ("line", "library", "specifier"),
    [
        ("'DynamicCacheWithRepeat' object has no attribute 'key_cache'", "transformers", "==4.55.4"),
        ("'GRPOEnvTrainer' object has no attribute 'llm'", "trl", "<0.28"),
        ("'MyGRPOTrainer' object has no attribute 'llm'", "trl", "<0.28"),
        (
            "'ChameleonForInterCoT' object has no attribute '_extract_past_from_model_output'",
            "transformers",
            "==4.48.3",
        ),
    ],
)
def test_a_class_that_is_named_after_a_librarys_is_taken_for_its_kin(
    line: str, library: str, specifier: str
) -> None:
    finding = found(f"AttributeError: {line}\n")["INTERFACE-MISSING"]
    assert finding.certainty is Certainty.LIKELY
    assert specifier in finding.remedies[0].pins[library]


def test_a_module_whose_name_is_cut_off_is_the_one_that_has_the_name() -> None:
    finding = found("RuntimeError: cannot import name 'shard_checkpoint' from 'transformers.modeling_\n")
    assert "transformers.modeling_utils" in finding["INTERFACE-MISSING"].summary


COMPARED = {
    "# sglang 0.4.4 is OK, 0.4.6 is not\n": ("sglang", "0.4.4", "0.4.6"),
    "vllm works with 0.8.3 but not with 0.8.4 on my card.\n": ("vllm", "0.8.3", "0.8.4"),
    "# Training slows down a lot from v0.18.4 to v0.18.5 of deepspeed\n": ("deepspeed", "0.18.4", "0.18.5"),
    "- nvidia-modelopt: fails on 0.44.0; works on 0.43.0\n": ("nvidia-modelopt", "0.43.0", "0.44.0"),
    "peft 0.14.0 版本训练正常，升级到 0.15.0 之后 loss 变成 0\n": ("peft", "0.14.0", "0.15.0"),
    "Desde que actualicé accelerate de 0.34.2 a 1.0.0 mi script falla\n": ("accelerate", "0.34.2", "1.0.0"),
}


def test_a_release_set_against_another_in_words_is_blamed_without_any_error_line() -> None:
    for text, (name, good, bad) in COMPARED.items():
        finding = found(text)["RELEASE-BLAMED"]
        assert finding.remedies[0].pins == {name: f"=={good}"}, text
        assert f"{name} {bad}" in finding.summary
        assert finding.certainty is Certainty.LIKELY


def test_an_upgrade_that_mended_something_blames_nothing() -> None:
    for text in (
        "Upgrading vllm from 0.8.3 to 0.8.4 fixed the crash for me.\n",
        "We moved transformers from 4.51.3 to 4.52.1 last week.\n",
        "Python 3.10 works, 3.12 does not\n",
    ):
        assert "RELEASE-BLAMED" not in found(text), text
