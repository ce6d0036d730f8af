"""A newer release for a trial: what is wrong in a library's own code is mostly mended in a later one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.commands import install_commands, pip_install
from envdoctor.facts import ErrorSeen
from envdoctor.findings import Remedy
from envdoctor.matrix.snapshot import STACK
from envdoctor.rules.calendar import has_newer, package_facts
from envdoctor.rules.generations import asking_package
from envdoctor.rules.programs import programs_run
from envdoctor.rules.view import View

_NUMBER = re.compile(r"\d\.\d")
_WORD = re.compile(r"[A-Za-z][\w-]{2,30}")


def newest_ways(view: View, error: ErrorSeen, told: Sequence[str] = ()) -> tuple[Remedy, ...]:
    """Offer a newer release of the one package that an error is about, where there is one.

    It is the one that the traceback ends in, else the one that the error, the text before it or what the
    text tells of it names, else the one engine that ran.
    """
    sentences = (error.text, error.beside, *told)
    numbered = any(_NUMBER.search(said) for said in sentences)
    for name in _subjects(view, error, sentences):
        if newer := tuple(_newer(view, name, numbered)):
            return newer
    return ()


def _subjects(view: View, error: ErrorSeen, sentences: Sequence[str]) -> Iterator[str]:
    raised = asking_package(view, error.frames[-1]) if error.frames else ""
    if raised and raised != "torch":
        yield raised
    for said in sentences:
        words = (word.replace("_", "-").lower() for word in _WORD.findall(said))
        named = [name for name in dict.fromkeys(words) if name in STACK and name != "torch"]
        if len(named) == 1:
            yield named[0]
    ran = sorted(name for name in programs_run(view) if view.matrix.frameworks[name].quick)
    if len(ran) == 1:
        yield ran[0]


def _newer(view: View, name: str, numbered: bool) -> Iterator[Remedy]:
    """Offer the releases after the one told; where no number is told at all, the newest to compare with."""
    version, package = view.version(name), package_facts(view, name)
    if package is None:
        return
    if version is None:
        if not numbered and (row := view.matrix.frameworks.get(name)) and row.quick:
            text = f"The text does not tell the release of {name}: see whether the newest does it too."
            yield Remedy(text, pip_install(name, options="-U"))
    elif has_newer(view, name, version):
        pins = {name: f">{version.public}"}
        text = f"See whether a {name} newer than {version} does it too: much of it is mended by then."
        yield Remedy(f"{text} Upgrade it for a trial.", install_commands(pins), pins)
