"""A round of runs on one card, several beside each other, each in a process of its own.

    python3 benchmarks/measured_round.py CASES.json RESULTS.json [--seconds 450] [--slots 6] [--sites FOLDER]

CASES is a list of cases of `measured_runs.py`, or of `measured_images.py` where one tells "pixels". One that
says "squeezed": S is run again on growing segments with S times what it allocated as all that torch may
reserve. One that holds a job for `slice_child.py` as "traced" is traced before it is run, and that kept.
One that holds a "request" is a trial of a chosen profile, as `profiles.py` plans them, and torch may reserve
its "budget_bytes". One that holds a "profile" is what `envdoctor profile` is told beside --validate, with
the interpreter of its "environment" (in `environments` beside FOLDER, where that of `tool` has envdoctor). A
case waits until the card has its "gib" (as far as --room goes).
FOLDER holds what pip put into folders of their own: what all read in `common`, a release of TRL in
`trl-1.3.0`, in `old` what those before 1.0 read, and in `axolotl` what a case reads that is run by its
"trainer" itself (one that says "loader"). A run that fails leaves the end of what it said.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from profiles import GIB, Room

HERE = Path(__file__).resolve().parent
TRIAL = HERE.parent / "envdoctor" / "profile" / "trial.py"
LIMITED = """
import runpy, sys, torch
limit = int(sys.argv.pop(1)) / torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction(min(1.0, limit))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a file with so many bytes of the card as all that torch may reserve."""
CHILD = HERE.parent / "envdoctor" / "memory" / "slice_child.py"
SAID = 160
"""Signs of an error that are printed; RESULTS holds ten times as many."""
LEAST_S = 25
"""No run is begun with less time left."""


def main() -> None:
    """Run the cases in their order, and write what they took after each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--seconds", type=float, default=450)
    parser.add_argument("--slots", type=int, default=6)
    parser.add_argument("--sites", type=Path, default=Path("/tmp/sites"))
    parser.add_argument("--room", type=int, default=125)
    args = parser.parse_args()
    deadline, lock, found = time.monotonic() + args.seconds, threading.Lock(), []
    room = Room(args.room)

    def note(told: dict[str, Any]) -> None:
        with lock:
            found.append(told)
            args.results.write_text(json.dumps({"results": found}, indent=0))
            print(line(told), flush=True)

    def go(case: dict[str, Any]) -> None:
        with room.hold(int(case.get("gib", 0))):
            told = run(case, args.sites, deadline)
        note(told)
        if "squeezed" in case and "peak_allocated_gib" in told:
            limit = case["squeezed"] * told["peak_allocated_gib"]
            twin = {**case, "id": case["id"] + "-squeezed", "expandable": True, "limit_gib": limit}
            note(run(twin, args.sites, deadline))

    with ThreadPoolExecutor(args.slots) as pool:
        list(pool.map(go, json.loads(args.cases.read_text())))


def trial(case: dict[str, Any], sites: Path, deadline: float) -> dict[str, Any]:
    """Return the case with what a trial of its profile took, within its budget."""
    environment = {**surroundings(case, sites), **case["environment"]}
    began, asked = time.monotonic(), json.dumps(case["request"])
    command = ["-c", LIMITED, str(case["budget_bytes"]), str(TRIAL), asked]
    done = child(command, environment, deadline - began)
    _, marker, rest = done.stdout.partition("TRIAL ")
    told = json.JSONDecoder().raw_decode(rest)[0] if marker else {"error": done.stderr[-10 * SAID :]}
    peaks = {f"peak_{kind}_gib": told[f"{kind}_bytes"] / GIB for kind in ("allocated", "reserved") if marker}
    kept = {key: value for key, value in case.items() if key != "request"}
    return {**kept, **peaks, "told": told, "seconds": round(time.monotonic() - began, 1), **failure(told)}


