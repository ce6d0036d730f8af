"""Variables judged against what is there: arch lists, allocator settings, library overrides, import paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.commands import commands
from envdoctor.facts import ComputeCapability, Distribution
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.view import View, explained, quoted, symptoms

ARCH_LIST, BNB = "TORCH_CUDA_ARCH_LIST", "BNB_CUDA_VERSION"
ALLOCATORS = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
ARCH_SOURCE = "https://docs.pytorch.org/docs/stable/cpp_extension.html"
ALLOCATOR_SOURCE = "https://docs.pytorch.org/docs/stable/notes/cuda.html"
BNB_SOURCE = "https://huggingface.co/docs/bitsandbytes/main/en/installation"
PATH_SOURCE = "https://docs.python.org/3/using/cmdline.html"
_ARCH = re.compile(r"([0-9]{1,2})\.([0-9])([a-z]?)(\+ptx)?", re.IGNORECASE)
_NAMED = re.compile(
    r"(kepler|maxwell|pascal|volta|turing|ampere|ada|hopper|blackwell)(\+\w+)?(\+ptx)?", re.IGNORECASE
)
_OPTION = re.compile(r"([a-z_0-9]{1,60}):(\[[^\]]{0,300}\]|[^,\[\]]{1,300})(?:,|$)")
_STACK = (
    "torch",
    "torchvision",
    "numpy",
    "transformers",
    "triton",
    "accelerate",
    "peft",
    "deepspeed",
    "vllm",
)


def check_arch_list(view: View) -> Iterable[Finding]:
    """An arch list that no builder can read, or that leaves out the cards that are here."""
    value = view.facts.variables.get(ARCH_LIST, "").strip()
    if not value:
        raise Skip(f"{ARCH_LIST} is not set")
    entries = [entry for entry in re.split(r"[;\s]+", value) if entry]
    wrong = [entry for entry in entries if not (_ARCH.fullmatch(entry) or _NAMED.fullmatch(entry))]
    if wrong:
        yield _arch_finding(
            "ARCH-LIST-WRONG",
            value,
            f"holds what is no architecture: {', '.join(wrong[:4])[:80]}",
            "Builds of extensions stop at it; architectures are written 9.0, 9.0a or 9.0+PTX, parted by ;.",
            view,
        )
        return
    if any(_NAMED.fullmatch(entry) for entry in entries):
        return
    archs = [_ARCH.fullmatch(entry) for entry in entries]
    lacking = [c for c in _capabilities(view) if not any(arch and _runs_on(arch, c) for arch in archs)]
    if lacking:
        yield _arch_finding(
            "ARCH-LIST-LACKS-CARD",
            value,
            f"leaves out the card that is here ({', '.join(map(str, lacking))})",
            "What is built with this list holds no kernel for the card: 'no kernel image is available'.",
            view,
        )


def _capabilities(view: View) -> list[ComputeCapability]:
    found = {gpu.compute_capability for gpu in view.gpus.get() or () if gpu.compute_capability}
    return sorted(found)


def _runs_on(arch: re.Match[str], card: ComputeCapability) -> bool:
    """Binaries run on cards of their major and no smaller minor, `a` on one card alone, PTX on later ones."""
    built = ComputeCapability(int(arch[1]), int(arch[2]))
    if arch[3].lower() == "a":
        return built == card
    return built <= card and (built.major == card.major or bool(arch[4]))


def _arch_finding(id_: str, value: str, what: str, cause: str, view: View) -> Finding:
    cards = ";".join(str(one) for one in _capabilities(view)) or "9.0"
    return Finding(
        id=id_,
        severity=Severity.WARNING,
        summary=f"{ARCH_LIST}={value[:80]} {what}.",
        cause=cause,
        evidence=(Evidence(ARCH_LIST, value[:200], "environment"),),
        remedies=(
            Remedy("Build for the cards that are here.", commands("export TORCH_CUDA_ARCH_LIST={}", cards)),
            Remedy("Or let the builder ask the cards.", ("unset TORCH_CUDA_ARCH_LIST",)),
        ),
        sources=(ARCH_SOURCE,),
    )


def check_allocator(view: View) -> Iterable[Finding]:
    """Settings of torch's allocator that it refuses with an error at the first use of CUDA."""
    told = {name: view.facts.variables[name] for name in ALLOCATORS if view.facts.variables.get(name)}
    if not told:
        raise Skip("the allocator is not set by variables")
    for name, value in told.items():
        if fault := allocator_fault(value):
            yield Finding(
                id="ALLOC-CONF-WRONG",
                severity=Severity.ERROR,
                summary=f"{name}={value[:80]} is refused by torch: {fault}.",
                cause="torch reads it when CUDA starts, and raises.",
                evidence=(Evidence(name, value[:200], "environment"),),
                remedies=(
                    Remedy(
                        "Write it as torch reads it.", commands("export {}=expandable_segments:True", name)
                    ),
                    Remedy("Or do without.", commands("unset {}", name)),
                ),
                certainty=Certainty.LIKELY,
                sources=(ALLOCATOR_SOURCE,),
            )


