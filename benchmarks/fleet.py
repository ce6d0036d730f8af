"""What asking and merging many nodes costs, beside what the engine alone needs for as much work.

    python benchmarks/fleet.py merge [COUNT]...
    python benchmarks/fleet.py packages [COUNT]...     (packages of which each differs between two nodes)
    python benchmarks/fleet.py clustershell [COUNT]
    python benchmarks/fleet.py slurm [COUNT]      (needs Slurm's daemons, and root, as do the next two)
    python benchmarks/fleet.py trouble [COUNT]
    python benchmarks/fleet.py kills [COUNT]

ClusterShell's own time is that of a Python on every node that burns the CPU the probe burns, in the same run;
Slurm's that of the same Python doing nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slurm_cluster import SlurmCluster

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "fleet")]
MACHINE = ROOT / "tests" / "machines" / "h200-x2-deepspeed-without-pydantic.json"
FLEET = [sys.executable, "-m", "envdoctor", "fleet", "--quiet", "--format", "json", "--deadline", "120"]
ENGINE = """
import sys
from ClusterShell.Task import task_self
task = task_self()
task.set_info("fanout", int(sys.argv[2]))
task.set_default("distant_workername", "exec")
task.run(sys.argv[3], nodes=sys.argv[1], stdin=False)
"""
FANOUT = 16  # on one machine more only makes the nodes wait for one another


def probe_cpu_s() -> float:
    """Return the CPU seconds of one probe on a node whose Python is `python3`."""
    from envdoctor.fleet.carriage import pack

    cargo = pack(60, None)
    costs = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(["sh", "-c", cargo.command], input=cargo.stdin, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return sorted(costs)[len(costs) // 2]


def burner(cpu_s: float) -> str:
    """Return a Python command that does nothing for so many CPU seconds, its own start included."""
    return f"python3 -I -c 'import time\nwhile time.process_time() < {cpu_s:.4f}: pass'"


def timed(
    command: list[str], environ: Mapping[str, str], expected: tuple[int, ...] = (0,)
) -> tuple[float, float, str]:
    """Return a command's wall seconds, the peak MiB of its own process, and what it said."""
    with tempfile.TemporaryFile("w+") as out:
        started = time.monotonic()
        child = subprocess.Popen(command, stdout=out, env=dict(environ), cwd=ROOT)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode in expected, (command[:4], child.returncode)
        out.seek(0)
        return wall, usage.ru_maxrss / 1024, out.read()


def compare(
    name: str,
    engine: list[str],
    fleet: list[str],
    environ: Mapping[str, str],
    count: int,
    settle: Callable[[], None] = lambda: None,
) -> None:
    """Run the engine alone, the fleet, and the engine again; print times, their ratio and the peak."""
    settle()
    engine_s = [timed(engine, environ, (0, 137))[0]]
    settle()
    fleet_s, peak, said = timed(fleet, environ, (0, 1))
    settle()
    engine_s.append(timed(engine, environ, (0, 137))[0])
    told = json.loads(said)
    print(
        f"{name}: {count} nodes, engine alone {engine_s[0]:.1f} and {engine_s[1]:.1f} s, "
        f"fleet {fleet_s:.1f} s, ratio {fleet_s / (sum(engine_s) / 2):.2f}, peak {peak:.0f} MiB, "
        f"{len(told['groups'])} groups, drift {told['drift']}, unreached {told['unreached']}"
    )


def measure_clustershell(count: int) -> None:
    """Compare on ClusterShell's exec worker, where every node is this machine."""
    nodes = f"node[0001-{count:04d}]"
    engine = [sys.executable, "-c", ENGINE, nodes, str(FANOUT), burner(probe_cpu_s())]
    fleet = [*FLEET, "--hosts", nodes, "--worker", "exec", "--fanout", str(FANOUT)]
    compare("clustershell exec", engine, fleet, os.environ, count)


