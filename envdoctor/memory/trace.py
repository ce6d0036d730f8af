"""The trace tier: the real model class under fake tensors on the CPU, in the examined interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envdoctor.memory.constants import Constants
from envdoctor.memory.run import Prediction, TrainingRun
from envdoctor.memory.slices import corrected, run_slices
from envdoctor.values import replace


def trace_run(
    run: TrainingRun, config: Mapping[str, Any], prediction: Prediction, constants: Constants, python: str
) -> Prediction:
    """Return the prediction with its layers and loss traced; raises Unavailable when torch is not there."""
    slices = run_slices(run, config, "trace", python)
    return replace(corrected(run, prediction, slices, constants, "trace"), method="trace")
