"""Smokes: tiny kernels run op by op in child processes of the examined interpreter, each with a verdict.

`ops/`, `worker.py` and `measure.py` run there (any Python from 3.8, standard library and torch alone);
everything else runs here and never imports torch.
"""

from __future__ import annotations

from envdoctor.smokes.parent import run_smokes
from envdoctor.smokes.verdicts import SmokeReport, SmokeResult

__all__ = ["SmokeReport", "SmokeResult", "run_smokes"]
