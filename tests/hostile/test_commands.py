"""What a sent file says can become a word of an advised command, never a command of its own."""

from __future__ import annotations

import ast
import random
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_json import one_of_each_shape, with_key, with_value
from sent_facts import sent

from envdoctor.commands import NoCommand, command, commands, pip_install, quoted
from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import FactsFormatError, from_json
from envdoctor.matrix import load_matrix, tables

PACKAGE = Path(__file__).parents[2] / "envdoctor"
ACTIVE = (
    "x; touch PWNED",
    "x && touch PWNED",
    "x | touch PWNED",
    "x & touch PWNED",
    "$(touch PWNED)",
    "`touch PWNED`",
    "'; touch PWNED; '",
    '"; touch PWNED; "',
    '"$(touch PWNED)',
    "\\'; touch PWNED #",
    "x > PWNED",
    "x\ntouch PWNED\n",
    "x\r\ntouch PWNED",
    "x\u2028touch PWNED",
    "x #\ntouch PWNED",
    "${x:-$(touch PWNED)}",
    "--index-url=http://evil.example.com/",
    "-r/etc/passwd",
    "~root",
    "*",
    "!touch",
    "a\\",
    "(touch PWNED)",
    "\x1b]0;touch PWNED\x07",
    "\ud800",
)
PROGRAMS = ("pip", "uv", "python", "sudo", "nvidia-smi", "envdoctor", "docker", "conda", "ldconfig", "grep")


def symptoms(rng: random.Random) -> list[dict]:
    """One symptom of every row, its captured texts hostile."""
    found = []
    for row in load_matrix().rows(tables.SymptomRow):
        groups = re.compile(row.pattern).groupindex
        hostile = {name: rng.choice(ACTIVE) for name in groups}
        found.append({"id": row.id, "text": rng.choice(ACTIVE), "source": "a", "captured": hostile})
    return found


def advised(data: dict) -> set[str]:
    """All commands that a diagnosis of these facts advises; none when they are refused."""
    try:
        facts = from_json(data)
    except FactsFormatError:
        return set()
    found = diagnose_facts(facts, complete=False)
    assert [check for check in found.checks if check.outcome.value == "crashed"] == []
    return {line for f in found.findings for remedy in f.remedies for line in remedy.commands}


def run_in_sandbox(lines: set[str], folder: Path) -> list[str]:
    """Run commands where only stubs can be found; return what the stubs were called with."""
    stubs = folder / "bin"
    stubs.mkdir()
    for name in (*PROGRAMS, "touch"):
        body = '#!/bin/sh\nprintf "%s\\n" "${0##*/}" >> "$LOG"\n'
        (stubs / name).write_text(body + (": > PWNED\n" if name == "touch" else ""))
        (stubs / name).chmod(0o755)
    log, work = folder / "log", folder / "work"
    work.mkdir()
    for line in sorted(lines):
        parsed = subprocess.run(["sh", "-n"], input=line, capture_output=True, text=True, check=False)
        assert parsed.returncode == 0, (line, parsed.stderr)
        options = {"cwd": work, "env": {"PATH": str(stubs), "LOG": str(log), "HOME": str(work)}}
        subprocess.run(["/bin/sh"], input=line.encode(), capture_output=True, timeout=20, **options)
        assert list(work.iterdir()) == [], line
    return log.read_text().split() if log.exists() else []


def worded_here(lines: set[str]) -> set[str]:
    """The commands that rows and rules word themselves, which no sent text reaches."""
    texts = set(texts_in([row for _, row in load_matrix().by_id.values()]))
    code = [path.read_text(encoding="utf-8") for path in (PACKAGE / "rules").glob("*.py")]
    whole = "\n".join([*texts, *code])
    return {line for line in lines if line in texts or line in whole}


