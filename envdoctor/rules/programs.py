"""Whose flags a remedy names: those of another program than the one that ran are refused by its parser."""

from __future__ import annotations

from collections.abc import Sequence

from envdoctor import lazy_re as re
from envdoctor.findings import Remedy
from envdoctor.profile.keys import key_facts
from envdoctor.rules.generations import asking_package
from envdoctor.rules.view import View
from envdoctor.values import replace

_FLAG = re.compile(r"--([A-Za-z][\w.-]*)")


def programs_run(view: View) -> frozenset[str]:
    """Return the programs whose command or files the facts tell, or in whose code an error was raised."""
    known = _judged(view)
    told = {one.framework for one in view.facts.settings if one.framework in known}
    raised = {asking_package(view, frame) for error in view.facts.errors for frame in error.frames}
    here = {n for n, row in view.matrix.frameworks.items() if row.role == "trainer" and view.installed(n)}
    return frozenset(filter(None, (*told, *(raised & known), *here)))


def _judged(view: View) -> set[str]:
    return {name for name, row in view.matrix.frameworks.items() if row.role != "aside"}


def in_own_words(view: View, remedies: Sequence[Remedy]) -> tuple[Remedy, ...]:
    """Return the remedies without the lines of flags that only other programs know than those that ran."""
    programs = programs_run(view)
    if not programs:
        return tuple(remedies)
    left = [[line for line in r.commands if not _is_foreign(view, line, programs)] for r in remedies]
    instead = any(left)  # what is of another program alone goes where something is of this one
    return tuple(
        replace(remedy, commands=lines) if len(lines) < len(remedy.commands) else remedy
        for remedy, lines in zip(remedies, map(tuple, left), strict=True)
        if lines or not (remedy.commands and instead)
    )


def _is_foreign(view: View, line: str, programs: frozenset[str]) -> bool:
    """True where the line is flags of which one is another program's, and of none that ran."""
    keys = [key.replace("-", "_") for key in _FLAG.findall(line)] if line.startswith("--") else []
    mine = {base for name in programs for base in view.matrix.frameworks.with_bases(name)}
    theirs = _judged(view) - mine
    return any(not _has(view, key, mine) and _has(view, key, theirs) for key in keys)


def _has(view: View, key: str, programs: set[str]) -> bool:
    """True where some release of a program has the key, or one that it shortens, as argparse allows."""
    found = (facts for name in programs if (facts := key_facts(view.matrix, name)))
    return any(
        key in facts.fields or any(one.startswith(f"{key}_") for one in facts.fields) for facts in found
    )
