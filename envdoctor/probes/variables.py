"""Environment variables that change how the stack behaves: an allow-list, and never one that looks secret."""

from __future__ import annotations

import re

from .machine import Json, Machine
from .typed import Dict, Mapping, Tuple
from .urls import has_credentials

FACTS: Tuple[str, ...] = ()
PREFIXES = tuple(
    "ACCELERATE_ BNB_ CUBLAS_ CUDA_ CUDNN_ DEEPSPEED_ DS_ FLASH_ATTENTION_ FSDP_ GLOO_ GPU_ HF_ HUGGINGFACE_ "
    "KMP_ MAX_JOBS MKL_ NCCL_ NVIDIA_ NVTE_ OMP_ PYTORCH_ SLURM_JOB_GPUS TORCH TRANSFORMERS_ TRITON_ UCX_ "
    "VLLM_ XFORMERS_ XLA_".split()
)
NAMES = frozenset(
    "CC CONDA_DEFAULT_ENV CONDA_PREFIX CUDAHOSTCXX CXX LD_LIBRARY_PATH LD_PRELOAD LOCAL_RANK MASTER_ADDR "
    "MASTER_PORT PYTHONHOME PYTHONNOUSERSITE PYTHONPATH PYTHONUSERBASE RANK TMPDIR TOKENIZERS_PARALLELISM "
    "TP_SOCKET_IFNAME VIRTUAL_ENV WORLD_SIZE XDG_CACHE_HOME XDG_DATA_HOME".split()
)
NOISE = frozenset(("NVIDIA_REQUIRE_CUDA", "NVIDIA_PRODUCT_NAME"))
SECRET_WORDS = "TOKEN SECRET PASS PWD KEY CREDENTIAL AUTH COOKIE PRIVATE SIGNATURE".split()
PUBLIC_NAMES = frozenset(("TOKENIZERS_PARALLELISM", "CUDA_CACHE_PATH"))
SECRET_VALUE = r"\b(?:hf_|ghp_|sk-|nvapi-|xox[bp]-)[A-Za-z0-9_-]{16,}"
MAX_VALUE = 4096


def read(machine: Machine) -> Json:
    """Return the variables that matter; of one whose value looks secret a note remains."""
    kept, dropped = select_variables(machine.environ)
    answer: Json = {"variables": kept} if kept else {}
    if dropped:
        answer["notes"] = ["not kept, for their values look secret: " + ", ".join(dropped)]
    return answer


def select_variables(environ: Mapping[str, str]) -> Tuple[Dict[str, str], Tuple[str, ...]]:
    """Return the allowed variables, and the names of those whose values look secret."""
    allowed = {name: environ[name] for name in sorted(environ) if _is_allowed(name)}
    dropped = tuple(name for name, value in allowed.items() if _looks_secret(value))
    return {name: _clean(value) for name, value in allowed.items() if name not in dropped}, dropped


def _looks_secret(value: str) -> bool:
    return re.search(SECRET_VALUE, value) is not None or has_credentials(value)


def _clean(value: str) -> str:
    """Return a value cut to length, without the bytes that are no UTF-8."""
    return value[:MAX_VALUE].encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _is_allowed(name: str) -> bool:
    if name in NOISE or (any(word in name.upper() for word in SECRET_WORDS) and name not in PUBLIC_NAMES):
        return False
    return name in NAMES or name.startswith(PREFIXES)
