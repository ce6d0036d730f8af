"""Lines of GPU logs, version lists and tracebacks that hold nothing to hide: drawn, with a fixed seed."""

from __future__ import annotations

import random
from functools import cache

_PACKAGE_LIST = """
torch==2.13.0.1 torch==2.7.1+cu126 nvidia-cudnn-cu12==8.9.2.26 nvidia-curand-cu12==10.3.5.147
nvidia-cublas-cu12==12.4.5.8 nvidia-cufft-cu12==11.2.1.3 nvidia-cusolver-cu12==11.6.1.9 tiktoken==0.14.0
nvidia-cusparse-cu12==12.3.1.170 nvidia-nccl-cu12==2.21.5 nvidia-nvjitlink-cu12==12.4.127
tokenizers==0.21.4 sentencepiece==0.2.0 triton==3.4.0 flash-attn==2.8.3 bitsandbytes==0.48.1 vllm==0.32.0
xformers==0.0.32.post1 python-jose==3.3.0 keyring==25.6.0 secretstorage==3.3.3 pyjwt==2.10.1
passlib==1.7.4 hf-transfer==0.1.9 huggingface-hub==1.2.0 hf-xet==1.1.9 wandb==0.22.3
azure-identity==1.25.1 boto3==1.40.61 cryptography==46.0.3
"""
_PACKAGES = _PACKAGE_LIST.split()
_GPUS = (
    "NVIDIA H200",
    "NVIDIA A100-SXM4-80GB",
    "Tesla T4",
    "NVIDIA GeForce RTX 4090",
    "NVIDIA L40S",
    "Tesla V100-SXM2-32GB",
)
_SYMBOLS = (
    "_ZN3c104cuda9SetDeviceEi",
    "_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEE",
    "__nvJitLinkAddData_12_1",
)
_FIXED = (
    "max_tokens=512 temperature=0.7 top_p=0.95 stop_token_ids=[2]",
    "Special tokens have been added in the vocabulary, make sure the associated word embeddings are "
    "fine-tuned.",
    "[INFO|tokenization_utils_base.py:2058] >> loading file tokenizer.json",
    "  bos_token='<s>', eos_token='</s>', pad_token='<unk>', add_bos_token=True",
    "The attention mask and the pad token id were not set. Setting `pad_token_id` to `eos_token_id`:2 for "
    "generation.",
    "    tokenizer = AutoTokenizer.from_pretrained(args.model, token=args.token, use_auth_token=True)",
    "    api_key=os.environ['OPENAI_API_KEY'],",
    "    password = getpass.getpass('Password: ')",
    "ValueError: Invalid token passed!",
    "huggingface/tokenizers: The current process just got forked, after parallelism has already been used.",
    "To disable this warning, set the environment variable TOKENIZERS_PARALLELISM=(true | false)",
    "TOKENIZERS_PARALLELISM=false",
    "Token is valid (permission: write).",
    "wandb: W&B API key is configured. Use `wandb login --relogin` to force relogin",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total "
    "capacity)",
    '  File "/usr/local/lib/python3.11/dist-packages/torch/nn/modules/module.py", line 1501, in _call_impl',
    "    return forward_call(*args, **kwargs)",
    '  File "/opt/conda/lib/python3.10/site-packages/transformers/trainer.py", line 1556, in train',
    "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
    "OSError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found (required by "
    "flash_attn_2_cuda.so)",
    "libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by /opt/conda/lib/libicuuc.so.73)",
    "Downloading torch-2.7.1+cu126-cp311-cp311-manylinux_2_28_x86_64.whl (821.0 MB)",
    "Looking in indexes: https://download.pytorch.org/whl/cu126",
    "See https://github.com/pytorch/pytorch/issues/35710 and https://pytorch.org/docs/stable/notes/cuda.html",
    "https://huggingface.co/Qwen/Qwen2.5-7B-Instruct/resolve/main/model-00001-of-00004.safetensors",
    "git+https://github.com/huggingface/transformers.git@8e8025b384a5c3e6c9b1a1f9f3b7bb5a2f7a2a05",
    "CPython-3.11.9 sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "bash: nvcc: command not found",
    "Driver Version: 580.95.05   CUDA Version: 13.0",
    "cuDNN version: 8.9.2.26",
    "Windows driver 31.0.15.3623",
    "pydantic_core._pydantic_core.ValidationError: 1 validation error for ServingRun",
    "secret_name: not set, secrets: 3 found, credentials: default",
    "Authorization failed; check the permissions of the repository",
    "The tokens per second rate was 1823.4 tokens/s; total tokens: 1048576",
    "num_input_tokens_seen=409600, train_tokens_per_second: 5218.9",
    "cache_key=3f2a9d44c1e0b7aa hash_key: 0a1b2c3d4e5f6071",
    "[rank0]:[W1120 10:11:12.000 ProcessGroupNCCL.cpp:4561] using GPU 0 to perform barrier",
    "Loading extension module fused_adam... Time to load fused_adam op: 0.0921 seconds",
    "localhost:29500 127.0.0.1:29500 0.0.0.0:8000 [::]:29500",
    "@torch.no_grad() def forward(self, x): return x @ self.weight.T",
    "c10::cuda::CUDACachingAllocator::emptyCache() at::native::addmm_out ade::bad::feed",
    "00000000:3B:00.0 Off |                    0 |  12:34:56 up 3 days",
    "CMake Error at CMakeLists.txt:12 (find_package): version 4.4.3",
    "assert key is not None, 'key: missing' and token in vocab",
    "Node v20.11.1 found; Node 18.2 is too old",
    "unexpected_key=model.layers.31.self_attn.q_proj.weight",
    "sort-key: layer_12_q_proj",
    "-rw-r--r-- 1 root root 4096 Nov 20 10:11 train.py",
    "Linux 6.8.0-45-generic x86_64",
    "|   0  NVIDIA A100(40GB)  | 100M |",
    "failed to connect to huggingface.co:443",
    "user: What is the capital of France? assistant: Paris.",
)


