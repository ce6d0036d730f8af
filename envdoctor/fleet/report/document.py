"""The answer as a document: who is missing, who is odd and in what, what is wrong there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from envdoctor.facts.quantities import counted
from envdoctor.findings import Severity
from envdoctor.fleet.answer import Comparison, FleetAnswer, NodeFinding
from envdoctor.fleet.comparable import comparable_facts, packages
from envdoctor.fleet.differing import Drift, DriftValue
from envdoctor.fleet.merge import Group
from envdoctor.fleet.nodeset import fold, natural_key
from envdoctor.report.diagnosis import TONES, finding_section
from envdoctor.report.document import (
    Bar,
    Bars,
    Block,
    Document,
    Fold,
    Row,
    Rows,
    Run,
    Section,
    Span,
    Table,
    Text,
    Tone,
    opened,
    plain,
)
from envdoctor.report.facts import gpu_rows

_ALWAYS_SHOWN = ("driver", "gpu.count", "gpu.model", "torch", "nccl", "python", "kernel")
_MAP_ROWS = 24
_SHOWN = 12
_HARDWARE = ("STANDARD-", "EXPECTED-", "XID-", "GPU-", "FLEET-ONE-GPU-TWICE", "SMOKE-", "DCGM-")
_FOLLOWING = 6
_LEAST_SHARE = 0.004  # an odd node is never drawn thinner than this share of the width


def document(answer: FleetAnswer, unfold: bool = False) -> Document:
    """Return the report: headline, unreached nodes, map, drift, findings, kinds of nodes."""
    tone: Tone = {0: "ok", 1: "error"}.get(answer.exit_code, "warning")  # type: ignore[assignment]
    hardware = [one for one in answer.findings if _is_hardware(one)]
    others = [one for one in answer.findings if not _is_hardware(one)]
    blocks = [
        *(Text(Span(f"! {rule} broke: {why}", "warning")) for rule, why in answer.crashed_checks.items()),
        *_unreached(answer),
        *_partial(answer),
        *_map(answer),
        *_findings(hardware),
        *opened(list(_drifts(answer.drift)), "differing fact", unfold, _SHOWN),
        *opened(list(_findings(others)), "finding", unfold),
        *_compared(answer.comparison),
        *_extras(answer),
        *_kinds(answer.groups, unfold),
    ]
    matrix = f"matrix {answer.matrix_version} of {answer.matrix_date}"
    return Document(headline(answer), tone, tuple(blocks), f"envdoctor {answer.tool_version}, {matrix}")


def headline(answer: FleetAnswer) -> str:
    """Return the answer in one line."""
    parts = [counted(answer.node_count, "node")]
    if missing := answer.node_count - answer.reached_count:
        parts.append(f"{missing} unreached")
    if partial := len({node for one in answer.partial for node in one.nodes}):
        parts.append(f"{partial} read in part")
    drifting = [d for d in answer.drift if d.consequence_of is None and not d.accepted]
    parts.append(f"{counted(len(drifting), 'fact')} in drift" if drifting else "no drift")
    severities = Counter(f.finding.severity for f in answer.findings)
    parts += [counted(n, s.value) for s in Severity if (n := severities[s])]
    if answer.collective is not None and answer.collective.outcome != "passed":
        parts.append(f"all-reduce {answer.collective.outcome}")
    if answer.comparison is not None and answer.comparison.changes:
        parts.append(counted(len(answer.comparison.changes), "change"))
    return ", ".join(parts)


def _is_hardware(one: NodeFinding) -> bool:
    """True for an error of a GPU, its links or its node's hardware: they stand before all else."""
    return one.finding.severity is Severity.ERROR and one.finding.id.startswith(_HARDWARE)


def _partial(answer: FleetAnswer) -> Iterator[Block]:
    if rows := tuple(Row(fold(one.nodes), f"{one.part}: {one.reason}") for one in answer.partial):
        yield Section((Span("read in part", "warning"),), (Rows(rows),), "warning")


def _unreached(answer: FleetAnswer) -> Iterator[Block]:
    if rows := tuple(Row(fold(one.nodes), one.reason) for one in answer.unreached):
        yield Section((Span("unreached", "error"),), (Rows(rows),), "error")


