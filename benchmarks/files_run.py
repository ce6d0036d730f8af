"""How many of our files run for a diagnosis of one check of a paste, over every rule that has a file.

    python benchmarks/files_run.py [PASTE...]

Counted in whole processes: our modules that are loaded at the end, and the one that starts. Without a PASTE:
three lines that name versions and a card.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from envdoctor.rules import RULES

TEXT = "torch 2.6.0\ntransformers 4.51.3\nGPU: A100\n"
COUNT = (
    "import sys, envdoctor.door as door; sys.argv[0] = 'envdoctor'; door.main();"
    "print(1 + sum(name.partition('.')[0] == 'envdoctor' for name in sys.modules), file=sys.stderr)"
)


def main() -> None:
    """Print a line a paste."""
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "paste.txt"
        own.write_text(TEXT)
        for paste in sys.argv[1:] or [str(own)]:
            counts = {identity: files_run(identity, paste) for identity in first_checks()}
            most = max(counts, key=lambda identity: counts[identity])
            few = sum(count <= 60 for count in counts.values())
            print(
                f"{Path(paste).name}: median {statistics.median(counts.values()):g}, least"
                f" {min(counts.values())}, most {counts[most]} ({most}); {few} of {len(counts)} at most 60"
            )


def first_checks() -> list[str]:
    """Return the first check of each file of rules."""
    return list({rule.module: rule.id for rule in reversed(RULES)}.values())[::-1]


def files_run(identity: str, paste: str) -> int:
    """Run one diagnosis and return how many of our files ran."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT, "diagnose", "--select", identity, "--from", paste],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return int(done.stderr.split()[-1])


if __name__ == "__main__":
    main()
