"""Error lines of engines, builds and crashes, and the finding that answers each."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.pastes import parse_paste

LINES = {
    "[METAL] Command buffer execution failed: Insufficient Memory (00000008:kIOGPU)": "METAL-MEMORY",
    "[METAL] Command buffer execution failed: Impacting Interactivity (0000000e:kIOGPU)": "METAL-WATCHDOG",
    "HTTP 400: Jinja Exception: Conversation roles must alternate user/assistant": "TEMPLATE-REFUSES",
    "fatal error: infiniband/verbs.h: No such file or directory": "BUILD-VERBS-HEADER",
    "nvcc fatal   : Unknown option '--compress-mode=size'": "NVCC-OPTION",
    "/bin/sh: 1: :/usr/local/cuda/bin/nvcc: not found": "NVCC-COLON",
    "ERROR: No matching distribution found for torch==2.8.0.dev20250301": "NIGHTLY-GONE",
    "size mismatch for base_model.model.lm_head.weight: copying a param": "SIZE-MISMATCH-VOCABULARY",
    "RuntimeError: WandbCallback requires wandb to be installed. Run pip install wandb.": "WANDB-REQUIRED",
    "CPU Virtual Memory:  used = 29.71 GB, percent = 95.3%": "HOST-NEARLY-FULL",
    "pip install gptqmodel\nModuleNotFoundError: No module named 'torch'\ntorch: 2.6.0": "BUILD-NEEDS-TORCH",
    "AttributeError: 'OurTrainer' object has no attribute 'deepspeed'": "RELEASES-APART",
    "  × python setup.py egg_info did not run successfully.\n      import torch\n"
    "ModuleNotFoundError: No module named 'torch'\ntorch: 2.8.0": "BUILD-NEEDS-TORCH",
    '  File "/tmp/pip-build-env-x/site-packages/setuptools/build_meta.py", line 331\n'
    "ModuleNotFoundError: No module named 'numpy'": "BUILD-NEEDS-MODULE",
    "(VllmWorker rank=1 pid=2311) ERROR torch.OutOfMemoryError: CUDA out of memory.": "OOM-IN-SERVER",
    "n1:22:23 [0] NCCL INFO NET/Socket : Using [0]docker0:172.17.0.1<0>": "NCCL-BRIDGE",
    "RuntimeError: NCCL communicator was aborted on rank 3.": "NCCL-TIMEOUT",
    "llama_model_load: error loading model: unknown model architecture: 'gemma4'": "LLAMACPP-ARCHITECTURE",
    'panic: unsupported model architecture "qwen2"': "LLAMACPP-ARCHITECTURE",
    "ggml_cuda_compute_forward: SCALE failed\nCUDA error: no kernel image is available": "LLAMACPP-NO-KERNEL",
    "RuntimeError: BatchPrefillWithPagedKVCache failed with error code no kernel image is available": (
        "FLASHINFER-NO-KERNEL"
    ),
    "NotImplementedError: Sharded Llama requires Flash Attention enabled models.\n rank=0": (
        "TGI-SHARDED-FLASH"
    ),
    "libtorch_npu.so: undefined symbol: _ZN3atb15CreateOperationEv\ntorch_npu": "NPU-SYMBOL",
    "MacBook Pro M2\nNo GPU found. A GPU is needed for quantization.": "MPS-BITSANDBYTES",
    "Error invalid device function at line 679 in file /bitsandbytes/csrc/ops.hip": "ROCM-NO-KERNEL",
    "expected mat1 and mat2 to have the same dtype, but got: c10::Half != float": "DTYPES-MIXED",
    "# Cannot flatten integer dtype tensors": "BNB-FSDP-QUANT-STORAGE",
    "22.5 GiB KV cache is needed, which is larger than the available KV cache\nmemory (17.39 GiB)": (
        "VLLM-MAX-MODEL-LEN"
    ),
    "The engine plan file is not compatible with this version of TensorRT, expecting library version 9.2.0.5 "
    "got 9.3.0.1": "TENSORRT-ENGINE-VERSION",
    "Command '['/usr/bin/gcc', '/tmp/a/main.c', '-O3', '-lcuda']' returned non-zero exit status 1.": (
        "TRITON-LAUNCHER-BUILD"
    ),
    "free(): invalid pointer": "EXIT-SEGFAULT",
    'Stack (most recent call first):\n  File "/opt/torch/cuda/graphs.py", line 77 in capture_begin': (
        "CRASH-AT-GRAPH"
    ),
    "Timed out after 601 seconds waiting for clients. 1/2 clients joined.": "STORE-CLIENTS-MISSING",
    "TypeError: Client.__init__() got an unexpected keyword argument 'proxies'": "HTTPX-PROXIES",
    "flashinfer-cubin version (0.6.8) does not match flashinfer version (0.6.10).": "FLASHINFER-PARTS",
    "nvcc fatal   : Value 'native' is not defined for option 'gpu-architecture'": "NVCC-NATIVE-OLD",
    "PyTorch 2.1.2+cu121 with CUDA 1201 (you have 2.1.2+cpu)": "XFORMERS-BUILT-FOR",
    "ValueError: PEFT backend is required for this method.": "DIFFUSERS-PEFT-BACKEND",
    "AttributeError: 'ColBERT' object has no attribute 'all_tied_weights_keys'": "TRANSFORMERS-POST-INIT",
    "RuntimeError: Inference tensors cannot be saved for backward. To work around": "INFERENCE-TENSORS",
    "torchrun: Received 1 death signal, shutting down workers": "SIGHUP",
    "ImportError: Numba needs NumPy 2.1 or less. Got NumPy 2.2.": "REQUIREMENT-REFUSED",
    '[WARNING] Please install the package: `pip install "transformers>=4.48" -U`.': "REQUIREMENT-REFUSED",
    "No module named 'megatron.training'\nModuleNotFoundError: No module named 'megatron.training'": (
        "MEGATRON-LM-REPOSITORY"
    ),
    "undefined symbol:\nc10::cuda::c10_cuda_check_implementation(int, char const*)": "ABI-EXTENSION",
    "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9)": "HOST-OOM-KILLED-GENERAL",
    "RuntimeError: Rank 0 scheduler died during initialization (exit code: -11)": "SGLANG-SCHEDULER-DIED",
    "NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.": (
        "TORCHVISION-CPU-OPERATORS"
    ),
    "RuntimeError: cutlassF: no kernel found to launch!": "CUTLASS-ATTENTION",
    "TypeError: MyTrainer.compute_loss() got an unexpected keyword argument 'num_items_in_batch'": (
        "PAIR-COMPUTE-LOSS-NUM-ITEMS"
    ),
    "TypeError: BloomForCausalLM.forward() got an unexpected keyword argument 'num_items_in_batch'": (
        "NUM-ITEMS-REMOTE"
    ),
}


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix()


@pytest.mark.parametrize(("text", "finding"), LINES.items())
def test_the_line_is_answered(matrix: Matrix, text: str, finding: str) -> None:
    facts = parse_paste(f"{text}\n", "", matrix.lexicon)
    found = [f.id for f in diagnose_facts(facts, matrix, complete=False).findings]
    assert finding in found[:2]


def test_a_launchers_rank_is_no_adapters(matrix: Matrix) -> None:
    facts = parse_paste("Shard 0 failed to start\n rank=0\n", "", matrix.lexicon)
    assert not [setting for setting in facts.settings if setting.key == "lora_rank"]


def test_a_loss_of_nan_on_a_card_without_bf16_is_not_answered_with_bf16(matrix: Matrix) -> None:
    facts = parse_paste("fp16=True on T4\n{'loss': 0.0, 'grad_norm': nan}\n", "", matrix.lexicon)
    finding = diagnose_facts(facts, matrix).findings[0]
    assert finding.id == "LOSS-ZERO"
    assert not any("--bf16 true" in command for r in finding.remedies for command in r.commands)


def test_what_a_message_says_that_a_variable_must_be_is_typed_out(matrix: Matrix) -> None:
    text = "AssertionError: SOME_DEVICE_CONNECTIONS must be set to 1\n"
    finding = diagnose_facts(parse_paste(text, "", matrix.lexicon), matrix).findings[0]
    assert finding.remedies[0].commands == ("export SOME_DEVICE_CONNECTIONS=1",)


def test_a_products_name_in_a_message_dates_no_release(matrix: Matrix) -> None:
    text = "vllm: 0.6.3\nValueError: Cannot use FlashAttention-2 backend for head size 72.\n"
    found = diagnose_facts(parse_paste(text, "", matrix.lexicon), matrix).findings
    assert [finding.id for finding in found] == ["UNEXPLAINED-ERROR"]


@pytest.mark.parametrize(
    "text",
    [
        "(EngineCore pid=45) INFO 05-06 04:32:55 [vllm.py:844] Asynchronous scheduling is enabled.",
        "Skipping import of cpp extensions due to incompatible torch version 2.7.1 for torchao version 0.15",
        '"Addressing OOM - Naively, fine-tuning a 7B model requires 112 GB of VRAM." How is this derived?',
    ],
)
def test_what_tells_of_no_error_is_none(matrix: Matrix, text: str) -> None:
    found = diagnose_facts(parse_paste(f"{text}\n", "", matrix.lexicon), matrix).findings
    assert not [finding.id for finding in found if finding.severity == "error"]
