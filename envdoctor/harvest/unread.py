"""What a writer of generated records does where releases could not be read: it writes nothing without them.

A release that is missing from a record is told to lack all that it has. So every failure is collected, and
the run ends without a record; what was read is kept in the cache, so that a second run asks for the rest
alone. A release that can never be read is left out by name: `--without LIBRARY==RELEASE`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envdoctor.errors import EnvdoctorError, InputError, Unavailable, nearest

Releases = frozenset[tuple[str, str]]
"""Libraries' releases: name and version as the index writes them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a writer was asked for: libraries (all when none is named), and releases to be left out."""

    libraries: tuple[str, ...]
    without: Releases

    def wants(self, library: str) -> bool:
        """True for a library that is to be read."""
        return not self.libraries or library in self.libraries


def parse_asked(arguments: Sequence[str], known: Iterable[str], prog: str) -> Asked:
    """Read a writer's arguments; raises InputError for libraries that nobody reads."""
    parser = argparse.ArgumentParser(prog=f"python -m {prog}")
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help="read these alone")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="LIBRARY==RELEASE",
        help="leave this release out (repeatable); any other that cannot be read is refused",
    )
    told = parser.parse_args(arguments)
    asked = Asked(tuple(told.libraries), frozenset(map(_release, told.without)))
    names = list(known)
    for library in (*asked.libraries, *(name for name, _ in asked.without)):
        if library not in names:
            raise InputError(f"{library!r} is no library that is read{nearest(library, names)}")
    return asked


def _release(text: str) -> tuple[str, str]:
    name, _, version = text.partition("==")
    try:
        return str(canonicalize_name(name)), str(Version(version))
    except InvalidVersion:
        raise InputError(f"--without: {text!r} is not written as LIBRARY==RELEASE") from None


def refuse(unread: Sequence[str], what: str) -> None:
    """Raise Unavailable where releases could not be read: `what` is then not written."""
    if unread:
        more = f" (and {len(unread) - 1} more)" if len(unread) > 1 else ""
        raise Unavailable(
            f"{what} is not written, {len(unread)} could not be read: {unread[0]}{more};"
            " --without LIBRARY==RELEASE leaves one out"
        )


def run_writer(main: Callable[[Sequence[str]], None]) -> int:
    """Run a writer with the program's arguments; return its exit code, one line told where it failed."""
    try:
        main(sys.argv[1:])
    except EnvdoctorError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0
