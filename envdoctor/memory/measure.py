"""The measured tier: two slices of the model, three real steps each, on this machine's card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envdoctor.memory.constants import Constants
from envdoctor.memory.run import Prediction, TrainingRun
from envdoctor.memory.slices import corrected, run_slices
from envdoctor.values import replace


def measure_run(
    run: TrainingRun, config: Mapping[str, Any], prediction: Prediction, constants: Constants, python: str
) -> Prediction:
    """Return the prediction with layers, loss and context measured; raises Unavailable without a card."""
    slices = run_slices(run, config, "measure", python)
    moved = corrected(run, prediction, slices, constants, "measure")
    outside = slices.deep["outside"]
    nccl = constants.nccl(run.parallel) if run.gpus > 1 else 0
    factor = slices.deep["reserved"] / max(1, slices.deep["allocated"])
    note = (
        f"measured: {outside >> 20} MiB outside torch; the slice reserved {factor:.3f} of what it allocated"
    )
    return replace(
        moved,
        device_bytes=moved.peak_reserved_bytes + outside + nccl,
        method="measured",
        assumptions=(*moved.assumptions, note),
    )
