"""bitsandbytes' CUDA libraries: does the installed release carry one for torch's CUDA?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from packaging.version import Version

from envdoctor.commands import commands, install_commands, pip_install
from envdoctor.facts import CudaVersion, Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.conditions import judge
from envdoctor.rules.ranges import range_satisfies
from envdoctor.rules.view import View, quoted
from envdoctor.values import dataclass

SOURCE = "https://github.com/bitsandbytes-foundation/bitsandbytes/blob/main/.github/scripts/build-cuda.sh"
_SYMPTOMS = ("SYM-BNB-BINARY", "SYM-BNB-SETUP", "SYM-BNB-NO-GPU")
OLDEST = 11
"""The major of the oldest CUDA that releases are built for."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The CUDA whose library bitsandbytes looks for, where that was read, and the lines that complain."""

    cuda: CudaVersion
    evidence: Evidence
    seen: tuple[Symptom, ...]


def check_binary(view: View) -> Iterable[Finding]:
    """Find a bitsandbytes without the library that torch's CUDA asks for."""
    seen = tuple(s for s in view.facts.symptoms if s.id in _SYMPTOMS)
    if not seen and not view.installed("bitsandbytes"):
        raise Skip("bitsandbytes is not told to be installed")
    if "BNB_CUDA_VERSION" in view.facts.variables:
        raise Skip("BNB_CUDA_VERSION chooses the library")
    if view.facts.host.os.get() == "windows" and judge(view, "bitsandbytes", "<0.43").holds:
        raise Skip("no bitsandbytes before 0.43 holds a library for Windows")
    wanted = _wanted(view, seen)
    carried = _carried(view)
    if carried is not None and wanted.cuda.tag.removeprefix("cu") in carried:
        if any(s.id == "SYM-BNB-BINARY" for s in seen) and not _binaries_seen(view):
            yield _broken_copy(view, wanted)
        return
    if carried is None and not any(s.id == "SYM-BNB-BINARY" for s in seen):
        return
    having = releases_with(view, wanted.cuda)
    if carried is None and _lies_inside(view, having):
        return
    yield _finding(view, wanted, carried, having)


def _wanted(view: View, seen: Sequence[Symptom]) -> _Wanted:
    for symptom in seen:
        digits = symptom.captured.get("cuda") or symptom.captured.get("named", "")
        if re.fullmatch("[0-9]{2,3}", digits):
            cuda = CudaVersion.parse(f"cu{digits}") if len(digits) == 3 else CudaVersion(int(digits), 0)
            return _Wanted(
                cuda, Evidence("looked for", f"libbitsandbytes_cuda{digits}", symptom.source), tuple(seen)
            )
    fact = view.torch_cuda
    cuda = fact.require()
    return _Wanted(cuda, Evidence("torch's CUDA", str(cuda), getattr(fact, "source", "torch")), tuple(seen))


def _carried(view: View) -> frozenset[str] | None:
    """The CUDA versions (`128`) whose libraries are installed: from its files, else from its release."""
    observed = view.facts.environment.builds.get("bitsandbytes", {}).get("binaries")
    if isinstance(observed, (list, tuple)):
        return frozenset(m[1] for name in observed if (m := re.search(r"cuda(\d{2,3})", str(name))))
    version = view.version("bitsandbytes")
    release = _releases(view).get(version.public) if version else None
    return frozenset(_of_platform(view, release)) if isinstance(release, dict) else None


def _binaries_seen(view: View) -> bool:
    return "binaries" in view.facts.environment.builds.get("bitsandbytes", {})


def _broken_copy(view: View, wanted: _Wanted) -> Finding:
    """The release's wheel carries the library that this copy could not find."""
    installed = view.version_text("bitsandbytes")
    digits = wanted.cuda.tag.removeprefix("cu")
    return Finding(
        id="BNB-BROKEN-COPY",
        severity=Severity.ERROR,
        summary=(
            f"the wheel of bitsandbytes {installed} carries libbitsandbytes_cuda{digits}, which this copy "
            "lacks or cannot load: it was not installed from the wheel"
        ),
        cause=(
            "A source tree, an egg or a conda build holds only what was compiled there; a copy for another "
            f"platform holds none. The index's wheel for Linux x86_64 has the library for CUDA {wanted.cuda}."
        ),
        evidence=(wanted.evidence, *quoted(wanted.seen)),
        remedies=(
            Remedy(
                "Reinstall it from the wheel.",
                (
                    "pip uninstall -y bitsandbytes",
                    *pip_install(f"bitsandbytes=={installed}", options="--only-binary :all:"),
                ),
            ),
            Remedy(
                "Raise it; releases from 0.43 on need no libcudart on the path.",
                ("pip install -U bitsandbytes",),
            ),
        ),
        certainty=Certainty.LIKELY,
        sources=(SOURCE,),
        explains=tuple(dict.fromkeys(s.id for s in wanted.seen)),
        prior=0.85,
    )


