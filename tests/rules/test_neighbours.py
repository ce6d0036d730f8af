"""What installers, JIT builds and the libraries beside torch say, in one line each."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Finding
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

MATRIX = load_matrix()

LINES = {
    "INSTALL-CACHE-LOCKED": "Caused by: failed to rename file from C:\\a to C:\\b: Access is"
    " denied. (os error 5)",
    "INSTALL-FILE-IN-USE": "OSError: [WinError 32] The process cannot access the file: 'c10.dll'",
    "WINDOWS-LONG-PATH": "HINT: since this system does not have Windows Long Path support enabled",
    "UV-LOCKED-GLIBC": "error: Distribution `torch==2.7.0 @ registry+https://example.com/simple`"
    " can't be installed because"
    " it doesn't have a source distribution or wheel for the current platform\n\nhint: You're on Linux"
    " (`manylinux_2_27_x86_64`), but `torch` (v2.7.0) only has wheels for the following platforms:"
    " `manylinux_2_28_x86_64`, `win_amd64`",
    "UV-TIMEOUT": "Failed to download distribution due to network timeout. Try increasing UV_HTTP_TIMEOUT",
    "UV-PYTHON-INCOMPATIBLE": "error: The requested interpreter resolved to Python 3.9.18, which is"
    " incompatible with the"
    " project's Python requirement: `>=3.10`",
    "INTERPRETER-GONE": "No Python at 'C:\\Python311\\python.exe'",
    "INDEX-REFUSED": "Caused by: HTTP status client error (403 Forbidden) for url",
    "CONDA-NO-CUDA": "error:   - nothing provides __cuda needed by pytorch",
    "CONDA-PYTORCH-ENDED": "PackagesNotFoundError: not available from current channels:\n -"
    " pytorch-cuda=12.6",
    "UV-FIRST-INDEX": "hint: `requests` was found on https://example.com/whl/cu124, but not at the"
    " requested version",
    "POETRY-CANDIDATES": "  Unable to find installation candidates for torch (2.3.0+cu121)",
    "ORT-CUDA-11": "Failed to load library libonnxruntime_providers_cuda.so with error:"
    " libcublasLt.so.11: cannot open"
    " shared object file: No such file or directory",
    "ORT-CPU-ONLY": ">>> ort.get_available_providers()\n['AzureExecutionProvider', 'CPUExecutionProvider']",
    "CT2-CUDNN": "Could not locate cudnn_ops64_9.dll. Please make sure it is in your library path!",
    "JAX-JAXLIB": "RuntimeError: jaxlib version 0.4.36 is newer than and incompatible with jax"
    " version 0.4.26."
    " Please update.",
    "CUPY-IMPORT": "ImportError: Failed to import CuPy. libnvrtc.so.11.2: cannot open shared object file",
    "PADDLE-LIBRARY": "RuntimeError: (PreconditionNotMet) Cannot load cudnn shared library.",
    "EXTENSION-NAME": "NameError: name 'selective_scan_cuda_core' is not defined",
    "SUBCLASS-OP": "NotImplementedError: AffineQuantizedTensor dispatch: attempting to run unimplemented"
    " operator/function: func=<OpOverload(op='aten.cat', overload='default')>",
    "VERSION-REFUSED": "ValueError: vllm version 0.8.5.post1 not supported",
    "NOT-MULTIMODAL": "ValueError: `limit_mm_per_prompt` is only supported for multimodal models.",
    "SWIFT-MODEL-TYPE": "ValueError: model_type: 'internvl2_5-38b' is not registered.",
    "LLM-ENGINE-V1": "AttributeError: 'LLMEngine' object has no attribute 'model_executor'",
    "NVCC-JIT-MISSING": "/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found",
    "TORCH-API-GONE": "fatal error: THC/THC.h: No such file or directory",
    "OPEN-KERNEL-MODULE": "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
    "KILLED-SAID": "the conversion ends with killed, no traceback",
    "OPERATOR-ABSENT": "RuntimeError: operator torchao::quantize_affine_float8 does not exist",
    "EXTENSION-SYMBOL-UNTOLD": "own_kernels_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol:` error",
    "CUT-OFF": 'File "/tmp/y/setup.py", line 249, in run\n    raise_if_cuda_home_none("flash_attn")',
}


def findings(text: str) -> tuple[Finding, ...]:
    return diagnose_facts(parse_paste(text, "", MATRIX.lexicon), MATRIX, complete=False).findings


@pytest.mark.parametrize("identity", LINES)
def test_the_line_is_answered_by_its_row_with_something_to_do(identity: str) -> None:
    found = {finding.id: finding for finding in findings(LINES[identity])}
    assert identity in list(found)[:2]
    assert found[identity].remedies
    assert found[identity].certainty is not Certainty.CERTAIN


@pytest.mark.parametrize(
    "text",
    [
        "GPU: RTX 4090\nbash: nvcc: command not found",
        "RTX 4090, torch 2.8.0+cu128",
        "GTX 1070, torch 2.6.0+cu126",
    ],
)
def test_what_is_merely_told_is_no_error(text: str) -> None:
    assert not {"NVCC-JIT-MISSING", "OLD-CARD-NEW-CUDA"} & {finding.id for finding in findings(text)}


def test_an_old_card_is_not_served_by_builds_for_a_new_cuda() -> None:
    assert findings("My GTX 1070 stopped working since it uses cu128")[0].id == "OLD-CARD-NEW-CUDA"


@pytest.mark.parametrize(
    ("built", "told"),
    [
        (
            "PyTorch 2.8.0 with CUDA 1209 (you have 2.8.0)\n    Python  3.12.3 (you have 3.10.12)",
            "Python 3.12.3",
        ),
        ("PyTorch 2.8.0 with CUDA 1209 (you have 2.8.0)\n    Python  3.12.3 (you have 3.12.1)", "CUDA 1209"),
        (
            "PyTorch 2.10.0+cu128 with CUDA 1208 (you have 2.11.0+cu130)",
            "torch 2.10.0+cu128, not 2.11.0+cu130",
        ),
    ],
)
def test_of_xformers_is_told_what_it_was_built_for(built: str, told: str) -> None:
    before = "Aug 12 10:38:34 host app[4073658]: "
    for prefix in ("", before):
        text = f"{prefix}WARNING[XFORMERS]: xFormers was built for:\n{prefix}    {built}"
        first = findings(text.replace("\n    Python", f"\n{prefix}    Python"))[0]
        assert first.id == "XFORMERS-TORCH"
        assert told in first.summary
        assert first.remedies


def test_a_version_quoted_with_its_full_stop_gives_no_pin_and_no_crash() -> None:
    text = "PyTorch 2.1.2.+cu121 with CUDA 1201 (you have 2.1.0+cpu)"
    assert all(finding.remedies for finding in findings(text))


KV = (
    "The model's max seq len (4096) is larger than the maximum number of tokens that can be stored in"
    " KV cache (9).",
    "ValueError: 4.26 GiB KV cache is needed, larger than the available KV cache memory (4.25 GiB).",
)


@pytest.mark.parametrize("line", KV)
def test_a_length_that_is_asked_for_is_no_estimate_of_vllms(line: str) -> None:
    assert findings(line)[0].id == "VLLM-MAX-MODEL-LEN"


@pytest.mark.parametrize(
    ("words", "identity"),
    [
        ("# addmm_impl_cpu_ not implemented for Half", "OP-HALF-ON-CPU"),
        ("# SFTTrainer got unexpected keyword dataset_text_field, trl 0.16", "INTERFACE-MISSING"),
        (
            "`from transformers.modeling_utils import shard_checkpoint` was removed",
            "INTERFACE",
        ),
        ("cannot import name AdamW from transformers", "INTERFACE"),
        ("# 5090 no kernel image", "NO-KERNEL-IMAGE"),
        ("CUDA driver version is insufficient", "DRIVER"),
    ],
)
def test_what_a_person_tells_loosely_is_recognised(words: str, identity: str) -> None:
    assert findings(words)[0].id.startswith(identity)


def test_the_message_tells_of_the_process_that_failed_and_a_listing_of_another() -> None:
    text = "torch==2.3.0+cu121\nxformers==0.0.26.post1\nxFormers was built for:\n"
    first = findings(text + "    PyTorch 2.1.2+cu121 with CUDA 1201 (you have 2.0.1+cu118)\n")[0]
    assert first.id == "XFORMERS-TORCH"
    assert "not 2.0.1+cu118" in first.summary
