"""Troubles as people post them: which finding answers each line, in other words than those it was met in."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import Diagnosis, diagnose_facts
from envdoctor.findings import Certainty, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

ANSWERS = (
    (
        "GPUS-REQUESTED-NONE",
        "MisconfigurationException: You requested gpu: [0, 1]\n But your machine only has: []\n",
    ),
    (
        "GPUS-REQUESTED-OTHERS",
        "MisconfigurationException: You requested gpu: [3]\n But your machine only has: [0, 1]\n",
    ),
    (
        "FSDP-NOT-GATHERED",
        "my fsdp run, at eval:\nRuntimeError: The tensor has a non-zero number of elements, "
        "but its data is not allocated yet.\n",
    ),
    ("LOCAL-OBJECT-PICKLED", "AttributeError: Can't pickle local object 'make.<locals>.collate'\n"),
    ("LOCAL-OBJECT-PICKLED", "AttributeError: Can't get local object 'Wrapper.load.<locals>.hook'\n"),
    ("NUMPY-NO-BF16", "TypeError: Got unsupported ScalarType BFloat16\n"),
    (
        "ZERO3-DTYPES-MIXED",
        '  File "/v/deepspeed/runtime/zero/stage3.py", line 9, in defragment\n    assert '
        "len(set(t.dtype for t in tensors)) == 1\nAssertionError\n",
    ),
    (
        "MLFLOW-META-MISSING",
        "MissingConfigException: Yaml file 'C:\\w\\mlruns\\2\\meta.yaml' does not exist.\n",
    ),
    (
        "TIKTOKEN-FALLBACK",
        "ValueError: Converting from SentencePiece and Tiktoken failed, if a converter is available\n",
    ),
    ("LLAMA3-SENTENCEPIECE", "RuntimeError: Internal: could not parse ModelProto from m/tokenizer.model\n"),
    (
        "HUB-NAME-NONE",
        "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: "
        "https://huggingface.co/undefined/resolve/main/a.json\n",
    ),
    ("ROPE-TYPE-KEY", "KeyError: 'rope_type'\n"),
    (
        "CONVERT-LORA-TENSORS",
        "ValueError: Can not map tensor 'base_model.model.model.layers.3.mlp.up_proj.lora_B.weight'\n",
    ),
    ("WINDOWS-ACCESS-VIOLATION", "Process finished with exit code -1073741819 (0xC0000005)\n"),
    ("SMI-NVML-MISMATCH", "Mismatch in versions between nvidia-smi and NVML.\n"),
    ("GGML-MISSING-OP", "ggml_metal: error: unsupported op 'FLASH_ATTN_EXT'\n"),
    ("TORCHTUNE-FILE-MISSING", "ValueError: No file with name: model.safetensors found in /data/llama3.\n"),
    (
        "ENGINE-ARCHITECTURE-ABSENT",
        "ValueError: FooForTokenClassification has no vLLM implementation and the "
        "Transformers implementation is not compatible with vLLM.\n",
    ),
    ("ARM-NO-FEATURES", "cc: error: arm1176jzf-s does not take any feature options\n"),
    ("NVCC-ARM-FP16", 'ggml.h(217): error: identifier "__fp16" is undefined\n'),
    ("WINDOWS-CSRC", "vllm\\csrc\\pos_encoding.cu(3): error: a name followed by '::' must be a class\n"),
    (
        "MIG-CHOSEN-IN-POD",
        "export CUDA_VISIBLE_DEVICES=MIG-GPU-e88cb44c\nlimits:\n  nvidia.com/mig-2g.10gb: 1\n",
    ),
    ("OLLAMA-NO-GPU", "WARNING: No NVIDIA GPU detected. Ollama will run in CPU-only mode.\n"),
    ("GLIBCXX-OLD", "ImportError: numpy does not load, it is not finding GLIBCXX_3.4.29 here\n"),
    (
        "SLOWER-ON-SEVERAL-GPUS",
        "# Slow\n\nGeneration is three times slower with two GPUs than with a single GPU\n",
    ),
    (
        "HUB-UNREACHABLE",
        "# Cannot download\n\nThe connection timed out to the Hugging Face server for every file\n",
    ),
    (
        "ENGINE-ARCHITECTURE-ABSENT",
        "# Unknown model\n\nThe architecture of this model is not in the list of supported ones, it fails\n",
    ),
    (
        "HANG-COLLECTIVE",
        "# Multi-node training gets stuck\n\nOur training on multiple nodes hangs before the first step\n",
    ),
    ("OOM-GENERAL", "# Training fails\n\n用 4 张卡训练，第一步就OOM了\n"),
    (
        "PYTHON-NO-WHEEL",
        "# uv add fails with Python 3.13.1\n\nerror: Distribution `torch==2.4.1 @ "
        "registry+https://x.org/simple` can't be installed because it doesn't have a source "
        "distribution or wheel for the current platform\n",
    ),
    (
        "UV-NO-WHEEL-UNNAMED",
        "# @ registry+https://x.org/simple` can't be installed because it doesn't have a "
        "source distribution or wheel for the current platform\n",
    ),
    ("LOCAL-VERSION-PIP", "ERROR: No matching distribution found for torchvision==0.15.2+cu118\n"),
    (
        "PYTORCH-INDEX-ALONE",
        "uv add torch --default-index https://download.pytorch.org/whl/cu121\n  Because "
        "setuptools was not found in the package registry and you require setuptools, we can "
        "conclude\n",
    ),
    ("NVCC-ARCH-NEW-121", "nvcc fatal   : Unsupported gpu architecture 'compute_121a'\n"),
    ("OOM-WAKE-UP", "POST /wake_up\nCUDA Error: out of memory at /w/cumem_allocator.cpp:62\n"),
    (
        "OOM-GRPO-VLLM",
        "# GRPO with use_vllm fails\n\ntorch.OutOfMemoryError: CUDA out of memory. Tried to "
        "allocate 2.00 GiB\n",
    ),
    (
        "OOM-DATA-PARALLEL",
        "torchrun --nproc_per_node 4 sft.py\ntorch.OutOfMemoryError: CUDA out of memory. "
        "Tried to allocate 2.00 GiB\n",
    ),
    ("LOSS-NAN-T5", "training google/flan-t5-base with fp16:\n{'loss': nan, 'grad_norm': nan}\n"),
    (
        "UNSLOTH-NO-CONFIG",
        "RuntimeError: Unsloth: No config file found - are you sure the `model_name` is correct?\n",
    ),
    (
        "TRITON-CACHE-RACE",
        "FileNotFoundError: [Errno 2] No such file or directory: "
        "'/h/.triton/cache/ab12/k.ttir.tmp.pid_7_1'\n",
    ),
    ("APEX-BUILD-OPTIONS", "the build ends with **no fused_layer_norm_cuda here**, it fails\n"),
    (
        "WANT-GLOBAL-UNPICKLE",
        "# Resuming fails\n\nSince torch 2.7 our run breaks when it loads a checkpoint to resume\n",
    ),
    (
        "HOST-CACHE-REFUSED",
        "# Docker fails to start\n\nIt says that the folder /home/app/.cache/hub lacks write "
        "permission and fails\n",
    ),
    (
        "OOM-EVALUATION",
        "# Training fails after hours\n\nafter the first validation the VRAM grows by 4 GB and "
        "does not drop back, then it fails\n",
    ),
    (
        "CUT-OFF",
        'Traceback (most recent call last):\n  File "/w/train.py", line 9, in main\n    '
        "accelerator.load_state(last)\n",
    ),
)


def judged(text: str) -> Diagnosis:
    return diagnose_facts(parse_paste(text, "", load_matrix().lexicon), load_matrix())


@pytest.mark.parametrize(("answer", "text"), ANSWERS)
def test_a_trouble_is_answered_by_its_cause(answer: str, text: str) -> None:
    assert answer in [finding.id for finding in judged(text).findings[:2]]


def test_an_empty_weight_is_of_zero_or_of_fsdp_by_what_is_named() -> None:
    line = "RuntimeError: 'weight' must be 2-D\n"
    assert judged(f"zero3.json\n{line}").findings[0].id == "ZERO3-EMPTY-WEIGHT"
    assert judged(f"under FSDP:\n{line}").findings[0].id == "FSDP-NOT-GATHERED"


def test_a_name_that_is_none_is_no_matter_of_tokens() -> None:
    found = judged(
        "401 Client Error: Unauthorized for url: https://huggingface.co/None/resolve/main/config.json\n"
    )
    assert [finding.id for finding in found.findings if not finding.follows][:1] == ["HUB-NAME-NONE"]


def test_what_a_crash_handlers_debugger_lacks_ended_nothing() -> None:
    line = (
        "gdb: /tmp/_MEI1/libstdc++.so.6: version `CXXABI_1.3.15' not found (required by /usr/lib/libicu.so)\n"
    )
    found = {
        finding.id: finding for finding in judged(f"Missing op: X\n{line}Aborted (core dumped)\n").findings
    }
    assert "GLIBCXX-OLD" not in found
    assert found["GLIBCXX-OF-DEBUGGER"].severity is Severity.NOTE
    assert "GLIBCXX-OLD" in [finding.id for finding in judged(line.replace("gdb: ", "")).findings]


def test_a_notice_of_xformers_is_no_missing_module() -> None:
    found = judged("Error caught was: No module named 'triton'\n")
    assert found.exit_code == 0
    assert "TRITON-OPTIONAL" in [finding.id for finding in found.findings]


def test_an_image_extension_that_is_gone_without_is_a_warning() -> None:
    line = (
        "/v/site-packages/torchvision/io/image.py:13: UserWarning: Failed to load image Python extension:"
        " '/v/site-packages/torchvision/image.so: undefined symbol: _ZN3c1017RegisterOperatorsD1Ev'\n"
    )
    found = {finding.id: finding for finding in judged(line).findings}
    assert found["ABI-TORCHVISION"].severity is Severity.WARNING


STOPPED = (
    "Traceback (most recent call last):\n"
    '  File "/v/lib/python3.12/site-packages/zmq/poll.py", line 106, in poll\n'
    "    return zmq_poll(self.sockets)\nKeyboardInterrupt\n"
)


def test_a_run_that_was_stopped_by_hand_failed_where_somebody_says_so() -> None:
    assert judged(STOPPED).findings[0].severity is Severity.WARNING
    told = judged(f"# Server hangs at start\n\nIt hangs for hours, so I pressed Ctrl-C:\n\n{STOPPED}")
    assert told.exit_code == 1


def test_a_title_that_repeats_a_known_warning_reports_no_failure() -> None:
    warned = "Could not find a config file in /m/base - will assume that the vocabulary was not modified."
    title = "# [BUG] Could not find a config file, vocabulary"
    text = f"{title}\n\nIs this fine?\n\n/v/peft/s.py:148: UserWarning: {warned}\n"
    assert judged(text).exit_code == 0


@pytest.mark.parametrize(
    "text",
    [
        "# Could not create the cache directory\n\nThe server starts and tells me so.\n",
        "# Does not work with docker\n\nThe volume is there, and the server starts.\n",
        "same problem in branch 22.04-dev\n```\n" + "adding 'apex/mlp.py'\n" * 14 + "```\n",
        "# pip encounters a conflict issue for torch\n\nERROR: pip's dependency resolver does not currently"
        " take into account all the packages that are installed. This behaviour is the source of the"
        " following dependency conflicts.\nxformers 0.0.22 requires torch==2.0.1, but you have torch 2.3.0"
        " which is incompatible.\n",
    ],
)
def test_what_a_person_reports_as_failed_fails(text: str) -> None:
    assert judged(text).exit_code == 1


def test_a_cause_that_is_told_of_one_card_stays_behind_that_of_all() -> None:
    found = judged("Epoch: 0 Global Step: 20 Loss nan LearningRate 0.001 Fp16 Grad Scale: 0\n").findings
    assert found[0].certainty is not Certainty.CERTAIN


def test_a_program_that_is_no_frameworks_speaks_for_itself() -> None:
    found = judged("vllm-mlx: error: unrecognized arguments: --api-key abc\n").findings[0]
    assert found.id == "ARGUMENT-UNKNOWN"
    assert found.summary.startswith("vllm-mlx has no option --api-key")


def test_a_setting_that_is_none_is_named_by_the_line_that_converts_it() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/w/run.py", line 4, in main\n'
        "    rows = int(args.max_rows)\nTypeError: int() argument must be a string, a bytes-like object"
        " or a real number, not 'NoneType'\n"
    )
    assert judged(text).findings[0].summary.startswith("args.max_rows is None")


def test_the_first_release_for_a_python_is_told_where_an_index_offers_none() -> None:
    line = "ERROR: Could not find a version that satisfies the requirement torch (from versions: none)"
    text = f"Python 3.11.1\n{line}\n"
    assert "Python 3.11 begin with torch 1.13" in judged(text).findings[0].summary
