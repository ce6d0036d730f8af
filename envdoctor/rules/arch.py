"""torch's code against the GPUs: architectures it was compiled for, and builds without CUDA at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envdoctor import lazy_re as re
from envdoctor.commands import commands, install_commands, pip_install
from envdoctor.facts import MOOD, REPORTED, ComputeCapability, Gpu, Observed, Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.matrix.gpus import KnownGpu, find_gpu
from envdoctor.matrix.torch_wheels import COMPANIONS, capability_row, default_wheel, generation, runs_on
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.conditions import judge
from envdoctor.rules.ranges import version_satisfies
from envdoctor.rules.view import View, cards, explained, installed, quoted, symptoms, torch_build
from envdoctor.values import dataclass

NO_KERNEL = ("SYM-NO-KERNEL-IMAGE", "SYM-CAPABILITY-UNSUPPORTED", "SYM-CAPABILITY-LIST", "SYM-CAPABILITY-OLD")
UNAVAILABLE = "SYM-CUDA-SAID-UNAVAILABLE"
CPU_TORCH = ("SYM-CPU-TORCH",)
ARM_ROW = "TORCH-AARCH64-CPU"
JETSON_ROW = "JETSON-TORCH-INDEX"


@dataclass(frozen=True, slots=True)
class _Fault:
    """A GPU that torch has no code for, why that is known, and torch's row for its capability."""

    gpu: Gpu
    why: str
    row: tables.TorchCapabilityRow | None
    evidence: tuple[Evidence, ...] = ()
    certainty: Certainty = Certainty.CERTAIN


def check_torch_architectures(view: View) -> Iterable[Finding]:
    """GPUs that the installed torch carries no machine code (and no PTX) for."""
    if view.installed("torch") is False:
        raise Skip("torch is not installed")
    gpus = [gpu for gpu in view.gpus.require() if gpu.compute_capability]
    verdicts = [(gpu, _fault(view, gpu)) for gpu in gpus]
    if not gpus or all(verdict is None for _, verdict in verdicts):
        raise Skip("the GPUs' compute capability, or what torch was built for, is not told")
    faults = [verdict for _, verdict in verdicts if isinstance(verdict, _Fault)]
    if faults:
        yield _finding(view, faults, some_run=len(faults) < len(gpus))


def _fault(view: View, gpu: Gpu) -> _Fault | bool | None:
    """The fault of one GPU; False when torch runs on it, None when nothing decides."""
    capability = gpu.compute_capability
    assert capability is not None
    row = capability_row(view.matrix, capability)
    if _said_by_torch(view, capability):
        return _Fault(gpu, "torch itself says at its start that it holds no code for it", row)
    archs = _architectures(view)
    if archs:
        if runs_on(archs, capability):
            return False
        shown = Evidence("torch's architectures", " ".join(archs), _where(view))
        in_none = row is not None and judge(view, "torch", row.builds).holds is False
        sure = Certainty.CERTAIN if in_none or _is_told_build(view) else Certainty.LIKELY
        return _Fault(gpu, f"this torch holds code for {' '.join(archs)} only", row, (shown,), sure)
    return (_fault_of_version(view, gpu, row) or _supposed_fault(view, gpu, row)) if row else None


def _said_by_torch(view: View, capability: ComputeCapability) -> bool:
    """True when torch's own warning names that capability (`sm_61` or `6.1`)."""
    said = symptoms(view, "SYM-CAPABILITY-UNSUPPORTED", "SYM-CAPABILITY-OLD")
    return any(s.captured.get("cc") in (capability.sm, str(capability)) for s in said)


def _supposed_fault(view: View, gpu: Gpu, row: tables.TorchCapabilityRow) -> _Fault | None:
    """The likely fault where a kernel was missing, and only some releases have the code: not those told.

    Of a release the beginning is told at most: which build runs is known of none.
    """
    torch = view.facts.distribution("torch")
    if torch and not (torch.begun and row.default and judge(view, "torch", row.default).holds is False):
        return None
    if not symptoms(view, "SYM-NO-KERNEL-IMAGE", "SYM-NO-BINARY"):
        return _told_fault(view, gpu, row)
    if symptoms(view, "SYM-FA-CUTLASS-ARCH", "SYM-GGML-NO-KERNEL") or not (row.cuda_below or row.variant):
        return None
    why = f"the default wheels of torch {row.default} hold code for it, others do not"
    return _Fault(gpu, why, row, certainty=Certainty.LIKELY)