def _map(answer: FleetAnswer) -> Iterator[Block]:
    """Yield a bar for each fact that should agree, over all nodes: what is odd is seen at a glance."""
    silent = {node: one.reason for one in answer.unreached for node in one.nodes}
    nodes = sorted([*(n for g in answer.groups for n in g.nodes), *silent], key=natural_key)
    columns = {node: position for position, node in enumerate(nodes)}
    roots = [d for d in answer.drift if d.consequence_of is None]
    drift = {d.fact: d for d in answer.drift}
    told: list[tuple[str, Drift | None, str]] = [(_pooled(d), d, _odd_words(d)) for d in roots]
    told += [(fact, None, words) for fact, words in _agreed(answer, drift)]
    if told and len(nodes) > 1:
        shown = told[:_MAP_ROWS]
        bars = tuple(Bar(f, tuple(_runs(d, silent, columns)), words) for f, d, words in shown)
        key = Text(Span("Marked are nodes that differ from most, and nodes without an answer.", "dim"))
        yield Section("Nodes and facts", (Bars(bars, len(nodes), ends=(nodes[0], nodes[-1])), key))


def _agreed(answer: FleetAnswer, drift: Mapping[str, Drift]) -> Iterator[tuple[str, str]]:
    """Yield the facts people look at first that all nodes share."""
    facts = [group.facts for group in answer.groups[:1]]
    values = {name: v for f in facts for name, v in {**packages(f), **comparable_facts(f)}.items()}
    for name in _ALWAYS_SHOWN:
        if name not in drift and name in values and (told := values[name].text) is not None:
            yield name, told


def _pooled(drift: Drift) -> str:
    return f"{drift.fact} ({drift.pool})" if drift.pool else drift.fact


def _odd_words(drift: Drift) -> str:
    if drift.tied:
        return "as many one way as another"
    odd = [f"{fold(v.nodes)}: {'unknown' if v.value is None else v.value}" for v in drift.values[1:]]
    return "; ".join(odd[:3]) + (f" and {len(odd) - 3} more" if len(odd) > 3 else "")


def _runs(drift: Drift | None, silent: Mapping[str, str], columns: Mapping[str, int]) -> Iterator[Run]:
    yield Run(0, len(columns), "ok", "as most nodes")
    for reason in dict.fromkeys(silent.values()):
        nodes = [node for node in silent if silent[node] == reason]
        yield from _stretches(nodes, "dim", f"no answer: {reason}", columns)
    for value in drift.values[1:] if drift else ():
        tone: Tone = "dim" if drift and drift.accepted else TONES[drift.severity] if drift else ""
        yield from _stretches(value.nodes, tone, _value_words(value), columns)


def _stretches(nodes: Iterable[str], tone: Tone, told: str, columns: Mapping[str, int]) -> Iterator[Run]:
    """Yield the nodes as stretches of neighbours, none thinner than can be seen."""
    length = len(columns)
    least = max(1, length * _LEAST_SHARE)
    positions = sorted(columns[node] for node in nodes)
    starts = [p for i, p in enumerate(positions) if i == 0 or positions[i - 1] != p - 1]
    lasts = [p for i, p in enumerate(positions) if i + 1 == len(positions) or positions[i + 1] != p + 1]
    for first, last in zip(starts, lasts, strict=True):
        width = max(least, last - first + 1)
        start = min(first, length - width)
        yield Run(start, start + width, tone, told)


def _drifts(drift: Sequence[Drift]) -> Iterator[Section]:
    """Yield a section for each fact that differs by itself; those that follow from it are told in a line."""
    following: dict[tuple[str, str | None], list[Drift]] = {}
    for one in drift:
        following.setdefault((one.pool, one.consequence_of), []).append(one)
    for one in drift:
        if one.consequence_of is None:
            yield _drift_section(one, following.get((one.pool, one.fact), []))


