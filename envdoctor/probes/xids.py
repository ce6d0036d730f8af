"""Xid lines: the errors that NVIDIA's driver left in the kernel's log, where we may read it."""

from __future__ import annotations

import os
import re

from .driver import read_module_version
from .files import open_file
from .machine import Json, Machine
from .typed import Dict, Iterable, List, Tuple

FACTS: Tuple[str, ...] = ()
KMSG = "/dev/kmsg"
LOGS = ("/var/log/kern.log", "/var/log/messages")
TAIL_BYTES, MAX_BYTES, MAX_XIDS, MAX_TEXT = 1 << 20, 4 << 20, 50, 300
XID = r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d{1,3})\b.*"


def read(machine: Machine) -> Json:
    """Return the newest Xid of each number and GPU; a note when the log is closed to us."""
    if read_module_version(machine)[0] is None:
        return {}
    try:
        lines = _kernel_lines(machine)
    except OSError as error:
        return {"notes": ["Xid lines were not read: %s: %s" % (KMSG, error.strerror)]}
    found = parse_xids(lines)
    return {"driver": {"xids": found}} if found else {}


def _kernel_lines(machine: Machine) -> List[str]:
    try:
        return read_kmsg(machine.at(KMSG))
    except OSError:
        for path in LOGS:
            if os.access(machine.at(path), os.R_OK):
                return read_tail(machine.at(path))
        raise


def read_kmsg(path: str) -> List[str]:
    """Return the kernel's log records without waiting for new ones; raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    records: List[str] = []
    room = MAX_BYTES
    try:
        while room > 0:
            try:
                record = os.read(handle, 8192)
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue
            if not record:
                break
            room -= len(record)
            records.append(record.decode("utf-8", "replace"))
    finally:
        os.close(handle)
    return records


def read_tail(path: str) -> List[str]:
    """Return the lines of a log's last part; raises OSError."""
    stream = open_file(path)
    if stream is None:
        return []
    with stream:
        stream.seek(max(0, os.path.getsize(path) - TAIL_BYTES))
        return stream.read(TAIL_BYTES).decode("utf-8", "replace").splitlines()


def parse_xids(lines: Iterable[str]) -> List[Json]:
    """Read the newest Xid of each number and GPU."""
    found: Dict[Tuple[str, str], Json] = {}
    for line in lines:
        match = re.search(XID, line) if "Xid" in line else None
        if match:
            bus, number = match.group(1), match.group(2)
            found.pop((bus, number), None)
            found[bus, number] = {"number": int(number), "pci_bus": bus, "text": match.group()[:MAX_TEXT]}
    return list(found.values())[-MAX_XIDS:]
