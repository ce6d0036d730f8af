"""States of a GPU machine that hide, limit or break, each set up in turn: is it named, and with what to type?

    python benchmarks/this_machine.py [--python PYTHON_WITH_TORCH] [--only GLOB]

Beside each state stand the finding that is shown first, what torch itself says there, and what to type. The
states of cards need a GPU, those of /dev/shm `unshare` (root, or user namespaces); what cannot be set up is
said. States that are sound must have nothing named. No setting of the GPU is changed: the exclusive mode is
written into the facts that were probed while another process held the card.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HOLD = """
import sys, torch
free, total = torch.cuda.mem_get_info(0)
want = free - int(float(sys.argv[1]) * 2**30) if sys.argv[2] == "leave" else int(total * float(sys.argv[1]))
held = []
while want > 2**26:
    size = min(want, 2**30)
    try:
        held.append(torch.empty(size, dtype=torch.uint8, device="cuda:0"))
    except torch.OutOfMemoryError:
        break
    want -= size
print("held", flush=True)
sys.stdin.read()
"""
TRUTH = """
import torch
try:
    count = torch.cuda.device_count()
    torch.ones(2**29, dtype=torch.uint8, device="cuda").sum().item() if count else None
    print(f"torch sees {count}, computes" if count else "torch sees 0")
except Exception as error:
    print(f"torch: {type(error).__name__}: {str(error).splitlines()[0][:70]}")
