"""Workloads in a few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from envdoctor.matrix import load_matrix
from envdoctor.matrix.gpus import declared_gpu
from envdoctor.memory import find_shape
from envdoctor.profile.choosing import Profile, find_profile, write_profile
from envdoctor.profile.search import Found
from envdoctor.profile.workload import Workload
from envdoctor.target.cards import Card
from envdoctor.target.stack import Stack

GIB = 1 << 30


def cards(*names: str) -> tuple[Card, ...]:
    """Return cards by the names people use."""
    found = [declared_gpu(load_matrix(), name, index) for index, name in enumerate(names)]
    return tuple(Card(g.name or "", g.compute_capability, g.memory_total_bytes or 0) for g in found)


def workload(
    model: str,
    gpus: Sequence[str],
    stack: Mapping[str, str] | None = None,
    complete: bool = False,
    **others: Any,
) -> Workload:
    """Return a workload; `stack` gives versions."""
    return Workload(
        find_shape(model), cards(*gpus), stack=Stack(stack or {}, complete), model=model, **others
    )


def found(model: str, gpus: Sequence[str], **others: Any) -> Found:
    """Return the answer of a search."""
    return find_profile(workload(model, gpus, **others), load_matrix())


def written(framework: str, model: str, gpus: Sequence[str], **others: Any) -> Profile:
    """Return a profile with a framework's files."""
    return write_profile(found(model, gpus, **others), framework, load_matrix())
