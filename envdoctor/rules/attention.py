"""Attention kernels: code their binaries hold, C libraries their wheels need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.version import Version

from envdoctor.commands import commands, pip_install
from envdoctor.facts import Gpu, Observed, Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.flash_wheels import releases_for, wheel_row
from envdoctor.matrix.torch_wheels import runs_on
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.ranges import parse_version
from envdoctor.rules.view import View, captured, card, cards, explained, installed, quoted, symptoms

KERNEL_SEEN = ("SYM-FA-CUTLASS-ARCH",)
FLASH_LIBRARY = "flash_attn"


def check_kernel_image(view: View) -> Iterable[Finding]:
    """A flash-attention binary (flash-attn's, or xformers' copy) without code for the GPU."""
    seen = symptoms(view, *KERNEL_SEEN)
    if not seen:
        raise Skip("no such error line")
    text = seen[0].text.lower()
    hopper = "/hopper/" in text
    owner = "xformers" if "xfrm" in text or "xformers" in text else "flash-attn"
    gpu = next((g for g in view.gpus.get() or () if g.compute_capability), None)
    yield Finding(
        id="FLASH-ATTN-NO-KERNEL",
        severity=Severity.ERROR,
        summary=_kernel_summary(owner, hopper, gpu),
        cause=_kernel_cause(owner, hopper),
        evidence=(*((card(gpu),) if gpu else ()), *installed(view, owner, "torch"), *quoted(seen)),
        remedies=tuple(_kernel_remedies(owner, hopper, gpu)),
        certainty=Certainty.CERTAIN if gpu else Certainty.LIKELY,
        rows=("FLASH-ATTN-3-CC",) if hopper else (),
        sources=("https://github.com/facebookresearch/xformers/issues/1329",)
        if owner == "xformers"
        else ("https://github.com/Dao-AILab/flash-attention/blob/v2.8.3/setup.py",),
        explains=(*explained(seen), "SYM-NO-KERNEL-IMAGE"),
        prior=0.97,
    )


def _kernel_summary(owner: str, hopper: bool, gpu: Gpu | None) -> str:
    sm = gpu.compute_capability.sm if gpu and gpu.compute_capability else "this GPU's architecture"
    kernels = "FlashAttention-3 (Hopper, sm_90a) kernels" if hopper else "the flash-attention binary"
    name = f" ({gpu.name})" if gpu and gpu.name else ""
    return f"{owner}: {kernels} hold no code for {sm}{name}; torch itself is not at fault."


def _kernel_cause(owner: str, hopper: bool) -> str:
    if hopper:
        return (
            f"The path names flash-attention's hopper folder: {owner} sent the call to "
            f"FlashAttention-3, whose "
            "kernels exist for sm_90a alone and run neither on older cards nor on Blackwell."
        )
    return (
        "The path names flash-attention's own kernels. Official wheels hold sm_80 and sm_90, and "
        "from 2.8 on also "
        "sm_100 and sm_120; a build made with CUDA older than 12.8, or for listed architectures "
        "only, lacks them."
    )


def _kernel_remedies(owner: str, hopper: bool, gpu: Gpu | None) -> Iterator[Remedy]:
    number = gpu.compute_capability.sm.removeprefix("sm_") if gpu and gpu.compute_capability else "120"
    if owner == "xformers":
        yield Remedy(
            "Build xformers for this card without flash attention.",
            commands(
                "XFORMERS_DISABLE_FLASH_ATTN=1 TORCH_CUDA_ARCH_LIST={} "
                "pip install --no-build-isolation --no-binary xformers --force-reinstall --no-deps xformers",
                f"{number[:-1]}.{number[-1]}",
            ),
        )
    elif not hopper:
        yield Remedy(
            "Build flash-attn for this card with CUDA 12.8 or newer, or take an official wheel of "
            "2.8 or newer.",
            commands(
                "FLASH_ATTN_CUDA_ARCHS={} FLASH_ATTENTION_FORCE_BUILD=TRUE "
                "pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps flash-attn",
                number,
            ),
        )
    yield Remedy("Use torch's scaled_dot_product_attention.", ('attn_implementation="sdpa"',))


def check_xformers_architectures(view: View) -> Iterable[Finding]:
    """An xformers wheel that carries no code for a GPU."""
    version = view.version("xformers")
    releases = view.matrix.generated("xformers").get("releases", {})
    archs = releases.get(str(version), {}).get("arch_list") if version else None
    if not archs:
        raise Skip("xformers' version, or what its wheel holds, is not told")
    lacking = [
        gpu
        for gpu in view.gpus.require()
        if gpu.compute_capability and not runs_on(archs, gpu.compute_capability)
    ]
    if lacking:
        yield _xformers_finding(view, lacking, archs, str(releases[str(version)].get("source", "")))


def _xformers_finding(view: View, lacking: list[Gpu], archs: list[str], source: str) -> Finding:
    return Finding(
        id="XFORMERS-ARCH",
        severity=Severity.WARNING,
        summary=f"xformers' own kernels do not run on {lacking[0].name or 'this GPU'}.",
        cause=f"Its wheel holds code for {', '.join(archs)}; other operators fall back or refuse.",
        evidence=(*cards(lacking), *installed(view, "xformers")),
        remedies=(Remedy("Use sdpa, or build xformers for this card.", ('attn_implementation="sdpa"',)),),
        sources=(source,),
    )


def check_flash_glibc(view: View) -> Iterable[Finding]:
    """A flash-attn wheel that needs a newer C library than the system has."""
    seen = tuple(s for s in symptoms(view, "SYM-GLIBC") if FLASH_LIBRARY in s.text)
    version, glibc = view.version("flash-attn"), parse_version(view.facts.host.glibc.get() or "")
    row = wheel_row(view.matrix, version) if version else None
    short = row is not None and glibc is not None and glibc < Version(row.glibc)
    if not seen and (row is None or glibc is None):
        raise Skip("flash-attn's version, or glibc's, is not told")
    if short or seen:
        needed = captured(seen, "needed") or (row.glibc if row else "2.32")
        yield _glibc_finding(view, needed, glibc, seen)


def _glibc_finding(view: View, needed: str, glibc: Version | None, seen: tuple[Symptom, ...]) -> Finding:
    host = view.facts.host.glibc
    return Finding(
        id="FLASH-ATTN-GLIBC",
        severity=Severity.ERROR if seen else Severity.WARNING,
        summary=f"flash-attn's wheel needs glibc {needed} (GLIBC_{needed}); this system has "
        f"{glibc or 'an older one'}.",
        cause="flash-attn's wheels from 2.8 on are built on Ubuntu 22.04 and need glibc 2.32; those "
        "up to 2.7.4.post1 "
        "were built on Ubuntu 20.04 and run with 2.31. The C library belongs to the distribution.",
        evidence=(
            *installed(view, "flash-attn", "torch"),
            *((Evidence("glibc", host.value, host.source),) if isinstance(host, Observed) else ()),
            *quoted(seen),
        ),
        remedies=tuple(_glibc_remedies(view, glibc)),
        certainty=Certainty.CERTAIN if seen else Certainty.LIKELY,
        rows=("FLASH-ATTN-WHEEL-2.7.4.POST1", "FLASH-ATTN-WHEEL-2.8.0.POST1"),
        sources=("https://github.com/Dao-AILab/flash-attention/issues/1708",),
        explains=explained(seen),
        prior=0.95,
    )


def _glibc_remedies(view: View, glibc: Version | None) -> Iterator[Remedy]:
    torch = view.torch_minor
    spec = "<=2.7.4.post1"
    if torch is not None:
        spec = releases_for(view.matrix, torch, glibc or Version("2.31")) or ""
    if spec:
        yield Remedy(
            f"Install flash-attn {spec}, whose wheels fit the older C library.",
            pip_install(f"flash-attn{spec}", options="--no-build-isolation --no-cache-dir"),
            {"flash-attn": spec},
        )
    yield Remedy(
        "Build it here from source.",
        ("FLASH_ATTENTION_FORCE_BUILD=TRUE pip install --no-build-isolation --no-cache-dir flash-attn",),
    )
    yield Remedy("Move to Ubuntu 22.04 (or an image of it) or newer.")


RULES = (
    Rule("FLASH-ATTN-NO-KERNEL", "flash-attention binaries hold code for the GPU", check_kernel_image),
    Rule("XFORMERS-ARCH", "xformers' wheel holds code for the GPUs", check_xformers_architectures),
    Rule("FLASH-ATTN-GLIBC", "flash-attn's wheel fits the system's glibc", check_flash_glibc),
)
