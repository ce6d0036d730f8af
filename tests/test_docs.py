"""What the pages tell to type is typed here; each command and each finding has its page."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from envdoctor.cli import COMMANDS, build_parser, main

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
TUTORIAL = ROOT / "docs" / "tutorial.md"
FAILING = ("diagnose --from", "why-not", "diagnose --each")
"""What finds something in the tutorial's files, and says so by its exit code."""


def script(name):
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def calls(page: Path) -> list[str]:
    """Return the commands on a page, without prompts, comments and what another program does with them."""
    told = []
    for line in page.read_text(encoding="utf-8").splitlines():
        match = re.match(r"(?:\$ |    )(envdoctor [a-z].*)", line)
        if match and not re.search(r"\[|\w\|\w|\) \||--hosts NODESET|MODEL|ID$", match[1]):
            told.append(re.split(r"\s+(?:\|\||\||&&|#)\s", match[1])[0].removeprefix("envdoctor "))
    return told


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_on_a_page_is_one(page):
    for call in calls(page):
        words = shlex.split(call)
        if words[-1] != "--help":
            ours = words[: words.index("--")] if "--" in words else words
            assert build_parser(words[0]).parse_args(ours).command == words[0]


def test_the_tutorial_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = TUTORIAL.read_text(encoding="utf-8")
    for name, content in re.findall(r'```\w+ title="([^"]+)"\n(.*?)```', text, re.DOTALL):
        Path(name).write_text(content, encoding="utf-8")
    Path("facts").mkdir()
    told = calls(TUTORIAL)
    assert len(told) == text.count("$ envdoctor")
    for call in told:
        code = main(shlex.split(call))
        out, error = capsys.readouterr()
        assert code == (1 if call.startswith(FAILING) else 0), (call, out, error)
        assert out or "-o " in call, call
    assert "DTYPE-BF16" in Path("answer.md").read_text(encoding="utf-8")
    assert list(Path("run").iterdir())


def test_each_command_and_each_check_has_a_page(tmp_path):
    script("site").write_pages(tmp_path)
    pages = tmp_path / "docs"
    for name in COMMANDS:
        page = pages / f"{script('site').SAME_PAGE.get(name, name)}.md"
        assert f"usage: envdoctor {name}" in page.read_text(encoding="utf-8")
    page = (pages / "findings" / "PAIR-TRL-BELOW-0.8.md").read_text(encoding="utf-8")
    for part in (
        "# PAIR-TRL-BELOW-0.8",
        "## What it means",
        "## When it holds",
        "## What mends it",
        "https://",
    ):
        assert part in page
    index = (pages / "findings" / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\]\(([^)]+)\.md\)", index))
    assert listed == {path.stem for path in (pages / "findings").iterdir()} - {"index"}


def test_the_man_page_has_the_help_of_every_command():
    manual = script("site").manual()
    for name in COMMANDS:
        assert f".SS envdoctor {name}\n.nf\nusage: envdoctor {name}" in manual.replace("\\-", "-")
    assert not [line for line in manual.splitlines() if line.startswith("'")]


def test_the_pages_of_the_rows_are_what_their_types_say():
    rows = script("rows")
    assert rows.page() == rows.PAGE.read_text(encoding="utf-8")
    assert rows.schema() == rows.SCHEMA.read_text(encoding="utf-8")
