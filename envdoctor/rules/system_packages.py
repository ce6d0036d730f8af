"""Commands of the system's package manager: rows name Debian's packages, others name them otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from envdoctor import lazy_re as re
from envdoctor.rules.view import View

_APT = re.compile(r"sudo apt-get install (?:-y )?(?P<names>[\w.+ -]+)")
_DNF = re.compile(r"fedora|rhel|red hat|centos|rocky|alma|oracle|amazon|openeuler|anolis|alinux|el[789]\b")
_PACMAN = re.compile(r"\b(?:arch|manjaro|endeavouros)\b")
_NAMES: Mapping[str, Mapping[str, str]] = {
    "dnf": {
        r"python3-dev": "python3-devel",
        r"build-essential": "gcc gcc-c++ make",
        r"gcc-(\d+)": r"gcc-toolset-\1",
        r"g\+\+-\d+": "",
        r"libgl1": "mesa-libGL",
        r"libaio-dev": "libaio-devel",
        r"cuda-toolkit-(\d+-\d+)": r"cuda-toolkit-\1",
        r"nvidia-container-toolkit": "nvidia-container-toolkit",
        r"nvidia-driver-\d+(?:-open)?": "cuda-drivers",
    },
    "pacman": {
        r"python3-dev": "python",
        r"build-essential": "base-devel",
        r"libgl1": "libglvnd",
        r"libaio-dev": "libaio",
        r"cuda-toolkit-\d+-\d+": "cuda",
        r"nvidia-container-toolkit": "nvidia-container-toolkit",
        r"nvidia-driver-\d+(?:-open)?": "nvidia-open",
    },
}
_CALL = {"dnf": "sudo dnf install", "pacman": "sudo pacman -S"}


def fitting_commands(view: View, commands: Iterable[str]) -> tuple[str, ...]:
    """Return the commands as this system has them; what it has under no known name is left out.

    Windows installs nothing this way, and WSL takes its driver from Windows.
    """
    host = view.facts.host
    kept = [c for c in commands if not (host.os.get() == "windows" and c.startswith("sudo "))]
    if host.wsl.get():
        kept = [c for c in kept if "install nvidia-driver" not in c]
    manager = _manager((host.distro.get() or "").lower())
    if manager is None:
        return tuple(kept)
    return tuple(told for command in kept if (told := _translated(command, manager)))


def _manager(distro: str) -> str | None:
    """The package manager of a distribution that is not Debian's; None when it is, or is not told."""
    if _DNF.search(distro):
        return "dnf"
    return "pacman" if _PACMAN.search(distro) else None


def _translated(command: str, manager: str) -> str:
    match = _APT.fullmatch(command)
    if match is None:
        return "" if command.startswith("sudo apt-get") else command
    names = [_renamed(name, _NAMES[manager]) for name in match["names"].split()]
    known = " ".join(name for name in names if name)
    return f"{_CALL[manager]} {known}" if known and None not in names else ""


def _renamed(name: str, table: Mapping[str, str]) -> str | None:
    for pattern, other in table.items():
        if match := re.fullmatch(pattern, name):
            return match.expand(other)
    return None
