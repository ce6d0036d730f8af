"""The former states of an environment, kept beside it, and the journal by which a halted change is mended."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envdoctor.errors import InputError, Unavailable
from envdoctor.files import replace_file
from envdoctor.fixing.exchange import exchange, restore
from envdoctor.inputs import MEBIBYTE, parse_json, read_input
from envdoctor.values import dataclass

KEPT = 3
"""Former states that are kept; older ones are removed."""
_LARGEST = MEBIBYTE


@dataclass(frozen=True, slots=True)
class State:
    """A former state: its number, when it was left, and what then changed, in words."""

    number: int
    left: str
    changes: tuple[str, ...]


class Shelf:
    """The folder beside an environment where clones grow and former states lie: `.NAME.envdoctor`.

    Its journal is one JSON file, replaced whole: the states, and the exchange that is under way. Raises
    Unavailable where another `fix` is at work on the environment.
    """

    def __init__(self, environment: Path) -> None:
        self.environment = environment
        self.lock: int | None = None
        """The descriptor of the lock while the shelf is held."""
        self.folder = environment.parent / f".{environment.name.lstrip('.')}.envdoctor"

    @contextlib.contextmanager
    def held(self) -> Iterator[bool]:
        """Hold the shelf alone, what an earlier run left half done mended: True where it was taken back."""
        try:
            with self._alone():
                went_back = self._mend()
                try:
                    yield went_back
                finally:
                    self._leave()
        except OSError as error:
            raise Unavailable(f"fix: {error.strerror}: {error.filename or self.folder}") from None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock; whoever does not get it touches nothing."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(handle, self.folder / "lock", self.environment)
            self.lock = handle
            yield
        finally:
            self.lock = None
            os.close(handle)

    @property
    def clone(self) -> Path:
        """Where the next state grows."""
        return self.folder / "clone"

    def states(self) -> list[State]:
        """Return the states that can be gone back to, the last first."""
        return [State(s["number"], s["left"], tuple(s["changes"])) for s in self._read()["states"]]

    def take(self, changes: tuple[str, ...]) -> State:
        """Exchange the environment with the clone; what it was becomes the last state."""
        journal = self._read()
        number = journal["next"]
        os.rename(self.clone, self._place(number))
        return self._exchange(journal, number, changes)

    @contextlib.contextmanager
    def standing_in(self) -> Iterator[None]:
        """Let the clone stand in the environment's place; without a `keep` the environment comes back."""
        journal = self._read()
        number = journal["next"]
        os.rename(self.clone, self._place(number))
        inode = os.stat(self.environment).st_ino
        self._write({**journal, "under_way": {"inode": inode, "number": number, "back": True}})
        try:
            exchange(self.environment, self._place(number), self._aside)
            yield
        finally:
            self._mend()

    def keep(self, changes: tuple[str, ...]) -> State:
        """Leave what stands in the environment's place there; what stood there becomes the last state."""
        journal = self._read()
        return self._end(journal, journal["next"], changes)

    def go_back(self, number: int | None) -> State:
        """Exchange the environment with a former state (None: the last), which takes its place and number."""
        journal = self._read()
        chosen = [s["number"] for s in journal["states"] if number in (None, s["number"])]
        if not chosen:
            told = ", ".join(str(s["number"]) for s in journal["states"]) or "none"
            raise Unavailable(f"fix --undo: no such state of {self.environment} is kept (there are: {told})")
        return self._exchange(journal, chosen[0], ("what --undo went back from",))

    def discard(self) -> None:
        """Remove the clone."""
        _remove(self.clone)

    @property
    def _aside(self) -> Path:
        return self.folder / "aside"

    def _place(self, number: int) -> Path:
        return self.folder / f"state-{number}"

    def _read(self) -> dict[str, Any]:
        """Return the journal; raises Unavailable where there is one that cannot be read."""
        path = self.folder / "journal.json"
        if not os.path.lexists(path):
            return {"next": 1, "states": [], "under_way": None}
        try:
            return _checked(parse_json(read_input(path, _LARGEST)))
        except (InputError, ValueError, KeyError, TypeError) as error:
            raise Unavailable(
                f"fix: {path} cannot be read, and without it nothing beside it is touched: {error}"
            ) from None

    def _write(self, journal: dict[str, Any]) -> None:
        replace_file(self.folder / "journal.json", json.dumps(journal), mode=0o600)

    def _exchange(self, journal: dict[str, Any], number: int, changes: tuple[str, ...]) -> State:
        """Exchange the environment with what lies at a state's place; the journal knows before and after."""
        inode = os.stat(self.environment).st_ino
        self._write({**journal, "under_way": {"inode": inode, "number": number, "back": False}})
        exchange(self.environment, self._place(number), self._aside)
        return self._end(journal, number, changes)

    def _end(self, journal: dict[str, Any], number: int, changes: tuple[str, ...]) -> State:
        left = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        others = [state for state in journal["states"] if state["number"] != number]
        states = [{"number": number, "left": left, "changes": changes}, *others][:KEPT]
        self._write({"next": max(journal["next"], number + 1), "states": states, "under_way": None})
        return State(number, left, changes)

    def _mend(self) -> bool:
        """End or take back the exchange that was cut short; True where it was taken back."""
        journal = self._read()
        went_back = False
        if under_way := journal["under_way"]:
            number = under_way["number"]
            restore(self.environment, self._place(number), self._aside)
            exchanged = os.stat(self.environment).st_ino != under_way["inode"]
            if exchanged and not under_way["back"]:
                self._end(journal, number, ("a change whose end was cut short",))
            else:
                if went_back := exchanged:
                    exchange(self.environment, self._place(number), self._aside)
                self._write({**journal, "under_way": None})
        self._tidy()
        return went_back

    def _tidy(self) -> None:
        """Remove clones and states that the journal does not name; what cannot be removed stays."""
        journal = self._read()
        if journal["under_way"]:
            return
        named = {self._place(s["number"]).name for s in journal["states"]} | {"lock", "journal.json"}
        with contextlib.suppress(OSError):
            for name in os.listdir(self.folder):
                if name not in named:
                    _remove(self.folder / name)

    def _leave(self) -> None:
        """Tidy, and leave no folder where there is no state to go back to."""
        self._tidy()
        if not self._read()["states"] and not self._read()["under_way"]:
            shutil.rmtree(self.folder, ignore_errors=True)


def _checked(journal: Any) -> dict[str, Any]:
    """Return a journal that has what one has; raises KeyError, TypeError or ValueError."""
    states = [
        {"number": int(s["number"]), "left": str(s["left"]), "changes": [str(c) for c in s["changes"]]}
        for s in journal["states"]
    ]
    under_way = journal["under_way"]
    if under_way is not None:
        back = under_way.get("back") is True
        under_way = {"inode": int(under_way["inode"]), "number": int(under_way["number"]), "back": back}
    return {"next": int(journal["next"]), "states": states, "under_way": under_way}


def _lock(handle: int, path: Path, environment: Path) -> None:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        same = os.fstat(handle).st_ino == os.stat(path).st_ino
    except OSError:
        same = False
    if not same:
        who = "another `envdoctor fix`, or an installer of a killed one,"
        raise Unavailable(f"fix: {who} is at work on {environment}")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
