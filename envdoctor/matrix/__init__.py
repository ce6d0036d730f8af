"""The compatibility matrix: typed rows with sources, and release facts generated from wheels."""

from __future__ import annotations

from envdoctor.matrix.load import Matrix, load_matrix
from envdoctor.matrix.tables.conditions import ConditionRow, RowRemedy

__all__ = ["ConditionRow", "Matrix", "RowRemedy", "load_matrix"]
