"""A plan written into the files that say what is installed, line by line, comments and order kept.

Requirements files, `pyproject.toml`, `environment.yml` and Dockerfiles name a package and its versions in one
line; that part of the line alone is replaced.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

from envdoctor import lazy_re as re
from envdoctor.commands import ANY
from envdoctor.errors import InputError, Unavailable
from envdoctor.files import replace_file
from envdoctor.findings import Move
from envdoctor.inputs import is_lock, read_input

_CLAUSE = r"(?:===?|~=|!=|[<>]=?)\s?[\w.*+!]+"
_LARGEST = 4 << 20
HASHED = "its hashes are those of the former releases: compile the file again"
_COMMENT = re.compile(r"(?:^|(?<=\s))#")


def read_file(path: Path) -> str:
    """Return a file's text with its line ends; raises InputError for what is none, and for a lock."""
    if is_lock(path.name):
        raise InputError(
            f"--lockfile {path}: a lock is written by its own tool; name the file that it is made of"
        )
    try:
        return read_input(path, _LARGEST).decode("utf-8")
    except InputError as error:
        raise InputError(f"--lockfile {error}") from None
    except UnicodeDecodeError:
        raise InputError(f"--lockfile {path}: no text in UTF-8") from None


def edited(text: str, name: str, moves: Sequence[Move]) -> tuple[str, tuple[str, ...]]:
    """Return the text of the file `name` with the plan's versions in it, and what it has no place for."""
    lines = text.splitlines(keepends=True)
    lost = [HASHED] if moves and "--hash=" in text else []
    for move in moves:
        if move.new is None or move.old == move.new:
            lost.append(
                f"{move.name} {'is to be taken out' if move.new is None else 'is to be installed again'}"
            )
            continue
        pattern = _pattern(move.name)
        found = [at for at, line in enumerate(lines) if pattern.search(_code(line))]
        for at in found:
            lines[at] = _replaced(lines[at], pattern, move)
        if not found and name.endswith((".txt", ".in")):
            end = "" if not lines or lines[-1].endswith("\n") else "\n"
            lines.append(f"{end}{move.name}{_wanted(move)}\n")
        elif not found:
            lost.append(f"{move.name}{_wanted(move)} is named nowhere in {name}")
    return "".join(lines), tuple(lost)


def difference(path: Path, before: str, after: str) -> str:
    """Return what changes in a file as a unified diff."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(difflib.unified_diff(old, new, f"{path} (now)", f"{path} (planned)"))


def write_file(path: Path, before: str, after: str) -> None:
    """Write the text, where the file still is what was read; raises Unavailable."""
    if read_file(path) != before:
        raise Unavailable(f"fix: {path} was changed meanwhile, it is left as it is")
    replace_file(path, after)


def _wanted(move: Move) -> str:
    new = move.new or ""
    return new if new[:1] in "<>=!~" else "" if new == ANY else f"=={new}"


def _code(line: str) -> str:
    """Return a line without its comment."""
    match = _COMMENT.search(line)
    return line[: match.start()] if match else line


def _pattern(name: str) -> re.Pattern[str]:
    """Return what a requirement of a package looks like: alone, in quotes, or among words of a command."""
    spelled = re.escape(name).replace("\\-", "[-_.]")
    # `numpy=1.26` and `numpy = "^1.26"` are conda's and Poetry's ways
    versions = rf"(?P<clauses>{_CLAUSE}(?:\s?,\s?{_CLAUSE})*)|(?P<conda>=[\w.*]+(?:=[\w.*]+)?)"
    poetry = r"(?P<poetry>\s=\s[\"'][\^~<>=!\w.*, ]+[\"'])"
    start, end = r"(?:^|(?<=[\s\"',\[-]))", r"(?=$|[\s\"',;\]\\)])"
    return re.compile(
        rf"{start}(?P<name>{spelled})(?P<extras>\[[\w,.-]*\])?(?:\s?(?:{versions})|{poetry})?{end}",
        re.IGNORECASE,
    )


def _replaced(line: str, pattern: re.Pattern[str], move: Move) -> str:
    code = _code(line)
    return "".join(_parts(code, pattern, move)) + line[len(code) :]


def _parts(code: str, pattern: re.Pattern[str], move: Move) -> Iterator[str]:
    place = 0
    for match in pattern.finditer(code):
        yield code[place : match.start()]
        wanted = _wanted(move)
        if match["conda"]:
            wanted = wanted.replace("==", "=", 1)
        elif match["poetry"]:
            wanted = f' = "{wanted.removeprefix("==")}"'
        yield f"{match['name']}{match['extras'] or ''}{wanted}"
        place = match.end()
    yield code[place:]
