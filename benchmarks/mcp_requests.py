"""Sends mutated requests to the server by the official client over stdio; counts what must not be.

    python benchmarks/mcp_requests.py [--requests 5000] [--lines 1000] [--seed 0]

No crash: every request is answered by the same process, and a right one afterwards as before. Nothing
written: an audit hook in the server tells of files opened for writing, programs started and connections.
Needs `mcp`.
Exit 1 when a promise is not kept.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

SERVING = Path(__file__).parent.parent / "tests" / "serving"
sys.path[:0] = [str(Path(__file__).parent.parent), str(SERVING)]

from mutated_requests import RIGHT, broken_lines, mutated  # noqa: E402

from envdoctor.serving.bounds import LIMIT  # noqa: E402

COMMAND = (sys.executable, str(SERVING / "watched_server.py"))


async def ask(requests: int, seed: int, folder: str, told: Path) -> Counter[str]:
    """Return how the requests were answered."""
    counts: Counter[str] = Counter()
    longest = slowest = 0.0
    with told.open("w", encoding="utf-8") as errors:
        server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:]], cwd=folder)
        async with Client(stdio_client(server, errors)) as client:
            for name, arguments in [*mutated(requests, seed), RIGHT[-1]]:
                started = time.monotonic()
                try:
                    answer = await client.call_tool(name, arguments, read_timeout_seconds=120)
                except Exception as error:
                    counts[f"raised {type(error).__name__}: {str(error)[:60]}"] += 1
                    continue
                taken = time.monotonic() - started
                text = answer.content[0].text
                if taken > slowest:
                    slowest, slow = taken, (name, str(arguments)[:200])
                longest = max(longest, len(text))
                counts["refused" if answer.is_error else "answered"] += 1
                counts["broke"] += text.startswith("envdoctor broke")
                counts["too long"] += len(text) > LIMIT
    print(f"longest answer {longest:.0f} characters, slowest {slowest:.1f} s: {slow}")
    return counts


def send_lines(lines: int, seed: int, folder: str) -> bool:
    """True when a server that was sent broken lines ends in order when its input does."""
    given = b"".join(broken_lines(lines, seed))
    done = subprocess.run(COMMAND, input=given, capture_output=True, cwd=folder, timeout=300, check=False)
    return done.returncode == 0 and b"DID " not in done.stderr


def main() -> int:
    """Send, count, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "errors.txt"
        inside = Path(folder) / "inside"
        inside.mkdir()
        counts = anyio.run(ask, args.requests, args.seed, str(inside), told)
        lines = told.read_text(encoding="utf-8").splitlines()
        did = Counter(line[:120] for line in lines if line.startswith("DID "))
        left = [path.name for path in inside.rglob("*")]
        whole = send_lines(args.lines, args.seed, str(inside))
    print(dict(counts), "did:", dict(did.most_common(5)), "left:", left, "broken lines survived:", whole)
    for line in [line for line in lines if "Error" in line][:10]:
        print(" ", line)
    wrong = counts["broke"] + counts["too long"] + sum(did.values()) + len(left) + (not whole)
    return 1 if wrong or any(key.startswith("raised") for key in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
