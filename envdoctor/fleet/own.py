"""What each node has for itself and no group keeps: its GPUs' names, its clock, links and programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from envdoctor.facts.quantities import GIB
from envdoctor.values import NamedTuple

_UUID = re.compile(rb'"uuid": ?"([^"\\]{1,80})"')
_TIME = re.compile(rb'"time_s": ?\{\s*"value": ?(\d{1,12})')
_HOSTNAME = re.compile(rb'"hostname": ?\{\s*"value": ?"([^"\\]{1,255})"')
_NOW = re.compile(rb'"pcie_generation": ?(\d{1,2})\D')
_MOST = re.compile(rb'"pcie_generation_max": ?(\d{1,2})\D')
_FREE = re.compile(rb'"memory_free_bytes": ?(\d{1,15})\D')
_TOTAL = re.compile(rb'"memory_total_bytes": ?(\d{1,15})\D')
HELD_GIB = 4
"""Memory that drivers and daemons take on an idle card stays far below it."""


class Own(NamedTuple):
    """One node's own readings; words are empty where there is nothing to tell."""

    uuids: tuple[str, ...] = ()
    hostname: str = ""
    time_s: int | None = None
    slow_links: str = ""
    held: str = ""


def read_own(gpus: bytes, host: bytes) -> Own:
    """Return what a node has for itself, of the texts of its sections `gpus` and `host`."""
    name, time_s = _HOSTNAME.search(host), _TIME.search(host)
    return Own(
        uuids=tuple(found.decode("utf-8", "replace") for found in _UUID.findall(gpus)),
        hostname=name[1].decode("utf-8", "replace") if name else "",
        time_s=int(time_s[1]) if time_s else None,
        slow_links=_slow(gpus),
        held=_held(gpus),
    )


def own_of_json(data: Mapping[str, Any]) -> Own:
    """Return the same of facts that were parsed."""
    texts = (json.dumps(data.get(name), ensure_ascii=False) for name in ("gpus", "host"))
    gpus, host = (text.encode("utf-8", "replace") for text in texts)
    return read_own(gpus, host)


def _slow(gpus: bytes) -> str:
    """Return which GPUs' links run below their generation; nothing where not every GPU tells both."""
    now, most = _NOW.findall(gpus), _MOST.findall(gpus)
    if len(now) != len(most):
        return ""
    slow = [(i, int(a), int(b)) for i, (a, b) in enumerate(zip(now, most, strict=True)) if int(a) < int(b)]
    return "; ".join(f"GPU {index}: generation {a} of {b}" for index, a, b in slow)


def _held(gpus: bytes) -> str:
    """Return what holds memory of the GPUs: programs by name, or nothing that is seen."""
    if b'"processes"' in gpus:
        return "; ".join(_programs(gpus))
    free, total = _FREE.findall(gpus), _TOTAL.findall(gpus)
    if len(free) != len(total):
        return ""
    held = [(int(b) - int(a)) / GIB for a, b in zip(free, total, strict=True)]
    return "; ".join(
        f"GPU {index}: {size:.0f} GiB by nothing that is seen"
        for index, size in enumerate(held)
        if size > HELD_GIB
    )


def _programs(gpus: bytes) -> Iterator[str]:
    text = gpus if gpus.lstrip().startswith(b"{") else b'{"' + gpus + b"}"
    try:
        value = json.loads(text)
        value = value.get("gpus", value)["value"]
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return
    for gpu in value if isinstance(value, list) else ():
        if isinstance(gpu, dict) and isinstance(programs := gpu.get("processes"), list) and programs:
            names = sorted({str(p.get("name", "a program")) for p in programs if isinstance(p, dict)})
            yield f"GPU {gpu.get('index', '?')}: {', '.join(names)}"
