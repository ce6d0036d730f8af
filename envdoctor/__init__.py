"""Says what is wrong with a GPU machine's LLM stack, and which pins, profile and proof mend it."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "bundle", "diagnose", "diagnose_facts"]


def __getattr__(name: str) -> Any:
    """Load the library's functions when they are first asked for."""
    if name in ("bundle", "diagnose", "diagnose_facts"):
        from envdoctor import library

        return getattr(library, name)
    raise AttributeError(f"module 'envdoctor' has no attribute {name!r}")
