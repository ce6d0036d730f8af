"""Nodes that cannot be what they say: one GPU or one name on two of them, or a clock that is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.fleet.answer import NodeFinding
from envdoctor.fleet.nodeset import fold, in_order
from envdoctor.fleet.own import Own

SKEW_S = 2.0
"""Whole seconds are read; what is less than two apart is no skew."""
_NVML = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html"


def find_doubles(own: Mapping[str, Own]) -> Iterator[NodeFinding]:
    """Yield what two nodes cannot both have: GPUs, then names where no GPU tells it."""
    sharing: dict[tuple[str, ...], list[str]] = {}
    for uuid, some in _owners((uuid, node) for node, one in own.items() for uuid in set(one.uuids)):
        if len(some) > 1:
            sharing.setdefault(in_order(some), []).append(uuid)
    for nodes, uuids in sharing.items():
        yield _gpu_finding(nodes, uuids)
    told = {node for nodes in sharing for node in nodes}
    for name, some in _owners((one.hostname, node) for node, one in own.items() if one.hostname):
        if len(some) > 1 and not told.issuperset(some):
            yield _name_finding(name, in_order(some))


def _owners(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for thing, node in pairs:
        found.setdefault(thing, []).append(node)
    yield from found.items()


def _gpu_finding(nodes: tuple[str, ...], uuids: list[str]) -> NodeFinding:
    shown = uuids[0] if len(uuids) == 1 else f"{uuids[0]} and {len(uuids) - 1} more"
    return NodeFinding(
        Finding(
            id="FLEET-ONE-GPU-TWICE",
            severity=Severity.ERROR,
            summary=f"{len(nodes)} nodes report the same GPU: {shown}.",
            cause="A GPU's UUID is its own: one machine answers under several names, or facts were copied.",
            evidence=(Evidence("gpu.uuid", shown, fold(nodes)),),
            remedies=(
                Remedy("See which machine each name leads to (DNS, Slurm's NodeAddr, ssh's configuration)."),
            ),
            sources=(_NVML,),
        ),
        nodes,
    )


def _name_finding(name: str, nodes: tuple[str, ...]) -> NodeFinding:
    return NodeFinding(
        Finding(
            id="FLEET-ONE-NAME-TWICE",
            severity=Severity.WARNING,
            summary=f"{len(nodes)} nodes call themselves {name}.",
            cause="One machine answers under several names, or machines were made from one image and "
            "kept its name: ranks that meet by name reach the wrong one.",
            evidence=(Evidence("hostname", name, fold(nodes)),),
            remedies=(Remedy("Give each machine its own name."),),
            certainty=Certainty.CERTAIN,
            sources=("https://man7.org/linux/man-pages/man2/gethostname.2.html",),
        ),
        nodes,
    )


def find_skew(own: Mapping[str, Own], asked: Mapping[str, tuple[float, float]]) -> Iterator[NodeFinding]:
    """Yield nodes whose clock told a time before they were asked, or after they had answered."""
    found: dict[str, list[str]] = {}
    for node, (before, after) in asked.items():
        time_s = own[node].time_s if node in own else None
        if time_s is None:
            continue
        if time_s + SKEW_S < before:
            found.setdefault(f"at least {_span(before - time_s - 1)} behind", []).append(node)
        elif time_s - SKEW_S > after:
            found.setdefault(f"at least {_span(time_s - after)} ahead", []).append(node)
    for words, nodes in found.items():
        where = in_order(nodes)
        yield NodeFinding(
            Finding(
                id="FLEET-CLOCK-SKEW",
                severity=Severity.ERROR,
                summary=f"The clock is {words} of this machine's.",
                cause="Logs cannot be put in order, certificates and Kerberos tickets are refused, and "
                "shared files seem to come from the future.",
                evidence=(Evidence("time_s", words, fold(where)),),
                remedies=(Remedy("Have a time server keep it.", ("chronyc tracking",)),),
                sources=("https://man7.org/linux/man-pages/man2/adjtimex.2.html",),
            ),
            where,
        )


def _span(seconds: float) -> str:
    """Return a time in its largest whole unit, so that nodes a little apart are told together."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
