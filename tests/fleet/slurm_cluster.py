"""A real Slurm of emulated nodes on this machine: one slurmctld and a slurmd for each node."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "salloc", "srun", "sinfo", "squeue", "scontrol", "scancel")
CONFIG = """ClusterName=emulated
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/linear
MpiDefault=none
ReturnToService=1
SlurmdTimeout=600
MessageTimeout={message_s}
NodeName={nodes} NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=1 RealMemory=64
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing_programs() -> list[str]:
    """Return which of Slurm's programs are not installed here."""
    return [
        name for name in PROGRAMS if shutil.which(name) is None and not Path(f"/usr/sbin/{name}").exists()
    ]


@dataclass
class SlurmCluster:
    """A running cluster: its environment, its nodes, and the daemons' processes by node."""

    environ: Mapping[str, str]
    nodes: list[str]
    daemons: dict[str, subprocess.Popen[bytes]]

    def kill_node(self, node: str) -> None:
        """End a node's daemon without telling the controller."""
        self.daemons[node].kill()
        self.daemons[node].wait()

    def freeze_node(self, node: str) -> None:
        """Stop a node's daemon: it takes connections and answers none."""
        self.daemons[node].send_signal(signal.SIGSTOP)

    def ask(self, *command: str) -> str:
        """Return what one of Slurm's programs answers."""
        return subprocess.run(
            command, env=dict(self.environ), capture_output=True, text=True, check=False, timeout=60
        ).stdout


@contextlib.contextmanager
def slurm_cluster(
    folder: Path, count: int, start_s: float = 60.0, message_s: int = 60, more: str = ""
) -> Iterator[SlurmCluster]:
    """Run a cluster of `count` nodes named `node001`… until the block ends; `more` is added to its settings.

    `message_s` is how long Slurm's programs wait for one another.
    """
    names = [f"node{n:03d}" for n in range(1, count + 1)]
    for name in names:
        (folder / "spool" / name).mkdir(parents=True)
    (folder / "state").mkdir()
    port = _free_ports(count + 1)
    config = folder / "slurm.conf"
    config.write_text(
        CONFIG.format(
            host=socket.gethostname(),
            folder=folder,
            port=port,
            nodes=f"node[001-{count:03d}]",
            first=port + 1,
            last=port + count,
            message_s=message_s,
        )
        + more
    )
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin"
    environ = {**os.environ, "SLURM_CONF": str(config), "PATH": path}
    for name in [n for n in environ if n.startswith("SLURM_") and n != "SLURM_CONF"]:
        del environ[name]
    daemons: dict[str, subprocess.Popen[bytes]] = {}
    try:
        daemons["slurmctld"] = _start(["slurmctld", "-D", "-f", str(config)], environ)
        for name in names:
            daemons[name] = _start(["slurmd", "-D", "-N", name, "-f", str(config)], environ)
        cluster = SlurmCluster(environ, names, daemons)
        await_idle(cluster, start_s)
        yield cluster
    finally:
        for daemon in daemons.values():
            daemon.kill()
        for daemon in daemons.values():
            daemon.wait()


def _start(command: list[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    null = subprocess.DEVNULL
    return subprocess.Popen(
        command, env=dict(environ), stdin=null, stdout=null, stderr=null, start_new_session=True
    )


def _free_ports(count: int) -> int:
    """Return the first of `count` ports in a row that nobody listens on."""
    for first in range(20000, 32000, 1000):
        with contextlib.suppress(OSError), socket.socket() as low, socket.socket() as high:
            low.bind(("127.0.0.1", first))
            high.bind(("127.0.0.1", first + count))
            return first
    raise OSError("no ports are free")


def await_idle(cluster: SlurmCluster, start_s: float) -> None:
    """Wait until every node is idle."""
    deadline = time.monotonic() + start_s
    while time.monotonic() < deadline:
        states = set(cluster.ask("sinfo", "--noheader", "--Node", "--format=%N:%T").split())
        if states == {f"{name}:idle" for name in cluster.nodes}:
            return
        time.sleep(0.3)
    raise TimeoutError(f"not all nodes came up: {sorted(states)[:9]}")
