"""Which settings are worth trying for a workload, and which fall away before any byte is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import lcm

from envdoctor.memory.methods import METHODS
from envdoctor.memory.optimizer import find_optimizer
from envdoctor.profile.workload import USUAL_BATCH, Choice, Workload
from envdoctor.values import dataclass, replace

_OFFLOADS = (
    ("zero2", True, False),
    ("zero3", True, False),
    ("zero3", True, True),
)


Sizes = Callable[[Sequence[int]], Iterable[int]]
"""Which of all micro batches, from the largest on."""


def ends(sizes: Sequence[int]) -> Iterable[int]:
    """Return the largest and the least."""
    return dict.fromkeys((sizes[0], sizes[-1]))


@dataclass(frozen=True, slots=True)
class Barred:
    """A kind of setting that this stack or these cards rule out, and why."""

    choice: dict[str, object]
    why: str


def training_choices(work: Workload, sizes: Sizes = tuple) -> Iterator[Choice]:
    """Yield every setting of a training run, fit or not; of micro batches those of the `sizes`."""
    for base in _bases(work):
        for parallel, optimizer, params in _splits(work, base):
            if work.parallel not in (None, parallel):
                continue
            sharded = replace(base, parallel=parallel, offload_optimizer=optimizer, offload_params=params)
            for choice in _kernels(work, sharded):
                yield from _batches(work, choice, sizes)


def _bases(work: Workload) -> Iterator[Choice]:
    """Yield a choice for each method and, under GRPO, for each way to place vLLM."""
    usual = ("full",) if _steps_weights(work) else ("full", "lora", "qlora")
    methods = usual if work.method == "auto" else (work.method,)
    for method in methods:
        if method == "qlora" and work.stack.lacks("bitsandbytes"):
            continue
        dtype, amp = _precision(work, method)
        base = Choice(
            work.task,
            method,
            seq=work.seq,
            dtype=dtype,
            amp=amp,
            lora_rank=work.lora_rank,
            optim_rank=work.optim_rank,
            trained_layers=work.trained_layers,
            virtual_tokens=work.virtual_tokens,
            attn=attention(work),
            gpus=len(work.cards),
            alloc_conf=allocator(work),
        )
        yield from _placements(work, base) if work.task == "grpo" else (base,)


def _precision(work: Workload, method: str) -> tuple[str, str]:
    """bf16 where the cards have it; else fp16, which scales gradients of fp32 weights when all train."""
    if work.bf16:
        return "bf16", "bf16"
    return ("fp32", "fp16") if METHODS[method].layers else ("fp16", "fp16")


def allocator(work: Workload) -> str:
    """Expandable segments, which torch has from 2.1 on; before, a limit to what is split."""
    older = work.stack.within("torch", "<2.1")
    return "max_split_size_mb:512" if older else "expandable_segments:True"


def _placements(work: Workload, base: Choice) -> Iterator[Choice]:
    """Yield where vLLM lies; without it the trainer generates by itself."""
    cards = len(work.cards)
    base = replace(base, num_generations=work.num_generations)
    if work.stack.lacks("vllm"):
        yield base
        return
    base = replace(base, max_model_len=work.seq, prefix_caching=True)
    for tp in _splits_of_heads(work, cards):
        yield replace(base, vllm_mode="colocate", vllm_tp=tp, vllm_gpus=cards, alloc_conf=None)
    for tp in _splits_of_heads(work, cards - 1):
        if tp < cards:
            yield replace(base, vllm_mode="server", vllm_tp=tp, vllm_gpus=tp, gpus=cards - tp)


def _splits_of_heads(work: Workload, cards: int) -> tuple[int, ...]:
    heads = work.shape.heads
    return tuple(tp for tp in (1, 2, 4, 8) if tp <= cards and heads % tp == 0)


def _splits(work: Workload, base: Choice) -> Iterator[tuple[str, bool, bool]]:
    """Yield parallel stage and what is offloaded: plain first, then sharded, then offloaded."""
    deepspeed = not work.stack.lacks("deepspeed")
    if base.gpus == 1:
        yield ("none", False, False)
    else:
        if not _alone(work):
            yield ("ddp", False, False)
        if _whole(work, base):
            return
        stages = ("zero1", "zero2", "zero3") if deepspeed else ()
        yield from ((stage, False, False) for stage in (*stages, "fsdp"))
    if base.method == "qlora" or _whole(work, base):
        return  # bitsandbytes' weights stay on the card, and its adapters' states are not worth moving
    if deepspeed:
        yield from (split for split in _OFFLOADS if base.method == "full" or split[2])
    if base.gpus > 1:
        yield ("fsdp", True, True)


def _whole(work: Workload, base: Choice) -> bool:
    """True for what is counted where each card holds the whole model alone."""
    return base.method not in ("full", "lora", "qlora") or _steps_weights(work)


def _steps_weights(work: Workload) -> bool:
    """True for an optimizer that needs the model's own weights whole."""
    return bool(work.optim and find_optimizer(work.optim).matrices) or _alone(work)


