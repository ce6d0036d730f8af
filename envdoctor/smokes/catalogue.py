"""Which ops there are in an interpreter, and which of them a selection means."""

from __future__ import annotations

import fnmatch
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envdoctor.errors import InputError, Unavailable, nearest
from envdoctor.facts.codec import FactsFormatError, decode
from envdoctor.inputs import parse_json
from envdoctor.processes import Completed, run_child
from envdoctor.values import dataclass

WORKER = Path(__file__).with_name("worker.py")
QUICK = "quick"
SPEEDS = "bandwidth"
_KEPT_NOISE = 1 << 16


@dataclass(frozen=True, slots=True)
class OpEntry:
    """What the parent knows of an op; `missing` names a module it needs that is not installed."""

    name: str
    summary: str
    tolerance: float
    needs: tuple[str, ...]
    quick: bool
    lane: str
    gpus: str
    last: bool
    patience: float
    missing: str
    unit: str = ""
    """What a speed is measured in; empty for an op that proves a result."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The ops of an interpreter in their order, whether it has torch, and entry points that failed."""

    ops: tuple[OpEntry, ...]
    has_torch: bool
    troubles: tuple[str, ...] = ()


def find_python(python: str) -> str:
    """Return the interpreter's path; raises InputError when there is none."""
    found = shutil.which(python)
    if found is None:
        raise InputError(f"{python}: no such interpreter")
    return found


def read_catalogue(python: str, timeout_s: float, env: Mapping[str, str] | None = None) -> Catalogue:
    """Ask the interpreter for its ops, third parties' included; raises Unavailable without an answer."""
    with tempfile.TemporaryDirectory(dir=(env or {}).get("TMPDIR"), prefix="envdoctor-list-") as folder:
        path = Path(folder) / "ops.json"
        command = [python, "-B", str(WORKER), "list", str(path)]
        done = run_child(command, timeout_s=timeout_s, env=env, max_bytes=_KEPT_NOISE)
        try:
            return parse_catalogue(parse_json(path.read_bytes()))
        except (OSError, ValueError):
            raise Unavailable(f"{python}: {_silence(done, timeout_s)}") from None


def _silence(done: Completed, timeout_s: float) -> str:
    """Return why there is no list of ops."""
    if done.timed_out:
        return f"did not list its ops in {timeout_s:g} s"
    if done.signal:
        return f"could not list its ops: it died of {done.signal}"
    lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
    return f"could not list its ops: {lines[-1]}"


def parse_catalogue(data: Any) -> Catalogue:
    """Turn a worker's answer to `list` into a value; raises FactsFormatError when it is none."""
    if not isinstance(data, dict):
        raise FactsFormatError(("ops",), "expected an object")
    told = {"has_torch" if key == "torch" else key: value for key, value in data.items()}
    return decode(Catalogue, told, ())


def builtin_entries() -> tuple[OpEntry, ...]:
    """Return the ops that come with us, as far as they are known without the interpreter."""
    from envdoctor.smokes.ops import load

    return tuple(OpEntry(**op.describe(), missing="") for op in load().values())


def select_ops(ops: Sequence[OpEntry], patterns: Sequence[str] | None) -> tuple[OpEntry, ...]:
    """Return the ops meant by names, prefixes (`matmul`), globs (`bnb.*`), `all` or `quick`, the default.

    Raises InputError for a pattern that means none.
    """
    chosen = patterns or (QUICK,)
    for pattern in chosen:
        if ops and not any(means(pattern, op) for op in ops):
            near = nearest(pattern, (op.name for op in ops))
            raise InputError(f"--select {pattern}: no such op{near or '; --list names them'}")
    return tuple(op for op in ops if any(means(pattern, op) for pattern in chosen))


def means(pattern: str, op: OpEntry) -> bool:
    """True when a pattern of a selection means the op."""
    if pattern in ("all", QUICK):
        return op.quick or pattern == "all"
    return op.name.startswith(f"{pattern}.") or fnmatch.fnmatchcase(op.name, pattern)
