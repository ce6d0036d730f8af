"""Requirement files as pip and uv read them: nested files, options, direct references, nothing dropped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from envdoctor import lazy_re as re
from envdoctor.errors import InputError
from envdoctor.inputs import BYTE_ORDER_MARK, is_lock, read_input
from envdoctor.solve.requests import (
    Asked,
    Carried,
    Request,
    is_direct,
    names_a_place,
    parse_line,
    without_comment,
)

_NESTED = re.compile(r"(-r|--requirement|-c|--constraint)(?:[\s=]+|(?<=-[rc]))(\S.*)")
_EDITABLE = re.compile(r"(?:-e|--editable)[\s=]+(\S.*)")
_OWN_OPTIONS = re.compile(r"\s--?[a-z][a-z-]*(?:[\s=]|$)")
_HASH = re.compile(r"\s--hash[\s=]")
_SCHEME = re.compile(r"[a-z]{1,20}://", re.IGNORECASE)
PLAIN = frozenset({".txt", ".in"})
"""How files of requirements end; `requirements-dockerfile.txt` is no Dockerfile."""
MAX_DEPTH, MAX_FILES, MAX_LINES = 50, 500, 20_000


def read_requests(path: Path) -> Asked:
    """Read a requirements file, or another file that lists requirements; raises InputError naming it.

    Each file is read once, and a nested one that cannot be read is carried.
    """
    if is_lock(str(path)):
        from envdoctor.solve.locked import read_locked

        return read_locked(path)
    if path.suffix not in PLAIN:
        from envdoctor.solve.projects import is_manifest  # dear to load

        if is_manifest(path):
            return _manifest(path)
    return _required_in(path)


def _manifest(path: Path) -> Asked:
    """Return what another file lists; a project's may leave it to one beside it."""
    from envdoctor.solve.project_folders import beside, read_project
    from envdoctor.solve.projects import PROJECT_FILES, read_manifest

    read = read_manifest(path, _text_of(path))
    if read.requests or any(one.source for one in read.carried):
        return read
    told = read_project(path.parent, (), _required_in, path.name) if path.name in PROJECT_FILES else None
    return told or Asked(carried=tuple(replace(one, why=one.why + beside(path)) for one in read.carried))


def _required_in(path: Path) -> Asked:
    return _Reader().file(path, _text_of(path), binding=False)


def _text_of(path: Path) -> str:
    """Return the text of a file, one that PowerShell wrote (`pip freeze > requirements.txt`) included."""
    body = read_input(path)
    try:
        text = body.decode("utf-16" if body[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
        return text.removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError:
        raise InputError(f"{path}: cannot be read: not UTF-8") from None


class _Reader:
    """Reads files that name one another; `binding` files hold constraints, which ask for nothing."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._read: set[str] = set()

    def file(self, path: Path, text: str, binding: bool) -> Asked:
        """Return what one file asks for; nothing for a file that was read already."""
        place = os.path.realpath(path)
        if place in self._open:
            raise InputError(f"{path}: includes itself")
        if place in self._read:
            return Asked()
        if len(self._open) == MAX_DEPTH or len(self._read) == MAX_FILES:
            raise InputError(f"{path}: files within files: more than {MAX_DEPTH} deep, or {MAX_FILES} in all")
        self._read.add(place)
        self._open.append(place)
        lines = islice(logical_lines(text), MAX_LINES)
        found = Asked.joined([self._line(line, path, f"{path}:{number}", binding) for number, line in lines])
        self._open.pop()
        return found

    def _line(self, line: str, path: Path, source: str, binding: bool) -> Asked:
        plain = without_comment(line)
        if plain.startswith("-"):
            return self._option(plain, path, source, binding)
        hashed = False
        if "-" in plain:
            hashed = _HASH.search(plain) is not None
            plain = _OWN_OPTIONS.split(plain, maxsplit=1)[0].strip()
        if plain and is_direct(plain):
            return _direct(plain, plain, path, source)
        asked = _sorted(parse_line(plain, source), binding)
        return Asked.joined((asked, _UNHASHED)) if hashed else asked

    def _option(self, plain: str, path: Path, source: str, binding: bool) -> Asked:
        if nested := _NESTED.fullmatch(plain):
            return self._nested(nested[2], path, source, binding or nested[1] in ("-c", "--constraint"))
        if editable := _EDITABLE.fullmatch(plain):
            return _direct(editable[1], plain, path, source)
        return _option(plain, source)

    def _nested(self, target: str, path: Path, source: str, binding: bool) -> Asked:
        if _SCHEME.match(target):
            kind = "constraints" if binding else "requirements"
            option = "-c" if binding else "-r"
            why = f"{kind} at a URL are not read"
            return Asked(carried=(Carried(f"{option} {target}", source, why),))
        other = path.parent / target.replace("\0", "")
        try:
            return self.file(other, _text_of(other), binding)
        except InputError as error:
            if os.path.exists(other):
                raise
            return Asked(carried=(Carried(f"{'-c' if binding else '-r'} {target}", source, str(error)),))


_UNHASHED = Asked(
    carried=(
        Carried("--hash", "", "hashes are left to `--format pylock`, which writes those of every pin", True),
    )
)


def _sorted(read: Request | Carried | None, binding: bool) -> Asked:
    if read is None:
        return Asked()
    if isinstance(read, Carried):
        return Asked(carried=(read,))
    return Asked(constraints=(read,)) if binding else Asked(requests=(read,))


def _direct(reference: str, line: str, path: Path, source: str) -> Asked:
    """Return a direct reference: a local project's own requirements are read, others are carried."""
    place, _, extras = reference.partition(";")[0].strip().rstrip("]").partition("[")
    folder = path.parent / place
    if not _SCHEME.search(place) and os.path.isdir(folder):
        from envdoctor.solve.project_folders import read_project

        try:
            named = [extra.strip() for extra in extras.split(",") if extra.strip()]
            project = read_project(folder, named, _required_in)
        except InputError as error:
            return Asked(carried=(Carried(line, source, str(error)),))
        if project is not None:
            told = Carried(
                line, source, "a local project, installed as it is; what it requires is pinned", True
            )
            return Asked.joined((Asked(carried=(told,)), project))
        return Asked(carried=(Carried(line, source, "no file of that project tells its requirements"),))
    read = parse_line(reference, source)
    return _sorted(replace(read, line=line) if isinstance(read, Request) else _as_written(read, line), False)


def _as_written(read: Carried | None, line: str) -> Carried | None:
    return replace(read, text=line) if read else None


def _option(line: str, source: str) -> Asked:
    if line == "--pre":
        return Asked(options=(line,), prereleases=True)
    if names_a_place(line):
        if "download.pytorch.org" in line:
            return Asked(options=(line,))
        told = Carried(
            line, source, "what that place holds is not judged: versions are those of the own index", True
        )
        return Asked(carried=(told,), options=(line,))
    return Asked(options=(line,))


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield logical lines with the number of their first line."""
    held, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start or number
        if line.rstrip().endswith("\\") and not line.lstrip().startswith("#"):
            held += line.rstrip()[:-1] + " "
            continue
        yield start, (held + line).strip()
        held, start = "", 0
    if held:
        yield start, held.strip()
