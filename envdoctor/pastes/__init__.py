"""What people paste, read into Facts."""

from __future__ import annotations

from envdoctor.pastes.files import read_files
from envdoctor.pastes.reader import parse_paste

__all__ = [
    "parse_paste",
    "read_files",
]
