"""What was asked for, as values, and one requirement line read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from envdoctor import lazy_re as re
from envdoctor.errors import InputError
from envdoctor.facts.names import normalise
from envdoctor.solve.versions import InvalidSpecifier, clauses, is_prerelease, version_key
from envdoctor.values import dataclass

_NAME = r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\s*\[(?P<extras>[^\]]*)\])?"
_REQUEST = re.compile(_NAME + r"\s*(?P<spec>[^;#@]*)")
_DIRECT = re.compile(_NAME + r"\s*@\s*(?P<url>\S.*)")
_SCHEME = re.compile(r"(?:[a-z][a-z0-9]*\+)?[a-z][a-z0-9.-]*://|file:|git@", re.IGNORECASE)
_LOOSE_SERIES = re.compile(r"(~=|[<>]=?)(\s*[0-9][0-9.]*?)\.\*")
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_REVISION = re.compile(r"@v?(\d+\.\d[a-z0-9.]*)(?:[#?&]|$)")
_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]+@")
_COMMENT = re.compile(r"(?:^|\s)#")
_PLACE = re.compile(r"(-i|--index-url|--extra-index-url|-f|--find-links)(?:[\s=]+|(?<=-[if]))(\S+)")
_ARCHIVES = (".whl", ".tar.gz", ".zip", ".tar.bz2", ".tgz")
_LONGEST = 4096
PYTHON = "python"
"""The name of a constraint that a project sets for the Python it runs on."""
NO_REQUIREMENT = "not a requirement such as torch>=2.4"
"""Why a line is not judged that no installer takes either."""


def names_a_place(line: str) -> bool:
    """True for a line of a requirements file that names an index or a place of files."""
    return _PLACE.fullmatch(line) is not None


@dataclass(frozen=True, slots=True)
class Request:
    """One requirement asked for: normalized name, extras, specifier, and where it was written.

    `marker` is the condition under which it is asked for; `line` the direct reference that stands in place of
    an index's file.
    """

    name: str
    extras: tuple[str, ...]
    spec: str
    source: str
    marker: str = ""
    line: str = ""

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

    def holds(self, environment: Mapping[str, str]) -> bool:
        """True when its marker holds in a marker environment."""
        return not self.marker or marker_holds(self.marker, environment)


@dataclass(frozen=True, slots=True)
class Carried:
    """A line that goes into the answer as it stands: where it was written, and why it is not solved for.

    `judged`: nothing about it is unknown (its marker does not hold, or it only tells an installer how).
    """

    text: str
    source: str
    why: str
    judged: bool = False

    @property
    def shown(self) -> str:
        """The line without the credentials that its URL may hold."""
        return _CREDENTIALS.sub("", self.text)

    def as_json(self) -> dict[str, object]:
        """Return the line as the pins' JSON shows it."""
        return {"text": self.shown, "source": self.source, "why": self.why, "judged": self.judged}


@dataclass(frozen=True, slots=True)
class Stated:
    """What a project says that a package (one release of it, or all) requires, whatever its metadata say."""

    name: str
    version: str
    requires: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """Everything that arguments and files ask for.

    `overrides` stand in the place of all that is required of their packages; `options` are lines for an
    installer, as written; `notes` say what was read in another's place.
    """

    requests: tuple[Request, ...] = ()
    constraints: tuple[Request, ...] = ()
    overrides: tuple[Request, ...] = ()
    stated: tuple[Stated, ...] = ()
    carried: tuple[Carried, ...] = ()
    options: tuple[str, ...] = ()
    prereleases: bool = False
    notes: tuple[str, ...] = ()

    @classmethod
    def joined(cls, parts: Iterable[Asked]) -> Asked:
        """Return what several parts ask for together."""
        known = list(parts)
        return cls(
            tuple(request for part in known for request in part.requests),
            tuple(one for part in known for one in part.constraints),
            tuple(one for part in known for one in part.overrides),
            tuple(one for part in known for one in part.stated),
            tuple(dict.fromkeys(one for part in known for one in part.carried)),
            tuple(dict.fromkeys(option for part in known for option in part.options)),
            any(part.prereleases for part in known),
            tuple(dict.fromkeys(note for part in known for note in part.notes)),
        )

    def under(self, environment: Mapping[str, str]) -> Asked:
        """Return what is asked for in a marker environment; requests left out are carried."""
        if self.overrides:
            return self._overridden(environment).under(environment)
        out = [request for request in self.requests if not request.holds(environment)]
        return replace(
            self,
            requests=tuple(request for request in self.requests if request not in out),
            constraints=tuple(one for one in self.constraints if one.holds(environment)),
            carried=(*self.carried, *_left(out, "its marker does not hold on this target")),
        )

    def _overridden(self, environment: Mapping[str, str]) -> Asked:
        """Return what overrides leave of what is asked for: they bind, a requirement only names."""
        names = {one.name for one in self.overrides}
        binding = tuple(one for one in self.overrides if one.holds(environment))
        extras = {one.name: one.extras for one in binding}
        out = [one for one in self.requests if one.name in names - extras.keys()]
        asked = (
            replace(one, extras=extras[one.name], spec="", marker="", line="") if one.name in extras else one
            for one in self.requests
            if one not in out
        )
        return replace(
            self,
            requests=tuple(asked),
            constraints=(*self.constraints, *binding),
            overrides=(),
            carried=(*self.carried, *_left(out, "an override leaves it out on this target")),
        )


def _left(requests: Iterable[Request], why: str) -> tuple[Carried, ...]:
    return tuple(
        Carried(f"{one}; {one.marker}" if one.marker else str(one), one.source, why, judged=True)
        for one in requests
    )


