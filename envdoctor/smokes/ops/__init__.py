"""The ops, one file a family. A new op is one function and its `@op` line; a new family one name below.

Everything here runs in the examined interpreter: any Python from 3.8, the standard library and torch.
Nothing heavy is imported before an op runs, so that the ops can be listed anywhere.
"""

from __future__ import annotations

import importlib

from .registry import OPS, Op

FAMILIES = (
    "device",
    "matmul",
    "triangular",
    "layers",
    "attention",
    "training",
    "graphs",
    "compiled",
    "bnb",
    "flash",
    "xformers",
    "liger",
    "fused",
    "adapters",
    "collective",
    "bandwidth",
    "memory",
)


def load() -> dict[str, Op]:
    """Import every family and return the ops by name, in the order they are listed."""
    for family in FAMILIES:
        importlib.import_module("." + family, __name__)
    return OPS
