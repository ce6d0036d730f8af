"""A range of torch in a file is held against the driver and the card that it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from envdoctor.diagnosis import diagnose
from envdoctor.findings import Finding, Severity


def unfit(folder: Path, asked: str, gpu: str = "", driver: str = "") -> Finding | None:
    file = folder / "requirements.txt"
    file.write_text(f"{asked}\n", encoding="utf-8")
    answer = diagnose([str(file)], gpus=[gpu] if gpu else [], driver=driver or None)
    return next((one for one in answer.findings if one.id == "TORCH-ASKED-UNFIT"), None)


@pytest.mark.parametrize(
    ("asked", "gpu", "driver", "way"),
    [
        ("torch>=2.11", "", "575", "uv pip install torch==2.14.1 --torch-backend=cu126"),
        ("torch>=2.8,<2.10", "GTX 1080 Ti", "550", "uv pip install torch==2.9.1 --torch-backend=cu126"),
    ],
)
def test_a_range_of_which_nothing_runs_is_an_error_with_the_build_that_does(
    tmp_path: Path, asked: str, gpu: str, driver: str, way: str
) -> None:
    finding = unfit(tmp_path, asked, gpu, driver)
    assert finding
    assert finding.severity is Severity.ERROR
    assert finding.remedies[0].commands == (way,)


@pytest.mark.parametrize("asked", ["torch>=2.0", "torch"])
def test_a_range_whose_newest_does_not_run_is_a_warning_with_the_newest_that_does(
    tmp_path: Path, asked: str
) -> None:
    finding = unfit(tmp_path, asked, "T4", "535")
    assert finding
    assert finding.severity is Severity.WARNING
    assert finding.remedies[0].pins["torch"].endswith("<=2.10.0")


@pytest.mark.parametrize(
    ("asked", "gpu", "driver"),
    [
        ("torch>=2.1,<2.4", "", "575"),
        ("torch>=2.11", "H100", "580"),
        ("torch>=2.11", "", ""),
        ("torch==2.11.0", "", "575"),
    ],
)
def test_what_runs_or_is_told_elsewhere_is_left(tmp_path: Path, asked: str, gpu: str, driver: str) -> None:
    assert unfit(tmp_path, asked, gpu, driver) is None
