"""Signals as a shell hands them on, whoever started the tests: `nohup` and `&` leave some ignored."""

from __future__ import annotations

import signal

import pytest


@pytest.fixture(autouse=True, scope="session")
def signals_at_their_defaults() -> None:
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
