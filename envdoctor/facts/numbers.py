"""Numbers in texts that others wrote."""

from __future__ import annotations

from envdoctor import lazy_re as re

_WHOLE = re.compile(r"[0-9]{1,18}")


def whole_number(text: str | None) -> int | None:
    """Return the number that ASCII digits write; None for anything else, and for more than 18 digits.

    `str.isdigit` and `int` take digits of every script, and `int` refuses long ones.
    """
    return int(text) if text is not None and _WHOLE.fullmatch(text) else None
