"""What following a remedy changes, read from its pins and commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from envdoctor import lazy_re as re
from envdoctor.commands import ANY, words_of
from envdoctor.facts.names import NOT_PACKAGES, normalise
from envdoctor.findings import Finding, Remedy
from envdoctor.rules.features import asks_too_much
from envdoctor.rules.ranges import is_specifier
from envdoctor.rules.view import View
from envdoctor.values import dataclass, replace

_ADMINISTRATORS = (
    *("sudo ", "apt", "dnf ", "yum ", "systemctl ", "docker ", "podman ", "kubectl ", "nvidia-ctk ", "wsl "),
    *("winget ", "modprobe ", "ulimit ", "volumes: ", "volumeMounts: "),
)
_INSTALL = ("pip install ", "uv pip install ")
_SHELL = re.compile(r"export (\w+)=\S.*|unset (\w[\w ]*)")
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[\w,-]+\])?((?:[<>=!~]=?=?[^\s;]+)?)")
_FLAG = re.compile(r"--([a-z][\w.-]*)")
_ASSIGNED = re.compile(r"([A-Za-z_][\w.]*)\s?[=:]\s?[\"']?([\w.+/-]+)[\"']?")
BACKEND = re.compile(r"--torch-backend=(?P<variant>cu\d{2,3}|cpu)\b")
"""How a command names the build of torch that is meant."""
_AGAIN = frozenset({"--force-reinstall", "--reinstall"})
_OTHER_BUILDS = ("--torch-backend", "--index-url", "--extra-index-url")
_TAKES_VALUE = frozenset(
    [
        *("--index-url", "--extra-index-url", "-i", "-f", "--find-links", "-r", "--requirement", "--python"),
        *("--index", "--default-index", "--index-strategy", "--torch-backend", "-c", "--constraint", "-t"),
        *("--target", "--prefix", "--root", "--platform", "--python-version", "--abi", "--implementation"),
        *("--no-binary", "--only-binary", "--config-settings", "-C", "--prerelease", "--resolution"),
        *("--exclude-newer", "--upgrade-package", "-P", "--trusted-host", "--proxy", "--cache-dir"),
        *("--upgrade-strategy", "--reinstall-package", "--refresh-package", "--timeout", "--retries"),
    ]
)
"""Options of pip and uv that take the next word; what follows any other names a package."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What one remedy asks for.

    `pins` are packages and the specifiers that must hold, `gone` and `again` packages to take out and to
    install once more (`whole`: with their dependencies), `settings` keys and values, `shell` lines for the
    shell that starts the run, `options` what an installer must be told.
    """

    remedy: Remedy
    pins: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    shell: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    administrators: bool = False
    whole: tuple[str, ...] = ()

    @property
    def packages(self) -> bool:
        """True when an installer of packages can follow it."""
        return bool(self.pins or self.gone or self.again)

    @property
    def followed(self) -> bool:
        """True when whoever owns the environment and the run can follow it."""
        return self.packages or bool(self.settings or self.shell)

    @property
    def by_hand(self) -> bool:
        """True when its words alone say what to do: a change of one's own code, mostly."""
        return not (self.followed or self.administrators or self.remedy.commands or self.remedy.pins)


def advised(finding: Finding) -> list[Advice]:
    """Return what each remedy of a finding asks for, best first."""
    return [read_advice(remedy) for remedy in finding.remedies]


def possible_findings(findings: Sequence[Finding], view: View) -> tuple[Finding, ...]:
    """Return the findings without what their remedies ask of cards or of programs that have no such thing.

    Nor do they tell to install what is there, where they tell something else as well.
    """
    left = ((f, [r for r in _to_do(view, f) if not _is_beyond(view, r)]) for f in findings)
    told = ((f, _in_own_words(view, remedies)) for f, remedies in left)
    return tuple(f if left == f.remedies else replace(f, remedies=left) for f, left in told)


def _to_do(view: View, finding: Finding) -> Sequence[Remedy]:
    return [remedy for remedy in finding.remedies if not _is_done(view, remedy)] or finding.remedies


def _is_done(view: View, remedy: Remedy) -> bool:
    """True where it asks for packages of any release alone, and each of them is told in some release."""
    advice = read_advice(remedy)
    bare = bool(advice.pins) and set(advice.pins.values()) == {ANY} and installs_plainly(remedy)
    return bare and not advice.gone and all(view.version_text(name) for name in advice.pins)


def _in_own_words(view: View, remedies: Sequence[Remedy]) -> tuple[Remedy, ...]:
    if not any(line.startswith("--") for remedy in remedies for line in remedy.commands):
        return tuple(remedies)
    from envdoctor.rules.programs import in_own_words  # dear to load

    return in_own_words(view, remedies)


