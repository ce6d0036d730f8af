"""Builds the site into a folder: these pages, a page a command with its help, a page a finding, the man page.

    python docs/site.py [--output site] [--pages-only]

Needs the dependency group `docs`; with `--pages-only` nothing but the Markdown is written.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from envdoctor.cli import COMMANDS, build_parser
from envdoctor.matrix import load_matrix
from envdoctor.report.markup import code, fenced, prose, table
from envdoctor.rules.listing import explained_checks

DOCS = Path(__file__).parent
SAME_PAGE = {"why-not": "pin"}
"""Commands that share a page with another."""
TOPICS = ("tutorial", "screens", "pastes", "github", "notebook", "house", "rows")


def write_pages(folder: Path) -> None:
    """Write every page as Markdown, and mkdocs' configuration beside them."""
    pages = folder / "docs"
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("*.py", "__pycache__", "decisions", "screens"))
    for name in COMMANDS:
        page = pages / f"{SAME_PAGE.get(name, name)}.md"
        former = page.read_text(encoding="utf-8") if page.exists() else f"# `envdoctor {name}`\n"
        page.write_text(f"{former.rstrip()}\n\n{_help(name)}", encoding="utf-8")
    (pages / "screens.md").write_text(_screens(), encoding="utf-8")
    checks = sorted(explained_checks(load_matrix()), key=lambda check: check["id"])
    (pages / "findings").mkdir()
    for check in checks:
        (pages / "findings" / f"{check['id']}.md").write_text(finding_page(check), encoding="utf-8")
    (pages / "findings" / "index.md").write_text(_index(checks), encoding="utf-8")
    first = "# envdoctor\n\nSays what is wrong with a GPU machine's LLM stack, and what mends it.\n\n"
    (pages / "index.md").write_text(first + _commands(), encoding="utf-8")
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(_configuration(), sort_keys=False), encoding="utf-8")


def _screens() -> str:
    """Return the screens of ten tasks of a newcomer, as they stood in a terminal of 80 columns."""
    parts = [
        "# Ten tasks, as a newcomer sees them\n",
        "A terminal of 80 columns; each task in at most two commands.\n",
    ]
    for path in sorted((DOCS / "screens").glob("*.txt")):
        title = path.stem.partition("-")[2].replace("-", " ")
        parts += [
            f"## {title[:1].upper()}{title[1:]}\n",
            fenced(path.read_text(encoding="utf-8").rstrip(), "text"),
        ]
    return "\n".join(parts)


def _help(name: str) -> str:
    return f"## Options of `{name}`\n\n{fenced(_help_text(name), 'text')}"


def _help_text(name: str) -> str:
    os.environ["COLUMNS"] = "80"
    (commands,) = (a for a in build_parser(name)._actions if isinstance(a, argparse._SubParsersAction))
    help: str = commands.choices[name].format_help()
    return help


def finding_page(check: Mapping[str, Any]) -> str:
    """Return what a check means, when it holds, what mends it, and how it is known."""
    parts = [f"# {check['id']}\n", f"**{prose(check['title'])}**\n"]
    if severity := check.get("severity"):
        parts.append(f"A finding of weight *{severity}*.\n")
    if cause := check.get("cause"):
        parts += ["## What it means\n", f"{prose(cause)}\n"]
    if when := check.get("when"):
        parts += [
            "## When it holds\n",
            table(("fact", "is"), [(code(k), code(str(v))) for k, v in when.items()]),
        ]
    if symptoms := check.get("symptoms"):
        parts.append(f"Or where this error line was recognised: {', '.join(map(code, symptoms))}.\n")
    if remedies := check.get("remedies"):
        parts += ["## What mends it\n", "".join(f"- {prose(remedy)}\n" for remedy in remedies)]
    told = [(key.replace("_", " "), prose(check[key])) for key in ("checked_on", "basis") if check.get(key)]
    source = str(check.get("source") or "")
    if source:
        told.insert(0, ("source", f"<{source}>" if source.startswith("https://") else prose(source)))
    parts += ["## How it is known\n", table(("", ""), told) if told else "By the rule itself.\n"]
    call = f"envdoctor rules {check['id']}\nenvdoctor diagnose --ignore {check['id']}"
    return "\n".join([*parts, "## By hand\n", fenced(call, "sh")])


def _index(checks: Iterable[Mapping[str, Any]]) -> str:
    rows = [(f"[{check['id']}]({check['id']}.md)", prose(check["title"])) for check in checks]
    return f"# Findings\n\nEvery check, by its id.\n\n{table(('id', 'what it says'), rows)}"


def _commands() -> str:
    rows = [
        (f"[`{name}`]({SAME_PAGE.get(name, name)}.md)", prose(told.help)) for name, told in COMMANDS.items()
    ]
    return table(("command", "what for"), rows)


def _configuration() -> dict[str, Any]:
    commands = dict.fromkeys(SAME_PAGE.get(name, name) for name in COMMANDS)
    topics = [f"{name}.md" for name in TOPICS]
    return {
        "site_name": "envdoctor",
        "theme": {"name": "material", "font": False},
        "plugins": ["search"],
        "nav": [
            {"Start": "index.md"},
            *topics,
            {"Commands": [f"{name}.md" for name in commands]},
            {"Findings": "findings/index.md"},
        ],
        "validation": {"nav": {"omitted_files": "ignore"}},
        "markdown_extensions": ["tables", "fenced_code"],
    }


def manual() -> str:
    """Return the man page: the help of every command as it stands, without filling its lines anew."""
    head = '.TH ENVDOCTOR 1 "" "envdoctor" "envdoctor"\n.SH NAME\nenvdoctor \\- '
    parts = [f"{head}says what is wrong with a GPU machine's LLM stack, and what mends it\n"]
    parts.append(".SH SYNOPSIS\n.B envdoctor\n.I COMMAND\n[options]\n.SH COMMANDS\n")
    for name in COMMANDS:
        parts.append(f".SS envdoctor {name}\n.nf\n{_literal(_help_text(name))}\n.fi\n")
    parts.append(".SH EXIT STATUS\n0 fine, 1 something was found, 2 the call is unusable, 3 no answer.\n")
    return "".join(parts)


def _literal(text: str) -> str:
    lines = text.replace("\\", "\\e").replace("-", "\\-").rstrip().splitlines()
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in lines)


def main() -> int:
    """Write the pages; build the site and the man page unless told otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="site")
    parser.add_argument("--pages-only", action="store_true")
    args = parser.parse_args()
    site = Path(args.output).resolve()
    if args.pages_only:
        write_pages(site)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        write_pages(Path(folder))
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(site)]
        done = subprocess.run([*command, "-f", str(Path(folder) / "mkdocs.yml")], check=False)
    (site / "man").mkdir(parents=True, exist_ok=True)
    (site / "man" / "envdoctor.1").write_text(manual(), encoding="utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
