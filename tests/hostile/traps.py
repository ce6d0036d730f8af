"""An environment in which everything that Python, a shell or we could run leaves a mark."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

INSTALLED = {
    "torch": "2.9.0",
    "torchvision": "0.24.0",
    "transformers": "4.57.6",
    "deepspeed": "0.18.2",
    "xformers": "0.0.33",
    "vllm": "0.12.0",
    "flash_attn": "2.8.3",
}


class Traps(NamedTuple):
    """The environment, its packages folder, and where its traps leave their marks."""

    prefix: Path
    site: Path
    marks: Path

    def sprung(self) -> list[str]:
        """Return the names of the traps that something ran into."""
        return sorted(path.name for path in self.marks.iterdir())

    def reset(self) -> None:
        """Take away the marks."""
        for mark in self.marks.iterdir():
            mark.unlink()

    def code(self, name: str) -> str:
        """Return a line of Python that leaves a mark, builtins alone."""
        return f"open({str(self.marks / name)!r}, 'a').close()\n"

    def module(self, folder: Path, name: str) -> None:
        """Lay a trap for whoever imports that module."""
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "__init__.py").write_text(self.code(f"import {name}"))

    def script(self, path: Path, mode: int = 0o755) -> None:
        """Lay a trap for whoever runs that script."""
        path.parent.mkdir(parents=True, exist_ok=True)
        mark = self.marks / f"run {path.name}"
        path.write_text(f"#!/bin/sh\n: > '{mark}'\nexec python3 \"$@\" -x\n")
        path.chmod(mode)


def lay_traps(folder: Path, version: str = "3.12.3") -> Traps:
    """Return a virtual environment full of traps."""
    short = ".".join(version.split(".")[:2])
    prefix = folder / "env"
    traps = Traps(prefix, prefix / f"lib/python{short}/site-packages", folder / "marks")
    traps.marks.mkdir()
    traps.site.mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {version}\n")
    _lay_hooks(traps)
    _lay_packages(traps)
    _lay_scripts(traps)
    return traps


def _lay_hooks(traps: Traps) -> None:
    """What Python's site runs at every start."""
    for name in ("sitecustomize", "usercustomize"):
        (traps.site / f"{name}.py").write_text(traps.code(name))
    (traps.site / "trap.pth").write_text("import builtins; " + traps.code("pth"))
    (traps.site / "trap.start").write_text("trap_start:main\n")
    (traps.site / "startup.py").write_text(traps.code("startup"))
    traps.module(traps.site, "trap_start")


def _lay_packages(traps: Traps) -> None:
    """What an import of ours could find there, and packages that are examined for their builds."""
    for name, version in INSTALLED.items():
        traps.module(traps.site, name)
        told = f"__version__ = '{version}'\n"
        (traps.site / name / "version.py").write_text(traps.code(f"{name}.version") + told)
        info = traps.site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n\n")
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n")
        (info / "INSTALLER").write_text("pip\n")
        (info / "entry_points.txt").write_text(f"[envdoctor.smokes]\ntrap = {name}:ops\n")


def _lay_scripts(traps: Traps) -> None:
    """What a shell or a look on PATH would run."""
    names = ("python", "python3", "python3.12", "pip", "nvidia-smi", "nvcc", "uv", "conda", "ldconfig", "sh")
    for name in names:
        traps.script(traps.prefix / "bin" / name)
    for folder in ("activate.d", "deactivate.d"):
        traps.script(traps.prefix / "etc/conda" / folder / f"{folder}.sh")


def shadow(traps: Traps, folder: Path) -> None:
    """Lay a trap under the name of every module that our process may import."""
    for name in (*our_modules(), *(sys.stdlib_module_names - started_with())):
        if name != "envdoctor":
            traps.module(folder, name)


@cache
def started_with() -> frozenset[str]:
    """Return the modules that Python has imported before it runs a first line."""
    line = "import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", line], capture_output=True, text=True, check=True)
    return frozenset(name.partition(".")[0] for name in done.stdout.split())


@cache
def our_modules() -> set[str]:
    """Return the top modules of all that envdoctor requires, with and without extras."""
    wanted, seen = ["envdoctor-gpu"], set[str]()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            wanted += [Requirement(text).name for text in metadata.requires(name) or ()]
        except metadata.PackageNotFoundError:
            continue
    owners = metadata.packages_distributions()
    modules = {module for module, names in owners.items() if {one.lower() for one in names} & seen}
    return modules | {"tomli", "re2", "ray", "ClusterShell", "exceptiongroup", "typing_extensions"}
