"""What the stack's installed distributions require of one another, by their own metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from envdoctor import lazy_re as re
from envdoctor.commands import ANY, commands, install_commands
from envdoctor.facts import Distribution
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.matrix.markers import decide
from envdoctor.matrix.snapshot import STACK
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import package_facts
from envdoctor.rules.pairs import pip_refuses
from envdoctor.rules.ranges import parse_version
from envdoctor.rules.recorded import Demand, marker_environments
from envdoctor.rules.view import View, explained, symptoms
from envdoctor.values import cached_property, dataclass, replace

_EXTRA = re.compile(r"\bextra\b")
_LONGEST = 4096
_RIVALS = 4
"""How many of those that ask for another release are told."""
LOOKED = 60
"""Later releases of an asking distribution that are looked through for one that takes what is there."""
_PLAIN = re.compile(
    r"([A-Za-z0-9][\w.-]*)(?:\[([\w,. -]+)\])?\s?\(?((?:,?\s?(?:[<>]=?|[=!~]=)\s?[\w.*+!]+)*)\)?"
)
"""A requirement without marker and address, as nearly all are: packaging takes twenty times as long."""
_CLAUSE = re.compile(
    r"\s*(?:(python_version|python_full_version)\s*([<>]=?|[!=]=)|(sys_platform|platform_system|os_name|platform_machine|"
    r"implementation_name|platform_python_implementation)\s*([!=]=))"
    r"\s*(?:'([\w.]+)'|\"([\w.]+)\")\s*"
)
"""A marker's comparison."""

_DECLARED_ALONE = frozenset({("torch", "future")})
"""Requirements that no file asks for on Python 3: torch 1.1 to 1.4 (wheel:torch-1.3.0)."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """A requirement that the environment does not meet; `other` None: not installed at all."""

    by: Distribution
    demand: Demand
    other: Distribution | None


def check_requirements(view: View) -> Iterable[Finding]:
    """Find what distributions require and do not get, each such distribution once."""
    asked = Asked.of(view)
    if not any(asked.demands.values()):
        raise Skip("no version of which the requirements are known is told")
    reached = asked.reached(STACK)
    unmet: dict[str, list[Unmet]] = {}
    for one in find_unmet(view, asked):
        unmet.setdefault(one.demand.name, []).append(one)
    told = explained(symptoms(view, "SYM-PIP-INCOMPATIBLE"))
    for name, group in unmet.items():
        group.sort(key=lambda one: (not _is_fatal(view, one), one.by.name not in STACK))
        matters = name in STACK or any(one.by.name in reached for one in group)
        found = replace(_finding(view, name, group, matters), explains=told)
        yield replace(found, cause=f"{found.cause}{_rivals(asked, name, group)}{_brought(view, group[0])}")


@dataclass(frozen=True)
class Asked:
    """What each listed distribution asks for, the extras that others ask of it counted."""

    demands: Mapping[str, Sequence[Demand]]

    @cached_property
    def exactly(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """By the name of what is asked for: who asks for one release of it, and how."""
        found: dict[str, list[tuple[str, str]]] = {}
        for owner, demands in self.demands.items():
            for one in demands:
                if "==" in one.specifier:
                    found.setdefault(one.name, []).append((owner, one.specifier))
        return found

    @classmethod
    def of(cls, view: View) -> Asked:
        """Read the demands of all that are listed with a version."""
        listed = [d for d in view.facts.environment.distributions.values() if d.version]
        environment = next(iter(marker_environments(view.facts)))
        told = _told_demands(view)
        demands = {d.name: _with_told(_demands(view, environment, d), told.get(d.name, [])) for d in listed}
        extras: dict[str, set[str]] = {}
        for demand in [one for found in demands.values() for one in found if one.extras]:
            extras.setdefault(demand.name, set()).update(demand.extras)
        asked = view.asked_of_installers
        for row in view.matrix.rows(tables.PackageTraitRow):
            if row.engine and row.name in demands:
                parts = any(view.facts.distribution(one) for one in row.engine_parts)
                if parts or f"{row.name}[{row.engine}]" in asked:
                    extras.setdefault(row.name, set()).add(row.engine)
        for d in listed:
            if names := extras.get(d.name):
                demands[d.name] = list(_demands(view, environment, d, tuple(sorted(names))))
        return cls(demands)

    def reached(self, roots: Iterable[str]) -> set[str]:
        """Return the roots that are listed and all that they come to ask for."""
        found: set[str] = set()
        ahead = [name for name in roots if name in self.demands]
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                ahead.extend(one.name for one in self.demands.get(name, ()))
        return found


def find_unmet(view: View, asked: Asked) -> Iterator[Unmet]:
    """Yield the requirements of the distributions that are missing or at another version."""
    for name, demands in asked.demands.items():
        by = view.facts.environment.distributions.get(name)
        if by is None:  # a sent file may file one under another's name
            continue
        for demand in demands:
            other = view.facts.distribution(demand.name)
            if other is None and view.installed(demand.name) is False:
                yield Unmet(by, demand, None)
            elif other is not None and not demand.is_met_by(other):
                yield Unmet(by, demand, other)


def _demands(
    view: View, environment: Mapping[str, str], distribution: Distribution, extras: tuple[str, ...] = ()
) -> Iterator[Demand]:
    """Yield what a distribution asks for: its own metadata where they are told, else what is recorded."""
    if not distribution.requires and view.facts.origin != "probe":
        found = view.recorded.demands(distribution, extras) if view.recorded else ()
        yield from (one for one in found if one.name != "torch" or not view.own_torch(distribution.name))
        return
    for line in distribution.requires:
        if demand := _stated(line, environment, extras):
            yield demand


def _with_told(recorded: Iterable[Demand], told: Sequence[Demand]) -> list[Demand]:
    """Return what is on record, and what an installer says beside it."""
    found = list(recorded)
    return [*found, *(one for one in told if all(one.name != known.name for known in found))]


def _told_demands(view: View) -> Mapping[str, list[Demand]]:
    """Return what an installer's own lines say that distributions ask for: their markers hold there."""
    told: dict[str, list[Demand]] = {}
    for symptom in symptoms(view, "SYM-PIP-INCOMPATIBLE"):
        asking, line = symptom.captured.get("name", ""), symptom.captured.get("required", "")
        if asking and (demand := _stated(line.partition(";")[0].strip(), {}, ())):
            told.setdefault(normalise(asking), []).append(demand)
    return told


