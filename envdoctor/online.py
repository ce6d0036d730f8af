"""What the package index tells: the releases in which a traceback's lines stand, what a plan downloads."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from envdoctor.errors import InputError, Unavailable
from envdoctor.facts import Distribution, Facts, Frame
from envdoctor.findings import Diagnosis, Move
from envdoctor.matrix import Matrix
from envdoctor.matrix.snapshot import STACK
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.ranges import parse_version

if TYPE_CHECKING:
    from envdoctor.harvest.dating import Sight, Stood

_SITE = re.compile(r"(?:site|dist)-packages[/\\](?:[^/\\]{1,200}\.egg[/\\])?(.{1,300}\.py)$")
SOURCE = "the traceback's lines (inferred)"
NEAR = "releases near the traceback's lines (inferred)"
SECONDS = 30.0
"""How long the index is asked, at most."""
LIBRARIES = 4


def date_facts(facts: Facts, matrix: Matrix) -> Facts:
    """Return the facts with a range of releases for each library whose files a traceback quotes.

    A stated version stays; where the lines stand in other releases a note says so. What could not be read in
    time is said in a note, too.
    """
    from platformdirs import user_cache_path

    from envdoctor.fetch import Fetcher, FetchSettings
    from envdoctor.harvest.dating import Dater
    from envdoctor.harvest.index_settings import read_index_settings

    sights = library_sights(facts, matrix)
    if not sights:
        return facts
    settings = read_index_settings()
    deadline = time.monotonic() + SECONDS
    with Fetcher(FetchSettings(certificates=settings.certificates, proxy=settings.proxy)) as fetcher:
        dater = Dater(fetcher, settings.url, user_cache_path("envdoctor") / "lines", deadline)
        for library, some in list(sights.items())[:LIBRARIES]:
            try:
                facts = with_releases(facts, library, dater.releases(library, some))
            except Unavailable as error:
                facts = replace(facts, notes=(*facts.notes, f"{library}: not dated: {error}"))
    return facts


def with_download(diagnosis: Diagnosis, matrix: Matrix) -> Diagnosis:
    """Return a diagnosis whose plan tells what the index says of downloads that are not on record."""
    plan = diagnosis.plan
    if plan is None or plan.download is None or not plan.download.unknown:
        return diagnosis
    from envdoctor.plan.downloads import weigh_again

    return replace(diagnosis, plan=weigh_again(plan, _scales(diagnosis.facts, matrix, plan.download.unknown)))


def _scales(facts: Facts, matrix: Matrix, known: Mapping[str, str]) -> Callable[[Move], int | str]:
    """Return what asks the index for the size of a move's file; where it is down it is asked once.

    Conda's packages are not on it, and without a machine no file can be chosen: then `known` says why.
    """
    from envdoctor.fetch import NotFound
    from envdoctor.plan.conda import is_condas
    from envdoctor.solve.pylock import fitting, index_reader
    from envdoctor.solve.reasons import Pin
    from envdoctor.target.file_judge import supposed_target

    target, down = supposed_target(facts, matrix), list[str]()
    read = functools.cache(lambda: index_reader(None, offline=False))

    def weigh(move: Move) -> int | str:
        if down or is_condas(facts.environment, move.name) or not facts.host.os.get():
            return down[0] if down else known[move.name]
        version, _, label = (move.new or "").partition("+")
        pin = Pin(move.name, version, label or None, ())
        try:
            files = list(read()(pin))
        except NotFound:
            return "the index has no such package"
        except (InputError, Unavailable) as error:
            down.append(str(error))
            return down[0]
        try:
            return max(
                filter(None, (file.size for file in fitting(pin, files, target))),
                default="its index tells no size",
            )
        except Unavailable as error:
            return str(error)

    return weigh


def library_sights(facts: Facts, matrix: Matrix) -> Mapping[str, list[Sight]]:
    """Return the quoted lines of installed packages in the tracebacks, by distribution, innermost first."""
    found: dict[str, list[Sight]] = {}
    for error in reversed(facts.errors):
        for top, sight in sights_of(error.frames):
            found.setdefault(distribution_of(matrix, top), []).append(sight)
    return found


def with_releases(facts: Facts, library: str, stood: Stood) -> Facts:
    """Return the facts with what the lines tell of a library; where its version is stated, only a note."""
    if not stood.releases:
        return facts
    known = facts.distribution(library)
    if known is not None and known.version:
        version = parse_version(known.version)
        if version is None or stood.near or stood.has(version):
            return facts
        note = f"{library}: the traceback's lines are those of {stood.told}, and {known.version} is stated"
        return replace(facts, notes=(*facts.notes, note))
    if stood.near:
        note = f"{library}: no release has the traceback's lines at these numbers: {stood.told} are nearest"
        facts = replace(facts, notes=(*facts.notes, f"{note} (a commit between releases, or a changed file)"))
    dated = Distribution(library, NEAR if stood.near else SOURCE, specifier=stood.specifier)
    distributions = {**facts.environment.distributions, library: dated}
    return replace(facts, environment=replace(facts.environment, distributions=distributions))


def sights_of(frames: Sequence[Frame]) -> Iterator[tuple[str, Sight]]:
    """Yield the frames in packages with the top folder that they stand in, innermost first.

    A package of the stack that runs from where it was built counts, too: images are often made so.
    """
    from envdoctor.harvest.dating import Sight

    for frame in reversed(frames):
        match = _SITE.search(frame.file)
        path = match[1].replace("\\", "/") if match else _built(frame.file.replace("\\", "/").split("/"))
        if path and frame.line:
            yield path.partition("/")[0], Sight(path, frame.line, frame.function, frame.code, match is None)


def _built(parts: Sequence[str]) -> str:
    """Return the path of a file below the last folder that is called as a package of the stack."""
    tops = [place for place, part in enumerate(parts[:-1]) if part.replace("_", "-") in STACK]
    return "/".join(parts[tops[-1] :]) if tops and parts[-1].endswith(".py") else ""
