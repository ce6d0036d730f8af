"""What a rule quotes: error lines that were recognised, and facts as evidence."""

from __future__ import annotations

from collections.abc import Iterable

from envdoctor.facts import Gpu, Observed, Symptom
from envdoctor.findings import Evidence
from envdoctor.rules.view import View


def symptoms(view: View, *ids: str) -> tuple[Symptom, ...]:
    """Return the recognised error lines of those signatures, in the order they were met."""
    return tuple(symptom for symptom in view.facts.symptoms if symptom.id in ids)


def captured(seen: Iterable[Symptom], *names: str) -> str | None:
    """Return the first text that a signature captured under one of these names."""
    for symptom in seen:
        for name in names:
            if value := symptom.captured.get(name):
                return value
    return None


def quoted(seen: Iterable[Symptom]) -> tuple[Evidence, ...]:
    """Return up to three error lines as evidence."""
    return tuple(Evidence(s.id, s.text, s.source) for s in seen)[:3]


def explained(seen: Iterable[Symptom]) -> tuple[str, ...]:
    """Return the signatures' ids, each once."""
    return tuple(dict.fromkeys(symptom.id for symptom in seen))


def installed(view: View, *names: str) -> tuple[Evidence, ...]:
    """Return the versions of those distributions that the facts hold."""
    found = ((name, view.facts.distribution(name)) for name in names)
    return tuple(
        Evidence(name, d.version or d.specifier or "installed", d.source)
        for name, d in found
        if d is not None
    )


def card(gpu: Gpu) -> Evidence:
    """Return a GPU with its compute capability."""
    capability = gpu.compute_capability or "not told"
    return Evidence("gpu", f"{gpu.name or 'GPU'} (compute capability {capability})", gpu.source)


def cards(gpus: Iterable[Gpu]) -> tuple[Evidence, ...]:
    """Return GPUs as evidence, those of one kind once."""
    return tuple(dict.fromkeys(map(card, gpus)))[:4]


def torch_build(view: View) -> tuple[Evidence, ...]:
    """Return torch's version and the CUDA it was built with, as far as they are known."""
    cuda = view.torch_cuda
    built = (Evidence("torch's CUDA", str(cuda.value), cuda.source),) if isinstance(cuda, Observed) else ()
    return installed(view, "torch") + built
