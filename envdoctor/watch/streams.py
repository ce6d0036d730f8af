"""The child's standard streams: left as they are where they can be read beside, relayed where not.

Standard input is always the caller's. A regular file and a device stay the caller's too: the first is read
as it grows, the second says nothing. Only a pipe, a socket and a terminal get a stand-in of their own kind,
so that the log can be read; what stood on one description (`2>&1`) stays on one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import stat
import termios
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

from envdoctor.values import dataclass

OUTPUTS = (1, 2)


class Kind(Enum):
    """What a caller gave as a stream."""

    CLOSED = "closed"
    FILE = "a file"
    DEVICE = "a device"
    PIPE = "a pipe"
    TERMINAL = "a terminal"


@dataclass(frozen=True, slots=True)
class Channel:
    """A stand-in for one or both outputs: what the child writes to, what we read, where it goes."""

    streams: tuple[int, ...]
    read: int
    write: int
    target: int
    terminal: bool


def fill_closed() -> tuple[int, ...]:
    """Put a placeholder on each standard descriptor that is closed, so that none of ours lands there.

    Returns those that were closed; the placeholders do not reach the child.
    """
    closed = tuple(fd for fd in (0, *OUTPUTS) if kind_of(fd) is Kind.CLOSED)
    for _ in closed:
        os.open(os.devnull, os.O_RDWR)
    return closed


def kind_of(fd: int) -> Kind:
    """Return what a descriptor is."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return Kind.CLOSED
    if os.isatty(fd):
        return Kind.TERMINAL
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return Kind.PIPE
    return Kind.FILE if stat.S_ISREG(mode) else Kind.DEVICE


def open_channels(closed: Sequence[int] = (), aside: int | None = None) -> tuple[Channel, ...]:
    """Return a channel for each output that must be relayed, one for two that are the same.

    `aside`: where goes what would go to a terminal, while that is used for something else.
    """
    kinds = {fd: kind_of(fd) for fd in OUTPUTS if fd not in closed}
    relayed = [fd for fd, kind in kinds.items() if kind in (Kind.PIPE, Kind.TERMINAL)]
    if len(relayed) == 2 and _same(*relayed):
        return (_aside(_open(tuple(relayed), kinds[1] is Kind.TERMINAL), aside),)
    return tuple(_aside(_open((fd,), kinds[fd] is Kind.TERMINAL), aside) for fd in relayed)


def _aside(channel: Channel, aside: int | None) -> Channel:
    if aside is None or not channel.terminal:
        return channel
    return replace(channel, target=aside, terminal=False)


def files_to_follow(closed: Sequence[int] = ()) -> tuple[tuple[int, int], ...]:
    """Return the outputs that are regular files, each file once, and how long each is now."""
    files = [fd for fd in OUTPUTS if fd not in closed and kind_of(fd) is Kind.FILE]
    once = files[:1] if len(files) == 2 and _same(*files) else files
    return tuple((fd, os.fstat(fd).st_size) for fd in once)


def _same(one: int, other: int) -> bool:
    first, second = os.fstat(one), os.fstat(other)
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)


def _open(streams: tuple[int, ...], terminal: bool) -> Channel:
    if not terminal:
        return Channel(streams, *os.pipe(), streams[0], False)
    master, slave = pty.openpty()
    with contextlib.suppress(termios.error):
        mode = termios.tcgetattr(streams[0])
        mode[1] &= ~termios.OPOST  # the caller's terminal does that once, when the bytes come there
        termios.tcsetattr(slave, termios.TCSANOW, mode)
    copy_size(streams[0], master)
    return Channel(streams, master, slave, streams[0], True)


def copy_size(source: int, target: int) -> bool:
    """Give one terminal the size of another; True when that was a change."""
    try:
        size = fcntl.ioctl(source, termios.TIOCGWINSZ, b"\0" * 8)
        if size == fcntl.ioctl(target, termios.TIOCGWINSZ, b"\0" * 8):
            return False
        fcntl.ioctl(target, termios.TIOCSWINSZ, size)
    except OSError:
        return False
    return True
