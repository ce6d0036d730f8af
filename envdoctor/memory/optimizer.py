"""Optimizer states and the scratch of a step, by transformers' optimizer names."""

from __future__ import annotations

from collections.abc import Iterable

from envdoctor.errors import InputError, nearest
from envdoctor.memory.tape import rounded
from envdoctor.values import dataclass

QUANTISED_FROM = 4096  # elements below which bitsandbytes keeps a state in fp32
PAGED_FROM = 100_000  # elements below which a paged state stays on the card
BLOCK = 256  # elements that share one constant of an 8-bit state


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer: states a weight, how they are kept, and how its step computes."""

    states: int
    kind: str = "same"  # "same" dtype as the weight, "fp32", "8bit" or "factored"
    foreach: int = 0  # lists of all tensors' size that a step makes
    paged: bool = False


OPTIMIZERS: dict[str, Optimizer] = {
    "adamw_torch_fused": Optimizer(2),
    "adamw_torch": Optimizer(2, foreach=1),
    "adamw_hf": Optimizer(2, foreach=1),
    "adamw_apex_fused": Optimizer(2),
    "adamw_anyprecision": Optimizer(3),
    "adamw_8bit": Optimizer(2, "8bit"),
    "adamw_bnb_8bit": Optimizer(2, "8bit"),
    "paged_adamw": Optimizer(2, "fp32", paged=True),
    "paged_adamw_32bit": Optimizer(2, "fp32", paged=True),
    "paged_adamw_8bit": Optimizer(2, "8bit", paged=True),
    "ademamix": Optimizer(3, "fp32"),
    "ademamix_8bit": Optimizer(3, "8bit"),
    "paged_ademamix_32bit": Optimizer(3, "fp32", paged=True),
    "paged_ademamix_8bit": Optimizer(3, "8bit", paged=True),
    "lion_32bit": Optimizer(1, "fp32"),
    "lion_8bit": Optimizer(1, "8bit"),
    "paged_lion_32bit": Optimizer(1, "fp32", paged=True),
    "paged_lion_8bit": Optimizer(1, "8bit", paged=True),
    "rmsprop": Optimizer(1, foreach=1),
    "rmsprop_bnb": Optimizer(1, "fp32"),
    "rmsprop_bnb_8bit": Optimizer(1, "8bit"),
    "rmsprop_bnb_32bit": Optimizer(1, "fp32"),
    "sgd": Optimizer(0),
    "adagrad": Optimizer(1, foreach=2),
    "adafactor": Optimizer(1, "factored"),
}


def find_optimizer(name: str) -> Optimizer:
    """Return the optimizer of that name; raises InputError for one whose memory is not known."""
    if name not in OPTIMIZERS:
        near = nearest(name, OPTIMIZERS) or f"; there are {', '.join(sorted(OPTIMIZERS))}"
        raise InputError(f"--optim {name}: not known{near}")
    return OPTIMIZERS[name]


def state_bytes(
    optimizer: Optimizer, tensors: Iterable[tuple[int, int]], width: int, embedding: int = 0
) -> int:
    """Bytes of the states on the card for tensors (elements, occurrences) of `width` bytes an element.

    `embedding` is the number of elements of the embedding, which bitsandbytes keeps in 32 bits; the head of
    an untied model is as large and is not. The embedding stands first.
    """
    found = tuple(tensors)
    first = bool(embedding) and bool(found) and found[0][0] == embedding
    return sum(
        count * _tensor_states(optimizer, n, width, first and place == 0)
        for place, (n, count) in enumerate(found)
    )


def _tensor_states(optimizer: Optimizer, n: int, width: int, embedding: bool) -> int:
    return sum(rounded(size) for size in state_blocks(optimizer, n, width, embedding))


def state_blocks(optimizer: Optimizer, n: int, width: int, embedding: bool = False) -> tuple[int, ...]:
    """Bytes of each tensor that the states of a weight of `n` elements of `width` bytes are kept in."""
    if optimizer.paged and n >= PAGED_FROM:
        constants = optimizer.kind == "8bit" and not embedding
        return (4 * (n // BLOCK),) * optimizer.states if constants else ()
    if optimizer.kind == "8bit" and n >= QUANTISED_FROM and not embedding:
        return (n, 4 * -(-n // BLOCK)) * optimizer.states
    if optimizer.kind == "factored":
        return () if n < QUANTISED_FROM else (4 * int(n**0.5) * 2,)
    if optimizer.kind in ("8bit", "fp32"):
        return (4 * n,) * optimizer.states
    steps = (4,) if optimizer.states == 2 and not optimizer.foreach else ()
    return (*steps, *(width * n,) * optimizer.states)


def step_bytes(optimizer: Optimizer, tensors: Iterable[tuple[int, int]], width: int) -> int:
    """Bytes of scratch at the height of a step."""
    sizes = tuple(tensors)
    largest = max((n for n, _ in sizes), default=0)
    if optimizer.kind == "factored":
        return (16 if width < 4 else 12) * largest
    if optimizer.foreach:
        return optimizer.foreach * sum(count * rounded(width * n) for n, count in sizes)
    return 0
