"""How a text speaks of an error decides what is said of it: printed, told, supposed, denied, over."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Diagnosis, Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

HEAD = "Traceback (most recent call last):\n"
SITE = "/lib/python3.9/site-packages"
SMI = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver"
SPOKEN = {
    "denied": "Loss is fine.\nThe fabric manager runs without any CUDA out of memory error on our H100s.",
    "over": "`RuntimeError: CUDA error: no kernel image is available for execution` was fixed by it.",
    "a guide": f'If you see "{SMI}", reboot.',
    "a question asked": f'Q: I get "{SMI}"?',
    "words of the errors": "# Lost\nWe moved the work off the GPU. Nothing fell off the bus, luckily.",
    "a page of codes": 'Xid 79 means "GPU has fallen off the bus", Xid 48 is an ECC error, they say.',
    "a manual": 'Join the group docker, else you get "permission denied while trying to connect to the Docker'
    ' daemon socket".',
    "a gate": 'If you get "401 Client Error" or "Access to model x/y is restricted", accept the terms.',
    "a script": f'```bash\nnvidia-smi || echo "{SMI}"\n```',
    "a test that passed": "tests/test_oom.py::test_raises_out_of_memory PASSED\n2 passed in 3.21s",
    "a list of changes": "# News\n- Fixed `AttributeError: module 'numpy' has no attribute 'float'` on 1.24",
    "another's words": "Bob says that he gets undefined symbol: _ZN3c104cuda20CUDACachingAlloc, I do not.",
    "a wish": "Please support sm_120: RTX 5090 is said to be not compatible with the current PyTorch.",
    "old times": "We hit `OSError: [Errno 28] No space left on device` last year. All has 10 TB now.",
    "ignored": "Ignoring exception: ModuleNotFoundError: No module named 'triton'\nINFO: startup complete.",
}
"""Texts in which nothing failed that is shown."""


def diagnosed(text: str) -> Diagnosis:
    matrix = load_matrix()
    return diagnose_facts(parse_paste(text, "", matrix.lexicon, "issue.md"), matrix)


def found(text: str) -> dict[str, Finding]:
    return {finding.id: finding for finding in diagnosed(text).findings}


@pytest.mark.parametrize("text", SPOKEN.values(), ids=SPOKEN.keys())
def test_what_no_program_printed_is_never_certain(text: str) -> None:
    errors = [one for one in diagnosed(text).findings if one.severity is Severity.ERROR]
    assert not [one.id for one in errors if one.certainty is Certainty.CERTAIN]


@pytest.mark.parametrize("name", ["denied", "over", "a script", "a test that passed", "words of the errors"])
def test_what_did_not_happen_is_no_error(name: str) -> None:
    assert diagnosed(SPOKEN[name]).exit_code != 1


def test_a_line_that_is_printed_below_its_telling_counts() -> None:
    said, shown = f"This might be {SMI}, I think.\n", f"```\n{SMI}.\n```\n"
    assert found(said + shown)["DRIVER-SMI-FAILED"].certainty is Certainty.CERTAIN


@pytest.mark.parametrize(
    "text",
    [
        "# Frobnicator does not start\nAfter the update I get an error when I launch it with two cards.",
        "# Training\nThe run gets stuck at 3 % and nothing happens any more, all cards are at 100 %.",
        "# 启动模型报错\n启动之后报错, 服务没有响应, 请帮忙看看这个问题。",
        "# Errors when building the newest flash-attn with ninja\nThe compilers take all of the machine.",
        "# `torchtune.data.somewhere` not installing\nIt appears that it is not downloaded with the rest.",
        "# nvidia-smi shows it but torch.cuda.is_available() False\nIt is the same in a new environment.",
        "# The loss is 0 from the first step\nIt stays there whatever the learning rate of the run is.",
    ],
)
def test_a_failure_that_is_reported_in_words_alone_is_an_error(text: str) -> None:
    assert diagnosed(text).exit_code == 1


@pytest.mark.parametrize(
    "text",
    [
        "# How do I serve with lookahead?\nThe other command doesn't work because it wants a prompt.",
        "# Will it fit\nWould a 13B model fail to load on a card of 24 GB? It works fine on my 48 GB one.",
        "# It learned\nThe final loss is 0.35 after an epoch, and all is well.",
        "Changes of this release:\n- Fix CUDA out of memory in evaluation\n- Add support for more cards",
        "FAQ\nQ: I get `KeyError: 'mistral'`.\nA: Upgrade transformers.\nQ: I get `CUDA error`. Why?\n",
        "# [Solved] CUDA out of memory\nI had it with batch size 8, a batch size of 1 was the way out of it.",
        "W0501 10:00:01.000000 140 loader.cc:70] Could not load dynamic library 'libcudart.so.11.0'; dlerror:"
        " libcudart.so.11.0: cannot open shared object file\nEpoch 1/1 done, accuracy 0.93",
        "Attempt 1 failed: ConnectionError: Max retries exceeded. Retrying in 5 s...\nThe server is ready.",
        "E0501 10:00:00 retry.py:20] Exception while fetching: TimeoutError()\nstep 9\ntraining done",
        "# 出现了UserWarning: torch.utils.checkpoin这个错误\n```\ncheckpoint.py:459: UserWarning: "
        "torch.utils.checkpoint: please pass in use_reentrant=True or use_reentrant=False explicitly.\n```",
        "# checkpoint\n请问训练过程中会产出checkpoint吗, 这样如果出现错误就不需要完全重来, 万分感谢。",
        "# About speed\nIt is 81 tokens a second on my A800. On the other card I not meet same problem.",
        "# [Question]: which card\n- [x] I have searched the issues and could not find an answer to this.",
    ],
)
def test_a_question_is_no_report_of_a_failure(text: str) -> None:
    assert diagnosed(text).exit_code != 1


def test_a_grave_level_without_trouble_is_no_error() -> None:
    log = "INFO:main:Loaded\nCRITICAL:main:Starting finetuning\nINFO:main:Finetuning done!\n"
    assert diagnosed(log).exit_code != 1
    assert diagnosed("INFO:main:Loaded\nCRITICAL:main:Giving up\n").exit_code == 1


def test_the_packages_of_another_python_than_the_one_that_ran_are_beside_the_question() -> None:
    frames = f'{HEAD}  File "/opt/conda/lib/python3.11/site-packages/frob/a.py", line 3, in f\n'
    listed = (
        "RuntimeError: frob is absent\n\nPython: 3.12.9 | packaged by Anaconda\n"
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch"
        " installation.\nPyTorch: 2.7.0+cu126\n"
    )
    assert found(frames + listed)["TORCH-ARCH"].certainty is Certainty.LIKELY


def test_the_error_of_a_title_is_that_of_the_traceback_which_is_cut_off() -> None:
    text = (
        "# when import frob,ImportError: /lib64/libc.so.6: version `GLIBC_2.34'\n"
        'Traceback (most recent call last):\n  File "/data/frob/chat.py", line 110,\n'
    )
    assert "GLIBC-OLD" in found(text)


def test_a_program_that_is_started_in_vain_is_named() -> None:
    text = (
        f'{HEAD}  File "{SITE}/whisper/audio.py", line 58, in load_audio\n'
        "    out = run(cmd, capture_output=True, check=True).stdout\n"
        '  File "/usr/lib/python3.9/subprocess.py", line 505, in run\n    with Popen(*args) as process:\n'
        '  File "/usr/lib/python3.9/subprocess.py", line 951, in __init__\n    self._execute\n'
    )
    assert "FFMPEG-ABSENT" in found(text)
    bare = text.replace("load_audio", "look").replace("whisper", "frob")
    assert "a program was started" in found(bare)["CUT-OFF"].summary


def test_a_message_that_breaks_off_is_answered_by_its_place() -> None:
    text = (
        f'{HEAD}  File "{SITE}/huggingface_hub/file_download.py", line 387, in _request_wrapper\n'
        "    response = get_session().request(method=method)\n"
        "requests.exceptions.ConnectionError: (MaxRetryErr\n"
    )
    assert "a file was fetched from the Hub" in found(text)["CUT-OFF"].summary


KNOWN = r"""
PYTHON-TOO-OLD-TYPING: TypeError: unsupported operand type(s) for |: 'ModelMetaclass' and 'NoneType'
NCCL-COPY-OLD: libtorch_cuda.so:%20undefined%20symbol:%20ncclCommRegister
DLL-DEPENDENCY: FileNotFoundError: Could not find module 'D:\x\ggml.dll' (or one of its dependencies).
DATASET-OF-NONE: IndexError: Invalid key: 28 is out of bounds for size 0
WEIGHTS-AS-CONFIG: OSError: It looks like the config file at 'm/model.bin' is not a valid JSON file
DRIVER-NONE-FOR-GRAPHICS: CUDA driver version is insufficient for CUDA runtime version (Iris Xe Graphics)
"""


@pytest.mark.parametrize("line", KNOWN.strip().splitlines())
def test_a_line_is_known(line: str) -> None:
    identity, text = line.split(": ", 1)
    assert identity in found(text)


def test_a_model_that_is_newer_than_transformers_is_told() -> None:
    said = "# Qwen2TokenizerFast object has no attribute 'tokenizer\nI deploy Qwen2.5-VL-7B-Instruct here.\n"
    old = found(f"{said}The version of transformers is 4.45.0.\n")["MODEL-NEWER-THAN-LIBRARY"]
    assert "transformers 4.49" in old.summary
    assert old.certainty is Certainty.LIKELY
    assert found(said)["MODEL-NEWER-THAN-LIBRARY"].certainty is Certainty.UNCERTAIN
    assert "MODEL-NEWER-THAN-LIBRARY" not in found(f"{said}\ntransformers==4.51.3\n")


def test_the_numbers_of_a_message_stand_in_the_answer_where_they_are_told() -> None:
    mixed = "RuntimeError: mat1 and mat2 must have the same dtype"
    assert "(Double and BFloat16)" in found(f"{mixed}, but got Double and BFloat16")["DTYPES-MIXED"].summary
    assert "[[" not in found(mixed)["DTYPES-MIXED"].summary


def test_a_python_of_32_bits_is_told_to_have_no_wheels() -> None:
    text = (
        "ERROR: Could not find a version that satisfies the requirement torch>=1.6.0 (from versions: none)\n"
        "pip 23.1.2 from C:\\Program Files (x86)\\Python310-32\\lib\\site-packages\\pip (python 3.10)\n"
    )
    finding = found(text)["INDEX-OFFERS-NONE"]
    assert "32 bits" in finding.summary
    assert "64 bits" in finding.remedies[0].text


def test_what_was_raised_was_printed_whatever_its_words_are() -> None:
    raised = (
        "RuntimeError: The detected CUDA version (12.1) mismatches the version that was used to compile"
        " PyTorch (11.8)"
    )
    told = found(f"torch: 2.1.0+cu118\nnvcc: 12.1\ndeepspeed: 0.12.0\n{raised}")["DS-CUDA-MISMATCH"]
    assert (told.severity, told.certainty) == (Severity.ERROR, Certainty.CERTAIN)


@pytest.mark.parametrize(
    "text",
    [
        "How do I avoid `CUDA out of memory` when I evaluate with generate()?",
        "What is the difference between ZeRO-2 and ZeRO-3? When would it run out of memory?",
        "# Can I mix a 3090 and a 4090 in one machine for DDP?\nWill NCCL hang?",
    ],
)
def test_questions_alone_tell_of_nothing_that_happened(text: str) -> None:
    told = found(text).values()
    assert not [one for one in told if one.severity is Severity.ERROR]
    assert {one.certainty for one in told if one.severity is Severity.WARNING} <= {Certainty.UNCERTAIN}


@pytest.mark.parametrize(
    "text",
    [
        "Our CI passes: 312 passed, 0 failed, 4 skipped in 93.2s. transformers 4.46.3, torch 2.5.1",
        "2024-11-02 10:11:12 INFO Using the latest cached version of the dataset since squad couldn't be"
        " found on the Hugging Face Hub\n{'loss': 1.23, 'epoch': 0.1}",
        "[rank0]:[W1101 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed"
        " before we destruct ProcessGroupNCCL.\nTraining completed.",
    ],
)
def test_what_a_sound_run_prints_is_no_trouble(text: str) -> None:
    assert not [one for one in found(text).values() if one.severity is not Severity.NOTE]