def _is_beyond(view: View, remedy: Remedy) -> bool:
    settles = not all(line.startswith(_INSTALL) for line in remedy.commands)
    return settles and asks_too_much(view, read_advice(remedy).settings)


def read_advice(remedy: Remedy) -> Advice:
    """Return what a remedy asks for; nothing where its text alone says it.

    What conda alone installs is in its words: its packages are no wheels of their names.
    """
    if remedy.commands and all(line.startswith("conda install ") for line in remedy.commands):
        return Advice(
            replace(remedy, text=f"{remedy.text} ({'; '.join(remedy.commands)})", commands=(), pins={})
        )
    pins = {normalise(n): spec for n, spec in remedy.pins.items() if n not in NOT_PACKAGES}
    gone: list[str] = []
    again: list[str] = []
    whole: list[str] = []
    settings: list[tuple[str, str]] = []
    for line in remedy.commands:
        words = _words(line)
        if (call := _installer(words)) is not None:
            verb, given = call
            found = dict(_requirements(given))
            if verb == "uninstall":
                gone += found
            elif _AGAIN & set(given) and not any(word.startswith(_OTHER_BUILDS) for word in given):
                again += found
                whole += () if "--no-deps" in given else found
            elif not remedy.pins:
                pins |= found
        else:
            settings += _settings(line, words)
    shell: dict[str, str] = {}
    for line in remedy.commands:  # a second line for a variable is another way
        if (match := _SHELL.fullmatch(line)) and "$" not in line:
            shell.setdefault(match[1] or match[2], line)
    options = tuple(o for o in ("--no-build-isolation",) if any(o in line for line in remedy.commands))
    theirs = any(line.startswith(_ADMINISTRATORS) for line in remedy.commands)
    administrators = theirs or bool({"nvidia-driver", "glibc", "cuda-toolkit-system"} & set(remedy.pins))
    if "python" in remedy.pins:  # another environment, not another set in this one
        return Advice(remedy)
    out = tuple(name for name in gone if name not in pins)
    elsewhere = any(word.startswith(_OTHER_BUILDS) for line in remedy.commands for word in line.split())
    again += [name for name in gone if name in pins and not elsewhere]
    return Advice(
        *(remedy, pins, out, tuple(again), tuple(settings), (*shell.values(),), options),
        administrators,
        tuple(whole),
    )


def with_pins(remedy: Remedy) -> Remedy:
    """Return a remedy that names the releases which its commands install; as it is where they name none."""
    told = {} if remedy.pins else read_advice(remedy).pins
    pins = {name: specifier for name, specifier in told.items() if specifier != ANY}
    return replace(remedy, pins=pins) if pins else remedy


def installs_plainly(remedy: Remedy) -> bool:
    """True where its commands, if any, are calls of pip that install, without any option."""
    return all(line.startswith("pip install ") and " -" not in line for line in remedy.commands)


def variables_of(lines: Sequence[str]) -> dict[str, str | None]:
    """Return what lines for a shell make of variables; None for one that they unset."""
    found: dict[str, str | None] = {}
    for line in lines:
        words = _words(line)
        if words[:1] == ["export"]:
            found |= dict(word.partition("=")[::2] for word in words[1:])
        else:
            found |= dict.fromkeys(words[1:])
    return found


def _words(line: str) -> list[str]:
    try:
        return words_of(line.partition("  #")[0])
    except ValueError:
        return []


def _installer(words: Sequence[str]) -> tuple[str, Sequence[str]] | None:
    """Return the verb and what is given to it, where the line is one call of an installer."""
    for name in (("pip",), ("uv", "pip"), ("python", "-m", "pip")):
        verb = words[len(name) : len(name) + 1]
        if tuple(words[: len(name)]) == name and verb in (["install"], ["uninstall"]) and "&&" not in words:
            return verb[0], words[len(name) + 1 :]
    return None


def _requirements(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    passed = ""
    for word in given:
        option, passed = passed, word
        if word.startswith("-") or option in _TAKES_VALUE:
            continue
        match = _REQUIREMENT.fullmatch(word)
        named = match and not (match[1].isupper() and len(match[1]) > 3)  # PACKAGE stands for a name
        if match and named and is_specifier(match[2]):
            yield normalise(match[1]), match[2] or ANY


def _settings(line: str, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield keys with their values, where the line is nothing but flags or assignments."""
    if line.startswith("--"):
        for place, word in enumerate(words):
            value = words[place + 1] if place + 1 < len(words) else ""
            if match := _FLAG.fullmatch(word):
                yield match[1], "true" if not value or value.startswith("--") else value
    elif match := _ASSIGNED.fullmatch(line.partition("  #")[0].strip()):
        yield match[1], match[2]