"""
NO_UUID = "GPU-00000000-0000-0000-0000-00000000dead"


@dataclass(frozen=True)
class State:
    """A state: variables, a wrapping command, memory that another process holds, and what must name it.

    With nothing `expected` the state is sound, and none of what names the others may be found.
    """

    name: str
    expected: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)
    wrapper: tuple[str, ...] = ()
    hold: tuple[str, str] | None = None
    needs: str | None = None


def shm(options: str) -> tuple[str, ...]:
    """Return the command that runs another with its own /dev/shm."""
    unshare = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-rm")
    return (*unshare, "sh", "-c", f'mount -t tmpfs -o {options} tmpfs /dev/shm && exec "$@"', "sh")


def no_shm() -> tuple[str, ...]:
    """Return the command that runs another with a /dev without shm; as root alone (device nodes)."""
    script = (
        "d=$(mktemp -d) && mount -t tmpfs -o dev tmpfs $d && cp -a /dev/null /dev/zero /dev/full /dev/random "
        "/dev/urandom $d/ && { cp -a /dev/nvidia* $d/ 2>/dev/null; ln -s /proc/self/fd $d/fd; "
        'mount --rbind $d /dev && exec "$@"; }'
    )
    return ("unshare", "-m", "sh", "-c", script, "sh")


STATES = (
    State("named by number", (), {"CUDA_VISIBLE_DEVICES": "0"}),
    State("hidden by number", ("GPU-HIDDEN",), {"CUDA_VISIBLE_DEVICES": "9"}),
    State("hidden by UUID", ("GPU-HIDDEN",), {"CUDA_VISIBLE_DEVICES": NO_UUID}),
    State("hidden by MIG UUID", ("GPU-HIDDEN",), {"CUDA_VISIBLE_DEVICES": f"MIG{NO_UUID[3:]}"}),
    State("hidden by MIG, old form", ("GPU-HIDDEN",), {"CUDA_VISIBLE_DEVICES": f"MIG-{NO_UUID}/1/0"}),
    State("hidden, empty", ("GPU-HIDDEN",), {"CUDA_VISIBLE_DEVICES": ""}),
    State("hidden, -1", ("GPU-HIDDEN",), {"CUDA_VISIBLE_DEVICES": "-1"}),
    State("hidden, named twice", ("GPU-HIDDEN",), {"CUDA_VISIBLE_DEVICES": "0,0"}),
    State("full card", ("GPU-FULL",), hold=("0.4", "leave")),
    State("busy card", ("GPU-BUSY",), hold=("0.6", "share")),
    State(
        "arch list 9.0a, deepspeed",
        ("DS-ARCH-LIST-SUFFIX",),
        {"TORCH_CUDA_ARCH_LIST": "9.0a"},
        needs="deepspeed",
    ),
    State("arch list of older cards", ("ARCH-LIST-LACKS-CARD",), {"TORCH_CUDA_ARCH_LIST": "5.2"}),
    State("arch list of two, none fits", ("ARCH-LIST-LACKS-CARD",), {"TORCH_CUDA_ARCH_LIST": "8.0;8.6"}),
    State("arch list of later cards", ("ARCH-LIST-LACKS-CARD",), {"TORCH_CUDA_ARCH_LIST": "12.0+PTX"}),
    State("arch list, older with PTX", (), {"TORCH_CUDA_ARCH_LIST": "8.0+PTX"}),
    State("arch list of the card", (), {"TORCH_CUDA_ARCH_LIST": "9.0"}),
    State("arch list that is none", ("ARCH-LIST-WRONG",), {"TORCH_CUDA_ARCH_LIST": "sm_90"}),
    State(
        "allocator, unreadable",
        ("ALLOC-CONF-WRONG",),
        {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:true"},
    ),
    State("/dev/shm not there", ("SHM-MISSING",), wrapper=no_shm()),
    State("/dev/shm closed", ("SHM-MISSING",), wrapper=shm("ro,size=4k")),
    State("/dev/shm of 64 MB", ("SHM-SMALL", "SHM-SMALL-ONE-GPU"), wrapper=shm("size=64m")),
    State("NCCL on no interface", ("NCCL-IFNAME-ASTRAY",), {"NCCL_SOCKET_IFNAME": "nosuch0"}),
    State("CUDA_HOME nowhere", ("CUDA-HOME-ASTRAY",), {"CUDA_HOME": "/nowhere"}),
    State("LD_PRELOAD nowhere", ("LD-PRELOAD-ASTRAY",), {"LD_PRELOAD": "/nowhere/lib.so"}),
    State(
        "library path of stubs", ("DRIVER-STUB-LIBRARY",), {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64/stubs"}
    ),
    State("bitsandbytes override", ("BNB-OVERRIDE",), {"BNB_CUDA_VERSION": "100"}, needs="bitsandbytes"),
    State(
        "path of another Python",
        ("PYTHONPATH-OTHER-PYTHON",),
        {"PYTHONPATH": "/x/python3.1/site-packages"},
    ),
    State("offline", ("HF-OFFLINE-HUB",), {"HF_HUB_OFFLINE": "1"}),
    State("PTX forced", ("CUDA-PTX-FORCED",), {"CUDA_FORCE_PTX_JIT": "1"}),
)


IDS = frozenset(id_ for state in STATES for id_ in state.expected)


def main() -> int:
    """Print a line a state; 1 when one is not named, or something is named on a sound machine."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="*")
    args = parser.parse_args()
    missed = 0
    for state in (State("plain", ()), *STATES):
        if fnmatch.fnmatchcase(state.name, args.only):
            missed += not shown(state, args.python)
    for name, check in (("exclusive, taken", exclusive), ("full card, smoke", smoke)):
        if fnmatch.fnmatchcase(name, args.only):
            missed += not line(name, *check(args.python))
    return 1 if missed else 0


def shown(state: State, python: str) -> bool:
    """Set a state up, print what is said there; False when it is not named."""
    if reason := unfit(state, python):
        return line(state.name, None, reason)
    try:
        with holder(state, python):
            found, said = diagnose(python, state), truth(python, state)
    except RuntimeError as error:
        return line(state.name, None, str(error))
    named = [id_ for id_ in state.expected or IDS if id_ in found]
    first = f"first {next(iter(found), 'nothing')}; {said}"
    if not state.expected:
        return line(state.name, not named, f"sound: {', '.join(named) or 'nothing of it'} named; {first}")
    typed = found[named[0]] if named else ""
    return line(state.name, bool(named), f"{', '.join(named)}; {first}; $ {typed}")


