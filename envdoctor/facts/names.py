"""Names of distributions as an index knows them."""

from __future__ import annotations

import re


def normalise(name: str) -> str:
    """Return a distribution's normalized name (PEP 503); `packaging.utils` is dear to load."""
    return re.sub(r"[-_.]+", "-", name).lower()
