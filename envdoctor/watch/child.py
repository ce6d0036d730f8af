"""Starting the watched command as the caller would have, handing signals on, and ending as it ended."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from envdoctor.errors import EnvdoctorError
from envdoctor.processes import running_pids
from envdoctor.watch.relay import Relay, start_relay
from envdoctor.watch.streams import Channel, files_to_follow, fill_closed, open_channels

NOT_FOUND, NOT_EXECUTABLE = 127, 126
_SUBREAPER = 36
_UNBLOCKABLE = {signal.SIGKILL, signal.SIGSTOP}
_STOPS = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
_LEFT_S = 0.05
_PYTHONS_OWN = ("SIGPIPE", "SIGXFSZ", "SIGXFZ")
"""What Python ignores for itself when it starts, and a child must find as usual."""


class NotStarted(EnvdoctorError):
    """The command cannot be run; the exit code is what a shell would answer."""

    def __init__(self, name: str, error: OSError) -> None:
        super().__init__(f"{name}: {error.strerror or error}")
        self.exit_code = NOT_FOUND if error.errno == errno.ENOENT else NOT_EXECUTABLE


@dataclass(frozen=True, slots=True)
class Sent:
    """A signal that came to the watch alone: its number, when, and the process that sent it."""

    number: int
    at: float
    sender: int
    name: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How the command ended: its exit code or the signal, and the largest memory of one process."""

    code: int | None
    signal: int | None
    max_rss_bytes: int
    sent: tuple[Sent, ...] = ()


Around = Callable[[], contextlib.AbstractContextManager[None]]


@dataclass(slots=True)
class Child:
    """A running command: its process, the relay of its output and the files that it writes to."""

    pid: int
    relay: Relay
    files: tuple[tuple[int, int], ...]
    """The files that it writes to, and how long each was before."""
    relayed: bool
    _sent: list[Sent] = field(default_factory=list)
    _around: Around = contextlib.nullcontext

    def wait(self, around: Around = contextlib.nullcontext) -> Ending:
        """Hand signals on until the command has ended and what it said has been carried.

        Each time it stops, this process stops with it, within `around`.
        """
        self._around = around
        ending = self._waited()
        self.relay.drain()
        return ending

    def leave(self, patience_s: float) -> bool:
        """Let the relay go and wait for what the command left behind; False when some of it goes on."""
        deadline = time.monotonic() + patience_s
        own = {self.relay.pid} | running_pids()
        while (left := _children() - own) and time.monotonic() < deadline:
            _reap_orphans(own)
            time.sleep(_LEFT_S)
        self.relay.close()
        return not left

    def _waited(self) -> Ending:
        listened = signal.valid_signals() - _UNBLOCKABLE
        while True:
            ending = self._look()
            if ending is not None:
                return ending
            told = signal.sigwaitinfo(listened)
            if told.si_signo != signal.SIGCHLD:
                self._hand_on(told.si_signo, told.si_pid)

    def _look(self) -> Ending | None:
        """Reap the command when it has ended; stop as it stopped; reap orphans that came to us."""
        while True:
            pid, status, used = os.wait4(self.pid, os.WNOHANG | os.WUNTRACED)
            if not (pid and os.WIFSTOPPED(status)):
                break
            if signal.SIGCONT not in signal.sigpending():
                with self._around():
                    self._stop(os.WSTOPSIG(status))
        if pid:
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            return Ending(code, number, used.ru_maxrss << 10, tuple(self._sent))
        _reap_orphans({self.pid, self.relay.pid} | running_pids())
        return None

    def _hand_on(self, number: int, sender: int) -> None:
        if self.relay.saw(number):
            self._sent.append(Sent(number, time.time(), sender, "the whole process group"))
            return
        self._sent.append(Sent(number, time.time(), sender, _name_of(sender)))
        with contextlib.suppress(OSError):
            os.kill(self.pid, number)

    def _stop(self, number: int) -> None:
        """Stop ourselves by the same signal, so that whoever waits for us learns of it."""
        if number not in _STOPS:
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        former = signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        signal.signal(number, former)


