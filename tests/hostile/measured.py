"""Run as a script in place of `envdoctor`: the command line, then its greatest memory into a file.

    python measured.py REPORT ARGUMENT...

What a process takes before it becomes Python does not count, as it would in `ru_maxrss`.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

GIBIBYTE = 1 << 30


class Ended(NamedTuple):
    """How a command ended: its status, what it wrote, its time, and its memory in MiB."""

    status: int
    out: bytes
    err: bytes
    wall_s: float
    cpu_s: float
    rss_mib: float

    @property
    def is_clean(self) -> bool:
        """True for an answer, or one line of error."""
        if self.status not in (0, 1, 2, 3) or b"Traceback" in self.err or b"Exception ignored" in self.err:
            return False
        lines = [line for line in self.err.splitlines() if line.startswith(b"envdoctor:")]
        return self.status in (0, 1) or len(lines) <= 1


def run(*arguments: str, timeout_s: float = 60, **options: object) -> Ended:
    """Run one command within bounds of memory and time; raises subprocess.TimeoutExpired."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        command = [sys.executable, "-I", __file__, str(report), *arguments]
        given: dict = {"stdin": subprocess.DEVNULL, "capture_output": True, **options}
        if "stdout" in given or "stderr" in given:
            given.pop("capture_output")
        started = time.monotonic()
        done = subprocess.run(command, timeout=timeout_s, check=False, **given)
        wall_s = time.monotonic() - started
        told = report.read_text().split() if report.exists() else ["0", "inf"]
        return Ended(
            done.returncode, done.stdout or b"", done.stderr or b"", wall_s, float(told[0]), float(told[1])
        )


def _main() -> int:
    report = Path(sys.argv.pop(1))
    resource.setrlimit(resource.RLIMIT_AS, (4 * GIBIBYTE, 4 * GIBIBYTE))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from envdoctor.door import main

    try:
        return main()
    finally:
        status = Path("/proc/self/status").read_text()
        peak_kib = int(status.partition("VmHWM:")[2].split()[0])
        report.write_text(f"{time.process_time()} {peak_kib / 1024}")


if __name__ == "__main__":
    status = _main()
    sys.stdout.flush()
    os._exit(status) if sys.stdout is None else sys.exit(status)
