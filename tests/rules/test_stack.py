"""The stack's own rules, met as users meet them: a paste goes in, findings come out."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

Found = dict[str, Finding]


def judged(text: str) -> Found:
    """Diagnose a paste and return its findings by id, in order."""
    matrix = load_matrix()
    facts = parse_paste(text, "", matrix.lexicon)
    return {f.id: f for f in diagnose_facts(facts, matrix, complete=False).findings}


def pins(finding: Finding) -> list[dict[str, str]]:
    return [dict(remedy.pins) for remedy in finding.remedies]


def test_bitsandbytes_carries_libraries_for_some_cuda_only() -> None:
    found = judged("torch==2.8.0+cu129\nbitsandbytes==0.46.0\n")["BNB-BINARY"]
    assert found.certainty is Certainty.CERTAIN
    assert pins(found)[0] == {"bitsandbytes": ">=0.46.1,<0.50.0"}
    assert found.remedies[1].commands == ("export BNB_CUDA_VERSION=128",)


@pytest.mark.parametrize(
    "healthy",
    [
        "torch==2.8.0+cu129\nbitsandbytes==0.46.1\n",
        "torch==2.11.0+cu130\nbitsandbytes==0.48.0\n",
        "torch==2.11.0\nbitsandbytes==0.50.2\n",
        "torch==2.4.0+cpu\nbitsandbytes==0.44.1\n",
    ],
)
def test_a_bitsandbytes_with_the_right_library_is_left_alone(healthy: str) -> None:
    assert "BNB-BINARY" not in judged(healthy)


def test_the_missing_library_names_itself_when_no_version_is_known() -> None:
    line = "Could not find the bitsandbytes CUDA binary at PosixPath('/x/libbitsandbytes_cuda130.so')"
    found = judged(line)["BNB-BINARY"]
    assert found.certainty is Certainty.LIKELY
    assert pins(found)[0] == {"bitsandbytes": ">=0.48.0"}


@pytest.mark.parametrize(
    ("versions", "name", "severity"),
    [
        ("transformers==5.23.0\ntorch==2.5.1\n", "torch", Severity.ERROR),
        ("transformers==5.17.0\npeft==0.17.1\n", "peft", Severity.WARNING),
        ("transformers==5.17.0\ntokenizers==0.22.0\n", "tokenizers", Severity.ERROR),
        ("transformers==5.0.0\nbitsandbytes==0.45.5\n", "bitsandbytes", Severity.ERROR),
        ("transformers==5.4.0\ntorchao==0.13.0\n", "torchao", Severity.WARNING),
    ],
)
def test_transformers_demands_more_than_metadata_says(versions: str, name: str, severity: Severity) -> None:
    found = judged(versions)["TRANSFORMERS-MINIMUM"]
    assert found.severity is severity
    assert list(found.remedies[0].pins) == [name]


@pytest.mark.parametrize(
    ("line", "library", "bound"),
    [
        ("cannot import name 'EncoderDecoderCache' from 'transformers'", "transformers", ">=4.4"),
        ("ImportError: cannot import name 'is_rich_available' from 'trl.import_utils'", "trl", ">="),
        ("ImportError: cannot import name 'get_peft_model_nowhere' from 'peft'", "", ""),
        ("TypeError: Accelerator.unwrap_model() got an unexpected keyword argument 'keep_torch_compile'",
         "accelerate", ">=1.3"),
        ("TypeError: SFTConfig.__init__() got an unexpected keyword argument 'max_seq_length'", "trl", "<0."),
        ("ModuleNotFoundError: No module named 'trl.core_nowhere'", "", ""),
    ],
)  # fmt: skip
def test_a_missing_name_is_answered_with_releases_that_have_it(line: str, library: str, bound: str) -> None:
    found = judged(line)
    offered = [pin for finding in found.values() for pin in pins(finding)]
    if not library:
        assert "INTERFACE-MISSING" not in found
    else:
        assert any(pin.get(library, "").startswith(bound) or bound in pin.get(library, "") for pin in offered)


def test_a_release_that_has_the_name_is_not_blamed() -> None:
    line = "TypeError: Accelerator.unwrap_model() got an unexpected keyword argument 'keep_torch_compile'"
    assert "INTERFACE-MISSING" not in judged(f"accelerate==1.5.0\n{line}\n")


def test_a_missing_module_is_answered_with_its_distribution() -> None:
    found = judged("ModuleNotFoundError: No module named 'cv2'")["MODULE-MISSING"]
    assert pins(found)[0] == {"opencv-python-headless": ">=0"}
    assert found.remedies[0].commands == ("pip install opencv-python-headless",)


def test_nobody_is_told_to_install_a_stranger_s_package() -> None:
    found = judged("ModuleNotFoundError: No module named 'mypkg'")["MODULE-MISSING"]
    assert not any(remedy.pins or "install mypkg" in " ".join(remedy.commands) for remedy in found.remedies)
    assert "not on record" in found.summary


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("ERROR: No matching distribution found for torch==2.0.1", "<3.12"),
        ("Python 3.13.1\nERROR: No matching distribution found for vllm==0.8.4", None),
        ("Python 3.12.3\nERROR: No matching distribution found for torch==1.13.1+cu117", "<3.1"),
    ],
)
def test_a_python_without_a_wheel_is_named(text: str, allowed: str | None) -> None:
    found = judged(text)
    if allowed is None:
        assert "NO-SUCH-VERSION" not in found
    else:
        assert allowed in found["PYTHON-NO-WHEEL"].remedies[0].pins["python"]


def test_a_version_that_never_was_is_said_so() -> None:
    found = judged("ERROR: No matching distribution found for transformers==4.99.0")
    assert "not on the default index" in found["NO-SUCH-VERSION"].summary


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("vllm==0.10.0\ntorch==2.8.0\n", Severity.ERROR),
        ("torchvision==0.26.0\ntorch==2.10.0\n", Severity.ERROR),
        ("llamafactory==0.9.5\ntransformers==5.20.0\n", Severity.WARNING),
    ],
)
def test_a_listing_is_judged_by_what_each_release_requires(text: str, severity: Severity) -> None:
    assert judged(text)["REQUIREMENT-UNMET"].severity is severity


MISMATCH = "Installed CUDA version {} does not match the version torch was compiled with {}"


@pytest.mark.parametrize(
    ("toolkit", "built", "variant"),
    [("12.2", "11.7", "cu121"), ("11.0", "10.1", "cu110"), ("13.2", "13.0", "cu132")],
)
def test_a_toolkit_of_another_cuda_cannot_build_extensions(toolkit: str, built: str, variant: str) -> None:
    found = judged(MISMATCH.format(toolkit, built))["DS-CUDA-MISMATCH"]
    assert toolkit in found.summary
    assert built in found.summary
    assert variant in found.remedies[1].commands[0]


def test_a_toolkit_that_deepspeed_tolerates_is_no_finding() -> None:
    assert "DS-CUDA-MISMATCH" not in judged("torch==2.10.0+cu128\ndeepspeed==0.18.9\nnvcc 12.4\n")


def test_deepspeed_s_later_message_stands_under_the_mismatch() -> None:
    later = "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'"
    found = judged(f"{MISMATCH.format('12.2', '11.7')}\n{later}")
    assert found["DS-CPU-ADAM-ATTRIBUTE"].consequence_of == "DS-CUDA-MISMATCH"


@pytest.mark.parametrize(
    ("text", "identity", "words"),
    [
        ("gpu: A6000 48GB\nvllm.gpu_memory_utilization: 0.95\nGPU memory exceeds 48 GiB in scoring",
         "VLLM-UTILIZATION-HIGH", "0.8"),
        ("gpu: RTX 4090 24GB\nvllm.gpu_memory_utilization: 0.5\nNo available memory for the cache blocks",
         "VLLM-NO-KV-BLOCKS", "max_num_seqs"),
        ("ValueError: You can't pass `load_in_4bit` or `load_in_8bit` as a kwarg when passing "
         "`quantization_config` argument at the same time.", "BNB-BOTH-CONFIGS", "quantization_config"),
        ("transformers==4.31.0\ntorch==2.0.1\ndeepspeed.zero_stage: 2\nmethod: LoRA\n"
         "the process hangs while memory rises until it dies", "HOST-LOW-CPU-MEM", "low_cpu_mem_usage"),
        ("gpu: 4x RTX 3090 24GB\nmodel: Qwen2-7B\ndeepspeed.zero_stage: 2\nvllm.gpu_memory_utilization: 0.8\n"
         "CUDA out of memory", "OOM-GRPO-ZERO2", "ZeRO-3"),
    ],
)  # fmt: skip
def test_the_situations_that_the_design_came_from(text: str, identity: str, words: str) -> None:
    finding = judged(text)[identity]
    assert words in finding.summary + " ".join(remedy.text for remedy in finding.remedies)


def test_a_tokenizer_that_no_release_has_is_the_model_s_own() -> None:
    line = "ValueError: Tokenizer class InternLM2Tokenizer does not exist or is not currently imported."
    found = judged(line)["MODEL-UNKNOWN"]
    assert any("trust_remote_code" in remedy.text for remedy in found.remedies)


def test_a_pickle_that_names_what_is_gone_was_written_by_another_release() -> None:
    where = "<module 'transformers.models.t5.modeling_t5' from '/x/modeling_t5.py'>"
    found = judged(f"transformers==4.25.1\nAttributeError: Can't get attribute 'T5DenseReluDense' on {where}")
    assert "T5DenseReluDense in transformers.models.t5.modeling_t5" in found["INTERFACE-MISSING"].summary
    assert "<4.20.0" in found["INTERFACE-MISSING"].summary


def test_a_data_set_s_script_is_told_where_the_line_is_cut() -> None:
    assert "DATASET-SCRIPT" in judged("RuntimeError: Dataset scripts are no longer supported, but")
