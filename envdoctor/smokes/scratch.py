"""The scratch folder of one run: caches and temporary files go there, and it goes when the run goes.

Each process of the run is marked by it in its environment. A keeper clears up should this process be
killed; in order, we do it ourselves. A keeper that was killed as well leaves a folder, which the next run
removes: it knows it by the lock that nobody holds any more, in which the folder's own name is written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from envdoctor.processes import Child
from envdoctor.smokes import keeper

PREFIX = "envdoctor-smoke-"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make the folder and its keeper; on leaving, kill every process of the run and remove the folder."""
    remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = os.open(folder / "unlocked", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        os.write(lock, _marker(folder))
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(folder / "unlocked", folder / "lock")  # so that nobody ever sees it not held
        with Child([sys.executable, "-I", "-S", keeper.__file__, str(folder)]):
            try:
                yield folder
            finally:
                keeper.clear(str(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _marker(folder: Path) -> bytes:
    return f"scratch folder of envdoctor, removed with all that is in it: {folder.name}\n".encode()


def remove_abandoned() -> None:
    """Remove the folders of our own runs that ended without clearing up, and no other's."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / "lock", os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if os.read(lock, len(_marker(folder)) + 1) != _marker(folder):
                    continue
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                keeper.clear(str(folder))
            finally:
                os.close(lock)


def environment(folder: Path, base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a worker: marked, with every cache and temporary file in the folder."""
    places = {
        "TMPDIR": "tmp",
        "TRITON_CACHE_DIR": "triton",
        "TORCHINDUCTOR_CACHE_DIR": "inductor",
        "TORCH_EXTENSIONS_DIR": "extensions",
        "CUDA_CACHE_PATH": "cuda",
    }
    for name in places.values():
        (folder / name).mkdir(exist_ok=True)
    return {
        **base,
        **{variable: str(folder / name) for variable, name in places.items()},
        keeper.MARK: str(folder),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONFAULTHANDLER": "1",
    }
