"""torch answers False where it is asked for CUDA: told by reports, prompts and programs of one line."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Finding
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

LEXICON = load_matrix().lexicon
CARD = "GPU 0: NVIDIA A100-SXM4-80GB\nNvidia driver version: 550.54.15\n"


def told(text: str) -> dict[str, Finding]:
    return {f.id: f for f in diagnose_facts(parse_paste(text, "paste", LEXICON)).findings}


@pytest.mark.parametrize(
    "said",
    [
        "PyTorch version: 2.6.0+cu124\nIs CUDA available: False",
        "- PyTorch version (GPU?): 2.6.0+cu124 (False)",
        ">>> torch.__version__\n'2.6.0+cu124'\n>>> torch.cuda.is_available()\nFalse",
        "torch 2.6.0+cu124, and torch.cuda.is_available() returns False",
        '$ python -c "import torch; print(torch.__version__, torch.cuda.is_available())"\n2.6.0+cu124 False',
    ],
)
def test_torch_that_finds_no_cuda_beside_a_card_is_an_error(said: str) -> None:
    found = told(f"{CARD}{said}\n")
    assert found["CUDA-NOT-SEEN"].severity.value == "error"
    assert "built for CUDA 12.4" in found["CUDA-NOT-SEEN"].cause


def test_without_a_card_it_is_a_note() -> None:
    found = told("- `transformers` version: 4.51.3\n- PyTorch version (GPU?): 2.6.0 (False)\n")
    assert found["CUDA-NOT-SEEN"].severity.value == "note"


def test_beside_an_error_that_is_asked_about_it_is_a_warning() -> None:
    error = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: no such thing'
    )
    assert told(f"{CARD}Is CUDA available: False\n{error}\n")["CUDA-NOT-SEEN"].severity.value == "warning"


def test_a_build_for_the_cpu_is_the_cause_itself() -> None:
    asked = 'python3 -c "import torch; print(torch.__version__); print(torch.cuda.is_available())"'
    found = told(f"{CARD}$ {asked}\n2.8.0+cpu\nFalse\n")
    assert "TORCH-CPU-BUILD" in found
    assert "CUDA-NOT-SEEN" not in found


def test_what_torch_finds_is_no_finding() -> None:
    assert not told(f"{CARD}PyTorch version: 2.6.0+cu124\nIs CUDA available: True\n")


@pytest.mark.parametrize(
    ("asked", "answer", "version"),
    [
        ("print(torch.__version__)", "2.6.0+cu124", "2.6.0+cu124"),
        ("print('torch:', torch.__version__, torch.cuda.is_available())", "torch: 2.6.0 True", "2.6.0"),
        ("print(f'{torch.__version__=}'.upper())", "2.6.0", None),
        ("print(f'torch {torch.__version__} on {device}')", "torch 2.6.0 on cuda:0", "2.6.0"),
        ("print(one, torch.__version__, two)", "1 2.6.0 2", None),
        ("torch.__version__", "'2.6.0'", "2.6.0"),
        ("torch.__version__ ->", "'2.6.0'", None),
    ],
)
def test_what_an_expression_printed_is_read_by_its_pieces(asked: str, answer: str, version: str) -> None:
    one = parse_paste(f">>> {asked}\n{answer}\n", "", LEXICON).distribution("torch")
    assert (one.version if one else None) == version


def test_what_torch_says_outweighs_the_versions_of_a_driver() -> None:
    """Forward compatibility runs a newer CUDA on an old driver, and torch finds it."""
    machine = "GPU 0: NVIDIA A100-SXM4-80GB\nCUDA Driver Version: 470.103.01\nPyTorch: 2.5.1+cu121\n"
    assert "DRIVER-TOO-OLD" in told(machine)
    assert "DRIVER-TOO-OLD" not in told(f"{machine}CUDA available: True\n")
    asked = "python -c 'import torch; print(torch.cuda.is_available())'"
    assert "DRIVER-TOO-OLD" not in told(f"{machine}$ {asked}\nTrue\n")


@pytest.mark.parametrize("label", ["git011de5c", "rocm6.1"])
def test_what_stands_beside_a_torch_of_ones_own_is_of_ones_own_too(label: str) -> None:
    assert {"VLLM-TORCH", "REQUIREMENT-UNMET"} <= told("torch==2.6.0\nvllm==0.7.2\n").keys()
    assert {"VLLM-TORCH", "REQUIREMENT-UNMET"}.isdisjoint(told(f"torch==2.6.0+{label}\nvllm==0.7.2\n"))
