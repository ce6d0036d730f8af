"""What people paste, made plain: colours, quotes, HTML, full-width punctuation and digits, lines kept."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from envdoctor import lazy_re as re

LINE_LIMIT = 4096
"""Characters of a line that are read; what follows is cut (log lines of binary junk)."""

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\-_])|\x9b[0-?]*[ -/]*[@-~]"
)
_BLANK = " " * 64
"""The longest run of blanks that is kept, so that no pattern meets thousands."""
_BLANKS = re.compile(r"[ \t]{64,}")
_LOST_ESCAPES = re.compile(r"\[\d{1,3}(?:;\d{1,3}){0,4}m")
_QUOTES = re.compile(r"(?m)^[ \t]{0,3}(?:>[ \t]?)+")
_CELLS = re.compile(r"(?i)</?t[dh]\b[^<>\n]{0,200}>")
_TAGS = re.compile(
    r"(?i)</?(?:details|summary|pre|code|p|br|hr|div|span|b|i|strong|em|ul|ol|li|table|tr|tbody|thead|sub|sup|kbd|h\d)"
    r"\b[^<>\n]{0,200}>"
)
_BOLD = re.compile(r"(?m)^([ \t]{0,8})\*\*([^*\n]{1,400})\*\*[ \t]{0,8}$")
"""A line of which all is printed bold."""
_ENTITIES = {"&gt;": ">", "&lt;": "<", "&quot;": '"', "&#39;": "'", "&nbsp;": " ", "&amp;": "&"}
_PUNCTUATION = {
    "：": ":", "，": ",", "（": "(", "）": ")", "＝": "=", "；": ";", "｜": "|",
    "／": "/", "＋": "+", "、": ",",
    "【": "[", "】": "]", "。": ". ", "“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "×": "x",
    "│": "|", "┃": "|", "\u3000": " ", "\u00a0": " ", "\u202f": " ", "\u200b": "", "\u200c": "",
    "\u200d": "", "\u2060": "", "\ufeff": "", "\u2028": "\n", "\u2029": "\n", "\u0085": "\n",
}  # fmt: skip


_NO_ASCII_DIGIT = re.compile(r"[^\D0-9]")


def plain_lines(text: str) -> list[str]:
    """Return the lines of `text` as plain text, one for each line of the original (universal newlines)."""
    text = _unify(text)
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    if "[0m" in text:
        text = _LOST_ESCAPES.sub("", text)
    if ">" in text:
        text = _QUOTES.sub("", text)
    if "<" in text:
        text = _TAGS.sub("", _CELLS.sub("|", text))
    if "**" in text:
        text = _BOLD.sub(r"\1\2", text)
    if "&" in text:
        text = _entities(text)
    if _BLANK in text:
        text = _BLANKS.sub(_BLANK, text)
    return [line[:LINE_LIMIT] for line in text.split("\n")]


def _unify(text: str) -> str:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return text
    for character, plain in _PUNCTUATION.items():
        if character in text:
            text = text.replace(character, plain)
    for digit in set(_NO_ASCII_DIGIT.findall(text)):
        text = text.replace(digit, str(unicodedata.decimal(digit)))
    return text


def line_templates(lines: Sequence[str]) -> list[bytes]:
    """Return each line in lower case without its digits: what lines of a log have in common."""
    return "\n".join(lines).lower().encode("utf-8", "replace").translate(None, b"0123456789").split(b"\n")


def _entities(text: str) -> str:
    for entity, character in _ENTITIES.items():
        text = text.replace(entity, character)
    return text
