"""torch says that it finds no CUDA: what the facts leave as its reason, and how torch itself tells it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envdoctor.facts import REPORTED, Observed
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.arch import UNAVAILABLE
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.view import View, cards, explained, quoted, symptoms, torch_build

SOURCE = "https://docs.pytorch.org/docs/stable/generated/torch.cuda.is_available.html"
_CAUSES = (
    *("TORCH-CPU-BUILD", "TORCH-WINDOWS-CPU", "DRIVER-TOO-OLD*", "DRIVER-NVML-*", "DRIVER-ERROR-*"),
    *("DRIVER-ABSENT", "DRIVER-SMI-*", "DRIVER-GPU*", "GPU-HIDDEN", "CUDA-NO-GPUS", "CUDA-UNKNOWN-ERROR"),
    "CONTAINER-*",
)
"""What makes torch answer so."""
_ASK = (
    "python -c \"import torch; print(torch.__version__, torch.version.cuda); torch.zeros(1, device='cuda')\""
)


def check_not_seen(view: View) -> Iterable[Finding]:
    """A torch that answers False where it is asked for CUDA, beside a card or a driver that is told."""
    seen = symptoms(view, UNAVAILABLE)
    if not seen:
        raise Skip("torch does not say that it finds no CUDA")
    if view.facts.host.os.get() == "macos":
        raise Skip("macOS has no CUDA: False is as it should be")
    if view.torch_build.get("variant") == "cpu":  # TORCH-CPU-BUILD says whether that is wrong
        return
    there = tuple(_there(view))
    yield Finding(
        id="CUDA-NOT-SEEN",
        severity=_severity(view, there),
        summary=f"torch finds no CUDA device (it answers False){', though one is told' if there else ''}.",
        cause=_cause(view, there),
        evidence=(*quoted(seen[:1]), *there, *torch_build(view)),
        remedies=ways_to_cuda(view),
        certainty=Certainty.LIKELY,
        sources=(SOURCE,),
        explains=explained(seen),
        fallback=True,
        follows=_CAUSES,
    )


def _there(view: View) -> Iterator[Evidence]:
    """Yield the cards and the driver that a report tells."""
    yield from cards(view.gpus.get() or ())
    driver = view.facts.driver.version
    if isinstance(driver, Observed):
        yield Evidence("driver", str(driver.value), driver.source)


def _severity(view: View, there: tuple[Evidence, ...]) -> Severity:
    """An error where a card is told or a person reports it, a warning beside another error; else a note."""
    titled = any(symptom.text.startswith("# ") for symptom in symptoms(view, UNAVAILABLE))
    if not (there or (titled and REPORTED in view.facts.notes)):
        return Severity.NOTE
    other = any(error.kind in ("exception", "line") for error in view.facts.errors)
    return Severity.WARNING if other else Severity.ERROR


def _is_cuda_build(view: View) -> bool:
    return view.torch_cuda.get() is not None and not view.cuda_assumed


def _cause(view: View, there: tuple[Evidence, ...]) -> str:
    if not there:
        return (
            "No NVIDIA card and no driver are told either: on a machine without one False is as it should be."
        )
    hidden = (
        "the devices are not handed to the process (CUDA_VISIBLE_DEVICES, a container without --gpus, a job "
        "without a GPU), the driver's library is not that of the loaded kernel module (an update without a "
        "reboot), or another environment runs than the one told"
    )
    if _is_cuda_build(view):
        return (
            f"This torch is built for CUDA {view.torch_cuda.get()}: it is no CPU build. Left are: {hidden}."
        )
    return f"Most often torch is a CPU build: its variant is not told. Else {hidden}."


def ways_to_cuda(view: View) -> tuple[Remedy, ...]:
    """Return what to try where torch answers that it has no CUDA device."""
    return tuple(_remedies(view)) if view.facts.host.os.get() != "macos" else ()


def _remedies(view: View) -> Iterator[Remedy]:
    yield Remedy("Let torch say why: this raises the reason in place of False.", (_ASK,))
    if not _is_cuda_build(view):
        yield Remedy(
            "If it prints None or +cpu: install a build for CUDA that the driver runs.",
            ("uv pip install --reinstall torch --torch-backend=auto",),
        )
    yield Remedy(
        "Else see what is handed to the process, in the very shell, job or container that runs it (Docker: "
        "--gpus all).",
        ("nvidia-smi -L", "echo $CUDA_VISIBLE_DEVICES"),
    )


RULES = (Rule("CUDA-NOT-SEEN", "torch finds the CUDA devices that are told", check_not_seen, SOURCE),)