def _alone(work: Workload) -> bool:
    """True for an optimizer that steps each weight as soon as its gradient is there: on one card alone."""
    return bool(work.optim and find_optimizer(work.optim).layerwise)


def _kernels(work: Workload, base: Choice) -> Iterator[Choice]:
    # of pairs its fused losses are others, which are not counted
    counted = work.task not in ("dpo", "reward") and work.stack.has("liger-kernel")
    liger = (True, False) if counted else (False,)
    for checkpointing in (False, True)[: 1 if base.method == "prefix" else 2]:
        for fused in liger:
            for optim in _optimizers(work, base):
                yield replace(base, grad_ckpt=checkpointing, liger=fused, optim=optim)


def attention(work: Workload) -> str:
    """FlashAttention 2 where it is installed and every card has compute capability 8.0; sdpa otherwise."""
    able = all(card.at_least(8) for card in work.cards)
    return "flash_attention_2" if able and work.stack.has("flash-attn") else "sdpa"


def _optimizers(work: Workload, base: Choice) -> tuple[str, ...]:
    """Fused AdamW; with bitsandbytes also 8-bit states, which full fine-tuning alone gains from."""
    if work.optim:
        return (work.optim,)
    if base.offload_optimizer and base.deepspeed:
        return ("adamw_torch",)
    eight_bit = base.method == "full" and work.stack.has("bitsandbytes") and base.parallel in ("none", "ddp")
    return ("adamw_torch_fused", "adamw_8bit") if eight_bit else ("adamw_torch_fused",)


def _batches(work: Workload, choice: Choice, sizes: Sizes) -> Iterator[Choice]:
    """Yield every split of the wanted global batch into micro batch and accumulation, largest batch first.

    One that nobody asked for may be up to half as large again, for a micro batch that does not divide it.
    """
    wanted = global_batch(work, choice)
    if wanted % choice.gpus:
        return
    each = wanted // choice.gpus
    most = each if work.global_batch or choice.num_generations else each + each // 2
    alone = _alone(work)
    for batch in sizes(range(each, 0, -1)):
        steps = 1 if alone and not work.global_batch else -(-each // batch)
        if steps * batch <= most and not (steps > 1 and alone):
            yield replace(choice, batch=batch, grad_accum=steps)


def global_batch(work: Workload, choice: Choice) -> int:
    """Return the wanted samples a step; unless told, the first from 16 on that the cards can share evenly."""
    if work.global_batch:
        return work.global_batch
    answers = choice.num_generations or 1
    unit = lcm(choice.gpus, answers)
    least = max(USUAL_BATCH, answers * choice.gpus if answers > 1 else 0)  # a group of answers for each card
    return -(-least // unit) * unit


def barred(work: Workload) -> Iterator[Barred]:
    """Yield the kinds of setting that were not even tried, with the reason."""
    told = {
        name: work.stack.lacks(name) for name in ("bitsandbytes", "deepspeed", "liger-kernel", "flash-attn")
    }
    if told["bitsandbytes"] and work.method in ("auto", "qlora"):
        yield Barred({"method": "qlora"}, "bitsandbytes is not installed")
    if told["deepspeed"] and len(work.cards) > 1:
        yield Barred({"parallel": "zero1|zero2|zero3"}, "deepspeed is not installed")
    if not work.bf16:
        card = work.card
        yield Barred({"dtype": "bf16"}, f"{card.name}: bf16 needs compute capability 8.0; fp16 is used")
    if attention(work) == "sdpa":
        yield Barred({"attn": "flash_attention_2"}, _no_flash(work))
    if not work.stack.has("liger-kernel"):
        why = "is not installed" if told["liger-kernel"] else "is not known to be installed"
        yield Barred({"liger": True}, f"liger-kernel {why}")
    for gpus in {c.gpus for c in _bases(work)}:
        if work.global_batch and work.global_batch % gpus:
            why = f"a global batch of {work.global_batch} cannot be shared evenly by {gpus} training cards"
            yield Barred({"gpus": gpus}, why)


def _no_flash(work: Workload) -> str:
    low = [card.name for card in work.cards if card.capability is not None and not card.at_least(8)]
    if low:
        return f"{low[0]}: FlashAttention 2 needs compute capability 8.0; sdpa needs no more memory"
    return "flash-attn is not known to be installed; sdpa needs no more memory"
