"""Why a node gave no facts, from how its command ended and what it complained of."""

from __future__ import annotations

from envdoctor.fleet.carriage import Frames
from envdoctor.fleet.reply import Reply

_MAX_WORDS = 160
_ALARM = 14


def reply_of(node: str, frames: Frames, status: int | None, complaint: bytes) -> Reply:
    """Return a node's reply from its framed lines, its exit status and its standard error."""
    text = frames.text()
    if text is not None:
        return Reply(node, text)
    return Reply(node, None, reason_of(frames, status, complaint))


def reason_of(frames: Frames, status: int | None, complaint: bytes) -> str:
    """Return why there are no facts, in one line."""
    said = last_line(complaint)
    if status == 127:
        return f"no Python there: {said}" if said else "no Python there"
    if status in (128 + _ALARM, -_ALARM):
        return "the probe was ended at its deadline"
    if status == 255 and said:
        return f"not reached: {said}"
    if status not in (0, None):
        return f"the probe ended with status {status}" + (f": {said}" if said else "")
    if frames.noise:
        return f"it answered no facts but {quoted(frames.noise)}"
    return f"it answered nothing{f': {said}' if said else ''}"


def last_line(text: bytes) -> str:
    """Return the last line that says something, cut to a readable length."""
    lines = [line.strip() for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("envdoctor: ")[:_MAX_WORDS] if lines else ""


def quoted(text: bytes) -> str:
    """Return the opening of what a node said, as it can be shown."""
    return repr(" ".join(text.decode("utf-8", "replace").split())[:60])