def texts_in(value: object) -> Iterator[str]:
    """Yield all texts of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts_in(one)


@pytest.fixture(scope="module")
def told() -> set[str]:
    rng = random.Random(18)
    data = sent()
    found: set[str] = set()
    for at, value in one_of_each_shape(data):
        if isinstance(value, str) and at:
            for text in rng.sample(ACTIVE, 2):
                found |= advised(with_value(data, at, text))
                found |= advised(with_value(data, at, f"{value}{text}"))
        if at and isinstance(at[-1], str):
            found |= advised(with_key(data, at, rng.choice(ACTIVE)))
    said = symptoms(rng)
    for start in range(0, len(said), 20):
        found |= advised({**data, "symptoms": said[start : start + 20]})
    return found


def test_the_attacked_machine_has_much_to_advise():
    assert len(advised(sent())) > 25


def test_nothing_but_advised_programs_is_run(told, tmp_path):
    assert set(run_in_sandbox(told - worded_here(told), tmp_path)) <= set(PROGRAMS)
    assert not any("\n" in line or "--index-url=http://evil" in line.split() for line in told)


@pytest.mark.parametrize("text", ACTIVE)
@pytest.mark.parametrize("template", ["pip install {}", "envdoctor smoke --select {}", "{}: x", "a --b={} c"])
def test_a_value_is_one_word_or_there_is_no_command(template, text, tmp_path):
    try:
        line = command(template, text)
    except NoCommand:
        return
    assert shlex.split(line) == [word.format(text) for word in template.split()]
    assert set(run_in_sandbox({line}, tmp_path)) <= set(PROGRAMS)


def test_plain_words_are_left_plain():
    assert quoted("torch==2.6.0") == "torch==2.6.0"
    assert quoted("torch>=2.6,!=2.7.*") == '"torch>=2.6,!=2.7.*"'
    assert pip_install("torch<2.9", "vllm", options="-U") == ('pip install -U "torch<2.9" vllm',)
    assert pip_install() == commands("pip install {}", "--pre") == ()


def makes_text(node: ast.AST) -> bool:
    joined = isinstance(node, ast.JoinedStr) and any(isinstance(v, ast.FormattedValue) for v in node.values)
    return joined or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod))


def handed_to_remedies(tree: ast.AST):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Remedy":
            yield from node.args[1:2]
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "commands")


BUILDERS = {"command", "commands", "pip_install", "install_commands", "_install"}


def beside_builders(node: ast.AST):
    """Yield a tree's nodes without what is handed to the functions that build commands."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in BUILDERS:
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from beside_builders(child)


CALL = re.compile(r"(?:pip|uv|sudo|conda|docker|export|unset) |python -|envdoctor [a-z]")


def begins_as_a_command(node: ast.AST) -> bool:
    first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else None
    text = first.value if isinstance(first, ast.Constant) else ""
    return makes_text(node) and CALL.match(text) is not None


@pytest.mark.parametrize("room", ["rules", "solve", "fleet", "smokes", "plan", "fixing", "diagnosis.py"])
def test_commands_are_built_in_one_place(room):
    for path in [PACKAGE / room] if room.endswith(".py") else sorted((PACKAGE / room).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for handed in handed_to_remedies(tree):
            assert not any(makes_text(node) for node in beside_builders(handed)), f"{path}:{handed.lineno}"
        made = [node.lineno for node in beside_builders(tree) if begins_as_a_command(node)]
        assert made == [], path


LINE_ENDS = ("\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\\\n")


@pytest.mark.parametrize("end", LINE_ENDS, ids=repr)
@pytest.mark.parametrize("form", ["constraints", "requirements", "pylock"])
def test_no_option_adds_a_line_to_a_pin_file(tmp_path, end, form):
    from envdoctor.cli import build_parser
    from envdoctor.cli.pin import command_line
    from envdoctor.solve.answer import PinSet
    from envdoctor.solve.documents import Header, constraints_text, requirements_text
    from envdoctor.solve.pylock import pylock_text
    from envdoctor.target.platforms import this_platform, this_python
    from envdoctor.target.resolve import Target

    evil = f"x{end}evil==1"
    words = ["pin", "torch", "--target", evil, "-r", evil, "--gpu", evil, "--exclude-newer", evil]
    header = Header("1", "1", "1", command_line(build_parser("pin").parse_args(words)))
    answer = PinSet("solved", Target(this_python(), this_platform()), ("torch",), notes=(evil,))
    write = {"constraints": constraints_text, "requirements": requirements_text}.get(form)
    text = write(answer, header) if write else pylock_text(answer, header, lambda pin: ())
    assert not [line for line in text.splitlines() if line.strip().startswith("evil")]
