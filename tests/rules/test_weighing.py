"""One failure printed as several errors has one answer: the general gives way to the close."""

from __future__ import annotations

from envdoctor.diagnosis import diagnose_facts
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

NCCL = """\
[rank0]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.cpp:5, \
unhandled {kind} error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5
[rank0]: {code}
[rank0]: Last error:
[rank0]: {last}
"""


def found_in(text: str) -> list[str]:
    return [finding.id for finding in diagnose_facts(parse_paste(text, "", load_matrix().lexicon)).findings]


def test_what_nccl_says_last_is_the_one_answer() -> None:
    code = "ncclUnhandledCudaError: Call to CUDA function failed."
    last = "Cuda failure 'peer access is not supported between these two devices'"
    assert found_in(NCCL.format(kind="cuda", code=code, last=last)) == ["NCCL-P2P-UNSUPPORTED"]
    code = (
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error."
    )
    last = "Error while creating shared memory segment /dev/shm/nccl-2kLdXQ (size 9637888)"
    assert found_in(NCCL.format(kind="system", code=code, last=last)) == ["SHM-SMALL-SEEN"]


def test_of_general_answers_to_one_failure_the_strongest_stands() -> None:
    code = (
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error."
    )
    assert found_in(NCCL.format(kind="system", code=code, last="")) == ["NCCL-SYSTEM-ERROR"]


def test_another_failure_keeps_its_own_general_answer() -> None:
    other = "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.\n\n"
    code = "ncclUnhandledCudaError: Call to CUDA function failed."
    found = found_in(other + NCCL.format(kind="cuda", code=code, last=""))
    assert set(found) == {"BUILD-CUDA-HOME", "NCCL-UNHANDLED-CUDA"}


def test_one_line_that_one_step_mends_is_one_finding() -> None:
    text = (
        "transformers: 4.38.2\ntorch: 2.0.1\nGPU: A100\n"
        "RuntimeError: \"triu_tril_cuda_template\" not implemented for 'BFloat16'\n"
    )
    assert found_in(text) == ["PAIR-TRIU-BF16-MODEL"]