def _version_lines(r: random.Random) -> str:
    package = r.choice(_PACKAGES)
    name, _, version = package.partition("==")
    return r.choice(
        (
            package,
            f"{name:<28}{version}",
            f"{name:<24} {version:<12} pypi_0    conda-forge",
            f"- {name}: {version}",
            f'"{name}": "{version}",',
            f"Requirement already satisfied: {name}>={version} in /usr/lib/python3/dist-packages ({version})",
            f"| {name} | {version} |",
            f"Found existing installation: {name} {version}",
            f"Successfully installed {name}-{version}",
            f"{name} {version} requires numpy<2, but you have numpy 2.1.3 which is incompatible.",
        )
    )


def _log_lines(r: random.Random) -> str:
    hash_ = "".join(r.choice("0123456789abcdef") for _ in range(r.choice((7, 12, 32, 40, 64))))
    number, gpu = r.randrange(10_000), r.choice(_GPUS)
    return r.choice(
        (
            f"commit {hash_}",
            f"Using cached kernel {hash_}.so from /root/.triton/cache/{hash_}/",
            f"snapshot /root/.cache/huggingface/hub/models--Qwen--Qwen2.5-7B/snapshots/{hash_}/config.json",
            f"|   {r.randrange(8)}  {gpu}   On  | 00000000:{r.randrange(10, 99)}:00.0 Off |  {number}MiB / "
            f"81559MiB |",
            f"{{'loss': {r.random():.4f}, 'grad_norm': {r.random():.3f}, 'learning_rate': {r.random():.2e}, "
            f"'epoch': {number / 977:.2f}}}",
            f" {number % 100}%|████      | {number}/10000 [12:{number % 60:02d}<34:56,  1.23s/it]",
            f"2026-11-{r.randrange(1, 29):02d} 10:{r.randrange(60):02d}:12,{number % 1000:03d} - INFO - step "
            f"{number} tokens={number * 4096}",
            f"undefined symbol: {r.choice(_SYMBOLS)}",
            f"[{hash_[:8]}] INFO {gpu}: compute capability {r.choice(('7.5', '8.0', '8.9', '9.0', '12.0'))}, "
            f"driver 5{r.randrange(25, 90)}.{r.randrange(200)}.0{r.randrange(9)}",
            f"Xid (PCI:0000:{r.randrange(10, 99)}:00): {r.choice((13, 31, 48, 63, 79, 94))}, Ch "
            f"0000{number:04x}, intr 10000000",
            f'  File "/usr/lib/python3/dist-packages/vllm/engine/llm_engine.py", line {number}, in step',
            f"INFO 11-20 10:11:12 model_runner.py:{number}] Loading model weights took {r.random() * 80:.4f} "
            f"GB",
            f"frame #{number % 30}: <unknown function> + 0x{hash_[:7]} (0x7f{hash_[:6]} in "
            f"/opt/lib/libtorch_cuda.so)",
            f"sha256={hash_} size={number}",
            f"request_id=cmpl-{hash_[:32]} prompt_tokens={number} completion_tokens={number % 300}",
            f"NCCL version 2.21.5+cuda12.4 commHash 0x{hash_[:12]} nranks 8 busId {hash_[:5]}",
        )
    )


@cache
def benign(seed: int = 3, count: int = 2000) -> list[str]:
    """`count` lines: every fixed one, then drawn ones."""
    r = random.Random(seed)
    drawn = [r.choice((_version_lines, _log_lines))(r) for _ in range(count - len(_FIXED))]
    return [*_FIXED, *drawn]
