"""The one place where child processes start: own group, deadline, bounded output, nothing left behind.

Every child leads a session of its own, so that a terminal's Ctrl-C reaches us alone and we end the
child's whole group. The group is killed before its leader is reaped: its number cannot be another's.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from envdoctor.errors import Unavailable
from envdoctor.values import dataclass

MAX_OUTPUT_BYTES = 4 << 20
_CHUNK = 1 << 16
_GRACE_S = 0.2  # how long output may still come from a child that ended while a descendant holds its pipe
_REAP_S = 20.0  # a process held by its driver may outlive SIGKILL for a while
_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_running: set[Child] = set()
_running_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Completed:
    """How a child ended: its status (negative: a signal's number), what it said, its time in seconds."""

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool
    truncated: bool

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it, such as `SIGSEGV`, or None."""
        return signal_name(self.returncode)


def running_pids() -> frozenset[int]:
    """Return the children that are still to be closed: nobody else may reap them."""
    with _running_lock:
        return frozenset(child.pid for child in _running)


class Child:
    """A running child with three unbuffered pipes; leave it through `close`, or use it in `with`.

    `inherits` are file descriptors of ours that it keeps open. Raises Unavailable when the program cannot be
    started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        inherits: Sequence[int] = (),
    ) -> None:
        pipe = subprocess.PIPE
        with undisturbed():
            try:
                self._popen = subprocess.Popen(
                    list(argv),
                    stdin=pipe,
                    stdout=pipe,
                    stderr=pipe,
                    env=None if env is None else dict(env),
                    cwd=cwd,
                    bufsize=0,
                    start_new_session=True,
                    pass_fds=tuple(inherits),
                )
            except (OSError, ValueError) as error:
                reason = (isinstance(error, OSError) and error.strerror) or str(error)
                raise Unavailable(f"{argv[0]}: cannot be run: {reason}") from None
            with _running_lock:
                _running.add(self)

    @property
    def pid(self) -> int:
        """The process id, which is the group's too."""
        return self._popen.pid

    @property
    def stdin(self) -> IO[bytes]:
        """Where the child reads."""
        assert self._popen.stdin is not None
        return self._popen.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """What the child says."""
        assert self._popen.stdout is not None
        return self._popen.stdout

    @property
    def stderr(self) -> IO[bytes]:
        """What the child complains of."""
        assert self._popen.stderr is not None
        return self._popen.stderr

    def ended(self) -> bool:
        """True once the child has ended; it is not reaped before `close`, so its number stays its own."""
        if self._popen.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def close(self) -> int:
        """Kill what is left of the group, reap the child and return its status (negative: a signal)."""
        if self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(_REAP_S)
        for stream in (self.stdin, self.stdout, self.stderr):
            with contextlib.suppress(OSError):
                stream.close()
        with _running_lock:
            _running.discard(self)
        return -signal.SIGKILL if self._popen.returncode is None else self._popen.returncode

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run_child(
    argv: Sequence[str],
    *,
    timeout_s: float,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    max_bytes: int = MAX_OUTPUT_BYTES,
    inherits: Sequence[int] = (),
) -> Completed:
    """Run `argv` to its end or the deadline and return what it said, at most `max_bytes` of each stream.

    Past the deadline the whole group is killed and `timed_out` is set. Raises Unavailable when the
    program cannot be started; a non-zero status is the caller's to judge.
    """
    deadline = time.monotonic() + timeout_s
    with Child(argv, env=env, cwd=cwd, inherits=inherits) as child:
        outputs = {child.stdout: bytearray(), child.stderr: bytearray()}
        in_time, truncated = _converse(child, stdin, outputs, deadline, max_bytes)
        returncode = child.close()
        stdout, stderr = (bytes(b).decode("utf-8", "replace") for b in outputs.values())
    return Completed(returncode, stdout, stderr, not in_time, truncated)


