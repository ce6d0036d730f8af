"""The facts a person looks at first, as rows of words: shared by every format that people read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from envdoctor.facts import NOT_TOLD, Distribution, Facts, Gpu, Observed, Unknown

# What a maintainer asks for, in the order of dependence; other packages follow in the archive.
_KEY_PACKAGES = """
torch torchvision torchaudio triton transformers accelerate peft trl datasets tokenizers huggingface-hub
safetensors bitsandbytes flash-attn xformers deepspeed vllm sglang llamafactory ms-swift axolotl unsloth
unsloth-zoo liger-kernel numpy nvidia-cudnn-cu13 nvidia-cudnn-cu12 nvidia-nccl-cu13 nvidia-nccl-cu12
"""
KEY_PACKAGES = tuple(_KEY_PACKAGES.split())
_GIB = 1 << 30
T = TypeVar("T")


class FactRow(NamedTuple):
    """One line of the facts: what, its value in words, and where it was read."""

    label: str
    value: str
    source: str


def gib(size: int | None) -> str:
    """Return bytes in words: `141.0 GiB`."""
    return "" if size is None else f"{size / _GIB:.1f} GiB"


def gpu_words(gpu: Gpu) -> str:
    """Return a GPU in one line: name, architecture, memory, and what is unusual of it."""
    parts = [gpu.name or "unnamed GPU"]
    if gpu.compute_capability:
        parts.append(gpu.compute_capability.sm)
    if gpu.memory_total_bytes:
        parts.append(gib(gpu.memory_total_bytes))
    if gpu.mig not in (None, "disabled"):
        parts.append(f"MIG {gpu.mig}")
    return ", ".join(parts)


def gpu_rows(facts: Facts) -> list[FactRow]:
    """Return one row a GPU, equal ones together (`8 × NVIDIA H100`), or why there is none."""
    if isinstance(facts.gpus, Unknown):
        reason = facts.gpus.reason
        return [FactRow("GPU", reason if facts.gpus == NOT_TOLD else f"not known: {reason}", "")]
    if not facts.gpus.value:
        return [FactRow("GPU", "none seen", facts.gpus.source)]
    counted: dict[str, list[Gpu]] = {}
    for gpu in facts.gpus.value:
        counted.setdefault(gpu_words(gpu), []).append(gpu)
    return [
        FactRow("GPU", f"{len(gpus)} × {words}" if len(gpus) > 1 else words, gpus[0].source)
        for words, gpus in counted.items()
    ]


def fact_rows(facts: Facts) -> list[FactRow]:
    """Return what is known of driver, host, toolkits and interpreter; the unknown is left out."""
    return [*gpu_rows(facts), *_driver_rows(facts), *_host_rows(facts), *_environment_rows(facts)]


def _row(label: str, fact: Observed[T] | Unknown, wording: str = "{}") -> Iterator[FactRow]:
    if isinstance(fact, Observed):
        yield FactRow(label, wording.format(fact.value), fact.source)


def _driver_rows(facts: Facts) -> Iterator[FactRow]:
    yield from _row("Driver", facts.driver.version)
    yield from _row("CUDA of the driver", facts.driver.cuda, "up to {}")
    if facts.driver.nvml.get() not in (None, "ok"):
        yield from _row("NVML", facts.driver.nvml)
    for toolkit in facts.toolkits.get() or ():
        where = f" ({toolkit.path})" if toolkit.path else ""
        yield FactRow("CUDA toolkit", f"{toolkit.version}{where}", toolkit.source)


def _host_rows(facts: Facts) -> Iterator[FactRow]:
    host = facts.host
    yield from _row("OS", host.distro if isinstance(host.distro, Observed) else host.os)
    yield from _row("Kernel", host.kernel)
    yield from _row("Architecture", host.arch)
    yield from _row("glibc", host.glibc)
    if host.wsl.get():
        yield from _row("WSL", host.wsl, "yes")
    yield from _row("Container", host.container)
    if isinstance(host.memory_total_bytes, Observed):
        yield FactRow("Memory", gib(host.memory_total_bytes.value), host.memory_total_bytes.source)
    if isinstance(host.shm_bytes, Observed):
        yield FactRow("/dev/shm", gib(host.shm_bytes.value), host.shm_bytes.source)


def _environment_rows(facts: Facts) -> Iterator[FactRow]:
    yield from _row("Python", facts.environment.python)
    yield from _row("Interpreter", facts.environment.executable)
    yield from _row("Environment", facts.environment.kind)


def key_packages(facts: Facts) -> list[Distribution]:
    """Return the installed packages that maintainers ask for, in their order."""
    installed = facts.environment.distributions
    return [installed[name] for name in KEY_PACKAGES if name in installed]


def version_words(distribution: Distribution) -> str:
    """Return a distribution's version, or what is asked of it: `2.7.1`, `>=2.7 (asked for)`."""
    if distribution.version:
        return distribution.version
    return f"{distribution.specifier} (asked for)" if distribution.specifier else "version not told"
