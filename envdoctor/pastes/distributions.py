"""Distributions as people write them: by name or alias, with a version, a prefix, a range, a build tag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Any

from envdoctor import lazy_re as re
from envdoctor.values import dataclass

ELSEWHERE = (
    r"\d[`'\"]{0,2} works?\b|\bwork(?:s|ed) (?:\w{1,10} ){0,2}(?:with|on|in|under)\b|回退|降级|"
    r"\d ?(?:的)?(?:版本)?(?:都|就|是|也)?(?:正常|没问题|没有问题|可以(?!复现))"
)
"""What is said of a release that works, or is gone back to: not the one that is installed."""

_KNOWN = """
accelerate apex auto-gptq autoawq autogptq awq axolotl bitsandbytes causal-conv1d cuda-python cupy
datasets deepspeed diffusers einops evaluate exllamav2 fairscale fastapi flash-attn
flash-linear-attention flashinfer-python flax fschat gptqmodel gradio hf-xet hqq huggingface-hub
intel-extension-for-pytorch jax jaxlib kernels liger-kernel lightning llama-cpp-python llama-index
llamafactory llmcompressor lm-eval lmdeploy mamba-ssm megatron-core mistral-common modelscope mpi4py
ms-swift mxnet ninja numba numpy nvidia-cublas-cu11 nvidia-cublas-cu12 nvidia-cuda-runtime-cu11
nvidia-cuda-runtime-cu12 nvidia-cudnn-cu11 nvidia-cudnn-cu12 nvidia-ml-py nvidia-nccl-cu11
nvidia-nccl-cu12 nvidia-nvjitlink-cu12 onnx onnxruntime onnxruntime-gpu openai opencv-python
openrlhf optimum outlines pandas peft pillow pip protobuf pydantic pynvml pytorch-lightning
pytorch-triton ray safetensors scikit-learn scipy sentence-transformers sentencepiece setuptools
sgl-kernel sglang spaces tensorboard tensorflow tensorrt tensorrt-llm tiktoken timm tokenizers torch
torch-npu torchao torchaudio torchdata torchtext torchtune torchvision transformer-engine
transformers triton triton-windows trl unsloth unsloth-zoo verl vllm vllm-ascend vllm-flash-attn
wandb wheel xformers xgrammar xinference xtuner
"""

_ALIASES = {
    "pytorch": "torch",
    "pytorch version gpu": "torch",
    "torch install path": "",
    "hf hub": "huggingface-hub",
    "huggingface hub": "huggingface-hub",
    "flash attention": "flash-attn",
    "flash attention 2": "flash-attn",
    "flash-attention": "flash-attn",
    "flashattention": "flash-attn",
    "flashattn": "flash-attn",
    "flash attn": "flash-attn",
    "flash attn 2": "flash-attn",
    "flashinfer": "flashinfer-python",
    "bnb": "bitsandbytes",
    "llama factory": "llamafactory",
    "llama-factory": "llamafactory",
    "swift": "ms-swift",
    "ms swift": "ms-swift",
    "fastchat": "fschat",
    "sklearn": "scikit-learn",
    "pytorch triton": "pytorch-triton",
    "liger": "liger-kernel",
    "hf transformers": "transformers",
    "huggingface transformers": "transformers",
    "hugging face transformers": "transformers",
    "opencv": "opencv-python",
    "te": "transformer-engine",
}

KNOWN = frozenset(_KNOWN.split())
"""Normalized names that may be read from loose text; a listing may hold any other."""

_LABELS: dict[str, str] = {
    **{name: name for name in KNOWN},
    **{name.replace("-", " "): name for name in KNOWN},
    **{label: name for label, name in _ALIASES.items() if name},
}

_NUMBER = r"\d{1,9}(?:\.\d{1,9}){0,5}"
VERSION = (
    _NUMBER + r"(?:[-_.]?(?:a|b|rc|alpha|beta)\.?\d{0,9})?(?:[-.]?post\d{1,9})?(?:[-.]?dev\d{0,12})?"
    r"(?:\+[A-Za-z0-9][A-Za-z0-9.]{0,60})?"
)
"""A PEP 440 version as printed by tools, as a pattern."""

_WHOLE = re.compile(rf"[vV]?({VERSION})(?!\.?[\w+])")
_WILDCARD = re.compile(rf"[vV]?({_NUMBER})\.[xX*](?!\w)")
_CLAUSE = re.compile(rf"(<=|>=|==|~=|!=|<|>)\s*[vV]?({VERSION}(?:\.\*)?)")
_WORDS = (
    (re.compile(r"newer than|later than|above|after|greater than|高于|大于"), ">"),
    (re.compile(r"older than|before|below|less than|低于|小于"), "<"),
    (re.compile(r"at least|or newer|or later|from|以上|\d\+(?!\w)"), ">="),
    (re.compile(r"up to|at most|以下"), "<="),
)
_OPEN_ENDED = re.compile(r"[vV]?\d[\w.]*\s*(?:\+(?!\w)|or newer|or later|以[上下])")
_BUILD = re.compile(r"\+(cu\d{3,4}|cpu|rocm[\d.]+|xpu)\b")
_CPU_WORDS = re.compile(r"(?i)\(cpu(?:[ -]only)?\)|\bcpu[ -]only\b")
_VAGUE = re.compile(r"(?i)^\W*(?:latest|newest|old|too old|nightly|unknown version|installed|最新)")


@dataclass(frozen=True, slots=True)
class Told:
    """What a text tells of a version: the version, or a specifier, and facts of the build."""

    version: str | None = None
    specifier: str = ""
    build: Mapping[str, Any] = field(default_factory=dict)


def parse_told(text: str, exact: bool = False) -> Told | None:
    """Read a version as told; None when the text holds none. `exact`: `2.4` is whole, not a prefix."""
    text = text.strip().strip("`*'\"").strip()
    build = parse_build(re.split(r";|,\s*(?=[A-Za-z])", text)[0])
    if specifier := _specifier(text):
        return Told(None, specifier, build)
    if match := _WILDCARD.match(text):
        return Told(None, f"=={match[1]}.*", build)
    match = _WHOLE.match(text)
    if match is None:
        return Told(build=build) if build or _VAGUE.match(text) else None
    version = match[1].rstrip("-.")
    whole = exact or version.count(".") >= 2 or re.search(r"[a-z+]", version)
    return Told(version, "", build) if whole else Told(None, f"=={version}.*", build)


def parse_build(text: str) -> dict[str, Any]:
    """Return what a local version tells of a build: `+cu121`, `+cpu`, `(CPU)`."""
    if match := _BUILD.search(text):
        return _build_of_tag(match[1])
    return _build_of_tag("cpu") if _CPU_WORDS.search(text) else {}


def _build_of_tag(tag: str) -> dict[str, Any]:
    if tag.startswith("cu"):
        digits = tag[2:]
        return {"cuda": f"{int(digits[:-1])}.{digits[-1]}", "variant": tag}
    return {"cuda": None, "variant": tag}


def _specifier(text: str) -> str:
    if _WHOLE.match(text) and not _OPEN_ENDED.match(text):
        return ""
    clauses = [f"{operator}{version}" for operator, version in _CLAUSE.findall(text)]
    if not clauses:
        clauses = _worded(text)
    if not clauses:
        return ""
    from envdoctor.specifiers import InvalidSpecifier, SpecifierSet  # dear to load

    try:
        return str(SpecifierSet(",".join(clauses)))
    except InvalidSpecifier:
        return ""


def _worded(text: str) -> list[str]:
    number = re.search(r"\d[\w.]*", text)
    if number is None or not (version := re.match(_NUMBER, number[0])):
        return []
    for words, operator in _WORDS:
        if words.search(text.lower()):
            return [f"{operator}{version[0]}"]
    return []


def known_distribution(label: str) -> str | None:
    """Return the normalized name of the distribution that `label` (lower case) stands for, or None."""
    return _LABELS.get(label) or _LABELS.get(label.replace("_", "-"))


@cache
def mention_pattern() -> re.Pattern[str]:
    """Return a pattern for a name followed by its version in running text (groups name, between, version)."""

    names = sorted({re.escape(label).replace(r"\-", "[-_ ]").replace(r"\ ", "[-_ ]") for label in _LABELS})
    choice = "|".join(sorted(names, key=len, reverse=True))
    return re.compile(
        rf"(?i)(?<![A-Za-z0-9_./=@-])(?P<name>{choice})"
        r"(?P<between>[`*]{0,2}\s{0,2}(?:docker |image )?(?:with )?(?:custom )?(?:version|ver\.?|版本)?"
        r"\s{0,2}(?:==|-{1,2}>|=>|→|[=:@-]|is|at|是|为|는|은)?\s{0,2}[`*(\[v]{0,3})"
        rf"(?P<version>(?:\d{{1,4}}\.\d{{1,9}}[\w.+]*))(?![\w%])"
    )
