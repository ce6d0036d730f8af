"""A plan's commands carried out on a clone, whose scripts shall name the original's place."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envdoctor.errors import InputError, Unavailable
from envdoctor.facts import Facts
from envdoctor.facts.names import normalise
from envdoctor.findings import Plan
from envdoctor.fixing.wholeness import recorded
from envdoctor.harvest.index_settings import read_index_settings
from envdoctor.inputs import read_input
from envdoctor.processes import run_child
from envdoctor.solve.variants import INDEX_URL
from envdoctor.values import dataclass

MANAGERS = ("conda", "mamba", "micromamba")
TIMEOUT_S = 3600.0
_LARGEST = 1 << 20
"""Scripts and path files are smaller; a larger file in their place is a program."""
_TAIL = 6
_OTHERS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "PIP_TARGET", "PIP_PREFIX", "PIP_USER")
"""Variables that would lead an installer to another place."""
_PIPS = {"--reinstall": "--force-reinstall", "--no-cache": "--no-cache-dir"}
_UVS = {theirs: ours for ours, theirs in _PIPS.items()}


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an installer for the environment: what it is to do, and its words.

    `manager` is conda or one of its kin; empty: pip's packages.
    """

    verb: str
    words: tuple[str, ...]
    manager: str = ""


def calls_of(plan: Plan, python: str) -> Iterator[Call]:
    """Yield the installer's calls among a plan's commands."""
    for line in plan.commands:
        words = shlex.split(line)
        if words[:2] == ["uv", "pip"] and words[3:5] == ["--python", python]:
            yield Call(words[2], tuple(words[5:]))
        elif words[:3] == [python, "-m", "pip"]:
            yield Call(words[3], tuple(words[4:]))
        elif words[0] in MANAGERS and "-p" in words:
            at = words.index("-p")
            yield Call(words[1], (*words[2:at], *words[at + 2 :]), words[0])


def uv_at(environ: Mapping[str, str]) -> str | None:
    """Return uv where there is one: on the path, or beside envdoctor."""
    import sys

    beside = os.path.join(os.path.dirname(sys.executable), "uv")
    return shutil.which("uv", path=environ.get("PATH")) or (beside if os.access(beside, os.X_OK) else None)


def manager_at(name: str, environ: Mapping[str, str]) -> str:
    """Return conda, or one of its kin where that one is not there; raises Unavailable."""
    told = (environ.get("CONDA_EXE"), environ.get("MAMBA_EXE"))
    found = [shutil.which(one, path=environ.get("PATH")) for one in dict.fromkeys((name, *MANAGERS))]
    for one in (*found, *told):
        if one and os.access(one, os.X_OK):
            return one
    raise Unavailable(
        f"fix: there is no {name} on the path to change its packages with: activate it; nothing was changed"
    )


class Carrier:
    """Runs installers on one environment. Raises Unavailable with what the installer said.

    An installer outlives a kill of ours: it keeps `lock` open, so that nobody else begins before it ends.
    """

    def __init__(self, python: str, prefix: Path, has_pip: bool, lock: int | None = None) -> None:
        self._python, self._prefix, self._has_pip = python, prefix, has_pip
        self._inherits = () if lock is None else (lock,)
        self._env = {name: value for name, value in os.environ.items() if name not in _OTHERS}
        self._uv = uv_at(os.environ)

    def run(self, call: Call) -> None:
        """Carry out one call."""
        done = run_child(self._argv(call), timeout_s=TIMEOUT_S, env=self._env, inherits=self._inherits)
        if done.returncode or done.timed_out:
            said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            told = " / ".join(line.strip() for line in said[-_TAIL:]) or f"status {done.returncode}"
            raise Unavailable(f"fix: the installer failed, nothing was changed: {told}")

    def _argv(self, call: Call) -> list[str]:
        words = list(call.words)
        if call.manager:
            return [manager_at(call.manager, self._env), call.verb, "-y", "-p", str(self._prefix), *words]
        if self._uv:
            told = [_UVS.get(word, word) for word in words if word != "-y"]
            return [self._uv, "pip", call.verb, "--python", self._python, *self._index(call), *told]
        if not self._has_pip:
            raise Unavailable("fix: there is neither uv nor a pip in the environment to install with")
        told = [_PIPS.get(word, word) for word in words if not word.startswith("--torch-backend")]
        for word in words:
            if word.startswith("--torch-backend="):
                told = ["--extra-index-url", INDEX_URL + word.partition("=")[2], *told]
        quiet = ["-y"] if call.verb == "uninstall" and "-y" not in told else []
        common = [] if call.verb == "uninstall" else ["--no-input", "--no-compile"]
        argv = [self._python, "-m", "pip", "--disable-pip-version-check", call.verb, *quiet, *common]
        return [*argv, *told]

    def _index(self, call: Call) -> list[str]:
        """uv reads nothing of pip's configuration: the indexes that it names are told to it."""
        if call.verb != "install" or self._env.get("UV_NO_INDEX") or self._env.get("UV_OFFLINE"):
            return []
        try:
            settings = read_index_settings(environ=self._env)
        except Unavailable:  # no pip that has an index built in: uv has one of its own
            return []
        if settings.source not in ("PIP_INDEX_URL", "pip's configuration"):
            return []
        more = [word for one in settings.extra for word in ("--index", one)]
        # as pip does: of all its indexes the best release
        alike = ["--index-strategy", "unsafe-best-match"] if more else []
        return ["--default-index", settings.url, *more, *alike]


