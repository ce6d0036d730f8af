"""LoRA and QLoRA steps of peft on a two-layer Llama of the examined transformers."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

from .context import Context
from .registry import op
from .trial import Trial

SHAPE = {
    "vocab_size": 128, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip
RATE = 0.1


def _base(ctx: Context) -> Any:
    """Return the two-layer model with weights drawn fresh, in fp32 on the CPU."""
    from transformers import LlamaConfig, LlamaForCausalLM

    ctx.torch.manual_seed(ctx.seed)
    return LlamaForCausalLM(LlamaConfig(**SHAPE, attn_implementation="sdpa"))


def _with_adapters(ctx: Context, model: Any) -> Any:
    """Return the model with LoRA adapters whose two factors are both drawn fresh."""
    from peft import LoraConfig, get_peft_model

    ctx.torch.manual_seed(ctx.seed + 1)
    targets = ["q_proj", "v_proj", "down_proj"]
    config = LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, target_modules=targets, init_lora_weights=False)
    return get_peft_model(model, config)


def _step(ctx: Context, model: Any, tokens: Any) -> Any:
    """Return the loss and all adapters' changes in one plain step; the adapters are put back."""
    torch = ctx.torch
    adapters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    before = [parameter.detach().clone() for parameter in adapters]
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    torch.optim.SGD(adapters, lr=RATE).step()
    changes = [(new.detach() - old).flatten() for new, old in zip(adapters, before)]  # noqa: B905
    with torch.no_grad():
        for parameter, old in zip(adapters, before):  # noqa: B905
            parameter.copy_(old)
            parameter.grad = None
    return loss.detach(), torch.cat(changes)


def _exact_twin(ctx: Context, model: Any) -> Any:
    """Return the model in float64 on the CPU, with the adapters of `model` and its quantised weights."""
    twin = _with_adapters(ctx, _base(ctx)).to(ctx.torch.float64)
    own = dict(twin.named_parameters())
    with ctx.torch.no_grad():
        for name, parameter in model.named_parameters():
            own[name].copy_(ctx.exact(_dense(parameter)))
    return twin


def _dense(parameter: Any) -> Any:
    """Return the values of a parameter, out of 4-bit storage if it is there."""
    state = getattr(parameter, "quant_state", None)
    if state is None:
        return parameter
    from bitsandbytes import functional

    return functional.dequantize_4bit(parameter.data, state)


def _trial(ctx: Context, model: Any) -> Trial:
    tokens = ctx.randint(0, SHAPE["vocab_size"], (2, 16))
    return Trial(lambda: _step(ctx, model, tokens), lambda: _step(ctx, _exact_twin(ctx, model), tokens.cpu()))


@op("peft.lora_step", tolerance=1e-3, needs=("transformers", "peft"), quick=False)
def peft_lora_step(ctx: Context) -> Trial:
    """One LoRA training step in fp32."""
    return _trial(ctx, _with_adapters(ctx, _base(ctx)).to(ctx.device))


@op(
    "peft.qlora_step",
    tolerance=4e-2,
    needs=("transformers", "peft", "bitsandbytes", "accelerate"),
    cpu=False,
    quick=False,
)
def peft_qlora_step(ctx: Context) -> Trial:
    """One QLoRA training step over NF4 weights that transformers loaded."""
    return _trial(ctx, _with_adapters(ctx, _loaded_in_4bit(ctx)))


def _loaded_in_4bit(ctx: Context) -> Any:
    """Return the model as transformers loads it from disk into NF4 on the device."""
    from transformers import BitsAndBytesConfig, LlamaForCausalLM

    bf16 = ctx.torch.bfloat16
    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=bf16)
    folder = tempfile.mkdtemp(dir=ctx.scratch)
    try:
        _base(ctx).save_pretrained(os.path.join(folder, "base"))
        return LlamaForCausalLM.from_pretrained(
            os.path.join(folder, "base"),
            quantization_config=config,
            torch_dtype=bf16,
            device_map={"": ctx.device},
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
