"""Commands run with a deadline, bounded output and no way to outlive us."""

from __future__ import annotations

import os
import time

from .typed import TYPE_CHECKING, Mapping, Sequence, Tuple

if TYPE_CHECKING:
    import subprocess

MAX_OUTPUT_BYTES = 1 << 20


class CommandFailed(Exception):
    """A command gave no answer; the message says why."""


class NoAnswer(CommandFailed):
    """A command did not end in its time."""


def run_command(
    command: Sequence[str], limit_s: float, environ: Mapping[str, str], keep: Sequence[int] = ()
) -> Tuple[int, str]:
    """Return exit status (negative: a signal) and output of a command; `keep` are files left open to it.

    Raises CommandFailed when it cannot run, NoAnswer when it hangs.
    """
    import subprocess  # costs more than most facts, and most machines are read without a command

    child_environ = dict(environ, LC_ALL="C", LANG="C")
    try:
        child = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=child_environ,
            start_new_session=True,
            pass_fds=tuple(keep),
        )
    except (OSError, ValueError) as error:
        raise CommandFailed("%s cannot be run: %s" % (command[0], error)) from None
    try:
        return _collect(child, command[0], time.monotonic() + limit_s, limit_s)
    finally:
        _end(child)


def _collect(child: "subprocess.Popen[bytes]", name: str, deadline: float, limit_s: float) -> Tuple[int, str]:
    import select
    import subprocess

    assert child.stdout is not None
    handle, output = child.stdout.fileno(), b""
    while len(output) < MAX_OUTPUT_BYTES:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([handle], [], [], left)[0]:
            raise NoAnswer("%s gave no answer within %g s" % (name, limit_s))
        chunk = os.read(handle, 65536)
        if not chunk:
            break
        output += chunk
    else:
        raise CommandFailed("%s wrote more than %d bytes" % (name, MAX_OUTPUT_BYTES))
    try:
        status = child.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise NoAnswer("%s did not end within %g s" % (name, limit_s)) from None
    return status, output.decode("utf-8", "replace")


def _end(child: "subprocess.Popen[bytes]") -> None:
    import subprocess

    if child.stdout is not None:
        child.stdout.close()
    if child.returncode is not None:
        return
    import signal

    try:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait(1)
    except (OSError, subprocess.TimeoutExpired):
        pass
