"""Amounts and durations as a person says them."""

from __future__ import annotations


def amount(mib: float) -> str:
    """Return MiB in words."""
    if mib >= 10_240:
        return f"{mib / 1024:.1f} GiB"
    return f"{mib:.0f} MiB" if mib >= 10 else f"{mib:.2g} MiB"


def duration(seconds: float) -> str:
    """Return seconds in words."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
