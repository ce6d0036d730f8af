"""Facts that nodes wrote into a shared folder: one file a node, such as each rank of torchrun or MPI writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from envdoctor.errors import InputError
from envdoctor.fleet.nodeset import node_name
from envdoctor.fleet.reply import Reply

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


def read_replies(files: list[Path]) -> Iterator[Reply]:
    """Yield each file as the reply of the node it is named for."""
    for path in files:
        node = node_name(path.stem)
        try:
            if not path.is_file():
                yield Reply(node, None, "its file is no regular file")
                continue
            with open(path, "rb", buffering=0) as stream:
                text = stream.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            yield Reply(node, None, f"its file cannot be read: {error.strerror}")
            continue
        if len(text) > MAX_FILE_BYTES:
            yield Reply(node, None, f"its file holds more than {MAX_FILE_BYTES >> 20} MiB")
        else:
            yield Reply(node, text)
