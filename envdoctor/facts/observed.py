"""A fact is observed, with where it was read, or unknown, with why; versions that cannot be confused."""

from __future__ import annotations

import re
from functools import total_ordering
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


@total_ordering
@dataclass(frozen=True, slots=True)
class ComputeCapability:
    """What a GPU's hardware can do, as NVML and CUDA name it: 8.9 for Ada. Ordered; not a CUDA version."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    def __lt__(self, other: ComputeCapability) -> bool:
        return (self.major, self.minor) < (other.major, other.minor)

    @property
    def sm(self) -> str:
        """The name compilers use: `sm_89`."""
        return f"sm_{self.major}{self.minor}"

    @classmethod
    def parse(cls, text: str) -> ComputeCapability:
        """Read `8.9`, `sm_89`, `compute_89` or `89`; raises ValueError."""
        match = re.fullmatch(r"(?:sm_|compute_)?(\d{1,2})\.?(\d)[af]?", text.strip())
        if not match:
            raise ValueError(f"not a compute capability: {text[:40]!r}")
        return cls(int(match[1]), int(match[2]))


@total_ordering
@dataclass(frozen=True, slots=True)
class CudaVersion:
    """A CUDA version, 12.8: of the driver's ceiling, a toolkit, a runtime or a build (four facts)."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    def __lt__(self, other: CudaVersion) -> bool:
        return (self.major, self.minor) < (other.major, other.minor)

    @property
    def tag(self) -> str:
        """The wheel variants' form: `cu128`."""
        return f"cu{self.major}{self.minor}"

    @classmethod
    def parse(cls, text: str) -> CudaVersion:
        """Read `12.8`, `12.8.93`, `cu128`, `12080` (the runtime API's integer) or `12`; raises ValueError."""
        text = text.strip()
        if match := re.fullmatch(r"cu(\d{2})(\d)", text):
            return cls(int(match[1]), int(match[2]))
        if re.fullmatch(r"\d{4,5}", text):
            return cls(int(text) // 1000, int(text) % 1000 // 10)
        if match := re.fullmatch(r"v?(\d{1,2})(?:\.(\d{1,2}))?(?:\.\d+)*", text):
            return cls(int(match[1]), int(match[2] or 0))
        raise ValueError(f"not a CUDA version: {text[:40]!r}")


@total_ordering
@dataclass(frozen=True, slots=True)
class DriverVersion:
    """The version of NVIDIA's driver, 580.95.05. Ordered; not a CUDA version."""

    parts: tuple[int, ...]
    text: str

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DriverVersion) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def __lt__(self, other: DriverVersion) -> bool:
        return self.parts < other.parts

    @property
    def branch(self) -> int:
        """The release branch, 580."""
        return self.parts[0]

    @classmethod
    def parse(cls, text: str) -> DriverVersion:
        """Read `580.95.05`, `535` or `r535`; raises ValueError."""
        match = re.fullmatch(r"[rR]?(\d{2,4}(?:\.\d{1,5}){0,3})", text.strip())
        if not match:
            raise ValueError(f"not a driver version: {text[:40]!r}")
        return cls(tuple(int(part) for part in match[1].split(".")), match[1])
