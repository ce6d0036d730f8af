"""The vocabulary: what can be known of a machine, and the one JSON format of it."""

from __future__ import annotations

from envdoctor.facts.codec import FactsFormatError, from_json, to_json
from envdoctor.facts.model import (
    MENDED,
    NOT_JUDGED,
    NOTHING_READ,
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
from envdoctor.facts.observed import NOT_TOLD, Fact, FactUnavailable, Observed, Unknown
from envdoctor.facts.versions import ComputeCapability, CudaVersion, DriverVersion

__all__ = [
    "MENDED",
    "NOTHING_READ",
    "NOT_JUDGED",
    "NOT_TOLD",
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
