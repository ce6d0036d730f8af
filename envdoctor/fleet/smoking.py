"""Smokes on every node, their verdicts as findings, and one all-reduce over all nodes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import envdoctor
from envdoctor.facts.codec import decode
from envdoctor.facts.quantities import counted
from envdoctor.findings import Evidence, Finding, Remedy, Severity
from envdoctor.fleet import landing_collective
from envdoctor.fleet.answer import Collective, NodeFinding
from envdoctor.fleet.carriage import Cargo, program
from envdoctor.fleet.merge import Group
from envdoctor.fleet.nodeset import natural_key
from envdoctor.fleet.reply import Reply, Take
from envdoctor.inputs import parse_json
from envdoctor.values import dataclass

DCGM = "dcgm"
BAD_OUTCOMES = frozenset(("failed", "crashed", "timeout"))
ROOMS = (
    *("smokes", "facts", "report/__init__.py"),
    *("errors.py", "inputs.py", "lazy_re.py", "processes.py", "values.py"),
)
"""What `smokes.parent` imports; what judges and draws its verdicts stays here."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


@cache
def read_smokes() -> bytes:
    """Return what smokes need on a node as one archive: their room and the few modules it stands on."""
    root = Path(envdoctor.__file__).parent
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("envdoctor/__init__.py", _EPOCH), "")
        for room in ROOMS:
            place = root / room
            for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
                name = f"envdoctor/{path.relative_to(root).as_posix()}"
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def diagnostic_findings(groups: Sequence[Group]) -> tuple[NodeFinding, ...]:
    """Return a finding for each test of DCGM's diagnostic that failed in one way, with its nodes.

    Failed kernels are found by the rules, as on one machine.
    """
    nodes: dict[tuple[str, str], list[str]] = {}
    for group in groups:
        for verdict in group.facts.verdicts:
            if verdict.outcome in BAD_OUTCOMES and verdict.name.partition(".")[0] == DCGM:
                nodes.setdefault((verdict.op, verdict.reason or verdict.outcome), []).extend(group.nodes)
    return tuple(
        NodeFinding(_finding(*key), tuple(sorted(where, key=natural_key))) for key, where in nodes.items()
    )


def _finding(op: str, reason: str) -> Finding:
    return Finding(
        id="DCGM-FAILED",
        severity=Severity.ERROR,
        summary=f"{op}: {reason}",
        cause="DCGM's own diagnostic of the first level fails there.",
        evidence=(Evidence(op, reason, "dcgmi diag --run 1"),),
        remedies=(Remedy("Run it there by itself, or a longer one.", ("dcgmi diag --run 2",)),),
        sources=("https://docs.nvidia.com/datacenter/dcgm/latest/reference/diagnostics/errors.html",),
    )


def pack_collective(python: str | None, limit_s: float, address: str, port: int, nodes: int) -> Cargo:
    """Return the ranks of an NCCL all-reduce over `nodes` nodes, ready to travel."""
    return pack_ranks(python, limit_s, address, port, nodes, "nccl")


def pack_ranks(
    python: str | None, limit_s: float, address: str, port: int, nodes: int, backend: str
) -> Cargo:
    """Return the ranks of an all-reduce by one of torch's backends."""
    source = Path(landing_collective.__file__).read_text(encoding="utf-8")
    call = f"land({source!r}, {max(1, round(limit_s))}, {address!r}, {port}, {nodes}, {backend!r})"
    return program(source, call, b"", python)


def run_collective(ask: Callable[[Take], None], nodes: Sequence[str]) -> Collective:
    """Run the ranks through a transport and return how the all-reduce ended."""
    replies: list[Reply] = []
    ask(replies.append)
    ranks, faults, skipped = 0, [], []
    for reply in replies:
        told = _read(reply)
        if told is None:
            faults.append(f"{reply.node}: {reply.reason or 'it answered what we cannot read'}")
            continue
        ranks += told.ranks
        if told.outcome == "failed":
            faults.append(f"{reply.node}: {told.reason}")
        elif told.outcome == "skipped":
            skipped.append(f"{reply.node}: {told.reason}")
    if faults:
        return Collective("failed", _some(faults), ranks, tuple(nodes))
    if skipped:
        return Collective("skipped", _some(skipped), ranks, tuple(nodes))
    return Collective("passed", None, ranks, tuple(nodes))


@dataclass(frozen=True, slots=True)
class _Told:
    """What the ranks of one node answer."""

    outcome: Literal["passed", "failed", "skipped"]
    reason: str | None = None
    ranks: int = 0


def _read(reply: Reply) -> _Told | None:
    try:
        return decode(_Told, parse_json(reply.text or b""), ())
    except ValueError:
        return None


def _some(words: Sequence[str]) -> str:
    more = f"; and {counted(len(words) - 3, 'node')} more" if len(words) > 3 else ""
    return "; ".join(words[:3]) + more
