"""Facts that decide an error's cause: the system, the card, WSL, MIG, what a build left out."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

MATRIX = load_matrix()
TRACE = "Traceback (most recent call last):\n"


def found(text: str) -> dict[str, Finding]:
    facts = parse_paste(text, "", MATRIX.lexicon, "issue.md")
    return {one.id: one for one in diagnose_facts(facts, MATRIX).findings}


def errors(text: str) -> list[str]:
    return [identity for identity, one in found(text).items() if one.severity is Severity.ERROR]


NEAR = {
    "PYO3-PYTHON": (
        "error: the configured Python interpreter version (3.14) is newer than PyO3's maximum supported"
        " version (3.13)\n"
    ),
    "LONG-BUILD-PATH": "x.cpp : fatal error C1083: Cannot open compiler generated file: ''\n",
    "WHEEL-UNKNOWN": "Building wheel for UNKNOWN\n  ERROR: Failed building wheel for UNKNOWN\n",
    "TOKENIZER-FILE-NONE": (
        f'{TRACE}  File "/x/site-packages/sentencepiece/__init__.py", line 310, in LoadFromFile\n'
        "    return _sentencepiece.SentencePieceProcessor_LoadFromFile(self, arg)\nTypeError: not a string\n"
    ),
    "LOADER-KILLED": "RuntimeError: DataLoader worker (pid 563735) is killed by signal: Killed. \n",
    "LIB-TORCH-HIP": "ImportError: libtorch_hip.so: cannot open shared object file: No such file\n",
    "BNB-WSL-LIBCUDA": (
        "# No GPU in WSL2\nCUDA SETUP: WARNING! libcuda.so not found! Do you have a CUDA driver installed?\n"
        "warn: No GPU detected! Check your CUDA paths. Proceeding to load CPU-only library...\n"
    ),
    "BNB-WINDOWS-OLD": (
        "CUDA SETUP: Loading binary AppData\\Local\\site-packages\\bitsandbytes\\libbitsandbytes_cpu.so...\n"
        "argument of type 'WindowsPath' is not iterable\n"
    ),
    "LOSS-NAN-GTX16": "GPU: NVIDIA GeForce GTX 1660 SUPER\n{'loss': nan, 'learning_rate': 1e-4}\n",
    "LLAMACPP-CONTEXT": "error: request (44496 tokens) exceeds the available context size (32768 tokens)\n",
    "MULTIMODAL-PLACES": "masked_scatter_size_check: Assertion `totalElements <= srcSize` failed.\n",
    "FLASHINFER-TURING": (
        "GPU 0: Tesla T4\nRuntimeError: BatchPrefillWithPagedKVCache failed with error invalid argument\n"
    ),
    "PINNED-WSL": (
        f'Linux: WSL2\n{TRACE}  File "/x/vllm/worker/cache_engine.py", line 89, in allocate_cpu_cache\n'
        "    key_blocks = torch.empty(\nRuntimeError: CUDA error: out of memory\n"
    ),
    "ADAPTER-OF-ZERO3": (
        "# PeftModel fails to load. Size Mismatch Error\n- peft version: 0.10.0\n"
        '{"zero_optimization": {"stage": 3, "overlap_comm": true}, "fp16": {"enabled": "auto"}}\n'
    ),
}
"""A text of each cause, which is told first."""

FAR = {
    "FLASHINFER-TURING": NEAR["FLASHINFER-TURING"].replace("Tesla T4", "NVIDIA A100"),
    "LOSS-NAN-GTX16": NEAR["LOSS-NAN-GTX16"].replace("GTX 1660 SUPER", "RTX 3060"),
    "PINNED-WSL": NEAR["PINNED-WSL"].replace("WSL2", "Ubuntu"),
    "BNB-WSL-LIBCUDA": NEAR["BNB-WSL-LIBCUDA"].replace("WSL2", "Ubuntu"),
    "ADAPTER-OF-ZERO3": NEAR["ADAPTER-OF-ZERO3"].replace('"stage": 3', '"stage": 2'),
    "LOADER-KILLED": "RuntimeError: DataLoader worker (pid 563735) is killed by signal: Bus error.\n",
    "LIB-TORCH-HIP": NEAR["LIB-TORCH-HIP"].replace("_hip", "_cuda"),
}
"""The same with another card, system or number: the cause is none."""


@pytest.mark.parametrize("identity", NEAR)
def test_the_cause_is_told_first(identity: str) -> None:
    assert errors(NEAR[identity])[:1] == [identity]


@pytest.mark.parametrize("identity", FAR)
def test_elsewhere_it_is_no_cause(identity: str) -> None:
    assert identity not in found(FAR[identity])


def test_a_mig_instance_is_alone_in_its_process() -> None:
    text = "`torch.cuda.device_count()` returns `0`, when used on an A100 in MIG-Mode\ntorch 1.13.1\n"
    assert "2.0" in " ".join(remedy.text for remedy in found(text)["MIG-COUNT"].remedies)
    assert "MIG-COUNT" not in found("torch.cuda.device_count() returns 1 on my A100, which is right.\n")


def test_black_images_are_nan_drawn() -> None:
    assert "BLACK-IMAGES" in found("Training SDXL with fp16, the validation output is black images only.\n")


def test_a_module_of_a_part_that_a_plain_build_leaves_out() -> None:
    told = found("ModuleNotFoundError: No module named 'fused_layer_norm_cuda'\n")["MODULE-MISSING"]
    assert "apex (a compiled extension" in told.summary


@pytest.mark.parametrize(
    ("system", "wheels"),
    [("macOS-14.5-arm64-arm-64bit", False), ("Linux-5.15.0-x86_64-with-glibc2.35", True)],
)
def test_a_module_whose_package_has_no_wheel_for_the_system(system: str, wheels: bool) -> None:
    text = f"Platform: {system}\nModuleNotFoundError: No module named 'triton'\n"
    assert ("no release has a wheel" in found(text)["MODULE-MISSING"].summary) is not wheels


def test_the_cuda_beside_a_version_is_its_build() -> None:
    assert "TORCH-ARCH" not in found("- PyTorch Version: 1.12.1 cuda 11.3\n- GPU: A100\n")
    assert "TORCH-ARCH" in found("- PyTorch Version: 1.12.1 cuda 10.2\n- GPU: A100\n")


def test_what_a_condition_supposes_is_no_setting() -> None:
    said = "FutureWarning: Tip: Ray will not override accelerator visible devices if num_gpus=0 in future.\n"
    assert not errors(said)


def test_what_peft_ignores_in_silence_is_no_refusal() -> None:
    gone = "Access to model meta-llama/Llama-3.2-3B is restricted. Please log in."
    assert "HUB-ACCESS" in found(f"{TRACE}OSError: {gone}\n")
    assert not errors(f"UserWarning: {gone} - silently ignoring the lookup for the file config.json\n")


SOUND = (
    "(APIServer pid=1805) INFO 04-25 08:50:55 [nixl_utils.py:20] Set it to avoid a rare leak in UCX.\n",
    "INFO 03-19 06:35:51 model_runner.py:1399] CUDA graphs can take additional 1~3 GiB memory per GPU. If you"
    " are running out of memory, consider decreasing `gpu_memory_utilization`.\n",
    "llama_params_fit: failed to fit params to free device memory: n_gpu_layers already set by user, abort\n",
    "(EngineCore_DP0 pid=508942) WARNING 03-08 08:22:34 [compilation.py:1131] Op 'x' doesn't exist, which has"
    " no effect\n",
    "0%| | 0/181 [00:00<?, ?it/s]/home/ubuntu/eval_frame.py:632: UserWarning: torch.utils.checkpoint: the"
    " use_reentrant parameter should be passed explicitly, or it fails in later releases.\n",
)


@pytest.mark.parametrize("line", SOUND)
def test_what_a_log_says_on_its_way_is_no_failure(line: str) -> None:
    assert not errors(f"vllm 0.21.0\n{line}INFO:     Application startup complete.\n")


def test_a_person_who_tells_of_a_failure_is_heard() -> None:
    assert errors("# Trouble\nThe training does not start on my machine and I get an error every time.\n")


def test_a_mend_of_the_container_is_offered_for_the_drivers_libraries() -> None:
    told = found("Failed to initialize NVML: Driver/library version mismatch\n")["DRIVER-NVML-MISMATCH"]
    assert any("image" in remedy.text for remedy in told.remedies)
    assert told.certainty is Certainty.CERTAIN
