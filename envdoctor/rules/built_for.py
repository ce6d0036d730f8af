"""Which torch a release of a compiled package was built for, where no wheel that was read tells.

Its own metadata may name one torch; else the release of the package that it is made for does (sglang names
its kernels and its torch exactly); else the newest torch of the day of its upload is likely the one.
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from envdoctor.commands import pip_install
from envdoctor.findings import Remedy
from envdoctor.matrix import tables
from envdoctor.matrix.snapshot import Package
from envdoctor.rules.calendar import finals, newest_on, package_facts, place_of, told_day
from envdoctor.rules.conditions import judge
from envdoctor.rules.ranges import parse_version
from envdoctor.rules.view import View
from envdoctor.values import dataclass

TORCH = "torch"


@dataclass(frozen=True, slots=True)
class Built:
    """The torch of a release, and what tells it."""

    torch: str
    why: str
    named: bool = True
    """False where only the day tells, which tells no patch release."""

    @property
    def spec(self) -> str:
        """What fits it."""
        return f"=={self.torch}" if self.named else _minor(self.torch)


def built_remedies(view: View, package: str, owner: str | None) -> Iterator[Remedy]:
    """Yield the ways to a fitting pair: the torch of the package, the package of the torch, or both anew."""
    version, torch = view.version(package), view.version(TORCH)
    built = _built_for(view, package, version.public, owner) if version else None
    apart = built if built and judge(view, TORCH, _minor(built.torch)).holds is not True else None
    ways = []
    if torch is not None and (built is None or apart):
        release = _release_for(view, package, torch, owner)
        if release and (version is None or release != version.public):
            text = f"Install the {package} that was built for torch {torch.public}."
            ways.append(Remedy(text, pip_install(f"{package}=={release}"), {package: f"=={release}"}))
    if apart:
        way = _of_torch(f"Install the torch that {package} {version} was built for ({apart.why}).", apart)
        ways.insert(0 if apart.named else len(ways), way)
    yield from ways
    if torch is None and version is None and owner:
        yield from _both_anew(view, owner)


def _of_torch(text: str, built: Built) -> Remedy:
    return Remedy(text, pip_install(f"{TORCH}{built.spec}"), {TORCH: built.spec})


def _both_anew(view: View, owner: str) -> Iterator[Remedy]:
    """Yield what the owner's newest release names: which of the two is behind is not told."""
    facts, newest = package_facts(view, owner), next((version for version, _ in finals(view, owner)), None)
    if facts is None or newest is None:
        return
    place = facts.position[newest]
    made_for_it = {row.package for row in view.matrix.rows(tables.ExtensionRow) if row.owner == owner}
    named = {name: _exact(view, facts, place, name) for name in (*sorted(made_for_it), TORCH)}
    pins = {name: f"=={version}" for name, version in named.items() if version}
    if len(pins) > 1:
        requests = (f"{name}{spec}" for name, spec in pins.items())
        yield Remedy(f"Or install what {owner} {newest} names together.", pip_install(*requests), pins)


def _built_for(view: View, package: str, version: str, owner: str | None) -> Built | None:
    facts = package_facts(view, package)
    place = place_of(facts, version) if facts else None
    if facts is None or place is None:
        return None
    if own := _exact(view, facts, place, TORCH):
        return Built(own, f"{package} {version} requires {own}")
    day = facts.days[place]
    if owner and (told := _with_owner(view, package, version, owner, day)):
        return told
    torch = None if owner else newest_on(view, TORCH, day)
    return Built(torch, f"the newest on its day, {told_day(day)}", named=False) if torch else None


def _with_owner(view: View, package: str, version: str, owner: str, day: int) -> Built | None:
    """Return the torch of the owner's release that names this one, else of its first release after it."""
    facts, later = package_facts(view, owner), None
    if facts is None:
        return None
    for release, uploaded in finals(view, owner):
        place = facts.position[release]
        torch = _exact(view, facts, place, TORCH)
        if torch and _exact(view, facts, place, package) == version:
            return Built(torch, f"{owner} {release} names both")
        if uploaded < day:
            break
        later = Built(torch, f"{owner} {release}, the next after it, requires {torch}") if torch else later
    return later


def _release_for(view: View, package: str, torch: Version, owner: str | None) -> str | None:
    """Return the newest release that was built for a minor version of torch."""
    wanted = torch.release[:2]
    for version, _ in finals(view, package):
        built = _built_for(view, package, version, owner)
        if built and Version(built.torch).release[:2] == wanted:
            return version
    return None


def _exact(view: View, package: Package, place: int, name: str) -> str:
    """Return the one release of another package that a release requires; empty where it leaves a choice."""
    row, other = package.row_of(place), package_facts(view, name)
    if row < 0 or other is None:
        return ""
    for extra in ("", *sorted(package.extras(row))):
        for one in package.requirements(row, extra):
            spec = other.spec_text(one.spec) if one.name == name else ""
            if spec.startswith("==") and parse_version(spec[2:]):
                return spec[2:]
    return ""


def _minor(version: str) -> str:
    major, minor = Version(version).release[:2]
    return f"=={major}.{minor}.*"
