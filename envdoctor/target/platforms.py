"""Platforms and Pythons, as people name them and as this interpreter tells."""

from __future__ import annotations

import sys

from envdoctor import lazy_re as re
from envdoctor.errors import InputError
from envdoctor.values import dataclass

_LINUX = re.compile(r"(x86_64|aarch64)-(manylinux|musllinux)_(\d+)_(\d+)")
_NAMED = {
    "linux": "x86_64-manylinux_2_28",
    "x86_64-unknown-linux-gnu": "x86_64-manylinux_2_28",
    "aarch64-unknown-linux-gnu": "aarch64-manylinux_2_28",
    "x86_64-manylinux2014": "x86_64-manylinux_2_17",
    "aarch64-manylinux2014": "aarch64-manylinux_2_17",
    "x86_64-unknown-linux-musl": "x86_64-musllinux_1_2",
    "aarch64-unknown-linux-musl": "aarch64-musllinux_1_2",
}
_MAC = {"macos": "arm64", "aarch64-apple-darwin": "arm64", "x86_64-apple-darwin": "x86_64"}
_WINDOWS = {"windows": "AMD64", "x86_64-pc-windows-msvc": "AMD64", "aarch64-pc-windows-msvc": "ARM64"}


@dataclass(frozen=True, slots=True)
class Platform:
    """An operating system, architecture and C library (`glibc` or `musl`; macOS: the system's version)."""

    name: str
    os: str
    arch: str
    libc: str
    libc_version: tuple[int, int]


def parse_platform(text: str) -> Platform:
    """Read one of uv's platform names; raises InputError."""
    name = _NAMED.get(text, text)
    if match := _LINUX.fullmatch(name):
        libc = "glibc" if match[2] == "manylinux" else "musl"
        return Platform(text, "linux", match[1], libc, (int(match[3]), int(match[4])))
    if text in _MAC:
        return Platform(text, "macos", _MAC[text], "macos", (14, 0))
    if text in _WINDOWS:
        return Platform(text, "windows", _WINDOWS[text], "windows", (0, 0))
    raise InputError(f"--platform {text}: not a platform; for example x86_64-manylinux_2_35, macos, windows")


def parse_python(text: str) -> tuple[int, ...]:
    """Read `3.11` or `3.11.7`; raises InputError."""
    if not re.fullmatch(r"3\.\d{1,2}(\.\d{1,2})?", text):
        raise InputError(f"--python-version {text}: expected something like 3.11")
    return tuple(int(part) for part in text.split("."))


def linux_platform(arch: str, glibc: str) -> Platform:
    """Return the platform of a Linux with that architecture and glibc version."""
    major, minor = (int(part) for part in glibc.split(".")[:2])
    return Platform(f"{arch}-manylinux_{major}_{minor}", "linux", arch, "glibc", (major, minor))


def this_platform() -> Platform:
    """Return the platform this interpreter runs on."""
    import platform

    arch = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    if sys.platform == "darwin":
        return parse_platform("macos" if arch == "aarch64" else "x86_64-apple-darwin")
    if sys.platform == "win32":
        return parse_platform("windows" if arch == "x86_64" else "aarch64-pc-windows-msvc")
    libc, version = platform.libc_ver()
    if libc == "glibc" and version:
        return linux_platform(arch, version)
    return parse_platform(f"{arch}-musllinux_1_2")


def this_python() -> tuple[int, ...]:
    """Return this interpreter's version."""
    return tuple(sys.version_info[:3])


def python_of(text: str) -> tuple[int, ...]:
    """Return the release numbers of an interpreter's version, such as `3.11.7` or `3.13.0rc1`."""
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part) for part in found.groups() if part) if found else this_python()
