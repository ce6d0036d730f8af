"""`--inside`: what torch's allocator tells from inside the run, through a start-up hook in its environment.

Off unless asked. The hook stands first on PYTHONPATH and hands on to the sitecustomize that it hides; torch's
flight recorder, if no one else has, is told where to write when asked. Interpreters that ignore PYTHONPATH
(`-I`, `-E`) tell nothing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping

from envdoctor.facts.quantities import whole_number
from envdoctor.values import dataclass

HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook")
_FOLDER = "ENVDOCTOR_WATCH_INSIDE"
_RECORDER = {
    "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": "pipe-",
    "TORCH_FR_DUMP_TEMP_FILE": "dump-",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "dump-",
}


@dataclass(frozen=True, slots=True)
class Allocator:
    """What the allocator of a process held at most so far and has reserved now, MiB."""

    allocated: int
    reserved: int


class Inside:
    """A folder into which the run's processes tell of themselves."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="envdoctor-inside-")

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the variables to add to those that the command is given."""
        path = os.pathsep.join(filter(None, (HOOK, given.get("PYTHONPATH"))))
        told = {name: f"{self._folder}/{prefix}" for name, prefix in _RECORDER.items() if name not in given}
        return {**told, "PYTHONPATH": path, _FOLDER: self._folder}

    def read(self, pids: Iterable[int]) -> Allocator | None:
        """Return what the process tells that has reserved most; None where none tells anything."""
        told = [found for pid in pids if (found := self._told(pid))]
        return max(told, key=lambda found: found.reserved, default=None)

    def _told(self, pid: int) -> Allocator | None:
        try:
            with open(os.path.join(self._folder, str(pid)), encoding="ascii", errors="replace") as stream:
                numbers = [whole_number(word) for word in stream.read(100).split()]
        except OSError:
            return None
        if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
            return None
        return Allocator(numbers[0], numbers[1])

    def close(self) -> None:
        """Remove the folder."""
        with contextlib.suppress(OSError):
            shutil.rmtree(self._folder)
