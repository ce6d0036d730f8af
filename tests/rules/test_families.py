"""Lines that upstream prints, each with the row that accounts for it, however little else is told."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes.reader import parse_paste

MATRIX = load_matrix()

LINES = [
    (
        "ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8).",
        "VLLM-TP-HEADS",
    ),
    ("AssertionError: 151936 is not divisible by 6", "TP-NOT-DIVISIBLE"),
    (
        "ValueError: The output_size of gate's and up's weight = 192 is not divisible by weight"
        " quantization block_n = 128.",
        "VLLM-WEIGHT-ALIGN",
    ),
    (
        "ValueError: User-specified max_model_len (8192) is greater than the derived max_model_len"
        " (max_position_embeddings=4096 or model_max_length=None in model's config.json).",
        "VLLM-MAX-LEN",
    ),
    (
        "ValueError: max_num_batched_tokens (2048) is smaller than max_model_len (8192).",
        "VLLM-BATCHED-TOKENS",
    ),
    (
        "openai.BadRequestError: This model's maximum context length is 4096 tokens. However, you requested"
        " 5010 tokens",
        "SERVE-PROMPT-LONG",
    ),
    ("ValueError: LoRA rank 64 is greater than max_lora_rank 16.", "VLLM-LORA-RANK"),
    ("ValueError: At most 1 image(s) may be provided in one prompt.", "VLLM-MM-LIMIT"),
    (
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "VLLM-TOOL-CHOICE",
    ),
    (
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing,"
        " you must use the 'spawn' start method",
        "CUDA-FORK",
    ),
    (
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Hardware"
        " limit: 101376. Reducing block sizes or `num_stages` may help.",
        "TRITON-SHARED-MEMORY",
    ),
    ("ModuleNotFoundError: No module named 'pkg_resources'", "PKG-RESOURCES-GONE"),
    ("ModuleNotFoundError: No module named 'numpy._core'", "NUMPY-CORE-PICKLE"),
    (
        "ImportError: cannot import name 'Foo' from partially initialized module 'datasets' (most likely due"
        " to a circular import) (/home/me/datasets.py)",
        "IMPORT-PARTIAL",
    ),
    (
        "ImportError: cannot import name 'LLM' from 'vllm' (unknown location)",
        "IMPORT-UNKNOWN-LOCATION",
    ),
    ("NameError: name 'PeftConfig' is not defined", "NAME-UNBOUND-PEFT"),
    ("OSError: libsndfile.so.1: cannot open shared object file: No such file or directory", "LIB-SYSTEM"),
    (
        "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url",
        "HUB-RATE-LIMIT",
    ),
    (
        "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
        "SAFETENSORS-HEADER",
    ),
    ("_pickle.UnpicklingError: invalid load key, 'v'.", "PICKLE-LOAD-KEY"),
    (
        "RuntimeError: Dataset scripts are no longer supported, but found wikitext.py",
        "DATASET-SCRIPT",
    ),
    (
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to"
        " connect to (10.0.0.1, 29500).",
        "STORE-CONNECT",
    ),
    ("RuntimeError: CUDA error: invalid device ordinal", "CUDA-DEVICE-ORDINAL"),
    ("NCCL WARN Bootstrap : no socket interface found", "NCCL-NO-INTERFACE"),
    (
        "RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d"
        " key-value store by store->get('0'), but store->get('0') got error: Socket Timeout",
        "NCCL-ID-WAIT",
    ),
    (
        "ValueError: Target modules {'q_proj', 'v_proj'} not found in the base model. Please check the"
        " target modules and try again.",
        "PEFT-TARGETS",
    ),
    (
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
        "NO-GRAD-LOSS",
    ),
    (
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.",
        "DDP-UNUSED",
    ),
    (
        "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",
        "PROBABILITY-NAN",
    ),
    (
        "NotImplementedError: Cannot copy out of meta tensor; no data!",
        "META-COPY",
    ),
    ("RuntimeError: [enforce fail at alloc_cpu.cpp:83] DefaultCPUAllocator: can't allocate memory: you tried"
     " to allocate 45088768 bytes.", "HOST-ALLOCATION"),
    ("slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch.", "OOM-KILL-EVENT"),
    ("c++: fatal error: Killed signal terminated program cc1plus", "BUILD-KILLED"),
    (
        "error: Microsoft Visual C++ 14.0 or greater is required.",
        "BUILD-MSVC-ABSENT",
    ),
    ("error: externally-managed-environment", "PIP-EXTERNALLY-MANAGED"),
    ("ERROR: Failed building wheel for llama-cpp-python", "WHEEL-BUILD-FAILED"),
    ("RuntimeError: Error compiling objects for extension", "WHEEL-BUILD-FAILED"),
    ("I am using Windows 11: ERROR: Failed building wheel for flash-attn", "BUILD-FLASH-ATTN-WINDOWS"),
    (
        "NotImplementedError: The operator 'aten::isin.Tensor_Tensor_out' is not currently implemented for"
        " the MPS device.",
        "MPS-OPERATOR",
    ),
    ("RuntimeError: HIP error: invalid device function", "ROCM-NO-KERNEL"),
    ("vllm serve: error: argument --kv-cache-dtype: invalid choice: 'fp8_foo' (choose from auto, fp8)",
     "ARGUMENT-CHOICE"),
    ("ModuleNotFoundError: No module named 'src'", "MODULE-OF-PROJECT"),
    ("ImportError: cannot import name 'field_validator' from 'pydantic'", "PYDANTIC-2-NAMES"),
    ("requests.exceptions.HTTPError: 500 Server Error: Internal Server Error for url: https://hf.co/x",
     "HUB-SERVER-ERROR"),
    ("httpx.LocalProtocolError: Illegal header value b'Bearer '", "HUB-TOKEN-EMPTY"),
    ("OSError: Error no file named pytorch_model.bin, model.safetensors found in directory ./out.",
     "WEIGHTS-FILE-ABSENT"),
    ("RuntimeError: Distributed package doesn't have NCCL built in", "NO-NCCL-BUILT"),
    ("RuntimeError: use_libuv was requested but PyTorch was built without libuv support", "LIBUV-WINDOWS"),
    ("TypeError: '<=' not supported between instances of 'float' and 'str'", "YAML-FLOAT"),
    ("wandb: ERROR api_key not configured (no-tty). call wandb.login(key=[your_api_key])", "WANDB-LOGIN"),
    ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
     "RAY-HOST-MEMORY"),
    ("RuntimeError: No HIP GPUs are available", "ROCM-NO-GPU"),
]  # fmt: skip


def findings(text):
    facts = parse_paste(text, "", MATRIX.lexicon)
    return diagnose_facts(facts, MATRIX, complete=False).findings


@pytest.mark.parametrize(("line", "id"), LINES, ids=[id for _, id in LINES])
def test_a_line_is_accounted_for_by_its_row_first_and_words_alone_make_nothing_certain(line, id):
    first = findings(line)[0]
    assert first.id == id
    assert first.remedies
    assert first.certainty is not Certainty.CERTAIN


def test_a_request_for_a_feature_is_no_run():
    text = (
        "# [Feature]: say it earlier\n\nSuch as\n```\nBfloat16 is only supported on GPUs with compute"
        " capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5.\n```\n"
    )
    told = findings(text)
    assert {f.certainty for f in told} <= {Certainty.UNCERTAIN}
    assert Severity.ERROR not in {f.severity for f in told}


def test_a_request_with_a_traceback_is_a_run():
    text = (
        "# Add support for T4\n\nTraceback (most recent call last):\n"
        '  File "a.py", line 1, in <module>\n    run()\n'
        "ValueError: LoRA rank 64 is greater than max_lora_rank 16.\n"
    )
    assert findings(text)[0].severity is Severity.ERROR


def test_an_import_that_leads_into_another_environment_is_told():
    text = (
        "Traceback (most recent call last):\n"
        '  File "/venv/lib/python3.12/site-packages/transformers/quantizers/auto.py", line 67, in <module>\n'
        "    from .quantizer_torchao import TorchAoHfQuantizer\n"
        "          ^^^^^^^^^^^^^^^^^\n"
        '  File "/usr/local/lib/python3.12/dist-packages/torchao/utils.py", line 10, in <module>\n'
        "    from torchao.prototype.mx_formats.mx_tensor import MXTensor\n"
        "          ^^^^^^^^^^^^^^^^^\n"
    )
    first = findings(text)[0]
    assert first.id == "PACKAGES-MIXED"
    assert "torchao" in first.summary


def test_what_a_message_asks_for_is_a_way_out():
    line = "ValueError: the frobnicator is too wide. Please set `frob_width` to 3 or less."
    (found,) = [f for f in findings(line) if f.id == "SAID-BY-MESSAGE"]
    assert "Please set `frob_width` to 3 or less." in found.remedies[0].text
    assert "frob_width is not what this takes here: 3 or less" in found.cause


def test_host_memory_is_not_the_gpus():
    told = findings("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.")
    assert not [f for f in told if f.id.startswith("OOM-")]


def test_a_killed_job_is_not_the_gpus_memory():
    told = findings("slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch.")
    assert not [f for f in told if "GPU ran out" in f.summary]


def test_where_memory_ran_out_is_told_from_the_traceback():
    text = (
        "Traceback (most recent call last):\n"
        '  File "/v/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py", line 1, in f\n'
        "    logits = logits.float()\n"
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.42 GiB.\n"
    )
    assert findings(text)[0].id == "OOM-AT-LOGITS"


def test_a_traceback_without_its_message_tells_what_was_done():
    text = (
        "Traceback (most recent call last):\n"
        '  File "/v/python3.12/site-packages/vllm/v1/engine/core.py", line 2, in _initialize_kv_caches\n'
        "    available_gpu_memory = self.model_executor.determine_available_memory()\n"
        "                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
    )
    first = findings(text)[0]
    assert first.id == "CUT-OFF"
    assert first.certainty is Certainty.UNCERTAIN
    assert "KV cache" in first.summary


def test_wishes_that_exclude_one_another_are_named():
    text = (
        "ERROR: Cannot install xformers==0.0.34 because these package versions have conflicting"
        " dependencies.\nThe conflict is caused by:\n    xformers 0.0.34 depends on torch==2.10.0\n"
        "    The user requested (constraint) torch==2.11.0.dev20260124+cu130\n"
    )
    first = findings(text)[0]
    assert first.id == "PIP-CLASH"
    assert first.remedies[0].pins == {"torch": "==2.10.0"}


def test_what_accounts_for_the_error_stands_before_what_is_merely_true():
    text = "xformers==0.0.21\ntorch==2.1.2\n\nImportError: Unsloth: CUDA is not linked properly.\n"
    assert findings(text)[0].id == "UNSLOTH-LINK"


def test_what_a_validator_raised_is_looked_up_without_its_wrapping():
    text = (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for AxolotlInputConfig\n"
        "  Value error, torch_compile should be set within your deepspeed config file [type=value_error,"
        " input_value={'base_model': 'x'}, input_type=dict]\n"
    )
    assert findings(text)[0].id == "AXOLOTL-COMPILE-DEEPSPEED"


def test_two_lines_of_one_cause_are_one_finding():
    text = (
        "KeyError: 'qwen3_moe'\nValueError: The checkpoint you are trying to load has model type `qwen3_moe`"
    )
    told = findings(text + " but Transformers does not recognize this architecture.\n")
    assert [f.id for f in told].count("MODEL-UNKNOWN") == 1


@pytest.mark.parametrize(
    ("line", "id"),
    [
        ("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB", "NPU-MEMORY"),
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB", "ROCM-MEMORY"),
        ("torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB", "XPU-MEMORY"),
    ],
)
def test_the_memory_of_another_accelerator_gets_no_advice_for_nvidias(line, id):
    told = findings(line)
    assert told[0].id == id
    assert not [f for f in told if f.id.startswith("OOM-")]


@pytest.mark.parametrize(
    "text", ["torch 2.6.0\nRAM keeps growing until the process is killed", "torch 2.6.0\n训练时内存一直增加"]
)
def test_trouble_with_memory_told_in_words_is_never_green(text):
    assert findings(text)


def test_a_librarys_warning_is_told_from_an_error():
    text = (
        "/v/lib/python3.11/site-packages/transformers/optimization.py:411: FutureWarning: This implementation"
        " of AdamW is deprecated and will be removed in a future version. Use the PyTorch implementation"
        " torch.optim.AdamW instead, or set `no_deprecation_warning=True` to disable this warning\n"
    )
    (found,) = findings(text)
    assert (found.id, found.severity) == ("WARNING-KNOWN", Severity.NOTE)
    assert found.summary.startswith("a warning, no error: transformers goes on after it")


def test_beside_an_error_a_warning_is_not_told():
    error = "ValueError: LoRA rank 64 is greater than max_lora_rank 16."
    text = f"FutureWarning: `torch_dtype` is deprecated\n{error}\n"
    assert "WARNING-KNOWN" not in {f.id for f in findings(text)}
