"""Building C++/CUDA extensions at run time: the toolkit's CUDA against the CUDA that torch was built with."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.version import Version

from envdoctor.commands import commands
from envdoctor.facts import CudaVersion, Observed, Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.ranges import range_satisfies, version_satisfies
from envdoctor.rules.view import View, read_cuda
from envdoctor.values import dataclass

SOURCE = "https://github.com/deepspeedai/DeepSpeed/blob/master/op_builder/builder.py"
_NEAR = "the minors of one major go together"
_SYMPTOMS = ("SYM-CUDA-MISMATCH", "SYM-CUDA-MISMATCH-TORCH")


@dataclass(frozen=True, slots=True)
class _Pair:
    """The toolkit's CUDA beside torch's, with what shows them."""

    toolkit: CudaVersion
    torch: CudaVersion
    evidence: tuple[Evidence, ...]
    seen: Symptom | None


def check_extension_cuda(view: View) -> Iterable[Finding]:
    """Find a toolkit that cannot build extensions for the installed torch."""
    pair = _observed_pair(view)
    if pair.toolkit == pair.torch:
        return
    tolerated = _tolerating_row(view, pair)
    if pair.seen is None and (tolerated or not view.installed("deepspeed")):
        return
    yield _finding(view, pair, tolerated)


def _observed_pair(view: View) -> _Pair:
    for symptom in view.facts.symptoms:
        if symptom.id in _SYMPTOMS:
            told = [read_cuda(symptom.captured.get(name, "")) for name in ("installed", "torch")]
            if told[0] is not None and told[1] is not None:
                line = (Evidence(symptom.id, symptom.text, symptom.source),)
                return _Pair(told[0], told[1], line, symptom)
    toolkits = view.facts.toolkits
    if not isinstance(toolkits, Observed) or not toolkits.value:
        raise Skip("no CUDA toolkit is known")
    torch_cuda = view.torch_cuda
    built = torch_cuda.require()
    active = next((t for t in toolkits.value if t.active), toolkits.value[0])
    evidence = (
        Evidence("CUDA toolkit (nvcc)", str(active.version), active.source),
        Evidence("torch's CUDA", str(built), getattr(torch_cuda, "source", "torch")),
    )
    return _Pair(active.version, built, evidence, None)


def _tolerating_row(view: View, pair: _Pair) -> str | None:
    """Return the row that lets DeepSpeed build with another minor of the same major, or None."""
    if pair.toolkit.major != pair.torch.major:
        return None
    deepspeed = view.version_text("deepspeed")
    for row in view.matrix.rows(tables.DeepspeedCudaRow):
        covers = all(version_satisfies(Version(str(v)), row.cuda) for v in (pair.toolkit, pair.torch))
        if covers and (deepspeed is None or _could_be(view, row.deepspeed)):
            return row.id
    return None


def _could_be(view: View, specifier: str) -> bool:
    version = view.version("deepspeed")
    if version is not None:
        return version_satisfies(version, specifier)
    distribution = view.facts.distribution("deepspeed")
    return distribution is None or range_satisfies(distribution.specifier, specifier) is not False


def _finding(view: View, pair: _Pair, tolerated: str | None) -> Finding:
    who = "DeepSpeed's op builder" if _by_deepspeed(view, pair) else "torch's extension builder"
    return Finding(
        id="DS-CUDA-MISMATCH",
        severity=Severity.ERROR if pair.seen else Severity.WARNING,
        summary=(
            f"CUDA mismatch: the toolkit (nvcc) is {pair.toolkit}, torch was built with {pair.torch}; "
            f"{who} (deepspeed, flash-attn and other extensions) refuses to compile"
        ),
        cause=(
            "Extensions compiled at run time must use the CUDA that torch was built with: the same major "
            "always, and the same minor unless DeepSpeed lists the pair. The driver's CUDA is no part of it."
            + (" DeepSpeed lists this pair, so a current release builds with it." if tolerated else "")
        ),
        evidence=pair.evidence,
        remedies=tuple(_remedies(view, pair)),
        certainty=Certainty.CERTAIN,
        rows=(tolerated,) if tolerated else (),
        sources=(SOURCE,),
        explains=(pair.seen.id,) if pair.seen else (),
    )


def _by_deepspeed(view: View, pair: _Pair) -> bool:
    return pair.seen is None or pair.seen.id == "SYM-CUDA-MISMATCH" or bool(view.installed("deepspeed"))


def _built_for(view: View, toolkit: CudaVersion) -> CudaVersion | None:
    """Return the CUDA nearest to the toolkit, of the same major, for which PyTorch builds torch."""
    rows = view.matrix.rows(tables.TorchVariantRow)
    known = {read_cuda(f"{row.variant[2:-1]}.{row.variant[-1]}") for row in rows if row.variant[:2] == "cu"}
    alike = [one for one in known if one and one.major == toolkit.major]
    return min(alike, key=lambda one: (abs(one.minor - toolkit.minor), one.minor), default=None)


def _remedies(view: View, pair: _Pair) -> Iterable[Remedy]:
    yield Remedy(
        f"Use a CUDA {pair.torch} toolkit for building, beside whatever is installed.",
        (
            *commands("export CUDA_HOME=/usr/local/cuda-{}", pair.torch),
            "export PATH=$CUDA_HOME/bin:$PATH",
        ),
    )
    if built := _built_for(view, pair.toolkit):
        near = "" if built == pair.toolkit else f" (PyTorch has none for {pair.toolkit}; {_NEAR})"
        yield Remedy(
            f"Install a torch built for CUDA {built}{near}.",
            commands("pip install torch --index-url https://download.pytorch.org/whl/{}", built.tag),
        )
    if pair.toolkit.major == pair.torch.major:
        yield Remedy("The majors being equal, tell DeepSpeed to go on.", ("export DS_SKIP_CUDA_CHECK=1",))


RULES = (
    Rule(
        "DS-CUDA-MISMATCH",
        "the CUDA toolkit fits the CUDA that torch was built with",
        check_extension_cuda,
        SOURCE,
    ),
)
