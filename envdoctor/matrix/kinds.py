"""Every kind of row by its name in TOML: `[[gpu]]` is a `GpuRow`."""

from __future__ import annotations

from collections.abc import Mapping

from envdoctor.matrix import tables
from envdoctor.matrix.tables.row import Row

_TYPES = (getattr(tables, name) for names in tables.SUBJECTS.values() for name in names.split())
KINDS: Mapping[str, type[Row]] = {found.KIND: found for found in _TYPES if hasattr(found, "KIND")}
"""By name."""
