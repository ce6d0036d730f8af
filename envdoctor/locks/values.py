"""A lock as read: its packages, and the target and part of it that were read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

from envdoctor.facts.names import normalise
from envdoctor.specifiers import InvalidSpecifier, SpecifierSet
from envdoctor.values import dataclass

MINORS = tuple(range(8, 15))
"""Minor versions of Python 3 among which a lock's oldest is looked for."""
PATCHES = range(40)
"""Their patch releases, looked through where a specifier admits single ones."""


@dataclass(frozen=True, slots=True)
class Locked:
    """A package that a lock puts in: normalised name, version (None: whatever its source gives), line."""

    name: str
    version: str | None
    line: int
    origin: str | None = None
    """None: an index; `vcs`, `url`, `file` or `conda`."""
    editable: bool = False
    build: str = ""
    """Conda's build string."""


@dataclass(frozen=True, slots=True)
class Lock:
    """The packages of a lock for one target; `whole` when those are all that an installation puts in."""

    kind: str
    packages: tuple[Locked, ...]
    read_for: str
    whole: bool = True
    python: str | None = None
    """The exact Python, where the lock holds one."""
    platform: str | None = None
    """conda's name of the platform (`linux-64`)."""
    notes: tuple[str, ...] = ()


class Unreadable(ValueError):
    """A text that is no lock of its kind."""


class Markers:
    """Decides markers on Linux (x86_64) for a lock's oldest Python, with no extra and some groups."""

    def __init__(self, requires_python: str, groups: Iterable[str] = ()) -> None:
        minor = oldest_minor(requires_python)
        self.read_for = f"Python 3.{minor} on Linux (x86_64)"
        self._known: dict[str, bool] = {"": True}
        self._environment = {
            "implementation_name": "cpython",
            "implementation_version": f"3.{minor}.99",
            "os_name": "posix",
            "platform_machine": "x86_64",
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": f"3.{minor}.99",
            "python_version": f"3.{minor}",
            "sys_platform": "linux",
            "extra": "",
        }
        self._chosen: Any = {
            **self._environment,
            "extras": frozenset(),
            "dependency_groups": frozenset(groups),
        }

    def hold(self, marker: object) -> bool:
        """Return whether a marker holds; no text always does. Raises Unreadable for what is none."""
        text = marker if isinstance(marker, str) else ""
        if text not in self._known:
            self._known[text] = self._decided(text)
        return self._known[text]

    def admitted_by(self, requires_python: object) -> bool:
        """Return whether a package says that it takes that Python; no text, or an odd one, takes any."""
        try:
            specifier = SpecifierSet(text_of(requires_python).replace("*", "").strip())
        except InvalidSpecifier:
            return True
        return specifier.contains(self._environment["python_full_version"])

    def _decided(self, text: str) -> bool:
        try:
            if "extras" in text or "dependency_groups" in text:
                return Marker(text).evaluate(self._chosen, context="lock_file")
            return Marker(text).evaluate(self._environment)
        except (UndefinedEnvironmentName, UndefinedComparison, InvalidMarker, TypeError):
            raise Unreadable(f"cannot decide the marker {text[:80]!r}") from None


def oldest_minor(requires_python: str) -> int:
    """Return the oldest minor version of Python 3 that a specifier admits; of none, the newest known."""
    try:
        specifier = SpecifierSet(requires_python)
    except InvalidSpecifier:
        return MINORS[-1]
    found = (minor for minor in MINORS if specifier.contains(f"3.{minor}.99"))
    single = (m for m in MINORS for patch in PATCHES if specifier.contains(f"3.{m}.{patch}"))
    return next(found, None) or next(single, MINORS[-1])


def text_of(value: object) -> str:
    """Return a text or number as text; anything else as nothing, however deep it is."""
    return str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


def table_of(value: object) -> Mapping[str, Any]:
    """Return a table, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def tables_of(value: object) -> list[Mapping[str, Any]]:
    """Return the tables of a list."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def header_lines(text: str, header: str) -> list[int]:
    """Return the numbers (from 1) of the lines that are a TOML header, or begin with a YAML dash."""
    if header != "-":
        return [number for number, line in enumerate(text.splitlines(), 1) if line.strip() == header]
    return [number for number, line in enumerate(text.splitlines(), 1) if line.startswith("- ")]


def named(
    tables: Iterable[Mapping[str, Any]], lines: Iterable[int]
) -> list[tuple[str, Mapping[str, Any], int]]:
    """Return tables by normalised name with their lines; raises Unreadable where a name is missing."""
    found = []
    known = [*lines]
    for place, table in enumerate(tables):
        name = text_of(table.get("name"))
        if not name:
            raise Unreadable(f"package {place + 1} has no name")
        found.append((normalise(name), table, known[place] if place < len(known) else 0))
    return found