def profiled(case: dict[str, Any], environments: Path, deadline: float) -> dict[str, Any]:
    """Return the case with what `envdoctor profile --validate` told of its trial."""
    began = time.monotonic()
    tool, own = (str(environments / name / "bin" / "python") for name in ("tool", case["environment"]))
    command = [tool, "-m", "envdoctor", "profile", *case["profile"], "--validate", "--python", own]
    with tempfile.TemporaryDirectory(prefix="case-") as folder:
        quiet = {"OMP_NUM_THREADS": "2", "TOKENIZERS_PARALLELISM": "false"}
        surrounding = {**os.environ, **quiet, "TMPDIR": folder, "HF_HOME": folder}
        done = subprocess.run(
            [*command, "--format", "json"], capture_output=True, text=True, env=surrounding, cwd=folder,
            timeout=deadline - began,
        )  # fmt: skip
    seconds = {"seconds": round(time.monotonic() - began, 1)}
    try:
        told = json.loads(done.stdout)
    except ValueError:
        return {**case, **seconds, "error": done.stderr[-10 * SAID :]}
    measured = told["validated"]
    peaks = {
        f"peak_{kind}_gib": measured[f"measured_{kind}_bytes"] / GIB
        for kind in ("allocated", "reserved")
        if f"measured_{kind}_bytes" in measured
    }
    kept = {key: told[key] for key in ("usable_bytes", "choice", "memory", "validated", "files")}
    return {**case, **peaks, **seconds, "told": kept, **({} if peaks else {"error": str(measured)})}


def failure(told: dict[str, Any]) -> dict[str, Any]:
    """Return a trial's error, where it has one."""
    return {"error": told["error"]} if told.get("error") else {}


def run(case: dict[str, Any], sites: Path, deadline: float) -> dict[str, Any]:
    """Return the case with its peaks, or with the error that it ended in."""
    left = deadline - time.monotonic()
    if left < LEAST_S:
        return {**case, "error": "no time left"}
    if "request" in case or "profile" in case:
        try:
            if "profile" in case:
                return profiled(case, sites.parent / "environments", deadline)
            return trial(case, sites, deadline)
        except subprocess.TimeoutExpired:
            return {"id": case["id"], "error": "no time left"}
    script = HERE / f"measured_{kind_of(case)}.py"
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="case-") as folder:
        file = Path(folder, "case.json")
        file.write_text(json.dumps(case))
        environment = {**surroundings(case, sites), "TMPDIR": folder, "HF_HOME": folder}
        traced: dict[str, Any] = {}
        try:
            if "traced" in case:
                said = child(["-c", CHILD.read_text()], environment, left, json.dumps(case["traced"])).stdout
                traced["traced"] = {"layers": case["traced"]["layers"], "answer": said}
            done = child([str(script), str(file)], environment, left)
        except subprocess.TimeoutExpired:
            return {**case, **traced, "error": "no time left"}
    lines = [one for one in done.stdout.splitlines() if one.startswith('{"id"')]
    told = json.loads(lines[-1]) if lines else {**case, "error": done.stderr.strip()[-10 * SAID :]}
    return {**told, **traced, "seconds": round(time.monotonic() - began, 1)}


def child(
    command: list[str], environment: dict[str, str], left: float, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run Python, which reads what is given."""
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, timeout=left, input=given
    )


def surroundings(case: dict[str, Any], sites: Path) -> dict[str, str]:
    """Return the variables of a case's Python."""
    return {
        **os.environ, "PYTHONPATH": path_of(case, sites), "OMP_NUM_THREADS": "2",
        "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
    }  # fmt: skip


def kind_of(case: dict[str, Any]) -> str:
    """Return which script runs the case."""
    if own_of(case):
        return "frameworks"
    return "images" if "pixels" in case else "runs"


def own_of(case: dict[str, Any]) -> str:
    """Return the framework by whose own entry the case is run, or nothing."""
    return str(case["trainer"]) if case.get("loader") else ""


def path_of(case: dict[str, Any], sites: Path) -> str:
    """Return where the case's Python looks for packages before its own."""
    release = str(case.get("trl") or "")
    names = [f"trl-{release}"] if release else []
    names += ["old"] if release.startswith("0.") else []
    names = [own] if (own := own_of(case)) else names
    return os.pathsep.join(str(sites / name) for name in (*names, "common"))


def line(told: dict[str, Any]) -> str:
    """Return a run's line: allocated, reserved, how often torch asked again, seconds; or the error's end."""
    if "error" in told:
        return f"{told['id']} ERROR {' '.join(told['error'][-SAID:].split())}"
    peaks = " ".join(f"{told[f'peak_{kind}_gib']:.4f}" for kind in ("allocated", "reserved"))
    return f"{told['id']} {peaks} {told.get('retries', '-')} {told['seconds']:.0f}s"


if __name__ == "__main__":
    main()
