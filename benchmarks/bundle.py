"""Measures the bundle: leaks, needless replacements, hostile text and archives, a log of 100 MB.

`python benchmarks/bundle.py` prints a table. Figures are of this machine; the tests hold the properties.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "bundle")]

from benign import benign  # noqa: E402
from hostile_archives import hostile  # noqa: E402
from planted import identities, planted  # noqa: E402

from envdoctor.bundling import Redactor, read_bundle  # noqa: E402
from envdoctor.errors import InputError  # noqa: E402

STEP = "{'loss': 0.5123, 'grad_norm': 0.312, 'learning_rate': 1e-05, 'epoch': 1.02} and more words\n"
FAILURE = 'Traceback (most recent call last):\n  File "x.py", line 3, in f\nRuntimeError: CUDA error: boom\n'
NASTY = (
    "eyJ",
    "hf_",
    "a@",
    "://a:",
    "password=",
    "token=",
    "token ",
    "-----BEGIN PRIVATE KEY-----",
    "1.1.1.1 ",
    "ab:",
    " ",
)


def redact(text: str) -> str:
    """Redact one text by itself."""
    redactor = Redactor()
    redactor.learn(text)
    return redactor.redact(text)


def leaks(rounds: int) -> None:
    """Print how many planted values can still be read, any eight characters of them in a row."""
    items = [*planted(rounds=rounds), *identities()]
    left = 0
    for item in items:
        size = 8 if len(item.secret) > 12 else len(item.secret)
        shown = redact(item.text)
        left += any(item.secret[i : i + size] in shown for i in range(len(item.secret) - size + 1))
    kinds = len({item.kind for item in items})
    print(f"planted: {len(items):,} of {kinds} kinds, {left} can still be read")


def needless(count: int) -> None:
    """Print how many benign lines were changed."""
    lines = benign(count=count)
    print(f"benign: {len(lines):,} lines, {sum(redact(line) != line for line in lines)} changed")


def hostile_text() -> None:
    """Print the slowest nasty text, and how its time grows with its length."""
    worst = (0.0, 0.0, "")
    for piece in NASTY:
        times = []
        for size in (100_000, 200_000):
            start = time.perf_counter()
            redact((piece * (size // len(piece) + 1))[:size])
            times.append(time.perf_counter() - start)
        worst = max(worst, (times[1], times[1] / times[0], piece))
    print(f"hostile text: slowest {worst[2]!r}, 200 kB in {worst[0]:.1f} s, {worst[1]:.1f} times the half")


def hostile_archives() -> None:
    """Print how many hostile archives are refused, and the longest time that one takes."""
    refused, longest = 0, 0.0
    archives = hostile()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "b.zip"
        for _, content in archives:
            path.write_bytes(content)
            start = time.perf_counter()
            try:
                read_bundle(path)
            except InputError:
                refused += 1
            longest = max(longest, time.perf_counter() - start)
    print(f"hostile archives: {len(archives)}, {refused} refused, longest {longest * 1000:.0f} ms")


def large_log(name: str, block: str) -> None:
    """Print what bundling a log of 100 MB costs, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        log, paste = Path(folder) / "train.log", Path(folder) / "paste.txt"
        paste.write_text("PyTorch version: 2.6.0+cu124\n")
        with log.open("w") as stream:
            for _ in range(100_000_000 // len(block) + 1):
                stream.write(block)
        command = [sys.executable, "-m", "envdoctor", "bundle", "--from", str(paste), "--log", str(log), "-q"]
        start = time.perf_counter()
        subprocess.run(
            [*command, "-o", f"{folder}/b.zip"],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        spent = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"log of 100 MB, {name}: {spent:.1f} s, at most {peak} MiB so far")


if __name__ == "__main__":
    leaks(rounds=8)
    needless(10_000)
    hostile_text()
    hostile_archives()
    large_log("a failure at times", STEP * 20_000 + FAILURE)
    large_log("nothing but failures", FAILURE)
    large_log("one line without end", "x" * 1000)
