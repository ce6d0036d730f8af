"""One rank of an all-reduce; run as a script it is a rank in a process of its own."""

from __future__ import annotations

import os
import sys


def reduce_as_rank(folder: str, world: int, rank: int) -> None:
    """Take part in one all-reduce of the parts in `folder` and leave this rank's sum there."""
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(rank)
    part = torch.load(os.path.join(folder, "parts"))[rank].to("cuda")
    store = dist.FileStore(os.path.join(folder, "store"), world)
    dist.init_process_group("nccl", store=store, rank=rank, world_size=world)
    try:
        dist.all_reduce(part)
        torch.save(part.cpu(), os.path.join(folder, f"sum{rank}"))
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    del sys.path[0]  # this folder, whose modules would hide others' of the same name
    reduce_as_rank(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
