"""Measures what is said of tracebacks whose versions were kept back: who raised, and in which releases.

    python benchmarks/raisers.py FOLDER... [--show]

Each folder holds texts, `NAME/text.md`. A text is asked when the innermost line of one of its tracebacks,
Python's own aside, stands in an installed package, or in a package of the index that was built where it lies:
that package raised. Every stated version is taken out of
the facts, of distributions and builds alike; the releases are then those that the traceback's lines stand in
(the index is read) and that the answer gives. An answer is right when one of the first two findings tells
the package of a traceback of the text, and its releases hold the version that the text states, where the
index has such a release; how many minor releases they span is counted.

A `truth.json` beside a text may tell `cause_words`, groups of which one word each must stand in the answer:
then it is counted how often one of the first two findings has them all, how often they do where a library's
own condition was told to hold, and which findings are certain and lack them.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cases import text_of
from datings import is_on_index
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import Facts
from envdoctor.facts.names import normalise
from envdoctor.fetch import Fetcher, FetchSettings
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.harvest.index_settings import read_index_settings
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.matrix.interface_records import load_record
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.online import date_facts
from envdoctor.pastes import parse_paste
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.origins import ID as ORIGIN
from envdoctor.rules.raisers import FACT, LAST
from envdoctor.rules.ranges import parse_version

_HEAD = "Traceback (most recent call last)"
_CHILD = "ChildFailedError"
"""How a launcher reports that what it started failed: that raised elsewhere."""
_LINE = re.compile(r'File ["“]([^"”\n]{1,400})["”]')
_INSTALLED = re.compile(r"(?:site|dist)-packages[/\\]([\w.]+)")
_OWN = re.compile(
    r"^<frozen|[/\\]lib[/\\]python3|[/\\]Python3\d{1,2}[/\\]lib|[/\\]versions[/\\]3|importlib",
    re.IGNORECASE,
)
"""A file of Python's own."""
_SPAN = re.compile(r"^(\S+) to (\S+?)(?: and .*)?$")
_LATER = re.compile(r"^(\S+) (?:and|or) later$")
FIRST = 2


@dataclass(frozen=True)
class Asked:
    """A text, the packages that raised in its tracebacks, and the versions that it states of them."""

    name: str
    facts: Facts
    raisers: Sequence[str]
    stated: Mapping[str, Version]
    cause: Sequence[Sequence[str]] = ()
    """Groups of words that tell the cause; empty where nobody told it."""


@dataclass
class Count:
    """How often something was said, and how often it was right."""

    said: int = 0
    right: int = 0

    def add(self, right: bool) -> None:
        """Count one more."""
        self.said += 1
        self.right += right

    def __str__(self) -> str:
        """Tell both."""
        return f"{self.right} of {self.said}"


def raisers_of(text: str, matrix: Matrix) -> list[str]:
    """Return the package of the innermost line of each traceback, read by its letters alone."""
    parts = (part for part in text.split(_HEAD)[1:] if _CHILD not in part)
    found = (raiser_of(_LINE.findall(part), matrix) for part in parts)
    return list(dict.fromkeys(filter(None, found)))


def raiser_of(files: Sequence[str], matrix: Matrix) -> str:
    """Return the package in whose files the innermost line stands; empty for a program of one's own."""
    snapshot = load_snapshot(matrix.folder)
    for file in reversed(files):
        if installed := _INSTALLED.search(file):
            return distribution_of(matrix, installed[1].removesuffix(".py"))
        if not _OWN.search(file):
            folders = [folder for folder in re.split(r"[/\\]", file)[:-1] if folder]
            tops = {distribution_of(matrix, f): place for place, f in enumerate(folders) if f}
            return next((t for t in reversed(tops) if snapshot.package(t) and _lies(matrix, t, file)), "")
    return ""


def _lies(matrix: Matrix, package: str, file: str) -> bool:
    """True for a file below the folder that a package is imported as, as far as that is on record."""
    folders = re.split(r"[/\\]", file)[:-1]
    record = load_record(matrix.folder, package)
    if record is not None:
        return record.root in folders
    return [folder.replace("_", "-").lower() for folder in folders].count(package) > 1


def read_texts(folders: Sequence[Path], matrix: Matrix) -> Iterator[Asked]:
    """Yield the texts that can be asked."""
    for path in sorted(place for folder in folders for place in folder.glob("*/text.md")):
        text = path.read_text("utf-8", "replace")
        raisers = raisers_of(text, matrix)
        if raisers:
            facts = parse_paste(text, "", matrix.lexicon)
            known = {name: facts.distribution(name) for name in raisers}
            stated = {
                name: version
                for name, one in known.items()
                if one and one.version and (version := parse_version(one.version)) and is_release(version)
            }
            name = f"{path.parent.parent.name}/{path.parent.name}"
            yield Asked(name, facts, raisers, on_index(stated), words_of(path.with_name("truth.json")))


