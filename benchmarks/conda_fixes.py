"""`envdoctor fix` on environments that a real conda made: mended, undone exactly, killed at random.

    python benchmarks/conda_fixes.py [--kills N]

Needs `conda` (or one of its kin) on the path, and no network: a channel on disk is made of this interpreter
and of three tiny packages. Says that it did not run where there is none. Nothing is left behind.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fixing"))
from small_world import fingerprint

PLACE = "/opt/placehold_" + "x" * 120
"""What stands in a package's text files for the environment's place."""
STEM = f"python3.{sys.version_info.minor}"
_LEFT_OUT = {"test", "idlelib", "tkinter", "site-packages", "__pycache__", "lib2to3", "ensurepip"}
_RC = """channels: [file://{channel}]
solver: classic
offline: true
pkgs_dirs: [{home}/pkgs]
envs_dirs: [{home}/envs]
add_pip_as_python_dependency: false
notify_outdated_conda: false
"""
Files = dict[str, tuple[bytes, int]]


class Channel:
    """A channel on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.packages = folder, {}
        (folder / "noarch").mkdir(parents=True)
        (folder / "linux-64").mkdir()

    def add(
        self, name: str, version: str, files: Files, depends: Sequence[str] = (), links: Iterable[str] = ()
    ):
        """Add a package; scripts of it name their environment's place, `links` are other names of Python."""
        build = {"build": "0", "build_number": 0, "subdir": "linux-64", "arch": "x86_64", "platform": "linux"}
        index = {"name": name, "version": version, "depends": list(depends), **build}
        paths = [{**_path(path, data), **_placed(path, data)} for path, (data, _) in files.items()]
        paths += [{"_path": path, "path_type": "softlink"} for path in links]
        placed = [one["_path"] for one in paths if "prefix_placeholder" in one]
        info = {
            "info/index.json": json.dumps(index),
            "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}),
            "info/files": "".join(f"{path}\n" for path in [*files, *links]),
            "info/has_prefix": "".join(f"{PLACE} text {path}\n" for path in placed),
        }
        whole = {**{path: (text.encode(), 0o644) for path, text in info.items()}, **files}
        data = _packed(whole, links)
        (self.folder / "linux-64" / f"{name}-{version}-0.tar.bz2").write_bytes(data)
        sums = {"md5": hashlib.md5(data).hexdigest(), "sha256": hashlib.sha256(data).hexdigest()}
        self.packages[f"{name}-{version}-0.tar.bz2"] = {**index, **sums, "size": len(data)}

    def close(self) -> None:
        """Write what it offers."""
        for place, packages in (("noarch", {}), ("linux-64", self.packages)):
            told = {
                "info": {"subdir": place},
                "packages": packages,
                "packages.conda": {},
                "repodata_version": 1,
            }
            (self.folder / place / "repodata.json").write_text(json.dumps(told))


def _path(path: str, data: bytes) -> dict[str, object]:
    digest = hashlib.sha256(data).hexdigest()
    return {"_path": path, "path_type": "hardlink", "sha256": digest, "size_in_bytes": len(data)}


def _placed(path: str, data: bytes) -> dict[str, str]:
    return {"prefix_placeholder": PLACE, "file_mode": "text"} if PLACE.encode() in data else {}


def _packed(files: Files, links: Iterable[str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:bz2", compresslevel=1) as archive:
        for path, (data, mode) in files.items():
            told = tarfile.TarInfo(path)
            told.size, told.mode = len(data), mode
            archive.addfile(told, io.BytesIO(data))
        for path in links:
            told = tarfile.TarInfo(path)
            told.type, told.linkname = tarfile.SYMTYPE, STEM
            archive.addfile(told)
    return buffer.getvalue()


def add_python(channel: Channel) -> None:
    """Add the interpreter that runs this, without what no test needs."""
    base = Path(sys.base_prefix)
    found = [base / "bin" / STEM, *(base / "lib").glob("libpython3*.so.*")]
    found += [path for path in (base / "lib" / STEM).rglob("*") if path.is_file() and _is_wanted(path)]
    files = {str(path.relative_to(base)): (path.read_bytes(), path.stat().st_mode & 0o777) for path in found}
    version = ".".join(map(str, sys.version_info[:3]))
    channel.add("python", version, files, links=("bin/python", "bin/python3"))


def _is_wanted(path: Path) -> bool:
    return not _LEFT_OUT & set(path.parts) and path.suffix not in (".pyc", ".a", ".o")


def add_module(channel: Channel, name: str, version: str, requires: Sequence[str] = ()) -> None:
    """Add a package with one module, and a script that says its version."""
    site = f"lib/{STEM}/site-packages"
    info = f"{name}-{version}.dist-info"
    imports = "".join(f"import {one.partition('>')[0]}\n" for one in requires)
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    texts = {
        f"{name}/__init__.py": f"{imports}VERSION = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/INSTALLER": "conda\n",
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in texts.items())
    texts[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    files = {f"{site}/{path}": (text.encode(), 0o644) for path, text in texts.items()}
    script = f"#!{PLACE}/bin/python\nimport {name}\nprint({name}.VERSION)\n"
    files[f"bin/{name}-say"] = (script.encode(), 0o755)
    channel.add(name, version, files, (f"python 3.{sys.version_info.minor}.*",))


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def fix(env: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `envdoctor fix` on an environment."""
    return subprocess.run(_argv(env, *options), capture_output=True, text=True, check=False)


def _argv(env: Path, *options: str) -> list[str]:
    door = str(Path(sys.executable).with_name("envdoctor"))
    return [door, "fix", "--quiet", "--python", str(env / "bin/python"), *options]


def mend(env: Path) -> float:
    """Print whether it is mended and undone; return how long the mending took."""
    before = fingerprint(env)
    start = time.monotonic()
    done = fix(env, "--apply")
    spent = time.monotonic() - start
    said = subprocess.run(
        [env / "bin/betaline-say"], capture_output=True, text=True, check=False
    ).stdout.strip()
    back = fix(env, "--undo").returncode
    print(f"mended: exit {done.returncode} in {spent:.1f} s, its script says {said}; {done.stderr[:200]}")
    print(f"undone exactly: {back == 0 and fingerprint(env) == before}", flush=True)
    return spent


def kills(env: Path, count: int, whole: float, seed: int = 22) -> None:
    """Print how often the environment is as it was after a kill, or can be gone back to."""
    draw = random.Random(seed)
    before = fingerprint(env)
    intact = after = 0
    for _ in range(count):
        child = subprocess.Popen(_argv(env, "--apply"), stdout=-3, stderr=-3, start_new_session=True)
        moment = draw.uniform(0, 1.1 * whole)
        time.sleep(moment)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if fingerprint(env) != before:
            after += 1
            while "is at work" in fix(env, "--undo").stderr:  # conda, which outlives the kill
                time.sleep(0.5)
        same = fingerprint(env) == before
        intact += same
        print(f"  {moment:.1f} s: {'as it was' if same else 'CHANGED'}", flush=True)
    print(f"killed {count} times within {1.1 * whole:.1f} s: {intact} as it was, {after} of them by --undo")


def main() -> int:
    """Print the figures, or that nothing was run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    args = parser.parse_args()
    conda = next(filter(None, map(shutil.which, ("conda", "mamba", "micromamba"))), None)
    if conda is None:
        print("not run: there is no conda on the path")
        return 0
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        channel = Channel(home / "channel")
        add_python(channel)
        add_module(channel, "alphaline", "1.0", ("betaline>=2",))
        for version in ("1.0", "2.1"):
            add_module(channel, "betaline", version)
        channel.close()
        (home / "condarc").write_text(_RC.format(channel=channel.folder, home=home))
        os.environ["CONDARC"] = str(home / "condarc")
        env = home / "envs" / "train"
        asked = ["python", "alphaline=1.0", "betaline=1.0"]
        subprocess.run([conda, "create", "-y", "-q", "-p", env, *asked], check=True, stdout=-3)
        print(subprocess.run([conda, "--version"], capture_output=True, text=True, check=True).stdout.strip())
        kills(env, args.kills, mend(env))
    return 0


if __name__ == "__main__":
    sys.exit(main())
