"""A copy of an environment: shared blocks where the file system has them, else links of what nobody edits.

An installer replaces files, it does not write into them; small files, scripts and what describes packages are
copied all the same, so that nothing that may be edited is shared with the original.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from envdoctor.inputs import MEBIBYTE

LINKED = 1 << 16
"""Files from this size on are linked where blocks cannot be shared."""
_FICLONE = 0x40049409
_COPIED = (".py", ".pth", ".txt", ".json", ".cfg", ".toml", ".sh", ".egg-link", ".ini")


def copy_tree(source: Path, target: Path) -> None:
    """Make `target` a copy of the folder `source`; raises OSError as the system does."""
    _copy_folder(str(source), str(target))


def _copy_folder(source: str, target: str) -> None:
    os.mkdir(target)
    with os.scandir(source) as entries:
        for entry in entries:
            _copy(entry, os.path.join(target, entry.name))
    shutil.copystat(source, target)


def _copy(entry: os.DirEntry[str], target: str) -> None:
    if entry.is_symlink():
        os.symlink(os.readlink(entry.path), target)
    elif entry.is_dir():
        _copy_folder(entry.path, target)
    elif entry.is_file():
        _copy_file(entry.path, target, entry.stat())


def _copy_file(source: str, target: str, told: os.stat_result) -> None:
    if told.st_dev in _unable and _is_linked(source, told) and _link(source, target):
        return
    whole = os.open(source, os.O_RDONLY)
    try:
        copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if not _share_blocks(whole, copy, told.st_dev):
                _pour(whole, copy)
            os.fchmod(copy, stat.S_IMODE(told.st_mode))
            os.utime(copy, ns=(told.st_atime_ns, told.st_mtime_ns))
        finally:
            os.close(copy)
    finally:
        os.close(whole)


def _is_linked(source: str, told: os.stat_result) -> bool:
    """True for a large file that installers replace and nobody edits."""
    folder, name = os.path.split(source)
    edited = name.endswith(_COPIED) or os.path.basename(folder) in ("bin", "conda-meta")
    return told.st_size >= LINKED and not edited


def _link(source: str, target: str) -> bool:
    try:
        os.link(source, target)
    except OSError:
        return False
    return True


def _pour(whole: int, copy: int) -> None:
    while data := os.read(whole, MEBIBYTE):
        while data:
            data = data[os.write(copy, data) :]


_unable: set[int] = set()
"""Devices on which blocks could not be shared: they are not asked again."""


def _share_blocks(whole: int, copy: int, device: int) -> bool:
    """Copy by reference; False where the file system cannot."""
    if device in _unable:
        return False
    try:
        import fcntl

        fcntl.ioctl(copy, _FICLONE, whole)
    except (ImportError, OSError):
        _unable.add(device)
        return False
    return True
