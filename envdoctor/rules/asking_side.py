"""Who asks a library for what its release lacks, and which releases of the one that asks do without."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from packaging.version import Version

from envdoctor.commands import commands, install_commands
from envdoctor.facts import Frame
from envdoctor.findings import Remedy
from envdoctor.matrix.interface_records import (
    Record,
    Spans,
    libraries_importing,
    load_record,
)
from envdoctor.matrix.snapshot import STACK, Package
from envdoctor.rules.asked import module_of
from envdoctor.rules.calendar import (
    askers_after,
    askers_before,
    day_here,
    day_of,
    package_facts,
    required_by,
    told_release,
    users_of,
)
from envdoctor.rules.generations import asking_package
from envdoctor.rules.interface_lookup import Missing, record_of, specifier_for
from envdoctor.rules.pairs import pair_remedies
from envdoctor.rules.ranges import parse_version, version_satisfies
from envdoctor.rules.rows import already_met
from envdoctor.rules.view import View

_NEAR = 300
"""Days within which an older release stands in for a newer one without much else having changed."""
_NAMED = 3
"""How many packages that may ask are named."""
_ASKING = 12
"""Libraries that are looked at for who asks, where no traceback tells."""
_OFTEN = (
    *("transformers", "peft", "trl", "accelerate", "deepspeed", "sentence-transformers", "datasets"),
    *("autoawq", "auto-gptq", "gptqmodel", "optimum", "unsloth-zoo"),
)


def who_asks_in_words(view: View, missing: Missing) -> str:
    """Say who asks, as far as the traceback or the listed releases tell."""
    frame, library = missing.wanted.asker, missing.library
    if frame is None:
        if asking := ", ".join(told_release(view, one.library) for one in _listed_askers(view, missing)):
            return f"What is listed asks for it: {asking}."
        users = ", ".join(told_release(view, name) for name in _may_ask(view, missing)[:_NAMED])
        return "Whatever asks for it was written for those releases" + (f": {users}, say." if users else ".")
    record = asking_library(view, frame)
    if record is None:
        return f"{_short(frame)} asks for it: it was written for those releases, an incompatible version."
    version = view.version_text(record.library)
    told = f"{record.library}{f' {version}' if version else ''} asks for it ({_short(frame)})"
    if record.library == library:
        return f"{told}, its own code: files of two versions are mixed, or that path of it is broken."
    return f"{told}."


def update_of_asker(view: View, missing: Missing) -> Remedy:
    """Offer a newer release of the one that asks."""
    asker = asking_package(view, missing.wanted.asker)
    if asker and asker != missing.library:
        return Remedy(f"Or upgrade {asker}, whose code asks for it.", commands("pip install -U {}", asker))
    return Remedy("Change or update the code that asks for it (the frame above the error names the file).")


def asks_itself(view: View, missing: Missing) -> bool:
    """True where the library's own code asks for what it lacks."""
    frame = missing.wanted.asker
    record = asking_library(view, frame) if frame else None
    return record is not None and record.library == missing.library


def _short(frame: Frame) -> str:
    return f"{'/'.join(frame.file.replace(chr(92), '/').split('/')[-2:])}, line {frame.line}"


def asking_library(view: View, frame: Frame) -> Record | None:
    """Return the recorded library in whose files a frame stands."""
    module = module_of(frame)
    return record_of(view.matrix, module) if module else None


def other_side(view: View, missing: Missing) -> Iterator[Remedy]:
    """Offer the releases of the importing library that do without what is missed."""
    dated, built = True, _built_for(view, missing)
    if built:
        yield from built
        return
    for record in _askers(view, missing) if missing.module else ():
        asking = record.imports.get(missing.module, {})
        spans = (
            asking.get(missing.name, ()) if missing.name else [s for many in asking.values() for s in many]
        )
        told = view.version(record.library)
        if spans and told is not None and not record.has(spans, told):
            continue  # another asks: the release that is here does not
        asks_still = bool(spans) and _last(spans) == len(record.versions) - 1
        if asks_still and turn_to(view, missing) == "Downgrade":
            dated = False
            name = missing.name or missing.module
            text = f"{record.library}, up to its last release that was read, asks for {name}: uninstall it"
            yield Remedy(f"{text} where nothing needs it.", commands("pip uninstall -y {}", record.library))
        for without in _nearest_first(record, told, releases_without(record.versions, spans)):
            if already_met(view, pins := {record.library: without}) or (
                not dated and _is_long_ago(view, record, without, str(told or record.versions[_last(spans)]))
            ):
                continue
            dated = False
            where = "" if _is_told(view, record.library, missing) else f"Where {record.library} asks for it: "
            use = "use" if where else "Use"
            text = f"{where}{use} a release of {record.library} that does not ask for it."
            yield Remedy(text, install_commands(pins), pins)
    if dated:
        yield from _other_time(view, missing)


