"""Files as the probes read them: regular ones alone, bounded in bytes and in entries, never waited on."""

from __future__ import annotations

import errno
import os
import stat

from .typed import BinaryIO, Iterator, List, Optional

MAX_TEXT_BYTES = 1 << 20
BLOCK = 1 << 16
MAX_ENTRIES = 100000
READING = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Unreadable(OSError):
    """Something lies there that cannot be read; the message names it and says why."""


def open_file(path: str) -> Optional[BinaryIO]:
    """Open a regular file (or one of /proc or /sys), or return None when nothing lies there.

    Raises Unreadable for whatever else lies there: a device is not even opened.
    """
    handle = _open(path)
    return None if handle is None else os.fdopen(handle, "rb")


def _open(path: str) -> Optional[int]:
    try:
        if not stat.S_ISREG(mode := os.stat(path).st_mode):
            raise _no_file(path, mode)
        handle = os.open(path, READING)
    except ValueError:
        return None
    except OSError as error:
        if error.errno in ABSENT:
            return None
        raise _unreadable(path, error) from None
    try:  # what lies there may have been exchanged in between
        if not stat.S_ISREG(mode := os.fstat(handle).st_mode):
            raise _no_file(path, mode)
        return handle
    except OSError as error:
        os.close(handle)
        raise _unreadable(path, error) from None


def _no_file(path: str, mode: int) -> Unreadable:
    kind = next((words for holds, words in KINDS if holds(mode)), "no file")
    return Unreadable("%s is %s, not a file" % (path, kind))


def _unreadable(path: str, error: OSError) -> Unreadable:
    if isinstance(error, Unreadable):
        return error
    return Unreadable("%s: %s" % (path, error.strerror or error))


def read_blocks(path: str, size: int = BLOCK) -> Iterator[bytes]:
    """Yield a file block by block, none when there is no file; raises Unreadable.

    Files of Python would take three times as long for the hundreds of small ones of an environment.
    """
    handle = _open(path)
    if handle is None:
        return
    try:
        while True:
            block = os.read(handle, size)
            yield block
            if not block:
                return
    except OSError as error:
        raise _unreadable(path, error) from None
    finally:
        os.close(handle)


def read_start(path: str, size: int) -> Optional[bytes]:
    """Return a file's first block, of at most `size` bytes, or None when there is none; raises Unreadable."""
    handle = _open(path)
    if handle is None:
        return None
    try:
        return os.read(handle, size)
    except OSError as error:
        raise _unreadable(path, error) from None
    finally:
        os.close(handle)


def read_bytes(path: str, limit: int = MAX_TEXT_BYTES) -> Optional[bytes]:
    """Return at most `limit` bytes of a file, or None when there is none; raises Unreadable."""
    data: Optional[bytes] = None
    for block in read_blocks(path, min(limit, BLOCK)):
        data = (data or b"") + block
        if len(data) >= limit:
            break
    return data and data[:limit]


def read_text(path: str, limit: int = MAX_TEXT_BYTES) -> Optional[str]:
    """Return at most `limit` bytes of a file as text, or None when there is none; raises Unreadable."""
    data = read_bytes(path, limit)
    return None if data is None else data.decode("utf-8", "replace")


def list_names(path: str) -> List[str]:
    """Return a folder's printable entries in order, none when there is no folder; raises Unreadable."""
    return sorted(name for name in list_entries(path) if name.isprintable())


def list_entries(path: str) -> List[str]:
    """Return all of a folder's entries, none when there is no folder; raises Unreadable."""
    try:
        with os.scandir(path) as entries:
            return list(_bounded(path, entries))
    except ValueError:
        return []
    except OSError as error:
        if error.errno in ABSENT:
            return []
        raise _unreadable(path, error) from None


def _bounded(path: str, entries: "Iterator[os.DirEntry[str]]") -> Iterator[str]:
    for count, entry in enumerate(entries):
        if count == MAX_ENTRIES:
            raise Unreadable("%s holds more than %d entries" % (path, MAX_ENTRIES))
        yield entry.name