NOOP = """
import os, sys
from envdoctor.fleet.carriage import Cargo
from envdoctor.fleet.transports.slurm import run_in_slurm
from envdoctor.fleet.transports.slurm_nodes import find_nodes
nodes = find_nodes(os.environ, None)
run_in_slurm(nodes, Cargo(sys.argv[1], b""), lambda reply: None, deadline_s=120)
"""


def measure_slurm(count: int, pairs: int = 3) -> None:
    """Compare with the same Python doing nothing in the same steps, and in one step of srun, by turns."""
    from slurm_cluster import await_idle, slurm_cluster

    print(f"on one node, CPU seconds: the probe {probe_cpu_s():.3f}")
    noop = f"{sys.executable} -I -c pass"
    ways = {
        "one srun": ["srun", "--input=none", f"--nodes={count}", "--ntasks-per-node=1", *noop.split()],
        "no-op": [sys.executable, "-c", NOOP, noop],
        "fleet": [*FLEET, "--slurm", "--python", sys.executable],
    }
    with tree_cpu() as cpu_s, tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        with slurm_cluster(Path(folder), count, start_s=240) as cluster:
            print(f"{count} nodes up after {time.monotonic() - started:.0f} s, {cpu_s():.1f} s CPU")
            for number in range(pairs):
                costs = {}
                for way, command in list(ways.items())[number > 0 :]:  # one srun for all loads a machine most
                    await_idle(cluster, 120)
                    before = cpu_s()
                    wall, _, said = timed(command, cluster.environ, (0, 1, 3))
                    time.sleep(1)
                    costs[way] = (wall, cpu_s() - before)
                    print(f"  {way}: {wall:.1f} s, {costs[way][1]:.1f} s CPU")
                told = json.loads(said)
                ratios = " and ".join(f"{costs['fleet'][i] / costs['no-op'][i]:.2f}" for i in (0, 1))
                print(
                    f"fleet by no-op, wall and CPU: {ratios}; load {os.getloadavg()[0]:.0f}; "
                    f"{[g['nodes'] for g in told['groups']]}, unreached {told['unreached']}, "
                    f"read in part {told['partial']}"
                )


@contextlib.contextmanager
def tree_cpu() -> Iterator[Callable[[], float]]:
    """Yield what tells the CPU seconds of all that this process starts from now on, orphans too."""
    group = Path("/sys/fs/cgroup/cpuacct", f"envdoctor-{os.getpid()}")
    group.mkdir()
    (group / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield lambda: int((group / "cpuacct.usage").read_text()) / 1e9
    finally:
        (group.parent / "cgroup.procs").write_text(str(os.getpid()))
        for _ in range(20):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.5)


SICK = """#!/bin/sh
case ${SLURMD_NODENAME#node} in
  *13) while :; do echo still here; sleep 1; done ;;
  *14) exec sleep 900 ;;
  *51) export SLURMD_NODENAME=node001 ;;
  *52) echo no disk >&2; exit 7 ;;
  *53) echo Welcome; exit 0 ;;
esac
exec %s "$@"
"""
EPILOG = """#!/bin/sh
case $SLURMD_NODENAME in node011) sleep 900 ;; esac
"""


def measure_trouble(count: int, deadline_s: int = 120) -> None:
    """Ask a cluster with ten kinds of trouble: five that Slurm knows, two daemons, sick tasks."""
    from slurm_cluster import slurm_cluster

    with tree_cpu() as cpu_s, tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, text in (("python", SICK % sys.executable), ("epilog", EPILOG)):
            (place / name).write_text(text)
            (place / name).chmod(0o755)
        settings = f"Epilog={place / 'epilog'}\nUnkillableStepTimeout=900\n"
        with slurm_cluster(place, count, start_s=240, message_s=30, more=settings) as cluster:
            jobs = make_trouble(cluster)
            before = cpu_s()
            fleet = [*FLEET, "--slurm", "--python", str(place / "python"), "--deadline", str(deadline_s)]
            wall, peak, said = timed(fleet, cluster.environ, (1,))
            cost = cpu_s() - before
            jobs.terminate()
            jobs.wait()
    told = json.loads(said)
    answered = [group["nodes"] for group in told["groups"]]
    print(
        f"trouble: {count} nodes, {wall:.1f} s and {cost:.1f} s CPU under --deadline {deadline_s}, peak "
        f"{peak:.0f} MiB, answered {answered}, read in part {told['partial']}, load {os.getloadavg()[0]:.0f}"
    )
    for one in told["unreached"]:
        print(f"  {one['nodes']}: {one['reason']}")


