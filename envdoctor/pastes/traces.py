"""What the paths in tracebacks and loader messages tell: the Python that ran, and what it had installed."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor import lazy_re as re
from envdoctor.pastes.sightings import Paste, Sighting

_SITE = re.compile(r"[/\\]lib[/\\]python(3\.\d{1,2})[/\\](?:site|dist)-packages[/\\]")
_TAG = re.compile(r"\.cpython-3(\d{1,2})-(?:x86_64|aarch64)-linux")
_ARCH = re.compile(r"\.cpython-3\d{1,2}-(x86_64|aarch64)-linux")


_NARROW = re.compile(r"\bPython3\d{1,2}-32\b|\b32 bit \(Intel\)")
"""The folder and the banner of a Python of 32 bits for Windows."""
_WINDOWS = re.compile(
    r"\b[A-Za-z]:[/\\]{1,2}(?:[^\s\"']{1,200}[/\\])?(?:site-packages|python\.exe|[\w.-]{1,80}\.py)\b|"
    r"\b[A-Z]:\\{1,2}(?:Program Files|Users|Windows)\b|"
    r"^(?:\([\w.-]{1,40}\) ?)?(?:PS )?[A-Z]:\\[^<>|\n]{0,200}>"
)
"""A path of Python's with a drive, and the prompt of Windows' shells."""
_LINUX = re.compile(
    r"[\"' ]/(?:home|root)/[^\s\"']{1,200}\.py\b|/dist-packages/|\.cpython-3\d{1,2}-\w{4,8}-linux"
)
"""Homes of users, Debian's folder for packages, and the tag of modules that are compiled for Linux."""
_MAC = re.compile(
    r"/Library/Frameworks/Python\.framework/|/opt/homebrew/|/usr/local/Cellar/|\.cpython-3\d{1,2}-darwin|"
    r"[\"' ]/Users/[^\s\"']{1,200}\.py\b"
)
"""Where Python lies on a Mac, and the tag of modules that are compiled for it."""
_OF_MAC = ("/Library/", "/opt/homebrew/", "/Cellar/", "-darwin", "/Users/")
_OF_LINUX = ("/home/", "/root/", "/dist-packages/", ".cpython-3")
"""One of these stands in each such path: most lines of a log with a path in them hold none."""


def parse_traces(paste: Paste) -> Iterator[Sighting]:
    """Yield Python's version, the architecture and the system from the first path that shows each."""
    for index, line in enumerate(paste.lines):
        if "-packages" in line and (match := _SITE.search(line)):
            yield Sighting("environment.python", match[1], paste.at("traceback", index))
            break
    for index, line in enumerate(paste.lines):
        if ".cpython-3" in line and (match := _TAG.search(line)):
            source = paste.at("", index)
            yield Sighting("environment.python", f"3.{match[1]}", source)
            if arch := _ARCH.search(line):
                yield Sighting("host.arch", arch[1], source)
            break
    for index, line in enumerate(paste.lines):
        if "32" in line and _NARROW.search(line):
            yield Sighting("host.arch", "x86", paste.at("", index))
            break
    for index, line in enumerate(paste.lines):
        if ":\\" in line and _WINDOWS.search(line):
            yield Sighting("host.os", "windows", paste.at("", index))
            return
    for system, signs, pattern in (("macos", _OF_MAC, _MAC), ("linux", _OF_LINUX, _LINUX)):
        for index, line in enumerate(paste.lines):
            if any(sign in line for sign in signs) and pattern.search(line):
                yield Sighting("host.os", system, paste.at("traceback", index))
                return
