"""Says what is wrong with a GPU machine's LLM stack, and which pins, profile and proof mend it."""

from __future__ import annotations

__version__ = "0.1.0"