def _converse(
    child: Child, stdin: bytes, outputs: dict[IO[bytes], bytearray], deadline: float, max_bytes: int
) -> tuple[bool, bool]:
    """Feed and drain the child; return whether it ended in time and whether output was cut."""
    truncated = False
    pending = memoryview(stdin)
    with _selector(child, bool(stdin)) as selector:
        quiet_since = None
        while any(key.fileobj is not child.stdin for key in selector.get_map().values()):
            if (now := time.monotonic()) >= deadline:
                return child.ended(), truncated
            ready = selector.select(min(deadline - now, 0.05))
            for key, _ in ready:
                if key.fileobj is child.stdin:
                    pending = _feed(selector, child.stdin, pending)
                else:
                    stream: IO[bytes] = key.fileobj  # type: ignore[assignment]
                    truncated |= _drain(selector, stream, outputs[stream], max_bytes)
            if ready or not child.ended():
                quiet_since = None
                continue
            quiet_since = quiet_since or now
            if now - quiet_since > _GRACE_S:
                break
    return _await_end(child, deadline), truncated


def _await_end(child: Child, deadline: float) -> bool:
    while not child.ended():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.005)
    return True


@contextlib.contextmanager
def _selector(child: Child, feed: bool) -> Iterator[selectors.BaseSelector]:
    selector = selectors.DefaultSelector()
    for stream in (child.stdout, child.stderr):
        os.set_blocking(stream.fileno(), False)
        selector.register(stream, selectors.EVENT_READ)
    if feed:
        os.set_blocking(child.stdin.fileno(), False)
        selector.register(child.stdin, selectors.EVENT_WRITE)
    else:
        child.stdin.close()
    try:
        yield selector
    finally:
        selector.close()


def _feed(selector: selectors.BaseSelector, stream: IO[bytes], pending: memoryview) -> memoryview:
    try:
        pending = pending[os.write(stream.fileno(), pending[:_CHUNK]) :]
    except BlockingIOError:
        return pending
    except OSError:  # it closed its end: it needs no more
        pending = pending[:0]
    if not pending:
        selector.unregister(stream)
        stream.close()
    return pending


def _drain(selector: selectors.BaseSelector, stream: IO[bytes], kept: bytearray, max_bytes: int) -> bool:
    """Take what is there; return True when some of it was dropped."""
    data = read_available(stream)
    if data is None:
        selector.unregister(stream)
        return False
    room = max_bytes - len(kept)
    kept += data[:room]
    return len(data) > room


def read_available(stream: IO[bytes]) -> bytes | None:
    """Return what a non-blocking pipe holds now (perhaps nothing), or None at its end."""
    try:
        return os.read(stream.fileno(), _CHUNK) or None
    except BlockingIOError:
        return b""
    except OSError:
        return None


def signal_name(returncode: int) -> str | None:
    """Return the name of the signal in a status as `Child.close` gives it, or None for an ordinary exit."""
    if returncode >= 0:
        return None
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"


def kill_all() -> None:
    """End every child still running, in whichever thread it was started (for Ctrl-C amid threads)."""
    with _running_lock:
        children = list(_running)
    for child in children:
        child.close()


atexit.register(kill_all)


class Ended(KeyboardInterrupt):
    """A signal asked us to end; `exit_code` is the shell's for it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


class _Ending:
    """Whether a signal may end us now, and one that waits until it may."""

    def __init__(self) -> None:
        self.undisturbed = 0
        self.waiting: int | None = None


_ending = _Ending()


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise Ended in the block at the first signal that asks to end, as Ctrl-C does; later ones do nothing.

    A signal that is ignored, as under `nohup`, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {n: signal.getsignal(n) for n in _ENDING if signal.getsignal(n) is not signal.SIG_IGN}

    def end(number: int, _: object) -> None:
        for one in former:
            signal.signal(one, _do_nothing)
        if not _ending.undisturbed:
            raise Ended(number)
        _ending.waiting = number

    for number in former:
        signal.signal(number, end)
    try:
        yield
    finally:
        _ending.waiting = None
        for number, handler in former.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Let a signal that asks to end wait until the block is left: what it starts must be known by then."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _ending.undisturbed += 1
    try:
        yield
    finally:
        _ending.undisturbed -= 1
        if not _ending.undisturbed and (number := _ending.waiting) is not None:
            _ending.waiting = None
            raise Ended(number)


def _do_nothing(*_: object) -> None:
    return
