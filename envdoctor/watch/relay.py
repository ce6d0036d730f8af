"""The relay: a process of its own that carries the child's output, so that it survives the watch's death.

It stands in the child's process group and thereby also tells the watch which signals came to all of the
group: those have reached the child already and must not be handed on a second time.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import select
import signal
import socket
import termios
import threading
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from envdoctor.values import dataclass
from envdoctor.watch.streams import Channel, copy_size
from envdoctor.watch.tree import state_of

CHUNK = 1 << 16
LOG_PIPE_BYTES = 1 << 20
_POLL_S = 0.1
_DRAIN_S = 2.0
_QUIET_S = 0.01
_ERASE = b"\r\x1b[K"
UNHEARD = {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}


@dataclass(frozen=True, slots=True)
class Relay:
    """The watch's side of the relay: its process, a line to it, copies of the log, and signals it saw."""

    pid: int
    control: socket.socket
    log: int
    heard: int

    def tell(self, kind: bytes, text: str = "") -> None:
        """Send a word; a relay that is gone is no error."""
        with contextlib.suppress(OSError):
            self.control.send(kind + text.encode("utf-8", "replace")[:8000], socket.MSG_DONTWAIT)

    def drain(self) -> None:
        """Wait until what the child said has been carried, or the reader does not take it."""
        self.tell(b"D")
        self.control.settimeout(2 * _DRAIN_S)
        with contextlib.suppress(OSError):
            self.control.recv(1)

    def close(self) -> None:
        """Let the relay end once all has been carried."""
        self.control.close()
        for fd in (self.log, self.heard):
            os.close(fd)

    def saw(self, number: int) -> bool:
        """True when the relay got this signal as well; takes it off what was heard."""
        time.sleep(0.002)
        return self._took(number) or self._pending(number) or self._took(number)

    def _took(self, number: int) -> bool:
        while select.select([self.heard], [], [], 0)[0]:
            heard = os.read(self.heard, 1)
            if not heard or heard[0] == number:
                return bool(heard)
        return False

    def _pending(self, number: int) -> bool:
        try:
            with open(f"/proc/{self.pid}/status", encoding="ascii", errors="replace") as stream:
                fields = dict(line.split(":", 1) for line in stream if ":" in line)
        except OSError:
            return False
        bits = int(fields.get("ShdPnd", "0"), 16) | int(fields.get("SigPnd", "0"), 16)
        if not bits >> (number - 1) & 1:
            return False
        time.sleep(0.05)
        self._took(number)
        return True


