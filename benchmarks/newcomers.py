"""Ten tasks of a newcomer, typed into a terminal of 80 columns: each done with at most two commands?

    python benchmarks/newcomers.py [--output docs/screens]

Needs tmux and bash. Prints each screen; exit 1 where a task does not show what it must. What is kept in
`docs/screens` the site shows.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROMPT = "newcomer$"
ISSUE = "GPU: Tesla T4\ntorch==2.6.0\ntransformers==4.40.1\ntrl==0.7.11\n"
SIZE = ("-x", "80", "-y", "80")


class Task(NamedTuple):
    """What a newcomer wants, what is typed, and a pattern that the last screen must show."""

    name: str
    typed: tuple[str, ...]
    shown: str


TASKS = (
    Task("a broken venv", ("envdoctor diagnose --python broken",), r"PAIR-TRL-BELOW-0\.8"),
    Task("a paste", ("envdoctor diagnose --from issue.md",), r"PAIR-TRL-BELOW-0\.8"),
    Task(
        "will an 8B fit my 4090",
        ("envdoctor memory --model llama-3.1-8b --method qlora --gpu 'RTX 4090'",),
        r"it fits the card",
    ),
    Task(
        "pins for a T4",
        (
            "envdoctor pin torch transformers --gpu T4 -o pins.txt",
            "grep -E '^(torch|transformers)==' pins.txt",
        ),
        r"torch==\d",
    ),
    Task(
        "a bundle", ("envdoctor bundle --from issue.md -o report.zip", "unzip -l report.zip"), r"report\.md"
    ),
    Task(
        "a CI gate",
        ("envdoctor diagnose --each requirements.txt --format github; echo exit $?",),
        r"::error title=PAIR-TRL(?s:.*)exit 1",
    ),
    Task("completion", ("source <(envdoctor completion bash)", "envdoctor diagnose --fail\t"), r"--fail-on"),
    Task("a wrong option", ("envdoctor memory --modle llama-3.1-8b",), r"nearest: --model"),
    Task(
        "no network",
        ("PIP_INDEX_URL=http://127.0.0.1:9/simple envdoctor pin no-such-package-here; echo exit $?",),
        r"no-such-package-here(?s:.*)exit [123]",
    ),
    Task(
        "a legacy encoding",
        ("PYTHONIOENCODING=ascii envdoctor diagnose --from issue.md",),
        r"PAIR-TRL-BELOW-0\.8",
    ),
)


class Terminal:
    """A shell in tmux, with its own server."""

    def __init__(self, folder: Path) -> None:
        self._server = ("tmux", "-L", f"newcomers-{os.getpid()}", "-f", "/dev/null")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        shell = f"env PATH={path} PS1='{PROMPT} ' HOME={folder} HISTFILE= bash --norc --noprofile"
        self._tmux("new-session", "-d", *SIZE, "-c", str(folder), shell)
        self._wait()

    def _tmux(self, *words: str) -> str:
        return subprocess.run([*self._server, *words], capture_output=True, text=True, check=True).stdout

    def type(self, line: str) -> str:
        """Type a line and return the screen once the prompt is back; a tab at its end is pressed alone."""
        self._tmux("send-keys", "-R")
        self._tmux("clear-history")
        self._tmux("send-keys", "-l", line.rstrip("\t"))
        if line.endswith("\t"):
            self._tmux("send-keys", "Tab")
            time.sleep(3)
            screen = self.screen()
            self._tmux("send-keys", "C-c")
            return screen
        self._tmux("send-keys", "Enter")
        return self._wait()

    def screen(self) -> str:
        """Return what stands on the screen, with what ran over its top."""
        return self._tmux("capture-pane", "-p", "-S", "-500").rstrip()

    def _wait(self) -> str:
        """Return the screen once the prompt stands alone on its last line; raises TimeoutError."""
        for _ in range(600):
            time.sleep(0.3)
            screen = self.screen()
            if screen.rpartition("\n")[2].strip() == PROMPT:
                return screen
        raise TimeoutError(self.screen())

    def end(self) -> None:
        """End the server."""
        self._tmux("kill-server")


@contextlib.contextmanager
def newcomers_home() -> Iterator[Path]:
    """Yield a folder that is called the same in every run, so that screens differ where answers do."""
    folder = Path(tempfile.gettempdir(), "newcomer")
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def prepare(folder: Path) -> None:
    """Write what the tasks are about: a paste, a requirements file, a venv with two releases that clash."""
    (folder / "issue.md").write_text(ISSUE, encoding="utf-8")
    (folder / "requirements.txt").write_text("transformers==4.40.1\ntrl==0.7.11\n", encoding="utf-8")
    venv.create(folder / "broken", with_pip=False)
    (site,) = (folder / "broken").glob("lib/python*/site-packages")
    for name, version in (("trl", "0.7.11"), ("transformers", "4.40.1")):
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        (site / name).mkdir()
        (site / name / "__init__.py").write_text("", encoding="utf-8")
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8"
        )
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n", encoding="utf-8")


def screens(folder: Path) -> Iterator[tuple[Task, str]]:
    """Yield each task with its screens."""
    prepare(folder)
    terminal = Terminal(folder)
    try:
        for task in TASKS:
            yield task, "\n".join(terminal.type(line) for line in task.typed)
    finally:
        terminal.end()


def main() -> int:
    """Type, show, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", metavar="FOLDER", help="keep the screens there")
    args = parser.parse_args()
    failed = 0
    with newcomers_home() as folder:
        for number, (task, screen) in enumerate(screens(folder), 1):
            done = bool(re.search(task.shown, screen)) and "Traceback" not in screen
            failed += not done
            print(
                f"{'=' * 80}\n{number}. {task.name}: {'done' if done else 'NOT DONE'}\n{screen}", flush=True
            )
            if args.output:
                Path(args.output).mkdir(parents=True, exist_ok=True)
                name = f"{number:02}-{task.name.replace(' ', '-')}.txt"
                Path(args.output, name).write_text(screen + "\n", encoding="utf-8")
    print(f"{len(TASKS) - failed} of {len(TASKS)} done")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
