"""The front door: puts out of our import path what is not ours, before anything else is imported.

PYTHONPATH may lead to the very environment that is examined, and its packages, or modules named like the
standard library's, would be imported into our process in place of our own. The folder of a script and, with
`python -m`, the current folder are such places too. What Python itself imports before our first line is out
of reach here: `python -I -m envdoctor` shuts that out as well.
"""

# Nothing may be imported here but what every Python has loaded before: not even `__future__`.
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
STANDARD_LIBRARY = os.path.dirname(os.path.realpath(os.__file__))


def main() -> int:
    """Run the command line with nothing but ours to import."""
    leave_foreign_paths()
    import atexit
    import gc

    ended: list[int] = []
    atexit.register(_leave, ended)  # before anything else is: so it is called last

    gc.disable()  # nothing that is imported becomes garbage
    import_without_more()
    from envdoctor.cli import main as run

    gc.enable()
    code = run()
    gc.freeze()  # or the interpreter looks through all of it for garbage, a twentieth of a short command
    ended.append(code)
    return code


def _leave(ended: list[int]) -> None:
    """End the process at once: all that is left to do is to take apart what it made."""
    if not ended:
        return  # an exception ends it, and the interpreter's is the code
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        return  # the interpreter says so, as it says it for any program
    os._exit(ended[0])


def import_without_more() -> None:
    """Import modules without one that each needs, which takes longer than the rest and is hardly ever asked.

    argparse's texts stay English, as all of ours are. Machines are diagnosed, and pins kept, without urllib.
    """
    from envdoctor.late import import_late

    late = [("dataclasses", "copy", "inspect"), ("argparse", "gettext")]
    if sys.argv[1:2] not in (["diagnose"], ["pin"]):
        late.append(("urllib.parse", "ipaddress"))
    late.append(("pathlib", "ntpath", "urllib.parse"))
    for name, *needed in late:
        import_late(name, *needed)


def leave_foreign_paths() -> None:
    """Take off `sys.path` what PYTHONPATH and the starting folder put there, and what came in from it."""
    python_path = [_real(path) for path in _python_path()]
    foreign = {*python_path, *_starting_folder()}
    if not foreign:
        return
    ours = _own_folders()
    if ROOT in python_path:  # envdoctor itself was installed that way, and so may be what it needs
        ours.update(python_path)
    entries = [(path, _real(path)) for path in sys.path]
    again = [(path, real) for path, real in entries if real in foreign and real in ours]
    first = [path for path, real in again if real.startswith(STANDARD_LIBRARY) and real != ROOT]
    last = [path for path, _ in again if path not in first]
    sys.path[:] = first + [path for path, real in entries if real not in foreign] + last
    _forget(foreign - ours)


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except OSError:  # the current folder is gone, and can hold nothing
        return path


def _python_path() -> list[str]:
    told = "" if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", "")
    return told.split(os.pathsep) if told else []


def _starting_folder() -> set[str]:
    """Return what Python put first for the way it was started: the script's folder, or the current one."""
    if getattr(sys.flags, "safe_path", sys.flags.isolated) or not sys.path:
        return set()
    first = _real(sys.path[0])
    places = (_real(""), os.path.dirname(_real(sys.argv[0])))
    return {first} if first in places else set()


def _own_folders() -> set[str]:
    """Return the folders of our own interpreter, which PYTHONPATH may name a second time."""
    folders = [ROOT, STANDARD_LIBRARY, os.path.join(STANDARD_LIBRARY, "lib-dynload")]
    if site := sys.modules.get("site"):
        folders += [*site.getsitepackages(), *([site.USER_SITE] if site.ENABLE_USER_SITE else [])]
    return {_real(path) for path in folders}


def _forget(folders: set[str]) -> None:
    """Drop what was imported from these folders, so that the next import finds ours."""
    library = os.path.dirname(os.__file__) + os.sep
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name == "__main__" or not isinstance(path, str):
            continue
        if path.startswith(library) and "-packages" not in path:
            continue  # the standard library's own: to look each up takes longer than all the rest
        top = name.partition(".")[0]
        inside = tuple(os.path.join(folder, top) + mark for folder in folders for mark in (os.sep, "."))
        if _real(path).startswith(inside):
            del sys.modules[name]
