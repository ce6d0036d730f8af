"""A release that an installer passes over between older and newer ones: pips that refuse its metadata."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor.commands import commands, pip_install
from envdoctor.facts import Symptom
from envdoctor.findings import Remedy
from envdoctor.rules.ranges import parse_version

PASSED_OVER = (
    ", and older ones: pip passed that one over (pip 24.1 and newer refuse invalid metadata, or it is yanked"
    " or for another Python)"
)
"""What is said of such a release."""


def left_out(asked: str, symptom: Symptom) -> str:
    """Return the exact release that was asked for where it is listed, or lies between those; else empty."""
    exact = parse_version(asked.removeprefix("==")) if asked.startswith("==") else None
    offered = [one for text in _offered(symptom) if (one := parse_version(text)) is not None]
    if exact is None:
        return ""
    between = any(one < exact for one in offered) and any(one > exact for one in offered)
    return str(exact) if exact in offered or between else ""


def of_older_pip(name: str, exact: str, symptom: Symptom) -> Iterator[Remedy]:
    """Offer the pip that still takes invalid metadata, and a release that was mended for the newer."""
    text = (
        "Use a pip before 24.1, which refuses releases whose metadata is invalid (such as `torch (>=1.7.*)`)."
    )
    release = commands("python -m pip install {}", f"{name}=={exact}")
    yield Remedy(text, ("python -m pip install 'pip<24.1'", *release))
    for mended in [one for one in _offered(symptom) if one.startswith(f"{exact}.post")][-1:]:
        yield Remedy(f"Or the mended release {mended}.", pip_install(f"{name}=={mended}"))


def _offered(symptom: Symptom) -> list[str]:
    return [text.strip() for text in symptom.captured.get("offered", "").split(",")]
