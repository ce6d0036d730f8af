"""The two ways a command can fail without having an answer, and what a mistyped word may have meant."""

from __future__ import annotations

from collections.abc import Iterable


class EnvdoctorError(Exception):
    """An error with a one-line message for the user and the exit code it means."""

    exit_code = 3


class InputError(EnvdoctorError):
    """The call or an input file is unusable; the message names the file, line or option."""

    exit_code = 2


class Unavailable(EnvdoctorError):
    """The answer could not be had (a probe, an engine, the network); the message says which."""

    exit_code = 3


def nearest(given: str, names: Iterable[str]) -> str:
    """Return `; nearest: …` with the names that come near what was given, for the end of a message."""
    from difflib import get_close_matches

    known = {name.lower(): name for name in names}
    close = get_close_matches(given.lower(), known, n=2, cutoff=0.6)
    return f"; nearest: {', '.join(known[name] for name in close)}" if close else ""
