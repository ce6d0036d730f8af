"""A lock as a request: each of its packages at its version; what no index gives is carried."""

from __future__ import annotations

from pathlib import Path

from envdoctor.locks.reading import read_lock
from envdoctor.locks.values import Locked
from envdoctor.solve.requests import Asked, Carried, Request, parse_line


def read_locked(path: Path) -> Asked:
    """Return what a lock file asks for; raises InputError naming it."""
    lock = read_lock(path)
    read = [_asked(one, f"{path}:{one.line}" if one.line else str(path)) for one in lock.packages]
    note = Carried(str(path), "", f"read for {lock.read_for}, without extras and development groups", True)
    return Asked(
        requests=tuple(one for one in read if isinstance(one, Request)),
        carried=(note, *(one for one in read if isinstance(one, Carried))),
    )


def _asked(package: Locked, source: str) -> Request | Carried | None:
    shown = f"{package.name} {package.version or ''}".strip()
    if package.origin == "conda":
        return Carried(shown, "", f"a package of conda ({source}), left to conda", judged=True)
    if package.origin or not package.version:
        return Carried(shown, "", f"not from an index ({source}); it is installed as the lock says")
    return parse_line(f"{package.name}=={package.version}", source)
