"""A command under watch looks to its caller as it does alone."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from passing import PYTHON, WATCH, Act, Terminal, await_ready, both, on_terminal, script, seen

LETHAL = [
    signal.Signals[f"SIG{name}"]
    for name in ("HUP", "INT", "QUIT", "ABRT", "KILL", "SEGV", "PIPE", "TERM", "USR1", "XCPU")
    if f"SIG{name}" in signal.Signals.__members__
]


@pytest.mark.parametrize("code", [0, 1, 2, 3, 77, 126, 127, 128, 137, 255])
def test_exit_codes(tmp_path: Path, code: int) -> None:
    alone, watched = both(["sh", "-c", f"echo out; echo err >&2; exit {code}"], tmp_path)
    assert watched == alone
    assert alone.status == code


@pytest.mark.parametrize("number", LETHAL, ids=lambda s: s.name)
def test_killed_by_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    alone, watched = both(["sh", "-c", f"ulimit -c 0; echo out; kill -{number.value} $$"], tmp_path)
    assert watched == alone
    assert alone.status == -number


def send(number: int, *, group: bool = False, times: int = 1, pause: float = 0.3) -> Act:
    def act(child: subprocess.Popen[bytes]) -> tuple[object, ...]:
        await_ready(child)
        for _ in range(times):
            (os.killpg if group else os.kill)(child.pid, number)
            time.sleep(pause)
        return ()

    return act


COUNTS = """
seen = []
for s in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
    signal.signal(s, lambda n, _: seen.append(n))
print("ready")
until = time.monotonic() + 1.5
while time.monotonic() < until: time.sleep(0.01)
print(seen)
"""


@pytest.mark.parametrize("group", [False, True], ids=["to it alone", "to its group"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP])
def test_a_signal_comes_once(tmp_path: Path, number: signal.Signals, group: bool) -> None:
    alone, watched = both(script(COUNTS), tmp_path, send(number, group=group))
    assert watched == alone
    assert str([int(number)]) in alone.stdout.decode()


@pytest.mark.parametrize("group", [False, True], ids=["to it alone", "to its group"])
def test_double_interrupt(tmp_path: Path, group: bool) -> None:
    alone, watched = both(script(COUNTS), tmp_path, send(signal.SIGINT, group=group, times=2))
    assert watched == alone
    assert b"[2, 2]" in alone.stdout


def test_a_command_that_ignores_sigterm(tmp_path: Path) -> None:
    code = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready'); time.sleep(1); print('still here')"
    alone, watched = both(script(code), tmp_path, send(signal.SIGTERM))
    assert watched == alone
    assert alone.status == 0


def test_ended_from_outside(tmp_path: Path) -> None:
    alone, watched = both(script("print('ready'); time.sleep(30)"), tmp_path, send(signal.SIGTERM))
    assert watched == alone
    assert alone.status == -signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP])
def test_stopped_and_continued(tmp_path: Path, number: signal.Signals) -> None:
    def act(child: subprocess.Popen[bytes]) -> tuple[object, ...]:
        await_ready(child)
        os.kill(child.pid, number)
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        time.sleep(1.0)
        os.kill(child.pid, signal.SIGCONT)
        return os.WIFSTOPPED(status), os.WSTOPSIG(status)

    code = """
longest, before = 0, time.monotonic()
print("ready")
until = before + 3
while before < until:
    time.sleep(0.01)
    now = time.monotonic()
    longest, before = max(longest, now - before), now
