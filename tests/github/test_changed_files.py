"""The hook and the action judge the files that changed, each by itself, at the line to be mended."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from envdoctor.cli import main

ROOT = Path(__file__).parents[2]
HOOK = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))[0]
CHANGED = ROOT / ".github" / "action" / "changed.sh"
BROKEN = "transformers==4.40.1\ntrl==0.7.11\n"
FILES = {
    "requirements.txt": BROKEN,
    "serving/requirements-gpu.txt": "torch==2.6.0\n",
    "Dockerfile": "FROM python\nRUN apt-get update && \\\n  pip install --index-url https://example.com/ \\\n"
    '      "transformers==4.40.1" trl==0.7.11 && rm -rf /tmp\n',
    "docker/web.Dockerfile": "FROM nginx\nCOPY a b\n",
    "train.yaml": "stage: sft\nfinetuning_type: lora\nbf16: true\nfp16: true\n",
    "src/model.py": "import trl\n",
    ".github/workflows/ci.yml": "bf16: true\nfp16: true\n",
    "odd name.yml": "a: 1\n",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    return tmp_path


def chosen(names):
    kept = [name for name in names if re.search(HOOK["files"], name)]
    return [name for name in kept if not re.search(HOOK["exclude"], name)]


def test_the_hook_chooses_what_tells_of_a_stack():
    assert chosen(FILES) == [
        name for name in FILES if name not in ("src/model.py", ".github/workflows/ci.yml")
    ]


def test_the_action_chooses_the_same_files_as_the_hook():
    script = CHANGED.read_text(encoding="utf-8")
    assert re.search(r"^pattern='(.*)'$", script, re.MULTILINE)[1] == HOOK["files"]
    assert re.search(r"^apart='(.*)'$", script, re.MULTILINE)[1] == HOOK["exclude"]


def hook(*names, args=()):
    words = shlex.split(HOOK["entry"])[1:]
    return main([*words, *(args or HOOK["args"]), *names])


def test_the_hook_fails_for_an_error_and_names_the_line(project, capsys):
    assert hook(*chosen(FILES)) == 1
    told = capsys.readouterr().out
    assert "requirements.txt: requirements, line 2" in told
    assert "Dockerfile: Dockerfile, line 4" in told
    assert "train.yaml: " in told


def test_files_are_not_mixed_and_strangers_fail_nothing(project, capsys):
    Path("a.txt").write_text("transformers==4.40.1\n")
    Path("requirements-b.txt").write_text("trl==0.7.11\n")
    assert (
        hook(
            "serving/requirements-gpu.txt",
            "docker/web.Dockerfile",
            "odd name.yml",
            "a.txt",
            "requirements-b.txt",
        )
        == 0
    )
    assert "not judged: docker/web.Dockerfile" in capsys.readouterr().out


def test_a_hook_may_name_cards(project, capsys):
    Path("requirements.txt").write_text("torch==2.9.0+cu130\n")
    assert hook("requirements.txt") == 0
    assert hook("requirements.txt", args=("--gpu", "V100", "--each")) == 1
    assert hook("docker/web.Dockerfile", args=("--gpu", "V100", "--each")) == 0


@pytest.mark.parametrize("more", [["--from", "x"], ["--python", "x"], ["--smoke"], ["--online"]])
def test_each_stands_alone(project, capsys, more):
    assert main(["diagnose", *more, "--each", "train.yaml"]) == 2
    assert "--each: judges files by themselves" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_refused(project, capsys):
    assert main(["diagnose", "--each", "train.yaml", "gone.txt"]) == 2
    assert "gone.txt: no such file" in capsys.readouterr().err


def git(*words):
    name = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *name, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def action(folder, **inputs):
    script = folder.parent / "envdoctor"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m envdoctor "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    env = {**os.environ, "ENVDOCTOR": str(script), "HOME": str(folder.parent), **inputs}
    return subprocess.run(["bash", str(CHANGED)], env=env, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
def test_the_action_annotates_what_a_pull_request_changes(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git("init", "-q")
    Path("requirements.txt").write_text(BROKEN)
    Path("train.yaml").write_text("stage: sft\n")
    git("add", "-A")
    git("commit", "-qm", "base")
    base = git("rev-parse", "HEAD")
    assert "changed\n" in action(folder, BASE_SHA=base).stdout
    Path("train.yaml").write_text(FILES["train.yaml"])
    git("commit", "-qam", "both precisions")
    done = action(folder, BASE_SHA=base, GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))
    assert done.returncode == 1, done.stderr
    assert "::error title=SETTING-BF16-FP16,file=train.yaml,line=3::" in done.stdout
    assert "requirements.txt" not in done.stdout
    assert "SETTING-BF16-FP16" in (tmp_path / "summary.md").read_text()


def test_action_and_hook_are_what_their_hosts_read():
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite"
    assert all(step.get("shell") == "bash" for step in action["runs"]["steps"])
    used = set(re.findall(r"inputs\.([a-z-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(action["inputs"])
    assert {"id", "name", "entry", "language"} <= set(HOOK)