def _told_fault(view: View, gpu: Gpu, row: tables.TorchCapabilityRow) -> _Fault | None:
    """What may be behind trouble that is told in words alone, on a card that only newer releases know."""
    errors = view.facts.errors
    newly = row.cuda_least and row.variant and not row.cuda_below
    if not (newly and errors and all(error.kind == "said" for error in errors)):
        return None
    why = f"torch holds code for it from {row.builds}, built with CUDA {row.cuda_least} or newer, on"
    return _Fault(gpu, f"{why}; which torch runs here is not told", row, certainty=Certainty.UNCERTAIN)


def _architectures(view: View) -> tuple[str, ...]:
    """torch's architectures; a list told without the torch it belongs to counts where an error shows it."""
    archs = view.torch_build.get("arch_list")
    return tuple(map(str, archs)) if isinstance(archs, (list, tuple)) and _is_told_of(view) else ()


def _is_told_of(view: View) -> bool:
    """True when what is told of a build belongs to the torch at hand: an exact one, or one that failed."""
    exact = view.version("torch") is not None or view.facts.distribution("torch") is None
    return exact or bool(symptoms(view, *NO_KERNEL))


def _is_told_build(view: View) -> bool:
    """True where it is told which build of the release runs: another variant or conda's has other code."""
    told = view.facts.environment.builds.get("torch", {})
    return "arch_list" in told or "assumed" not in view.torch_build


def _where(view: View) -> str:
    told = view.facts.environment.builds.get("torch", {})
    return "torch's files" if "arch_list" in told else "what that torch's wheel holds"


def _fault_of_version(view: View, gpu: Gpu, row: tables.TorchCapabilityRow) -> _Fault | None:
    """What version and CUDA alone prove: no official build had the code, or no such toolkit can make it."""
    cuda = view.torch_cuda.get() if _is_told_of(view) else None
    if judge(view, "torch", row.builds).holds is False:
        return _Fault(gpu, f"no official build of torch {view.version_text('torch')} holds code for it", row)
    if cuda is None:
        return None
    least, below = row.cuda_least, row.cuda_below
    if least and cuda < least:
        return _Fault(gpu, f"CUDA {cuda} cannot compile for it (CUDA {least} is the first that can)", row)
    if below and cuda >= below:
        return _Fault(gpu, f"CUDA {below} and newer no longer compile for it", row)
    return None


def _finding(view: View, faults: list[_Fault], some_run: bool) -> Finding:
    seen = symptoms(view, *NO_KERNEL)
    worst = faults[0]
    sm = worst.gpu.compute_capability.sm if worst.gpu.compute_capability else ""
    sure, card = worst.certainty is not Certainty.UNCERTAIN, worst.gpu.name or "this GPU"
    return Finding(
        id="TORCH-ARCH",
        severity=Severity.WARNING if (some_run or not sure) and not seen else Severity.ERROR,
        summary=f"torch has no code for {card} ({sm}): no kernel image is available."
        if sure
        else f"an older torch has no code for {card} ({sm}): {worst.why}.",
        cause=_cause(view, worst, sm),
        evidence=(*cards(f.gpu for f in faults), *torch_build(view), *worst.evidence, *quoted(seen)),
        remedies=tuple(_remedies(view, worst)),
        rows=(worst.row.id,) if worst.row else (),
        certainty=worst.certainty,
        sources=(worst.row.source,) if worst.row else (),
        explains=explained(seen),
        prior=0.9,
    )


