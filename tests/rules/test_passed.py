"""What a text shows to have been passed over, written by a model or meant of another thing is no cause."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import REPORTED
from envdoctor.findings import Diagnosis, Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

MATRIX = load_matrix()
REFUSED = (
    "GPU: Tesla T4\nERROR 05-01 10:00:10 fa_utils.py:41] Cannot use FA version 2 is not supported due to FA2"
    " is only supported on devices with compute capability >= 8\n"
)
RAN_OUT = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
UNRESOLVED = (
    "WARNING: Retrying (Retry(total=4)) after connection broken by 'NameResolutionError: Failed to resolve"
    " 'mirror.example.org' ([Errno -2] Name or service not known)': /simple/torch/\n"
)


def diagnosis(text: str) -> Diagnosis:
    return diagnose_facts(parse_paste(text, "", MATRIX.lexicon), MATRIX, complete=False)


def found(text: str) -> dict[str, Finding]:
    return {one.id: one for one in diagnosis(text).findings}


def test_a_refused_kernel_is_an_error_where_the_engine_stops_and_a_note_where_it_takes_another() -> None:
    assert found(REFUSED)["FLASH-ATTN-CC"].severity is Severity.ERROR
    went = found(REFUSED + "INFO 05-01 10:00:10 [cuda.py:289] Using XFormers backend.\n")
    assert went["FLASH-ATTN-CC"].severity is Severity.NOTE
    served = found(REFUSED + "INFO:     Application startup complete.\n")
    assert served["FLASH-ATTN-CC"].severity is Severity.NOTE


def test_memory_that_ran_out_behind_another_backend_is_not_laid_to_the_refused_one() -> None:
    assert "OOM-GENERAL" not in found(REFUSED + RAN_OUT)
    assert next(iter(found(REFUSED + "Using FlashInfer backend.\n" + RAN_OUT))) == "OOM-GENERAL"


def test_a_host_that_an_installer_did_without_is_no_error() -> None:
    assert found(UNRESOLVED)["PIP-NETWORK"].severity is Severity.WARNING
    went = found(UNRESOLVED + "Collecting torch\nSuccessfully installed torch-2.4.0\n")
    assert {one.severity for one in went.values()} == {Severity.NOTE}


def test_what_a_model_wrote_is_nobodys_account_of_a_cause() -> None:
    written = (
        "vllm==0.6.0\nPrompt: 'Why?', Generated text: 'The fix was to downgrade transformers to 4.45 because"
        " it no longer works'\nRuntimeError: the frobnicator failed at 3\n"
    )
    answered = diagnosis(written).findings
    assert "RELEASE-BLAMED" not in {one.id for one in answered}
    assert not any("downgrade" in remedy.text for one in answered for remedy in one.remedies)


@pytest.mark.parametrize("section", ["generation_config", "tokenizer", "prompt", "logging"])
def test_a_length_in_a_section_of_another_matter_is_not_the_runs(section: str) -> None:
    assert "LINT-SEQ-TINY" in found("model_name_or_path: m/n\nmax_length: 16\n")
    assert "LINT-SEQ-TINY" not in found(f"model_name_or_path: m/n\n{section}:\n  max_length: 16\n")


def test_heads_are_divided_only_where_one_model_is_told() -> None:
    served = "vllm serve Qwen/Qwen2.5-0.5B-Instruct --tensor-parallel-size 4\n"
    assert "SETTING-RELATION-HEADS" in found(served)
    assert "SETTING-RELATION-HEADS" not in found("vllm serve Qwen/Qwen2.5-7B-Instruct\n" + served)


def test_a_function_that_is_none_is_no_fault_of_the_release_that_calls_it() -> None:
    text = """transformers==4.46.3
Traceback (most recent call last):
  File "/env/lib/python3.10/site-packages/transformers/models/mamba/modeling_mamba.py", line 300, in forward
    out = causal_conv1d_fn(x)
