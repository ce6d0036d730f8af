"""The two ways a command can fail without having an answer."""

from __future__ import annotations


class EnvdoctorError(Exception):
    """An error with a one-line message for the user and the exit code it means."""

    exit_code = 3


class InputError(EnvdoctorError):
    """The call or an input file is unusable; the message names the file, line or option."""

    exit_code = 2


class Unavailable(EnvdoctorError):
    """The answer could not be had (a probe, an engine, the network); the message says which."""

    exit_code = 3