def _cause(view: View, fault: _Fault, sm: str) -> str:
    capability = fault.gpu.compute_capability
    family = generation(view.matrix, capability) if capability else ""
    return (
        f"Compute capability {capability} ({sm}, {family}): {fault.why}. Code runs on the same major "
        "capability with an equal or lower minor one; nothing else in the wheel can stand in."
    )


def _remedies(view: View, fault: _Fault) -> Iterator[Remedy]:
    row = fault.row
    if row is None:
        yield Remedy("Build torch from source for this GPU.")
        return
    version, advice = view.version("torch"), row.advice or row.default
    if version is not None and version_satisfies(version, advice):
        text = f"Reinstall torch {version.public} from the default index: that build runs on this GPU."
        yield Remedy(text, pip_install(f"torch=={version.public}", options="--force-reinstall"))
        yield from _of_the_same_cuda(view, fault)
    else:
        text = f"Install torch {advice}: its default wheels run on this GPU."
        yield Remedy(text, pip_install(f"torch{advice}"), {"torch": advice})
    if variant := row.variant:
        wanted = row.variant_torch
        yield Remedy(
            f"The {variant} variant of torch {wanted}, which holds code for it.",
            commands("uv pip install {} --torch-backend={}", f"torch{wanted}", variant),
            {"torch": wanted.partition(",")[0]} if wanted.startswith(">=") and not _runs_below(row) else {},
        )


def _of_the_same_cuda(view: View, fault: _Fault) -> Iterator[Remedy]:
    """Offer the releases of which the default build, for the very CUDA that is here, holds the code."""
    cuda, capability = view.torch_cuda.get(), fault.gpu.compute_capability
    released = view.matrix.generated("torch").get("releases", {})
    wheels = {version: default_wheel(view.matrix, version) for version in released}
    having = [
        version
        for version, wheel in wheels.items()
        if wheel and cuda and capability and wheel.cuda == str(cuda) and runs_on(wheel.arch_list, capability)
    ]
    if having:
        pins = {"torch": f">={having[0]},<={having[-1]}"}
        which = f"torch {having[0]} to {having[-1]}"
        text = f"Or stay with CUDA {cuda}: the default builds of {which} hold code for it."
        yield Remedy(text, install_commands(pins), pins)


def _runs_below(row: tables.TorchCapabilityRow) -> bool:
    """True for old GPUs, where a floor on torch alone would be no remedy."""
    return row.cuda_below is not None


def check_extension_architectures(view: View) -> Iterable[Finding]:
    """A missing kernel image although torch has code for every GPU: another compiled package lacks it."""
    seen = symptoms(view, "SYM-NO-KERNEL-IMAGE", "SYM-NO-BINARY")
    gpus = [gpu for gpu in view.gpus.get() or () if gpu.compute_capability]
    if not seen or not gpus:
        raise Skip("no missing kernel image, or no GPU, is told")
    compiled = [name for name, row in view.companions.items() if row.kernels]
    named = [name for name in compiled if name.replace("-", "_") in seen[0].text.replace("-", "_")]
    texts = (error.text for error in view.facts.errors if seen[0].id in error.symptoms)
    source = next((met for text in texts if (met := _SOURCE_FILE.search(text))), None) if not named else None
    runs = all(_fault(view, gpu) is False for gpu in gpus)
    if symptoms(view, "SYM-FA-CUTLASS-ARCH") or not (runs or named):
        return
    sms = list(dict.fromkeys(gpu.compute_capability.sm for gpu in gpus if gpu.compute_capability))
    sm = " or ".join(sms)
    held = named or ([] if source else [name for name in compiled if view.facts.distribution(name)])
    who = " or ".join(f"{name} {view.version_text(name) or ''}".strip() for name in held)
    who = f"the package of {source[1]}" if source else who or "a compiled extension in the traceback"
    names = " or ".join(dict.fromkeys(gpu.name or "the GPU" for gpu in gpus))
    card_name = f"{names} ({sm})"
    yield Finding(
        id="EXTENSION-NO-KERNEL",
        severity=Severity.ERROR,
        summary=(
            f"torch {view.version_text('torch')} holds code for {card_name}, so {who} lacks kernels for {sm}"
            if runs
            else f"{who} lacks kernels for {card_name}: the error comes from its code"
        ),
        cause=(
            "Packages with CUDA code of their own are compiled for a list of architectures too; the lowest "
            "frame of the traceback names the package whose kernel was launched."
        ),
        evidence=(*cards(gpus), *torch_build(view), *installed(view, *held), *quoted(seen)),
        remedies=tuple(_extension_remedies(held, sms)),
        certainty=Certainty.LIKELY,
        sources=("https://github.com/vllm-project/vllm/issues/19906",),
        explains=explained(seen),
        prior=0.85,
    )


