"""The facts as rules ask for them, completed by the matrix, and as they quote them for evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from packaging.version import Version

from envdoctor import lazy_re as re
from envdoctor.facts import (
    INSTALLING,
    ComputeCapability,
    CudaVersion,
    Distribution,
    DriverVersion,
    ErrorSeen,
    Fact,
    Facts,
    Gpu,
    Observed,
    Symptom,
    Unknown,
)
from envdoctor.facts.names import normalise
from envdoctor.findings import Evidence
from envdoctor.matrix import Matrix, tables
from envdoctor.rules.ranges import parse_version
from envdoctor.values import dataclass, replace

if TYPE_CHECKING:
    from envdoctor.rules.recorded import Recorded

_OF_THE_INDEX = re.compile(r"cpu|cu\d{2,3}")
_OF_PYTORCH = re.compile(r"cpu|xpu|cu\d{2,3}|rocm[\d.]+")
"""Labels of torch's builds that others' wheels are built for, and that its own companions are built for."""
UNFROZEN = frozenset({"pip", "setuptools", "wheel", "distribute"})
"""What `pip freeze` leaves out before Python 3.12."""


@dataclass(frozen=True)
class View:
    """Facts beside the matrix that judges them; derived facts are computed once."""

    facts: Facts
    matrix: Matrix

    @cached_property
    def gpus(self) -> Fact[tuple[Gpu, ...]]:
        """The GPUs, each with its compute capability completed from its PCI id or name."""
        if isinstance(self.facts.gpus, Unknown):
            return self.facts.gpus
        from envdoctor.matrix.gpus import complete_gpu

        return replace(
            self.facts.gpus, value=tuple(complete_gpu(self.matrix, gpu) for gpu in self.facts.gpus.value)
        )

    @cached_property
    def shows_failure(self) -> bool:
        """True where a line tells of something that failed, and not only of what is done."""
        return not all(informs(self.matrix, symptom) for symptom in self.facts.symptoms)

    def distribution(self, name: str) -> Distribution | None:
        """Return what is told of a distribution, or of the same code built under another name."""
        return self.facts.distribution(self.named(name))

    def named(self, name: str) -> str:
        """Return the name under which a distribution is here: its own, unless only a build of it is."""
        return name if self.facts.distribution(name) is not None else self._builds_here.get(name, name)

    @cached_property
    def _builds_here(self) -> Mapping[str, str]:
        """What is here that is a build of something else, by that, the first that a row names."""
        rows = (row for row in self.matrix.rows(tables.PackageTraitRow) if row.alike and row.over)
        here = [row for row in rows if self.facts.distribution(row.name) is not None]
        return {row.over: row.name for row in reversed(here) if row.over}

    def version(self, name: str) -> Version | None:
        """Return the exact version known of a distribution, or None."""
        distribution = self.distribution(name)
        return parse_version(distribution.version) if distribution and distribution.version else None

    def version_text(self, name: str) -> str | None:
        """Return how a distribution's version is known: exact, by its beginning, as a range, or not."""
        distribution = self.distribution(name)
        return (distribution.told or None) if distribution else None

    def names(self, package: str) -> bool:
        """True where an error, a warning or a frame of the report holds a package's name."""
        return normalise(package) in self._lines_told

    @cached_property
    def _lines_told(self) -> str:
        errors = (part for error in self.facts.errors for part in (error.text, error.ended, *_places(error)))
        lines = [
            *errors,
            *(seen.text for seen in self.facts.symptoms),
            *(warned.text for warned in self.facts.warnings),
        ]
        return "\n".join(normalise(line) for line in lines)

    @property
    def asked_of_installers(self) -> tuple[str, ...]:
        """What commands of installers in the text name, extras included."""
        told = (note.removeprefix(INSTALLING) for note in self.facts.notes if note.startswith(INSTALLING))
        return tuple(name for note in told for name in note.split(", "))

    @property
    def torch_minor(self) -> Version | None:
        """torch's minor version, also where only `2.6` is told."""
        torch = self.facts.distribution("torch")
        version = parse_version(torch.told) if torch else None
        return Version(f"{version.major}.{version.minor}") if version else None

    def installed(self, name: str) -> bool | None:
        """True or False when it is known, None when the facts do not tell."""
        if self.facts.distribution(name) is not None:
            return True
        return False if self.complete and not self._is_left_out(name) else None

    def _is_left_out(self, name: str) -> bool:
        """True for what `pip freeze` does not show, in a listing that shows none of it."""
        if name not in UNFROZEN or self.facts.origin != "paste":
            return False
        return self.facts.environment.distributions.keys().isdisjoint(UNFROZEN)

    @cached_property
    def recorded(self) -> Recorded | None:
        """What the listed releases are recorded to require; None without the package facts."""
        from envdoctor.rules.recorded import read_recorded

        return read_recorded(self.facts, self.matrix)

    @cached_property
    def complete(self) -> bool:
        """True when what is not listed is not installed: of a paste only where it proves to be whole."""
        from envdoctor.rules.recorded import is_closed

        if not self.facts.environment.complete or self.facts.origin != "paste":
            return self.facts.environment.complete
        return is_closed(self.facts, self.recorded)

    @cached_property
    def torch_cuda(self) -> Fact[CudaVersion]:
        """The CUDA that torch was built with; unknown for a CPU build."""
        build = self.torch_build
        distribution = self.facts.distribution("torch")
        source = distribution.source if distribution else "torch"
        if isinstance(text := build.get("cuda"), str):
            read = read_cuda(text)
            return Observed(read, source) if read else Unknown(f"torch's CUDA reads {text[:20]!r}")
        if build.get("variant") == "cpu":
            return Unknown("torch is a CPU build")
        return Unknown("torch's CUDA is not told")

    @cached_property
    def torch_build(self) -> Mapping[str, object]:
        """torch's build facts: what was observed, completed by what its default wheel is known to be."""
        observed = dict(self.facts.environment.builds.get("torch", {}))
        local = self._torch_local()
        if local == "cpu" or (local is None and observed.get("cuda", "") is None):
            observed.setdefault("variant", "cpu")
        elif local and re.fullmatch(r"cu\d{3}", local):
            observed.setdefault("cuda", str(CudaVersion.parse(local)))
        if observed.get("variant") == "cpu" or "rocm" in (local or ""):
            return (
                {"variant": "cpu", **observed}
                if "rocm" not in (local or "")
                else {"variant": "rocm", **observed}
            )
        return self._complete_from_default_wheel(observed)

    @property
    def cuda_assumed(self) -> bool:
        """True when torch's CUDA was only inferred from its version, which an error line outweighs."""
        return "assumed" in self.torch_build

    @cached_property
    def companions(self) -> Mapping[str, tables.CompanionRow]:
        """The packages with compiled code of their own, as rows tell how they stand to torch."""
        return {row.package: row for row in self.matrix.rows(tables.CompanionRow)}

    def own_torch(self, package: str) -> bool:
        """True where a package stands beside a torch that its wheels were not built for: `2.1.1+git011de5c`.

        Then it was built for that torch, too, and the default index's wheels tell nothing of the pair. Of
        PyTorch's own ROCm builds its own companions alone come as wheels.
        """
        label = self._torch_local()
        row = self.companions.get(package)
        theirs = _OF_PYTORCH if row and row.of_torch else _OF_THE_INDEX
        return label is not None and not theirs.fullmatch(label)

    def _torch_local(self) -> str | None:
        version = self.version("torch")
        return version.local if version else None

    def _complete_from_default_wheel(self, observed: dict[str, object]) -> Mapping[str, object]:
        version = self.version("torch")
        if version is None or version.is_devrelease or version.is_prerelease:
            return observed
        system = self.facts.host.os.get()
        if system == "macos" or (system not in (None, "linux") and not self.shows_failure):
            return observed  # the default wheels there hold no CUDA, and nothing shows that it is used
        from envdoctor.matrix.torch_wheels import default_wheel, variant_arch_list

        arch = self.facts.host.arch.get() or "x86_64"
        wheel = default_wheel(self.matrix, version.base_version, arch)
        if wheel is not None and "cuda" not in observed and self._torch_local() is None:
            observed.update({"cuda": wheel.cuda, "assumed": "default wheel"})
            if wheel.cuda is None:
                observed["variant"] = "cpu"
        cuda = observed.get("cuda")
        if "arch_list" not in observed and isinstance(cuda, str) and read_cuda(cuda):
            archs = variant_arch_list(self.matrix, version.base_version, cuda, arch)
            if archs:
                observed["arch_list"] = list(archs)
        return observed

    @cached_property
    def python(self) -> Fact[str]:
        """The examined interpreter's version."""
        return self.facts.environment.python

    def driver(self) -> Fact[DriverVersion]:
        """The driver's version."""
        return self.facts.driver.version

    def lowest_capability(self) -> ComputeCapability | None:
        """The lowest compute capability among the GPUs, None when none is known."""
        known = [gpu.compute_capability for gpu in self.gpus.get() or () if gpu.compute_capability]
        return min(known) if known else None


def read_cuda(text: str) -> CudaVersion | None:
    """Return a version of CUDA as it is written; None for a text that is none."""
    try:
        return CudaVersion.parse(text)
    except ValueError:
        return None


def informs(matrix: Matrix, symptom: Symptom) -> bool:
    """True for a line that tells what is done or wished for, and of no failure."""
    row = matrix.row(tables.SymptomRow, symptom.id)
    return row is not None and row.informs


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


def _places(error: ErrorSeen) -> Iterable[str]:
    return (f"{frame.file} {frame.code}" for frame in error.frames)


def quoted(seen: Iterable[Symptom]) -> tuple[Evidence, ...]:
    """Return up to three error lines as evidence."""
    return tuple(Evidence(s.id, s.text, s.source) for s in seen)[:3]


def explained(seen: Iterable[Symptom]) -> tuple[str, ...]:
    """Return the signatures' ids, each once."""
    return tuple(dict.fromkeys(symptom.id for symptom in seen))


def installed(view: View, *names: str) -> tuple[Evidence, ...]:
    """Return the versions of those distributions that the facts hold."""
    found = ((name, view.facts.distribution(name)) for name in names)
    return tuple(Evidence(name, d.told or "installed", d.source) for name, d in found if d is not None)


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
