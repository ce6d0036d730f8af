"""The examined environment: its interpreter, what is installed for it, and how that was built."""

from __future__ import annotations

import os
from typing import Dict, List, Tuple

from .builds import read_builds
from .conda import add_conda, read_conda
from .distributions import read_site
from .interpreter import Interpreter, find_interpreter
from .machine import Json, Machine, fact, observed, unknown, without_empty

FACTS = ("environment.python", "environment.executable", "environment.prefix", "environment.kind")


def read(machine: Machine) -> Json:
    """Return the examined environment's facts; the distributions by normalized name."""
    interpreter = find_interpreter(machine)
    if interpreter is None:
        reason = "the interpreter did not answer"
        return {"environment": {path.partition(".")[2]: unknown(reason) for path in FACTS}}
    distributions, problems = read_distributions(interpreter)
    return {"environment": _described(interpreter, distributions, problems)}


def _described(interpreter: Interpreter, distributions: Dict[str, Json], problems: List[str]) -> Json:
    facts = {
        "python": fact(interpreter.version, interpreter.version_source, "its files do not tell"),
        "executable": observed(interpreter.executable, "its path"),
        "prefix": observed(interpreter.prefix, "its path"),
        "kind": observed(interpreter.kind, interpreter.prefix),
    }
    found = {
        "distributions": distributions,
        "complete": bool(interpreter.sites) or None,
        "builds": read_builds(distributions),
        "problems": [*interpreter.problems, *problems],
    }
    return without_empty({**facts, **found})


def read_distributions(interpreter: Interpreter) -> Tuple[Dict[str, Json], List[str]]:
    """Return what the interpreter would find of each distribution, and what is wrong with the whole."""
    chosen: Dict[str, Json] = {}
    problems: List[str] = []
    for site in interpreter.sites:
        held = read_site(site)
        problems += held.problems
        for name, copies in held.distributions.items():
            if name in chosen:
                problems.append(_shadowed(chosen[name], copies[0]))
            else:
                chosen[name] = _newest(copies)
    problems += ["%s: %s" % (name, text) for name, one in chosen.items() for text in one.get("problems", ())]
    if interpreter.kind == "conda":
        problems += add_conda(chosen, read_conda(interpreter.prefix))
    return chosen, problems


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