def on_index(stated: Mapping[str, Version]) -> dict[str, Version]:
    """Return what the index has of the stated versions; raises Unavailable."""
    settings = read_index_settings()
    with Fetcher(FetchSettings(certificates=settings.certificates, proxy=settings.proxy)) as fetcher:
        return {n: v for n, v in stated.items() if is_on_index(fetcher, settings.url, n, v)}


def words_of(truth: Path) -> list[list[str]]:
    """Return the groups of words that tell a text's cause, where it can be known."""
    told = json.loads(truth.read_text("utf-8")) if truth.is_file() else {}
    groups = told.get("cause_words") or [] if told.get("knowable", True) else []
    return [[group] if isinstance(group, str) else group for group in groups]


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[`'\"‘’“”*]", "", text.lower().replace("_", "-")).split())


def tells(finding: Finding, cause: Sequence[Sequence[str]]) -> bool:
    """True where a finding has a word of each group."""
    text = _plain(text_of(finding))
    return all(any(_plain(word) in text for word in group) for group in cause)


def is_release(version: Version) -> bool:
    """True for what an index may have: a build of a commit calls itself by the release before it."""
    return not version.is_prerelease and "git" not in (version.local or "")


def blanked(facts: Facts) -> Facts:
    """Return the facts without any version of what is installed."""
    return replace(facts, environment=replace(facts.environment, distributions={}, builds={}, complete=False))


def told_of(findings: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """Yield package and releases of each place that a finding says an error was raised in."""
    for finding in findings:
        for one in finding.evidence:
            if one.fact in (FACT, LAST):
                package, _, rest = one.value.partition(" ")
                yield normalise(package), rest.partition(": ")[0]


def holds(releases: str, version: Version) -> bool | None:
    """Return whether told releases hold a version; None where none are told."""
    if "not told" in releases:
        return None
    public = Version(version.public)
    try:
        if span := _SPAN.match(releases):
            return Version(span[1]) <= public <= Version(span[2])
        if later := _LATER.match(releases):
            return Version(later[1]) <= public
        return SpecifierSet(releases if releases[0] in "<>=!~" else f"=={releases}").contains(public, True)
    except (InvalidSpecifier, InvalidVersion):
        return False


def width(releases: str, package: str, matrix: Matrix) -> int:
    """Return how many minor releases of a package told releases span."""
    known = load_snapshot(matrix.folder).package(package)
    final = [Version(v) for v in known.versions if not Version(v).is_prerelease] if known else []
    return len({v.release[:2] for v in final if holds(releases, v)})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--show", action="store_true", help="name what is not told, or wrongly")
    options = parser.parse_args()
    matrix = load_matrix()
    whole = named = stated = untold = right = 0
    widths = list[int]()
    causes, guarded, certain = Count(), Count(), Count()
    for one in read_texts(options.folders, matrix):
        facts = date_facts(blanked(one.facts), matrix)
        findings = diagnose_facts(facts, matrix, complete=False).findings[:FIRST]
        told = [pair for pair in told_of(findings) if pair[0] in one.raisers]
        whole += 1
        named += bool(told)
        judged = [(name, releases, one.stated[name]) for name, releases in told if name in one.stated]
        answers = [holds(releases, version) for _, releases, version in judged]
        if judged or (one.stated and not told):
            stated += 1
            right += any(answers)
            untold += not any(answers) and None in answers
        for finding in findings if one.cause else ():
            if finding.id == ORIGIN and " because " in finding.summary:
                guarded.add(tells(finding, one.cause))
            if finding.severity is Severity.ERROR and finding.certainty is Certainty.CERTAIN:
                certain.add(tells(finding, one.cause))
        if one.cause:
            causes.add(any(tells(finding, one.cause) for finding in findings))
        widths += [width(r, name, matrix) for (name, r, _), ok in zip(judged, answers, strict=True) if ok]
        if options.show and (not told or (judged and not any(answers))):
            all_told = list(told_of(findings))
            print(f"  {one.name}: {one.raisers} { ({k: str(v) for k, v in one.stated.items()}) }", flush=True)
            print(f"      {all_told} {[f'{f.id}: {f.summary[:100]}' for f in findings]}", flush=True)
    print(
        f"{whole} texts with a traceback: package named {named}; of {stated} that state its version: releases"
        f" told and right {right}, none told {untold}, else {stated - right - untold}"
    )
    if causes.said:
        print(f"cause, by words: {causes}; a library's own condition: {guarded}; certain ones: {certain}")
    if widths:
        print(f"width in minor releases: median {statistics.median(widths)}, most {max(widths)}")


if __name__ == "__main__":
    main()