_SOURCE_FILE = re.compile(r"\bat (/?(?:[\w.-]{1,60}/){1,12}[\w.-]{1,60}\.(?:cuh?|cpp|h)):\d")
"""The file of the call that failed, as an extension's own error check names it."""


_AMPERE = 80
"""What sets newer wheels apart from older cards: CUDA 13 compiles for 7.5 and newer, most kernels for 8.0."""
_NAMED_THERE = "PACKAGE"
_FROM_SOURCE = "pip install --no-build-isolation --no-binary {} {}"


def _extension_remedies(held: list[str], sms: list[str]) -> Iterator[Remedy]:
    names = ["flashinfer-python" if name == "flashinfer" else name for name in held] or [_NAMED_THERE]
    which = "" if held else f" ({_NAMED_THERE}: the one whose file the lowest frame of the traceback names)"
    oldest, told = min(int(sm[3:]) for sm in sms), " or ".join(sms)
    compiled = Remedy(
        f"Compile it from source for {' and '.join(sms)}{which}.",
        (
            *commands("export TORCH_CUDA_ARCH_LIST={}", ";".join(f"{sm[3:-1]}.{sm[-1]}" for sm in sms)),
            *commands(_FROM_SOURCE, names[0], names[0]),
        ),
    )
    if oldest >= _AMPERE:
        text = "Raise it: newer wheels are compiled for newer GPUs"
        yield Remedy(f"{text}{which}.", pip_install(*names, options="-U"))
        yield compiled
        return
    yield compiled
    yield Remedy(
        f"Where its kernels are not written for {told} (many begin with sm_80): do without it, or take a card"
        " of compute capability 8.0 or newer. A release from before it left the card out has them still."
    )


def check_cpu_build(view: View) -> Iterable[Finding]:
    """A torch without CUDA on a machine with an NVIDIA GPU, or where code asked for CUDA."""
    cpu = view.torch_build.get("variant") == "cpu"
    reported = REPORTED in view.facts.notes
    told = (s for s in symptoms(view, UNAVAILABLE) if cpu and (reported or s.captured.get(MOOD) == "told"))
    seen = (*symptoms(view, *CPU_TORCH), *told)  # a person who tells of False wants the card
    gpus = view.gpus.get()
    if not seen and (not cpu or gpus is None):
        if view.facts.distribution("torch") is None or gpus is None:
            raise Skip("torch's build, or whether there is a GPU, is not told")
        return
    if seen and view.torch_cuda.get() is not None and not view.cuda_assumed:
        return
    if cpu and gpus == () and not seen:
        return
    yield _cpu_finding(view, seen, cpu)


def _is_arm(view: View) -> bool:
    """True on aarch64, told or known from a GPU that only comes with such a CPU."""
    return "aarch64" in (view.facts.host.arch.get(), *(known.processor for known in _known(view)))


def _known(view: View) -> list[KnownGpu]:
    """Return the models of the cards that the matrix knows."""
    found = (find_gpu(view.matrix, gpu.name, gpu.pci_id) for gpu in view.gpus.get() or ())
    return [known for known in found if known]


def _told_build(view: View) -> tuple[Evidence, ...]:
    """torch and its CUDA, without one that was only assumed."""
    return installed(view, "torch") if view.cuda_assumed else torch_build(view)


