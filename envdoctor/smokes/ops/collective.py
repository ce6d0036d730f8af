"""Several cards: copies between each two, and NCCL."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from . import nccl_rank
from .context import Context
from .registry import Skip, op
from .trial import Trial

COUNT = 1 << 16


@op("p2p.copy", tolerance=0.0, cpu=False, gpus="pair", quick=False, lane="collective")
def p2p_copy(ctx: Context) -> Trial:
    """Bytes from one card to another and back, both ways."""
    torch = ctx.torch
    first, second = (torch.device("cuda", index) for index in ctx.gpus)
    data = torch.randint(0, 256, (2, COUNT), generator=ctx.generator, dtype=torch.uint8)

    def call() -> Any:
        there = data[0].to(first).to(second).to(first).cpu()
        back = data[1].to(second).to(first).to(second).cpu()
        return there, back

    return Trial(call, lambda: (data[0].double(), data[1].double()))


@op("nccl.pair", tolerance=1e-6, cpu=False, gpus="pair", quick=False, lane="collective", patience=2.0)
def nccl_pair(ctx: Context) -> Trial:
    """NCCL all-reduce between two cards, from one process."""
    torch = ctx.torch
    import torch.cuda.nccl as nccl

    fp32 = torch.float32
    cards = [torch.device("cuda", index) for index in ctx.gpus]
    parts = [torch.randn(COUNT, generator=ctx.generator, dtype=fp32).to(card) for card in cards]

    def call() -> Any:
        outputs = [part.clone() for part in parts]
        for card in cards:
            torch.cuda.synchronize(card)
        nccl.all_reduce(outputs)
        for card in cards:
            torch.cuda.synchronize(card)
        return tuple(output.cpu() for output in outputs)

    total = sum(ctx.exact(part) for part in parts)
    return Trial(call, lambda: (total, total))


@op(
    "nccl.all_reduce",
    tolerance=1e-6,
    cpu=False,
    gpus="all",
    quick=False,
    lane="collective",
    patience=3.0,
    repeats=1,
)
def nccl_all_reduce(ctx: Context) -> Trial:
    """NCCL all-reduce over all cards, one process a card (one card: one rank)."""
    torch = ctx.torch
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_nccl_available()):
        raise Skip("this torch has no NCCL")
    world = len(ctx.gpus)
    parts = [torch.randn(COUNT, generator=ctx.generator) for _ in range(world)]

    def call() -> Any:
        with tempfile.TemporaryDirectory(dir=ctx.scratch) as folder:
            torch.save(parts, os.path.join(folder, "parts"))
            run_ranks("sum", folder, ctx.gpus)
            return tuple(torch.load(os.path.join(folder, f"sum{rank}")) for rank in range(world))

    total = sum(ctx.exact(part) for part in parts)
    return Trial(call, lambda: tuple(total for _ in range(world)))


def run_ranks(what: str, folder: str, cards: Sequence[int], *options: str) -> None:
    """Run a rank for each card, rank 0 here, the others as our children; they leave files in the folder."""
    command = [sys.executable, nccl_rank.__file__, what, folder, ",".join(map(str, cards))]
    others = [subprocess.Popen([*command, str(rank), *options]) for rank in range(1, len(cards))]
    try:
        nccl_rank.take_part(what, folder, cards, 0, *options)
        for rank, child in enumerate(others, start=1):
            if child.wait():
                raise RuntimeError(f"rank {rank} ended with status {child.returncode}")
    finally:
        for child in others:
            child.kill()
            child.wait()
