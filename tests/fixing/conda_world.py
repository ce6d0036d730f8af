"""A conda environment without conda: a copied interpreter, and a stand-in that installs from wheels.

As conda does, the stand-in writes the environment's own place into scripts, and a record into `conda-meta`.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from small_world import install

_STAND_IN = """#!{python} -I
import json, os, pathlib, shutil, signal, sys, time, zipfile
verb, yes, option, prefix, *specs = sys.argv[1:]
assert (yes, option) == ("-y", "-p"), sys.argv
home, prefix = pathlib.Path(__file__).parent, pathlib.Path(prefix)
told = (home / "told").read_text() if (home / "told").exists() else ""
if prefix.name != "clone" and told == "fail":
    sys.exit("no space left on device")
(site,) = prefix.glob("lib/python3*/site-packages")
name = specs[-1].partition(">")[0].partition("=")[0]
def take_out(name):
    for path in [site / name, *site.glob(name + "-*.dist-info")]:
        shutil.rmtree(path)
    for path in (prefix / "conda-meta").glob(name + "-*.json"):
        path.unlink()
take_out(name)
if prefix.name != "clone" and told == "kill":
    os.kill(os.getppid(), signal.SIGKILL)
    for _ in range(200):  # as an installer does, it goes on
        if not (home / "told").exists():
            break
        time.sleep(0.1)
    (prefix / "late").touch()
    sys.exit(1)
if told == "lose":
    take_out("gammaline")
wheel = max(home.glob(name + "-*.whl"))
zipfile.ZipFile(wheel).extractall(site)
version = wheel.name.split("-")[1]
(next(site.glob(name + "-*.dist-info")) / "INSTALLER").write_text("conda")
(prefix / "conda-meta" / f"{{name}}-{{version}}-0.json").write_text("{{}}")
with open(prefix / "conda-meta" / "history", "a") as stream:
    stream.write(f"+{{name}}-{{version}}\\n")
(prefix / "bin" / f"{{name}}-say").write_text(f"#!{{prefix}}/bin/python\\n")
"""


def make_stand_in(wheels: Path) -> Path:
    """Put a stand-in for conda beside the wheels that it installs, and return it."""
    path = wheels / "conda"
    path.write_text(_STAND_IN.format(python=os.path.realpath(sys.executable)))
    path.chmod(0o755)
    return path


def make_conda_environment(folder: Path, condas: tuple[str, ...], pips: tuple[str, ...] = ()) -> Path:
    """Make an environment as conda does: an interpreter of its own, and a record of each package."""
    base = Path(os.path.realpath(sys.executable))
    stem = f"python3.{sys.version_info.minor}"
    library = Path(os.__file__).parent
    (folder / "bin").mkdir(parents=True)
    (folder / "conda-meta").mkdir()
    shutil.copy(base, folder / "bin" / stem)
    (folder / "bin/python").symlink_to(stem)
    inside = folder / "lib" / stem
    inside.mkdir(parents=True)
    for path in library.iterdir():
        if path.name != "site-packages":
            (inside / path.name).symlink_to(path)
    (inside / "site-packages").mkdir()
    python = folder / "bin/python"
    install(python, *condas, *pips)
    told = ".".join(map(str, sys.version_info[:3]))
    for name, version in (*(one.split("==") for one in condas), ("python", told)):
        (folder / "conda-meta" / f"{name}-{version}-0.json").write_text("{}")
    (folder / "conda-meta/history").write_text("==> first <==\n")
    return python
