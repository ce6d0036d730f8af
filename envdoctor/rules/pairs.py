"""Packages that fit one torch: the installed pair against the pair their wheels were built as."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial

from packaging.version import Version

from envdoctor.commands import commands, pip_install
from envdoctor.facts import Symptom
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.matrix.load import Matrix
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.conditions import judge
from envdoctor.rules.ranges import parse_version, version_satisfies
from envdoctor.rules.view import View, captured, explained, installed, quoted, symptoms, torch_build
from envdoctor.values import dataclass

_ANOTHER = "another torch"
_XFORMERS_REMEDIES = (
    Remedy(
        "Reinstall the xformers that matches this torch, its CUDA and this Python, from the same index; where"
        " none is published, build it from source against the torch that is there.",
        (
            "uv pip install --reinstall xformers --torch-backend=auto",
            "pip install --no-build-isolation --no-deps git+https://github.com/facebookresearch/xformers.git",
        ),
    ),
    Remedy(
        "Or uninstall it: torch's own scaled_dot_product_attention takes its place.",
        ("pip uninstall -y xformers",),
    ),
)
PAIRED = ("vllm", "xformers", "torchvision", "torchaudio", "torchao", "torchtext", "torchcodec")


def check_pair(package: str, view: View) -> Iterable[Finding]:
    """A package installed beside another torch than the one its wheel was built for."""
    row = view.companions.get(package)
    seen = symptoms(view, *row.signatures) if row else ()
    if view.facts.distribution(package) is None and not seen:
        raise Skip(f"{package} is not told of")
    torch = view.version("torch")
    if torch is not None and torch.is_prerelease and not seen:
        raise Skip("torch is a pre-release, which no pair is recorded for")
    if not seen and _is_wish(view, package) and not _is_wish(view, "torch"):
        raise Skip(f"{package} is only asked for, and the torch told is not what was asked for with it")
    if not seen and not _is_release(view, package):
        raise Skip(f"this {package} is no release that a pair is recorded for")
    if not seen and view.installed("torch") is False:
        raise Skip("torch is not installed")
    if not seen and view.own_torch(package):
        raise Skip("torch is a vendor's or its owner's build, which no pair is recorded for")
    if captured(seen, "have") and "+cpu" in (captured(seen, "have") or ""):
        return  # a CPU build of torch is the cause, and has its own check
    pair = installed_pair(view, package)
    fits = judge(view, "torch", pair.torch).holds if pair else None
    if fits is True and not captured(seen, "have"):
        return  # what is listed fits, and no message tells of another pair
    if fits is None and not seen:
        raise Skip(f"the torch that this {package} was built for, or the installed one, is not told")
    may_say = row.may_say if row and fits is False else ()
    yield _finding(view, package, pair, seen or symptoms(view, *may_say))


def _is_wish(view: View, name: str) -> bool:
    """True for what an installer was asked for, which nothing shows to be there."""
    distribution = view.facts.distribution(name)
    return distribution is not None and not distribution.version and distribution.specifier.startswith("==")


def _is_release(view: View, package: str) -> bool:
    """False for a nightly, and for a number between releases that none has: somebody's own build."""
    from envdoctor.rules.calendar import package_facts  # dear to load

    version, facts = view.version(package), package_facts(view, package)
    if version is None or facts is None:
        return True
    newest = parse_version(facts.versions[-1])
    own = version.public not in facts.position and newest is not None and version < newest
    return not (version.is_devrelease or own)


def installed_pair(view: View, package: str) -> TorchPair | None:
    """Return the recorded pair of the installed version of a package."""
    pairs = pairs_of(view.matrix, package)
    return next((pair for pair in pairs if judge(view, package, pair.versions).holds), None)


