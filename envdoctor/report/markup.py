"""Untrusted text inside GitHub's Markdown: no mention, no issue link, no HTML, no escape."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from envdoctor.commands import is_typed
from envdoctor.report.document import visible

_CODE_SPAN = re.compile(r"(?:^|(?<=[\s(\"']))`[^`\n]{1,400}`(?=[.,;:!?)\"']{0,4}(?:\s|$))")
# What Markdown or GitHub would act on: mentions, issue numbers and links, HTML, emphasis, tables.
_ACTIVE = re.compile(
    r"[@<>*_\[\]|\\~`]|#[0-9]|GH-[0-9]|&[#a-zA-Z]|:[a-z0-9_+-]+:|[!$]|"
    r"github\.com/[^\s/]+/[^\s/]+/(?:issues|pull|discussions|commit)"
)
_LINE_START = re.compile(r"^(?:[#>+-]|[0-9]{1,9}[.)])(?=\s|$)|^[-=]{2,}|^:::?")
_PIPE = "\\|"
_OPENING, _CLOSING = "(\"'", ")\"'.,;:!?"


def prose(text: str) -> str:
    """Return one line of Markdown that reads as `text`; every word that would act is shown as code."""
    line = " ".join(visible(text).split())
    parts: list[str] = []
    done = 0
    for span in _CODE_SPAN.finditer(line):
        parts += [_inert(line[done : span.start()]), span.group()]
        done = span.end()
    parts.append(_inert(line[done:]))
    whole = "".join(parts)
    return _LINE_START.sub(lambda m: f"\\{m.group()}", whole)


def _inert(text: str) -> str:
    return re.sub(r"\S+", lambda m: _word(m.group()), text)


def _word(word: str) -> str:
    if not _ACTIVE.search(word):
        return word
    inner = word.lstrip(_OPENING)
    core = inner.rstrip(_CLOSING)
    before, after = word[: len(word) - len(inner)], inner[len(core) :]
    return f"{before}{code(core)}{after}" if core else code(word)


def code(text: str) -> str:
    """Return `text` as inline code, whatever backticks it holds."""
    text = " ".join(visible(text).split()) or " "
    fence = "`" * (_longest_run(text, "`") + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def fenced(text: str, language: str = "") -> str:
    """Return `text` as a code block whose fence is longer than any in it."""
    text = visible(text.replace("\r\n", "\n")).rstrip("\n")
    fence = "`" * max(3, _longest_run(text, "`") + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def commands_block(commands: Iterable[str]) -> str:
    """Return a remedy's commands as a code block, `sh` where a shell runs each line; "" for none."""
    lines = "\n".join(commands)
    return fenced(lines, "sh" if all(map(is_typed, lines.splitlines())) else "") if lines else ""


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table of cells that are Markdown already."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', _PIPE) for cell in line)} |\n" for line in lines)


def details(summary: str, body: str) -> str:
    """Return a folded section; `summary` is ours, `body` is Markdown already safe."""
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n</details>\n"


def _longest_run(text: str, character: str) -> int:
    return max((len(run) for run in re.findall(f"{re.escape(character)}+", text)), default=0)