def _drift_section(drift: Drift, following: Sequence[Drift]) -> Section:
    tone = TONES[drift.severity]
    accepted = Span("  accepted" if drift.accepted else "", "dim")
    rows = tuple(
        ("→ " * bool(i and not drift.tied) + _value_words(v), fold(v.nodes), f"({len(v.nodes)})")
        for i, v in enumerate(drift.values[:_SHOWN])
    )
    tie = (Text("No value is the most frequent: there is no odd node among them."),) if drift.tied else ()
    blocks: list[Block] = [Text(drift.row.why), *tie, Table(("", "", ""), rows, (2,))]
    if (more := len(drift.values) - _SHOWN) > 0:
        blocks.append(Text(f"and {more} more values"))
    blocks += _following(following)
    blocks.append(Text(Span(drift.row.source, "dim")))
    pool = f" among {drift.pool}" if drift.pool else ""
    title = (Span(tone, tone), "  ", Span(f"{drift.fact} {_verb(drift.fact)}{pool}", "strong"), accepted)
    return Section(title, tuple(blocks), tone)


def _verb(fact: str) -> str:
    return "differ" if fact.partition(" (")[0].endswith("s") and fact != "os" else "differs"


def _following(following: Sequence[Drift]) -> Iterator[Block]:
    """Yield what follows from a difference: a few in a table, the others folded."""
    rows = [(d.fact, _value_words(d.values[0]), _consequence(d)) for d in following]
    for some, folded in ((rows[:_FOLLOWING], False), (rows[_FOLLOWING:], True)):
        table = Table(("with it", "as most", "but"), tuple(some))
        if some:
            yield Fold(f"{len(some)} more that differ with it", (table,)) if folded else table


def _consequence(drift: Drift) -> str:
    if drift.tied and len(drift.values) == 2:
        return _value_words(drift.values[1])
    return _odd_words(drift)


def _value_words(value: DriftValue) -> str:
    return f"unknown: {value.reason}" if value.value is None else value.value


def _findings(findings: Sequence[NodeFinding]) -> Iterator[Section]:
    for one in findings:
        yield finding_section(one.finding, more=f"  on {fold(one.nodes)} ({len(one.nodes)})")


def _compared(comparison: Comparison | None) -> Iterator[Section]:
    if comparison is None:
        return
    rows = [
        (
            Span(c.severity.value, TONES[c.severity]),
            c.fact,
            f"{c.was or 'unknown'} → {c.now or 'unknown'}",
            fold(c.nodes),
        )
        for c in comparison.changes
    ]
    named = {"gone since then": comparison.missing, "new since then": comparison.new}
    changed = counted(len(comparison.changes), "change")
    blocks: list[Block] = [Table(("", "fact", "change", "nodes"), tuple(rows))] if rows else []
    blocks += [Rows(tuple(Row(label, fold(nodes)) for label, nodes in named.items() if nodes))]
    yield Section(f"Against {comparison.file}: {changed}", tuple(blocks))


def _extras(answer: FleetAnswer) -> Iterator[Section]:
    collective = answer.collective
    if collective is not None:
        tones: dict[str, Tone] = {"passed": "ok", "failed": "error"}
        told = (
            Span(collective.outcome, tones.get(collective.outcome, "dim")),
            f"  {collective.reason or ''}",
        )
        yield Section(f"All-reduce over {counted(collective.ranks, 'rank')}", (Text(told),))
    for title, planned in (("Pins", answer.pins), ("Profile", answer.profile)):
        if planned is not None:
            yield Section(title, tuple(Text(line) for line in str(planned.get("told", "")).splitlines()))


def _kinds(groups: Sequence[Group], unfold: bool) -> Iterator[Block]:
    rows = tuple(Row(fold(g.nodes), f"{counted(len(g.nodes), 'node')}: {group_words(g)}") for g in groups)
    shown = len(rows) if unfold else _SHOWN
    if rows:
        yield Section("Kinds of nodes", (Rows(rows[:shown]),))
    if rows[shown:]:
        yield Fold(f"{len(rows) - shown} more kinds of nodes", (Rows(rows[shown:]),))


def group_words(group: Group) -> str:
    """Return what a kind of node is: its GPUs, driver and torch."""
    driver, torch = group.facts.driver.version.get(), group.facts.distribution("torch")
    parts = [plain(row.words) for row in gpu_rows(group.facts)]
    parts += [f"driver {driver}"] if driver is not None else []
    parts += [f"torch {torch.version}"] if torch is not None and torch.version else []
    return "; ".join(parts)
