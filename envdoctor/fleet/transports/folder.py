"""Facts that nodes wrote into a shared folder: one file a node, as each rank of torchrun or MPI may."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from envdoctor.errors import InputError
from envdoctor.fleet.nodeset import node_name
from envdoctor.fleet.reply import Reply, Take

MAX_FILE_BYTES = 16 << 20


def list_files(folder: Path) -> list[Path]:
    """Return the JSON files of a folder; raises InputError when there is none."""
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix == ".json" and path.name[0] != ".")
    except OSError as error:
        raise InputError(f"--facts {folder}: {error.strerror}") from None
    if not found:
        raise InputError(f"--facts {folder}: no *.json there")
    return found


def read_folder(files: list[Path], take: Take) -> None:
    """Hand over each file as the reply of the node it is named for."""
    for path in files:
        take(_read_reply(path, node_name(path.stem)))


def _read_reply(path: Path, node: str) -> Reply:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            told = os.fstat(handle)
            if not stat.S_ISREG(told.st_mode):
                return Reply(node, None, "its file is no regular file")
            if told.st_size > MAX_FILE_BYTES:
                return Reply(node, None, f"its file holds more than {MAX_FILE_BYTES >> 20} MiB")
            return Reply(node, os.read(handle, told.st_size))
        finally:
            os.close(handle)
    except OSError as error:
        return Reply(node, None, f"its file cannot be read: {error.strerror}")