def allocator_fault(value: str) -> str | None:
    """Return what torch refuses in an allocator's settings, None when nothing is known to be refused."""
    text = value.replace(" ", "")
    options = _OPTION.findall(text)
    if sum(len(name) + len(told) + 2 for name, told in options) != len(text.rstrip(",")) + 1:
        return "it is no list of name:value"
    for name, told in options:
        if name == "expandable_segments" and told not in ("True", "False"):
            return f"expandable_segments is True or False, not {told[:20]}"
        if name == "max_split_size_mb" and not (told.isascii() and told.isdigit() and int(told[:9]) > 20):
            return f"max_split_size_mb is a number above 20, not {told[:20]}"
        if name == "garbage_collection_threshold" and not re.fullmatch(
            r"0?\.[0-9]{0,8}[1-9][0-9]{0,8}", told
        ):
            return f"garbage_collection_threshold lies between 0 and 1, not at {told[:20]}"
        if name == "backend" and told not in ("native", "cudaMallocAsync"):
            return f"there is no backend {told[:20]}"
    return None


def check_bitsandbytes_override(view: View) -> Iterable[Finding]:
    """BNB_CUDA_VERSION that names a library which this bitsandbytes does not carry."""
    value = view.facts.variables.get(BNB, "")
    missed = tuple(s for s in symptoms(view, "SYM-BNB-BINARY") if value in s.captured.values())
    binaries = view.facts.environment.builds.get("bitsandbytes", {}).get("binaries")
    held = isinstance(binaries, (list, tuple))
    if not value or not (held or missed):
        raise Skip(f"{BNB} is not set, or the libraries of bitsandbytes are not told")
    there = [str(name)[len("cuda") :] for name in binaries or () if str(name).startswith("cuda")]
    if value not in there:
        yield Finding(
            id="BNB-OVERRIDE",
            severity=Severity.ERROR,
            summary=f"{BNB}={value[:20]} names a library that this bitsandbytes does not carry.",
            cause="It overrides the choice by torch's CUDA; without the library there is no 4 or 8 bit.",
            evidence=(
                Evidence(BNB, value[:60], "environment"),
                *(
                    Evidence("bitsandbytes' libraries", ", ".join(map(str, binaries or ())), "its folder")
                    for _ in "1"
                    if held
                ),
                *quoted(missed),
            ),
            remedies=(
                Remedy("Let bitsandbytes choose the library of torch's CUDA.", ("unset BNB_CUDA_VERSION",)),
                Remedy(
                    "A source tree holds only what was compiled in it: install the wheel, or compile its CUDA"
                    " library for this toolkit.",
                    ("pip install -U --only-binary :all: bitsandbytes",),
                ),
            ),
            sources=(BNB_SOURCE,),
            explains=(*explained(missed), *_of_its_library(view)),
            prior=0.95,
        )


