"""A copy of an environment: shared blocks where the file system has them, else links of what nobody edits.

An installer replaces files, it does not write into them; small files, scripts and what describes packages are
copied all the same, so that nothing that may be edited is shared with the original.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path

LINKED = 1 << 16
"""Files from this size on are linked where blocks cannot be shared."""
_FICLONE = 0x40049409
_COPIED = (".py", ".pth", ".txt", ".json", ".cfg", ".toml", ".sh", ".egg-link", ".ini")


def copy_tree(source: Path, target: Path) -> None:
    """Make `target` a copy of the folder `source`; raises OSError as the system does."""
    target.mkdir()
    with os.scandir(source) as entries:
        for entry in entries:
            _copy(entry, target / entry.name, Path(entry.path))
    shutil.copystat(source, target)


def _copy(entry: os.DirEntry[str], target: Path, source: Path) -> None:
    if entry.is_symlink():
        os.symlink(os.readlink(source), target)
    elif entry.is_dir():
        copy_tree(source, target)
    elif entry.is_file():
        _copy_file(source, target, entry.stat())


def _copy_file(source: Path, target: Path, told: os.stat_result) -> None:
    if not _share_blocks(source, target):
        linked = told.st_size >= LINKED and source.suffix not in _COPIED and source.parent.name != "bin"
        if linked and _link(source, target):
            return
        shutil.copyfile(source, target)
    os.chmod(target, stat.S_IMODE(told.st_mode))
    os.utime(target, ns=(told.st_atime_ns, told.st_mtime_ns))


def _link(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError:
        return False
    return True


_unable: set[int] = set()
"""Devices on which blocks could not be shared: they are not asked again."""


def _share_blocks(source: Path, target: Path) -> bool:
    """Copy by reference; False where the file system cannot."""
    try:
        import fcntl
    except ImportError:
        return False
    whole = os.open(source, os.O_RDONLY)
    try:
        device = os.fstat(whole).st_dev
        if device in _unable:
            return False
        copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.ioctl(copy, _FICLONE, whole)
        except OSError:
            _unable.add(device)
            with contextlib.suppress(OSError):
                os.unlink(target)
            return False
        finally:
            os.close(copy)
    finally:
        os.close(whole)
    return True