def make_trouble(cluster: SlurmCluster) -> subprocess.Popen[bytes]:
    """Drain, take down, reserve, fill and leave completing a node each, end and stop daemons."""
    cluster.ask("scontrol", "update", "NodeName=node005", "State=DRAIN", "Reason=bad DIMM")
    cluster.ask("scontrol", "update", "NodeName=node006", "State=DOWN", "Reason=fan broken")
    cluster.ask("srun", "--nodelist=node011", "true")
    now = ["StartTime=now", "Duration=60", "Users=root"]
    cluster.ask("scontrol", "create", "reservation", "ReservationName=week", *now, "Nodes=node009")
    full = ["srun", "--nodelist=node010", "sleep", "900"]
    job = subprocess.Popen(full, env=dict(cluster.environ), stdin=subprocess.DEVNULL)
    for _ in range(200):
        states = cluster.ask("sinfo", "--noheader", "--Node", "--format=%T", "--nodes=node[010-011]")
        if "allocated" in states and "completing" in states:
            break
        time.sleep(0.1)
    cluster.kill_node("node007")
    cluster.freeze_node("node008")
    return job


def measure_kills(count: int) -> None:
    """End so many runs by a signal at a random moment, half of them while steps run; tell what is left."""
    from slurm_cluster import slurm_cluster

    chance = random.Random(17)
    signals = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
    with tempfile.TemporaryDirectory() as folder, slurm_cluster(Path(folder), 8) as cluster:
        temporary = Path(folder) / "temporary"
        temporary.mkdir()
        environ = {**cluster.environ, "TMPDIR": str(temporary)}
        slow = Path(folder) / "slow"
        slow.write_text("#!/bin/sh\nexec sleep 777.5\n")
        slow.chmod(0o755)
        statuses: dict[str, int] = {}
        for number in range(count):
            command = ["env", "--default-signal=HUP,INT", *FLEET, "--slurm", "--python", str(slow)]
            child = subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.DEVNULL)
            for _ in range(number % 2 * 100):  # every second one not before its steps run
                if child.poll() is not None or cluster.ask("squeue", "--steps", "--noheader"):
                    break
                time.sleep(0.2)
            time.sleep(chance.uniform(0, 3))
            steps = bool(cluster.ask("squeue", "--steps", "--noheader"))
            child.send_signal(chance.choice(signals))
            key = f"{child.wait(60)}{' with steps' if steps else ''}"
            statuses[key] = statuses.get(key, 0) + 1
        for _ in range(60):
            jobs = cluster.ask("squeue", "--noheader")
            if not jobs:
                break
            time.sleep(1)
        ours = "^sleep 777.5|^salloc --job-name=envdoctor|^srun --verbose"
        tasks = subprocess.run(["pgrep", "-f", ours], capture_output=True, text=True, check=False)
        left = [path.name for path in temporary.iterdir()]
    print(
        f"kills: {count}, statuses {statuses}, jobs left {jobs!r}, files {left}, tasks {tasks.stdout.split()}"
    )


