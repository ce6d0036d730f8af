"""Reports that no rule was written for: what users pasted elsewhere, and the finding that answers it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Finding
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.pastes import parse_paste

REPORTS = {
    "Error while writing to file C:\\models\\a.bin\nThere is not enough space on the disk. (os error 112)": (
        "DISK-FULL-SEEN"
    ),
    "slurmstepd: error: *** STEP 4711.0 ON gpu07 CANCELLED AT 2025-01-03T10:00:07 DUE TO TIME LIMIT ***": (
        "SLURM-ENDED"
    ),
    "RuntimeError: DataLoader worker (pid(s) 811, 812) exited unexpectedly": "LOADER-WORKER-GONE",
    "ValueError: Target size (torch.Size([8])) must be the same as input size (torch.Size([8, 5]))": (
        "TARGET-SIZE"
    ),
    "RuntimeError: The size of tensor a (0) must match the size of tensor b (4096)": "ZERO3-EMPTY-WEIGHT",
    "# My workstation\n\nWith both cards at work the computer reboots as soon as training starts.": (
        "SWITCHES-OFF"
    ),
    "Error: https://huggingface.co/google/gemma-2b/resolve/main/config.json: status code 403": "HUB-ACCESS",
    "Error: error loading model: unable to allocate backend buffer": "LLAMACPP-MEMORY",
    "  × Building wheel for sentencepiece (pyproject.toml) did not run successfully.\n  │ exit code: 1": (
        "WHEEL-BUILD-FAILED"
    ),
    "HIP_VISIBLE_DEVICES=0 ./main -ngl 50\namd gfx 1031\nCUDA error: invalid device function": (
        "ROCM-NO-KERNEL-CARD"
    ),
    "transformers: 4.48.1\ncannot import name 'is_torch_greater_or_equal_than_1_13' from "
    "'transformers.pytorch_utils'": "INTERFACE-MISSING",
    "transformers: 5.2.0\ncannot import name 'AutoModelForVision2Seq' from 'transformers'": (
        "INTERFACE-MISSING"
    ),
    "AttributeError: module 'transformers' has no attribute 'TRANSFORMERS_CACHE'": "INTERFACE-MISSING",
    "numpy: 2.0.0\nImportError: cannot import name 'BUFSIZE' from 'numpy'": "ATTRIBUTE-MISSING",
    "torch: 2.0.1\nmodule 'torch._dynamo' has no attribute 'mark_static_address'": "ATTRIBUTE-MISSING",
    "transformers: 4.47.0\ntrl: 0.12.1\nTypeError: DPOTrainer.log() takes 2 positional arguments but 3 were "
    "given": "PAIR-TRAINER-LOG-START-TIME",
    "trl: 0.13.0\nModuleNotFoundError: No module named 'trl.commands'": "PAIR-TRL-COMMANDS",
    "deepspeed: 0.9.5\nAttributeError: 'FieldInfo' object has no attribute 'required'": "DS-PYDANTIC-2",
    "MissingCUDAException: CUDA_HOME does not exist, unable to compile CUDA op(s)": "BUILD-CUDA-HOME",
    "tokenizers>=0.11.1,!=0.11.3,<0.14 is required for a normal functioning of this module, but found "
    "tokenizers==0.15.0.": "REQUIREMENT-REFUSED",
    "Please install bitsandbytes>=0.44.0 via `pip install bitsandbytes>=0.44.0`": "REQUIREMENT-REFUSED",
    "data did not match any variant of untagged enum ModelWrapper at line 250295": "TOKENIZERS-FILE-NEWER",
    "bitsandbytes: 0.45.2\nImportError: Using `bitsandbytes` 8-bit quantization requires the latest version "
    "of bitsandbytes": "BNB-IMPORT-STALE",
    "bitsandbytes: 0.39.0\nCUDA SETUP: Required library version not found: libbitsandbytes_cuda118.so.": (
        "BNB-BROKEN-COPY"
    ),
    "You can't pass `load_in_4bit`or `load_in_8bit` as a kwarg when passing `quantization_config` argument": (
        "BNB-BOTH-CONFIGS"
    ),
    "ptxas /tmp/a, line 77; error : Feature 'cvt with .f32.bf16' requires .target sm_80 or higher\n"
    "GPU: RTX 2060": "DTYPE-BF16",
    "GPU: RTX 4090\ntorch: 2.2.0\ntorch._scaled_mm is only supported on devices with compute capability "
    ">= 9.0)": "DTYPE-FP8-ADA-OLD-TORCH",
    "NVIDIA GeForce GTX 1080 Ti with CUDA capability sm_61 is not compatible with the current PyTorch "
    "installation.": "TORCH-ARCH",
    "GPU: RTX 5070\nCUDA error: no kernel image is available for execution on the device": "TORCH-ARCH",
    "GPU: RTX 5080\ntorch: 2.7.0+cu128\nvllm: 0.9.1\nno kernel image is available for execution": (
        "EXTENSION-NO-KERNEL"
    ),
    "libcublas.so.11: symbol cublasLtGetStatusString version libcublasLt.so.11 not defined in file "
    "libcublasLt.so.11 with link time reference": "LIB-CUDA-SYMBOL",
    "xFormers was built for: PyTorch 2.6.0+cu124 with CUDA 1204 (you have 2.6.0+cu126)": "XFORMERS-TORCH",
    "https://download.pytorch.org/whl/cu131\nERROR: Could not find a version that satisfies the requirement "
    "torch==2.10.0 (from versions: none)": "TORCH-VARIANT-NONE",
    "ValueError: Free memory on device (59.32/79.15 GiB) on startup is less than desired GPU memory "
    "utilization (0.9, 71.24 GiB).": "VLLM-FREE-MEMORY",
    "GPU: NVIDIA A100-SXM4-80GB\nmodel: llama-2-7b\nmethod: full\nCUDA out of memory.": "MEM-FULL-TRAINING",
    "CUDA out of memory. Tried to allocate 20.00 MiB": "OOM-GENERAL",
    "accelerate: 0.22.0\ncannot import name 'is_npu_available' from 'accelerate.utils'": "INTERFACE-STALE",
    "ImportError: Using the `Trainer` with `PyTorch` requires `accelerate>=0.20.1`": "REQUIREMENT-REFUSED",
    "transformers: 4.45.2\naccelerate: 0.33.0\n'AdamW' object has no attribute 'train'": (
        "PAIR-OPTIMIZER-TRAIN"
    ),
    "Guessing wheel URL:  https://github.com/Dao-AILab/flash-attention/releases/download/v2.5.4/"
    "flash_attn-2.5.4+cu118torch2.1cxx11abiFALSE-cp310-cp310-linux_x86_64.whl\n"
    "error: <urlopen error [Errno 104] Connection reset by peer>": "FLASH-ATTN-WHEEL-DOWNLOAD",
    "torch: 2.1.0+cu118\nImportError: libcudart.so.12: cannot open shared object file": (
        "LIB-CUDART-12-TORCH-11"
    ),
    "FA2 is only supported on devices with compute capability >= 8\nGPU: Tesla V100": "FLASH-ATTN-CC",
    "numpy: 2.0.1\nAttributeError: `np.float_` was removed in the NumPy 2.0 release.": "NUMPY2-REMOVED-NAME",
    "'LlamaTokenizerFast' object has no attribute 'apply_chat_template'": "ATTRIBUTE-MISSING",
    "ValueError: Unknown quantization type, got mxfp4\ntransformers: 4.51.0": "QUANT-SINCE-MXFP4",
    "ValueError: .to is not supported for 4-bit or 8-bit bitsandbytes models.": "QUANT-MODEL-MOVED",
    "libbitsandbytes_cpu.so: undefined symbol: cget_col_row_stats": "BNB-SETUP-FAILED",
    "transformers: 4.52.3\ntorch: 2.4.1\n    if v not in ALL_PARALLEL_STYLES:": "PAIR-PARALLEL-STYLES",
    "deepspeed: 0.16.0\nno_sync context manager is incompatible with gradient partitioning logic of ZeRO "
    "stage 2": "DS-NO-SYNC",
    "RuntimeError: unable to open shared memory object </torch_29919_1396182366> in read-write mode": (
        "SHM-SMALL-SEEN"
    ),
    "Exception: flashinfer_python with minimum required version 0.2.5 is not installed.": (
        "REQUIREMENT-REFUSED"
    ),
    "GPU: Tesla T4\nno kernel image is available for execution on the device (209) /tmp/flashinfer-0.1.1/"
    "include/flashinfer/sampling.cuh: line 544": "EXTENSION-NO-KERNEL",
    "GPU: Tesla V100S\nGPU with CUDA capability 7 0 is not supported": "FLASH-ATTN-CC",
    "ldconfig: /usr/lib/wsl/lib/libcuda.so.1 is not a symbolic link": "WSL-LDCONFIG-LINK",
    '  File "C:\\Python311\\Lib\\multiprocessing\\spawn.py", line 132, in _main\n'
    "    self = reduction.pickle.load(from_parent)\n"
    "AttributeError: GPT2Tokenizer has no attribute patched_method": "SPAWN-UNPICKLE",
    "ImportError: No xformers": "XFORMERS-ASKED",
    "ModuleNotFoundError: No module named '_turbomind'": "TURBOMIND-EXTENSION",
    "RuntimeError: Library libcublas.so.11 is not found or cannot be loaded": "CT2-LIBRARY",
    "nvcc fatal   : Unsupported gpu architecture 'compute_No CUDA devices found.'": "BUILD-NATIVE-NO-GPU",
    "RuntimeError: [TM][ERROR]  Assertion fail: D:\\a\\lmdeploy\\src/turbomind/models/llama/Barrier.h:20": (
        "TURBOMIND-WINDOWS-TP"
    ),
    "RuntimeError: Failed to allocate memory for batch_prefill_tmp_v with size 458752000 and alignment 16 in "
    "AlignedAllocator": "FLASHINFER-WORKSPACE",
    "flashinfer-jit-cache         : 0.6.16+cu130  ! MISMATCH vs flashinfer-python==0.6.16": (
        "FLASHINFER-REPORT"
    ),
    "launch_server hangs forever with no error when /tmp is noexec": "TMP-NOEXEC",
    "RuntimeError: GPUs with compute capability below 7.0 are not supported.": "CC-BELOW",
    "assert param.ds_status == ZeroParamStatus.AVAILABLE, param.ds_summary()": "ZERO3-NOT-GATHERED",
    "The 'transformers!=4.46.*,<=4.48.3' distribution was not found and is required by llamafactory": (
        "REQUIREMENT-REFUSED"
    ),
    "NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-x": "SHM-SMALL-SEEN",
    "cuda_utils.c:14: error: include file 'Python.h' not found": "PYTHON-HEADERS",
    "pydantic_core.ValidationError: 1 validation error for AxolotlConfig\npretraining_dataset\n"
    "  Input should be a valid list [type=list_type, input_value={'path': 'c4'}, input_type=dict]": (
        "PYDANTIC-FIELD"
    ),
    "WARNING - CUDA kernels for auto_gptq are not installed, this will result in slow inference": (
        "GPTQ-KERNELS"
    ),
}


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix()


def answered(matrix: Matrix, paste: str) -> Iterator[Finding]:
    yield from diagnose_facts(parse_paste(paste, "", matrix.lexicon), matrix, complete=False).findings


@pytest.mark.parametrize(("paste", "expected"), REPORTS.items(), ids=list(REPORTS.values()))
def test_the_report_is_answered_first(matrix: Matrix, paste: str, expected: str) -> None:
    assert expected in [finding.id for finding in answered(matrix, paste)][:2]


def test_a_requirement_that_holds_is_nobody_s_error(matrix: Matrix) -> None:
    paste = "bitsandbytes: 0.45.0\nPlease install bitsandbytes>=0.44.0 via pip"
    assert "REQUIREMENT-REFUSED" not in [finding.id for finding in answered(matrix, paste)]


def test_a_repair_that_changes_nothing_says_so_to_the_installer(matrix: Matrix) -> None:
    paste = (
        "torch: 2.1.2\nflash-attn: 2.5.8\nflash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: "
        "undefined symbol: _ZN3c104impl3cow11cow_deleterEPv"
    )
    first = next(answered(matrix, paste)).remedies[0]
    assert all("--force-reinstall" in command for command in first.commands)


HEALTHY = (
    "PyTorch version: 2.7.1+cu126\nTransformers version: 4.55.0\nTRL version: 0.9.6",
    "vllm: 0.12.0\ntorch: 2.9.1",
    "How much do I need for a 13B with LoRA on 24 GB? Will it run out of memory?",
    "The `seen_tokens` attribute is deprecated and will be removed in v4.41.",
    "FutureWarning: transformers.deepspeed module is deprecated and will be removed in a future version.",
    "You are using 8-bit optimizers with a version of `bitsandbytes` < 0.41.1.",
    "UserWarning: 1Torch was not compiled with flash attention.",
    "No module 'xformers'. Proceeding without it.",
    "PyTorch version (GPU?): 2.5.1+cpu (False)\n- Using GPU in script?: no",
    "This repository requires torch>=1.12 and transformers>=4.30.\ntransformers: 4.28.0",
    "Requirement already satisfied: torch>=2.0 in /usr/lib/python3/dist-packages (from peft) (2.4.1)",
    "vllm serve /model --gpu-memory-utilization 0.95 --tensor-parallel-size 2\nGPU: NVIDIA GeForce RTX 4090",
)


@pytest.mark.parametrize("paste", HEALTHY)
def test_what_works_is_not_accused(matrix: Matrix, paste: str) -> None:
    assert [finding.id for finding in answered(matrix, paste) if finding.severity == "error"] == []


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("httpcore.ConnectError: [Errno 113] No route to host", "NO-ROUTE"),
        ("Error: mkdir /home/anna/.ollama: permission denied", "SERVICE-FOLDER"),
        ("503 Server Error: Service Unavailable for url: http://localhost:11434/v1/models", "LOCAL-GATEWAY"),
        ("pip install torch==2.4.0 -f https://download.pytorch.org/whl/cu118", "FIND-LINKS-INDEX"),
        ("error STL1002: Unexpected compiler version, expected CUDA 12.4 or newer.", "MSVC-CUDA-OLD"),
        ("ERROR: No matching distribution found for vllm==0.6.3.post2.dev1", "NO-SUCH-VERSION"),
    ],
)
def test_what_stands_in_the_way_is_named(line: str, finding: str) -> None:
    matrix = load_matrix()
    found = diagnose_facts(parse_paste(line, "paste", matrix.lexicon), matrix).findings
    assert [f.id for f in found] == [finding]
