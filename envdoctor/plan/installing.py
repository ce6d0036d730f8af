"""What to type so that a set of changes comes about in the examined environment, and in no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from envdoctor import lazy_re as re
from envdoctor.commands import ANY, command, commands
from envdoctor.facts import Distribution, Environment, Facts
from envdoctor.facts.backend import Backend, backend_of
from envdoctor.findings import Finding, Remedy
from envdoctor.plan.advice import installs_plainly
from envdoctor.plan.conda import conda_name, is_condas, manager_of
from envdoctor.solve.reasons import Pin
from envdoctor.solve.variants import INDEX_URL
from envdoctor.values import replace

_CALL = re.compile(
    r"(?:^|(?<=&& ))(?:(?P<uv>uv )|python -m )?pip (?P<verb>install|uninstall|show|list|freeze|check)\b"
)
_UVS = {" --force-reinstall": " --reinstall", " --no-cache-dir": " --no-cache", " uninstall -y": " uninstall"}
"""What uv calls what pip has another name for."""
_UV = "uv pip install"
_PIP = re.compile(r"(?:(\S+) -m |uv )?pip install ")
_TORCH = re.compile(r"(?<![\w.-])torch(?:vision|audio)?(?![\w.-])")
_CUDA = re.compile(r"(?:cu\d{2,3}|cpu|rocm[\d.]+|xpu)")


def install_lines(
    environment: Environment,
    pins: Sequence[Pin],
    open_: Mapping[str, str],
    gone: Sequence[str] = (),
    again: Sequence[str] = (),
    options: Sequence[str] = (),
    whole: Set[str] = frozenset(),
) -> tuple[str, ...]:
    """Return the commands for the environment: what goes, what comes, what comes once more.

    `open_` are packages of which the installer chooses the release, with their specifiers; `options` are
    words of our own for it; what is `whole` comes once more with its dependencies.
    """
    conda = {
        name for name in {p.name for p in pins} | {*open_, *gone, *again} if is_condas(environment, name)
    }
    tool = installer_of(environment)
    lines = [*_conda_lines(environment, conda, pins, open_, gone, again)]
    lines += tool.line("uninstall", [name for name in gone if name not in conda])
    ours = [pin for pin in pins if pin.name not in conda]
    others = [_spec(name, spec) for name, spec in open_.items() if name not in conda]
    if ours or others:
        lines += tool.install(ours, others, options)
    for alone in (True, False):
        anew = [n for n in again if n not in conda and (n in whole) is not alone]
        lines += tool.once_more([f"{n}{_at(environment.distributions.get(n))}" for n in anew], options, alone)
    return tuple(lines)


def _conda_lines(
    environment: Environment,
    theirs: Set[str],
    pins: Sequence[Pin],
    open_: Mapping[str, str],
    gone: Sequence[str],
    again: Sequence[str],
) -> tuple[str, ...]:
    """Return the calls for what conda, or one of its kin, put there."""
    comes = [f"{conda_name(pin.name)}={pin.version}" for pin in pins if pin.name in theirs]
    comes += [_spec(conda_name(name), spec) for name, spec in open_.items() if name in theirs]
    anew = [f"{conda_name(n)}{_at(environment.distributions.get(n))}" for n in again if n in theirs]
    goes = [conda_name(name) for name in gone if name in theirs]
    return manager_of(environment.prefix.get() or "").lines(comes, anew, goes)


def _spec(name: str, spec: str) -> str:
    return name if spec == ANY else f"{name}{spec}"


def _at(distribution: Distribution | None) -> str:
    return f"=={distribution.version}" if distribution and distribution.version else ""


def aimed_findings(findings: Sequence[Finding], facts: Facts) -> tuple[Finding, ...]:
    """Return findings whose remedies' commands change the examined environment, whichever is active.

    What they install is built for its accelerator.
    """
    environment = facts.environment
    python = environment.executable.get()
    known = python is not None and bool(commands("{}", python))
    uv = installer_of(environment).uv

    def aimed(remedy: Remedy) -> Remedy:
        lines = built_for(remedy.commands, facts)
        if python is None or not known:
            return replace(remedy, commands=lines)
        mine = tuple(_aimed(line, python, uv) for line in lines)
        return replace(remedy, commands=_managed(remedy, environment) or mine)

    return tuple(replace(f, remedies=tuple(map(aimed, f.remedies))) for f in findings)


def built_for(lines: Sequence[str], facts: Facts) -> tuple[str, ...]:
    """Return commands that install torch from where its builds for the accelerator lie.

    The default index has torch for CUDA on Linux, for Windows without it; for those and for AMD's and Intel's
    cards uv finds the index that fits the machine
    (https://github.com/astral-sh/uv/blob/0.12.5/docs/guides/integration/pytorch.md).
    """
    elsewhere = (Backend.ROCM, Backend.XPU, *([Backend.CUDA] if facts.host.os.get() == "windows" else []))
    if backend_of(facts).get() not in elsewhere:
        return tuple(lines)
    return tuple(_from_its_index(line) for line in lines)


def _from_its_index(line: str) -> str:
    if not _TORCH.search(line) or any(word in line for word in ("-index-url", "--torch-backend", "://")):
        return line
    match = _PIP.match(line)
    if match is None:
        return line
    python = ("--python", match[1]) if match[1] not in (None, "python") else ()
    return " ".join((_UV, *python, line[match.end() :], "--torch-backend=auto"))


def _managed(remedy: Remedy, environment: Environment) -> tuple[str, ...]:
    """Return the call of conda, or of its kin, that does a remedy's plain installing of what is theirs."""
    if not remedy.pins or not all(is_condas(environment, name) for name in remedy.pins):
        return ()
    if not installs_plainly(remedy):
        return ()
    comes = [_spec(conda_name(name), spec) for name, spec in remedy.pins.items()]
    return manager_of(environment.prefix.get() or "").lines(comes, (), ())


def _aimed(line: str, python: str, uv: bool) -> str:
    """Return a call of pip or uv as one that changes the environment of that interpreter."""

    def call(match: re.Match[str]) -> str:
        if match["uv"] or uv:
            return command("uv pip {} --python {}", match["verb"], python)
        return command("{} -m pip {}", python, match["verb"])

    told, calls = _CALL.subn(call, line)
    for theirs, uvs in _UVS.items() if uv and calls else ():
        told = told.replace(theirs, uvs)
    return told


class Installer:
    """How packages get into one environment: uv, or the environment's own pip."""

    def __init__(self, python: str | None, uv: bool) -> None:
        self._python, self.uv = python or "python", uv

    def line(self, verb: str, words: Sequence[str], options: str = "") -> tuple[str, ...]:
        """Return the call with those words; none without a word."""
        if not words:
            return ()
        yes = " -y" if verb == "uninstall" and not self.uv else ""
        call = "uv pip {} --python {}" if self.uv else "{} -m pip {}" + yes
        first = (verb, self._python) if self.uv else (self._python, verb)
        return commands(call + options + " {}" * len(words), *first, *words)

    def install(self, pins: Sequence[Pin], others: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
        """Return the call that installs pins, torch's variants from their own index."""
        told = "".join(f" {option}" for option in options)
        variants = sorted({pin.index for pin in pins if pin.index})
        if self.uv and len(variants) == 1 and _CUDA.fullmatch(variants[0]):
            named = [f"{pin.name}=={pin.version}" for pin in pins]
            return self.line("install", [*named, *others], f"{told} --torch-backend={variants[0]}")
        named = [f"{pin.name}=={pin.label}" for pin in pins]
        indexes = "".join(f" --extra-index-url {INDEX_URL}{one}" for one in variants)
        return self.line("install", [*named, *others], told + indexes)

    def once_more(self, words: Sequence[str], options: Sequence[str], alone: bool) -> tuple[str, ...]:
        """Return the call that installs anew what is there already, `alone` or with its dependencies."""
        again = (" --reinstall" if self.uv else " --force-reinstall") + (" --no-deps" if alone else "")
        return self.line("install", words, again + "".join(f" {option}" for option in options))


def installer_of(environment: Environment) -> Installer:
    """Return uv where it made the environment or pip is not in it, else the environment's own pip."""
    python = environment.executable.get()
    listed = environment.distributions
    made = sum(one.installer == "uv" for one in listed.values()) * 2 > len(listed)
    lacking = environment.complete and "pip" not in listed
    return Installer(python, python is not None and (made or lacking))
