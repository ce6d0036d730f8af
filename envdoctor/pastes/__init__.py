"""What people paste, read into Facts."""

from __future__ import annotations

from envdoctor.pastes.files import read_files
from envdoctor.pastes.merge import merge_facts
from envdoctor.pastes.reader import parse_paste

__all__ = [
    "merge_facts",
    "parse_paste",
    "read_files",
]
