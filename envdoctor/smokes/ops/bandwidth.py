"""Speeds: copies to, from, within and between cards, an all-reduce, and a matrix product."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from typing import Any

from .collective import run_ranks
from .context import Context
from .registry import Skip, op
from .trial import Pace

GIGA, TERA = 1e9, 1e12
BYTES = 1 << 28
LARGE = 1 << 30
"""Several times the largest cache of a card."""
SIDE, SMALL_SIDE = 8192, 512
SAMPLES = 4096
PRODUCTS = 8
SPEED = {"tolerance": 0.0, "quick": False, "last": True, "lane": "bandwidth"}


def _numbers(torch: Any, size: int) -> Any:
    """Return so many bytes on the CPU of which no four are like another four."""
    return torch.arange(size // 4, dtype=torch.int32)


def _room(ctx: Context, size: int) -> int:
    """Return a size that fits twice into a fourth of what the card has free."""
    if not ctx.on_gpu:
        return 1 << 22
    free, _ = ctx.torch.cuda.mem_get_info(ctx.device)
    return int(min(size, 1 << max(20, int(math.log2(max(1, free // 8))))))


def _copied(source: Any, target: Any) -> Callable[[], str]:
    """Return what looks whether values spread over all of `target` are those of `source`."""

    def verify() -> str:
        stride = max(1, target.numel() // SAMPLES)
        there, here = (side[::stride].cpu().tolist() for side in (target, source))
        wrong = sum(1 for one, other in zip(there, here) if one != other)  # noqa: B905 (Python 3.8)
        return f"{wrong} of {len(here)} values that were looked at did not arrive" if wrong else ""

    return verify


def _copying(ctx: Context, source: Any, target: Any, passes: int = 1) -> Pace:
    """Return the pace of a copy, whose bytes pass a memory or a link so many times."""
    target.fill_(-1)
    size = source.numel() * source.element_size()
    return Pace(
        lambda: target.copy_(source, non_blocking=True), passes * size / GIGA, _copied(source, target)
    )


def _host_and_card(ctx: Context) -> tuple[Any, Any]:
    host = _numbers(ctx.torch, _room(ctx, BYTES))
    return (host.pin_memory() if ctx.on_gpu else host), ctx.torch.empty_like(host, device=ctx.device)


@op("bandwidth.h2d", cpu=False, unit="GB/s", **SPEED)
def bandwidth_h2d(ctx: Context) -> Pace:
    """Speed of copies from pinned memory of the host to the card."""
    host, card = _host_and_card(ctx)
    return _copying(ctx, host, card)


@op("bandwidth.d2h", cpu=False, unit="GB/s", **SPEED)
def bandwidth_d2h(ctx: Context) -> Pace:
    """Speed of copies from the card to pinned memory of the host."""
    host, card = _host_and_card(ctx)
    card.copy_(host)
    return _copying(ctx, card, host)


@op("bandwidth.d2d", unit="GB/s", **SPEED)
def bandwidth_d2d(ctx: Context) -> Pace:
    """Speed of the device's own memory, bytes read and written, by a copy within it."""
    source = _numbers(ctx.torch, _room(ctx, LARGE)).to(ctx.device)
    return _copying(ctx, source, ctx.torch.empty_like(source), passes=2)


@op("bandwidth.matmul", unit="TFLOP/s", **SPEED)
def bandwidth_matmul(ctx: Context) -> Pace:
    """Speed of a large 16-bit matrix product on random numbers."""
    torch = ctx.torch
    side = SIDE if ctx.on_gpu else SMALL_SIDE
    dtype = torch.float16 if 0 < ctx.sm < 80 else torch.bfloat16
    left, right = (torch.randn(side, side, dtype=dtype, device=ctx.device) for _ in range(2))
    out = torch.full_like(left, float("nan"))
    return Pace(
        lambda: torch.mm(left, right, out=out),
        2 * side**3 / TERA,
        lambda: _odd_product(ctx, left, right, out),
    )


def _odd_product(ctx: Context, left: Any, right: Any, out: Any) -> str:
    """Return which of some elements is not the product of its row and column, counted without torch."""
    side, truths = left.shape[0], set()
    for number in range(PRODUCTS):
        row, column = number * (side // PRODUCTS) + number, side - 1 - number * (side // PRODUCTS)
        pair = (ctx.exact(left[row]).tolist(), ctx.exact(right[:, column]).tolist())
        truth = math.fsum(one * other for one, other in zip(*pair))  # noqa: B905 (Python 3.8)
        found = float(out[row, column].item())
        if not abs(found - truth) <= 0.02 * math.sqrt(side):
            return f"element {row}, {column} of the product is {found:.4g} where {truth:.4g} belongs"
        truths.add(truth)
    return "" if len(truths) > 1 else "the product is of one number throughout: its inputs were never drawn"


@op("bandwidth.p2p", cpu=False, gpus="pair", unit="GB/s", **SPEED)
def bandwidth_p2p(ctx: Context) -> Pace:
    """Speed of copies between two cards, each way by itself; the slower way counts."""
    torch = ctx.torch
    cards = [torch.device("cuda", index) for index in ctx.gpus]
    ways = []
    for here, there in (cards, cards[::-1]):
        source = _numbers(torch, _room(ctx, BYTES)).to(here)
        ways.append(_copying(ctx, source, torch.empty_like(source, device=there)))
    ways[0].way_back = ways[1]
    return ways[0]


@op("bandwidth.all_reduce", cpu=False, gpus="all", patience=3.0, unit="GB/s", **SPEED)
def bandwidth_all_reduce(ctx: Context) -> Pace:
    """Bus bandwidth of an NCCL all-reduce over all cards, one process a card."""
    import torch.distributed as dist

    if len(ctx.gpus) < 2:
        raise Skip("needs two GPUs")
    if not (dist.is_available() and dist.is_nccl_available()):
        raise Skip("this torch has no NCCL")
    return reduce_pace(ctx, "nccl", _room(ctx, LARGE))


def reduce_pace(ctx: Context, backend: str, size: int) -> Pace:
    """Return the bus bandwidth that the ranks measured: 2 (n-1) / n times the bytes, as nccl-tests counts."""
    cards = ctx.gpus or (0, 1)
    with tempfile.TemporaryDirectory(dir=ctx.scratch) as folder:
        run_ranks("time", folder, cards, backend, str(size))
        told = [ctx.torch.load(os.path.join(folder, f"time{rank}")) for rank in range(len(cards))]
    fault = next((one["fault"] for one in told if one["fault"]), "")
    moved = size * 2 * (len(cards) - 1) / len(cards) / GIGA
    return Pace(lambda: None, moved, lambda: fault, finished=moved / max(one["seconds"] for one in told))
