"""What an interpreter is where its files do not tell: scripts are read, programs asked without their site."""

from __future__ import annotations

import os
import re

from .files import Unreadable, read_bytes, read_text
from .machine import Machine
from .typed import Iterator, List, Optional, Tuple

ASK_LIMIT_S = 5.0
ASK = "import sys; print('%d.%d.%d' % sys.version_info[:3]); print(sys.prefix)"
ISOLATED = ("-I", "-S")
"""No variable of Python's, no folder of the user's, no .pth file and no sitecustomize has a say."""
PROGRAMS = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")
EXEC = r"^exec(?: -a \S{1,80})? [\"']?(/[^\"'$`\s]{1,1000})[\"']? [\"']?\$@[\"']?$"
PYENV_ROOT = r"^export PYENV_ROOT=[\"']?(/[^\"'$`\s]{1,1000})[\"']?$"
MAX_SCRIPT = 65536


class NotKnown(ValueError):
    """Neither an interpreter's files nor the interpreter itself tell what it is; the message says why."""


def is_script(executable: str) -> bool:
    """True for a text that another program would run, not a program; raises NotKnown when it is neither."""
    try:
        start = read_bytes(executable, 4) or b""
    except Unreadable as error:
        raise NotKnown(str(error)) from None
    if start.startswith(PROGRAMS):
        return False
    if start.startswith(b"#!"):
        return True
    raise NotKnown("%s is no program" % executable)


def wrapped(machine: Machine, script: str) -> str:
    """Return the interpreter that a script would start, by reading it alone; raises NotKnown.

    Understood are pyenv's shims, and scripts that end in `exec /a/path "$@"`.
    """
    try:
        text = read_text(script, MAX_SCRIPT) or ""
        found = _of_pyenv(machine, script, text) or _of_exec(text)
    except Unreadable as error:
        raise NotKnown(str(error)) from None
    if found is None or not os.path.isfile(found):
        raise NotKnown("%s is a script, which is not run: name the interpreter that it starts" % script)
    return found


def _of_exec(text: str) -> Optional[str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    match = re.match(EXEC, lines[-1][:8192]) if lines else None
    return match.group(1) if match else None


def _of_pyenv(machine: Machine, script: str, text: str) -> Optional[str]:
    root = re.search(PYENV_ROOT, text, re.MULTILINE)
    if root is None:
        return None
    versions = next((told.split() for told in _pyenv_versions(machine, root.group(1)) if told.strip()), [])
    paths = ("%s/versions/%s/bin/%s" % (root.group(1), one, os.path.basename(script)) for one in versions)
    return next((path for path in paths if os.path.isfile(path)), None)


def _pyenv_versions(machine: Machine, root: str) -> Iterator[str]:
    """Yield what can choose pyenv's versions, the strongest first."""
    yield machine.environ.get("PYENV_VERSION", "").replace(":", " ")
    for folder in _upward():
        yield read_text(folder + "/.python-version", 4096) or ""
    yield read_text(root + "/version", 4096) or ""


def _upward() -> List[str]:
    """Return the current folder and those around it, none when it is gone."""
    try:
        parts = os.getcwd().split(os.sep)
    except OSError:
        return []
    return [os.sep.join(parts[:end]) for end in range(len(parts), 0, -1)]


def ask(machine: Machine, executable: str) -> Tuple[str, str]:
    """Return the version and prefix that an interpreter answers when started without its site.

    Raises NotKnown.
    """
    from .commands import CommandFailed, run_command

    environ = {name: value for name, value in machine.environ.items() if not name.startswith("PYTHON")}
    try:
        status, output = run_command([executable, *ISOLATED, "-c", ASK], ASK_LIMIT_S, environ)
    except CommandFailed as error:
        raise NotKnown(str(error)) from None
    lines = output.splitlines()[-2:]
    if status or len(lines) < 2 or not re.fullmatch(r"\d\.\d{1,3}\.\d{1,3}", lines[0], re.ASCII):
        raise NotKnown("%s is no Python: it ended with %d and said %r" % (executable, status, output[:60]))
    if not os.path.isdir(lines[1]):
        raise NotKnown("%s names as its prefix what is no folder: %r" % (executable, lines[1][:200]))
    return lines[0], lines[1]
