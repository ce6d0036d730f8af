"""Which files are locks, by their names."""

from __future__ import annotations

from envdoctor import lazy_re as re

_NAMES = re.compile(
    r"(?:uv|poetry|pdm|pixi)\.lock|pipfile\.lock|pylock(?:\.[\w-]{1,80})?\.toml"
    r"|[\w.-]{1,120}\.py\.lock|(?:[\w.-]{1,120}\.)?conda-lock\.ya?ml",
    re.IGNORECASE,
)


def is_lock(path: str) -> bool:
    """True for a file whose name is that of a lock."""
    return _NAMES.fullmatch(re.split(r"[/\\]", path)[-1]) is not None