print("paused" if longest > 0.4 else "ran on")
"""
    alone, watched = both(script(code), tmp_path, act)
    assert watched == alone
    assert b"paused" in alone.stdout


def test_it_stops_itself(tmp_path: Path) -> None:
    def act(child: subprocess.Popen[bytes]) -> tuple[object, ...]:
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        os.killpg(child.pid, signal.SIGCONT)
        return (os.WSTOPSIG(status),)

    alone, watched = both(script("os.kill(os.getpid(), signal.SIGSTOP); print('on')"), tmp_path, act)
    assert watched == alone


PROGRAMS = {
    "binary output": (script("sys.stdout.buffer.write(bytes(range(256)) * 500)"), b""),
    "binary input": (["cat"], bytes(range(256)) * 4000),
    "hundred megabytes": (["head", "-c", "100000000", "/dev/zero"], b""),
    "no newline at the end": (["printf", "abc"], b""),
    "nothing at all": (["true"], b""),
    "both streams": (script("os.write(1, b'o' * 70000); os.write(2, b'e' * 70000)"), b""),
    "closed output": (script("os.close(1); os.write(2, b'still here')"), b""),
    "an argument with a dash": (["printf", "%s|", "--", "-o", "--quiet", "--format"], b""),
    "a script without an interpreter's name": (
        ["sh", "-c", 'cd "$XDG_STATE_HOME"; printf "exit 5\n" > s; chmod +x s; exec ./s'],
        b"",
    ),
    "its own group": (["sh", "-c", "setsid -w sh -c 'exit 9'; echo $?"], b""),
    "unbuffered standard error": (script("sys.stderr.write('x'); sys.exit('said')"), b""),
    "environment": (["sh", "-c", "env -u _ -u XDG_STATE_HOME | sort"], b""),
    "locale C": (["env", "-i", "LC_ALL=C", "sh", "-c", "env | sort | grep LC_"], b""),
    "signal settings": (["sh", "-c", "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"], b""),
    "open descriptors": (["sh", "-c", "ls /proc/self/fd | wc -l"], b""),
    "a grandchild that outlives it": (["sh", "-c", "(sleep 0.4; echo late) & echo soon"], b""),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(tmp_path: Path, name: str) -> None:
    argv, stdin = PROGRAMS[name]
    alone, watched = both(argv, tmp_path, stdin=stdin)
    assert watched == alone


@pytest.mark.parametrize("what", ["gone", "./folder"])
def test_what_cannot_be_run_is_answered_as_a_shell_does(tmp_path: Path, what: str) -> None:
    (tmp_path / "folder").mkdir()
    shell = subprocess.run(["sh", "-c", what], cwd=tmp_path, capture_output=True, check=False)
    watched = subprocess.run([*WATCH, what], cwd=tmp_path, capture_output=True, check=False)
    assert watched.returncode == shell.returncode
    assert watched.stderr.count(b"\n") == 1


def test_a_reader_that_leaves(tmp_path: Path) -> None:
    def statuses(words: str) -> str:
        line = f"{words} {PYTHON} -c 'while True: print(1)' 2>/dev/null | head -1; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        return done.stdout

    assert statuses(" ".join(WATCH)) == statuses("")


@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_were_never_open(tmp_path: Path, streams: str) -> None:
    code = "for f in 0 1 2; do test -e /proc/self/fd/$f && printf $f; done > {out}; exit 4"

    def told(words: list[str], out: Path) -> tuple[int, str]:
        inner = code.format(out=out)
        done = subprocess.run(
            ["bash", "-c", f'"$@" {streams}', "x", *words, "bash", "-c", inner], capture_output=True
        )
        return done.returncode, out.read_text()

    assert told(WATCH, tmp_path / "b") == told([], tmp_path / "a")


def test_files_are_written_in_place(tmp_path: Path) -> None:
    done = {}
    for name, words in (("alone", []), ("watched", WATCH)):
        path = tmp_path / name
        path.write_text("before\n")
        line = 'exec >> "$0" 2>&1; "$@"; echo $?'
        command = ["sh", "-c", "echo a; echo b >&2; exit 3"]
        subprocess.run(["bash", "-c", line, path, *words, *command], check=True)
        done[name] = path.read_text()
    assert done["watched"] == done["alone"] == "before\na\nb\n3\n"


def screens(argv: list[str], state: Path, play: Callable[[Terminal], None]) -> list[tuple[int, bytes]]:
    return [on_terminal([*words, *argv], state, play) for words in ([], WATCH)]


def test_a_terminal_and_its_size(tmp_path: Path) -> None:
    code = "print([os.isatty(f) for f in (0, 1, 2)], os.get_terminal_size(1), os.get_terminal_size(2))"
    alone, watched = screens(script(code), tmp_path, lambda _: None)
    assert watched == alone
    assert b"columns=100, lines=30" in watched[1]


def test_a_terminal_that_changes_its_size(tmp_path: Path) -> None:
    code = """
def told(*_): print(os.get_terminal_size(1).columns)
signal.signal(signal.SIGWINCH, told)
print("ready")
until = time.monotonic() + 1.5
while time.monotonic() < until: time.sleep(0.01)
"""

    def play(terminal: Terminal) -> None:
        import fcntl
        import struct
        import termios

        terminal.until(b"ready")
        fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 66, 0, 0))

    for status, screen in screens(script(code), tmp_path, play):
        assert status == 0
        assert screen.strip().endswith(b"66")


@pytest.mark.parametrize(("keys", "status"), [(b"\x03", -2), (b"\x1c", -3)], ids=["Ctrl-C", "Ctrl-\\"])
def test_keys_that_end_it(tmp_path: Path, keys: bytes, status: int) -> None:
    code = "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nprint('ready'); time.sleep(30)"

    def play(terminal: Terminal) -> None:
        terminal.until(b"ready")
        terminal.type(keys)

    (alone, _), (watched, _) = screens(script(code), tmp_path, play)
    assert watched == alone == status


def test_typed_lines_are_read(tmp_path: Path) -> None:
    def play(terminal: Terminal) -> None:
        terminal.until(b"name? ")
        terminal.type(b"Ada\n")

    alone, watched = screens(script("print('hello', input('name? '))"), tmp_path, play)
    assert watched == alone
    assert b"hello Ada" in watched[1]


@pytest.mark.parametrize("words", [[], WATCH], ids=["alone", "watched"])
def test_a_job_of_a_shell(tmp_path: Path, words: list[str]) -> None:
    """Ctrl-Z, `jobs`, `fg`, Ctrl-C, as at any prompt."""

    def play(terminal: Terminal) -> None:
        terminal.type(b"PS1='$ '; PROMPT_COMMAND=; bind 'set enable-bracketed-paste off'\n")
        terminal.until(b"$ ")
        terminal.type(" ".join([*words, "sh", "-c", "'echo re''ady; sleep 40'"]).encode() + b"\n")
        terminal.until(b"ready")
        time.sleep(0.3)  # dash that starts a program by vfork cannot stop
        terminal.type(b"\x1a")
        terminal.until(b"Stopped")
        terminal.type(b"jobs\n")
        terminal.until(b"Stopped")
        terminal.type(b"fg\n")
        terminal.until(b"sleep 40")
        time.sleep(1.5)  # until all that was stopped runs again, on a busy machine too
        terminal.type(b"\x03")
        terminal.until(b"$ ")
        terminal.type(b"echo code=$?\n")
        terminal.until(b"code=130")
        terminal.type(b"exit\n")

    on_terminal(["bash", "--norc", "-i"], tmp_path, play)


def test_the_watch_is_killed_and_the_command_goes_on(tmp_path: Path) -> None:
    code = """
print("ready")
for i in range(5):
    time.sleep(0.2); print(i)
"""
    done = seen([*WATCH, *script(code)], tmp_path, send(signal.SIGKILL))
    assert done.status == -signal.SIGKILL
    assert done.stdout == b"0\n1\n2\n3\n4\n"
