"""GPUs as people write them: `2x A100 40GB`, `Tesla K80 (3.7)`, `3x 24GB (23.64 GiB)`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from envdoctor.facts import ComputeCapability, Gpu

MIB = 1 << 20
GIB = 1 << 30

_COUNT = re.compile(
    r"(?i)^\(?(\d{1,4})\s*(?:[x*]|张|块|个|卡|cards?\b|gpus?\b)\s*(?=\S)|^([248])\s+(?=[A-Z])"
)
_COUNT_AFTER = re.compile(r"(?i)[\s(,][x*]\s?(\d{1,4})\)?\s*$|\s(\d{1,3})\s?[x*]\)?$")
_MEMORY = re.compile(r"(?i)(?<![\w.])(\d{1,6}(?:\.\d{1,3})?)\s?-?(gib|gb|g|mib|mb)\b")
_CAPABILITY = re.compile(
    r"(?i)(?:sm[_ ]?|cc\s?|compute capability[: ]{0,2}|capability[: ]{0,2})(\d{1,2}\.?\d)\b"
)
_BARE_CAPABILITY = re.compile(r"\((\d{1,2}\.\d)\)")
_FAMILY = (
    r"(?:RTX\s?(?:PRO\s?)?A?\d{3,4}(?:\s?Ada(?:\s?Generation)?)?(?:\s?(?:Ti|SUPER|D|Blackwell))*|GTX\s?\d{3,4}(?:\s?Ti)?"
    r"|TITAN\s?(?:RTX|Xp?|V)|(?:GB|GH)\d{3}|A[2-6]\d00|[HBALVTPKM]\d{1,3}[a-z]?(?:-\w+){0,4}|DGX\s?Spark|Orin|Thor)"
)
_NAMED = re.compile(
    rf"(?i)(?<![\w-])((?:NVIDIA[ _-]{{1,2}})?(?:(?:GeForce|Tesla|Quadro|Jetson|AGX|TITAN)\s)"
    rf"{{0,2}}{_FAMILY})(?![\w.])"
)
_STRICT = re.compile(
    r"(?<![\w./-])(?:(\d{1,3})\s?[xX*]\s?)?"
    r"((?:NVIDIA\s)?(?:(?:GeForce\s|Quadro\s)?(?:RTX|GTX)\s?(?:PRO\s|A)?\d{4}(?:\s?(?:Ti|SUPER|Super|D))?(?:\sAda)?"
    r"|Tesla\s[TVPKM]\d{1,3}|(?:A100|A800|H100|H800|H200|H20|B200|B300|V100|A10G|A40|L40S|L40|L20|RTX\sA6000|A6000)"
    r"(?:-(?:SXM\d?|PCIE|PCIe|NVL|DGXS|\d{2,3}GB)){0,3}))"
    r"(?:[\s(,-]{1,3}(\d{2,3})\s?(?:GB|GiB|G)\b)?(?![\w-])"
)


_NUMERALS = {"单": 1, "一": 1, "双": 2, "两": 2, "四": 4, "八": 8}
_CARDS = re.compile(
    r"([单一双两四八]|(?<![\d.])\d{1,2})\s?[卡张块]\s?的?\s?"
    r"((?:RTX\s?)?[2345]0[6-9]0(?:\s?[Tt]i)?|A100|A800|A10|A40|A6000|H100|H800|H20|V100|T4|L40S?|L20)(?!\w)"
)


def parse_gpus(text: str, source: str) -> tuple[Gpu, ...]:
    """Return the GPUs that the value of a `GPU:` line names, one each; empty when it names none."""
    gpus: list[Gpu] = []
    for part in _parts(text):
        if gpu := _parse_one(part[1], source):
            gpus.extend(replace(gpu, index=len(gpus) + k) for k in range(part[0]))
    return tuple(gpus[:1024])


def _numbered_cards(line: str, source: str) -> list[Gpu]:
    """Return the GPUs of Chinese counts: `双卡 4090`, `8张A800`."""
    gpus: list[Gpu] = []
    for count, name in _CARDS.findall(line)[:4]:
        tidy = f"RTX {name}" if name[0].isdigit() else _tidy(name)
        number = _NUMERALS.get(count) or min(int(count), 64)
        gpus.extend(Gpu(k, source, name=tidy) for k in range(number))
    return gpus


def find_gpus(line: str, source: str) -> tuple[Gpu, ...]:
    """Return the GPUs that running text mentions in an unmistakable form."""
    gpus: list[Gpu] = []
    for count, name, memory in _STRICT.findall(line)[:4]:
        gpu = Gpu(0, source, name=_tidy(name), memory_total_bytes=int(memory) * GIB if memory else None)
        gpus.extend(replace(gpu, index=len(gpus) + k) for k in range(min(int(count or 1), 64)))
    return tuple(gpus or _numbered_cards(line, source))


def parse_memory(text: str) -> int | None:
    """Return the bytes that `24GB`, `23.64 GiB` or `24576 MiB` stands for (of several, the binary one)."""
    found = _MEMORY.findall(text)
    if not found:
        return None
    number, unit = next((f for f in found if f[1].lower().endswith("ib")), found[0])
    return int(float(number) * (MIB if unit.lower().startswith("m") else GIB))


def parse_capability(text: str) -> ComputeCapability | None:
    """Return the compute capability told as `sm_75`, `compute capability 7.5` or `(7.5)`."""
    match = _CAPABILITY.search(text) or _BARE_CAPABILITY.search(text)
    if match is None:
        return None
    try:
        return ComputeCapability.parse(match[1])
    except ValueError:
        return None


def complete_name(names: Sequence[str | None], stem: str) -> str | None:
    """Return the one full name among `names` that a shortened `stem...` begins, or None."""
    full = {name for name in names if name and name.startswith(stem)}
    return full.pop() if len(full) == 1 else None


def _parts(text: str) -> list[tuple[int, str]]:
    text = text.strip().strip("`*\"'[]").strip()[:600]
    text = re.sub(r"^(?:GPU|cuda)\s?\d{0,3}\s?:(?:\d+\s)?\s*", "", text)
    text = " ".join(text.split())
    pieces = re.split(r"\s?[,;+]\s?(?![^()]{0,200}\))| and | / |\\n", text)
    parts: list[tuple[int, str]] = []
    for piece in pieces[:64]:
        piece = re.sub(r"^(?:GPU|cuda)\s?\d{0,3}\s?:\s*", "", piece.strip("'\" "))
        if match := _COUNT.search(piece):
            parts.append((_count(match), piece[match.end() :]))
        elif match := _COUNT_AFTER.search(piece):
            parts.append((_count(match), piece[: match.start()]))
        elif piece:
            parts.append((1, piece))
    return parts


def _count(match: re.Match[str]) -> int:
    return max(1, min(int(match[1] or match[2]), 256))


def _parse_one(text: str, source: str) -> Gpu | None:
    match = _NAMED.search(text)
    memory = parse_memory(text)
    capability = parse_capability(text)
    if match is None and memory is None and capability is None:
        return None
    return Gpu(
        0,
        source,
        name=_tidy(match[1]) if match else None,
        compute_capability=capability,
        memory_total_bytes=memory,
    )


def _tidy(name: str) -> str:
    return re.sub(r"\s+", " ", name).strip(" -_")
