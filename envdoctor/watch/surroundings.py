"""A process' environment as it was at its start, and the rank that it tells."""

from __future__ import annotations

from collections.abc import Mapping

RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "LOCAL_RANK")
_BYTES = 1 << 20


def environment_of(pid: int) -> dict[str, str]:
    """Return the variables with which a process was started; empty where they cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            entries = stream.read(_BYTES).decode("utf-8", "replace").split("\0")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def rank_of(environment: Mapping[str, str]) -> int | None:
    """Return the rank that a launcher told a process; None without one."""
    told = (environment.get(name, "") for name in RANKS)
    return next((int(text) for text in told if text.isascii() and text.isdigit() and len(text) < 8), None)