def _of_its_library(view: View) -> tuple[str, ...]:
    """The signatures of lines that tell the same of another of its libraries."""
    lines = symptoms(view, "SYM-SHARED-OBJECT", "SYM-BNB-SETUP")
    return explained(tuple(line for line in lines if "bitsandbytes" in line.text))


def check_import_path(view: View) -> Iterable[Finding]:
    """Packages of the stack that come from PYTHONPATH or the user's folder before the environment's own."""
    kind, prefix = view.facts.environment.kind.get(), view.facts.environment.prefix.get()
    if kind not in ("venv", "conda") or not prefix:
        raise Skip("no virtual or conda environment was looked at")
    value = view.facts.variables.get("PYTHONPATH", "")
    folders = [path.rstrip("/") for path in value.split(":") if path.startswith("/")]
    yield from _other_python(view, folders)
    outside = [d for d in _stack(view) if d.location and not f"{d.location}/".startswith(f"{prefix}/")]
    by_path = [d for d in outside if any(f"{d.location}/".startswith(f"{folder}/") for folder in folders)]
    by_user = [d for d in outside if d not in by_path and "/.local/lib/python" in (d.location or "")]
    if by_path:
        yield _outside("PYTHONPATH-SHADOWS", "PYTHONPATH", by_path, "unset PYTHONPATH", value)
    if by_user and kind == "conda":
        yield _outside("USER-SITE-SHADOWS", "the user's own folder", by_user, "export PYTHONNOUSERSITE=1", "")


def _stack(view: View) -> Iterator[Distribution]:
    for name in _STACK:
        if (found := view.facts.distribution(name)) is not None:
            yield found


def _outside(id_: str, where: str, found: Sequence[Distribution], command: str, value: str) -> Finding:
    shown = ", ".join(f"{one.name} {one.version or ''}".strip() for one in found)
    told = (Evidence("PYTHONPATH", value[:200], "environment"),) if value else ()
    return Finding(
        id=id_,
        severity=Severity.WARNING,
        summary=f"{shown} come from {where}, before the environment's own.",
        cause="What the import path names first is imported, whatever is installed in the environment.",
        evidence=(
            *told,
            *(Evidence(one.name, f"{one.version} in {one.location}", one.source) for one in found),
        ),
        remedies=(Remedy("Leave it out for this environment.", (command,)),),
        sources=(PATH_SOURCE,),
    )


def _other_python(view: View, folders: Sequence[str]) -> Iterator[Finding]:
    python = ".".join((view.python.get() or "").split(".")[:2])
    found = [(folder, re.search(r"/python([0-9]\.[0-9]{1,2})(?:/|$)", folder)) for folder in folders]
    other = [(folder, match[1]) for folder, match in found if match and python and match[1] != python]
    if other:
        folder, version = other[0]
        yield Finding(
            id="PYTHONPATH-OTHER-PYTHON",
            severity=Severity.WARNING,
            summary=f"PYTHONPATH leads Python {python} to the packages of Python {version}.",
            cause="Compiled modules of one Python do not load in another, and they are found first.",
            evidence=(
                Evidence("PYTHONPATH", folder, "environment"),
                Evidence("Python", python, "environment"),
            ),
            remedies=(Remedy("Leave it out for this environment.", ("unset PYTHONPATH",)),),
            sources=(PATH_SOURCE,),
        )


RULES = (
    Rule("ARCH-LIST", "Extensions are built for the cards that are here", check_arch_list, ARCH_SOURCE),
    Rule("ALLOC-CONF", "torch's allocator can read its settings", check_allocator, ALLOCATOR_SOURCE),
    Rule(
        "BNB-OVERRIDE",
        "BNB_CUDA_VERSION names a library that is there",
        check_bitsandbytes_override,
        BNB_SOURCE,
    ),
    Rule("IMPORT-PATH", "The environment's own packages are imported", check_import_path, PATH_SOURCE),
)