def _stated(line: str, environment: Mapping[str, str], extras: tuple[str, ...]) -> Demand | None:
    """Return what a line of metadata asks for; None where its marker does not hold or it is none."""
    demand, clauses = _plainly(line)
    if demand is not None and clauses is not None:
        return demand if not clauses or any(decide(one, environment) for one in clauses) else None
    if len(line) > _LONGEST or (not extras and _EXTRA.search(line.partition(";")[2])):
        return None
    from packaging.requirements import Requirement

    try:
        read = Requirement(line)
        holds = read.marker is None or any(
            read.marker.evaluate({**environment, "extra": extra}) for extra in ("", *extras)
        )
    except (ValueError, RecursionError):
        return None
    return Demand(normalise(read.name), str(read.specifier), tuple(read.extras)) if holds else None


@lru_cache(maxsize=8192)
def _plainly(line: str) -> tuple[Demand | None, tuple[Any, ...] | None]:
    """Return what a line asks for, and its marker's comparisons of which one must hold; None: more than that.

    Many distributions ask for the same, and facts that changes lead to are judged again.
    """
    plain, _, marker = line.partition(";")
    clauses = [_CLAUSE.fullmatch(clause) for clause in marker.split(" or ")] if marker else []
    match = _PLAIN.fullmatch(plain.rstrip())
    if match is None or not all(clauses):
        return None, None
    named = tuple(match[2].replace(" ", "").split(",")) if match[2] else ()
    told = tuple((f"${c[1] or c[3]}", c[2] or c[4], c[5] or c[6]) for c in clauses if c)
    return Demand(normalise(match[1]), match[3], named), told


def check_pre_releases(view: View) -> Iterable[Finding]:
    """Find pre-releases of which it is not on record what they require: nothing was judged by it."""
    for one in view.facts.environment.distributions.values():
        told = one.version or ""
        version = None if told.replace(".", "").isdigit() else parse_version(told)
        if version is None or version.pre is None or version.local or one.requires:
            continue
        if view.recorded is None:
            raise Skip("the package facts are missing")
        package = package_facts(view, one.name)
        place = package.position.get(version.public, -1) if package else -1
        if package is not None and (place < 0 or package.row_of(place) < 0):
            yield _pre_release(one, f"{one.name}>={version.base_version}")


