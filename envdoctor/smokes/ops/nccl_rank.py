"""One rank of an all-reduce; run as a script it is a rank in a process of its own."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

WARM, TIMED = 3, 10
SAMPLES = 4096


def take_part(
    what: str, folder: str, cards: Sequence[int], rank: int, backend: str = "nccl", size: str = ""
) -> None:
    """Take part as a rank on its card: `sum` the parts in `folder`, or `time` sums of so many bytes."""
    import torch
    import torch.distributed as dist

    device = torch.device("cuda", cards[rank]) if backend == "nccl" else torch.device("cpu")
    if backend == "nccl":
        torch.cuda.set_device(device)
    store = dist.FileStore(os.path.join(folder, "store"), len(cards))
    dist.init_process_group(backend, store=store, rank=rank, world_size=len(cards))
    try:
        if what == "sum":
            _sum(torch, dist, device, folder, rank)
        else:
            told = _timed(torch, dist, device, rank, len(cards), int(size))
            torch.save(told, os.path.join(folder, f"time{rank}"))
    finally:
        dist.destroy_process_group()


def _sum(torch: Any, dist: Any, device: Any, folder: str, rank: int) -> None:
    """Leave the sum of all parts in the folder."""
    part = torch.load(os.path.join(folder, "parts"))[rank].to(device)
    dist.all_reduce(part)
    torch.save(part.cpu(), os.path.join(folder, f"sum{rank}"))


def _timed(torch: Any, dist: Any, device: Any, rank: int, world: int, size: int) -> dict[str, Any]:
    """Return the seconds of one all-reduce among many, and what is wrong with their sum."""
    data = torch.full((size // 4,), float(rank + 1), dtype=torch.float32, device=device)
    for _ in range(WARM):
        dist.all_reduce(data)
    _settle(torch, dist, device)
    start = time.perf_counter()
    for _ in range(TIMED):
        dist.all_reduce(data)
    _settle(torch, dist, device)
    seconds = (time.perf_counter() - start) / TIMED
    truth = world * (world + 1) / 2 * float(world) ** (WARM + TIMED - 1)
    found = data[:: max(1, data.numel() // SAMPLES)].cpu().tolist()
    wrong = sum(1 for value in found if not abs(value - truth) <= 1e-3 * truth)
    fault = f"{wrong} of {len(found)} sums that were looked at are wrong" if wrong else ""
    return {"seconds": seconds, "fault": fault}


def _settle(torch: Any, dist: Any, device: Any) -> None:
    """Wait for our own card, then for the others."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    dist.barrier()


if __name__ == "__main__":
    del sys.path[0]  # this folder, whose modules would hide others' of the same name
    _what, _folder, _cards, _rank, *_rest = sys.argv[1:]
    take_part(_what, _folder, [int(card) for card in _cards.split(",")], int(_rank), *_rest)
