"""CUDA's shared libraries: which copy is loaded, which packages shadow one another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.version import Version

from envdoctor import lazy_re as re
from envdoctor.commands import commands, install_commands, pip_install
from envdoctor.facts import CudaVersion, Distribution, NativeLibrary, Symptom
from envdoctor.facts.quantities import whole_number
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import finals, package_facts
from envdoctor.rules.ranges import parse_version
from envdoctor.rules.view import View, captured, explained, quoted, symptoms, torch_build

_CUDA_PACKAGE = re.compile(r"nvidia-(?P<library>[a-z-]+?)-cu(?P<major>1[0-9])")
_SHARED = frozenset(
    {
        "cublas", "cuda-cupti", "cuda-nvrtc", "cuda-runtime", "cudnn", "cufft", "cufile", "curand",
        "cusolver", "cusparse", "cusparselt", "nccl", "nvjitlink", "nvshmem", "nvtx",
    }
)  # fmt: skip


def check_mixed_cuda_packages(view: View) -> Iterable[Finding]:
    """The same CUDA library installed for two CUDA majors into one directory."""
    seen = symptoms(view, "SYM-NCCL-SYMBOL")
    wheels = dict(_cuda_packages(view))
    twice = sorted(
        library
        for library in {lib for lib, _ in wheels}
        if len([1 for lib, _ in wheels if lib == library]) > 1
    )
    if not twice:
        if not wheels and not seen:
            raise Skip("no nvidia-*-cuXX package is told of")
        if seen:
            yield _nccl_finding(view, seen)
        return
    kept = view.torch_cuda.get()
    others = sorted({major for lib, major in wheels if lib in twice and not (kept and major == kept.major)})
    stale = [
        f"nvidia-{lib}-cu{major}" for lib, major in sorted(wheels) if major in others[:1] and lib in twice
    ]
    yield _mixed_finding(view, twice, stale, wheels, seen)


def _cuda_packages(view: View) -> Iterator[tuple[tuple[str, int], Distribution]]:
    for name, distribution in view.facts.environment.distributions.items():
        match = _CUDA_PACKAGE.fullmatch(name)
        if match and match["library"] in _SHARED:
            yield (match["library"], int(match["major"])), distribution


def _mixed_finding(
    view: View,
    twice: list[str],
    stale: list[str],
    wheels: dict[tuple[str, int], Distribution],
    seen: tuple[Symptom, ...],
) -> Finding:
    shown = [wheels[key] for key in sorted(wheels) if key[0] in twice[:2]]
    majors = sorted({major for lib, major in wheels if lib in twice})
    named = " and ".join(f"cu{major}" for major in majors)
    return Finding(
        id="CUDA-PACKAGES-MIXED",
        severity=Severity.ERROR if seen else Severity.WARNING,
        summary=f"CUDA libraries are installed twice, for {named}: {', '.join(twice[:4])} (nccl and "
        f"cudnn share a file).",
        cause=f"nvidia-*-{named.replace(' and ', ' and nvidia-*-')} packages unpack into the same "
        f"nvidia/ directory; the one "
        "installed last overwrites libnccl.so.2 and others of the same name, so torch may load a "
        "copy that is too old.",
        evidence=(
            *(Evidence(d.name, d.version or "installed", d.source) for d in shown),
            *torch_build(view),
            *quoted(seen),
        ),
        remedies=(
            Remedy(
                "Remove the packages of the other CUDA, then reinstall torch's own.",
                (
                    *commands("pip uninstall -y" + " {}" * len(stale), *stale),
                    "pip install --force-reinstall --no-cache-dir torch",
                ),
            ),
        ),
        certainty=Certainty.CERTAIN,
        sources=("https://github.com/VichyTong/CodeJudge/issues/2",),
        explains=explained(seen),
        prior=0.9,
    )


def _nccl_finding(view: View, seen: tuple[Symptom, ...]) -> Finding:
    symbol = captured(seen, "symbol") or "a symbol"
    return Finding(
        id="NCCL-COPY-OLD",
        severity=Severity.ERROR,
        summary=f"torch loaded an NCCL older than the one it was built with: {symbol} is missing.",
        cause="An older libnccl.so.2 stands before torch's own: nvidia-nccl-cu11 and "
        "nvidia-nccl-cu12 both installed "
        "(they share one directory), or a system copy on LD_LIBRARY_PATH.",
        evidence=(*torch_build(view), *quoted(seen)),
        remedies=(
            Remedy(
                "Remove the packages of the CUDA that torch was not built for, then reinstall its own.",
                (
                    "pip list | grep -i '^nvidia'",
                    "pip uninstall -y nvidia-nccl-cu11",
                    "pip install --force-reinstall torch",
                ),
            ),
            Remedy("Take the system's NCCL off the path.", ("unset LD_LIBRARY_PATH LD_PRELOAD",)),
            *_torch_of_nccl(view),
        ),
        certainty=Certainty.LIKELY,
        sources=("https://github.com/VichyTong/CodeJudge/issues/2",),
        explains=explained(seen),
        prior=0.8,
    )


def _torch_of_nccl(view: View) -> Iterator[Remedy]:
    """Offer the newest torch that requires the NCCL which is installed."""
    told = ((name, view.version(name)) for name in view.facts.environment.distributions)
    installed = [(name, version) for name, version in told if name.startswith("nvidia-nccl-cu") and version]
    torch = package_facts(view, "torch")
    nccl = package_facts(view, installed[0][0]) if len(installed) == 1 else None
    if torch is None or nccl is None:
        return
    name, version = installed[0]
    for release, _ in finals(view, "torch"):
        row = torch.row_of(torch.position[release])
        asked = torch.requirements(row) if row >= 0 else ()
        if any(one.name == name and nccl.spec_text(one.spec) == f"=={version}" for one in asked):
            pins = {"torch": f"=={release}"}
            text = f"Or the torch that asks for this NCCL: {release} is the newest for {name} {version}."
            yield Remedy(text, install_commands(pins), pins)
            return


def check_nvjitlink(view: View) -> Iterable[Finding]:
    """An nvJitLink older than the cuSPARSE that asks it for a symbol."""
    seen = symptoms(view, "SYM-NVJITLINK")
    wanted = _wanted_by_symbol(seen) or _wanted_by_packages(view)
    if wanted is None:
        raise Skip("no cuSPARSE or nvJitLink is told of")
    major, minor = wanted.major, wanted.minor
    name = f"nvidia-nvjitlink-cu{major}"
    have = view.version(name)
    if not seen and (have is None or (have.major, have.minor) >= (major, minor)):
        return
    if have is not None and (have.major, have.minor) >= (major, minor) and not _shadowing(view):
        return
    spec = f"=={major}.{minor}.*"
    yield Finding(
        id="NVJITLINK-OLD",
        severity=Severity.ERROR if seen else Severity.WARNING,
        summary=f"libcusparse needs nvJitLink {wanted} (nvjitlink {major}.{minor}), and an older "
        f"copy is loaded.",
        cause=f"libcusparse.so.{major} of CUDA {wanted} asks libnvJitLink.so.{major} for a symbol "
        f"that only {wanted} and newer "
        "have; another CUDA minor version's pip package or a toolkit on LD_LIBRARY_PATH provides "
        "the copy that wins.",
        evidence=(
            *(Evidence(name, str(have), "installed") for _ in "1" if have),
            *torch_build(view),
            *quoted(seen),
        ),
        remedies=(
            Remedy(
                f"Install nvJitLink {wanted} beside cuSPARSE.", pip_install(f"{name}{spec}"), {name: spec}
            ),
            Remedy("Take the toolkit's libraries off the path.", ("unset LD_LIBRARY_PATH",)),
        ),
        sources=("https://github.com/pytorch/pytorch/issues/131312",),
        explains=(*explained(seen), *_same_line(view, seen)),
        prior=0.95,
    )


def _same_line(view: View, seen: tuple[Symptom, ...]) -> tuple[str, ...]:
    texts = {symptom.text for symptom in seen}
    return tuple(s.id for s in symptoms(view, "SYM-UNDEFINED-SYMBOL") if s.text in texts)


def _wanted_by_symbol(seen: tuple[Symptom, ...]) -> CudaVersion | None:
    major, minor = whole_number(captured(seen, "major")), whole_number(captured(seen, "minor"))
    return None if major is None or minor is None else CudaVersion(major, minor)


def _wanted_by_packages(view: View) -> CudaVersion | None:
    """The CUDA of the cuSPARSE package, as its nvJitLink pin has it: that of torch's own build."""
    return view.torch_cuda.get() if view.version("nvidia-nvjitlink-cu12") else None


