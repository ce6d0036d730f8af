"""Real hosts on one machine: network namespaces joined by a bridge, each with an sshd of its own."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Tue Sep 30 10:13:33 UTC 2025\n"
SSHD = """ListenAddress 10.211.0.{number}
Port 22
HostKey {folder}/host_key
PidFile {folder}/{name}.pid
AuthorizedKeysFile {folder}/key.pub
PermitRootLogin yes
StrictModes no
UsePAM no
PrintMotd no
{more}
"""
SSH = """Host {name}
  HostName 10.211.0.{number}
  User root
  IdentityFile {folder}/key
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""


@dataclass(frozen=True)
class Host:
    """One host: the driver its kernel claims, what replaces every command, whether it is off."""

    driver: str
    forced: str = ""
    dead: bool = False


@dataclass
class Hosts:
    """Running hosts: the hub's namespace to call from, ssh's configuration, and what runs."""

    hub: str
    ssh_config: Path
    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)

    def run(self, command: Sequence[str], timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command among the hosts."""
        return subprocess.run(
            ["ip", "netns", "exec", self.hub, *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )


def why_not() -> str | None:
    """Return why hosts cannot be made here, None when they can."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [name for name in ("ip", "ssh", "ssh-keygen") if shutil.which(name) is None]
    if missing or not Path("/usr/sbin/sshd").exists():
        return f"needs {', '.join([*missing, 'sshd'])}"
    probe = f"edtest{secrets.token_hex(2)}"
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False).returncode != 0:
        return "network namespaces cannot be made here"
    subprocess.run(["ip", "netns", "delete", probe], check=True)
    return None


@contextlib.contextmanager
def ssh_hosts(folder: Path, hosts: dict[str, Host]) -> Iterator[Hosts]:
    """Run the hosts until the block ends; their addresses exist in the namespaces made here alone."""
    tag = secrets.token_hex(2)
    made = Hosts(f"ed{tag}hub", folder / "ssh_config")
    for key in ("key", "host_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    try:
        _make_hub(made)
        for number, (name, host) in enumerate(hosts.items(), 1):
            _make_host(made, f"ed{tag}{name}", number)
            with made.ssh_config.open("a") as config:
                config.write(SSH.format(name=name, number=number, folder=folder))
            if not host.dead:
                _start_sshd(made, f"ed{tag}{name}", name, host, number, folder)
        _await_ports(made, [n for n, host in enumerate(hosts.values(), 1) if not host.dead])
        yield made
    finally:
        for daemon in made.daemons:
            daemon.kill()
            daemon.wait()
        for namespace in made.namespaces:
            pids = subprocess.run(
                ["ip", "netns", "pids", namespace], capture_output=True, text=True, check=False
            )
            for pid in pids.stdout.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), 9)
            subprocess.run(["ip", "netns", "delete", namespace], check=False)


def _ip(namespace: str, command: str) -> None:
    subprocess.run(["ip", "-n", namespace, *command.split()], check=True)


def _make_hub(made: Hosts) -> None:
    subprocess.run(["ip", "netns", "add", made.hub], check=True)
    made.namespaces.append(made.hub)
    _ip(made.hub, "link set lo up")
    _ip(made.hub, "link add hub type bridge")
    _ip(made.hub, "addr add 10.211.0.254/24 dev hub")
    _ip(made.hub, "link set hub up")


def _make_host(made: Hosts, namespace: str, number: int) -> None:
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    made.namespaces.append(namespace)
    _ip(made.hub, f"link add h{number} type veth peer name eth0 netns {namespace}")
    _ip(made.hub, f"link set h{number} master hub up")
    _ip(namespace, "link set lo up")
    _ip(namespace, f"addr add 10.211.0.{number}/24 dev eth0")
    _ip(namespace, "link set eth0 up")


def _start_sshd(made: Hosts, namespace: str, name: str, host: Host, number: int, folder: Path) -> None:
    more = f"ForceCommand {host.forced}" if host.forced else ""
    config = folder / f"{name}.sshd"
    config.write_text(SSHD.format(number=number, folder=folder, name=name, more=more))
    (folder / f"{name}.driver").write_text(VERSION.format(driver=host.driver))
    # The mounts are seen by this host alone: `ip netns exec` gives it a mount namespace of its own.
    script = (
        "mount -t tmpfs fake /proc/driver && mkdir /proc/driver/nvidia && "
        f"cp {folder}/{name}.driver /proc/driver/nvidia/version && exec /usr/sbin/sshd -D -e -f {config}"
    )
    command = ["ip", "netns", "exec", namespace, "sh", "-c", script]
    with (folder / f"{name}.log").open("wb") as log:
        made.daemons.append(subprocess.Popen(command, stdout=log, stderr=log))


def _await_ports(made: Hosts, numbers: Sequence[int], limit_s: float = 20.0) -> None:
    knock = "import socket,sys; socket.create_connection((sys.argv[1], 22), 2)"
    deadline = time.monotonic() + limit_s
    for number in numbers:
        while made.run(["python3", "-c", knock, f"10.211.0.{number}"]).returncode != 0:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no sshd on host {number} of {socket.gethostname()}")
            time.sleep(0.2)
