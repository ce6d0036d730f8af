"""Who holds a card's memory, asked of nvidia-smi when an allocation was refused.

Runs under any Python from 3.8, in the examined interpreter.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

FULL = 0.9
LIMIT_S = 10


def is_out_of_memory(error: BaseException) -> bool:
    """True for an allocation that a card refused."""
    words = f"{type(error).__name__} {error}".lower()
    return "out of memory" in words or "outofmemory" in words or "alloc_failed" in words


def who_holds(gpus: Sequence[int]) -> str:
    """Return who fills the first of the cards that others fill, empty where none is full of others."""
    visible = visible_cards()
    programs = _query("compute-apps", "gpu_uuid,pid,process_name,used_memory")
    for gpu in gpus:
        if gpu < len(visible):
            _, uuid, used, total = visible[gpu]
            others = [one for one in programs if one[0] == uuid and one[1] != str(os.getpid())]
            if _number(used) >= FULL * max(1.0, _number(total)) and _number(used) > _own(programs, uuid):
                return _words(gpu, others, _number(used), _number(total))
    return ""


def _words(gpu: int, others: list[list[str]], used: float, total: float) -> str:
    held = f"{used / 1024:.0f} of {total / 1024:.0f} GiB"
    if not others:
        return f"card {gpu} is full: held by what nvidia-smi does not name, {held}"
    largest = sorted(others, key=lambda one: -_number(one[3]))[:3]
    named = ", ".join(f"PID {one[1]} ({os.path.basename(one[2]) or '?'})" for one in largest)
    return f"card {gpu} is full: held by {named}, {held}"


def _own(programs: list[list[str]], uuid: str) -> float:
    """Return what we hold ourselves: a card that we fill is no other's doing."""
    mine = sum(_number(one[3]) for one in programs if one[0] == uuid and one[1] == str(os.getpid()))
    return 2 * mine


def visible_cards() -> list[list[str]]:
    """Return the cards' number, UUID, used and total mebibytes in the order in which torch counts them."""
    cards = _query("gpu", "index,uuid,memory.used,memory.total")
    told = os.environ.get("CUDA_VISIBLE_DEVICES")
    if told is None:
        return cards
    known: dict[str, list[str]] = {}
    for card in cards:
        known[card[0]] = known[card[1]] = card
    return [known[name] for name in told.split(",") if name in known]


def _query(what: str, fields: str) -> list[list[str]]:
    command = ["nvidia-smi", f"--query-{what}={fields}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    lines = done.stdout.decode("utf-8", "replace").splitlines() if not done.returncode else []
    rows = [[part.strip() for part in line.split(",")] for line in lines]
    return [row for row in rows if len(row) == fields.count(",") + 1]


def _number(text: str) -> float:
    """Return mebibytes, 0 for what is not told."""
    try:
        return float(text)
    except ValueError:
        return 0.0
