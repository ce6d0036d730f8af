"""Two folders change places in one step: no moment at which a name is missing, where the system can do it."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_RENAME_SWAP = 2
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}


def exchange(one: Path, other: Path, aside: Path) -> None:
    """Make two folders change places; raises OSError.

    Where the system has no such call, three renames by way of `aside` do it; `restore` mends a halt between.
    """
    if _swap(os.fsencode(one), os.fsencode(other)):
        return
    os.rename(one, aside)
    os.rename(other, one)
    os.rename(aside, other)


def restore(one: Path, other: Path, aside: Path) -> None:
    """Go back where three renames were cut short: whatever stood at `one` stands there again."""
    if not aside.exists():
        return
    if one.exists():
        os.rename(aside, other)
    else:
        os.rename(aside, one)


def _swap(one: bytes, other: bytes) -> bool:
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        failed = library.renameat2(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE)
    elif sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(one, other, _RENAME_SWAP)
    else:
        return False
    code = ctypes.get_errno() if failed else 0
    if code and code not in _CANNOT:
        raise OSError(code, os.strerror(code))
    return not failed
