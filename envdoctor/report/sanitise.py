"""The one sanitiser: whatever a paste or a machine said, a terminal is never commanded by it."""

from __future__ import annotations

import re

# C0 but tab and newline, DEL, C1, bidi and other invisible format controls, line and paragraph separators.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)


def visible(text: str) -> str:
    """Return `text` with every control, bidi and invisible character shown as an escape such as `\\x1b`."""
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
