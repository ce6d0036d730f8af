"""Facts that nodes wrote into a shared folder: one file a node, as each rank of torchrun or MPI may."""

from __future__ import annotations

from pathlib import Path

from envdoctor.errors import InputError
from envdoctor.fleet.nodeset import node_name
from envdoctor.fleet.reply import Reply, Take
from envdoctor.inputs import read_input

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
        if path.exists() and not path.is_file():
            return Reply(node, None, "its file is no regular file")
        return Reply(node, read_input(path, MAX_FILE_BYTES))
    except InputError as error:
        return Reply(node, None, f"its file cannot be read: {str(error).removeprefix(f'{path}: ')}")
