"""The packages of the stack: what is judged, and what the snapshot is grown from."""

from __future__ import annotations

STACK = (
    "torch",
    "torchvision",
    "torchaudio",
    "triton",
    "transformers",
    "tokenizers",
    "safetensors",
    "huggingface-hub",
    "accelerate",
    "peft",
    "trl",
    "datasets",
    "bitsandbytes",
    "deepspeed",
    "flash-attn",
    "flash-attn-4",
    "xformers",
    "vllm",
    "sglang",
    "torchao",
    "liger-kernel",
    "unsloth",
    "unsloth-zoo",
    "axolotl",
    "llamafactory",
    "ms-swift",
    "lightning",
    "sentence-transformers",
    "optimum",
    "kernels",
)
"""torch, what is compiled against it, Hugging Face's libraries, and the frameworks and servers on top."""