def _pre_release(one: Distribution, final: str) -> Finding:
    return Finding(
        id="PRE-RELEASE-UNKNOWN",
        severity=Severity.NOTE,
        summary=f"{one.name} {one.version} is a pre-release, and what it requires is not on record: whether"
        " what is beside it fits is not known",
        cause="Installers take a pre-release only where it is asked for, and releases may require other"
        " versions of the same packages than it does.",
        evidence=(Evidence(one.name, one.version or "", one.source),),
        remedies=(Remedy(f"Take the release, where nothing asks for this one: pip install '{final}'."),),
        certainty=Certainty.CERTAIN,
        sources=("https://packaging.python.org/en/latest/specifications/version-specifiers/",),
    )


def _finding(view: View, name: str, group: Sequence[Unmet], matters: bool) -> Finding:
    """Return one finding of a distribution that several others ask for; the gravest demand speaks first.

    It is worth a warning where it `matters`: where the stack comes to it.
    """
    first = group[0]
    state = "is not installed" if first.other is None else f"is at {first.other.told}"
    pins = {name: _joined_specifier(group)}
    owners = list(dict.fromkeys(_owner(one.by) for one in group))
    return Finding(
        id="REQUIREMENT-UNMET",
        severity=_severity(view, first, matters),
        summary=f"{owners[0]} requires {_wanted(name, first)}, which {state}"
        + (f"; {_counted(owners[1:])} too" if owners[1:] else ""),
        cause=f"The metadata of {owners[0]} states the requirement; "
        + (
            "without it what needs it fails."
            if first.other is None
            else f"it was built for that{_moved(first)}."
        ),
        evidence=(
            *(
                Evidence(one.by.name, f"{_owner(one.by)} requires {_wanted(name, one)}", one.by.source)
                for one in group
            ),
            _state(name, first.other),
        ),
        remedies=(
            Remedy(f"Install the {name} that is required.", install_commands(pins), pins),
            *_raised(view, first),
            *_apart(view, first),
        ),
        sources=(f"wheel:{first.by.name}-{first.by.version}",),
        follows=(f"{first.by.name.upper()}-{name.upper()}", f"{first.by.name.upper()}-MINIMUM"),
    )


def _moved(unmet: Unmet) -> str:
    """Say what must have happened since to a distribution that another one is pinned to."""
    pinned = str(unmet.demand.specifier)
    asked = parse_version(pinned.removeprefix("==")) if pinned.startswith("==") else None
    have = parse_version(unmet.other.version) if unmet.other and unmet.other.version else None
    if asked is None or have is None or unmet.other is None:
        return ""
    how = "upgraded" if have.release > asked.release else "downgraded"
    return f"; what was installed later {how} (replaced) {unmet.other.name}"


def _rivals(asked: Asked, name: str, group: Sequence[Unmet]) -> str:
    """Say who asks for another release of the distribution than those whose requirement is not met."""
    unmet = {one.by.name for one in group}
    wanted = {one.demand.specifier for one in group}
    others = (
        f"{owner} requires {name}{specifier}"
        for owner, specifier in asked.exactly.get(name, ())
        if owner not in unmet and specifier not in wanted
    )
    rivals = list(dict.fromkeys(others))[:_RIVALS]
    return f" Against it stands: {', '.join(rivals)}." if rivals else ""


def _brought(view: View, unmet: Unmet) -> str:
    """Say what an installer was asked for, where its own lines tell that it left a requirement unmet."""
    if unmet.other is None or not symptoms(view, "SYM-PIP-INCOMPATIBLE"):
        return ""
    theirs = {unmet.by.name, unmet.other.name}
    asked = [one for one in view.asked_of_installers if normalise(one.partition("[")[0]) not in theirs]
    if not asked:
        return ""
    return (
        f" The installer was asked for {', '.join(asked[:_RIVALS])}, whose own requirements brought"
        f" {unmet.other.name} {unmet.other.told}: the two pin different releases of it."
    )


def _raised(view: View, unmet: Unmet) -> Iterator[Remedy]:
    """Offer the nearest later releases of the asking distribution that take what is installed."""
    by, other = unmet.by, unmet.other
    package = package_facts(view, by.name) if other and view.recorded else None
    place = package.position.get((by.version or "").partition("+")[0]) if package else None
    if package is None or place is None or other is None or view.recorded is None:
        return
    first = ""
    for version in package.versions[place + 1 : place + 1 + LOOKED]:
        if package.prereleases >> package.position[version] & 1:
            continue
        demands = list(view.recorded.demands(replace(by, version=version)))
        asked = [one for one in demands if one.name == unmet.demand.name]
        takes = bool(asked) and all(one.is_met_by(other) for one in asked)
        if first and not takes:
            yield _raise_to(unmet, first, f",<{version}" if asked else "")
            return
        first = first or (version if takes else "")
    if first:
        yield _raise_to(unmet, first, "")


