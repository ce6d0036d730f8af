"""Which kind of accelerator the facts speak of, and by what it is known."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from envdoctor import lazy_re as re
from envdoctor.facts.model import Facts
from envdoctor.facts.observed import Fact, Observed, Unknown


class Backend(str, Enum):
    """The interfaces to accelerators that torch is built for."""

    CUDA = "cuda"
    ROCM = "rocm"
    ASCEND = "ascend"
    XPU = "xpu"
    MPS = "mps"
    CPU = "cpu"


_CARDS = {
    Backend.ROCM: re.compile(r"\bamd\b|radeon|instinct|\bmi\d{2,3}[a-z]?\b|\bgfx\d"),
    Backend.ASCEND: re.compile(r"ascend|\b910[bc]\d?\b"),
    Backend.XPU: re.compile(r"\bintel\b|\barc a\d|\bdata center gpu"),
    Backend.MPS: re.compile(r"\bapple\b"),
    # Last: `A770` and `V340` are named as NVIDIA's cards are.
    Backend.CUDA: re.compile(r"nvidia|geforce|tesla|quadro|\brtx|\bgtx|\b(?:[abhlvpt]|gb|gh)\d{1,3}s?\b"),
}
_BUILDS = {"cu": Backend.CUDA, "rocm": Backend.ROCM, "xpu": Backend.XPU, "cpu": Backend.CPU}
_PACKAGES = {"torch-npu": Backend.ASCEND, "intel-extension-for-pytorch": Backend.XPU}


def backend_of(facts: Facts) -> Fact[Backend]:
    """Return the backend with its evidence as the source: cards before the driver before torch's build."""
    return next(_told(facts), Unknown("neither a card nor a driver nor torch's build is told"))


def _told(facts: Facts) -> Iterator[Observed[Backend]]:
    for gpu in facts.gpus.get() or ():
        for backend, pattern in _CARDS.items():
            if gpu.name and pattern.search(gpu.name.lower()):
                yield Observed(backend, f"{gpu.name}, {gpu.source}")
        if gpu.compute_capability:
            yield Observed(Backend.CUDA, f"compute capability {gpu.compute_capability}, {gpu.source}")
    if isinstance(facts.driver.version, Observed):
        yield Observed(Backend.CUDA, f"NVIDIA driver {facts.driver.version.value}")
    for name, backend in _PACKAGES.items():
        if found := facts.distribution(name):
            yield Observed(backend, f"{name}, {found.source}")
    yield from _built_for(facts)
    if facts.host.os.get() == "macos":
        backend = Backend.CPU if facts.host.arch.get() == "x86_64" else Backend.MPS
        yield Observed(backend, "macOS")


def _built_for(facts: Facts) -> Iterator[Observed[Backend]]:
    variant, torch = torch_variant(facts), facts.distribution("torch")
    for start, backend in _BUILDS.items():
        if variant.startswith(start):
            yield Observed(backend, f"torch built for {variant}, {torch.source if torch else 'torch'}")


def torch_variant(facts: Facts) -> str:
    """Return what torch was built for, such as `cu124`, `rocm6.1` or `cpu`; nothing where it is not told."""
    torch = facts.distribution("torch")
    build = facts.environment.builds.get("torch", {})
    local = (torch.version or "").partition("+")[2] if torch else ""
    told = build.get("variant") or (f"cuda {build['cuda']}" if build.get("cuda") else "")
    return local if local.startswith(tuple(_BUILDS)) else str(told)
