"""Whether the machine could be read at all: a part that could not leaves no diagnosis whole."""

from __future__ import annotations

from collections.abc import Iterable

from envdoctor.facts import NOTHING_READ
from envdoctor.findings import Finding
from envdoctor.rules.base import NotWhole, Rule, Skip
from envdoctor.rules.view import View


def check_unread(view: View) -> Iterable[Finding]:
    """Raise NotWhole for parts that a probe could not read; what they would have told is unknown."""
    unread = dict(view.facts.unread)
    if NOTHING_READ in unread.values() and _tells_warnings(view):
        unread = {part: why for part, why in unread.items() if why != NOTHING_READ}
    if unread:
        raise NotWhole("; ".join(f"{part} not known: {why}" for part, why in unread.items()))
    if view.facts.origin != "probe":
        raise Skip("no machine was probed")
    return ()


def _tells_warnings(view: View) -> bool:
    from envdoctor.rules.warned import known_warnings

    return any(known_warnings(view))


RULES = (Rule("UNREAD", "Every part of the machine could be read", check_unread),)
