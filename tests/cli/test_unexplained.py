"""Unknown is never green: what nothing explains, and what nothing in was recognised."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envdoctor.cli import main

STRANGE = """\
Traceback (most recent call last):
  File "/opt/env/lib/python3.11/site-packages/trl/trainer/sft_trainer.py", line 300, in train
    self.calibrate()
ValueError: the frobnicator is not calibrated
"""


Diagnose = Callable[..., tuple[int, str]]


@pytest.fixture
def diagnose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Diagnose:
    """Return a function from pasted text and options to (exit code, what is printed)."""

    def run(text: str, *options: str) -> tuple[int, str]:
        (tmp_path / "paste.txt").write_text(text, encoding="utf-8")
        code = main(["diagnose", "--from", str(tmp_path / "paste.txt"), *options])
        return code, capsys.readouterr().out

    return run


def unexplained(told: tuple[int, str]) -> dict[str, Any]:
    code, out = told
    assert code == 1
    return next(f for f in json.loads(out)["findings"] if f["id"] == "UNEXPLAINED-ERROR")


def on_standard_input(text: str) -> tuple[int, str]:
    words = [sys.executable, "-m", "envdoctor", "diagnose", "--format", "json"]
    done = subprocess.run(words, input=text, capture_output=True, text=True)
    return done.returncode, done.stdout


def test_a_text_on_standard_input_is_read_without_from() -> None:
    found = unexplained(on_standard_input(STRANGE))
    assert "the frobnicator is not calibrated" in found["summary"]
    assert "raised by trl in train (sft_trainer.py, line 300)" in found["cause"]
    assert (found["severity"], found["certainty"]) == ("error", "uncertain")


@pytest.mark.parametrize(
    "line",
    [
        "[rank1]:[E1101 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation timeout",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "Segmentation fault (core dumped)",
        "{'loss': nan, 'learning_rate': 1e-05}",
        "ImportError: libcudart.so.9.0: cannot open shared object file: No such file or directory",
        "pydantic_core.ValidationError: 1 validation error for Foo",
    ],
)
def test_no_error_line_is_a_green_tick(diagnose: Diagnose, line: str) -> None:
    code, _ = diagnose(f"torch 2.4.0\n{line}\n")
    assert code == 1


@pytest.mark.parametrize(
    ("told", "severity"),
    [
        ("# Running into AttributeErrorAttributeError from 4.37.0", "error"),
        ("pip says that two of the packages conflict.", "error"),
        ("# v0.30.0 wheels are twice as large now, breaking our image", "warning"),
        ("torchrun is never able to make a connection to the rendezvous.", "warning"),
        ("I would like the newest release, but optimum is not compatible with it.", "warning"),
        ("The server broke after the update.", "error"),
        ("# [BUG] AssertionError (assert param.status == AVAILABLE)", "error"),
        ("训练到一半就报错了", "error"),
    ],
)
def test_an_error_told_only_in_words_is_never_nothing_found(
    diagnose: Diagnose, told: str, severity: str
) -> None:
    _, out = diagnose(f"{told}\n\ntorch: 2.4.0\n", "--format", "json")
    (found,) = json.loads(out)["findings"]
    assert found["id"] in ("UNEXPLAINED-ERROR", "TOLD-BY-TEXT")
    assert (found["severity"], found["certainty"]) == (severity, "uncertain")
    assert told.lstrip("# ") in found["summary"]


@pytest.mark.parametrize(
    "told",
    [
        "Which rank would you choose for a small data set like this one?",
        "After an hour of trial and error I have no errors any more and ask about speed.",
        "Failed requests: 0\nIs this the throughput that one would expect from this card?",
        "请问训练这个模型需要设置多大的学习率比较合适",
    ],
)
def test_sentences_without_words_of_trouble_are_said_not_to_be_judged(diagnose: Diagnose, told: str) -> None:
    code, out = diagnose(f"{told}\n\ntorch: 2.4.0\n", "--format", "json")
    (found,) = json.loads(out)["findings"]
    assert (code, found["id"], found["severity"]) == (0, "SENTENCES-NOT-JUDGED", "note")


def test_an_error_told_as_mended_happened_all_the_same(diagnose: Diagnose) -> None:
    failed = (
        "transformers: 4.48.1\nImportError: cannot import name 'is_torch_greater_or_equal_than_1_13' from "
        "'transformers.pytorch_utils'\n"
    )
    code, out = diagnose(f"{failed}I fixed this by downgrading transformers.\n", "--format", "json")
    told = json.loads(out)
    (found,) = told["findings"]
    assert (code, found["id"], found["severity"]) == (1, "INTERFACE-MISSING", "error")
    assert found["cause"].endswith("The text tells that this was mended.")
    for other in (
        f"{failed}I fixed another one before, but this came.\n",
        f"{failed}How can this issue be solved by me?\n",
        f"I solved the first by a newer driver.\n{failed}",
    ):
        code, out = diagnose(other)
        assert (code, "was mended" in out) == (1, False)


def test_an_error_in_a_description_of_a_change_is_an_example(diagnose: Diagnose) -> None:
    code, _ = diagnose(
        '# README: tell what to do about "no kernel image is available"\n\n'
        "On a P40 with torch 2.9.1+cu130 the first launch fails with `CUDA error: no kernel image is "
        "available for execution on the device`.\n\n"
        "This PR adds one paragraph.\n"
    )
    assert code == 0
    code, _ = diagnose(
        "# Add sm_120 support for RTX 5090\n\nIt fails with:\n"
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    )
    assert code == 1  # printed to who asks for the feature


def test_a_listing_without_sentences_is_judged_whole(diagnose: Diagnose) -> None:
    code, out = diagnose("torch==2.4.0\nnumpy==1.26.4\n", "--format", "json")
    assert (code, json.loads(out)["findings"]) == (0, [])


def test_what_only_reports_another_failure_gives_way_to_it(diagnose: Diagnose) -> None:
    outer = 'Traceback (most recent call last):\n  File "run.py", line 1, in <module>\n    x\n'
    elastic = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py FAILED"
    found = unexplained(diagnose(f"{STRANGE}\n{outer}{elastic}\n", "--format", "json"))
    assert "frobnicator" in found["summary"]
    alone = unexplained(diagnose(f"{outer}{elastic}\n", "--format", "json"))
    assert "the error that started it is not in the text" in alone["cause"]


def test_an_explained_error_is_not_called_unexplained(diagnose: Diagnose) -> None:
    code, out = diagnose(
        "torch: 2.1.0\nValueError: Bfloat16 is only supported on GPUs with compute capability of at least "
        "8.0. Your Tesla T4 GPU has compute capability 7.5.\n",
        "--format", "json",
    )  # fmt: skip
    assert code == 1
    assert "UNEXPLAINED-ERROR" not in [f["id"] for f in json.loads(out)["findings"]]


def test_a_text_in_which_nothing_is_recognised_is_no_pass(diagnose: Diagnose) -> None:
    code, out = diagnose("the weather is fine today\n")
    assert code == 3
    words = " ".join(out.split())
    assert "nothing in it was recognised" in words
    assert words.startswith("! nothing was recognised")
    assert "broke" not in words
    assert "readable are tracebacks" in words


def test_an_empty_standard_input_means_this_machine() -> None:
    code, out = on_standard_input("")
    assert json.loads(out)["facts"]["origin"] == "probe"
    assert code in (0, 1)


def test_a_warning_that_a_logger_wrote_is_no_one_s_complaint(diagnose: Diagnose) -> None:
    line = "WARNING 07-02 01:43:33 [utils.py:101] Unable to detect current VLLM config. Defaulting to NHD."
    code, out = diagnose(f"torch: 2.6.0\n{line}\n", "--format", "json")
    assert (code, [f["id"] for f in json.loads(out)["findings"]]) == (0, ["WARNING-STRANGE"])


def test_a_strange_warning_is_not_nothing(diagnose: Diagnose) -> None:
    strange = "WARNING the frobnicator of this library has failed strangely"
    code, out = diagnose(f"torch: 2.6.0\n{strange}\n", "--format", "json")
    (found,) = json.loads(out)["findings"]
    assert (code, found["severity"], found["certainty"]) == (0, "note", "uncertain")
    assert "has failed strangely" in found["summary"]


def test_how_python_starts_a_module_is_no_warning_of_a_program(diagnose: Diagnose) -> None:
    line = (
        "<frozen runpy>:128: RuntimeWarning: 'vllm.entrypoints' found in sys.modules after import of package"
    )
    code, out = diagnose(f"torch: 2.6.0\n{line}\n", "--format", "json")
    assert (code, json.loads(out)["findings"]) == (0, [])


def test_a_failure_that_a_person_reports_fails_and_what_may_come_only_where_warnings_do(
    diagnose: Diagnose,
) -> None:
    assert diagnose("torch: 2.6.0\nThe training of my model has failed on the second day of it.\n")[0] == 1
    wondered = "torch: 2.6.0\nHow would one avoid that the training of my model fails on its second day?\n"
    assert diagnose(wondered)[0] == 0
    assert diagnose(wondered, "--fail-on", "warning")[0] == 1


@pytest.mark.parametrize(("version", "said"), [("99.1.0", True), ("4.46.0", False)])
def test_a_release_newer_than_all_that_is_known_is_said_so(
    diagnose: Diagnose, version: str, said: bool
) -> None:
    text = (
        f"transformers=={version}\n\nTraceback (most recent call last):\n"
        '  File "/x/site-packages/transformers/trainer.py", line 9311, in _step\n    raise ValueError(odd)\n'
        "ValueError: quantum flux 42\n"
    )
    cause = str(unexplained(diagnose(text, "--format", "json"))["cause"])
    assert (f"transformers {version} is newer than what is known of it here" in cause) == said


FRAMES = [
    "Traceback (most recent call last):",
    '  File "/srv/app/run.py", line 12, in <module>',
    "    main()",
    '  File "/srv/app/steps.py", line 44, in main',
    "    item = take()",
    "           ~~~~^^",
]
UNUSUAL = (
    "pyarrow.lib.ArrowInvalid: Float value 1.5 was truncated converting to int64",
    "shelf.TooDeep: 200000",
    "shelf.Fail_Odd: the shelf is odd",
    "_queue.Empty",
    "ShapeMismatch",
)
PREFIXES = ("", "[rank3]: ", "(Worker pid=41, ip=10.0.0.4) ", "2026-06-01T10:11:12.345Z ", "web-1  | ")


@pytest.mark.parametrize(("line", "prefix"), list(zip(UNUSUAL, PREFIXES, strict=True)))
def test_what_stands_below_the_last_frame_is_the_exception_whatever_its_name(
    diagnose: Diagnose, line: str, prefix: str
) -> None:
    text = "".join(f"{prefix}{row}\n" for row in (*FRAMES, line))
    code, out = diagnose(text + "INFO: bye\n", "--format", "json")
    document = json.loads(out)
    (error,) = document["facts"]["errors"]
    assert (error["exception"], len(error["frames"])) == (line.partition(":")[0], 2)
    assert (code, [f["id"] for f in document["findings"]]) == (1, ["UNEXPLAINED-ERROR"])


def test_of_a_group_the_first_exception_within_is_the_root(diagnose: Diagnose) -> None:
    within = [f"    | {row}" for row in (*FRAMES, "shelf.TooDeep: 200000")]
    rows = [
        "  + Exception Group Traceback (most recent call last):",
        '  |   File "/srv/app/run.py", line 20, in <module>',
        "  |     asyncio.run(main())",
        "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)",
        "  +-+---------------- 1 ----------------",
        *within,
        "    +------------------------------------",
    ]
    _, out = diagnose("\n".join(rows), "--format", "json")
    (error,) = json.loads(out)["facts"]["errors"]
    assert (error["exception"], error["ended"].split(":")[0]) == ("shelf.TooDeep", "ExceptionGroup")


@pytest.mark.parametrize(
    "line",
    ["pyarrow.lib.ArrowInvalid: a value was cut", "it stops: `BadZipFile: File is no archive`"],
)
def test_a_class_that_does_not_say_that_it_is_an_error_is_one_without_a_traceback(
    diagnose: Diagnose, line: str
) -> None:
    assert diagnose(f"When I start it\n\n{line}\n")[0] == 1


def test_a_form_for_failures_that_is_filled_in_reports_one(diagnose: Diagnose) -> None:
    form = (
        "# torch.cuda.device_count() shows only one GPU\n\n### Describe the bug\n\n"
        "The machine has an A100 in MIG mode with seven slices of it.\n"
    )
    code, out = diagnose(form, "--format", "json")
    assert code == 1
    assert "MIG-COUNT" in {found["id"] for found in json.loads(out)["findings"]}


def test_a_server_that_names_the_process_on_its_port_while_it_ends_has_no_trouble(diagnose: Diagnose) -> None:
    line = "WARNING 09-29 01:41:06 [launcher.py:98] port 8001 is used by process psutil.Process(pid=7)"
    code, _ = diagnose(f"INFO 09-29 01:41:05 [launcher.py:80] Shutting down FastAPI HTTP server.\n{line}\n")
    assert code != 1


def test_a_loss_that_stays_zero_is_answered_in_a_question_of_one_line(diagnose: Diagnose) -> None:
    _, out = diagnose("# 请问为什么微调时train loss一直是0呢？\n\n谢谢\n", "--format", "json")
    assert "LOSS-NAN" in {found["id"] for found in json.loads(out)["findings"]}