def line(name: str, right: bool | None, said: str) -> bool:
    """Print a state's line; None stands for what could not be set up, which is no miss."""
    print(f"{name:<28} {'not set up:' if right is None else 'named' if right else 'NOT NAMED'} {said}")
    return right is not False


def exclusive(python: str) -> tuple[bool | None, str]:
    """Judge the facts of a held card with its mode written as exclusive: the mode itself is left alone."""
    state = State("exclusive", ("GPU-EXCLUSIVE-TAKEN",), hold=("0.6", "share"))
    try:
        with holder(state, python):
            done = run([sys.executable, "-m", "envdoctor", "probe", "--python", python])
    except RuntimeError as error:
        return None, str(error)
    facts = json.loads(done.stdout)
    for gpu in facts["gpus"]["value"]:
        gpu["compute_mode"] = "Exclusive_Process"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "facts.json")
        path.write_text(json.dumps(facts))
        found = findings(["--from", str(path)])
    named = state.expected[0] in found
    return (
        named,
        f"{state.expected[0]}; first {next(iter(found), 'nothing')}; $ {found.get(state.expected[0])}",
    )


def smoke(python: str) -> tuple[bool | None, str]:
    """Run an op on a card that another process fills: its reason must say who holds it."""
    command = [sys.executable, "-m", "envdoctor", "smoke", "--python", python, "--format", "json"]
    try:
        with holder(State("full", (), hold=("0.4", "leave")), python) as pid:
            done = run([*command, "--select", "matmul.bf16"])
    except RuntimeError as error:
        return None, str(error)
    said = "; ".join(f"{one['outcome']}: {one['reason']}" for one in json.loads(done.stdout)["results"])
    return f"PID {pid}" in said, f"held by {pid}, said: {said[:160]}; exit {done.returncode}"


def unfit(state: State, python: str) -> str | None:
    """Return why a state cannot be set up here."""
    if (
        state.needs
        and run([python, "-c", f"import importlib.metadata as m; m.version('{state.needs}')"]).returncode
    ):
        return f"{state.needs} is not installed"
    if state.wrapper and (shutil.which("unshare") is None or run([*state.wrapper, "true"]).returncode):
        return "no mount namespace may be made"
    return None


@contextmanager
def holder(state: State, python: str) -> Iterator[int]:
    """Hold memory in another process, whose id is given; raises RuntimeError when it cannot."""
    if state.hold is None:
        yield 0
        return
    pipe = subprocess.PIPE
    child = subprocess.Popen(
        [python, "-c", HOLD, *state.hold], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )
    try:
        assert child.stdout is not None
        if child.stdout.readline().strip() != "held":
            raise RuntimeError("no memory of a GPU could be taken")
        yield child.pid
    finally:
        child.communicate(timeout=60)


def diagnose(python: str, state: State) -> dict[str, str]:
    """Return the findings of a state."""
    return findings(["--python", python], state)


def findings(arguments: Sequence[str], state: State | None = None) -> dict[str, str]:
    """Return the findings' first commands by id, as they are shown; a traceback is an answer of its own."""
    command = [sys.executable, "-m", "envdoctor", "diagnose", "--format", "json", *arguments]
    done = run([*(state.wrapper if state else ()), *command], state.variables if state else {})
    if not done.stdout.startswith("{"):
        return {f"NO-ANSWER ({(done.stderr.strip().splitlines() or ['nothing'])[-1][:100]})": ""}
    told = json.loads(done.stdout)["findings"]
    return {f["id"]: next((c for r in f["remedies"] for c in r["commands"]), "") for f in told}


def truth(python: str, state: State | None = None) -> str:
    """Return what torch says in that state."""
    done = run([*(state.wrapper if state else ()), python, "-c", TRUTH], state.variables if state else {})
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["nothing"]
    return lines[-1][:110]


def run(command: Sequence[str], variables: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end with more variables."""
    environ = {**os.environ, **(variables or {})}
    return subprocess.run(
        command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )


if __name__ == "__main__":
    sys.exit(main())
