"""What the captures of a recognised error line tell of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from envdoctor.facts import ComputeCapability, CudaVersion, DriverVersion, Setting, Toolkit
from envdoctor.facts.names import normalise
from envdoctor.facts.quantities import parse_size
from envdoctor.pastes.labelled import arch_list
from envdoctor.pastes.sightings import Sighting, card_sighting, distribution_sightings
from envdoctor.pastes.symptoms import Sight

Teller = Callable[[str, str], Iterator[Sighting]]


def tell_sightings(sight: Sight, source: str) -> Iterator[Sighting]:
    """Yield the facts that the captures of a recognised line tell, as its row says."""
    gpu: dict[str, str] = {}
    for place, group in sight.pattern.tells.items():
        text = sight.captured.get(group)
        if not text:
            continue
        if place.startswith("gpu."):
            gpu[place] = text
            continue
        try:
            yield from _tell(_named(place, sight.captured), text, source)
        except ValueError:
            continue
    if gpu:
        yield from _gpu(gpu, source)


def _named(place: str, captured: Mapping[str, str]) -> str:
    """Return a place with a captured name in it: `distribution:{name}`."""
    kind, _, name = place.partition(":")
    return f"{kind}:{captured.get(name[1:-1], '')}" if name.startswith("{") else place


def _tell(place: str, text: str, source: str) -> Iterator[Sighting]:
    kind, _, name = place.partition(":")
    if kind == "distribution" and name:
        yield from distribution_sightings(name, text, source, exact=True)
    elif kind == "setting":
        yield Sighting("setting", Setting(name, text, source), source)
    elif kind == "variable":
        yield Sighting("variable", (name, text))
    elif kind == "present":
        yield from distribution_sightings(normalise(name), "installed", source)
    elif teller := _TELLERS.get(place):
        yield from teller(text, source)


def _driver_cuda(text: str, source: str) -> Iterator[Sighting]:
    yield Sighting("driver.cuda", CudaVersion.parse(text), source)


def _driver_version(text: str, source: str) -> Iterator[Sighting]:
    yield Sighting("driver.version", DriverVersion.parse(text), source)


def _toolkit(text: str, source: str) -> Iterator[Sighting]:
    yield Sighting("toolkit", Toolkit(CudaVersion.parse(text), "nvcc", source, active=True), source)


def _torch_cuda(text: str, source: str) -> Iterator[Sighting]:
    version = CudaVersion.parse(text)
    yield Sighting("build", ("torch", {"cuda": str(version)}), source)


def _python(text: str, source: str) -> Iterator[Sighting]:
    digits = text.replace(".", "")
    version = text if "." in text else f"{digits[0]}.{digits[1:]}"
    yield Sighting("environment.python", version, source)


def _glibc(text: str, source: str) -> Iterator[Sighting]:
    yield Sighting("host.glibc", text, source)


def _shm(text: str, source: str) -> Iterator[Sighting]:
    if (size := parse_size(text)) is not None:
        yield Sighting("host.shm_bytes", size, source)


def _gpu(told: Mapping[str, str], source: str) -> Iterator[Sighting]:
    capability = None
    try:
        capability = ComputeCapability.parse(told.get("gpu.cc", ""))
    except ValueError:
        pass
    name = told.get("gpu.name")
    memory = parse_size(told.get("gpu.memory", ""))
    if capability or name or memory:
        yield card_sighting(source, name=name, compute_capability=capability, memory_total_bytes=memory)


_TELLERS: Mapping[str, Teller] = {
    "driver.cuda": _driver_cuda,
    "driver.version": _driver_version,
    "toolkit": _toolkit,
    "torch.cuda": _torch_cuda,
    "torch.arch_list": arch_list,
    "python": _python,
    "host.glibc": _glibc,
    "host.shm": _shm,
}
