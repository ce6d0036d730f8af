"""The compatibility matrix: typed rows with sources, and release facts generated from wheels."""

from __future__ import annotations

from envdoctor.matrix.load import Matrix, load_matrix

__all__ = ["Matrix", "load_matrix"]
