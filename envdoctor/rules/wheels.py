"""Requests that an installer could not meet: no such version, or no wheel for this Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from envdoctor import lazy_re as re
from envdoctor.commands import commands, install_commands, pip_install
from envdoctor.errors import Unavailable
from envdoctor.facts import Observed, Symptom
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.snapshot import SDIST, File, Package, Snapshot, load_snapshot, parse_manylinux
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import package_facts
from envdoctor.rules.no_packages import missed_as_a_name, of_a_module, of_python
from envdoctor.rules.passed_over import not_offered, python_refused, refused_by, what_is_offered
from envdoctor.rules.ranges import parse_specifier, parse_version, range_satisfies, version_satisfies
from envdoctor.rules.standard_modules import is_standard
from envdoctor.rules.view import View
from envdoctor.values import dataclass

_PLATFORMS = {"linux": "linux", "windows": "win", "macos": "macosx"}
_NARROW = "x86"
"""The architecture of a Python of 32 bits."""
_SYSTEMS = {"linux": "Linux", "windows": "Windows", "macos": "macOS"}
_FAILED = ("SYM-NO-MATCHING", "SYM-NO-VERSION-FOUND")
_OF_UV = ("SYM-UV-LOCKED-NO-WHEEL", "SYM-UV-NONE-COMPATIBLE")
"""What uv says of one release, be it the Python or the platform that it has no wheel for."""
_FROM = re.compile(r"\(from ([A-Za-z][\w.-]{1,60}?)(?:==\d[\w.]{0,30})?\)")
"""Who requires what pip does not find."""
_CPYTHON = re.compile(r"cp3(\d{1,2})$")
_USUAL_GLIBC = (2, 17)
"""The C library (2.17) that wheels were built for while CentOS 7 lived."""


@dataclass(frozen=True, slots=True)
class Availability:
    """For which Python minors (3.x) a request has wheels, and whether it has a source."""

    minors: frozenset[int]
    any_python: bool
    source: bool
    versions: int
    here: bool
    """Whether some wheel suits the operating system that is told; True where none is."""
    glibc: tuple[int, int]
    """The lowest C library that its wheels for Linux ask for; 0.0 where there are none."""
    linux_alone: bool = False
    """Whether all of its wheels are for Linux, and it has no source."""


_UNKNOWN = Availability(frozenset(), any_python=True, source=False, versions=0, here=True, glibc=(0, 0))
"""What is known of a package that is not on record."""


def check_wheels(view: View) -> Iterable[Finding]:
    """Find why an installer said that nothing matches."""
    told = map(_as_request, view.facts.symptoms)
    seen = [s for s in told if s.id in (*_FAILED, *_OF_UV) and s.captured.get("name")]
    seen.sort(key=lambda symptom: "offered" in symptom.captured)  # of two lines the one that says more
    seen = list({(s.captured["name"], s.captured.get("specifier")): s for s in seen}.values())
    if not seen:
        raise Skip("no failed installation was pasted")
    try:
        snapshot = load_snapshot(view.matrix.folder)
    except Unavailable as error:
        raise Skip(str(error)) from None
    for symptom in seen:
        package = snapshot.package(normalise(symptom.captured["name"]))
        if package is not None and package.crawled:
            yield from _judge(view, snapshot, package, symptom)
        elif symptom.captured.get("offered", "").startswith("none"):
            name = normalise(symptom.captured["name"])
            own = is_standard(view, name.replace("-", "_"))
            if missed := missed_as_a_name(view, name):
                yield of_a_module(name, missed, symptom)
            else:
                yield of_python(name, symptom) if own else _none_offered(view, name, _UNKNOWN, symptom)


def _as_request(symptom: Symptom) -> Symptom:
    """Return uv's line with the names that pip's have: what was asked for, and in which release."""
    if symptom.id not in _OF_UV:
        return symptom
    told = symptom.captured
    name, release = told.get("package") or told.get("name", ""), told.get("version") or told.get("release")
    return replace(symptom, captured={"name": name, "specifier": f"=={release}"})


def system_without_wheel(view: View, name: str) -> str:
    """Return the system that is told where no release of a package has a wheel for it, else nothing."""
    system, package = view.facts.host.os.get() or "", package_facts(view, name)
    if package is None or system not in _PLATFORMS:
        return ""
    have = availability(load_snapshot(view.matrix.folder), package, "", system)
    return "" if have.here or have.source or not have.versions else _SYSTEMS[system]


def has_linux_alone(view: View, name: str) -> bool:
    """True where all wheels of a package are for Linux, there is no source, and no system is told."""
    package = package_facts(view, name) if view.facts.host.os.get() is None else None
    return (
        package is not None and availability(load_snapshot(view.matrix.folder), package, "", None).linux_alone
    )


def _judge(view: View, snapshot: Snapshot, package: Package, symptom: Symptom) -> Iterable[Finding]:
    asked = symptom.captured.get("specifier", "")
    specifier, _, local = asked.partition("+")
    system = view.facts.host.os.get()
    have = availability(snapshot, package, specifier, system)
    if symptom.id in _OF_UV:
        if isinstance(view.facts.environment.python, Observed) and _lacks_wheel(view, have):
            yield _no_wheel(view, package, asked, local, have, symptom)
    elif not have.versions and (whole := availability(snapshot, package, "", system)).here:
        yield _no_such_version(package, asked, symptom)
    elif not have.versions:
        yield _none_offered(view, package.name, whole, symptom)
    elif _lacks_wheel(view, have) and asked:
        yield _no_wheel(view, package, asked, local, have, symptom)
    elif asked and (pythons := refused_by(view, snapshot, package, _mask(package, specifier))):
        yield python_refused(view, package.name, asked, pythons, symptom, _newest_offered(symptom))
    elif symptom.captured.get("offered", "").startswith("none") or not have.here:
        yield _none_offered(view, package.name, have, symptom)
    elif (newest := _newest_offered(symptom)) and specifier:
        lacking = _lacking_systems(snapshot, package, specifier, newest)
        yield not_offered(package.name, asked, newest, lacking, symptom)


def availability(snapshot: Snapshot, package: Package, specifier: str, system: str | None) -> Availability:
    """Return which Pythons the versions inside `specifier` have wheels for.

    Where the operating system is not told, a minor counts only when Linux and Windows both have it (or the
    package has no wheels for one of them at all).
    """
    chosen = _mask(package, specifier)
    systems = [_PLATFORMS[system]] if system in _PLATFORMS else ["linux", "win"]
    minors: dict[str, set[int]] = {name: set() for name in systems}
    any_python = source = False
    here, floors, platforms = len(systems) > 1, set[tuple[int, int]](), set[str]()
    for mask, files in package.file_groups():
        if not mask & chosen:
            continue
        for file in files:
            if file.tag == SDIST:
                source = True
                continue
            python, abi, platform = snapshot.tags[file.tag].split("-")
            if python.startswith("py") or abi == "abi3":
                bounded = snapshot.bounded_minors(file.python)
                any_python |= not bounded
                _add(minors, bounded, platform)
            elif match := _CPYTHON.match(python):
                _add(minors, {int(match[1])}, platform)
            here |= platform == "any" or systems[0] in platform
            platforms.add(platform)
            asked = filter(None, map(parse_manylinux, platform.split(".")))
            floors |= {glibc for glibc, arch in asked if arch == "x86_64"}
    found = [m for m in minors.values() if m]
    joint = frozenset(set.intersection(*found)) if found else frozenset[int]()
    lowest = min(floors, default=(0, 0))
    alone = bool(platforms) and not source and all("linux" in platform for platform in platforms)
    return Availability(joint, any_python, source, chosen.bit_count(), here, lowest, alone)


def _add(minors: Mapping[str, set[int]], found: Iterable[int], platform: str) -> None:
    for system, known in minors.items():
        if (system in platform or platform == "any") and "aarch64" not in platform:
            known.update(found)


def _mask(package: Package, specifier: str) -> int:
    mask = 0
    for place, text in enumerate(package.versions):
        version = parse_version(text)
        if version is not None and version_satisfies(version, specifier):
            mask |= 1 << place
    return mask


def _lacks_wheel(view: View, have: Availability) -> bool:
    return bool(have.minors) and not have.any_python and _python_may_lack(view, have)


def _python_may_lack(view: View, have: Availability) -> bool:
    python = view.facts.environment.python
    if not isinstance(python, Observed):
        return True
    allowed = python_specifier(have.minors)
    version = parse_version(python.value)
    if version is not None:
        return not version_satisfies(version, allowed)
    try:
        return range_satisfies(python.value, allowed) is not True
    except ValueError:
        return True


def python_specifier(minors: Iterable[int]) -> str:
    """Return the range of Python 3 minors, `>=3.8,<3.12`."""
    ordered = sorted(minors)
    return f">=3.{ordered[0]},<3.{ordered[-1] + 1}"


def _no_wheel(
    view: View, package: Package, asked: str, local: str, have: Availability, symptom: Symptom
) -> Finding:
    pythons = python_specifier(have.minors)
    low, high = min(have.minors), max(have.minors)
    told = view.facts.environment.python
    shown = (Evidence("Python", told.value, told.source),) if isinstance(told, Observed) else ()
    variant = f" The variant +{local} lies on PyTorch's own index." if local else ""
    return Finding(
        id="PYTHON-NO-WHEEL",
        severity=Severity.ERROR,
        summary=(
            f"{package.name} {asked.lstrip('=')} has wheels for Python 3.{low} to 3.{high} only: "
            "this Python version has no wheel of it"
        ),
        cause=f"An installer takes only wheels built for the running Python's minor version.{variant}",
        evidence=(*shown, Evidence(symptom.id, symptom.text, symptom.source)),
        remedies=(
            Remedy(
                f"Make an environment with Python 3.{high} (3.{low} to 3.{high} have wheels).",
                commands("uv venv --python 3.{}", high),
                {"python": pythons},
            ),
            _asker_with_wheels(view, package, symptom) or _with_wheels(view, package, asked),
        ),
        certainty=Certainty.CERTAIN if isinstance(told, Observed) else Certainty.LIKELY,
        sources=(f"wheel:{package.name}",),
        explains=(symptom.id,),
        prior=0.8,
    )


def _with_wheels(view: View, package: Package, asked: str) -> Remedy:
    """Offer the releases nearest to what was asked for that have wheels for the Python that is told."""
    having, chosen = _for_python(view, package), _mask(package, asked.partition("+")[0])
    text = f"Take a {package.name} that has wheels for this Python, and what belongs to it"
    later = having >> chosen.bit_length() << chosen.bit_length() if chosen else 0
    earlier = having & ((chosen & -chosen) - 1) if chosen else 0
    if later:
        release = package.versions[(later & -later).bit_length() - 1]
        pins = {package.name: f">={release}"}
    elif earlier:
        release = package.versions[earlier.bit_length() - 1]
        pins = {package.name: f"<={release}"}
    else:
        return Remedy(f"{text}.", commands("envdoctor pin {}", package.name))
    return Remedy(f"{text}: {release} has.", install_commands(pins), pins)


def _asker_with_wheels(view: View, package: Package, symptom: Symptom) -> Remedy | None:
    """Offer the releases of whoever requires it from which on what they require has such wheels."""
    match = _FROM.search(symptom.text)
    asker = package_facts(view, normalise(match[1])) if match else None
    if asker is None:
        return None
    having = _for_python(view, package)
    own, first = _for_python(view, asker) or -1, None  # -1: without wheels for any, it is built
    for place in reversed(range(len(asker.versions))):
        row = asker.row_of(place) if asker.finals >> place & 1 else -1
        needs = [one.spec for one in asker.requirements(row) if one.name == package.name] if row >= 0 else []
        if needs and not (own >> place & 1 and all(package.spec_mask(spec) & having for spec in needs)):
            break
        first = place if needs else first
    if first is None:
        return None
    release = asker.versions[first]
    text = f"Take a {asker.name} whose {package.name} has wheels for this Python: from {release} on."
    return Remedy(text, install_commands({asker.name: f">={release}"}), {asker.name: f">={release}"})


def _for_python(view: View, package: Package) -> int:
    """Return the final releases that have wheels for the Python that is told; none where it is not told."""
    python = parse_version(str(view.facts.environment.python.get()))
    if python is None or python.major != 3:
        return 0
    snapshot, found = load_snapshot(view.matrix.folder), 0
    for mask, files in package.file_groups():
        if any(_is_for(snapshot, file, python.minor) for file in files if file.tag != SDIST):
            found |= mask
    return found & package.finals


def _is_for(snapshot: Snapshot, file: File, minor: int) -> bool:
    """True for a wheel that a Python 3 of that minor takes."""
    python, abi, _ = snapshot.tags[file.tag].split("-")
    match = _CPYTHON.match(python)
    if match is None and "py3" not in python:  # of Python 2, or of another implementation
        return False
    if match and (int(match[1]) > minor or (abi != "abi3" and int(match[1]) != minor)):
        return False
    asked = snapshot.python(file.python)[0] if file.python >= 0 else ""
    return not asked or parse_specifier(asked).contains(f"3.{minor}.0")


def _since(view: View, name: str) -> str:
    """Return from which release on a package has wheels for the Python that is told; empty where unknown."""
    package, python = package_facts(view, name), parse_version(str(view.facts.environment.python.get()))
    having = _for_python(view, package) if package else 0
    if package is None or python is None or not having:
        return ""
    release = package.versions[(having & -having).bit_length() - 1]
    return (
        f"Python 3.{python.minor} begin with {name} {release}: an index or mirror of before that, or an"
        f" older request, offers none (take Python 3.{python.minor - 1}, or a newer {name})"
    )


def _earlier_python(view: View) -> Iterator[Remedy]:
    """Offer the Python before the one that is told, for which earlier releases have wheels, too."""
    python = parse_version(str(view.facts.environment.python.get()))
    if python is not None:
        minor = python.minor - 1
        text = f"Where the index or request ends before those: make an environment with Python 3.{minor}."
        yield Remedy(text, commands("uv venv --python 3.{}", minor), {"python": f"<3.{python.minor}"})


def _middle_python(minors: frozenset[int]) -> Iterator[Remedy]:
    """Offer a Python that is neither new nor old among those that have wheels."""
    if minors:
        middle = (min(minors) + max(minors)) // 2
        text = f"Make an environment with a Python that is neither new nor old: 3.{middle}."
        yield Remedy(text, commands("uv venv --python 3.{}", middle), {"python": python_specifier(minors)})


def _newest_offered(symptom: Symptom) -> str:
    """Return the newest release that an installer saw, as it lists them."""
    offered = [text.strip() for text in symptom.captured.get("offered", "").split(",")]
    known = {version: text for text in offered if (version := parse_version(text))}
    return known[max(known)] if known else ""


def _lacking_systems(snapshot: Snapshot, package: Package, specifier: str, newest: str) -> str:
    """Return the systems for which what is asked has no file, and the newest release that is offered has."""
    return " and ".join(
        words
        for system, words in _SYSTEMS.items()
        if not _suits(availability(snapshot, package, specifier, system))
        and _suits(availability(snapshot, package, f"=={newest}", system))
    )


def _suits(have: Availability) -> bool:
    return have.here or have.source


def _none_offered(view: View, name: str, have: Availability, symptom: Symptom) -> Finding:
    """The package is there, and an installer saw no release at all: its Python, its platform or its index."""
    minors = have.minors if not have.any_python else frozenset[int]()
    wheels = f"; its wheels are for Python 3.{min(minors)} to 3.{max(minors)}" if minors else ""
    system = view.facts.host.os.get()
    may_lack = bool(minors) and _python_may_lack(view, have)
    since = "" if may_lack else _since(view, name)
    if have.glibc > _USUAL_GLIBC:
        wheels += f", and on Linux for glibc {_dotted(have.glibc)} or newer" if wheels else ""
    summary = (
        f"no release of {name} was offered to pip (from versions: none): none has a file"
        f" for this Python version or platform, or the index that it asked has none{wheels}"
    )
    if since:
        summary += f"; those for {since}"
    if system is None and have.linux_alone:
        summary += "; they are for Linux alone: on Windows and macOS there is none"
    newest = _newest_offered(symptom)
    if not have.here:
        which = f"{name}{symptom.captured['specifier']}" if newest else f"no release of {name}"
        lacks = "has no wheel" if newest else "has a wheel"
        summary = f"{which} {lacks} for {_SYSTEMS[system or '']} (this platform)"
    elif minors and view.facts.host.arch.get() == _NARROW:
        summary = f"no release of {name} has a wheel for a Python of 32 bits (32-bit), which is the one here"
    return Finding(
        id="INDEX-OFFERS-NONE",
        severity=Severity.ERROR,
        summary=summary,
        cause="A Python that has just come out gets wheels weeks later, one that is too old gets none any"
        " more, a 32-bit one never; and behind a mirror, another --index-url or without a network pip sees"
        " nothing.",
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            *([what_is_offered(name, newest)] if newest else []),
            *_another_system(have, system),
            *_wide_python(view, bool(minors), system),
            *(_middle_python(minors) if may_lack else _newer_system(have, system)),
            *(_earlier_python(view) if since and view.facts.host.arch.get() != _NARROW else ()),
            Remedy(
                "See which Python and which index pip uses.",
                ("python -VV", "pip --version", "pip config list"),
            ),
        ),
        certainty=Certainty.LIKELY,
        sources=(f"wheel:{name}",),
        explains=("SYM-NO-VERSION-FOUND", "SYM-NO-MATCHING"),
        prior=0.7,
        follows=("PIP-NETWORK-NONE",),
    )


def _another_system(have: Availability, system: str | None) -> Iterator[Remedy]:
    """Offer Linux where no wheel is for the system that is told."""
    if have.linux_alone and system is None:
        yield Remedy(
            "On Windows install it in WSL 2, leave it out where it is optional, or take a build that others"
            " make for Windows (triton-windows for triton)."
        )
    if not have.here:
        yield on_linux("Install it", "where its wheels are.", windows=system == "windows")


def on_linux(act: str, why: str, *, windows: bool) -> Remedy:
    """Return the way to Linux, which Windows has within itself."""
    wsl = " (on Windows: in WSL 2)" if windows else ""
    return Remedy(f"{act} on Linux{wsl}, {why}", ("wsl --install",) if windows else ())


def _wide_python(view: View, compiled: bool, system: str | None) -> Iterator[Remedy]:
    """Offer a Python of 64 bits where the text shows, or Windows leaves open, that it is none."""
    if compiled and (system == "windows" or view.facts.host.arch.get() == _NARROW):
        text = "Use a Python of 64 bits (x86-64): compiled wheels of this package are for no other Windows."
        yield Remedy(text, commands("python -c {}", "import struct; print(struct.calcsize('P') * 8)"))


def _newer_system(have: Availability, system: str | None) -> Iterator[Remedy]:
    """Offer a system of this time where the Python is one that has wheels."""
    if have.here and have.glibc[0] and system in (None, "linux"):
        text = (
            f"See the system's C library: the wheels for Linux ask for glibc {_dotted(have.glibc)} at least,"
            " those of later releases often for more. Where it is older (CentOS 7 has 2.17), take a newer"
            " system or a container of one; and a newer pip, for an old one does not know new wheels."
        )
        yield Remedy(text, ("ldd --version", *pip_install("pip", options="-U")))


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _no_such_version(package: Package, asked: str, symptom: Symptom) -> Finding:
    newest = package.versions[-1]
    early = ".dev" in asked
    return Finding(
        id="NO-SUCH-VERSION",
        severity=Severity.ERROR,
        summary=f"{package.name} {asked} is not on the default index; the newest is {newest}",
        cause="The package's whole list of releases has nothing in that range: it was never there, not yet,"
        " or was taken back."
        + (" A .dev release lies on a nightly index, which deletes it, or is built from source." * early),
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            *_from_source(package.name, asked),
            *_nearest_release(package, asked),
            Remedy(
                "Let the solver choose a version that exists.", commands("envdoctor pin {}", package.name)
            ),
        ),
        certainty=Certainty.LIKELY,
        sources=(f"wheel:{package.name}",),
        explains=_FAILED,
        prior=0.7,
        fallback=early,
    )


def _from_source(name: str, asked: str) -> Iterator[Remedy]:
    """Say where a build between two releases comes from, which no index has."""
    if ".dev" in asked or "+" in asked:
        yield Remedy(
            f"It is a build between releases: build {name} from its repository, or take the container image"
            " of the project that asks for it."
        )


def _nearest_release(package: Package, asked: str) -> Iterator[Remedy]:
    """Offer the release next below what was asked for, or the first where all are newer."""
    wanted = parse_version(asked.lstrip("=").strip()) if asked.startswith("==") else None
    finals = [v for place, v in enumerate(package.versions) if package.finals >> place & 1]
    if wanted is None or wanted.is_devrelease or not finals:
        return
    below = [one for one in finals if (version := parse_version(one)) and version < wanted]
    pins = {package.name: f"=={below[-1] if below else finals[0]}"}
    yield Remedy("Take the release that comes nearest.", install_commands(pins), pins)


RULES = (Rule("PYTHON-NO-WHEEL", "what was asked for has a wheel for this Python", check_wheels),)
