"""What the facts say themselves of sets of files: from which glibc on one installs on a usual Linux machine.

To judge the files of two hundred packages took an eighth of an answer, and it hangs on nothing that is asked.
The table's first line are versions of glibc, each as a letter from A on; the others are an architecture, a
Python, and a letter a set: since when a wheel installs, and what bars all files before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envdoctor.values import NamedTuple

NEVER, UNTOLD = "!", "?"
"""No glibc has a wheel that installs; it hangs on more than the minor of Python."""
BARS = ("platform", "python", "source")
"""What bars files, by the digit that stands for it."""
Glibc = tuple[int, int]


class Verdicts(NamedTuple):
    """What is said of each set on one machine: `last` is the newest letter that its glibc reaches."""

    since: str = ""
    barred: str = ""
    last: str = ""

    def bar(self, number: int, allow_source: bool) -> str | None:
        """Return what bars a set of files, "" where one installs; None where that is not told."""
        since = self.since[number] if number < len(self.since) else UNTOLD
        if since == UNTOLD:
            return None
        bar = BARS[int(self.barred[number])]
        return "" if "A" <= since <= self.last or (allow_source and bar == "source") else bar


def verdicts_of(lines: Sequence[str], arch: str, python: str, glibc: Glibc) -> Verdicts:
    """Read the verdicts for a machine; none where the table has no line for it."""
    levels = [tuple(map(int, one.split("."))) for one in lines[0].split()] if lines else []
    last = letter(sum(level <= glibc for level in levels) - 1)
    told = (line.split(" ") for line in lines[1:] if line.startswith(f"{arch} {python} "))
    return next((Verdicts(since, barred, last) for _, _, since, barred in told), Verdicts())


def letter(level: int) -> str:
    """Return the letter of a version of glibc by its place."""
    return chr(ord("A") + level)


def bar_of(found: Iterable[str]) -> str:
    """Return what bars files that are barred each by one of these: what would be mended most easily."""
    return next((what for what in ("source", "platform", "python") if what in found), "platform")