def _shadowing(view: View) -> bool:
    return not view.facts.libraries or any(
        _is_foreign(lib) and "nvJitLink" in lib.name for lib in view.facts.libraries
    )


def _is_foreign(library: NativeLibrary) -> bool:
    return library.wins and library.origin in ("LD_LIBRARY_PATH", "ldconfig", "toolkit")


def check_cudnn(view: View) -> Iterable[Finding]:
    """A cuDNN older than the one torch was compiled against stands before torch's own."""
    seen = symptoms(view, "SYM-CUDNN-MISMATCH")
    copy = next(
        (lib for lib in view.facts.libraries if "cudnn" in lib.name.lower() and _is_foreign(lib)), None
    )
    built = _built_cudnn(view)
    if not seen and (copy is None or built is None or not _is_older(copy, built)):
        if copy is None and not view.facts.libraries:
            raise Skip("the shared libraries are not told")
        return
    found = captured(seen, "found") or (copy.version if copy else "") or "an older one"
    against = captured(seen, "built") or str(built or "a newer one")
    where = f" at {copy.path}" if copy else ""
    yield Finding(
        id="CUDNN-OLD-COPY",
        severity=Severity.ERROR,
        summary=f"An older cuDNN ({found}) is loaded in place of the one torch was compiled against "
        f"({against}).",
        cause=f"torch brings its own cuDNN; LD_LIBRARY_PATH (or the system's library cache) puts "
        f"another copy{where} before it.",
        evidence=(
            *torch_build(view),
            *((Evidence(copy.name, copy.path, copy.origin),) if copy else ()),
            *quoted(seen),
        ),
        remedies=(
            Remedy(
                "Take that directory off LD_LIBRARY_PATH; torch then finds its own.",
                ("unset LD_LIBRARY_PATH",),
            ),
            Remedy("Install a cuDNN at least as new as torch's in its place."),
        ),
        sources=("https://github.com/facebookresearch/audiocraft/issues/186",),
        explains=explained(seen),
        prior=0.95,
    )


def _built_cudnn(view: View) -> Version | None:
    version = view.version("torch")
    release = (
        view.matrix.generated("torch").get("releases", {}).get(str(version.public) if version else "", {})
    )
    return parse_version(release.get("cudnn") or "")


def _is_older(library: NativeLibrary, built: Version) -> bool:
    version = parse_version(library.version or "")
    return version is not None and version.major == built.major and version.release[:2] < built.release[:2]


RULES = (
    Rule(
        "CUDA-PACKAGES-MIXED", "CUDA's libraries are installed for one CUDA major", check_mixed_cuda_packages
    ),
    Rule("NVJITLINK-OLD", "nvJitLink is as new as cuSPARSE", check_nvjitlink),
    Rule("CUDNN-OLD-COPY", "torch loads its own cuDNN", check_cudnn),
)
