"""The C library that a wheel for Linux asks for, as its platform tag tells.

`manylinux_X_Y` is glibc X.Y, and three older names stand for a version: https://peps.python.org/pep-0600/
"""

from __future__ import annotations

from envdoctor import lazy_re as re

_OLDER = {"1": (2, 5), "2010": (2, 12), "2014": (2, 17)}
_TAG = re.compile(r"manylinux(?:_(\d+)_(\d+)|(1|2010|2014))_([a-z]\w*)")


def parse_manylinux(tag: str) -> tuple[tuple[int, int], str] | None:
    """Return glibc's version and the architecture of one tag, `manylinux_2_28_x86_64`; None of any other."""
    match = _TAG.fullmatch(tag)
    if match is None:
        return None
    return (int(match[1]), int(match[2])) if match[1] else _OLDER[match[3]], match[4]