def _cpu_finding(view: View, seen: tuple[Symptom, ...], cpu: bool) -> Finding:
    version = view.version_text("torch")
    arm = _is_arm(view)
    gpus = view.gpus.get() or ()
    jetson = view.matrix.row(tables.ConditionRow, JETSON_ROW) if any(k.wheels for k in _known(view)) else None
    why = (
        jetson.cause
        if jetson
        else "The default wheels for aarch64 are CPU builds before torch 2.11."
        if arm
        else "A wheel marked +cpu, a conda package without CUDA, the default Windows wheel, or what came "
        "when no CUDA wheel fitted this Python: none holds GPU code, and no driver or toolkit changes that."
    )
    return Finding(
        id="TORCH-CPU-BUILD",
        severity=Severity.ERROR if seen or cpu else Severity.WARNING,
        summary=f"This torch{f' ({version})' if version else ''} is a CPU build: it cannot use a GPU.",
        cause=why,
        evidence=(*_told_build(view), *cards(gpus), *quoted(seen)),
        remedies=tuple(Remedy(one.text, one.commands) for one in jetson.remedies)
        if jetson
        else tuple(_cuda_builds(view, arm, bool(seen))),
        certainty=Certainty.CERTAIN if cpu or seen else Certainty.LIKELY,
        rows=(jetson.id,) if jetson else (ARM_ROW,) if arm else (),
        sources=(jetson.source,) if jetson else ("https://pytorch.org/get-started/locally/",),
        explains=explained(seen),
        prior=0.9,
    )


def _cuda_builds(view: View, arm: bool, seen: bool) -> Iterator[Remedy]:
    if arm:
        row = view.matrix.row(tables.TorchPlatformRow, ARM_ROW)
        since = row.cuda_since if row else "*"
        yield Remedy(f"Install torch{since}.", pip_install(f"torch{since}", options="-U"), {"torch": since})
        return
    names = [name for name in ("torch", *COMPANIONS) if name == "torch" or view.version(name)]
    versions = {name: view.version(name) for name in names}
    wanted = [f"{n}=={v.public}" if v and not v.is_prerelease else n for n, v in versions.items()]
    words = " {}" * len(names)
    yield Remedy(
        "Reinstall torch as a CUDA build that fits the driver, and what is built like it.",
        (
            *commands(f"pip uninstall -y{words}", *names),
            *commands(f"uv pip install{words} --torch-backend=auto", *wanted),
        ),
    )
    if seen and not view.gpus.get():
        yield _without_gpu()


def _without_gpu() -> Remedy:
    return Remedy(
        'Or, where no NVIDIA GPU is meant to be used, let the program run on the CPU: device="cpu" (on a Mac'
        ' "mps").'
    )


def check_windows_default(view: View) -> Iterable[Finding]:
    """On Windows the default index's torch is a CPU build; CUDA builds carry their variant in the version."""
    if not isinstance(view.facts.host.os, Observed):
        raise Skip("the operating system is not told")
    version = view.version("torch")
    if view.facts.host.os.value != "windows" or version is None or version.local or not view.gpus.get():
        return
    if "cuda" in view.facts.environment.builds.get("torch", {}):
        return
    yield Finding(
        id="TORCH-WINDOWS-CPU",
        severity=Severity.WARNING,
        summary=f"torch {version} on Windows is probably the default index's CPU build.",
        cause="CUDA wheels for Windows exist only on PyTorch's own index, and their version ends in +cuXXX.",
        evidence=_told_build(view),
        remedies=tuple(_cuda_builds(view, arm=False, seen=False)),
        certainty=Certainty.LIKELY,
        follows=("TORCH-CPU-BUILD",),
        sources=("https://pytorch.org/get-started/locally/",),
    )


RULES = (
    Rule("TORCH-ARCH", "torch holds code for every GPU", check_torch_architectures),
    Rule("EXTENSION-NO-KERNEL", "compiled packages hold code for the GPUs", check_extension_architectures),
    Rule("TORCH-CPU-BUILD", "torch is a CUDA build where there is a GPU", check_cpu_build),
    Rule("TORCH-WINDOWS-CPU", "torch on Windows is not the default CPU build", check_windows_default),
)
