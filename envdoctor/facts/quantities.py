"""Quantities as people write them: the one grammar of numbers with units and of counts.

A size is `40GB`, `23.64 GiB`, `24576MiB`, `16,384 MB`, `80G`, `1.5 TB`. Memory is sold in binary gigabytes
under the decimal name, so `GB` is 2^30 bytes too. What looks like a size and is none: the digits after
a point (`0.50 GiB` is not 50), the name of a MIG profile (`2g.20gb` is 20 GiB of memory, not 2), a rate
(`900 GB/s`), a device (`cuda:0`), a count of parameters or tokens (`7B`, `4k`).
"""

from __future__ import annotations

from envdoctor import lazy_re as re

MIB = 1 << 20
GIB = 1 << 30
_UNITS = {"m": MIB, "g": GIB, "t": 1 << 40}
_SIZE = re.compile(
    r"(?i)(?<![\w.])(?<!\d,)(\d{1,3}(?:,\d{3}){1,3}|\d{1,9})(\.\d{1,3})?\s?-?(gib|gb|g|mib|mb|tib|tb)\b"
    r"(?!\.\d|/s|ps\b)"
)
_SLICE = re.compile(r"(?i)(?<![\w.])\d{1,2}g\.(\d{1,4})gb\b")
"""A MIG instance's profile: its share of the cores, and of the memory."""
_WHOLE = re.compile(r"[0-9]{1,18}")
_COUNT = re.compile(r"(\d{1,12}(?:[,_]\d{3})*)(k)?(?![\w.])")


def parse_size(text: str) -> int | None:
    """Return the bytes of the size that a text tells; None where it tells none.

    Of several it is the one with a binary unit, else the first; of a MIG instance its memory.
    """
    if slice_ := _SLICE.search(text):
        return int(slice_[1]) * GIB
    found = _SIZE.findall(text)
    if not found:
        return None
    whole, part, unit = next((f for f in found if f[2].lower().endswith("ib")), found[0])
    return int(float(whole.replace(",", "") + part) * _UNITS[unit[0].lower()])


def parse_count(text: str) -> int | None:
    """Return the whole number that a text begins with: `4096`, `4,096`, `4_096`, `4k` (4096); else None."""
    match = _COUNT.match(text)
    if match is None:
        return None
    number = int(re.sub(r"[,_]", "", match[1]))
    return number * 1024 if match[2] else number


def whole_number(text: str | None) -> int | None:
    """Return the number that ASCII digits write; None for anything else, and for more than 18 digits.

    `str.isdigit` and `int` take digits of every script, and `int` refuses long ones.
    """
    return int(text) if text is not None and _WHOLE.fullmatch(text) else None


def counted(number: int, noun: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