def _releases(view: View) -> dict[str, Any]:
    found: dict[str, Any] = view.matrix.generated("bitsandbytes").get("releases", {})
    return found


def _of_platform(view: View, release: dict[str, Any]) -> list[str]:
    platform = release.get("platforms", {}).get(view.facts.host.arch.get() or "x86_64")
    return list((platform or release).get("cuda", ()))


def releases_with(view: View, cuda: CudaVersion) -> str | None:
    """Return the specifier of the releases that carry a library for `cuda`; None when none does."""
    digits = cuda.tag.removeprefix("cu")
    releases = sorted(_releases(view), key=Version)
    having = [v for v in releases if digits in _of_platform(view, _releases(view)[v])]
    if not having:
        return None
    newest = releases.index(having[-1])
    first = next(v for v in having if all(r in having for r in releases[releases.index(v) : newest + 1]))
    after = f",<{releases[newest + 1]}" if newest + 1 < len(releases) else ""
    return f">={first}{after}"


def _lies_inside(view: View, having: str | None) -> bool:
    distribution = view.facts.distribution("bitsandbytes")
    if having is None or distribution is None or not distribution.specifier:
        return False
    return range_satisfies(distribution.specifier, having) is True


def _finding(view: View, wanted: _Wanted, carried: frozenset[str] | None, having: str | None) -> Finding:
    installed = view.version_text("bitsandbytes")
    distribution = view.facts.distribution("bitsandbytes")
    shown = [Evidence("bitsandbytes", installed, distribution.source)] if installed and distribution else []
    digits = wanted.cuda.tag.removeprefix("cu")
    held = f" It carries {', '.join(sorted(carried))}." if carried else ""
    return Finding(
        id="BNB-BINARY",
        severity=Severity.ERROR,
        summary=(
            f"bitsandbytes {installed or ''} has no library for CUDA {wanted.cuda} "
            f"(libbitsandbytes_cuda{digits}.so, cuda{digits}), which this torch asks for"
            f"{_too_old(wanted.cuda, carried, having)}"
        ).replace("  ", " "),
        cause=(
            "bitsandbytes loads the library built for exactly torch's CUDA version, and each release carries "
            f"a fixed set of them.{held}"
        ),
        evidence=(*shown, wanted.evidence, *quoted(wanted.seen)),
        remedies=tuple(_remedies(view, wanted.cuda, carried, having)),
        certainty=Certainty.CERTAIN if carried is not None else Certainty.LIKELY,
        sources=(SOURCE,),
        explains=tuple(dict.fromkeys(s.id for s in wanted.seen)),
        prior=0.95,
    )


def _too_old(cuda: CudaVersion, carried: frozenset[str] | None, having: str | None) -> str:
    """Say which of the two is too old for the other; nothing where that is not known."""
    known = [CudaVersion.parse(f"cu{digits}") for digits in carried or () if len(digits) == 3]
    if cuda.major < OLDEST or (known and cuda < min(known)):
        return f": CUDA {cuda} is too old for it, which begins with later ones"
    newer = cuda > max(known) if known else having is not None
    return (
        ": this release of bitsandbytes is too old, or its version is no build for this system"
        if newer
        else ""
    )


def _remedies(
    view: View, cuda: CudaVersion, carried: frozenset[str] | None, having: str | None
) -> Iterable[Remedy]:
    if having is not None:
        pins = {"bitsandbytes": having}
        yield Remedy(f"Use a bitsandbytes with a CUDA {cuda} library.", install_commands(pins), pins)
    elif cuda.major < OLDEST:
        yield Remedy(f"Move to a torch (and a driver) of CUDA {OLDEST} or later.", ("pip install -U torch",))
    near = _nearest(cuda, carried)
    if near is not None:
        yield Remedy(
            f"As a stopgap, load its CUDA {near} library: minor versions of one major get along.",
            commands("export BNB_CUDA_VERSION={}", near.tag.removeprefix("cu")),
        )
        if any(row.variant == near.tag for row in view.matrix.rows(tables.TorchVariantRow)):
            yield Remedy(
                f"Use a torch built for CUDA {near}.",
                commands("pip install torch --index-url https://download.pytorch.org/whl/{}", near.tag),
            )


def _nearest(cuda: CudaVersion, carried: frozenset[str] | None) -> CudaVersion | None:
    known = [CudaVersion.parse(f"cu{digits}") for digits in carried or () if len(digits) == 3]
    return max((c for c in known if c.major == cuda.major and c < cuda), default=None)


RULES = (Rule("BNB-BINARY", "bitsandbytes carries a library for torch's CUDA", check_binary, SOURCE),)
