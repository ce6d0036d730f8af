"""The composite action from this checkout, its steps run in order as a runner would.

    python benchmarks/action.py

Reads `action.yml`, fills in the inputs and the event, and runs the steps whose `if` holds by bash, with the
files and variables of a runner, in a repository with two commits: a change that breaks, one that is fine, a
card that is declared, an issue to triage. Installs envdoctor from the checkout (a package index is needed).
Exit 1 where a job does not end as it must.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "github"))

from events import event  # noqa: E402

BROKEN = "transformers==4.40.1\ntrl==0.7.11\n"
FINE = "transformers==4.40.1\ntrl==0.8.6\n"
FLOAT = "model_name_or_path: Qwen/Qwen2.5-7B\nbf16: true\nstage: sft\nfinetuning_type: lora\ntemplate: qwen\n"


class Job(NamedTuple):
    """A workflow's use of the action: what changes, its inputs, and how it must end."""

    name: str
    changes: dict[str, str]
    inputs: dict[str, str]
    code: int
    shown: str


JOBS = (
    Job("a change that breaks", {"requirements.txt": BROKEN}, {}, 1, r"::error title=PAIR-TRL.*requirements"),
    Job("a change that is fine", {"requirements.txt": FINE}, {}, 0, r""),
    Job("nothing that is judged", {"README.md": "hello\n"}, {}, 0, r"no requirement, lock"),
    Job(
        "a declared card",
        {"train.yaml": FLOAT},
        {"gpu": "T4", "fail-on": "warning"},
        1,
        r"::warning title=DTYPE-BF16.*train\.yaml",
    ),
    Job("an issue", {}, {"triage": "true"}, 0, r"envdoctor: \d+ certain"),
)


class Runner:
    """A runner's folders, and one installation of the action's first step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temp = folder / "temp"
        self.temp.mkdir()
        self.action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
        self.installed = False

    def run(self, job: Job) -> tuple[int, str, dict[str, str]]:
        """Return the exit code of the first step that fails, all that was printed, and the outputs."""
        workspace, base = self._repository(job)
        inputs = {name: told["default"] for name, told in self.action["inputs"].items()} | job.inputs
        context = {f"inputs.{name}": value for name, value in inputs.items()}
        context["github.event.pull_request.base.sha || github.event.before"] = base
        context["github.event.issue.number"] = "7"
        output = workspace.parent / "output"
        output.touch()
        said = ""
        for step in self.action["runs"]["steps"]:
            if not self._holds(step.get("if", ""), inputs) or (self.installed and "venv" in step["run"]):
                continue
            env = {name: self._filled(value, context) for name, value in step.get("env", {}).items()}
            done = self._step(step["run"], env, workspace, output)
            self.installed = True
            said += done.stdout + done.stderr
            if done.returncode:
                return done.returncode, said, {}
        told = dict(line.split("=", 1) for line in output.read_text(encoding="utf-8").splitlines())
        return 0, said, told

    def _repository(self, job: Job) -> tuple[Path, str]:
        workspace = self.folder / job.name.replace(" ", "-") / "work"
        workspace.mkdir(parents=True)
        git = ("git", "-C", str(workspace), "-c", "user.name=u", "-c", "user.email=u@example.com")
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
        base = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        for name, text in job.changes.items():
            (workspace / name).write_text(text, encoding="utf-8")
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "two"], check=True)
        return workspace, base.stdout.strip()

    def _step(
        self, script: str, env: dict[str, str], workspace: Path, output: Path
    ) -> subprocess.CompletedProcess[str]:
        path = workspace.parent / "event.json"
        path.write_text(event(), encoding="utf-8")
        runner = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(workspace.parent / "summary.md"),
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_REPOSITORY": "o/r",
            "RUNNER_TEMP": str(self.temp),
            "HOME": str(self.folder),
        }
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        told = {**os.environ, **runner, **env}
        return subprocess.run(bash, cwd=workspace, env=told, capture_output=True, text=True, check=False)

    @staticmethod
    def _filled(text: str, context: dict[str, str]) -> str:
        return re.sub(r"\$\{\{ ([^{}]+) \}\}", lambda match: context[match[1]], text)

    @staticmethod
    def _holds(condition: str, inputs: dict[str, str]) -> bool:
        match = re.fullmatch(r"inputs\.([\w-]+) (==|!=) '(\w+)'", condition)
        return match is None or (inputs[match[1]] == match[3]) == (match[2] == "==")


def main() -> int:
    """Run the jobs and print how each ended."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(Path(folder))
        for job in JOBS:
            code, said, outputs = runner.run(job)
            right = code == job.code and re.search(job.shown, said) is not None and "Traceback" not in said
            failed += not right
            print(
                f"{job.name}: {'right' if right else 'WRONG'}: exit {code}, {outputs or said.strip()[:300]}"
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
