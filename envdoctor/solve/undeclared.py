"""What a release needs though its metadata does not say so: it imports what only another package has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from envdoctor.matrix.flash_wheels import torch_range
from envdoctor.matrix.tables.packages import PackageTraitRow
from envdoctor.solve.nodes import TORCH, Node
from envdoctor.solve.ready_wheels import FLASH_ATTN, rows_for, versions_of
from envdoctor.solve.requests import Request
from envdoctor.solve.versions import spec_mask
from envdoctor.values import NamedTuple


class Undeclared(NamedTuple):
    """Candidates of one package that need some of another, by the row that says so."""

    owners: int
    name: str
    spec: str
    mask: int
    row: str
    source: str


def undeclared(node: Node) -> list[Undeclared]:
    """Return what a package's candidates need beyond their metadata; kept with the node."""
    if node.undeclared is None:
        node.undeclared = list(_read(node))
    return node.undeclared


def _of_ready_wheels(node: Node) -> Iterator[Undeclared]:
    """Yield which torch a release has a ready wheel for, where nothing may be compiled."""
    torch = node.context.node(TORCH)
    if node.name != FLASH_ATTN or torch is None or node.context.options.allow_source:
        return
    for row in rows_for(node.context.matrix, node.context.target):
        if told := versions_of(node.package, row):
            of_torch = torch_range(row), torch.fitting(row)
            yield Undeclared(node.expand(told), TORCH, *of_torch, row.id, row.source)


def _is_served(node: Node, others: Mapping[str, str]) -> bool:
    """True where one that serves as well is asked for, or an extra of the package, which may bring one."""
    asked = node.context.options.asked if others else frozenset()
    return any(one in others or one.startswith(f"{node.name}[") for one in asked)


def _read(node: Node) -> Iterator[Undeclared]:
    yield from _of_ready_wheels(node)
    for row in node.context.needed.get(node.name, ()):
        (name, spec), *others = row.unless.items()
        if _is_served(node, dict(others)):
            continue
        other = node.context.node(name)
        owners = node.expand(spec_mask(row.when[node.name].replace("*", ""), node.package.versions))
        if other is not None and owners:
            mask = other.expand(spec_mask(spec.replace("*", ""), other.package.versions))
            yield Undeclared(owners, name, spec.replace("*", ""), mask, row.id, row.source)


def clients(requests: Sequence[Request], nodes: Mapping[str, Node], bits: Mapping[str, int]) -> Iterator[str]:
    """Yield what is an engine by an extra alone, in a release whose extra was not asked for."""
    plain = {r.name for r in requests if r.name in nodes} - {r.name for r in requests if r.extras}
    for node in (nodes[name] for name in sorted(plain)):
        rows = node.context.matrix.rows(PackageTraitRow)
        row = next((row for row in rows if row.name == node.name and row.engine), None)
        if row and nodes.keys().isdisjoint(row.engine_parts):
            shown = node.shown(bits[node.name])
            yield f"{shown} without an extra is an engine's client alone: ask for {node.name}[all]"
