"""What a run's command, the files that it names and its log tell, as facts."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from envdoctor import lazy_re as re
from envdoctor.diagnosis import read_facts
from envdoctor.errors import EnvdoctorError
from envdoctor.facts import Facts
from envdoctor.matrix import load_matrix
from envdoctor.target.stack import Stack, read_stack
from envdoctor.watch.moment import Header

_FILES = (".yaml", ".yml", ".json", ".toml", ".sh")
_FILE_BYTES = 1 << 20
_MOST_FILES = 8
_IMPORTS = re.compile(r"^[ \t]{0,20}(?:from|import) (\w+)\b", re.MULTILINE)
_NAMED = re.compile(r"[\w./+-]{1,160}\.(?:ya?ml|json|toml)(?![\w.])")


def told_facts(
    header: Header, changed: Mapping[str, tuple[str, str]] | None = None, log: Sequence[str] = ()
) -> Facts:
    """Return what the command, its files (some with another text) and its log tell; raises InputError.

    The command is read last: what it says of a setting goes before what a file says.
    """
    with tempfile.TemporaryDirectory(prefix="envdoctor-watch-") as folder:
        said = Path(folder) / "the run"
        said.write_text("\n".join((shlex.join(header.argv), *log)) + "\n", encoding="utf-8")
        files = [_as_changed(path, (changed or {}).get(str(path)), folder) for path in config_files(header)]
        return read_facts([*files, str(said)], None, load_matrix())


def _as_changed(path: Path, texts: tuple[str, str] | None, folder: str) -> str:
    if texts is None:
        return str(path)
    copy = Path(tempfile.mkdtemp(dir=folder)) / path.name
    copy.write_text(texts[1], encoding="utf-8")
    return str(copy)


def framework_run(header: Header) -> str | None:
    """Return the framework whose own program the command starts; None for a script."""
    programs = {program: name for name, row in load_matrix().frameworks.items() for program in row.programs}
    for before, word in pairwise(("", *header.argv[:8])):
        if not before.startswith("-") and (found := programs.get(Path(word).name)):
            return found
        if before == "-m" and (found := programs.get(word.partition(".")[0])):
            return found
    return None


def stack_of_run(header: Header) -> Stack:
    """Return what is installed beside the program that the command starts; empty where that is not told."""
    program = shutil.which(header.argv[0]) if header.argv else None
    python = Path(program).parent / "python3" if program else None
    try:
        return read_stack(str(python)) if python and python.is_file() else Stack()
    except EnvdoctorError:
        return Stack()


def trainer_named(header: Header) -> str | None:
    """Return the trainer's library that a script of the command imports; None where it tells none."""
    trainers = {row.module: name for name, row in load_matrix().frameworks.items() if row.module}
    for word in header.argv:
        try:
            path = Path(header.cwd) / word
            imported = _IMPORTS.findall(_start_of(path)) if word.endswith(".py") and path.is_file() else ()
            if found := next((trainers[module] for module in imported if module in trainers), None):
                return found
        except (OSError, ValueError):
            continue
    return None


def _start_of(path: Path) -> str:
    with path.open("rb") as stream:
        return stream.read(_FILE_BYTES).decode("utf-8", "replace")


def config_files(header: Header) -> list[Path]:
    """Return the configuration files and shell scripts that the command names, and those that they name."""
    named = [path for word in header.argv if (path := _file(header.cwd, word.rpartition("=")[2]))]
    within = [path for outer in named for path in _files_within(header.cwd, outer)]
    return list(dict.fromkeys([*named, *within]))[:_MOST_FILES]


def _files_within(cwd: str, outer: Path) -> Iterator[Path]:
    """Yield the files that a file names: as seen from the working folder, else from its own."""
    try:
        text = outer.read_text("utf-8", "replace")
    except OSError:
        return
    for match in _NAMED.finditer(text):
        found = _file(cwd, match[0]) or _file(str(outer.parent), match[0])
        if found:
            yield found


def _file(cwd: str, name: str) -> Path | None:
    path = Path(cwd) / name
    try:
        if name.endswith(_FILES) and path.is_file() and 0 < path.stat().st_size < _FILE_BYTES:
            return path
    except (OSError, ValueError):
        return None
    return None
