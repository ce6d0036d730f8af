"""Every file that envdoctor writes goes through here: whole or not at all, and nothing else is harmed.

A regular file is replaced by a new one that keeps its mode and owner; links are followed; a device, a FIFO
or an open descriptor is written to, as the shell's `>` would. Nothing is ever removed but what this very
call made.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from envdoctor import lazy_re as re
from envdoctor.errors import InputError, Unavailable

FIFO_PATIENCE_S = 30.0
"""How long a FIFO may lack a reader before its writer gives up."""
_ORDINARY = 0o666
_OWNER_ALONE = 0o600
_LINKS = 40
_DESCRIPTORS = re.compile(r"/dev/fd|/proc/([0-9]+)(?:/task/[0-9]+)?/fd")


def replace_file(path: Path, content: str | bytes, mode: int = _ORDINARY) -> None:
    """Make `content` all that `path` holds; a new file gets `mode` less the umask.

    Raises Unavailable with the reason, and then a former file is as it was.
    """
    with _told(path):
        place = _place(path)
        if isinstance(place, int):
            _pour(os.dup(place), _bytes(content))
        elif not _is_file_to_be(place):
            _pour(_opened_for_writing(place), _bytes(content))
        else:
            _replace(place, _bytes(content), mode)


def write_new_file(path: Path, content: bytes, force: bool = False) -> None:
    """Write a file for its owner alone, in place of a former one only with `force`.

    Raises InputError when it exists and `force` is false, Unavailable when it cannot be written.
    """
    with _told(path):
        place = _place(path)
        if path.is_dir():
            raise InputError(f"{path}: exists already, and is a folder")
        if isinstance(place, int) or force or not _is_file_to_be(place):
            replace_file(path, content, _OWNER_ALONE)
        elif os.path.lexists(path):
            raise InputError(f"{path}: exists already (--force replaces a file)")
        else:
            _link_new(place, _staged(place, content, _OWNER_ALONE))


def write_folder(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write `files` into a folder: all of them, or none and the former ones stay.

    Other files in it are let alone. Raises Unavailable with the reason.
    """
    with _told(folder):
        target = os.path.realpath(folder)
        if os.path.isdir(target):
            _replace_all({os.path.realpath(os.path.join(target, n)): _bytes(c) for n, c in files.items()})
        elif os.path.exists(target):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            _make_folder(target, {name: _bytes(content) for name, content in files.items()})


def open_stream(path: Path) -> IO[bytes]:
    """Open a file that is written as time goes by: emptied, links followed, for its owner alone if new.

    Raises Unavailable with the reason.
    """
    with _told(path):
        place = _place(path)
        if isinstance(place, int):
            handle = os.dup(place)
        elif _is_file_to_be(place):
            os.makedirs(os.path.dirname(place), exist_ok=True)
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ALONE)
        else:
            handle = _opened_for_writing(place)
        return os.fdopen(handle, "wb", buffering=0)


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what the system refuses into one line that names the file; a reader that left is not our error."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise Unavailable(f"{path}: cannot be written: {reason or error}") from None


def _bytes(content: str | bytes) -> bytes:
    return content.encode("utf-8", "replace") if isinstance(content, str) else content


def _place(path: Path) -> str | int:
    """Return the real path, links followed, or the number of an own descriptor such as `/dev/stdout`."""
    at = os.fspath(path)
    for _ in range(_LINKS):
        folder, name = os.path.realpath(os.path.dirname(at)), os.path.basename(at)
        match = _DESCRIPTORS.fullmatch(folder)
        if match and re.fullmatch("[0-9]+", name):
            own = match[1] is None or int(match[1]) == os.getpid()
            return int(name) if own else os.path.join(folder, name)
        at = os.path.join(folder, name)
        if not os.path.islink(at):
            break
        at = os.path.join(folder, os.readlink(at))
    return os.path.realpath(path)


def _is_file_to_be(place: str) -> bool:
    """True for a regular file and for what is not there yet."""
    try:
        found = os.stat(place)
    except FileNotFoundError:
        return True
    return stat.S_ISREG(found.st_mode) and not _DESCRIPTORS.fullmatch(os.path.dirname(place))


def _opened_for_writing(place: str) -> int:
    """Open what is no regular file; a FIFO's reader is waited for, within bounds."""
    flags = os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    deadline = time.monotonic() + FIFO_PATIENCE_S
    while True:
        try:
            handle = os.open(place, flags)
        except OSError as error:
            waiting = error.errno == errno.ENXIO and stat.S_ISFIFO(os.stat(place).st_mode)
            if not waiting or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            os.set_blocking(handle, True)
            return handle


def _pour(handle: int, data: bytes) -> None:
    """Write all of `data` to an open descriptor and close it."""
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)


