"""What was asked for: requirement arguments and files, read strictly."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from envdoctor.errors import InputError
from envdoctor.facts.names import normalise
from envdoctor.solve.versions import InvalidSpecifier, clauses, is_prerelease

_REQUEST = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[(?P<extras>[^\]]*)\])?\s*(?P<spec>[^;#]*)"
)
_EPOCH = datetime.date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Request:
    """One requirement asked for: normalized name, extras, specifier, and where it was written."""

    name: str
    extras: tuple[str, ...]
    spec: str
    source: str

    def __str__(self) -> str:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.name}{extras}{self.spec}"

    @property
    def names_prerelease(self) -> bool:
        """True when its specifier itself names a pre-release."""
        return any(op != "!=" and _is_prerelease(bound) for op, bound in clauses(self.spec))

    @property
    def exact(self) -> str | None:
        """The one version asked for by `==`, or None."""
        found = [bound for operator, bound in clauses(self.spec) if operator in ("==", "===")]
        return found[0] if found and not found[0].endswith(".*") else None


def _is_prerelease(bound: str) -> bool:
    return is_prerelease(bound.removesuffix(".*"))


def parse_request(text: str, source: str) -> Request | None:
    """Read one requirement; None for a blank or comment. Raises InputError naming `source`."""
    line = re.split(r"(?:^|\s)#", text, maxsplit=1)[0].strip()
    if not line:
        return None
    if "://" in line or " @ " in line or line.startswith((".", "/")):
        raise InputError(f"{source}: {line[:80]}: only versions from an index can be solved for")
    line = line.partition(";")[0].strip()
    match = _REQUEST.fullmatch(line)
    try:
        if match is None:
            raise InvalidSpecifier(line)
        spec = match["spec"].strip().strip("()").replace(" ", "")
        clauses(spec)
    except InvalidSpecifier:
        raise InputError(f"{source}: {line[:80]}: not a requirement such as torch>=2.4") from None
    extras = tuple(sorted(normalise(e.strip()) for e in (match["extras"] or "").split(",") if e.strip()))
    return Request(normalise(match["name"]), extras, spec, source)


def parse_requests(arguments: Iterable[str]) -> list[Request]:
    """Read the requirements of the command line; raises InputError."""
    parsed = (parse_request(text, "request") for text in arguments)
    return [request for request in parsed if request is not None]


def read_requests(path: Path) -> list[Request]:
    """Read a requirements file (with nested `-r`); raises InputError naming file and line."""
    return list(_read_file(path, frozenset()))


def _read_file(path: Path, open_files: frozenset[Path]) -> Iterator[Request]:
    if path in open_files:
        raise InputError(f"{path}: includes itself")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}"
        ) from None
    for number, line in _joined(text):
        if nested := re.match(r"(?:-r|--requirement|-c|--constraint)[\s=]+(\S+)", line):
            yield from _read_file(path.parent / nested[1], open_files | {path})
        elif not line.startswith("-"):
            request = parse_request(re.split(r"\s--?[a-z]", line)[0], f"{path}:{number}")
            if request is not None:
                yield request


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield logical lines with the number of their first line."""
    held, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start or number
        if line.rstrip().endswith("\\"):
            held += line.rstrip()[:-1] + " "
            continue
        yield start, (held + line).strip()
        held, start = "", 0
    if held:
        yield start, held.strip()


def parse_day(text: str) -> int:
    """Read `--exclude-newer` as days since 1970 (the whole day counts); raises InputError."""
    try:
        return (datetime.date.fromisoformat(text[:10]) - _EPOCH).days
    except ValueError:
        raise InputError(f"--exclude-newer {text}: expected a date such as 2026-10-01") from None
