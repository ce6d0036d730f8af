"""Builds that failed of packages whose tables tell for which torch their ready wheels are."""

from __future__ import annotations

from collections.abc import Iterable

from envdoctor.facts import Symptom
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.matrix.flash_wheels import newest_row, torch_range
from envdoctor.rules.abi import flash_attn_remedies, torch_of_wheels
from envdoctor.rules.base import NO_LINE, Rule, Skip
from envdoctor.rules.conditions import judge
from envdoctor.rules.pairs import pair_remedies, pairs_of
from envdoctor.rules.view import View, explained, installed, quoted, symptoms, torch_build

_FAILED = ("SYM-BUILD-WHEEL-FAILED", "SYM-PIP-WHEELS-NOT-BUILT")
_WITH_IT = ("SYM-BUILD-EXTENSION-OBJECTS",)


def check_builds(view: View) -> Iterable[Finding]:
    """Each package that was compiled since its ready wheels are for another torch than is told."""
    failed = symptoms(view, *_FAILED)
    if not failed:
        raise Skip(NO_LINE)
    if view.torch_minor is None:
        raise Skip("the version of torch is not told")
    for package in sorted({name for symptom in failed for name in _named(symptom)}):
        wheels = torch_of_wheels(view, package) if view.version(package) else _newest_wheels(view, package)
        if wheels and not judge(view, "torch", wheels).holds:
            yield _finding(view, package, wheels, (*failed, *symptoms(view, *_WITH_IT)))


def _newest_wheels(view: View, package: str) -> str:
    """Return the releases of torch that the newest release, which an installer takes, has wheels for."""
    if package == "flash-attn":
        row = newest_row(view.matrix)
        return torch_range(row) if row else ""
    pairs = pairs_of(view.matrix, package)
    return pairs[-1].torch if pairs and pairs[-1].soft else ""


def _named(symptom: Symptom) -> list[str]:
    told = symptom.captured.get("package") or symptom.captured.get("packages") or ""
    return [normalise(name.strip()) for name in told.split(",") if name.strip()]


def _finding(view: View, package: str, wheels: str, seen: tuple[Symptom, ...]) -> Finding:
    version, torch = view.version_text(package) or "(the newest release)", view.version_text("torch")
    remedies = flash_attn_remedies(view) if package == "flash-attn" else pair_remedies(view, package)
    return Finding(
        id="BUILD-OTHER-TORCH",
        severity=Severity.ERROR,
        summary=f"{package} {version} has no ready wheel for torch {torch} (its wheels are for torch"
        f" {wheels}), so that it was compiled from source, and that failed",
        cause="What is compiled against torch is published for releases of torch that were out by then; for"
        " another, sources of that age need not compile. The compiler's own error, further up, tells more.",
        evidence=(*installed(view, package), *torch_build(view), *quoted(seen)),
        remedies=tuple(remedies),
        certainty=Certainty.LIKELY,
        explains=explained(seen),
        prior=0.7,
        follows=(f"{package.upper()}-TORCH",),
    )


RULES = (Rule("BUILD-OTHER-TORCH", "what was built has a wheel for the installed torch", check_builds),)
