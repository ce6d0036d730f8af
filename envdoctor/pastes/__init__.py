"""What people paste, read into Facts."""

from __future__ import annotations

from envdoctor.pastes.files import read_files
from envdoctor.pastes.merge import merge_facts
from envdoctor.pastes.reader import parse_paste
from envdoctor.pastes.settings import KeyName, key_names
from envdoctor.pastes.symptoms import SymptomPattern, symptom_patterns

__all__ = [
    "KeyName",
    "SymptomPattern",
    "key_names",
    "merge_facts",
    "parse_paste",
    "read_files",
    "symptom_patterns",
]
