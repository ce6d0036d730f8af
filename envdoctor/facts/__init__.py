"""The vocabulary: what can be known of a machine, and the one JSON format of it.

The model of a whole machine is read when something in it is first named: a declared card needs none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envdoctor.facts.observed import (
    NOT_TOLD,
    ComputeCapability,
    CudaVersion,
    DriverVersion,
    Fact,
    FactUnavailable,
    Observed,
    Unknown,
)

if TYPE_CHECKING:
    from envdoctor.facts.codec import FactsFormatError, from_json, to_json
    from envdoctor.facts.model import (
        APART,
        ASKED,
        CONTRADICTED,
        IN_WORDS,
        INSTALLING,
        MENDED,
        MOOD,
        NOT_JUDGED,
        NOTHING_READ,
        REPORTED,
        STOPPED,
        TOLD_CAUSE,
        TOLD_WAY,
        WISH,
        Distribution,
        Driver,
        Environment,
        ErrorSeen,
        Facts,
        Frame,
        Gpu,
        Host,
        NativeLibrary,
        Setting,
        Speed,
        Symptom,
        Toolkit,
        Verdict,
        WarningSeen,
        Xid,
    )

__all__ = [
    "APART",
    "ASKED",
    "CONTRADICTED",
    "INSTALLING",
    "IN_WORDS",
    "MENDED",
    "MOOD",
    "NOTHING_READ",
    "NOT_JUDGED",
    "NOT_TOLD",
    "REPORTED",
    "STOPPED",
    "TOLD_CAUSE",
    "TOLD_WAY",
    "WISH",
    "ComputeCapability",
    "CudaVersion",
    "Distribution",
    "Driver",
    "DriverVersion",
    "Environment",
    "ErrorSeen",
    "Fact",
    "FactUnavailable",
    "Facts",
    "FactsFormatError",
    "Frame",
    "Gpu",
    "Host",
    "NativeLibrary",
    "Observed",
    "Setting",
    "Speed",
    "Symptom",
    "Toolkit",
    "Unknown",
    "Verdict",
    "WarningSeen",
    "Xid",
    "from_json",
    "to_json",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"the vocabulary has no {name}")
    from envdoctor.facts import codec, model

    found = globals()[name] = getattr(codec if hasattr(codec, name) else model, name)
    return found
