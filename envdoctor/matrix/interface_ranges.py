"""Ranges of releases, as the interface records keep them, in PEP 440's words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from packaging.version import Version


def places_of(spans: Iterable[Sequence[int]]) -> list[int]:
    """Return the places of the releases that lie in spans, once each and in order."""
    return sorted({place for first, last in spans for place in range(first, last + 1)})


def spans_of(places: Iterable[int]) -> list[list[int]]:
    """Return ascending places as spans `[first, last]`."""
    spans: list[list[int]] = []
    for place in places:
        if spans and spans[-1][1] == place - 1:
            spans[-1][1] = place
        else:
            spans.append([place, place])
    return spans


def joined(all_spans: Iterable[Iterable[Sequence[int]]]) -> list[list[int]]:
    """Return the places that lie in any of several lists of spans, as spans."""
    return spans_of(places_of(span for spans in all_spans for span in spans))


def specifier_of(versions: list[str], spans: list[list[int]], near: str | None = None) -> str:
    """Return the PEP 440 specifier of the span nearest to the version `near` (else of the longest).

    `>=a,<b`, with open ends where the record has none.
    """
    first, last = _nearest(versions, spans, near)
    parts = []
    if first > 0:
        parts.append(f">={versions[first]}")
    if last < len(versions) - 1:
        parts.append(f"<{versions[last + 1]}")
    return ",".join(parts)


def _nearest(versions: list[str], spans: list[list[int]], near: str | None) -> list[int]:
    version = Version(near) if near else None
    if version is None or len(spans) == 1:
        return max(spans, key=lambda span: span[1] - span[0])
    place = sum(1 for known in versions if Version(known) <= version)
    return min(spans, key=lambda span: max(span[0] - place, place - span[1], 0))