def clear_damage(facts: Facts, names: Sequence[str], prefix: Path) -> None:
    """Take the files of damaged packages out of a clone: what no uninstaller could any more.

    Every copy in it that describes itself as one of them goes.
    """
    for site in _sites(facts, prefix):
        for info in site.glob("*.dist-info"):
            if normalise(info.name.removesuffix(".dist-info").partition("-")[0]) in names:
                _clear(site, info)


def clear_leftovers(facts: Facts, prefix: Path) -> list[str]:
    """Remove what interrupted installations left behind (`~name`), and return the names."""
    found = [path for site in _sites(facts, prefix) for path in site.glob("~*")]
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return sorted(path.name for path in found)


def _sites(facts: Facts, prefix: Path) -> list[Path]:
    """Return the folders of packages in a clone; what path files lead to is others' and stays as it is."""
    told = {one.location for one in facts.environment.distributions.values() if one.location}
    within = prefix.resolve()
    return [Path(site) for site in sorted(told) if Path(site).resolve().is_relative_to(within)]


def check_within(facts: Facts, names: Sequence[str], prefix: Path) -> None:
    """Raise Unavailable where files of what is to change lie elsewhere: a folder in the clone is a link."""
    within = prefix.resolve()
    for site in _sites(facts, prefix):
        for name in names:
            one = facts.distribution(name)
            if one is None or one.location != str(site):
                continue
            folders = {(site / path).parent for path, _ in recorded(site / one.source)}
            if astray := [
                f for f in folders if f.is_relative_to(prefix) and not f.resolve().is_relative_to(within)
            ]:
                raise Unavailable(f"fix: nothing was changed: {min(astray)} of {name} is a link to elsewhere")


def _clear(site: Path, info: Path) -> None:
    root = site.resolve()
    for name, _ in recorded(info):
        path = site / name
        if name.startswith("..") or not path.parent.resolve().is_relative_to(root):
            continue
        with contextlib.suppress(OSError):
            path.unlink()
    shutil.rmtree(info, ignore_errors=True)


def retarget(clone: Path, named: Path, becomes: Path, scripts: bool = True) -> None:
    """Let scripts and path files of a clone name `becomes` where they name the folder `named`.

    Path files are meant, and with `scripts` all small files of `bin`.
    """
    kinds = ("pth", "egg-link")
    paths = [path for kind in kinds for path in clone.glob(f"lib/python*/site-packages/*.{kind}")]
    if scripts:
        paths += [path for path in (clone / "bin").iterdir() if path.is_file() and not path.is_symlink()]
    old, new = os.fsencode(named), os.fsencode(becomes)
    for path in paths:
        try:
            data = read_input(path, _LARGEST)
        except InputError:  # no text of an installer's, or a link to nothing
            continue
        if old in data:
            _rewrite(path, data.replace(old, new))


def _rewrite(path: Path, data: bytes) -> None:
    """Put a new file of the same mode in a file's place: what is linked to it elsewhere stays."""
    mode = path.stat().st_mode & 0o7777
    path.unlink()
    path.write_bytes(data)
    os.chmod(path, mode)
