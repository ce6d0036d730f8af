"""One target for every command: what is declared, else what facts tell, else this machine's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from envdoctor.errors import InputError, Unavailable
from envdoctor.facts import DriverVersion, Observed
from envdoctor.matrix import Matrix
from envdoctor.matrix.gpus import find_gpu
from envdoctor.target.cards import Card, cards_in, named_cards
from envdoctor.target.platforms import (
    Platform,
    linux_platform,
    parse_platform,
    parse_python,
    python_of,
    this_platform,
    this_python,
)
from envdoctor.target.stack import Stack, parse_stack, stack_of
from envdoctor.values import dataclass

if TYPE_CHECKING:
    from envdoctor.facts import Facts


@dataclass(frozen=True, slots=True)
class Target:
    """Everything the answer depends on but the request."""

    python: tuple[int, ...]
    platform: Platform
    cards: tuple[Card, ...] = ()
    driver: DriverVersion | None = None
    stack: Stack = field(default_factory=Stack, compare=False)

    @property
    def judged_cards(self) -> tuple[Card, ...]:
        """The kinds of cards whose compute capability is known; of others nothing can be judged."""
        return tuple(card for card in dict.fromkeys(self.cards) if card.capability is not None)

    @property
    def judges_hardware(self) -> bool:
        """True where a card or a driver is told, which a release may not run on."""
        return bool(self.cards or self.driver)

    @property
    def python_minor(self) -> str:
        """The Python as `3.11`."""
        return f"{self.python[0]}.{self.python[1]}"

    def marker_environment(self) -> Mapping[str, str]:
        """Return the environment that markers are decided in."""
        full = ".".join(str(part) for part in (*self.python, 0, 0)[:3])
        os_name, system, sys_platform = {
            "linux": ("posix", "Linux", "linux"),
            "macos": ("posix", "Darwin", "darwin"),
            "windows": ("nt", "Windows", "win32"),
        }[self.platform.os]
        return {
            "implementation_name": "cpython",
            "implementation_version": full,
            "os_name": os_name,
            "platform_machine": self.platform.arch,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": system,
            "platform_version": "",
            "python_full_version": full,
            "python_version": self.python_minor,
            "sys_platform": sys_platform,
        }

    def as_json(self) -> dict[str, Any]:
        """Return the target as the pins' JSON shows it."""
        return {
            "python": ".".join(str(part) for part in self.python),
            "platform": self.platform.name,
            "gpus": [
                {"name": card.label, "compute_capability": str(card.capability)} for card in self.judged_cards
            ],
            "driver": str(self.driver) if self.driver else None,
        }


@dataclass(frozen=True, slots=True)
class Declared:
    """What a person says of the target, in the command line's words; what is not said is read."""

    gpus: Sequence[str] = ()
    driver: str | None = None
    python_version: str | None = None
    platform: str | None = None
    stack: str | None = None

    @property
    def machine(self) -> bool:
        """True when something of the machine is said."""
        return bool(self.gpus or self.driver or self.python_version or self.platform)


def resolve(declared: Declared, facts: Facts | None, matrix: Matrix) -> Target:
    """Return the target; raises InputError naming the option that cannot be read."""
    platform = parse_platform(declared.platform) if declared.platform else None
    told = target_of(facts, matrix) if facts else Target(this_python(), platform or this_platform())
    stack = told.stack
    if declared.stack:
        stack = replace(stack, versions={**stack.versions, **parse_stack(declared.stack)})
    if facts and declared.python_version:
        stack = replace(stack, barred_by=_barred_elsewhere(parse_python(declared.python_version), facts))
    named = named_cards(declared.gpus, matrix)
    return Target(
        parse_python(declared.python_version) if declared.python_version else told.python,
        platform or _beside(named, told.platform, matrix),
        named or told.cards,
        _parse_driver(declared.driver) if declared.driver else told.driver,
        stack,
    )


def _barred_elsewhere(python: tuple[int, ...], facts: Facts) -> frozenset[str]:
    """Return what bars installed versions on a declared Python: what installs on theirs may not there.

    Where theirs is not told, what was built from source may have been built for it.
    """
    own = facts.environment.python.get()
    if own is None:
        return frozenset(("python", "platform"))
    return frozenset() if python_of(own)[:2] == python[:2] else frozenset(("python", "platform", "source"))


def all_cards(declared: Declared, facts: Facts | None, matrix: Matrix) -> tuple[Card, ...]:
    """Return every single card: those declared, else those that facts tell."""
    return named_cards(declared.gpus, matrix) or (cards_in(facts, matrix) if facts else ())


def declare_driver(facts: Facts, driver: str | None) -> Facts:
    """Return the facts with the declared driver in place of what was read; raises InputError."""
    if not driver:
        return facts
    from envdoctor.facts import Driver

    return replace(facts, driver=Driver(Observed(_parse_driver(driver), "--driver")))


def _parse_driver(text: str) -> DriverVersion:
    try:
        return DriverVersion.parse(text)
    except ValueError:
        raise InputError(f"--driver {text}: expected something like 580.95.05") from None


def target_of(facts: Facts, matrix: Matrix) -> Target:
    """Return the target that facts describe; what they do not tell is this machine's."""
    python = facts.environment.python.get()
    cards = tuple(dict.fromkeys(cards_in(facts, matrix)))
    platform = _platform_of(facts)
    return Target(
        python_of(python) if python else this_python(),
        platform if facts.host.arch.get() else _beside(cards, platform, matrix),
        cards,
        facts.driver.version.get(),
        stack_of(facts),
    )


def check_index_serves(target: Target, matrix: Matrix) -> None:
    """Raise Unavailable where a card's torch comes from elsewhere than the package index."""
    for card in target.cards:
        known = find_gpu(matrix, card.name)
        if known and known.wheels:
            raise Unavailable(
                f"{card.label}: the package index has no torch that finds it; its wheels are built by"
                f" {known.wheels}, and what these work with is not on record"
                " (https://forums.developer.nvidia.com/t/pytorch-for-jetson/72048)"
            )


def _beside(cards: Sequence[Card], platform: Platform, matrix: Matrix) -> Platform:
    """Return the platform, or a Linux of the processor that every machine with one of the cards has."""
    known = (find_gpu(matrix, card.name) for card in cards)
    processor = next((gpu.processor for gpu in known if gpu and gpu.processor), platform.arch)
    return platform if processor == platform.arch else parse_platform(f"{processor}-manylinux_2_35")


def _platform_of(facts: Facts) -> Platform:
    host = facts.host
    os, arch, glibc = host.os.get(), host.arch.get(), host.glibc.get()
    if os == "windows":
        return parse_platform("aarch64-pc-windows-msvc" if arch in ("arm64", "aarch64") else "windows")
    if os == "macos":
        return parse_platform("x86_64-apple-darwin" if arch == "x86_64" else "macos")
    if glibc:
        return linux_platform(arch or "x86_64", glibc)
    here = this_platform()
    if arch and arch != here.arch:
        return parse_platform(f"{arch}-manylinux_2_35")
    return here if here.os == "linux" else parse_platform("x86_64-manylinux_2_35")