def start_relay(channels: Sequence[Channel]) -> Relay:
    """Fork the relay; the caller closes its copies of the channels after the child has them."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    log_read, log_write = os.pipe()
    heard_read, heard_write = os.pipe()
    for fd in (log_read, log_write, heard_read, heard_write):
        os.set_blocking(fd, False)
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(log_write, fcntl.F_SETPIPE_SZ, LOG_PIPE_BYTES)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            for fd in (ours.fileno(), log_read, heard_read, *(c.write for c in channels)):
                os.close(fd)
            _serve(channels, theirs, log_write, heard_write, parent)
        finally:
            os._exit(0)
    theirs.close()
    os.close(log_write)
    os.close(heard_write)
    return Relay(pid, ours, log_read, heard_read)


def _serve(
    channels: Sequence[Channel], control: socket.socket, log: int, heard: int, parent: int
) -> NoReturn:
    gc.disable()
    carriers = [Carrier(channel, log) for channel in channels]
    spare = {fd for fd in (0, 1) if not any(fd == c.target for c in channels)}
    for fd in spare:
        os.dup2(os.open(os.devnull, os.O_RDWR), fd)
    _listen(heard, carriers)
    for carrier in carriers:
        carrier.start()
    _converse(control, carriers, parent)
    signal.set_wakeup_fd(-1)
    for carrier in carriers:
        carrier.hush()
        carrier.join()
    os._exit(0)


def _listen(heard: int, carriers: Sequence[Carrier]) -> None:
    """Let every signal leave a byte for the watch, and none of them end this process."""

    def resize(*_: object) -> None:
        changed = [copy_size(c.channel.target, c.channel.read) for c in carriers if c.channel.terminal]
        if any(changed):
            os.killpg(0, signal.SIGWINCH)  # the first one may have come before the size

    signal.set_wakeup_fd(heard, warn_on_full_buffer=False)
    for number in signal.valid_signals() - UNHEARD:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, resize if number == signal.SIGWINCH else _nothing)
    for number in (signal.SIGTTOU, signal.SIGPIPE):  # a write is answered by an error, not by a signal
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _nothing(*_: object) -> None:
    pass


def _converse(control: socket.socket, carriers: Sequence[Carrier], parent: int) -> None:
    """Do what the watch says until it is gone."""
    child, stopped = 0, False
    screens = [c for c in carriers if c.channel.terminal]
    while True:
        if not select.select([control], [], [], _POLL_S)[0]:
            now = bool(child) and _is_stopped(parent)
            if now and not stopped and not _is_stopped(child):  # SIGSTOP cannot be handed on by the watch
                _stop(child)
            stopped = now
            continue
        message = control.recv(8192)
        kind, text = message[:1], message[1:]
        if not message:
            return
        if kind == b"C":
            child = int(text)
        elif kind == b"D":
            _drain(carriers)
            with contextlib.suppress(OSError):
                control.send(b"d")
        elif kind == b"S" and screens:
            screens[-1].draw(text)
        elif kind == b"L":
            (screens[-1] if screens and 2 in screens[-1].channel.streams else _Plain()).line(text)


def _stop(child: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGSTOP)


def _is_stopped(pid: int) -> bool:
    return state_of(pid) in (b"T", b"t")


def _drain(carriers: Sequence[Carrier]) -> None:
    deadline = time.monotonic() + _DRAIN_S
    for carrier in carriers:
        carrier.hush()
        while not carrier.is_idle() and time.monotonic() < deadline:
            carrier.join(_QUIET_S)


class _Plain:
    """Standard error that is no terminal."""

    def line(self, text: bytes) -> None:
        """Write a whole line."""
        with contextlib.suppress(OSError):
            os.write(2, text + b"\n")


class Carrier(threading.Thread):
    """Carries one channel, byte for byte, and draws the status on a terminal where nothing else stands."""

    def __init__(self, channel: Channel, log: int) -> None:
        super().__init__(daemon=True)
        self.channel = channel
        self._log: int | None = log
        self._pen = threading.Lock()
        self._at_start = True
        self._drawn = False
        self._hushed = False
        self._busy = True
        self._mode = _mode_of(channel.read) if channel.terminal else None
        self._real = _mode_of(channel.target) if channel.terminal else None

    def run(self) -> None:
        """Carry until the last writer or the reader has left."""
        source, target = self.channel.read, self.channel.target
        poll = select.poll()
        poll.register(source, select.POLLIN)
        poll.register(target, 0)
        while True:
            self._busy = False
            ready = dict(poll.poll())
            self._busy = True
            if target in ready and not self.channel.terminal:
                break  # nobody reads any more: the child shall learn that as it would without us
            data = _read(source)
            if not data or not self._carry(data):
                break
        self._busy = False
        os.close(source)
        for fd in self.channel.streams:
            os.dup2(os.open(os.devnull, os.O_RDWR), fd)

    def _carry(self, data: bytes) -> bool:
        with self._pen:
            self._follow_mode()
            erase = _ERASE if self._drawn else b""
            self._drawn = False
            if not _write(self.channel.target, erase + data):
                return False
            self._at_start = data.endswith((b"\n", b"\r"))
        self._copy(data)
        return True

    def _copy(self, data: bytes) -> None:
        if self._log is None:
            return
        try:
            os.write(self._log, data)
        except BlockingIOError:  # the watch is behind: it does without this part
            pass
        except OSError:
            self._log = None

    def _follow_mode(self) -> None:
        """Give the real terminal the modes that a program sets on its output, as curses does."""
        if self._mode is None or self._real is None:
            return
        mode = _mode_of(self.channel.read)
        if mode is None or mode == self._mode:
            return
        self._mode = mode
        with contextlib.suppress(termios.error, OSError):
            if os.tcgetpgrp(self.channel.target) == os.getpgrp():
                real = [mode[0], mode[1] | (self._real[1] & termios.OPOST), self._real[2], *mode[3:]]
                termios.tcsetattr(self.channel.target, termios.TCSADRAIN, real)

    def is_idle(self) -> bool:
        """True when all that was said has been carried."""
        if not self.is_alive():
            return True
        if self._busy:
            return False
        try:
            waiting = select.select([self.channel.read], [], [], _QUIET_S)[0]
        except (OSError, ValueError):
            return True
        return not waiting and not self._busy

    def draw(self, text: bytes) -> None:
        """Show the status at the bottom, unless a line is being written there."""
        with self._pen:
            if self._hushed or not self._at_start or not _in_foreground(self.channel.target):
                return
            columns = _columns(self.channel.target)
            cut = text.decode("utf-8", "replace")[: columns - 1].encode()
            self._drawn = _write(self.channel.target, (_ERASE if self._drawn else b"") + cut)

    def line(self, text: bytes) -> None:
        """Write a line of ours below what stands there."""
        with self._pen:
            before = _ERASE if self._drawn else b"" if self._at_start else b"\r\n"
            self._drawn = False
            self._at_start = True
            _write(self.channel.target, before + text + b"\r\n")

    def hush(self) -> None:
        """Wipe the status and draw no more."""
        with self._pen:
            if self._drawn:
                _write(self.channel.target, _ERASE)
            self._drawn, self._hushed = False, True


def _mode_of(fd: int) -> list[Any] | None:
    try:
        return termios.tcgetattr(fd)
    except (termios.error, OSError):
        return None


def _in_foreground(fd: int) -> bool:
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False


def _columns(fd: int) -> int:
    try:
        return os.get_terminal_size(fd).columns or 80
    except OSError:
        return 80


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, CHUNK)
    except OSError:  # a terminal whose last writer has left
        return b""


def _write(fd: int, data: bytes) -> bool:
    """Write all; False when the reader has left."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            select.select([], [fd], [], 1.0)
        except OSError:
            return False
    return True
