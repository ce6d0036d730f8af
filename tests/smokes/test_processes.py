"""Child processes: their output bounded, their time bounded, their descendants ended."""

from __future__ import annotations

import os
import sys
import time

import pytest

from envdoctor.errors import Unavailable
from envdoctor.processes import Child, kill_all, run_child, signal_name


def python(source, **options):
    return run_child([sys.executable, "-c", source], **{"timeout_s": 20.0, **options})


def test_output_status_and_input_are_carried():
    done = python(
        "import sys; print(sys.stdin.read()[::-1]); sys.stderr.write('oh'); sys.exit(4)", stdin=b"abc"
    )
    assert (done.stdout, done.stderr, done.returncode) == ("cba\n", "oh", 4)
    assert not done.timed_out
    assert not done.truncated


def test_a_signal_is_named():
    done = python("import os; os.abort()")
    assert done.signal == "SIGABRT"
    assert signal_name(0) is None


def test_output_beyond_the_bound_is_dropped_and_said():
    done = python("print('x' * 100_000)", max_bytes=1000)
    assert len(done.stdout) == 1000
    assert done.truncated


def test_past_the_deadline_the_whole_group_is_killed(tmp_path):
    source = "import subprocess as s; p = s.Popen(['sleep', '600']); print(p.pid, flush=True); p.wait()"
    done = python(source, timeout_s=1.5)
    assert done.timed_out
    assert _gone(int(done.stdout))


def test_a_descendant_that_holds_the_pipe_does_not_hold_us():
    source = "import subprocess as s; print(s.Popen(['sleep', '600']).pid)"
    done = python(source)
    assert done.returncode == 0
    assert not done.timed_out
    assert _gone(int(done.stdout))


def test_more_input_than_is_read_is_no_error():
    assert python("pass", stdin=b"x" * 1_000_000).returncode == 0


def test_a_program_that_is_not_there_is_unavailable():
    with pytest.raises(Unavailable, match="nowhere: cannot be run: No such file"):
        run_child(["/nowhere"], timeout_s=1)


def test_all_children_can_be_ended_at_once():
    child = Child(["sleep", "600"])
    kill_all()
    assert child.ended()
    assert child.close() == -9


def _gone(pid):
    """True once it has ended, which may be a moment after it was killed."""
    deadline = time.monotonic() + 5
    while not _ended(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return _ended(pid)


def _ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except (OSError, ValueError):
        return not os.path.exists(f"/proc/{pid}")
