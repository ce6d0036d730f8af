"""What runs on a node, sent there as source: takes the probes from standard input, answers in short lines.

Standard library and Python 3.8 only. Nothing is left behind: the probes lie in memory, or in a file that is
gone before they run.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import zlib

LINE = 900  # launchers that prefix lines cut longer ones


def land(size: int, limit_s: int, python: str | None) -> None:
    """Read `size` bytes of probes, examine this machine and print its facts; end after `limit_s` seconds."""
    signal.alarm(limit_s)
    archive = sys.stdin.buffer.read(size)
    if len(archive) < size:
        sys.exit(f"envdoctor: the probe arrived cut: {len(archive)} of {size} bytes")
    sys.path.insert(0, keep(archive))
    from envdoctor_probes import NoInterpreter, read_machine  # type: ignore[import-not-found]

    try:
        facts = read_machine(python)
    except NoInterpreter as error:
        sys.exit(f"envdoctor: --python: {error}")
    answer(json.dumps(facts, indent=1).encode())
    sys.stdout.flush()
    os._exit(0)  # a probe that hangs in the kernel must not keep the process alive


def keep(archive: bytes) -> str:
    """Return a path that leads to the archive and vanishes with this process."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("envdoctor")
    else:
        import tempfile

        handle, path = tempfile.mkstemp()
        os.unlink(path)
    os.write(handle, archive)
    return f"/proc/self/fd/{handle}" if os.path.isdir("/proc/self/fd") else f"/dev/fd/{handle}"


def answer(text: bytes) -> None:
    """Print a text as framed lines that stay whole among others' output."""
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    packed = base64.b64encode(zlib.compress(text, 6)).decode()
    parts = [packed[i : i + LINE] for i in range(0, len(packed), LINE)]
    for number, part in enumerate(parts, 1):
        sys.stdout.write(f"envdoctor:{node}:{number}/{len(parts)}:{part}\n")