def start(argv: Sequence[str], more: Mapping[str, str] | None = None, aside: int | None = None) -> Child:
    """Start `argv` with the caller's streams, environment and `more`, and signal settings; raises NotStarted.

    `aside`: where goes what it says to a terminal. From here on every signal that can be is blocked in this
    process: `Child.wait` takes them.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _UNBLOCKABLE)
    closed = fill_closed()
    channels = open_channels(closed, aside)
    files = files_to_follow(closed)
    relay = start_relay(channels)
    _adopt_orphans()
    try:
        pid = _spawn(argv, channels, mask, {**_environment(), **(more or {})})
    except OSError as error:
        relay.control.close()
        raise NotStarted(argv[0], error) from None
    _let_go(channels)
    relay.tell(b"C", str(pid))
    return Child(pid, relay, files, bool(channels))


class Stage:
    """The caller's streams and signal mask, kept so that a command can be started on them again."""

    def __init__(self) -> None:
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._streams = {fd: _copy(fd) for fd in (0, 1, 2)}

    def restore(self) -> None:
        """Make everything as it was before `start`."""
        for fd, copy in self._streams.items():
            if copy is None:
                with contextlib.suppress(OSError):
                    os.close(fd)
            else:
                os.dup2(copy, fd)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


def _copy(fd: int) -> int | None:
    """Return a copy of a descriptor beyond the first ones, which no child inherits; None of a closed one."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    except OSError:
        return None


def _let_go(channels: Sequence[Channel]) -> None:
    """Hold nothing that the child or its neighbours in a pipeline may wait to see closed."""
    for channel in channels:
        os.close(channel.write)
        os.close(channel.read)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in {0, *(fd for channel in channels for fd in channel.streams if fd == 1)}:
        os.dup2(nothing, fd)
    os.close(nothing)


def _spawn(
    argv: Sequence[str],
    channels: Sequence[Channel],
    mask: set[int | signal.Signals],
    environment: Mapping[str, str],
) -> int:
    """Fork and execute; raises OSError with what the execution met.

    Not posix_spawn: glibc's leaves two signals ignored in the new program.
    """
    told, telling = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _become(argv, channels, mask, environment)
        except OSError as error:
            os.write(telling, str(error.errno or errno.EINVAL).encode())
        finally:
            os._exit(NOT_FOUND)
    os.close(telling)
    with open(told, "rb") as stream:
        failed = stream.read()
    if failed:
        os.waitpid(pid, 0)
        raise OSError(int(failed), os.strerror(int(failed)))
    return pid


def _become(
    argv: Sequence[str],
    channels: Sequence[Channel],
    mask: set[int | signal.Signals],
    environment: Mapping[str, str],
) -> None:
    for channel in channels:
        for fd in channel.streams:
            os.dup2(channel.write, fd)
    for name in _PYTHONS_OWN:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        os.execvpe(argv[0], list(argv), environment)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        os.execve("/bin/sh", ["/bin/sh", *argv], environment)  # a script without an interpreter's name


def _environment() -> dict[str, str]:
    """Return the environment as the caller gave it: Python adds LC_CTYPE to its own in the C locale."""
    environment = dict(os.environ)
    if "LC_CTYPE" in environment:
        with contextlib.suppress(OSError), open("/proc/self/environ", "rb") as stream:
            if not any(entry.startswith(b"LC_CTYPE=") for entry in stream.read().split(b"\0")):
                del environment["LC_CTYPE"]
    return environment


def _adopt_orphans() -> None:
    """Become the parent of grandchildren whose parent ended, so that they are still followed (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _reap_orphans(own: set[int]) -> None:
    for pid in _children() - own:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _children() -> set[int]:
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children", encoding="ascii") as stream:
                found.update(map(int, stream.read().split()))
    return found


def _name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return ""


def end_as(ending: Ending) -> int:
    """Return the command's exit code; one that a signal ended ends this process by the same."""
    if ending.signal is None:
        return ending.code or 0
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if ending.signal not in _UNBLOCKABLE:
        signal.signal(ending.signal, signal.SIG_DFL)
    os.kill(os.getpid(), ending.signal)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {ending.signal})
    return 128 + ending.signal
