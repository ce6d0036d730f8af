"""Work that may take its process down with it, done in a child: its answer is a marked line."""

from __future__ import annotations

import json
import os
import re
import sys

from .machine import Json
from .typed import Callable, Mapping

MARK = "envdoctor-answer:"
# The probes as a package of that name alone, whether they lie in a folder or in an archive.
START = (
    "import sys; p = type(sys)('probes'); p.__path__ = [sys.argv[1]]; sys.modules['probes'] = p; "
    "from probes.%s import main; main()"
)
MAX_BYTES = 1 << 30


def ask_isolated(module: str, limit_s: float, environ: Mapping[str, str]) -> Json:
    """Return what the module's `main` answers in a bare Python of our own; raises CommandFailed."""
    from .commands import CommandFailed, run_command

    if not sys.executable:
        raise CommandFailed("this Python does not tell its own path, so that no child can be started")
    folder = os.path.dirname(os.path.abspath(__file__))
    open_file = re.match(r"/(?:proc/self|dev)/fd/(\d{1,9})/", folder)
    command = [sys.executable, "-I", "-S", "-c", START % module, folder]
    keep = (int(open_file.group(1)),) if open_file else ()
    try:
        status, output = run_command(command, limit_s, environ, keep)
    except CommandFailed as error:
        raise type(error)(str(error).replace(sys.executable, "its process")) from None
    line = output.rpartition("\n" + MARK)[2] if MARK in output else ""
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise CommandFailed("its process ended %s without an answer" % _ending(status))
    return answer


def _ending(status: int) -> str:
    if status >= 0:
        return "with status %d" % status
    import signal

    try:
        return "by " + signal.Signals(-status).name
    except ValueError:
        return "by signal %d" % -status


def answer_isolated(tell: Callable[[], Json], limit_s: int) -> None:
    """Be the child: within limits of time, memory and core files, write what `tell` returns."""
    import resource
    import signal

    signal.alarm(limit_s)  # should our parent be gone
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if MAX_BYTES < hard or hard < 0:
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, hard))
    out = os.dup(1)
    line = "\n%s%s\n" % (MARK, json.dumps(tell()))
    os.write(out, line.encode())
    os._exit(0)
