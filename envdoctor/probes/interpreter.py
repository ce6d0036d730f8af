"""The examined interpreter and where it keeps its packages: told by its files, else asked without them."""

from __future__ import annotations

import os
import re
import sys

from .asking import NotKnown, ask, is_script, wrapped
from .files import Unreadable, list_names, read_text
from .machine import Json, Machine
from .typed import Dict, List, NamedTuple, Optional, Tuple

MAX_WRAPPERS = 4
PYTHONS = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe")


class NoInterpreter(ValueError):
    """What was named as interpreter is none; the message says why."""


class Interpreter(NamedTuple):
    """An interpreter and the folders its packages lie in, in the order of its import path."""

    executable: str
    prefix: str
    kind: str
    version: Optional[str]
    version_source: str
    sites: Tuple[str, ...]
    problems: Tuple[str, ...] = ()
    unread: Tuple[str, ...] = ()


def check_interpreter(machine: Machine, python: str) -> str:
    """Return the interpreter that a path, command or environment's folder names; raises NoInterpreter."""
    path = python if os.sep in python or os.path.isdir(python) else machine.which(python) or python
    try:
        path = os.path.abspath(os.path.expanduser(path))
    except OSError as error:  # the current folder is gone
        raise NoInterpreter("%s: %s" % (python, error.strerror)) from None
    if os.path.isdir(path):
        inside = [os.path.join(path, name) for name in PYTHONS]
        path = next((one for one in inside if os.path.lexists(one)), "")
        if not path:
            raise NoInterpreter("%s holds no bin/python" % python)
    if _is_orphan(path):
        return path
    if not os.path.isfile(path):
        raise NoInterpreter("%s: no such interpreter" % python)
    if not os.access(path, os.X_OK):
        raise NoInterpreter("%s is not executable" % python)
    return path


def _is_orphan(path: str) -> bool:
    """True for the link of a virtual environment whose interpreter is gone: its packages are still there."""
    settings = os.path.join(os.path.dirname(os.path.dirname(path)), "pyvenv.cfg")
    return os.path.islink(path) and not os.path.exists(path) and os.path.exists(settings)


def find_interpreter(machine: Machine) -> Interpreter:
    """Return the interpreter to examine: the named one, else the active environment's, else our own.

    Raises NotKnown when neither its files nor the interpreter itself tell of it.
    """
    found: Interpreter = machine.once("interpreter", lambda: _find(machine))
    return found


def _find(machine: Machine) -> Interpreter:
    if machine.python:
        return examine(machine, check_interpreter(machine, machine.python))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = machine.environ.get(name)
        if folder and os.path.isdir(folder):
            try:
                return examine(machine, check_interpreter(machine, folder))
            except NoInterpreter:
                continue
    return examine(machine, sys.executable)


def examine(machine: Machine, executable: str) -> Interpreter:
    """Return what an interpreter's files tell of it, else what it answers; raises NotKnown.

    No script is run: one that starts an interpreter is followed to it.
    """
    for _ in range(MAX_WRAPPERS):
        found = _explained(machine, executable)
        if found is not None:
            return found
        if not is_script(executable):
            return _asked(machine, executable)
        executable = wrapped(machine, executable)
    raise NotKnown("%s: one script starts another, and so on" % executable)


def _explained(machine: Machine, executable: str) -> Optional[Interpreter]:
    try:
        prefix = os.path.dirname(os.path.dirname(executable))
        settings = parse_pyvenv(read_text(prefix + "/pyvenv.cfg") or "")
        if settings:
            return _virtual(machine, executable, prefix, settings)
        # As Python itself does, a link is followed before the standard library is looked for beside it.
        found = _installed(executable, os.path.dirname(os.path.dirname(os.path.realpath(executable))))
    except Unreadable as error:
        raise NotKnown(str(error)) from None
    if found is None and _is_own(executable):
        found = _own()
    return None if found is None else _with_sites(machine, found)


def _with_sites(machine: Machine, found: Interpreter) -> Interpreter:
    user = () if found.kind == "venv" else _user_sites(machine, found)
    unread: List[str] = []
    sites = _sites(machine, user + found.sites, unread)
    return found._replace(sites=sites, unread=tuple(unread))


