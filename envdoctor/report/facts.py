"""The facts a person looks at first, as rows of a document."""

from __future__ import annotations

from typing import TypeVar

from envdoctor.facts import NOT_TOLD, Distribution, Fact, Facts, Gpu, Observed, Unknown
from envdoctor.facts.backend import torch_variant
from envdoctor.facts.quantities import GIB
from envdoctor.findings import Examined
from envdoctor.report.document import Row

# What a maintainer asks for, in the order of dependence; other packages follow in the archive.
_KEY_PACKAGES = """
torch torchvision torchaudio triton transformers accelerate peft trl datasets tokenizers huggingface-hub
safetensors bitsandbytes flash-attn xformers deepspeed vllm sglang llamafactory ms-swift axolotl unsloth
unsloth-zoo liger-kernel numpy nvidia-cudnn-cu13 nvidia-cudnn-cu12 nvidia-nccl-cu13 nvidia-nccl-cu12
"""
KEY_PACKAGES = tuple(_KEY_PACKAGES.split())
T = TypeVar("T")


def gib(size: int | None) -> str:
    """Return bytes in words: `141.0 GiB`."""
    return "" if size is None else f"{size / GIB:.1f} GiB"


def gpu_words(gpu: Gpu) -> str:
    """Return a GPU in one line: name, architecture, memory, and what is unusual of it."""
    parts = [gpu.name or "unnamed GPU"]
    if gpu.compute_capability:
        parts.append(gpu.compute_capability.sm)
    if gpu.memory_total_bytes:
        parts.append(gib(gpu.memory_total_bytes))
    if (gpu.mig or "disabled").lower() != "disabled":
        parts.append(f"MIG {gpu.mig}")
    return ", ".join(parts)


def gpu_rows(facts: Facts) -> list[Row]:
    """Return one row a GPU, equal ones together (`8 × NVIDIA H100`), or why there is none."""
    counted: dict[str, list[Gpu]] = {}
    for gpu in facts.gpus.get() or ():
        counted.setdefault(gpu_words(gpu), []).append(gpu)
    rows = [
        Row("GPU", f"{len(gpus)} × {words}" if len(gpus) > 1 else words, gpus[0].source)
        for words, gpus in counted.items()
    ]
    if rows or isinstance(facts.gpus, Unknown):
        return rows or [_row("GPU", facts.gpus)]
    return [Row("GPU", "none seen", facts.gpus.source)]


def examined_rows(facts: Facts, examined: Examined) -> tuple[Row, ...]:
    """Return what was looked at: source, interpreter, GPU, driver, torch and the stack, told or not."""
    stack = " · ".join(
        f"{d.name} {version_words(d)}".replace(" ", "\xa0") for d in key_packages(facts) if d.name != "torch"
    )
    absent = "nothing of it is installed" if facts.environment.complete else NOT_TOLD.reason
    interpreter = _interpreter(facts, " (envdoctor's own)" if examined.own else "")
    judged = [interpreter, *gpu_rows(facts), _driver(facts), _torch(facts), Row("Stack", stack or absent)]
    return (Row("Examined", examined.source), *judged)


def fact_rows(facts: Facts) -> list[Row]:
    """Return what is known of GPUs, driver, machine, toolkits and interpreter."""
    return [*gpu_rows(facts), _driver(facts), *host_rows(facts), _interpreter(facts)]


def host_rows(facts: Facts) -> list[Row]:
    """Return what is known of the machine around the GPUs; the unknown is left out."""
    host = facts.host
    rows = [
        Row("CUDA toolkit", f"{t.version}{f' in {t.path}' if t.path else ''}", t.source)
        for t in facts.toolkits.get() or ()
    ]
    known = {"OS": host.distro if isinstance(host.distro, Observed) else host.os, "Kernel": host.kernel}
    known |= {"Architecture": host.arch, "glibc": host.glibc, "Container": host.container}
    known |= {"NVML": facts.driver.nvml} if facts.driver.nvml.get() != "ok" else {}
    rows += [_row(label, fact) for label, fact in known.items() if isinstance(fact, Observed)]
    rows += [Row("WSL", "yes", host.wsl.source)] if isinstance(host.wsl, Observed) and host.wsl.value else []
    sizes = {"Memory": host.memory_total_bytes, "/dev/shm": host.shm_bytes}
    return rows + [Row(n, gib(f.value), f.source) for n, f in sizes.items() if isinstance(f, Observed)]


def _row(label: str, fact: Fact[T], more: str = "") -> Row:
    """Return a fact with its source, or why it is not known."""
    if isinstance(fact, Observed):
        return Row(label, f"{fact.value}{more}", fact.source)
    return Row(label, fact.reason if fact == NOT_TOLD else f"not known: {fact.reason}")


def _interpreter(facts: Facts, more: str = "") -> Row:
    environment = facts.environment
    python = f"Python {environment.python.value}" if isinstance(environment.python, Observed) else ""
    if isinstance(environment.executable, Observed):
        told = (environment.executable.value, python, environment.kind.get() or "")
        return Row("Interpreter", ", ".join(filter(None, told)) + more)
    return Row("Interpreter", python or environment.executable.reason)


def _driver(facts: Facts) -> Row:
    cuda = facts.driver.cuda.get()
    return _row("Driver", facts.driver.version, f", CUDA up to {cuda}" if cuda else "")


def _torch(facts: Facts) -> Row:
    torch = facts.distribution("torch")
    if torch is None:
        return Row("torch", "not installed" if facts.environment.complete else NOT_TOLD.reason)
    words, variant = version_words(torch), torch_variant(facts)
    built = f", {variant or 'variant not told'}" if not variant or variant not in words else ""
    return Row("torch", words + built, torch.source)


def key_packages(facts: Facts) -> list[Distribution]:
    """Return the installed packages that maintainers ask for, in their order."""
    installed = facts.environment.distributions
    return [installed[name] for name in KEY_PACKAGES if name in installed]


def version_words(distribution: Distribution) -> str:
    """Return a distribution's version, or what is asked of it: `2.7.1`, `4.46.*`, `>=2.7 (asked for)`."""
    if distribution.version:
        return distribution.version
    if distribution.specifier.startswith("==") and distribution.specifier.endswith(".*"):
        return distribution.specifier.removeprefix("==")
    return f"{distribution.specifier} (asked for)" if distribution.specifier else "version not told"
