"""Versions that people mix up are different types here."""

from __future__ import annotations

import pytest

from envdoctor.facts import ComputeCapability, CudaVersion, DriverVersion


@pytest.mark.parametrize(
    ("text", "capability"),
    [("8.9", (8, 9)), ("sm_89", (8, 9)), ("compute_120", (12, 0)), ("sm_90a", (9, 0)), ("12.1", (12, 1))],
)
def test_compute_capability_reads_every_spelling(text: str, capability: tuple[int, int]) -> None:
    assert ComputeCapability.parse(text) == ComputeCapability(*capability)


def test_compute_capability_orders_as_hardware_does() -> None:
    assert ComputeCapability(8, 9) < ComputeCapability(9, 0) < ComputeCapability(12, 0)
    assert ComputeCapability(12, 0).sm == "sm_120"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("12.8", (12, 8)),
        ("12.8.93", (12, 8)),
        ("cu128", (12, 8)),
        ("12080", (12, 8)),
        ("11000", (11, 0)),
        ("13", (13, 0)),
    ],
)
def test_cuda_version_reads_every_spelling(text: str, version: tuple[int, int]) -> None:
    assert CudaVersion.parse(text) == CudaVersion(*version)


def test_driver_versions_compare_by_number() -> None:
    assert (
        DriverVersion.parse("580.65.06")
        < DriverVersion.parse("580.159.04")
        < DriverVersion.parse("610.43.02")
    )
    assert DriverVersion.parse("r535").branch == 535


@pytest.mark.parametrize("kind", [ComputeCapability, CudaVersion, DriverVersion])
@pytest.mark.parametrize("text", ["", "N/A", "x" * 5000, "1" * 6000, "12.8; rm"])
def test_nonsense_is_refused(kind: type[CudaVersion], text: str) -> None:
    with pytest.raises(ValueError):
        kind.parse(text)


def test_a_driver_version_is_no_cuda_version() -> None:
    with pytest.raises((TypeError, AttributeError)):
        assert DriverVersion.parse("580") < CudaVersion(13, 0)  # type: ignore[operator]