def parse_pyvenv(text: str) -> Dict[str, str]:
    """Read `pyvenv.cfg`."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _virtual(machine: Machine, executable: str, prefix: str, settings: Dict[str, str]) -> Interpreter:
    version = settings.get("version") or settings.get("version_info", "")
    match = re.match(r"[0-9]\.[0-9]{1,3}(\.[0-9]{1,3})?(?![0-9])", version)
    told, source = (match.group(), "pyvenv.cfg") if match else (_only_library(prefix), prefix + "/lib")
    sites = _packages_folders(prefix, _short(told) if told else None)
    problems = []
    home = settings.get("home", "")
    if home and not os.path.isdir(home):
        problems.append("the interpreter that this virtual environment was made from is gone: %s" % home)
    elif not os.path.exists(executable):
        problems.append("%s leads to an interpreter that is gone" % executable)
    if settings.get("include-system-site-packages", "").lower() == "true":
        base = _installed(os.path.join(home, "python3"), os.path.dirname(home))
        sites += base.sites if base else ()
    found = Interpreter(executable, prefix, "venv", told, source, sites, tuple(problems))
    return _with_sites(machine, found)


def _installed(executable: str, prefix: str) -> Optional[Interpreter]:
    """Return an interpreter whose standard library lies under its prefix."""
    short = _short_of_name(os.path.basename(os.path.realpath(executable))) or _only_library(prefix)
    libraries = ("%s/%s/python%s/os.py" % (prefix, name, short) for name in ("lib", "lib64"))
    if short is None or not any(os.path.exists(path) for path in libraries):
        return None
    kind = "conda" if os.path.isdir(prefix + "/conda-meta") else "system"
    version, source = _full_version(prefix, short)
    return Interpreter(executable, prefix, kind, version, source, _packages_folders(prefix, short))


def _short(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _short_of_name(name: str) -> Optional[str]:
    match = re.fullmatch(r"python([0-9]\.[0-9]{1,3})", name)
    return match.group(1) if match else None


def _only_library(prefix: str) -> Optional[str]:
    names = [name for name in list_names(prefix + "/lib") if re.fullmatch(r"python3\.[0-9]{1,3}", name)]
    return names[0][len("python") :] if len(names) == 1 else None


def _full_version(prefix: str, short: str) -> Tuple[str, str]:
    """Return a version with its third part where a file tells it, and the file."""
    for name in list_names(prefix + "/conda-meta"):
        match = re.fullmatch(r"python-([0-9]\.[0-9]{1,3}\.[0-9]{1,3})-.*\.json", name)
        if match:
            return match.group(1), "conda-meta/" + name
    header = "%s/include/python%s/patchlevel.h" % (prefix, short)
    match = re.search(r'PY_VERSION[ \t]+"([0-9]\.[0-9]{1,3}\.[0-9]{1,3})', read_text(header) or "")
    if match:
        return match.group(1), header
    if os.path.realpath(prefix) == os.path.realpath(sys.prefix) and _short(_our_version()) == short:
        return _our_version(), "Python"
    return short, "%s/lib/python%s" % (prefix, short)


def _our_version() -> str:
    return "%d.%d.%d" % sys.version_info[:3]


def _packages_folders(prefix: str, short: Optional[str]) -> Tuple[str, ...]:
    short = short or _only_library(prefix)
    places = ["lib/python3/dist-packages", "Lib/site-packages"]
    if short:
        versioned = (
            "local/lib/python%s/dist-packages",
            "lib/python%s/site-packages",
            "lib/python%st/site-packages",
            "lib64/python%s/site-packages",
            "lib/pypy%s/site-packages",
        )
        places = [place % short for place in versioned] + places
    return tuple(path for path in (prefix + "/" + place for place in places) if os.path.lexists(path))


def _user_sites(machine: Machine, interpreter: Interpreter) -> Tuple[str, ...]:
    """Return the user's own packages folder, which outside virtual environments precedes the others."""
    if machine.environ.get("PYTHONNOUSERSITE") or not interpreter.version:
        return ()
    base = machine.environ.get("PYTHONUSERBASE") or os.path.join(machine.environ.get("HOME") or "/", ".local")
    path = "%s/lib/python%s/site-packages" % (base, _short(interpreter.version))
    return (path,) if os.path.isdir(path) else ()


def _is_own(executable: str) -> bool:
    return bool(sys.executable) and os.path.realpath(executable) == os.path.realpath(sys.executable)


def _own() -> Interpreter:
    sites = tuple(path for path in sys.path if path.endswith("-packages"))
    return Interpreter(sys.executable, sys.prefix, "system", _our_version(), "Python", sites)


def _asked(machine: Machine, executable: str) -> Interpreter:
    """Ask an interpreter for what `_installed` finds in files."""
    version, prefix = ask(machine, executable)
    kind = "conda" if os.path.isdir(prefix + "/conda-meta") else "system"
    sites = _packages_folders(prefix, _short(version))
    found = Interpreter(executable, prefix, kind, version, "the interpreter itself", sites)
    return _with_sites(machine, found)


def _sites(machine: Machine, sites: Tuple[str, ...], unread: List[str]) -> Tuple[str, ...]:
    """Order the folders as the import path has them, add what their .pth files name; each once."""
    everything: List[str] = []
    for path in (*python_path(machine), *sites):
        everything.append(path)
        everything += _pth_folders(path, unread)
    unread += ["%s is no folder" % path for path in sites if not os.path.isdir(path)]
    unique: Json = {}
    for path in everything:
        if os.path.isdir(path):
            unique.setdefault(os.path.realpath(path), path)
    return tuple(unique.values())


def python_path(machine: Machine) -> List[str]:
    """Return PYTHONPATH's absolute folders."""
    return [path for path in machine.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(path)]


def _pth_folders(site: str, unread: List[str]) -> List[str]:
    """Return the folders that .pth files name; the lines that Python would run are passed over."""
    found = []
    for name in _pth_names(site):
        try:
            lines = (read_text(site + "/" + name, 65536) or "").splitlines()
        except Unreadable as error:
            unread.append(str(error))
            continue
        found += [line.strip() for line in lines if not line.startswith(("import ", "import\t", "#"))]
    return [os.path.normpath(os.path.join(site, path)) for path in found if path]


def _pth_names(site: str) -> List[str]:
    """Return the .pth files of a folder; that it cannot be listed is told by whoever reads its packages."""
    try:
        return [name for name in list_names(site) if name.endswith(".pth")]
    except Unreadable:
        return []