def _built_for(view: View, missing: Missing) -> list[Remedy]:
    """Return the releases of a listed asker that are built for the torch which lacks what it asks for."""
    asking = _listed_askers(view, missing) if missing.library == "torch" else ()
    ways = (remedy for record in asking for remedy in pair_remedies(view, record.library))
    return [remedy for remedy in ways if "torch" not in remedy.pins]


def _last(spans: Spans) -> int:
    return max(last for _, last in spans)


def _nearest_first(record: Record, told: Version | None, ranges: Iterator[str]) -> Sequence[str]:
    """Return the ranges of releases without it in the order of how far they are from the one that is told."""
    if told is None:
        return tuple(ranges)
    here = bisect_left(record.versions, told, key=Version)
    bounds = {one: record.versions.index(one.lstrip("<>=")) for one in ranges}
    return sorted(bounds, key=lambda one: abs(bounds[one] - here))


def _is_long_ago(view: View, record: Record, without: str, here: str) -> bool:
    """True where the releases from before the first that asks are of another time than the one that does."""
    days = [day_of(view, record.library, version) for version in (without.removeprefix("<"), here)]
    return days[0] is not None and days[1] is not None and days[1] - days[0] > _NEAR


def _is_told(view: View, library: str, missing: Missing) -> bool:
    """True where the report names the library: by a frame, or in what is installed."""
    return missing.wanted.asker is not None or view.distribution(library) is not None


def _other_time(view: View, missing: Missing) -> Iterator[Remedy]:
    """Offer the asking library's releases from before what is missed came, or from after it went."""
    library, versions = missing.library, missing.record.versions
    asker = _who_asks(view, missing)
    if not asker or asker == library:
        return
    first, last = missing.spans[0][0], missing.spans[-1][1]
    if (
        first > 0
        and turn_to(view, missing) == "Upgrade"
        and (pins := askers_before(view, asker, library, versions[first]))
        and not already_met(view, pins)
    ):
        text = (
            f"Or take a release of {asker} from before {library} {versions[first]}, which cannot ask for it."
        )
        yield Remedy(text, install_commands(pins), pins)
    pins = askers_after(view, asker, library, versions[last + 1]) if last < len(versions) - 1 else {}
    if pins and not already_met(view, pins):
        text = (
            f"Or raise {asker} to a release from after {library} {versions[last + 1]}, which went without it."
        )
        yield Remedy(text, install_commands(pins), pins)


def moves_others(view: View, missing: Missing) -> bool:
    """True where all that is built for torch would move with it, and one package alone asks for its news."""
    return missing.library == "torch" and bool(_listed_askers(view, missing))


def _who_asks(view: View, missing: Missing) -> str:
    """Return the package that asks: by the traceback, else what is listed, uses the library and may."""
    if missing.wanted.asker is not None:
        return asking_package(view, missing.wanted.asker)
    return next(iter(_may_ask(view, missing)), "")


def _may_ask(view: View, missing: Missing) -> list[str]:
    """Return what is listed and uses the library, but for what came out before what is missed."""
    users = users_of(view, missing.library)
    came = day_of(view, missing.library, missing.record.versions[missing.spans[0][0]]) or 0
    return [name for name in users if (day_here(view, name) or came) >= came] or _untold(view, missing)


def _untold(view: View, missing: Missing) -> list[str]:
    """Return the one package of the stack that is told without its release, and requires the library."""
    listed = (name for name in view.facts.environment.distributions if name in STACK)
    untold = [name for name in listed if view.version(name) is None and name != missing.library]
    asking = [name for name in untold if missing.library in required_by(view, name)]
    return asking if len(asking) == 1 else []


def turn_to(view: View, missing: Missing) -> str:
    """Return the way to the releases that have what is missed."""
    distribution = view.distribution(missing.library)
    begun = distribution.begun if distribution else None
    version = parse_version(begun) if begun else view.version(missing.library)
    if version is not None:
        below = (one[1:].lstrip("=") for one in specifier_for(view, missing).split(",") if one[:1] in "<=")
        own = Version(version.base_version)  # a pre-release of the bound is of its time
        later = any(own >= Version(one) or f"{one}.".startswith(f"{begun}.") for one in below if one)
    else:
        later = "<" in specifier_for(view, missing)
    return "Downgrade" if later else "Upgrade"


def is_own_code(view: View, missing: Missing) -> bool:
    """True where no library asks, as far as is told: an argument or attribute of one's own program."""
    frame = missing.wanted.asker
    return bool(missing.wanted.owner) if frame is None else asking_library(view, frame) is None