def _finding(view: View, package: str, pair: TorchPair | None, seen: tuple[Symptom, ...]) -> Finding:
    told = captured(seen, "built")
    built = told or (pair.torch if pair else _ANOTHER)
    unlike = _unlike(view, built, seen)
    row = view.companions.get(package)
    ends_in = row.ends_in if row and seen else ()
    apart = pair is not None and judge(view, "torch", pair.torch).holds is False
    return Finding(
        id=f"{package.upper()}-TORCH",
        severity=_severity(view, pair, seen),
        summary=f"{package if told else _named(view, package)} is built for"
        f" {_apart(view, built, seen, unlike)}: the two do not match.",
        cause=f"{package}'s compiled operators are linked against one torch; beside another one "
        f"they do not load "
        "(undefined symbols, missing operators, or features switched off).",
        evidence=(*installed(view, package), *torch_build(view), *quoted(seen)),
        remedies=(
            *pair_remedies(view, package, _bare(told or "")),
            *(_XFORMERS_REMEDIES if package == "xformers" and seen else ()),
        ),
        certainty=Certainty.CERTAIN if (told and unlike) or apart else Certainty.LIKELY,
        rows=(pair.id,) if pair else (),
        sources=(pair.source,) if pair else (),
        explains=explained((*seen, *symptoms(view, *ends_in))),
        prior=0.9,
    )


def _unlike(view: View, built: str, seen: tuple[Symptom, ...]) -> list[str]:
    """Say in what releases the two differ: a torch, or a Python; nothing where their builds alone may."""
    have, pythons = _have(view, seen), (captured(seen, "python_built"), captured(seen, "python"))
    parts = [] if _bare(built) == have else [f"{_torch(built)}, not {have}"]
    if pythons[0] and pythons[1] and _minor(pythons[0]) != _minor(pythons[1]):
        parts.append(f"Python {pythons[0]}, not {pythons[1]}")
    return parts


def _apart(view: View, built: str, seen: tuple[Symptom, ...], unlike: Sequence[str]) -> str:
    """Say what a package is built for and what stands there in its place."""
    cuda = captured(seen, "cuda") or "another build"
    other = f"{_torch(built)} with CUDA {cuda}, and this torch {_have(view, seen)} is another build"
    return " and for ".join(unlike) or other


def _have(view: View, seen: tuple[Symptom, ...]) -> str:
    return captured(seen, "have") or view.version_text("torch") or "the installed one"


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]


def _named(view: View, package: str) -> str:
    return f"{package} {view.version_text(package) or ''}".strip()


def _torch(built: str) -> str:
    return built if built == _ANOTHER else f"torch {_bare(built)}"


def _bare(text: str) -> str:
    return text.removeprefix("==")


def _severity(view: View, pair: TorchPair | None, seen: tuple[Symptom, ...]) -> Severity:
    """An error where minor versions differ; a warning where only the patch does, or features are lost."""
    if seen or (pair and pip_refuses(view, pair.package, "torch")):
        return Severity.ERROR
    if pair is None or pair.soft or judge(view, "torch", _same_minor(pair.torch)).holds:
        return Severity.WARNING
    return Severity.ERROR


def pip_refuses(view: View, name: str, other: str) -> bool:
    """True where an installer's own line calls two packages incompatible: its error, whatever still runs."""
    told = (one.captured for one in symptoms(view, "SYM-PIP-INCOMPATIBLE"))
    return any(
        (normalise(one.get("name", "")), normalise(one.get("other", ""))) == (name, other) for one in told
    )


def _same_minor(spec: str) -> str:
    if not spec.startswith("=="):
        return spec
    version = Version(spec.removeprefix("==").removesuffix(".*"))
    return f"=={version.major}.{version.minor}.*"


