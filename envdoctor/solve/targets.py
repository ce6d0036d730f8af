"""A target from facts: the machine examined, or one described by facts, a diagnosis or a bundle."""

from __future__ import annotations

from envdoctor.facts import Facts
from envdoctor.facts.names import normalise
from envdoctor.matrix import Matrix
from envdoctor.solve.target import (
    Card,
    Platform,
    Target,
    linux_platform,
    parse_platform,
    python_of,
    this_platform,
    this_python,
)


def target_of(facts: Facts, matrix: Matrix) -> Target:
    """Return the target that facts describe; what they do not tell is this machine's."""
    python = facts.environment.python.get()
    return Target(
        python_of(python) if python else this_python(),
        _platform_of(facts),
        _cards_of(facts, matrix),
        facts.driver.version.get(),
    )


def _platform_of(facts: Facts) -> Platform:
    host = facts.host
    os, arch, glibc = host.os.get(), host.arch.get(), host.glibc.get()
    if os == "windows":
        return parse_platform("windows")
    if os == "macos":
        return parse_platform("macos")
    here = this_platform()
    if glibc:
        return linux_platform(arch or "x86_64", glibc)
    if arch and arch != here.arch:
        return parse_platform(f"{arch}-manylinux_2_35")
    return here if here.os == "linux" else parse_platform("x86_64-manylinux_2_35")


def _cards_of(facts: Facts, matrix: Matrix) -> tuple[Card, ...]:
    from envdoctor.matrix.gpus import find_gpu

    cards = []
    for gpu in facts.gpus.get() or ():
        known = find_gpu(matrix, gpu.name, gpu.pci_id)
        capability = gpu.compute_capability or (known.compute_capability if known else None)
        if capability is not None:
            cards.append(Card(gpu.name or capability.sm, capability, gpu.source))
    return tuple(dict.fromkeys(cards))


def installed_of(facts: Facts) -> dict[str, str]:
    """Return the installed versions by normalized name; what only bounds are known of is left out."""
    return {
        normalise(name): found.version
        for name, found in facts.environment.distributions.items()
        if found.version is not None
    }