def _is_prerelease(bound: str) -> bool:
    try:
        return is_prerelease(bound.removesuffix(".*"))
    except ValueError:  # `===` takes any text
        return False


def without_comment(line: str) -> str:
    """Return a line without its comment and surrounding blanks."""
    return _COMMENT.split(line, maxsplit=1)[0].strip() if "#" in line else line.strip()


def parse_request(text: str, source: str) -> Request | None:
    """Read one requirement; None for a blank or comment. Raises InputError naming `source`."""
    read = parse_line(text, source)
    if isinstance(read, Carried):
        raise InputError(f"{source}: {read.shown[:80]}: {read.why}")
    return read


def parse_line(text: str, source: str, environ: Mapping[str, str] = os.environ) -> Request | Carried | None:
    """Read one requirement line: a request, a line to be carried as it stands, or None for nothing.

    A direct reference that names a release (a wheel, a tag) is a request for it. Raises InputError for a line
    beyond all bounds.
    """
    if len(text) > _LONGEST:
        raise InputError(f"{source}: {text[:40]}…: too long for a requirement")
    line = without_comment(text)
    if not line:
        return None
    if is_direct(line):
        return _direct(line, source)
    absent = [name for name in _VARIABLE.findall(line) if name not in environ] if "$" in line else ()
    if absent:
        return Carried(line, source, f"the environment variable {absent[0]} is not set")
    told = _VARIABLE.sub(lambda match: environ[match[1]], line) if "$" in line else line
    return _from_index(told, line, source)


def is_direct(line: str) -> bool:
    """True for a URL, a path, or `name @ URL`: a file that no index chooses."""
    plain = line.partition(";")[0].strip()
    return (
        (":" in plain and _SCHEME.match(plain) is not None)
        or ("@" in plain and _DIRECT.match(plain) is not None)
        or plain.startswith((".", "/", "~"))
        or plain.split("[")[0].endswith(_ARCHIVES)
        or ("/" in plain and " " not in plain and not re.search(r"[<>=]", plain))
    )


def _from_index(line: str, written: str, source: str) -> Request | Carried:
    plain, _, marker = (part.strip() for part in line.partition(";"))
    match = _REQUEST.fullmatch(plain)
    try:
        if match is None:
            raise InvalidSpecifier(plain)
        spec = re.sub(r"\s", "", match["spec"].strip().strip("()")).strip(",")
        spec = _LOOSE_SERIES.sub(r"\1\2", spec) if ".*" in spec else spec
        clauses(spec)
        marker = _marker(marker)
    except InvalidSpecifier:
        return Carried(written, source, NO_REQUIREMENT)
    return Request(normalise(match["name"]), _extras(match["extras"]), spec, source, marker)


def _marker(text: str) -> str:
    """Return a marker that can be decided, `===` between texts as `==`; raises InvalidSpecifier."""
    told = text.replace("===", "==")
    if told:
        marker_holds(told, {})
    return told


def marker_holds(text: str, environment: Mapping[str, str]) -> bool:
    """True when a marker holds in a marker environment; raises InvalidSpecifier for none that is decided."""
    from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

    try:
        return Marker(text).evaluate({**environment, "extra": ""})
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName):
        raise InvalidSpecifier(text) from None


def _extras(text: str | None) -> tuple[str, ...]:
    return tuple(sorted({normalise(part.strip()) for part in (text or "").split(",") if part.strip()}))


def _direct(line: str, source: str) -> Request | Carried:
    plain, marker = _split_marker(line)
    match = _DIRECT.fullmatch(plain)
    where = match["url"] if match else plain
    try:
        marker = _marker(marker)
    except InvalidSpecifier:
        return Carried(line, source, f"{marker[:60]} is no marker")
    name, version = _release_of(where)
    if match:
        name = normalise(match["name"])
    if not name:
        return Carried(line, source, "only what it is built from tells its name and requirements")
    spec = f"=={version}" if version else ""
    return Request(name, _extras(match["extras"]) if match else (), spec, source, marker, line)


def _split_marker(line: str) -> tuple[str, str]:
    plain, _, marker = re.sub(r"\s;|;\s", "\0", line, count=1).partition("\0")
    return plain.strip(), marker.strip()


def _release_of(where: str) -> tuple[str, str]:
    """Return the name and version that a URL or path tells; empty for what it does not."""
    path, _, fragment = where.partition("#")
    file = path.partition("?")[0].rstrip("/").rpartition("/")[2]
    if "%" in file:
        from urllib.parse import unquote

        file = unquote(file)
    if file.endswith(".whl") and file.count("-") >= 4:
        name, version = file.split("-")[:2]
        return normalise(name), _version(version)
    egg = re.search(r"(?:^|&)egg=([A-Za-z0-9._-]*[A-Za-z0-9])", fragment)
    revision = _REVISION.search(path)
    return normalise(egg[1]) if egg else "", _version(revision[1]) if revision else ""


def _version(text: str) -> str:
    try:
        version_key(text)
    except ValueError:
        return ""
    return text


def parse_requests(arguments: Iterable[str]) -> list[Request]:
    """Read the requirements of the command line; raises InputError."""
    parsed = (parse_request(text, "request") for text in arguments)
    return [request for request in parsed if request is not None]


def parse_day(text: str) -> int:
    """Read `--exclude-newer` as days since 1970 (the whole day counts); raises InputError."""
    import datetime

    try:
        return (datetime.date.fromisoformat(text[:10]) - datetime.date(1970, 1, 1)).days
    except ValueError:
        raise InputError(f"--exclude-newer {text}: expected a date such as 2026-10-01") from None