def _raise_to(unmet: Unmet, first: str, below: str) -> Remedy:
    told = unmet.other.told if unmet.other else ""
    pins = {unmet.by.name: f">={first}{below}"}
    text = f"Or raise {unmet.by.name}: {first} takes {unmet.demand.name} {told}."
    return Remedy(text, install_commands(pins), pins)


def _apart(view: View, unmet: Unmet) -> Iterator[Remedy]:
    """Where an installer has just told of it, two programs want different releases of one package."""
    if unmet.other is not None and symptoms(view, "SYM-PIP-INCOMPATIBLE"):
        yield Remedy(
            f"Or give {unmet.by.name} an environment of its own (or uninstall it, where nothing needs it).",
            commands("python -m venv {}", f"{unmet.by.name}-env"),
        )
    if _brought(view, unmet):
        yield Remedy(
            "Or install what was asked for without its requirements (--no-deps; from source or in the image"
            " that its project gives for this accelerator), where what is there already serves it."
        )


def _owner(distribution: Distribution) -> str:
    return f"{distribution.name} {distribution.version or ''}".strip()


def _wanted(name: str, unmet: Unmet) -> str:
    return f"{name}{unmet.demand.specifier}"


def _counted(owners: Sequence[str]) -> str:
    return owners[0] if len(owners) == 1 else f"{len(owners)} others ask for it"


def _joined_specifier(group: Sequence[Unmet]) -> str:
    """Return what all of them take together."""
    told = {one.demand.specifier for one in group}
    if len(told) == 1 and "," not in (only := told.pop()):
        return only or ANY
    from envdoctor.specifiers import SpecifierSet

    joined = SpecifierSet()
    for one in group:
        joined &= SpecifierSet(one.demand.specifier)
    return str(joined) or ANY


def _state(name: str, other: Distribution | None) -> Evidence:
    if other is None:
        return Evidence(name, "not installed", "the whole list of distributions")
    return Evidence(name, other.told, other.source)


def _severity(view: View, unmet: Unmet, matters: bool) -> Severity:
    if unmet.other is None and (unmet.by.name, unmet.demand.name) in _DECLARED_ALONE:
        return Severity.NOTE
    refused = unmet.other is not None and pip_refuses(view, unmet.by.name, unmet.demand.name)
    refused = refused and (matters or _is_all_that_is_told(view))
    graver = refused or _is_fatal(view, unmet)
    return Severity.ERROR if graver else Severity.WARNING if matters else Severity.NOTE


def _is_all_that_is_told(view: View) -> bool:
    """True where the text has no line of trouble but the installer's own about packages that do not fit."""
    told = explained(symptoms(view, "SYM-PIP-INCOMPATIBLE"))
    return all(set(error.symptoms) & set(told) for error in view.facts.errors)


def _is_fatal(view: View, unmet: Unmet) -> bool:
    """What the stack misses fails at import, but for CUDA's wheels, which a system's own may replace."""
    name = unmet.demand.name
    if unmet.other is None:
        return unmet.by.name in STACK and not name.startswith(("nvidia-", "cuda-", "triton"))
    companion = view.companions.get(unmet.by.name)
    if companion and companion.strict:
        return name == "torch" and not _is_same_minor(unmet)
    traits = view.matrix.rows(tables.PackageTraitRow)
    return any(name in row.refuses for row in traits if row.name == unmet.by.name)


def _is_same_minor(unmet: Unmet) -> bool:
    """True when another patch release of the wanted minor is installed: its symbols are the same."""
    from envdoctor.specifiers import SpecifierSet

    installed = parse_version(unmet.other.version) if unmet.other and unmet.other.version else None
    wanted = SpecifierSet(unmet.demand.specifier)
    exact = [parse_version(s.version) for s in wanted if s.operator == "=="]
    return installed is not None and any(v and v.release[:2] == installed.release[:2] for v in exact)


RULES = (
    Rule(
        "REQUIREMENT-UNMET",
        "each distribution of the stack finds what its metadata requires",
        check_requirements,
    ),
    Rule(
        "PRE-RELEASE-UNKNOWN",
        "no pre-release is installed of which the requirements are not known",
        check_pre_releases,
    ),
)
