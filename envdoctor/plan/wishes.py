"""Which findings a plan is made for, and what each of them wishes changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from envdoctor import lazy_re as re
from envdoctor.commands import ANY
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.matrix import Matrix, tables
from envdoctor.plan.advice import BACKEND, Advice, advised, installs_plainly
from envdoctor.rules.calendar import package_facts
from envdoctor.rules.view import View
from envdoctor.solve.mending import Demands, covers, knows_release
from envdoctor.values import dataclass

UNMET = "REQUIREMENT-UNMET"
SMALL = frozenset({UNMET, "INSTALL-DAMAGED"})
"""What is worth mending as a note, too, where nothing graver stands."""
UNEXPLAINED = "UNEXPLAINED-ERROR"
_CONDITION = re.compile(
    r"(?:Or,? )?(?:If|Where|With|When|Asked for)\b|[^\n]{0,300}[,:;] (?:where|if|when) ", re.IGNORECASE
)
"""How words begin that leave it to their reader whether a remedy is meant for them."""
_OF_A_CUDA = re.compile(r"(nvidia-[a-z-]+)-cu\d+")


class Leeway(Enum):
    """What may answer a finding beside its remedies: other releases of what its evidence shows."""

    NONE = 0
    UNNAMED = 1
    """Of packages that no remedy names."""
    ALL = 2


@dataclass(frozen=True, slots=True)
class Wish:
    """What one finding wishes: the alternatives of its remedies that an owner can follow, best first."""

    finding: Finding
    ways: tuple[Advice, ...]

    @property
    def by_hand(self) -> bool:
        """True when words tell what to do, and no package or setting does it."""
        return bool(self.ways) and self.ways[0].by_hand

    @property
    def packages(self) -> bool:
        """True when the best of its ways changes packages."""
        return bool(self.ways) and self.ways[0].packages


def considered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return what a plan is made for: errors and warnings that are not mere guesses, else what is left."""
    grave = [f for f in findings if f.severity is not Severity.NOTE and f.id != UNEXPLAINED]
    sure = [f for f in grave if f.certainty is not Certainty.UNCERTAIN]
    if any(f.severity is Severity.ERROR for f in sure):
        return tuple(sure)
    guesses = [f for f in grave if f.certainty is Certainty.UNCERTAIN and f.severity is Severity.ERROR]
    small = [f for f in findings if f.id in SMALL and f.severity is Severity.NOTE]
    return tuple([*sure, *guesses] or small)


def wishes_of(findings: Sequence[Finding]) -> list[Wish]:
    """Return a wish of each finding, worst first, but for those that an earlier one's answer covers."""
    wishes: list[Wish] = []
    answered: set[str] = set()
    causes: set[str] = set()
    for finding in findings:
        ways = _ways(finding)
        if finding.consequence_of in causes or (finding.explains and set(finding.explains) <= answered):
            continue
        wishes.append(Wish(finding, ways))
        if ways:
            answered |= set(finding.explains)
            causes.add(finding.id)
    return wishes


def _ways(finding: Finding) -> tuple[Advice, ...]:
    """Return what can be followed: nothing installed where a word in one's own code is best."""
    ways = advised(finding)
    if ways and ways[0].by_hand and finding.certainty is not Certainty.UNCERTAIN:
        return (ways[0],)
    theirs = bool(ways) and ways[0].administrators  # a way around in a setting is no cure beside theirs
    fit = [one for place, one in enumerate(ways) if not (place and _CONDITION.match(one.remedy.text))]
    return tuple(one for one in fit if (one.packages if theirs else one.followed))


def demands_of(
    wishes: Sequence[Wish],
    view: View,
    matrix: Matrix,
    keep: Sequence[str],
    newest: bool,
    leeway: Leeway,
) -> Demands:
    """Return what the wishes demand of the solver together."""
    pins: dict[str, str] = {}
    either: list[tuple[Mapping[str, str], ...]] = []
    met: set[tuple[str, str]] = set()
    gone: set[str] = set()
    wrong = {w.finding.evidence[-1].fact for w in wishes if w.finding.id == UNMET} & _versions(view)
    for wish in wishes:
        pairs = set(_pairs(wish.finding, view, matrix))
        if pairs or _asked_by(wish.finding) <= wrong:  # what moves itself asks for other things then
            met |= pairs
            continue
        gone |= {name for name in wish.ways[0].gone if view.facts.distribution(name)}
        if wish.ways[0].packages and _open(wish, matrix):  # an installer's: another way would come beside it
            known = {name: spec for name, spec in wish.ways[0].pins.items() if covers(matrix, name)}
            pins |= {name: _both(pins.get(name), spec) for name, spec in known.items()}
            continue
        ways = [way for way in (_followable(one, view, matrix) for one in wish.ways if one.packages) if way]
        if not ways:
            continue
        ways += list(_moved(wish, view, matrix, leeway)) if leeway is not Leeway.NONE else []
        shared = set.intersection(*(set(way) for way in ways)) or set(ways[0])
        usable = [way for way in ways if way.keys() <= _versions(view) | shared]
        if len(usable) > 1:
            either.append(tuple(usable))
            needed = dict.fromkeys((shared & usable[0].keys()) - _versions(view), ANY)
        else:
            needed = dict(ways[0])
        pins |= {name: _both(pins.get(name), spec) for name, spec in needed.items()}
    return Demands(pins, tuple(either), frozenset(met), frozenset(gone), frozenset(keep), newest)


