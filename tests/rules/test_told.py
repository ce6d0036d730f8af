"""What a text itself tells of cause and way out, and for whom a package was written, answers an error."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste


def found(text: str) -> dict[str, Finding]:
    matrix = load_matrix()
    facts = parse_paste(text, "", matrix.lexicon, "issue.md")
    return {finding.id: finding for finding in diagnose_facts(facts, matrix).findings}


def ways(finding: Finding) -> str:
    return " ".join(remedy.text for remedy in finding.remedies)


def test_the_cause_that_a_writer_names_answers_an_error_that_nothing_explains() -> None:
    told = found("It crashes because `frob_rate` is not set.\n\nFrobError: rate is absent\n")
    finding = told["TOLD-BY-TEXT"]
    assert "frob_rate" in finding.summary
    assert finding.certainty is Certainty.UNCERTAIN
    assert "Set frob_rate explicitly." in ways(finding)


def test_the_way_that_a_writer_found_is_told_where_nothing_explains_the_error() -> None:
    said = "After a while it fails, and by setting FROB_ASYNC=0 it works again."
    finding = found(f"{said}\n\nFrobError: rate is absent\n")["TOLD-BY-TEXT"]
    assert "FROB_ASYNC=0" in ways(finding)


def test_what_merely_sounds_like_a_cause_or_a_way_is_not_quoted_as_one() -> None:
    for said in (
        "I am working on integrating the frobnicator in a model.",
        "The server should use the libraries of the system and work normally.",
        "It does not support my use case, and a tool is missing.",
    ):
        assert set(found(f"{said}\n\nFrobError: rate is absent\n")) == {"UNEXPLAINED-ERROR"}


def test_what_was_tried_in_vain_is_no_way_out() -> None:
    told = found("After upgrading the frobnicator it still fails.\n\nFrobError: rate is absent\n")
    assert "still" not in " ".join(ways(finding) for finding in told.values())


def test_a_move_of_releases_after_which_it_fails_is_no_way_out() -> None:
    for said in (
        "After upgrading to frob 1.0 my script hangs.",
        "It crashes since I updated the frob to 2.1.",
    ):
        told = found(f"{said}\n\nFrobError: rate is absent\n")
        assert "frob" not in " ".join(ways(finding) for finding in told.values())
    said = "After downgrading to frob 0.9 the crash is gone and it works."
    assert "frob 0.9" in ways(found(f"{said}\n\nFrobError: rate is absent\n")["TOLD-BY-TEXT"])


def test_releases_that_exclude_one_another_in_words_alone_are_no_green_tick() -> None:
    told = found("# The ray that vllm requires is incompatible with the ray of requirements.txt\n")
    assert told["TOLD-BY-TEXT"].severity is Severity.ERROR


def test_a_companion_outside_the_range_of_an_extra_is_suspected_of_a_misfit() -> None:
    error = "TypeError: frob() missing 1 required positional argument: 'rate'\n"
    finding = found(f"sglang: 0.4.2.post1\nvllm: 0.7.1\n{error}")["WRITTEN-FOR-ANOTHER"]
    assert finding.remedies[0].pins == {"vllm": "==0.6.4.post1"}


def test_a_name_that_a_guarded_import_left_unbound_names_who_brings_it() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/v/lib/python3.11/site-packages/sglang/srt/layers/quantization/gptq.py", line 9, in fits\n'
        "    return check_marlin_supported(x)\n"
        "NameError: name 'check_marlin_supported' is not defined\n"
    )
    finding = found(text)["NAME-UNBOUND"]
    assert "vllm" in finding.summary
    assert finding.remedies[0].pins == {"vllm": ">=0"}


def test_a_killed_process_below_a_traceback_is_not_blamed_on_memory() -> None:
    traceback = (
        "Traceback (most recent call last):\n"
        '  File "/v/lib/python3.11/site-packages/flashinfer/decode.py", line 543, in plan\n'
        "    self._wrapper.plan(x)\n"
        "RuntimeError: plan failed to dispatch head_dim 96\n"
    )
    told = found(f"sglang: 0.3.5\n{traceback}Killed\n")
    assert "HOST-OOM-KILLED-GENERAL" not in told
    assert "--attention-backend triton" in ways(next(iter(told.values())))
    assert "HOST-OOM-KILLED-GENERAL" in found("Loading\nKilled\n")


def test_a_traceback_that_a_log_holds_as_a_string_is_read() -> None:
    line = '{"stderr": "Traceback (most recent call last):\\n  File \\"/a/main.py\\", line 4, in <module>\\n'
    told = found(line + "ModuleNotFoundError: No module named 'frobnicate'\\n\"}\n")
    assert "frobnicate" in told["MODULE-MISSING"].summary


def test_what_hangs_is_told_by_the_log_that_stops_there() -> None:
    log = "INFO 10-21 08:11:22 pynccl.py:63] vLLM is using nccl==2.20.5\n"
    said = "It starts, and then it hangs forever at this point:\n"
    hang = found(said + log)["HANG-COLLECTIVE"]
    assert hang.severity is Severity.ERROR
    assert "NCCL_P2P_DISABLE=1" in " ".join(command for way in hang.remedies for command in way.commands)
    assert "HANG-COLLECTIVE" not in found(said + "INFO 10-21 08:11:22 weights.py:63] loading weights\n")
    assert "HANG-COLLECTIVE" not in found("It starts, and then it answers at once as it should:\n" + log)


def test_what_is_wrong_with_one_kind_of_card_is_not_said_where_no_card_is_told() -> None:
    nan = "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.0}\nfp16: true\n"
    assert "LOSS-NAN-GTX16" not in found(nan)
    assert "LOSS-NAN-GTX16" not in found(nan + "GPU: RTX 4090\n")
    assert "LOSS-NAN-GTX16" in found(nan + "GPU: GTX 1660 Ti\n")


def test_a_loss_of_zero_is_judged_by_whether_rewards_are_learned_from() -> None:
    rest = "'learning_rate': 1e-06, 'epoch': 0.1"
    assert "LOSS-ZERO" in found("{'loss': 0.0, 'grad_norm': 0.0, " + rest + "}\n")
    assert set(found("{'loss': 0.0, 'grad_norm': 0.0006, " + rest + "}\n")) <= {"SENTENCES-NOT-JUDGED"}
    alike = found(
        "{'loss': 0.0, 'grad_norm': 0.0, 'rewards/a/mean': -3.0, 'reward_std': 0.0, " + rest + "}\n"
    )
    assert "GRPO-NO-SIGNAL" in alike
    assert "LOSS-ZERO" not in alike


def test_who_waits_for_a_server_and_whose_libcuda_is_another_is_told() -> None:
    waits = found("INFO - trl.extras.vllm_client - Server is not up yet. Retrying in 2.0 seconds...\n")
    assert waits["TRL-SERVER-WAITS"].severity is Severity.ERROR
    smi = "| NVIDIA-SMI 545.46                 Driver Version: 546.80       CUDA Version: ERR!     |\n"
    assert found(smi)["DRIVER-CUDA-ERR"].severity is Severity.ERROR


@pytest.mark.parametrize(
    "said",
    [
        "I upgraded flash-attn to 2.6.3 and the import error was fixed by it.",
        "Our crash was fixed by upgrading the driver to 550. Posting it here for others.",
        "The hang at init is fixed in vLLM 0.6.3. I confirm it. Thanks!",
        "After the update to accelerate 0.34 my problem was gone.",
    ],
)
def test_trouble_that_is_told_in_words_to_be_over_is_no_trouble(said: str) -> None:
    told = found(said)
    assert {finding.severity for finding in told.values()} == {Severity.NOTE}
    assert "RELEASE-BLAMED" not in told


@pytest.mark.parametrize(
    "text",
    [
        "ChildFailedError:\n",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\ntrain.py FAILED\n",
        "It dies after an hour. All I get is\n\nChildFailedError:\n\nWhat can I do?\n",
    ],
)
def test_a_report_of_another_error_says_how_to_bring_it_to_light(text: str) -> None:
    finding = found(text)["UNEXPLAINED-ERROR"]
    assert finding.severity is Severity.ERROR
    assert "only reports that something else failed" in finding.cause
    assert "`record`" in ways(finding)


def test_the_real_cause_stands_alone_beside_a_report_of_it() -> None:
    told = found("ModuleNotFoundError: No module named 'peft'\n\nChildFailedError:\n")
    assert "UNEXPLAINED-ERROR" not in told


def test_a_check_that_is_quoted_without_what_it_said_is_no_green_tick() -> None:
    quoted = "vllm: 0.4.0\n\n    assert self.total_num_heads % tensor_parallel_size == 0\n"
    assert set(found(quoted)) == {"UNEXPLAINED-ERROR"}
    assert "UNEXPLAINED-ERROR" not in found("vllm: 0.4.0\n\nwe assert that 8 heads are enough\n")
