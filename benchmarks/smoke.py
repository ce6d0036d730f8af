"""Measures smokes: what isolation costs, whether faults are caught, and whether anything is left behind.

    python benchmarks/smoke.py --python PATH [--device cpu] --sections cost,mutations,faults,gpu-faults,kills

Each section prints one JSON line. `faults` and `kills` need no torch (they run on a stand-in for it).
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLUGINS = ROOT / "tests" / "smokes" / "plugins"
FAKE_TORCH = ROOT / "tests" / "smokes" / "fake_torch"
RECORDED = (
    "matmul.bf16,matmul.fp16,triu.bf16,tril.bf16,matmul.fp8,matmul.int8,sdpa.*,bnb.nf4,bnb.linear4bit,"
    "bnb.llm_int8,bnb.adamw8bit,triton.add,compile.inductor,nccl.all_reduce"
)
BAD = {"failed", "crashed", "timeout"}
EXPECTED = {
    "segv": ("crashed", "SIGSEGV"), "abort": ("crashed", "SIGABRT"), "exit": ("crashed", "status 3"),
    "exit_zero": ("crashed", "status 0"),
    "loop": ("timeout", "first call"), "spin": ("timeout", "first call"),
    "kill": ("crashed", "SIGKILL"), "pipe": ("crashed", "pipe"), "rubbish": ("crashed", "rubbish"),
    "raises": ("failed", "no kernel image"), "wrong": ("failed", "is off by"), "nan": ("failed", "NaN"),
    "shape": ("failed", "shape"), "unwritten": ("failed", "NaN"), "chatter": ("passed", ""),
    "flood": ("passed", ""), "victim": ("passed", ""), "last": ("passed", ""),
    "missing_library": ("skipped", "not installed"), "broken_library": ("failed", "does not import"),
}  # fmt: skip


def environment(*folders):
    """Return our environment with these folders on the path of Python."""
    path = os.pathsep.join([str(ROOT), *map(str, folders), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)}


def smoke(args, *options, env=None, timeout=400):
    """Run `envdoctor smoke` and return its wall time, its status and its JSON."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "envdoctor", "smoke", "--python", args.python, "--format", "json"]
    device = ["--device", args.device] if args.device else []
    done = subprocess.run(
        [*command, *device, *options],
        env=env or environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    wall = time.perf_counter() - start
    return wall, done.returncode, json.loads(done.stdout) if done.stdout else {"error": done.stderr}


def plain(args, mode, *rest):
    """Run `smoke_plain.py` with caches of its own and return its answer."""
    command = [args.python, str(ROOT / "benchmarks" / "smoke_plain.py"), mode, *rest, args.device or "cuda"]
    with tempfile.TemporaryDirectory() as folder:
        caches = {
            "TMPDIR": folder,
            "TRITON_CACHE_DIR": f"{folder}/t",
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/i",
        }
        env = {**os.environ, **caches, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        done = subprocess.run(command, env=env, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr[-2000:]}


def every_op(args):
    """Run every op once."""
    wall, code, report = smoke(args, "--select", "all")
    return {"wall_s": wall, "exit": code, "report": report}


def cost(args):
    """Wall time of a run against imports, CUDA start and first calls in one plain process, alternating."""
    needs = "bitsandbytes"
    plain(args, "times", RECORDED, needs)
    rounds = []
    for _ in range(args.rounds):
        own, bare = plain(args, "times", RECORDED, needs), plain(args, "times", "-", needs)
        recorded, code, _ = smoke(args, "--select", RECORDED)
        quick, quick_code, _ = smoke(args)
        rounds.append({
            "plain": own, "recorded_s": recorded, "recorded_ratio": recorded / own["sum_s"], "exit": code,
            "bare": bare, "quick_s": quick, "quick_ratio": quick / bare["sum_s"], "quick_exit": quick_code,
        })  # fmt: skip
    ratios = {key: [r[key] for r in rounds] for key in ("recorded_ratio", "quick_ratio")}
    return {"median": {key: statistics.median(found) for key, found in ratios.items()}, "rounds": rounds}


def quick_cost(args):
    """As `cost`, of the quick set alone."""
    plain(args, "times", "-", "bitsandbytes")
    rounds = []
    for _ in range(args.rounds):
        bare, (quick, code, _) = plain(args, "times", "-", "bitsandbytes"), smoke(args)
        rounds.append({"bare": bare, "quick_s": quick, "ratio": quick / bare["sum_s"], "exit": code})
    return {"median": statistics.median(r["ratio"] for r in rounds), "rounds": rounds}


def timeline(args):
    """When, in seconds from the start, the quick set's workers came to each of their phases."""
    sys.path.insert(0, str(ROOT))
    from envdoctor.smokes import run_smokes

    start, moments = time.perf_counter(), []

    def note(done, total, doing):
        if not moments or moments[-1][1] != doing:
            moments.append((round(time.perf_counter() - start, 3), doing))

    report = run_smokes(args.python, None, args.device, progress=note)
    moments.append((round(time.perf_counter() - start, 3), "end"))
    return {"exit": report.exit_code, "moments": moments}


def mutations(args):
    """Spoil every output of every op in turn."""
    return plain(args, "mutations", args.ops)


def tally(reports, expected):
    """Count, for each fault, the runs whose verdict and reason were right; keep the first wrong one."""
    right, wrong = dict.fromkeys(expected, 0), {}
    for report in reports:
        by_name = {result["op"].removeprefix("fault."): result for result in report.get("results", ())}
        for name, (outcome, words) in expected.items():
            result = by_name.get(name, {})
            if result.get("outcome") == outcome and words in f"{result.get('reason')} {result.get('signal')}":
                right[name] += 1
            else:
                wrong.setdefault(name, result)
    return {"runs": len(reports), "right": right, "wrong": wrong}


def repeated(args, select, env, side_by_side, *options):
    """Run a selection again and again, several at a time, and return the reports."""

    def once(_):
        return smoke(args, "--select", select, *options, env=env)[2]

    with ThreadPoolExecutor(side_by_side) as pool:
        return list(pool.map(once, range(args.repeats)))


def faults(args):
    """Inject every fault that needs no GPU."""
    args = argparse.Namespace(**{**vars(args), "device": "cpu", "python": sys.executable})
    select = ",".join(f"fault.{name}" for name in ("none", "poison", *EXPECTED))
    found = tally(repeated(args, select, environment(PLUGINS, FAKE_TORCH), 2, "--timeout", "2"), EXPECTED)
    broken = {}
    for fate, expected in {
        "import error": ("failed", "does not import"),
        "segv": ("crashed", "SIGSEGV"),
    }.items():
        env = {**environment(PLUGINS, FAKE_TORCH), "FAKE_TORCH": fate}
        broken[fate] = tally(repeated(args, "fault.none", env, 2), {"none": expected})["right"]["none"]
    return {**found, "torch that does not import": broken}


def gpu_faults(args):
    """Inject the faults of a GPU: an endless kernel, a device-side assert, too large an allocation."""
    env = environment(PLUGINS)
    cases = {
        "loop": {"gpu_loop": ("timeout", "first call")},
        "assert": {"gpu_assert": ("failed", "assert"), "gpu_after": ("passed", "")},
        "oom": {"gpu_oom": ("failed", "out of memory"), "gpu_after": ("passed", "")},
    }
    answers = {}
    for name, expected in cases.items():
        select = ",".join(f"fault.{op}" for op in expected)
        start = time.perf_counter()
        answers[name] = tally(repeated(args, select, env, args.side_by_side, "--timeout", "4"), expected)
        answers[name]["wall_s"] = time.perf_counter() - start
    return answers


def marked(folder):
    """Return the living processes that name the folder in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def kills(args):
    """Kill the parent or any process of a run at a random moment; count what is left."""
    tallies = {"runs": 0, "processes left": 0, "files left": 0, "not ended": 0, "by target": {}}
    for _ in range(args.kills):
        with tempfile.TemporaryDirectory() as folder:
            killed_once(folder, tallies)
    return tallies


def killed_once(folder, tallies):
    """Kill one run and add to the tallies."""
    env = {**environment(PLUGINS, FAKE_TORCH), "TMPDIR": folder}
    ops = "fault.none,fault.daemon,fault.chatter,fault.loop"
    command = [sys.executable, "-m", "envdoctor", "smoke", "--python", sys.executable, "--device", "cpu"]
    run = subprocess.Popen([*command, "--select", ops, "--timeout", "1"], env=env, stdout=-3, stderr=-3)
    time.sleep(random.uniform(0, 1.6))
    number = random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    targets = [run.pid] if random.random() < 0.6 else [p for p in marked(folder) if p != run.pid] or [run.pid]
    target = random.choice(targets)
    try:
        os.kill(target, number)
    except ProcessLookupError:
        pass
    label = f"{'parent' if target == run.pid else 'other'} {number.name}"
    tallies["by target"][label] = tallies["by target"].get(label, 0) + 1
    tallies["runs"] += 1
    try:
        run.wait(30)
    except subprocess.TimeoutExpired:
        tallies["not ended"] += 1
        run.kill()
        run.wait()
    deadline = time.monotonic() + 5
    while (marked(folder) or os.listdir(folder)) and time.monotonic() < deadline:
        time.sleep(0.02)
    tallies["processes left"] += len(marked(folder))
    tallies["files left"] += len(os.listdir(folder))


SECTIONS = {
    "every-op": every_op,
    "cost": cost,
    "quick-cost": quick_cost,
    "timeline": timeline,
    "mutations": mutations,
    "faults": faults,
    "gpu-faults": gpu_faults,
    "kills": kills,
}


def main():
    """Run the sections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--device")
    parser.add_argument("--sections", default="every-op,cost")
    parser.add_argument("--ops", default="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--side-by-side", type=int, default=5)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--out", help="append the JSON lines there as well")
    args = parser.parse_args()
    for name in args.sections.split(","):
        start = time.perf_counter()
        line = json.dumps(
            {"section": name, "answer": SECTIONS[name](args), "took_s": time.perf_counter() - start}
        )
        print(line, flush=True)
        if args.out:
            with open(args.out, "a") as stream:
                stream.write(line + "\n")


if __name__ == "__main__":
    main()
