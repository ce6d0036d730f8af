"""What installing envdoctor into a stack's environment would change: nothing that is there.

    python benchmarks/install_beside.py [STACK]...

Makes an environment that lists the stack's solved distributions (their metadata alone), asks pip to install
this project into it without doing so, and prints what pip would add and change. Needs the index.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

STACKS = ("vllm", "axolotl", "llamafactory", "ms-swift")
ROOT = Path(__file__).parents[1]


def pins_of(stack: str) -> dict[str, str]:
    """Return the versions that the solver chooses for a stack on an A100."""
    command = [sys.executable, "-m", "envdoctor", "pin", stack, "torch", "--gpu", "A100", "--driver", "610"]
    command += [
        "--python-version",
        "3.12",
        "--platform",
        "x86_64-manylinux_2_35",
        "--allow-source",
        "--format",
        "json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {pin["name"]: pin["version"] for pin in json.loads(done.stdout)["pins"]}


def list_distributions(site: Path, pins: dict[str, str]) -> None:
    """Write a dist-info for each pin, as an installer leaves it."""
    for name, version in pins.items():
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n")
        (info / "INSTALLER").write_text("pip\n")
        (info / "RECORD").write_text("")


def added_and_changed(stack: str) -> tuple[int, list[str], list[str]]:
    """Return the size of the stack, what pip would add, and what it would change."""
    pins = pins_of(stack)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        site = next(Path(folder).glob("lib/python*/site-packages"))
        list_distributions(site, pins)
        report = Path(folder) / "report.json"
        command = [str(python), "-m", "pip", "install", "-q", "--dry-run", "--report", str(report), str(ROOT)]
        subprocess.run(command, check=True, capture_output=True)
        wanted = [entry["metadata"] for entry in json.loads(report.read_text())["install"]]
    names = {entry["name"].lower().replace("_", "-"): entry["version"] for entry in wanted}
    changed = [f"{name} {pins[name]} to {version}" for name, version in names.items() if name in pins]
    return len(pins), sorted(set(names) - set(pins)), changed


def main() -> int:
    """Print one line a stack; 1 when something would change."""
    bad = False
    for stack in sys.argv[1:] or STACKS:
        count, added, changed = added_and_changed(stack)
        bad |= bool(changed)
        told = f"adds {', '.join(added)}; changes {', '.join(changed) or 'nothing'}"
        print(f"{stack}: {count} distributions; {told}")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
