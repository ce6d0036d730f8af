"""What runs on a node for the all-reduce over all nodes: a rank for each GPU, which meet in a store.

Standard library, torch and Python 3.8 only. The store stands on the node that owns the address all were told.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess  # noqa: TID251 (on the node, where our own starter of children is not)
import sys
import time
import zlib
from datetime import timedelta

LENGTH = 1 << 16


def land(source: str, limit_s: int, address: str, port: int, nodes: int, backend: str) -> None:
    """Run this node's ranks, each in a child process, and print what came of them."""
    import torch

    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if backend == "nccl" and not cards:
        tell({"outcome": "skipped", "reason": "no GPU there", "ranks": 0})
        return
    here = max(cards, 1)
    calls = [
        f"\nrank({limit_s}, {address!r}, {port}, {nodes}, {backend!r}, {n}, {here})" for n in range(here)
    ]
    ranks = [subprocess.Popen([sys.executable, "-c", source + c], stderr=subprocess.PIPE) for c in calls]
    faults = [fault for n, child in enumerate(ranks) for fault in failure(child, n, limit_s)]
    outcome = "failed" if faults else "passed"
    tell({"outcome": outcome, "reason": "; ".join(faults[:3]) or None, "ranks": here})


def failure(child: subprocess.Popen[bytes], place: int, limit_s: int) -> list[str]:
    """Wait for a rank and return what went wrong with it."""
    try:
        complaint = child.communicate(timeout=limit_s)[1]
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return [f"GPU {place}: no answer within {limit_s} s"]
    if not child.returncode:
        return []
    lines = complaint.decode("utf-8", "replace").strip().splitlines()
    return [f"GPU {place}: {lines[-1][:200] if lines else f'status {child.returncode}'}"]


def rank(limit_s: int, address: str, port: int, nodes: int, backend: str, place: int, here: int) -> None:
    """Join as one rank, reduce once, and fail unless the sum is that of all ranks."""
    import torch
    import torch.distributed as dist

    limit, deadline = timedelta(seconds=limit_s), time.monotonic() + limit_s
    store, first = meet(address, port, limit, place)
    number = store.add("ranks", 1) - 1
    if place == 0:
        store.add("world", here)
        store.add("nodes", 1)
    wait(store, "nodes", nodes, deadline)
    world = store.add("world", 0)
    device = f"cuda:{place}" if backend == "nccl" else "cpu"
    if backend == "nccl":
        torch.cuda.set_device(place)
    dist.init_process_group(backend, store=store, rank=number, world_size=world, timeout=limit)
    part = torch.full((LENGTH,), float(number + 1), device=device)
    dist.all_reduce(part)
    right = bool((part == world * (world + 1) / 2).all())
    store.add("done", 1)
    if first:
        wait(store, "done", world, deadline)
    if not right:
        sys.exit(f"rank {number} of {world} got a wrong sum")
    os._exit(0)


def meet(address: str, port: int, limit: timedelta, place: int):  # type: ignore[no-untyped-def]
    """Return the store, and whether it stands in this process."""
    import torch.distributed as dist

    if place == 0 and owns(address):
        try:
            return dist.TCPStore(address, port, None, True, limit, wait_for_workers=False), True
        except (RuntimeError, OSError):  # another node of this machine has it
            pass
    return dist.TCPStore(address, port, None, False, limit, wait_for_workers=False), False


def wait(store, key: str, count: int, deadline: float) -> None:  # type: ignore[no-untyped-def]
    """Wait until so many have come; exit naming how many did when they do not."""
    while store.add(key, 0) < count:
        if time.monotonic() > deadline:
            sys.exit(f"only {store.add(key, 0)} of {count} {key} came together")
        time.sleep(0.05)


def owns(address: str) -> bool:
    """True when the address is one of this machine's."""
    try:
        family, kind, _, _, where = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.bind((where[0], 0))
    except OSError:
        return False
    return True


def tell(told: dict[str, object]) -> None:
    """Print the outcome in the form that answers travel in."""
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    packed = base64.b64encode(zlib.compress(json.dumps(told).encode())).decode()
    sys.stdout.write(f"envdoctor:{node}:1/1:{packed}\n")
    sys.stdout.flush()
