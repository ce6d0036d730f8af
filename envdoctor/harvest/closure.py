"""Which packages are followed: the stack's own, and what they require, loosely.

The core is read in full, however old. What it requires is followed as far as a Linux machine with a
supported Python could need it; there, releases from before `FLOOR` are listed without their requirements,
but for the newest ones of each package.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envdoctor.matrix.snapshot import STACK

CORE = (
    *STACK,
    "numpy",
    "wandb",
    "evaluate",
    "hf-transfer",
    "tensorboard",
    "einops",
    "nvidia-ml-py",
    "pydantic",
    "scipy",
    "auto-gptq",
    "gensim",
    "gptqmodel",
    "llama-cpp-python",
    "pytorch-transformers",
    "scikit-image",
    "seqeval",
    "torchtext",
)
FLOOR = "2021-06-01"
FLOOR_REASON = "requirements of releases from before this day are not read: no supported stack reaches them"
ALWAYS_READ = 10
"""So many of a package's newest final releases are read, however old: some packages are simply finished."""
FOLLOW_SINCE = "2022-01-01"

_MACHINES = tuple(
    {
        "os_name": "posix",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "platform_release": "6.8",
        "platform_version": "",
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_version": f"{python}.0",
    }
    for machine in ("x86_64", "aarch64")
    for python in ("3.10", "3.11", "3.12", "3.13", "3.14")
)


def followed(lines: Iterable[str], extras: Iterable[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Give the (name, extras) that requirement lines ask for on some Linux machine, with these extras on."""
    wanted = ("", *sorted(extras))
    for line in lines:
        name, asked, marker = _parsed(line)
        if marker is None or any(_holds(marker, extra) for extra in wanted):
            yield name, asked


@lru_cache(maxsize=65536)
def _parsed(line: str) -> tuple[str, frozenset[str], str | None]:
    requirement = Requirement(line)
    asked = frozenset(str(canonicalize_name(extra)) for extra in requirement.extras)
    marker = str(requirement.marker).replace("===", "==") if requirement.marker else None
    return str(canonicalize_name(requirement.name)), asked, marker


@lru_cache(maxsize=65536)
def _holds(marker: str, extra: str) -> bool:
    parsed = Marker(marker)
    try:
        return any(parsed.evaluate({**machine, "extra": extra}) for machine in _MACHINES)
    except (UndefinedComparison, UndefinedEnvironmentName):
        return False
