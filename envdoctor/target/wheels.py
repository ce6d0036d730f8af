"""Which wheel tags install on a target."""

from __future__ import annotations

from envdoctor import lazy_re as re
from envdoctor.matrix.snapshot import parse_manylinux
from envdoctor.target.platforms import Platform
from envdoctor.target.resolve import Target

_VERSIONED = re.compile(r"(musllinux|macosx)_(\d+)_(\d+)_(.+)")
_MAC_ARCHS = {
    "arm64": ("arm64", "universal2"),
    "x86_64": ("x86_64", "universal2", "intel", "fat64", "fat32", "universal"),
}


class Wheels:
    """Tells wheel tags that install on a target from others; parts of tags, which recur, are judged once."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._platforms: dict[str, bool] = {}
        self._pythons: dict[str, bool] = {}

    def install(self, tag: str) -> bool:
        """Return whether a wheel with the compressed tag `cp311-cp311-manylinux…` installs."""
        interpreter, _, platforms = tag.rpartition("-")
        fits = self._platforms.get(platforms)
        if fits is None:
            split = platforms.split(".")
            fits = self._platforms[platforms] = any(platform_fits(p, self.target.platform) for p in split)
        return fits and self._runs(interpreter)

    def floor(self, tag: str) -> tuple[int, int] | None:
        """Return from which glibc on a wheel installs on Linux, on the target's architecture; None: never."""
        interpreter, _, platforms = tag.rpartition("-")
        told = [glibc_floor(one, self.target.platform.arch) for one in platforms.split(".")]
        return min(filter(None, told), default=None) if self._runs(interpreter) else None

    def _runs(self, interpreter: str) -> bool:
        fits = self._pythons.get(interpreter)
        if fits is None:
            pythons, abis = (part.split(".") for part in interpreter.split("-"))
            minor = self.target.python[1]
            fits = any(_python_fits(p, a, minor) for p in pythons for a in abis)
            self._pythons[interpreter] = fits
        return fits


def _python_fits(python: str, abi: str, minor: int) -> bool:
    generic = re.fullmatch(r"py3(\d*)", python)
    if generic:
        return abi == "none" and int(generic[1] or 0) <= minor
    exact = re.fullmatch(r"cp3(\d+)", python)
    if exact is None:
        return False
    built = int(exact[1])
    if abi == "abi3":
        return built <= minor
    return built == minor and abi in ("none", f"cp3{minor}", f"cp3{minor}m")


def platform_fits(tag: str, platform: Platform) -> bool:
    """Return whether one platform tag fits an operating system, architecture and C library."""
    if tag == "any":
        return True
    if platform.os == "windows":
        return tag == {"AMD64": "win_amd64", "ARM64": "win_arm64"}[platform.arch]
    if platform.libc == "glibc":
        floor = glibc_floor(tag, platform.arch)
        return floor is not None and floor <= platform.libc_version
    if platform.os == "linux" and tag == f"linux_{platform.arch}":
        return True
    match = _VERSIONED.fullmatch(tag)
    return match is not None and _versioned_fits(match, platform)


def glibc_floor(tag: str, arch: str) -> tuple[int, int] | None:
    """Return from which glibc on one platform tag fits a Linux of an architecture; None: never."""
    if tag in ("any", f"linux_{arch}"):
        return 0, 0
    asked = parse_manylinux(tag)
    return asked[0] if asked is not None and asked[1] == arch else None


def _versioned_fits(match: re.Match[str], platform: Platform) -> bool:
    family = {"musl": "musllinux", "macos": "macosx"}.get(platform.libc)
    if match[1] != family or (int(match[2]), int(match[3])) > platform.libc_version:
        return False
    if family == "macosx":
        return match[4] in _MAC_ARCHS[platform.arch]
    return match[4] == platform.arch