def _askers(view: View, missing: Missing) -> Iterator[Record]:
    """Yield the library that a traceback shows asking; without one those listed whose release asks for it.

    Where none of these is known to, those listed that may, or the usual ones.
    """
    frame = missing.wanted.asker
    if frame is not None and module_of(frame):
        record = asking_library(view, frame)
        names = [record.library] if record else []
    else:
        listed = [name for name in view.facts.environment.distributions if name != missing.library]
        if asking := _listed_askers(view, missing):
            yield from asking
            return
        usual = [name for name in _OFTEN if name in listed] if set(listed) - {"torch"} else list(_OFTEN)
        names = list(dict.fromkeys((*_may_ask(view, missing), *usual)))
    for name in names[:_ASKING]:
        record = load_record(view.matrix.folder, name)
        if record is not None and name != missing.library:
            yield record


def _listed_askers(view: View, missing: Missing) -> list[Record]:
    """Return the records of the listed packages whose release asks for what is missed."""
    asking = libraries_importing(view.matrix.folder, missing.module, missing.name) if missing.name else ()
    names = (name for name in view.facts.environment.distributions if name != missing.library)
    return [record for name in names if name in asking and (record := _record_that_asks(view, missing, name))]


def _record_that_asks(view: View, missing: Missing, name: str) -> Record | None:
    """Return the record of a package whose listed release asks for what is missed; None for another."""
    told = view.version(name)
    record = load_record(view.matrix.folder, name) if told else None
    spans = record.imports.get(missing.module, {}).get(missing.name) if record else None
    return record if record and told and spans and record.has(spans, told) else None


def releases_without(versions: Sequence[str], spans: Spans) -> Iterator[str]:
    """Yield the releases after the last that asks, and those before the first; none where all ask."""
    if spans and (last := max(s[1] for s in spans)) < len(versions) - 1:
        yield f">={versions[last + 1]}"
    if spans and (first := min(s[0] for s in spans)) > 0:
        yield f"<{versions[first]}"


def older_asker(view: View, missing: Missing) -> Record | None:
    """Return the library whose file asks and whose listed release does not: another copy of it ran."""
    frame = missing.wanted.asker
    record = asking_library(view, frame) if frame else None
    told = view.version(record.library) if record else None
    if record is None or told is None or not missing.module or record.library == missing.library:
        return None
    spans = record.imports.get(missing.module, {}).get(missing.name, ())
    return record if spans and not record.has(spans, told) else None


def copy_that_ran(view: View, record: Record) -> Remedy:
    """Say how the copy of an asking library that ran is found, and what is listed laid in its place."""
    module, pins = record.root, {record.library: f"=={view.version(record.library)}"}
    return Remedy(
        f"See which {record.library} is loaded, and lay the listed release in its place, in that very"
        " environment; then restart the process.",
        (*commands("python -c {}", f"import {module}; print({module}.__file__)"), *install_commands(pins)),
        pins,
    )


def brought_with_torch(view: View, missing: Missing) -> Iterator[Remedy]:
    """Offer the releases of torch that ask for exactly such a release as has what is missed.

    What torch requires by one number (its Triton) does not move alone.
    """
    torch, brought = package_facts(view, "torch"), package_facts(view, missing.library)
    if missing.library == "torch" or not torch or not brought:
        return
    asked = [(version, _exactly(torch, place, brought)) for place, version in enumerate(torch.versions)]
    bringing = [(version, one) for version, one in asked if one and not Version(version).is_prerelease]
    having = specifier_for(view, missing)
    inside = [i for i, (_, one) in enumerate(bringing) if version_satisfies(one, having)]
    here = view.distribution("torch")
    told = f"{here.told.partition('+')[0]}." if here and here.told else "none"
    if not inside or any(f"{bringing[i][0]}.".startswith(told) for i in inside):
        return
    lower = f">={bringing[inside[0]][0]}" if inside[0] else ""
    upper = f"<{bringing[inside[-1] + 1][0]}" if inside[-1] + 1 < len(bringing) else ""
    pins = {"torch": ",".join(filter(None, (lower, upper)))}
    text = (
        f"{missing.library} comes with torch, which asks for one release of it: take a torch that brings it."
    )
    yield Remedy(text, install_commands(pins), pins)


def _exactly(package: Package, place: int, required: Package) -> Version | None:
    """Return the one release of a package that a release requires; None where it takes several or none."""
    row = package.row_of(place)
    asked = package.requirements(row) if row >= 0 else ()
    texts = (required.spec_text(one.spec) for one in asked if one.name == required.name)
    return next((parse_version(text[2:]) for text in texts if text.startswith("==")), None)