TypeError: 'NoneType' object is not callable
"""
    first = diagnosis(text).findings[0]
    assert first.id == "PYTHON-SAYS"
    assert "causal_conv1d_fn is None" in first.summary
    assert "optional package" in first.cause


@pytest.mark.parametrize(("card", "first"), [("Tesla V100", "Compile it"), ("NVIDIA H100", "Raise it")])
def test_a_missing_kernel_has_one_direction_and_a_command(card: str, first: str) -> None:
    text = (
        f"GPU: {card}\ntorch==2.7.0+cu126\nRuntimeError: CUDA error: no kernel image is available for"
        " execution on the device at /w/gizmo/csrc/gizmo.cu:33\n"
    )
    remedies = found(text)["EXTENSION-NO-KERNEL"].remedies
    assert remedies[0].text.startswith(first)
    assert remedies[0].commands


def test_a_consequence_of_what_a_plan_mends_is_not_left() -> None:
    text = (
        "torch==2.5.1\nsgl-kernel==0.1.0\nImportError: [sgl_kernel] CRITICAL: Could not load any common_ops"
        " library!\nImportError: /env/lib/python3.10/site-packages/sgl_kernel/sm90/common_ops.abi3.so:"
        " undefined symbol: _ZN3c104cuda9SetDeviceEa\n"
    )
    judged = diagnose_facts(parse_paste(text, "", MATRIX.lexicon), MATRIX, complete=True)
    assert judged.plan is not None
    assert not judged.plan.unsolved


def test_what_is_for_one_system_is_not_said_where_no_system_is_told() -> None:
    failed = "ERROR: Failed building wheel for flash-attn\n"
    assert "BUILD-FLASH-ATTN-WINDOWS" not in found(failed)
    assert "BUILD-FLASH-ATTN-WINDOWS" in found(f"OS: Windows 11\n{failed}")
    for prompt in ("PS C:\\ai> ", "(venv) D:\\a b\\c>"):
        assert "BUILD-FLASH-ATTN-WINDOWS" in found(f"{prompt}pip install flash-attn\n{failed}")


def test_a_windows_machine_is_not_sent_back_to_a_wheel_of_linux_libraries() -> None:
    text = (
        "OS: Windows 11\nbitsandbytes==0.41.1\n"
        "CUDA SETUP: Required library version not found: libbitsandbytes_cuda121.so\n"
    )
    assert found(text)["BNB-WINDOWS-BINARY"].remedies[0].pins == {"bitsandbytes": ">=0.43"}
    assert "BNB-BROKEN-COPY" not in found(text)


@pytest.mark.parametrize("error", ["IndentationError: unexpected indent", "OSError: a.so: undefined symbol"])
def test_no_thing_is_taken_from_words_that_name_none(error: str) -> None:
    assert "is not supported" not in diagnosis(f"{error}\n").findings[0].summary


def test_a_card_that_torch_does_not_see_is_sought_on_the_machine_and_in_no_release() -> None:
    text = """Traceback (most recent call last):
  File "/env/lib/python3.10/site-packages/unsloth/__init__.py", line 93, in <module>
    raise NotImplementedError("Unsloth: No NVIDIA GPU found? Unsloth currently only supports GPUs!")
NotImplementedError: Unsloth: No NVIDIA GPU found? Unsloth currently only supports GPUs!
"""
    first = diagnosis(text).findings[0]
    assert "torch sees no GPU" in first.cause
    assert any("--torch-backend=auto" in line for way in first.remedies for line in way.commands)
    assert not any("unsloth" in line for way in first.remedies for line in way.commands)


def test_cmake_without_a_toolkit_is_answered() -> None:
    text = "CMake Error at ggml/src/ggml-cuda/CMakeLists.txt:25 (message):\n  CUDA Toolkit not found\n"
    assert diagnosis(text).findings[0].id == "CMAKE-CUDA-COMPILER"


@pytest.mark.parametrize(
    "wish", ["[Feature] retry on failure", "We improved the error message when the model does not fit."]
)
def test_a_wish_or_what_was_done_reports_no_failure(wish: str) -> None:
    facts = parse_paste(wish + "\n", "", MATRIX.lexicon)
    assert REPORTED not in facts.notes
