"""What a rule is: an id, a title and a pure function from the facts and the matrix to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from envdoctor.findings import Finding
from envdoctor.rules.view import View


class NotWhole(Exception):
    """A part of the facts could not be read, so that no answer is whole; the message names it."""


class Skip(Exception):
    """A rule cannot judge; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A check. `check` yields findings, or raises Skip (or FactUnavailable) with the reason."""

    id: str
    title: str
    check: Callable[[View], Iterable[Finding]]
    source: str = ""
