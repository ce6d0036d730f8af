"""Error lines as they stand in pastes: found, joined to their causes, and told apart from mere prose."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from envdoctor.facts import Facts

Read = Callable[..., Facts]

PLAIN = """\
Traceback (most recent call last):
  File "/home/u/train.py", line 3, in <module>
    main()
  File "/opt/env/lib/python3.11/site-packages/trl/trainer/sft_trainer.py", line 300, in train
    self.calibrate()
ValueError: the frobnicator is not calibrated
calibrate it first
"""
LINES = PLAIN.splitlines()


def only(facts: Facts) -> tuple[str, str, int]:
    (error,) = facts.errors
    return error.exception, error.text, len(error.frames)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        "".join(f"[rank3]: {line}\n" for line in LINES),
        "".join(
            f"(EngineCore_0 pid=41) ERROR 08-01 12:00:0{i} [core.py:586] {line}\n"
            for i, line in enumerate(PLAIN.splitlines())
        ),
        "".join(f"> {line}\n" for line in LINES),
        PLAIN.replace("\n", "\r\n"),
    ],
    ids=["plain", "torchrun", "vllm's logger", "quoted", "windows"],
)
def test_a_traceback_is_read_behind_any_prefix(read: Read, text: str) -> None:
    exception, said, frames = only(read(text))
    assert (exception, frames) == ("ValueError", 2)
    assert said == "ValueError: the frobnicator is not calibrated calibrate it first"


def test_its_frames_keep_file_line_function_and_code(read: Read) -> None:
    frame = read(PLAIN).errors[0].frames[-1]
    assert (frame.line, frame.function, frame.code) == (300, "train", "self.calibrate()")
    assert frame.file.endswith("trl/trainer/sft_trainer.py")


def test_what_other_threads_and_marks_print_into_a_traceback_is_no_part_of_it(read: Read) -> None:
    logged = "E0528 06:32:54.247906 735017 tcp_transport.cpp:136] writeBody failed. Error: Bad address"
    mixed = "\n".join(f"{logged}\n{line}" for line in LINES[:-1])
    mixed = mixed.replace("self.calibrate()", f"self.calibrate(){' ' * 40}^^^^^^^")
    found = next(error for error in read(mixed).errors if error.exception == "ValueError")
    assert (found.text, len(found.frames)) == ("ValueError: the frobnicator is not calibrated", 2)
    assert found.frames[-1].code == "self.calibrate()"


def test_a_frame_that_a_title_puts_on_one_line_names_its_function_alone(read: Read) -> None:
    title = '# File "/e/site-packages/trl/core.py", line 8, in end    super().end(), KeyError: 1'
    assert read(title).errors[0].frames[0].function == "end"


def test_rich_and_ipython_lay_tracebacks_out_their_way(read: Read) -> None:
    rich = """\
╭───────────── Traceback (most recent call last) ─────────────╮
│ /opt/env/lib/python3.10/site-packages/axolotl/cli/train.py:68 in do_train │
│                                                             │
│    65 │   model = load()                                    │
│ ❱  68 │   run(model)                                        │
╰─────────────────────────────────────────────────────────────╯
KeyError: 'adapter_of_nowhere'
"""
    cell = """\
---------------------------------------------------------------------------
TypeError                                 Traceback (most recent call last)
Cell In[3], line 1
----> 1 model.fit()

File ~/env/lib/python3.11/site-packages/peft/peft_model.py:12, in fit(self)
     11 def fit(self):
---> 12     raise TypeError("no fit today")

