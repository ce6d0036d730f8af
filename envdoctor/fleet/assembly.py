"""The assembly: replies from nodes are merged, judged and compared, and all of it becomes one value."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

from envdoctor import __version__
from envdoctor.findings import Severity
from envdoctor.fleet.agreement import Agreement
from envdoctor.fleet.answer import FleetAnswer, NodeFinding
from envdoctor.fleet.drift import find_drift
from envdoctor.fleet.expecting import Expectation
from envdoctor.fleet.identity import find_doubles, find_skew
from envdoctor.fleet.judging import judge_groups, mixed_capability
from envdoctor.fleet.merge import Merge
from envdoctor.fleet.pools import split_pools
from envdoctor.fleet.reply import Reply, Take
from envdoctor.fleet.smoking import diagnostic_findings
from envdoctor.fleet.speeds import find_slow
from envdoctor.fleet.standards import find_shortfalls, standards_of, without_drift
from envdoctor.matrix import Matrix, load_matrix, tables

Progress = Callable[[int], None]


def collect(read: Callable[[Take], None], progress: Progress | None = None, *, live: bool = True) -> Merge:
    """Merge the replies that a transport hands over; `progress` is told how many have come.

    `live`: the nodes tell their clocks' time now, not what it was when a file was written.
    """
    merge = Merge()
    count, started = 0, time.time()

    def take(reply: Reply) -> None:
        nonlocal count
        count += 1
        if reply.text is None:
            merge.add_unreached(reply.node, reply.reason)
        else:
            merge.add(reply.node, reply.text)
            if live:
                merge.asked[reply.node] = started, time.time()
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
    group_by: str = "auto",
    partitions: Mapping[str, str] | None = None,
    memberships: Mapping[str, Collection[str]] | None = None,
    expected: Sequence[Expectation] = (),
) -> FleetAnswer:
    """Judge what was merged; `select` and `ignore` name checks, `uncompared` facts that may differ.

    `group_by` says which nodes are compared (`auto`, `partition`, `gpu`, `none`), `partitions`
    names each node's and `memberships` all of each node's where they overlap, `expected` is what a site wants
    of its nodes.

    Raises InputError for a selection that names no check.
    """
    matrix = matrix or load_matrix()
    groups, unreached = merge.result()
    agreement = agreement_of(matrix, uncompared)
    partitions = partitions or {}
    memberships = memberships or {node: (name,) for node, name in partitions.items()}
    pools = split_pools(groups, partitions, group_by)
    drift = find_drift(pools, agreement, merge.own, merge.scattered)
    findings, crashed = judge_groups(groups, matrix, select, ignore)
    standards = () if select else standards_of(matrix)
    short = find_shortfalls(groups, agreement, (*expected, *standards), memberships)
    own = without_drift(short, drift)
    if not select:
        mixed = mixed_capability(groups, matrix) if len(pools) == 1 else None
        own = [
            *find_doubles(merge.own),
            *find_skew(merge.own, merge.asked),
            *find_slow(merge.speeds, matrix),
            *diagnostic_findings(groups),
            *own,
            *([mixed] if mixed else []),
        ]
    return FleetAnswer(
        groups=groups,
        drift=drift,
        unreached=unreached,
        findings=in_weight([*(one for one in own if one.finding.id not in ignore), *findings]),
        pools=tuple((pool.name, pool.count) for pool in pools if pool.name),
        crashed_checks=crashed,
        fail_on=fail_on,
        tool_version=__version__,
        matrix_version=matrix.version,
        matrix_date=matrix.date,
    )


def in_weight(findings: Sequence[NodeFinding]) -> tuple[NodeFinding, ...]:
    """Return findings with the gravest first."""
    weight = {severity: position for position, severity in enumerate(Severity)}
    return tuple(sorted(findings, key=lambda one: weight[one.finding.severity]))


def agreement_of(matrix: Matrix, uncompared: Sequence[str] = ()) -> Agreement:
    """Return the rows of what must agree between nodes, less the facts named in `uncompared`."""
    return Agreement(
        facts=matrix.rows(tables.FleetFactRow),
        packages=matrix.rows(tables.FleetPackageRow),
        variables=matrix.rows(tables.FleetVariableRow),
        uncompared=tuple(uncompared),
        users_xids=frozenset(row.number for row in matrix.rows(tables.XidRow) if row.of_programs),
    )
