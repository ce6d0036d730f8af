"""Clusters as the command sees them: how many nodes there are, and a way to run something on all or some."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from envdoctor.errors import InputError
from envdoctor.facts.model import EMPTY
from envdoctor.fleet.carriage import Cargo
from envdoctor.fleet.reply import Take
from envdoctor.fleet.transports import clustershell, kubernetes, ray_cluster, slurm
from envdoctor.fleet.transports.slurm_nodes import SlurmNodes, find_nodes
from envdoctor.values import dataclass


class Cluster(Protocol):
    """Nodes that can be asked; `only` names some of those that answered before."""

    @property
    def count(self) -> int:
        """How many nodes there are."""

    @property
    def partitions(self) -> Mapping[str, frozenset[str]]:
        """The nodes of each partition that the engine has."""

    def ask(self, cargo: Cargo, take: Take, only: Sequence[str] | None = None) -> None:
        """Run the cargo on the nodes and hand over each reply."""


@dataclass(frozen=True, slots=True)
class SshCluster:
    """Hosts reached through ClusterShell."""

    nodes: tuple[str, ...]
    deadline_s: float
    fanout: int
    worker: str
    arguments: tuple[str, ...]
    partitions: Mapping[str, frozenset[str]] = field(default_factory=lambda: EMPTY)

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)

    def ask(self, cargo: Cargo, take: Take, only: Sequence[str] | None = None) -> None:
        """Run the cargo; what is asked of some nodes only runs on all of them at once."""
        clustershell.run_on_hosts(
            only or self.nodes,
            cargo,
            take,
            deadline_s=self.deadline_s,
            fanout=max(self.fanout, len(only or ())),
            worker=self.worker,
            arguments=self.arguments,
        )


@dataclass(frozen=True, slots=True)
class SlurmCluster:
    """Slurm's nodes."""

    nodes: SlurmNodes
    deadline_s: float
    arguments: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many nodes there are, those that Slurm holds back too."""
        return len(self.nodes.asked) + len(self.nodes.held)

    @property
    def partitions(self) -> Mapping[str, frozenset[str]]:
        """The nodes of each partition that is up."""
        return self.nodes.everyone

    def ask(self, cargo: Cargo, take: Take, only: Sequence[str] | None = None) -> None:
        """Run the cargo in steps side by side."""
        nodes = self.nodes if only is None else self.nodes.only(only)
        slurm.run_in_slurm(nodes, cargo, take, deadline_s=self.deadline_s, arguments=self.arguments)


@dataclass(frozen=True, slots=True)
class KubernetesCluster:
    """Kubernetes' nodes."""

    nodes: Mapping[str, str | None]
    settings: kubernetes.JobSettings
    deadline_s: float
    partitions: Mapping[str, frozenset[str]] = field(default_factory=lambda: EMPTY)

    @property
    def count(self) -> int:
        """How many nodes there are, those that are not ready too."""
        return len(self.nodes)

    def ask(self, cargo: Cargo, take: Take, only: Sequence[str] | None = None) -> None:
        """Run the cargo in a Job on each node."""
        nodes = self.nodes if only is None else dict.fromkeys(only)
        kubernetes.run_in_kubernetes(nodes, cargo, take, self.settings, deadline_s=self.deadline_s)


@dataclass(frozen=True, slots=True)
class RayCluster:
    """The nodes of a Ray cluster that one is connected to."""

    nodes: Mapping[str, Mapping[str, Any]]
    deadline_s: float
    partitions: Mapping[str, frozenset[str]] = field(default_factory=lambda: EMPTY)

    @property
    def count(self) -> int:
        """How many nodes there are, dead ones too."""
        return len(self.nodes)

    def ask(self, cargo: Cargo, take: Take, only: Sequence[str] | None = None) -> None:
        """Run the cargo in a task on each node."""
        nodes = self.nodes if only is None else {name: self.nodes[name] for name in only}
        ray_cluster.run_in_ray(nodes, cargo, take, deadline_s=self.deadline_s)


def ssh_cluster(
    hosts: str, *, deadline_s: float, fanout: int, worker: str, arguments: Sequence[str]
) -> SshCluster:
    """Return the hosts of a node set; raises InputError or Unavailable."""
    if worker not in clustershell.WORKERS:
        raise InputError(f"--worker {worker}: one of {', '.join(clustershell.WORKERS)}")
    nodes = tuple(clustershell.parse_hosts(hosts))
    return SshCluster(nodes, deadline_s, fanout, worker, tuple(arguments))


def slurm_cluster(partition: str | None, *, deadline_s: float, arguments: Sequence[str]) -> SlurmCluster:
    """Return the nodes of the allocation or the cluster; raises InputError or Unavailable."""
    nodes = find_nodes(os.environ, partition)
    if not nodes.asked and not nodes.held:
        raise InputError(
            f"--partition {partition}: Slurm has no node there" if partition else "--slurm: no node"
        )
    return SlurmCluster(nodes, deadline_s, tuple(arguments))


def kubernetes_cluster(settings: kubernetes.JobSettings, *, deadline_s: float) -> KubernetesCluster:
    """Return the nodes that a selector leaves; raises InputError or Unavailable."""
    if not settings.image:
        raise InputError("--kubernetes needs --image: the image that holds what is examined, and a Python")
    nodes = kubernetes.find_nodes(settings)
    if not nodes:
        raise InputError(f"--selector {settings.selector}: Kubernetes has no node with it")
    return KubernetesCluster(nodes, settings, deadline_s)


def connected_ray(address: str, *, deadline_s: float) -> RayCluster:
    """Return the nodes of the cluster at an address; raises Unavailable."""
    return RayCluster(ray_cluster.name_nodes(ray_cluster.connect(address, deadline_s)), deadline_s)