def pair_remedies(view: View, package: str, told: str = "") -> Iterator[Remedy]:
    """Yield both ways to a fitting pair: another version of the package, or the torch it was built for.

    `told` is that torch as a message names it, where the release of the package is not known.
    """
    fitting = [p for p in pairs_of(view.matrix, package) if judge(view, "torch", p.torch).holds]
    if fitting and judge(view, package, fitting[-1].versions).holds is not True:
        pair = fitting[-1]
        yield Remedy(
            f"Install the {package} that was built for this torch: {_bare(pair.versions)}.",
            _install(view, f"{package}{pair.versions}"),
            {package: pair.versions},
        )
    pair_now = installed_pair(view, package)
    built = parse_version(told) if pair_now is None else None
    named = f"=={built.public}" if built and not built.is_prerelease else ""
    spec = pair_now.torch if pair_now else named
    if spec and judge(view, "torch", spec).holds is not True:
        yield Remedy(
            f"Install the torch that this {package} was built for: {_bare(spec)}.",
            pip_install(f"torch{spec}"),
            {"torch": spec},
        )
    row = view.companions.get(package)
    if not fitting and pair_now is None and row and row.of_torch:
        yield from _as_required(view, package)
        yield Remedy(
            f"Install torch and {package} together, as a pair.",
            pip_install("torch", package, options="--force-reinstall"),
        )


def _as_required(view: View, package: str) -> Iterator[Remedy]:
    """Yield the pair for the one torch that something listed was built for, where none is told."""
    listed = view.facts.environment.distributions.values() if view.version("torch") is None else ()
    for one in listed:
        demands = view.recorded.demands(one) if view.recorded else ()
        asked = next((d.specifier for d in demands if d.name == "torch" and d.specifier[:2] == "=="), "")
        exact = parse_version(_bare(asked))
        pairs = pairs_of(view.matrix, package) if exact else ()
        pair = next((pair for pair in pairs if exact and version_satisfies(exact, pair.torch)), None)
        if exact and pair:
            yield Remedy(
                f"Install the torch that {one.name} {one.version} requires, and its {package}.",
                commands(
                    "uv pip install {} {} --torch-backend=auto", f"torch{asked}", f"{package}{pair.versions}"
                ),
                {"torch": asked, package: pair.versions},
            )
            return


def _install(view: View, request: str) -> tuple[str, ...]:
    """The command for a compiled companion of torch; a variant of torch has them on PyTorch's index."""
    version = view.version("torch")
    variant = version.local if version else None
    if variant and variant.startswith("cu") and variant[2:].isdigit():
        return commands("uv pip install --reinstall {} --torch-backend={}", request, variant)
    return pip_install(request)


RULES = tuple(
    Rule(f"{package.upper()}-TORCH", f"{package} fits the installed torch", partial(check_pair, package))
    for package in PAIRED
)


FLOOR_FROM = Version("0.0.35")
"""From this xformers on its wheels use torch's stable ABI, so that its torch is a floor."""


@dataclass(frozen=True, slots=True)
class TorchPair:
    """`versions` of a package fit `torch`; `soft` pairs lose features where others fail."""

    id: str
    package: str
    versions: str
    torch: str
    source: str
    cuda: str | None = None
    soft: bool = False


@lru_cache(maxsize=256)
def pairs_of(matrix: Matrix, package: str) -> tuple[TorchPair, ...]:
    """Return the pairs of a package, oldest first; empty when none is recorded."""
    if package == "xformers":
        return _xformers_pairs(matrix)
    return tuple(
        TorchPair(row.id, package, row.versions, row.torch, row.source, soft=row.soft)
        for row in matrix.rows(tables.TorchPairRow)
        if row.package == package
    )


def _xformers_pairs(matrix: Matrix) -> tuple[TorchPair, ...]:
    releases = matrix.generated("xformers").get("releases", {})
    pairs = []
    for version in sorted(releases, key=Version):
        built = releases[version]
        torch = Version(built["torch"])
        spec = f">={torch.major}.{torch.minor}" if Version(version) >= FLOOR_FROM else f"=={torch.public}"
        identity = f"PAIR-XFORMERS-{version.upper()}"
        pairs.append(
            TorchPair(identity, "xformers", f"=={version}", spec, built["source"], cuda=built.get("cuda"))
        )
    return tuple(pairs)
