"""What a text shows to have worked: a finding of versions alone is no certain error of a run that goes on."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Finding
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

MATRIX = load_matrix()
PAIR = "vllm==0.9.1\ntorch==2.6.0\n"
ENDED = """Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/{file}", line 7, in {function}
    x = y
{error}
"""


def found(text: str) -> dict[str, Finding]:
    facts = parse_paste(text, "", MATRIX.lexicon)
    return {one.id: one for one in diagnose_facts(facts, MATRIX, complete=False).findings}


def weight(finding: Finding) -> str:
    return f"{finding.certainty.value} {finding.severity.value}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PAIR, "certain error"),
        (PAIR + "ImportError: vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEi", "certain error"),
        (PAIR + "TypeError: 'NoneType' object is not iterable", "likely error"),
        (
            PAIR + "INFO 11-01 10:00:00 [kv_cache_utils.py:1087] GPU KV cache size: 49,152 tokens\n",
            "likely warning",
        ),
        (
            PAIR
            + ENDED.format(
                file="vllm/v1/worker/gpu_worker.py", function="initialize_cache", error="KeyError: 1"
            ),
            "likely warning",
        ),
        (PAIR + "The server is fired up and ready to roll!", "certain error"),
    ],
    ids=[
        "versions alone",
        "its own error",
        "another error",
        "a line of its",
        "a function of its",
        "another's line",
    ],
)
def test_a_pair_that_does_not_fit_weighs_what_the_run_leaves_of_it(text: str, expected: str) -> None:
    assert weight(found(text)["VLLM-TORCH"]) == expected


def test_a_requirement_of_a_package_of_which_a_function_ran_was_met_well_enough() -> None:
    ran = ENDED.format(file="transformers/trainer.py", function="train", error="KeyError: 'labels'")
    text = "transformers==4.40.0\ntokenizers==0.20.0\n"
    assert weight(found(text)["REQUIREMENT-UNMET"]) == "certain error"
    left = found(text + ran)["REQUIREMENT-UNMET"]
    assert weight(left) == "certain warning"
    assert "train of transformers ran" in left.cause


def test_a_requirement_that_is_not_met_stays_certain_beside_an_error_of_another_package() -> None:
    ended = ENDED.format(file="torch/_tensor.py", function="backward", error="KeyError: 'labels'")
    left = found("torchvision==0.6.1\ntorch==1.10.1\n" + ended)["REQUIREMENT-UNMET"]
    assert weight(left) == "certain warning"


def test_what_was_being_imported_had_not_run() -> None:
    text = "transformers==4.40.0\ntokenizers==0.20.0\n"
    importing = ENDED.format(file="transformers/__init__.py", function="<module>", error="KeyError: 'x'")
    assert weight(found(text + importing)["REQUIREMENT-UNMET"]) == "likely error"


def test_the_error_of_the_title_decides_which_of_two_tracebacks_is_asked_about() -> None:
    asked = ENDED.format(file="a/b.py", function="f", error="ValueError: the name is used")
    other = ENDED.format(
        file="c/d.py", function="<module>", error="ImportError: libcuda.so.1: cannot open shared object file"
    )
    answers = found(f"# [Bug] ValueError: the name is used\n{asked}\n### Environment\n{other}")
    assert weight(answers["LIB-CUDA-DRIVER"]) == "likely error"
    assert next(iter(answers)) != "LIB-CUDA-DRIVER"


def test_a_warning_of_the_environment_is_no_cause_of_an_import_that_failed() -> None:
    text = (
        "torch==2.3.1+cu121\nNvidia driver version: 510.47.03\ntorch/cuda/__init__.py:118: UserWarning: CUDA"
        " initialization: The NVIDIA driver on your system is too old (found version 11060).\n"
        + ENDED.format(
            file="outlines/a.py",
            function="<module>",
            error="ModuleNotFoundError: No module named 'jsonschema.x'",
        )
    )
    answers = found(text)
    assert weight(answers["DRIVER-TOO-OLD"]) == "likely error"
    assert "outlines" not in answers["DRIVER-TOO-OLD"].cause
    assert next(iter(answers)) != "DRIVER-TOO-OLD"


def test_an_error_quoted_in_a_question_is_no_certain_error() -> None:
    said = (
        "I have met \"The model's max seq len (56000) is larger than the maximum number of tokens that can be"
        ' stored in KV cache (43328)" often.'
    )
    assert weight(found(said)["VLLM-MAX-MODEL-LEN"]) == "likely error"
    asked = f"# Where does the number 43328 of the cache come from?\n\n{said}\n"
    assert weight(found(asked)["VLLM-MAX-MODEL-LEN"]) == "likely error"


@pytest.mark.parametrize(
    ("text", "rank"),
    [("ShardCannotStart rank=0", None), ("rank: 16", None), ("finetuning method: LoRA\nrank: 16", "16")],
)
def test_a_rank_is_an_adapters_beside_what_names_one(text: str, rank: str | None) -> None:
    told = parse_paste(text, "", MATRIX.lexicon).setting("lora_rank")
    assert (told.value if told else None) == rank


def test_a_package_in_the_numbers_of_the_python_is_not_told() -> None:
    facts = parse_paste(
        "Python 3.12\nIt may be a problem between PyTorch 3.12 builds and ours.", "", MATRIX.lexicon
    )
    assert facts.distribution("torch") is None


def test_what_the_interpreter_says_is_no_librarys_own() -> None:
    answers = found("torch==2.6.0\nTypeError: 'NoneType' object is not iterable")
    assert "RAISED-BY-LIBRARY" not in answers


def test_a_line_that_is_quoted_beside_a_run_that_works_is_a_warning() -> None:
    ran = "The server is fired up and ready to roll!\n"
    line = (
        "I read: `ImportError: libcudart.so.12: cannot open shared object file: No such file or directory`\n"
    )
    said = f"someone else wrote that he got {line[8:]}"
    assert weight(found(ran + said)["LIB-CUDART-12"]) == "uncertain warning"
    assert weight(found(said)["LIB-CUDART-12"]) == "likely error"


def test_a_process_that_was_killed_below_a_traceback_is_an_error_of_its_own() -> None:
    text = ENDED.format(file="a/b.py", function="f", error="KeyError: 'x'") + "Loading\nKilled\n"
    errors = parse_paste(text, "", MATRIX.lexicon).errors
    assert [error.text for error in errors] == ["KeyError: 'x' Loading", "Killed"]


def test_hip_does_not_speak_for_a_library_of_nvidia() -> None:
    text = "AMD Instinct MI300X\nRuntimeError: HIP error: unspecified launch failure"
    assert not any("nvidia" in one.summary for one in found(text).values())