def _replace(target: str, data: bytes, mode: int) -> None:
    """Replace a regular file; where its folder or a mount forbids that, fill the file itself."""
    exists = os.path.exists(target)
    if exists and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    try:
        temporary = _staged(target, data, mode)
        with _removed_on_failure(temporary):
            os.replace(temporary, target)
    except OSError as error:
        if not exists or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY):
            raise
        _pour(os.open(target, os.O_WRONLY | os.O_TRUNC), data)


def _link_new(path: str, temporary: str) -> None:
    """Give a staged file its name, never that of another that came to be meanwhile."""
    with _removed_on_failure(temporary):
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise InputError(f"{path}: exists already (--force replaces a file)") from None
        except OSError:  # a file system without links
            os.replace(temporary, path)
            return
    os.unlink(temporary)


def _make_folder(target: str, files: Mapping[str, bytes]) -> None:
    """Make a folder with its files under another name and give it its own at the end."""
    made = _temporary_in(os.path.dirname(target))
    os.mkdir(made)
    done: list[str] = []
    try:
        for name, data in files.items():
            done.append(os.path.join(made, name))
            _write_named(done[-1], data, _ORDINARY, None)
        os.rename(made, target)
    except BaseException:
        for path in done:
            _remove(path)
        os.rmdir(made)
        raise


def _replace_all(files: Mapping[str, bytes]) -> None:
    """Replace several files: stage all, then give all their names; a failure puts the former ones back."""
    for target in files:
        if not _is_file_to_be(target):
            raise OSError(errno.EINVAL, f"{os.path.basename(target)} there is no regular file")
        if os.path.exists(target) and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, f"{os.path.basename(target)} is read-only")
    staged: dict[str, str] = {}
    try:
        for target, data in files.items():
            staged[target] = _staged(target, data, _ORDINARY)
        with _undisturbed():
            _exchange(staged)
    finally:
        for temporary in staged.values():
            _remove(temporary)


def _exchange(staged: Mapping[str, str]) -> None:
    """Give staged files their names; a failure puts back what had been there."""
    former = {target: _second_name(target) for target in staged if os.path.exists(target)}
    done: list[str] = []
    try:
        for target, temporary in staged.items():
            os.replace(temporary, target)
            done.append(target)
    except BaseException:
        for target in done:
            if target not in former:
                _remove(target)
            elif name := former[target]:
                os.replace(name, target)
        raise
    finally:
        for name in former.values():
            if name:
                _remove(name)


def _second_name(target: str) -> str | None:
    """Link an existing file to a name from which it can be put back; None where there are no links."""
    name = _temporary_in(os.path.dirname(target))
    try:
        os.link(target, name)
    except OSError:
        return None
    return name


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold back the signals that end a process, for the moment of renaming."""
    import _signal as signal  # type: ignore[import-not-found]  # what `signal` makes enums of, in a millisecond

    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _staged(target: str, data: bytes, mode: int) -> str:
    """Write a file beside `target`, with its mode and owner if it exists; return the file's path.

    Where the system has files without a name, one that is killed meanwhile leaves nothing.
    """
    path = _temporary_in(os.path.dirname(target))
    former = os.stat(target) if os.path.exists(target) else None
    mode = stat.S_IMODE(former.st_mode) if former else mode
    try:
        _write_unnamed(path, data, mode, former)
    except OSError:
        _write_named(path, data, mode, former)
    return path


def _temporary_in(folder: str) -> str:
    return os.path.join(folder, f".envdoctor-{os.urandom(8).hex()}")


def _write_unnamed(path: str, data: bytes, mode: int, former: os.stat_result | None) -> None:
    unnamed = getattr(os, "O_TMPFILE", None)
    if unnamed is None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    handle = os.open(os.path.dirname(path), unnamed | os.O_WRONLY, mode)
    try:
        _fill(handle, data, former)
        # The descriptor is given only so that the call follows the link; the path is absolute.
        os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle, follow_symlinks=True)
    finally:
        os.close(handle)


def _write_named(path: str, data: bytes, mode: int, former: os.stat_result | None) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with _removed_on_failure(path):
            _fill(handle, data, former)
    finally:
        os.close(handle)


def _fill(handle: int, data: bytes, former: os.stat_result | None) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
    if former is not None:
        with contextlib.suppress(OSError, AttributeError):  # only root may give a file away
            os.fchown(handle, former.st_uid, former.st_gid)
        with contextlib.suppress(AttributeError):
            os.fchmod(handle, stat.S_IMODE(former.st_mode))
    os.fsync(handle)


@contextlib.contextmanager
def _removed_on_failure(path: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        _remove(path)
        raise


def _remove(path: str) -> None:
    """Remove a file that this call made, if it is still there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
