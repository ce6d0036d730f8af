"""The assembly: replies from nodes are merged, judged and compared, and all of it becomes one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from envdoctor import __version__
from envdoctor.findings import Severity
from envdoctor.fleet.answer import FleetAnswer
from envdoctor.fleet.drift import Agreement, find_drift
from envdoctor.fleet.judging import judge_groups
from envdoctor.fleet.merge import Merge
from envdoctor.fleet.reply import Reply, Take
from envdoctor.matrix import Matrix, load_matrix, tables

Progress = Callable[[int], None]


def collect(read: Callable[[Take], None], progress: Progress | None = None) -> Merge:
    """Merge the replies that a transport hands over; `progress` is told how many have come."""
    merge = Merge()
    count = 0

    def take(reply: Reply) -> None:
        nonlocal count
        count += 1
        if reply.text is None:
            merge.add_unreached(reply.node, reply.reason)
        else:
            merge.add(reply.node, reply.text)
        if progress is not None:
            progress(count)

    read(take)
    return merge


def answer(
    merge: Merge,
    matrix: Matrix | None = None,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    uncompared: Sequence[str] = (),
    fail_on: Severity = Severity.ERROR,
) -> FleetAnswer:
    """Judge what was merged; `select` and `ignore` name checks, `uncompared` facts that may differ.

    Raises InputError for a selection that names no check.
    """
    matrix = matrix or load_matrix()
    groups, unreached = merge.result()
    findings, crashed = judge_groups(groups, matrix, select, ignore)
    return FleetAnswer(
        groups=groups,
        drift=find_drift(groups, agreement_of(matrix, uncompared)),
        unreached=unreached,
        findings=findings,
        crashed_checks=crashed,
        fail_on=fail_on,
        tool_version=__version__,
        matrix_version=matrix.version,
        matrix_date=matrix.date,
    )


def agreement_of(matrix: Matrix, uncompared: Sequence[str] = ()) -> Agreement:
    """Return the rows of what must agree between nodes, less the facts named in `uncompared`."""
    return Agreement(
        facts=matrix.rows(tables.FleetFactRow),
        packages=matrix.rows(tables.FleetPackageRow),
        variables=matrix.rows(tables.FleetVariableRow),
        uncompared=tuple(uncompared),
    )
