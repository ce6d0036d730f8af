"""Names by which people and tools call the distributions of this field."""

from __future__ import annotations

from envdoctor import lazy_re as re

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


def known_distribution(label: str) -> str | None:
    """Return the normalized name of the distribution that `label` (lower case) stands for, or None."""
    return _LABELS.get(label) or _LABELS.get(label.replace("_", "-"))


def mention_pattern() -> re.Pattern[str]:
    """Return a pattern for a name followed by its version in running text (groups name, between, version)."""

    names = sorted({re.escape(label).replace(r"\-", "[-_ ]").replace(r"\ ", "[-_ ]") for label in _LABELS})
    choice = "|".join(sorted(names, key=len, reverse=True))
    return re.compile(
        rf"(?i)(?<![A-Za-z0-9_./=@-])(?P<name>{choice})"
        r"(?P<between>[`*]{0,2}\s{0,2}(?:docker |image )?(?:with )?(?:custom )?(?:version|ver\.?|版本)?"
        r"\s{0,2}(?:==|[=:@-]|is|at|是|为|는|은)?\s{0,2}[`*(\[v]{0,3})"
        rf"(?P<version>(?:\d{{1,4}}\.\d{{1,9}}[\w.+]*))(?![\w%])"
    )
