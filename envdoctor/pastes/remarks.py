"""Remarks in programs and settings files: what they say is no fact of a machine and no error of a run."""

from __future__ import annotations

from collections.abc import Sequence

from envdoctor import lazy_re as re

_HASH = (".sh", ".bash", ".sbatch", ".slurm", ".yaml", ".yml", ".toml")
_KEPT = ("#!", "#SBATCH", "#PBS")
_REMARK = re.compile(r"(?:^|\s)#.*")
_REPORTED = re.compile(r"(?:Error|Exception|ERROR|FATAL)\b|\b(?:error|fatal): |Traceback")
"""What a line of a report has that was put beneath a settings file."""
_MEMBER = re.compile(r'\s*"[\w.-]+"\s*:\s*(?:true|false|null|-?\d[\d.eE+-]*|[\[{]+|"[\w./-]*")\s*,?\s*$')
"""A member of a JSON object that holds no sentence."""


def reports(line: str, file_name: str) -> bool:
    """True for a line that may tell an error: in a program's file, one that is none of the program's."""
    if file_name.lower().endswith(_HASH):
        return _REPORTED.search(line) is not None
    return _MEMBER.match(line) is None


def without_remarks(lines: Sequence[str], file_name: str) -> list[str]:
    """Return the lines of such a file with its remarks taken out, but for directives; other texts whole."""
    if not file_name.lower().endswith(_HASH):
        return list(lines)
    return [_bare(line) if "#" in line else line for line in lines]


def _bare(line: str) -> str:
    """Take out a remark; one behind a quotation mark is left, for it may be quoted."""
    found = None if line.lstrip().startswith(_KEPT) else _REMARK.search(line)
    if found is None or {"'", '"'} & set(line[: found.start()]):
        return line
    return line[: found.start()]