def measure_merge(count: int) -> None:
    """Merge so many recorded nodes of eight GPUs, of which one has another driver."""
    with tempfile.TemporaryDirectory() as folder:
        written = write_nodes(Path(folder), count)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall, peak, said = timed([*FLEET, "--facts", folder], os.environ, (0, 1))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        told = json.loads(said)
        odd = next(d["values"][1]["nodes"] for d in told["drift"] if d["fact"] == "driver")
        print(
            f"merge: {count} nodes ({written >> 20} MiB), {wall:.1f} s wall, {cpu:.1f} s CPU, "
            f"peak {peak:.0f} MiB, {len(told['groups'])} kinds, odd one {odd}"
        )


def write_nodes(folder: Path, count: int) -> int:
    """Write the facts of `count` nodes as their probes would; return how many bytes."""
    facts = json.loads(MACHINE.read_bytes())
    first = facts["gpus"]["value"][0]
    facts["gpus"]["value"] = [dict(first, index=index) for index in range(8)]
    written = 0
    for number in range(1, count + 1):
        for gpu in facts["gpus"]["value"]:
            gpu["uuid"] = f"GPU-{number:08x}-{gpu['index']}"
            gpu["memory_free_bytes"] = 150_109_880_320 - number * 4096
        facts["host"]["hostname"] = {"value": f"node{number:05d}", "source": "uname"}
        facts["host"]["memory_available_bytes"] = {"value": 10**12 + number * 4096, "source": "/proc/meminfo"}
        facts["driver"]["version"]["value"] = "570.133.20" if number == count // 2 else "580.159.04"
        facts["variables"] = _variables(number)
        written += (folder / f"node{number:05d}.json").write_text(json.dumps(facts, indent=1))
    return written


def _variables(number: int) -> dict[str, str]:
    """Return what a launcher sets: ranks, addresses, UUIDs, and one that nobody knows, other on each node."""
    return {
        "RANK": str(number * 8),
        "NODE_RANK": str(number),
        "MASTER_ADDR": "10.0.0.1",
        "VLLM_HOST_IP": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
        "CUDA_VISIBLE_DEVICES": f"GPU-{number:08x}-0",
        "HF_HOME": f"/local/node{number:05d}/hf",
        "NCCL_SITE_OWN": f"value-{number}",
    }


def measure_packages(count: int) -> None:
    """Merge four nodes of which one has another version of each of so many packages."""
    facts = json.loads(MACHINE.read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, 5):
            facts["environment"]["distributions"] = {
                f"package-{n}": {"name": f"package-{n}", "source": "x", "version": f"1.{n}.{number // 4}"}
                for n in range(count)
            }
            facts["host"]["hostname"] = {"value": f"node{number}", "source": "uname"}
            for gpu in facts["gpus"]["value"]:
                gpu["uuid"] = f"GPU-{number:08x}-{gpu['index']}"
            Path(folder, f"node{number}.json").write_text(json.dumps(facts, indent=1))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall, peak, said = timed([*FLEET, "--facts", folder, "--select", "XID"], os.environ, (0, 1))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        roots = [d["fact"] for d in json.loads(said)["drift"] if d["consequence_of"] is None]
        cpu = after.ru_utime - before.ru_utime
        print(
            f"packages: {count} differing, {wall:.1f} s wall, {cpu:.1f} s CPU, peak {peak:.0f} MiB, {roots}"
        )


def main() -> None:
    """Measure what the command line names."""
    what, numbers = (sys.argv[1:2] or ["merge"])[0], [int(n) for n in sys.argv[2:]]
    if what == "merge":
        for count in numbers or (100, 1000, 10_000):
            measure_merge(count)
    elif what == "packages":
        for count in numbers or (25_000, 50_000, 100_000):
            measure_packages(count)
    elif what == "clustershell":
        measure_clustershell((numbers or [1024])[0])
    elif what == "trouble":
        measure_trouble((numbers or [512])[0])
    elif what == "kills":
        measure_kills((numbers or [200])[0])
    else:
        measure_slurm((numbers or [512])[0])


if __name__ == "__main__":
    main()