def open_pins(wishes: Sequence[Wish], matrix: Matrix) -> dict[str, str]:
    """Return what is demanded of packages whose releases are not known: an installer chooses."""
    found: dict[str, str] = {}
    for wish in wishes:
        for name, spec in _open(wish, matrix).items():
            found[name] = _both(found.get(name), spec)
    return found


def _open(wish: Wish, matrix: Matrix) -> dict[str, str]:
    """Return what the best way of a wish asks of packages whose releases are not known."""
    best = wish.ways[0].pins if wish.ways else {}
    return {name: spec for name, spec in best.items() if not covers(matrix, name)}


def once_more(wishes: Sequence[Wish], view: View) -> tuple[str, ...]:
    """Return the packages that are to be installed again as they are.

    Those are among them that share files with what goes: a CUDA library's package for another CUDA.
    """
    listed = view.facts.environment.distributions
    ways = [wish.ways[0] for wish in wishes if wish.ways]
    named = [n for way in ways for n in way.again if n in listed or not view.complete]
    gone = {match[1]: name for way in ways for name in way.gone if (match := _OF_A_CUDA.fullmatch(name))}
    for name in listed:
        match = _OF_A_CUDA.fullmatch(name)
        if match and match[1] in gone and gone[match[1]] != name:
            named.append(name)
    return tuple(dict.fromkeys(named))


def _both(one: str | None, other: str) -> str:
    if one in (None, ANY) or one == other:
        return other
    return one if other == ANY else f"{one},{other}"


def _versions(view: View) -> set[str]:
    return {name for name, one in view.facts.environment.distributions.items() if one.version}


def _followable(way: Advice, view: View, matrix: Matrix) -> Mapping[str, str]:
    """Return pins that the solver can follow; none of them where it knows too little of one.

    Another build of a package that a text does not tell of is no new package: which release, is not known.
    """
    loose = any(spec == ANY and name not in _versions(view) for name, spec in way.pins.items())
    blind = loose and not view.complete and not installs_plainly(way.remedy)
    known = not blind and all(covers(matrix, name) for name in way.pins)
    return {**way.pins, **_of_build(way, view, matrix)} if known else {}


def _of_build(way: Advice, view: View, matrix: Matrix) -> Mapping[str, str]:
    """Return torch in the build that a command names: the release that is told, else the newest with it."""
    named = next((match[1] for line in way.remedy.commands if (match := BACKEND.search(line))), "")
    if not named:
        return {}
    from envdoctor.specifiers import SpecifierSet

    own = [SpecifierSet(r.torch) for r in matrix.rows(tables.TorchVariantRow) if r.variant == named]
    torch = package_facts(view, "torch") if own and "torch" in way.pins else None
    if torch is None:
        return {}
    wanted = SpecifierSet(way.pins["torch"])
    having = [v for v in torch.versions if wanted.contains(v) and any(spec.contains(v) for spec in own)]
    told = (view.version_text("torch") or "").partition("+")[0]
    return {"torch": f"=={told if told in having else having[-1]}+{named}"} if having else {}


def _moved(wish: Wish, view: View, matrix: Matrix, leeway: Leeway) -> Iterator[Mapping[str, str]]:
    """Yield other releases of the packages that a finding shows."""
    pinned = {name for way in wish.ways for name in way.pins} if leeway is Leeway.UNNAMED else set()
    for name in dict.fromkeys(evidence.fact for evidence in wish.finding.evidence):
        if name in _versions(view) - pinned and covers(matrix, name):
            one = view.facts.distribution(name)
            yield {name: f"!={(one.version or '').partition('+')[0]}" if one else ANY}


def _asked_by(finding: Finding) -> set[str]:
    """Return the packages whose unmet requirement a finding tells; something that is none otherwise."""
    return {e.fact for e in finding.evidence[:-1]} if finding.id == UNMET else {""}


def _pairs(finding: Finding, view: View, matrix: Matrix) -> Iterator[tuple[str, str]]:
    """Yield the requirements that a finding tells unmet, where the releases of all of them are known.

    Either side may then move; what is not known is mended as the finding's remedy says.
    """
    if finding.id != UNMET:
        return
    owners, name = [e.fact for e in finding.evidence[:-1]], finding.evidence[-1].fact
    known = [view.facts.distribution(owner) for owner in owners]
    if covers(matrix, name) and all(one and knows_release(matrix, one.name, one.version) for one in known):
        yield from ((owner, name) for owner in owners)
