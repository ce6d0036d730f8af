"""The examined environment: its interpreter, what is installed for it, and how that was built."""

from __future__ import annotations

import os

from .asking import NotKnown
from .builds import read_builds
from .conda import add_conda, read_conda
from .distributions import read_site
from .files import Unreadable
from .interpreter import Interpreter, find_interpreter
from .machine import Json, Machine, fact, observed, unknown, unread_parts, without_empty
from .typed import Dict, List, NamedTuple

FACTS = ("environment.python", "environment.executable", "environment.prefix", "environment.kind")


class Installed(NamedTuple):
    """What an interpreter would find installed, what is wrong with it, and what could not be read."""

    distributions: Dict[str, Json]
    problems: List[str]
    unread: List[str]
    complete: bool


def read(machine: Machine) -> Json:
    """Return the examined environment's facts; the distributions by normalized name."""
    try:
        interpreter = find_interpreter(machine)
    except (NotKnown, Unreadable) as error:
        facts = {path.partition(".")[2]: unknown(str(error)) for path in FACTS}
        return {"environment": facts, "unread": unread_parts("environment", [str(error)])}
    installed = read_distributions(interpreter)
    builds = read_builds(installed.distributions)
    unread = [*installed.unread, *(one["unknown"] for one in builds.values() if "unknown" in one)]
    answer = {"environment": _described(interpreter, installed, builds)}
    return without_empty(dict(answer, unread=unread_parts("environment", unread)))


def _described(interpreter: Interpreter, installed: Installed, builds: Dict[str, Json]) -> Json:
    facts = {
        "python": fact(interpreter.version, interpreter.version_source, "its files do not tell"),
        "executable": observed(interpreter.executable, "its path"),
        "prefix": observed(interpreter.prefix, "its path"),
        "kind": observed(interpreter.kind, interpreter.prefix),
    }
    found = {
        "distributions": installed.distributions,
        "complete": installed.complete or None,
        "builds": builds,
        "problems": [*interpreter.problems, *installed.problems],
    }
    return without_empty({**facts, **found})


def read_distributions(interpreter: Interpreter) -> Installed:
    """Return what the interpreter would find of each distribution, and what is wrong with the whole."""
    chosen: Dict[str, Json] = {}
    problems: List[str] = []
    sites = [read_site(site) for site in interpreter.sites]
    for held in sites:
        problems += held.problems
        for name, copies in held.distributions.items():
            if name in chosen:
                problems.append(_shadowed(chosen[name], copies[0]))
            else:
                chosen[name] = _newest(copies)
    problems += ["%s: %s" % (name, text) for name, one in chosen.items() for text in one.get("problems", ())]
    unread = [*interpreter.unread, *(reason for held in sites for reason in held.unread)]
    if interpreter.kind == "conda":
        try:
            problems += add_conda(chosen, read_conda(interpreter.prefix))
        except Unreadable as error:
            unread.append(str(error))
    complete = bool(sites) and not interpreter.unread and all(held.complete for held in sites)
    return Installed(chosen, problems, unread, complete)


def _shadowed(first: Json, second: Json) -> str:
    text = "%s is there twice: %s in %s hides %s in %s"
    return text % (
        first["name"],
        first.get("version"),
        first.get("location"),
        second.get("version"),
        second["location"],
    )


def _newest(copies: List[Json]) -> Json:
    """Return the copy installed last; two of one name in one folder are a broken install."""
    if len(copies) == 1:
        return copies[0]
    last = max(copies, key=_changed)
    listed = " and ".join(sorted(str(one["source"]) for one in copies))
    return dict(last, problems=[*last.get("problems", []), "installed twice in one folder: " + listed])


def _changed(one: Json) -> float:
    try:
        return os.stat("%s/%s" % (one["location"], one["source"])).st_mtime
    except OSError:
        return 0.0
