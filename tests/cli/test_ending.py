"""Signals that ask a command to end unwind it, once."""

from __future__ import annotations

import os
import signal

import pytest

from envdoctor.processes import Ended, ended_by_signals, undisturbed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_first_signal_unwinds_and_later_ones_do_not_disturb_that(number: signal.Signals) -> None:
    cleared: list[str] = []
    former = signal.signal(number, signal.SIG_DFL)  # it may be ignored, as under nohup
    with pytest.raises(Ended) as ended, ended_by_signals():
        work_until(number, cleared)
    signal.signal(number, former)
    assert (ended.value.exit_code, cleared) == (128 + number, ["all"])


def work_until(number: signal.Signals, cleared: list[str]) -> None:
    try:
        os.kill(os.getpid(), number)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        cleared.append("all")


def test_a_signal_waits_until_what_was_started_is_known() -> None:
    known: list[str] = []
    with pytest.raises(Ended), ended_by_signals():
        start_something(known)
    assert known == ["child"]


def start_something(known: list[str]) -> None:
    with undisturbed():
        os.kill(os.getpid(), signal.SIGTERM)
        known.append("child")


def test_a_signal_that_is_ignored_stays_so() -> None:
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with ended_by_signals():
        os.kill(os.getpid(), signal.SIGHUP)
    assert signal.signal(signal.SIGHUP, former) is signal.SIG_IGN
