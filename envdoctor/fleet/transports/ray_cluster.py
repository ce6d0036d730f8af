"""Ray: one task on every living node of a cluster that exists already, such as verl and OpenRLHF train in."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from envdoctor.errors import Unavailable
from envdoctor.fleet.carriage import Cargo, Frames
from envdoctor.fleet.nodeset import node_name
from envdoctor.fleet.reply import Reply, Take
from envdoctor.fleet.transports.reasons import reply_of

_T = TypeVar("_T")


def connect(address: str, limit_s: float) -> list[Mapping[str, Any]]:
    """Return the nodes of the cluster at `address`, dead ones too; raises Unavailable.

    From then on what Ray and its library print on standard output goes to standard error.
    """
    try:
        import ray
    except ModuleNotFoundError:
        raise Unavailable("--ray needs Ray: pip install 'envdoctor-gpu[ray]'") from None
    keep_stdout_ours()
    nodes = _within(limit_s, lambda: _nodes(ray, address))
    if nodes is None:
        raise Unavailable(f"--ray {address}: no answer within {limit_s:g} s")
    if isinstance(nodes, Exception):
        said = (str(nodes).splitlines() or ["no word"])[0]
        raise Unavailable(f"--ray {address}: {said[:200]}")
    return nodes


def _nodes(ray: Any, address: str) -> list[Mapping[str, Any]]:
    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    return list(ray.nodes())


def _within(limit_s: float, call: Callable[[], _T]) -> _T | Exception | None:
    """Return what a call gives or raises, None when it does neither in time; it is left behind then."""
    given: list[_T | Exception] = []

    def run() -> None:
        try:
            given.append(call())
        except Exception as error:
            given.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit_s)
    return given[0] if given else None


def keep_stdout_ours() -> None:
    """Give `sys.stdout` a descriptor of its own; what others write to descriptor 1 goes to standard error."""
    sys.stdout.flush()
    ours = os.dup(1)
    os.dup2(2, 1)
    raw = io.BufferedWriter(io.FileIO(ours, "w"))
    sys.stdout = io.TextIOWrapper(raw, encoding=sys.stdout.encoding, errors=sys.stdout.errors)


def name_nodes(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the nodes by the name given to `ray start`, else the host's; equal ones by their ids too."""
    named: dict[str, Mapping[str, Any]] = {}
    for node in nodes:
        told = str(node.get("NodeName") or node.get("NodeManagerHostname") or node["NodeID"])
        name = node_name(told)
        named[name if name not in named else f"{name}-{node['NodeID'][:8]}"] = node
    return named


def run_in_ray(
    nodes: Mapping[str, Mapping[str, Any]], cargo: Cargo, take: Take, *, deadline_s: float
) -> None:
    """Run the cargo on every living node and hand over each reply."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    waiting: dict[Any, str] = {}
    run = ray.remote(num_cpus=0, max_retries=0)(_runner())
    for name, node in nodes.items():
        if not node["Alive"]:
            said = node.get("DeathReasonMessage") or "no reason"
            take(Reply(name, None, f"Ray says it is dead: {said}"))
            continue
        place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        task = run.options(scheduling_strategy=place).remote(cargo.command, cargo.stdin, deadline_s)
        waiting[task] = name
    deadline = time.monotonic() + deadline_s
    while waiting and (left := deadline - time.monotonic()) > 0:
        ready, _ = ray.wait(list(waiting), num_returns=1, timeout=left)
        for task in ready:
            take(_reply(waiting.pop(task), task))
    for task, name in waiting.items():
        ray.cancel(task, force=True)
        take(Reply(name, None, f"no answer within {deadline_s:g} s"))


def _reply(name: str, task: Any) -> Reply:
    import ray

    try:
        status, output, complaint = ray.get(task)
    except ray.exceptions.RayError as error:
        return Reply(name, None, f"Ray could not run the probe: {str(error).splitlines()[0][:160]}")
    frames = Frames()
    for line in output.splitlines():
        frames.add(line)
    return reply_of(name, frames, status, complaint)


def _runner() -> Callable[[str, bytes, float], tuple[int, bytes, bytes]]:
    """Return what runs on a node: a local function, which Ray sends by value, for nodes lack this package."""

    def run_there(command: str, stdin: bytes, limit_s: float) -> tuple[int, bytes, bytes]:
        import subprocess  # noqa: TID251 (on the node, where our own starter of children is not)

        argv = ["sh", "-c", command]
        try:
            done = subprocess.run(argv, input=stdin, capture_output=True, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            return 142, b"", b""
        return done.returncode, done.stdout[: 64 << 20], done.stderr[-4096:]

    return run_there
