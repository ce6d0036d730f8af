"""Standard streams that are closed, full or of another encoding: one line and a status, or the answer."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from envdoctor.cli import main

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
COMMANDS = (
    ["rules"],
    ["rules", "--format", "json"],
    ["pin", "--help"],
    ["pin", "torch", "--gpu", "H100", "--driver", "580.65.06", "--python-version", "3.12"],
    ["memory", "--model", "llama-3.1-8b", "--gpu", "H100"],
    ["matrix"],
)


def shell(script: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    call = ["sh", "-c", f'"$@" {script}', "sh", sys.executable, "-m", "envdoctor", *arguments]
    return subprocess.run(call, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("script", "told"), [(">/dev/full", b"No space left on device"), (">&-", b"Bad file descriptor")]
)
@pytest.mark.parametrize("arguments", COMMANDS[::2], ids=lambda words: words[0])
def test_an_answer_that_nobody_gets_is_no_success(arguments, script, told):
    done = shell(script, *arguments)
    if "--help" not in arguments:
        assert (done.returncode, done.stderr.count(b"\n")) == (3, 1), done
        assert told in done.stderr


@pytest.mark.parametrize("script", ["2>&-", "2>/dev/full", "<&-", "<&- 2>&-"])
def test_what_only_complains_needs_no_listener(script, tmp_path):
    answer = tmp_path / "rules.txt"
    done = shell(script, "rules", "-o", str(answer))
    assert (done.returncode, done.stdout) == (0, b"")
    assert answer.read_text().startswith("DRIVER")
    assert shell(script + " >&-", "pin", "tor ch").returncode == 2


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path):
    answer = tmp_path / "rules.json"
    done = shell("<&- >&- 2>&-", "rules", "--format", "json", "-o", str(answer))
    assert done.returncode == 0
    assert answer.read_text().startswith(("[", "{"))
    assert list(tmp_path.iterdir()) == [answer]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "koi8-r", "utf-16"])
@pytest.mark.parametrize("arguments", [COMMANDS[0], COMMANDS[4]], ids=lambda words: words[0])
def test_a_legacy_encoding_shows_likenesses(arguments, encoding):
    environ = {**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C"}
    call = [sys.executable, "-m", "envdoctor", *arguments]
    done = subprocess.run(call, capture_output=True, timeout=60, check=False, env=environ)
    assert (done.returncode, done.stderr) == (0, b""), done
    done.stdout.decode(encoding)


NO_REQUESTS = ["torch==\u0663", "torch==" + "9" * 5000, "torch~=2", "tor ch", "\x1b[31m"]


@pytest.mark.parametrize("wanted", NO_REQUESTS)
def test_a_request_that_is_none_is_one_line(wanted, capsys):
    assert main(["pin", wanted, "--offline"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "\x1b" not in said


def test_a_file_name_may_be_too_long(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name = "a" * 5000
    for arguments in (
        ["diagnose", "--from", name],
        ["memory", "--model", name, "--gpu", "H100"],
        ["pin", "-r", name],
        ["rules", "-o", name],
        ["bundle", "-o", name, "--log", name],
        ["fleet", "--facts", name],
        ["probe", "--python", name],
    ):
        status, said = main(arguments), capsys.readouterr().err
        assert (status, said.count("\n")) in ((2, 1), (3, 1)), (arguments, said)
    assert not list(tmp_path.iterdir())
