"""What smoke kernels proved: a kernel that fails where the matrix says yes, and the other way round."""

from __future__ import annotations

from collections.abc import Iterable

from envdoctor.commands import commands
from envdoctor.facts import Verdict
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.patterns import glob_matches, row_pattern
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.view import View

_BAD = frozenset({"failed", "crashed", "timeout"})
_NO_KERNELS = ("dcgm", "bandwidth.")
"""Verdicts of others, and speeds: whoever asked for them says what they mean."""
_NO_CARD = ("GPU-FULL", "GPU-HIDDEN", "GPU-LOST", "GPU-EXCLUSIVE-TAKEN", "GPU-MIG-EMPTY")


def check_failed_kernels(view: View) -> Iterable[Finding]:
    """Find the kernels that did not compute, one finding for each likely cause."""
    if not view.facts.verdicts:
        raise Skip("no smoke kernels were run (diagnose --smoke)")
    groups: dict[str, list[Verdict]] = {}
    for verdict in view.facts.verdicts:
        if verdict.outcome in _BAD and not verdict.op.startswith(_NO_KERNELS):
            groups.setdefault(_cause_id(view, verdict), []).append(verdict)
    for identity, verdicts in groups.items():
        yield _failed(view, identity, verdicts)


def _cause_id(view: View, verdict: Verdict) -> str:
    if _below_claim(view, verdict.op) is not None:
        return "hardware"
    for row in view.matrix.rows(tables.SmokeCauseRow):
        if row_pattern(row.reason).search(verdict.reason or ""):
            return row.id
    return verdict.op.partition(".")[0]


def _below_claim(view: View, op: str) -> tables.SmokeClaimRow | None:
    """Return the row that says this card cannot do the op, when it says so."""
    lowest = view.lowest_capability()
    for row in view.matrix.rows(tables.SmokeClaimRow):
        named = glob_matches(op.partition("@")[0], row.ops)
        if named and lowest and lowest < row.compute_capability:
            return row
    return None


def _failed(view: View, identity: str, verdicts: list[Verdict]) -> Finding:
    row = view.matrix.row(tables.SmokeCauseRow, identity)
    by_the_book = identity == "hardware"
    names = ", ".join(verdict.op for verdict in verdicts)
    why = (
        "this card cannot do it, as the matrix says"
        if by_the_book
        else row.cause
        if row
        else "the reason stands beside it"
    )
    return Finding(
        id="SMOKE-FAILED",
        severity=Severity.NOTE if by_the_book else Severity.ERROR,
        summary=f"smoke kernels do not compute here: {names}; {why}",
        cause=(
            "The kernels fail where the card is too old for the op."
            if by_the_book
            else f"The matrix has nothing against these ops here, and the kernels say no: {why}."
        ),
        evidence=tuple(
            Evidence(v.op, f"{v.outcome}: {v.reason or 'no reason given'}", v.source) for v in verdicts
        ),
        remedies=(
            Remedy(
                row.remedy if row else "Run the op alone to see all of its output.",
                commands("envdoctor smoke --select {}", verdicts[0].name),
            ),
        ),
        certainty=Certainty.CERTAIN,
        rows=(row.id,) if row else (),
        sources=(row.source,) if row else (),
        follows=("TORCH-ARCH*", "DRIVER-TOO-OLD*", "BNB-BINARY", "ABI-*", "TORCH-CPU-BUILD", *_NO_CARD),
    )


def check_contradicted_rows(view: View) -> Iterable[Finding]:
    """Find rows of the matrix that a passing kernel contradicts, so that they can be corrected."""
    if not view.facts.verdicts:
        raise Skip("no smoke kernels were run (diagnose --smoke)")
    for verdict in view.facts.verdicts:
        row = _below_claim(view, verdict.op) if verdict.outcome == "passed" else None
        if row is not None and not _emulated(view, row):
            yield Finding(
                id="SMOKE-CONTRADICTS",
                severity=Severity.NOTE,
                summary=f"{verdict.op} passed, but row {row.id} says that this card lacks {row.what}",
                cause="A measured kernel outweighs a row: please report it, so that the row is corrected.",
                evidence=(Evidence(verdict.op, "passed", verdict.source),),
                remedies=(Remedy("Send a bundle with the smoke verdicts.", ("envdoctor bundle --smoke",)),),
                rows=(row.id,),
                sources=(row.source,),
            )


def _emulated(view: View, row: tables.SmokeClaimRow) -> bool:
    lowest, start = view.lowest_capability(), row.emulated_from
    return bool(start and lowest and lowest >= start)


RULES = (
    Rule("SMOKE-FAILED", "the smoke kernels compute", check_failed_kernels),
    Rule(
        "SMOKE-CONTRADICTS",
        "no row of the matrix is contradicted by a passing kernel",
        check_contradicted_rows,
    ),
)