TypeError: no fit today
"""
    assert only(read(rich))[::2] == ("KeyError", 1)
    assert only(read(cell))[::2] == ("TypeError", 1)


@pytest.mark.parametrize(
    "joint", ["The above exception was the direct cause of", "During handling of the above exception,"]
)
def test_of_a_chain_the_root_is_quoted(read: Read, joint: str) -> None:
    wrapped = PLAIN.replace("ValueError: the frobnicator", "RuntimeError: it all")
    (error,) = read(f"{PLAIN}\n{joint} …:\n\n{wrapped}").errors
    assert error.text.startswith("ValueError: the frobnicator")
    assert error.ended.startswith("RuntimeError: it all")


def test_an_exception_named_in_a_sentence_is_an_error(read: Read) -> None:
    facts = read("[Bug]: I get `RuntimeError: the gizmo is unplugged` with trl 0.12")
    assert only(facts)[:2] == ("RuntimeError", "RuntimeError: the gizmo is unplugged` with trl 0.12")


@pytest.mark.parametrize(
    "line",
    ["    except ValueError: pass", "error handling was improved", "Expected: no errors", "raise ValueError"],
)
def test_code_and_talk_of_errors_are_no_error_lines(read: Read, line: str) -> None:
    assert {error.kind for error in read(f"torch 2.4.0\n{line}\n").errors} <= {"said"}


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("Segmentation fault (core dumped)", "SYM-FAULT-SEGFAULT"),
        ("{'loss': nan, 'grad_norm': nan, 'epoch': 0.1}", "SYM-FAULT-NAN"),
        ("[E ProcessGroupNCCL.cpp:1] Watchdog caught collective operation timeout: Work", "SYM-FAULT-NCCL"),
        ("CUDA error: an illegal memory access was encountered", "SYM-FAULT-CUDA"),
        ("libcudart.so.9.0: cannot open shared object file: No such file or directory", "SYM-FAULT-LOADER"),
        ("nvcc fatal   : Unsupported thing", "SYM-FAULT-BUILD"),
    ],
)  # fmt: skip
def test_a_fault_that_is_no_exception_is_an_error(read: Read, line: str, fault: str) -> None:
    (error, *_) = read(line).errors
    assert fault in error.symptoms


def test_a_traceback_without_head_or_end_is_still_an_error(read: Read) -> None:
    assert only(read("\n".join(LINES[1:])))[::2] == ("ValueError", 2)
    exception, said, frames = only(read("\n".join(LINES[:5])))
    assert (exception, frames) == ("", 2)
    assert said == "a traceback at `self.calibrate()`: cut off before its message"


@pytest.mark.parametrize(
    "line",
    [
        "File {}:300, in Trainer.train(self, model)",
        "File {}:300",
        "File [{}:300]), in Trainer.train(self)",
        "{} in train(self)",
        "{} in <module>",
        "│ {}:300 in train  │",
        "{}:300, in Trainer.train(self, model)",
        "{}:300: in train",
        '{}", line 300, in train',
    ],
)
def test_a_frame_of_a_notebook_is_read_without_a_head(read: Read, line: str) -> None:
    file = "/opt/env/lib/python3.11/site-packages/trl/trainer/sft_trainer.py"
    text = f"{line.format(file)}\n    298 model = wrapped\n--> 300 self.calibrate()\nValueError: it is raw\n"
    (error,) = read(text).errors
    assert (error.exception, error.frames[-1].file, error.frames[-1].code) == (
        "ValueError",
        file,
        "self.calibrate()",
    )


def test_an_editor_shows_the_innermost_frame_first(read: Read) -> None:
    text = "\n".join(
        ["Exception has occurred: ValueError  (note: paused)", "uncalibrated", *LINES[3:5], *LINES[1:3]]
    )
    (error,) = read(text).errors
    assert error.text == "ValueError: uncalibrated"
    assert [frame.function for frame in error.frames] == ["<module>", "train"]


def test_a_class_without_its_message_is_a_traceback_cut_off(read: Read) -> None:
    head = "ImportError Traceback (most recent call last)\nFile /opt/site-packages/trl/core.py:7\n"
    (error,) = read(f"{head}----> 7 from transformers import Gone\n").errors
    assert (error.kind, error.exception, error.frames[0].code) == (
        "cut",
        "ImportError",
        "from transformers import Gone",
    )
