"""ssh to many nodes at once through ClusterShell (or its other workers), each with its own deadline."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from envdoctor.errors import InputError, Unavailable
from envdoctor.fleet.carriage import Cargo, Frames
from envdoctor.fleet.reply import Reply, Take
from envdoctor.fleet.transports.reasons import reply_of

WORKERS = ("ssh", "rsh", "pdsh", "exec")
_CONNECT_S = 10.0
_KEPT_COMPLAINT = 600


def parse_hosts(text: str) -> list[str]:
    """Return the nodes of a ClusterShell node set (ranges, `@groups`); raises InputError or Unavailable."""
    nodeset, _ = _load()
    try:
        nodes = [str(node) for node in nodeset.NodeSet(text)]
    except (nodeset.NodeSetException, nodeset.RangeSetParseError) as error:
        raise InputError(f"--hosts {text}: {error}") from None
    if not nodes:
        raise InputError(f"--hosts {text}: no node in it")
    return nodes


def _load() -> tuple[Any, Any]:
    try:
        from ClusterShell import NodeSet, Task
    except ModuleNotFoundError:
        raise Unavailable("--hosts needs ClusterShell: pip install 'envdoctor-gpu[fleet]'") from None
    return NodeSet, Task


def run_on_hosts(
    nodes: Sequence[str],
    cargo: Cargo,
    take: Take,
    *,
    deadline_s: float,
    fanout: int,
    worker: str = "ssh",
    arguments: Sequence[str] = (),
) -> None:
    """Run the cargo on every node and hand over each reply; a node past `deadline_s` is given up.

    `arguments` are handed to ssh.
    """
    _, tasks = _load()
    task = tasks.task_self()
    handler = _handler(take, deadline_s)
    for name in ("stdout_msgtree", "stderr_msgtree"):
        task.set_default(name, False)
    task.set_default("distant_workername", worker)
    task.set_info("connect_timeout", min(_CONNECT_S, deadline_s))
    task.set_info("fanout", fanout)
    task.set_info("ssh_options", shlex.join(arguments))
    running = task.shell(
        _escaped(cargo.command, worker),
        nodes=",".join(nodes),
        handler=handler,
        timeout=deadline_s,
        stderr=True,
        stdin=True,
        tree=False,
    )
    running.write(cargo.stdin)
    running.set_write_eof()
    try:
        task.resume()
    except KeyboardInterrupt:
        task.abort(kill=True)
        raise
    handler.finish(nodes)


def _escaped(command: str, worker: str) -> str:
    """Return a command without what ClusterShell's local worker would fill in."""
    return command.replace("%", "%%") if worker == "exec" else command


def _handler(take: Take, deadline_s: float) -> Any:
    from ClusterShell.Event import EventHandler

    class Handler(EventHandler):  # type: ignore[misc]
        """Gathers each node's lines and hands its reply over when it hangs up."""

        def __init__(self) -> None:
            super().__init__()
            self._frames: dict[str, Frames] = {}
            self._complaints: dict[str, bytes] = {}
            self._replied: set[str] = set()

        def ev_read(self, worker: Any, node: Any, sname: str, msg: bytes) -> None:
            if sname == worker.SNAME_STDOUT:
                self._frames.setdefault(str(node), Frames()).add(msg)
            else:
                told = self._complaints.get(str(node), b"") + msg + b"\n"
                self._complaints[str(node)] = told[-_KEPT_COMPLAINT:]

        def ev_hup(self, worker: Any, node: Any, rc: int | None) -> None:
            name = str(node)
            frames = self._frames.pop(name, None) or Frames()
            self._replied.add(name)
            take(reply_of(name, frames, rc, self._complaints.pop(name, b"")))

        def finish(self, nodes: Sequence[str]) -> None:
            """Hand over those that never hung up."""
            for name in nodes:
                if name not in self._replied:
                    frames = self._frames.pop(name, None) or Frames()
                    if frames.complete:
                        take(reply_of(name, frames, 0, b""))
                    else:
                        take(Reply(name, None, f"no answer within {deadline_s:g} s"))

    return Handler()
