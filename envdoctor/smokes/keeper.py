"""The keeper: a tiny process that outlives a run only to clear up after it.

`keeper.py SCRATCH` reads its input until the end, which comes when the run's process is gone, however it
went. Then it kills every process marked with the run's scratch folder and removes the folder. Standard
library only; `scratch.py` uses the same functions when the run ends in order.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time

MARK = "ENVDOCTOR_SMOKE_SCRATCH"


def marked_processes(scratch: str) -> list[int]:
    """Return the living processes whose environment names this scratch folder (Linux; none elsewhere)."""
    mark = f"{MARK}={scratch}".encode()
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not name.isdigit():
            continue
        try:
            if mark in _environment(name):
                found.append(int(name))
        except OSError:
            continue
    return found


def _environment(name: str) -> list[bytes]:
    """Return a process's environment; while exec has not set it yet, on a busy machine for long, wait.

    Asked for before reading whether exec was done: one that ends between the two reads nothing.
    """
    told = b""
    for _ in range(500):
        amid_exec = _is_amid_exec(name)
        with open(f"/proc/{name}/environ", "rb") as stream:
            told = stream.read()
        if told or not amid_exec:
            break
        time.sleep(0.002)
    return told.split(b"\0")


def _is_amid_exec(name: str) -> bool:
    """True for a process that has memory, and no place in it for its environment yet."""
    with open(f"/proc/{name}/stat", "rb") as stream:
        fields = stream.read().rpartition(b")")[2].split()
    vsize, env_end = fields[20], fields[48]
    return vsize != b"0" and env_end == b"0"


def clear(scratch: str, looks: int = 3, pause_s: float = 0.01, patience_s: float = 10.0) -> None:
    """Kill the marked processes until `looks` in a row find none, and remove the folder.

    One that was killed may have forked another since: one clean look proves nothing.
    """
    deadline = time.monotonic() + patience_s
    clean = 0
    while clean < looks and time.monotonic() < deadline:
        processes = marked_processes(scratch)
        clean = 0 if processes else clean + 1
        for process in processes:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(pause_s)
    shutil.rmtree(scratch, ignore_errors=True)


def main() -> None:
    """Wait for the end of the run, then clear up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    clear(sys.argv[1], looks=10, pause_s=0.05)


if __name__ == "__main__":
    main()
