"""A shell completes commands, options and values; help fits 80 columns; a terminal that waits is told so."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time

import pytest

from envdoctor.cli import COMMANDS, build_whole_parser, main, output, waiting


def script(shell, capsys):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def completed(text, *words):
    quoted = " ".join(f"'{word}'" for word in words)
    last = f"COMP_CWORD={len(words) - 1}; _shtab_envdoctor; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    ask = f"COMP_WORDS=({quoted}); {last}"
    done = subprocess.run(["bash", "-c", f"{text}\n{ask}"], capture_output=True, text=True, check=False)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_and_values(capsys):
    text = script("bash", capsys)
    assert completed(text, "envdoctor", "di") == ["diagnose"]
    assert set(COMMANDS) <= set(completed(text, "envdoctor", ""))
    assert "--fail-on" in completed(text, "envdoctor", "diagnose", "--fa")
    assert completed(text, "envdoctor", "diagnose", "--format", "sa") == ["sarif"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_name_every_command(capsys, shell):
    text = script(shell, capsys)
    assert all(name in text for name in COMMANDS)
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=text, text=True, check=True)


def test_a_shell_that_is_none_is_refused(capsys):
    assert main(["completion", "bsh"]) == 2
    assert "nearest: bash" in capsys.readouterr().err


def test_help_fits_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    parser = build_whole_parser()
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for name, one in commands.choices.items():
        lines = one.format_help().splitlines()
        assert max(map(len, lines)) <= 80, name
        assert lines[0].startswith(f"usage: envdoctor {name}")
        assert lines[0].endswith("[options]")


def test_lists_of_the_matrix_fit_80_columns(capsys):
    for command in (["rules"], ["matrix", "show"]):
        main(command)
        wide = [line for line in capsys.readouterr().out.splitlines() if len(line) > 80]
        assert all(len(word) > 40 for line in wide for word in [max(line.split(), key=len)]), wide[:3]


def test_a_terminal_that_waits_is_told_and_the_line_is_wiped(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(waiting, "FIRST_S", 0.01)
    args = argparse.Namespace(quiet=False, command="pin", output=None)
    with waiting.Waiting(args) as args.waiting:
        deadline = time.monotonic() + 20
        while "solving" not in (said := capsys.readouterr().err) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert re.search(r"looking up and solving \.\.\. \d+ s", said)
        output.write(args, "answer")
        assert capsys.readouterr().err.endswith("\r\x1b[K")
    assert capsys.readouterr().err == ""


def test_nothing_is_drawn_elsewhere(capsys):
    args = argparse.Namespace(quiet=False, command="pin", output=None)
    with waiting.Waiting(args):
        pass
    assert capsys.readouterr().err == ""
