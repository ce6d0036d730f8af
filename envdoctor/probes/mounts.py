"""Shared file systems: where they are mounted, and how much room is left; one that hangs is left behind."""

from __future__ import annotations

import os
import re
import threading
import time

from .machine import Json, Machine
from .typed import Dict, List, Tuple

FACTS: Tuple[str, ...] = ()
TABLE = "/proc/self/mountinfo"
SHARED = (
    r"(?:nfs4?|cifs|smb3|lustre|gpfs|beegfs|ceph|glusterfs|wekafs|pvfs2|orangefs|panfs|afs|9p|virtiofs|"
    r"fuse\.(?:ceph|glusterfs|sshfs|s3fs|goofys|juicefs|mfs|lizardfs|alluxio\S*|gcsfuse|blobfuse\S*|"
    r"cvmfs\S*|daos\S*|weka\S*))"
)
MAX_MOUNTS, WAIT_S = 64, 1.5


def read(machine: Machine) -> Json:
    """Return the shared mounts; those that did not answer in time are named as unread."""
    mounts = parse_mounts(machine.text(TABLE) or "")
    waiting = {place: _Room(machine.at(place)) for place in mounts}
    deadline = time.monotonic() + WAIT_S
    hanging: List[str] = []
    for place, room in waiting.items():
        room.join(max(0.0, deadline - time.monotonic()))
        mounts[place].update(room.sizes)
        if room.is_alive():
            hanging.append(place)
    answer: Json = {"host": {"mounts": mounts}} if mounts else {}
    if hanging:
        told = "%s gave no answer within %g s" % (", ".join(hanging[:3]), WAIT_S)
        answer["unread"] = {"mounts": told}
    return answer


class _Room(threading.Thread):
    """Asks one file system for its sizes."""

    def __init__(self, path: str) -> None:
        super().__init__(daemon=True)
        self._path = path
        self.sizes: Dict[str, int] = {}
        self.start()

    def run(self) -> None:
        try:
            told = os.statvfs(self._path)
        except OSError:
            return
        self.sizes = {
            "total_bytes": told.f_frsize * told.f_blocks,
            "free_bytes": told.f_frsize * told.f_bavail,
        }


def parse_mounts(text: str) -> Dict[str, Json]:
    """Read `/proc/self/mountinfo` (proc(5)): the shared file systems by their place, the last one on top."""
    found: Dict[str, Json] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, more = before.split(), after.split()
        if len(fields) >= 6 and len(more) >= 2 and re.fullmatch(SHARED, more[0]) and len(found) < MAX_MOUNTS:
            writable = "rw" in fields[5].split(",") and "ro" not in (more[2:3] or [""])[0].split(",")
            found[_plain(fields[4])] = {"kind": more[0], "server": _plain(more[1]), "writable": writable}
    return found


def _plain(text: str) -> str:
    """Return a field without its octal escapes."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)
