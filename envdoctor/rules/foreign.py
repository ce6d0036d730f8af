"""Accelerators that are not NVIDIA's: what is said of CUDA is not said to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from envdoctor import lazy_re as re
from envdoctor.facts.backend import Backend, backend_of
from envdoctor.facts.observed import Observed
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import FOREIGN
from envdoctor.rules.view import View

_FOREIGN = {
    Backend.ROCM: "AMD's ROCm",
    Backend.ASCEND: "Huawei's Ascend",
    Backend.XPU: "Intel's XPU",
    Backend.MPS: "Apple's MPS",
}
_WAYS: Mapping[Backend, tuple[Remedy, ...]] = {
    Backend.ROCM: (
        Remedy(
            "Where a call fails: let the ROCm of torch (or of the image), the kernel's driver and the card's"
            " gfx architecture match, as AMD's compatibility matrix has them.",
            ("rocminfo | grep gfx", "python -c 'import torch; print(torch.version.hip)'"),
        ),
        Remedy(
            "Compiled kernels have builds of their own for ROCm: flash-attn's is asked for by a variable.",
            ("export FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE",),
        ),
    ),
    Backend.XPU: (
        Remedy(
            "Where a call fails: let Intel's compute driver, oneAPI's runtime and torch's xpu build match;"
            " rebuild what another oneAPI compiled (llama.cpp runs by Vulkan, too).",
            ("sycl-ls", "python -c 'import torch; print(torch.__version__, torch.xpu.is_available())'"),
        ),
    ),
    Backend.ASCEND: (
        Remedy(
            "Where a call fails: see which operator it was, for calls are asynchronous.",
            ("export ASCEND_LAUNCH_BLOCKING=1",),
        ),
        Remedy(
            "Let the driver, CANN and its kernels, torch and torch_npu be of releases that their table names"
            " together, and source CANN's environment.",
            ("npu-smi info", "source /usr/local/Ascend/ascend-toolkit/set_env.sh"),
        ),
    ),
    Backend.MPS: (
        Remedy(
            "Where memory ends: the Mac's is shared with all else; a smaller batch, a shorter length, or a"
            " quantised model (MLX, GGUF)."
        ),
        Remedy(
            "Where an operator is missing: let it run on the CPU.", ("export PYTORCH_ENABLE_MPS_FALLBACK=1",)
        ),
    ),
}
"""What mends most of what fails there."""
_SOURCES: Mapping[Backend, str] = {
    Backend.ROCM: "https://rocm.docs.amd.com/en/latest/compatibility/compatibility-matrix.html",
    Backend.XPU: "https://docs.pytorch.org/docs/stable/notes/get_start_xpu.html",
    Backend.ASCEND: "https://github.com/Ascend/pytorch",
    Backend.MPS: "https://docs.pytorch.org/docs/stable/notes/mps.html",
}
_OWN = ("ROCM-", "XPU-", "NPU-", "MPS-", "MAC-", "HOST-MACOS")
"""Findings that are of these accelerators themselves, and may name CUDA to say that it is not here."""
_COMPANIONS = ("TORCHVISION-", "TORCHAUDIO-", "TORCHTEXT-")
"""Findings about what is compiled for one torch on every accelerator."""
_PYTHONS = ("INTERFACE-", "RELEASES-APART", "RELEASE-SUSPECTED", "INDEX-OFFERS", "PYTHON-NO-WHEEL")
_INSTALLERS = (
    *("UV-", "PIP-", "INDEX-", "WHEEL-", "PYTHON-NO-WHEEL", "BUILD-TORCH-FIRST", "BUILD-NEEDS-TORCH"),
    *("BUILD-STEP-FAILED",),
)
"""Findings about an installer's work, whose causes name packages with CUDA code as an example."""
_OF_NVIDIA = re.compile(
    r"\blib(?:cuda|cudart|cublas|cublasLt|cudnn|nvrtc|nvidia-ml|cusparse|cusolver|nccl)\.so[\d.]*"
)
_CUDA = re.compile(
    r"(?<!torch\.)\bcuda\b(?![ -]?graph)|nvidia|\bnvcc\b|\bcudnn|\bnvml|\bsm_\d|compute capability|"
    r"\bcu1[123]\d\b|\bptxas\b|xformers|bitsandbytes|flash-attn|the gpu ran out",
    re.IGNORECASE,
)


def foreign_backend(view: View) -> Observed[Backend] | None:
    """Return the accelerator that the facts tell of, with its evidence, where it is not NVIDIA's."""
    backend = backend_of(view.facts)
    return backend if isinstance(backend, Observed) and backend.value in _FOREIGN else None


def without_cuda(backend: Observed[Backend], findings: Sequence[Finding]) -> list[Finding]:
    """Return what holds on any accelerator, and a note that no more was judged."""
    kept = [
        f if _is_of_python(f) else replace(f, remedies=_without_cuda(f.remedies))
        for f in findings
        if f.id.startswith((*_OWN, *_COMPANIONS))
        or _is_of_python(f)
        or backend.value.value in f.summary.lower()
        or not (_rests_on_cuda(f) or _CUDA.search(_said_by(f)))
    ]
    return [*kept, *_cuda_builds(backend, findings), _note(backend)]


def _said_by(finding: Finding) -> str:
    return finding.summary if finding.id.startswith(_INSTALLERS) else f"{finding.summary} {finding.cause}"


def _rests_on_cuda(finding: Finding) -> bool:
    """True for what was concluded from the CUDA that a torch of the index would bring."""
    return any(one.fact == "torch's CUDA" for one in finding.evidence)


def _cuda_builds(backend: Observed[Backend], findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield, in place of where a library of NVIDIA's comes from, that a build for CUDA asks for it."""
    for one in findings:
        asked = [found[0] for e in one.evidence if (found := _OF_NVIDIA.search(e.value))]
        if asked and one.id.startswith("LIB-") and one.severity is Severity.ERROR:
            yield replace(
                one,
                summary=f"what was imported asks for NVIDIA's {asked[0]}: it is the"
                f" CUDA build (the wheel from PyPI), and this is {_FOREIGN[backend.value]}",
                cause="PyPI's wheels of compiled packages are mostly built for CUDA; other accelerators have"
                " builds, images or sources of their own.",
                remedies=(
                    Remedy(
                        f"Uninstall that package, and install its {backend.value.value} build: from source,"
                        f" from the project's own index, or its {backend.value.value} docker image."
                    ),
                ),
                certainty=Certainty.LIKELY,
            )
            return


def _is_of_python(finding: Finding) -> bool:
    """True for what Python code asks of Python code, and what an index has, whatever the packages are for."""
    imports = any(symptom.startswith("SYM-IMPORT-") for symptom in finding.explains)
    return imports or finding.id.startswith(_PYTHONS)


def _without_cuda(remedies: Sequence[Remedy]) -> tuple[Remedy, ...]:
    return tuple(r for r in remedies if not _CUDA.search(f"{r.text} {' '.join(r.commands)}"))


def _note(backend: Observed[Backend]) -> Finding:
    return Finding(
        id=FOREIGN,
        severity=Severity.NOTE,
        summary=f"this is {_FOREIGN[backend.value]}: what is known of NVIDIA's stack was not held against it",
        cause="Only what does not depend on the accelerator was judged: packages among one another, settings,"
        " the interpreter, the host.",
        evidence=(Evidence("accelerator", backend.value.value, backend.source),),
        remedies=_WAYS[backend.value],
        certainty=Certainty.LIKELY,
        sources=(_SOURCES[backend.value],),
    )
