"""What runs on a node, sent there as source: it takes the probes from standard input and answers in short lines.

Standard library and Python 3.8 only. Nothing is left behind: the probes lie in memory, or in a file that is gone
before they run.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import zlib

LINE = 900  # launchers that prefix lines cut longer ones


def land(size, limit_s, python):  # type: ignore[no-untyped-def]
    """Read `size` bytes of probes, examine this machine and print its facts; ended after `limit_s` seconds."""
    if hasattr(signal, "alarm"):
        signal.alarm(limit_s)
    archive = sys.stdin.buffer.read(size)
    if len(archive) < size:
        sys.exit("envdoctor: the probe arrived cut: %d of %d bytes" % (len(archive), size))
    sys.path.insert(0, keep(archive))
    from envdoctor_probes import NoInterpreter, read_machine

    try:
        facts = read_machine(python)
    except NoInterpreter as error:
        sys.exit(f"envdoctor: --python: {error}")
    answer(json.dumps(facts, indent=1).encode())
    sys.stdout.flush()
    os._exit(0)  # a probe that hangs in the kernel must not keep the process alive


def keep(archive):  # type: ignore[no-untyped-def]
    """Return a path that leads to the archive and vanishes with this process."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("envdoctor")
    else:
        import tempfile

        handle, path = tempfile.mkstemp()
        os.unlink(path)
    os.write(handle, archive)
    return ("/proc/self/fd/%d" if os.path.isdir("/proc/self/fd") else "/dev/fd/%d") % handle


def answer(text):  # type: ignore[no-untyped-def]
    """Print a text as framed lines that stay whole among others' output."""
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    packed = base64.b64encode(zlib.compress(text, 6)).decode()
    parts = [packed[i : i + LINE] for i in range(0, len(packed), LINE)]
    for number, part in enumerate(parts, 1):
        sys.stdout.write("envdoctor:%s:%d/%d:%s\n" % (node, number, len(parts), part))
