"""A fact is observed, with where it was read, or unknown, with why."""

from __future__ import annotations

from typing import Generic, NoReturn, TypeAlias, TypeVar

from envdoctor.values import dataclass

T = TypeVar("T")


class FactUnavailable(Exception):
    """A judgement asked for a fact that nobody knows; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Observed(Generic[T]):
    """A value and where it was read (`NVML`, `pip list, line 12`)."""

    value: T
    source: str

    def require(self) -> T:
        """Return the value."""
        return self.value

    def get(self) -> T | None:
        """Return the value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Unknown:
    """No value, and the reason why."""

    reason: str

    def require(self) -> NoReturn:
        """Raise FactUnavailable with the reason."""
        raise FactUnavailable(self.reason)

    def get(self) -> None:
        """Return None."""
        return None


Fact: TypeAlias = Observed[T] | Unknown

NOT_TOLD = Unknown("not told")
