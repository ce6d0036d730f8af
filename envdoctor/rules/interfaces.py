"""Imports, modules, attributes and arguments that a release lacks: which releases have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from packaging.version import Version

from envdoctor import lazy_re as re
from envdoctor.commands import commands, install_commands
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.interface_homes import home_of
from envdoctor.matrix.interface_ranges import places_of, specifier_of
from envdoctor.matrix.interface_records import Record, Spans
from envdoctor.rules.asked import Lack, wanted_of
from envdoctor.rules.asking_side import (
    asks_itself,
    brought_with_torch,
    copy_that_ran,
    is_own_code,
    moves_others,
    older_asker,
    other_side,
    turn_to,
    update_of_asker,
    who_asks_in_words,
)
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import package_facts, place_of
from envdoctor.rules.generations import asking_package, renames_of
from envdoctor.rules.interface_lookup import (
    Missing,
    find_missing,
    is_contradicted,
    specifier_for,
)
from envdoctor.rules.overlaid import fork_finding, laid_over, overridden_method, override_finding
from envdoctor.rules.told_arguments import SYMPTOM as TOLD
from envdoctor.rules.told_arguments import tells_trouble, told_missing
from envdoctor.rules.view import View
from envdoctor.values import replace

_LOADED = re.compile(r"\(((?:\.{0,2}/|[A-Za-z]:\\)[^()\n]{2,300}\.py)\)")
_INSTALLED = re.compile(r"(?:site|dist)-packages|[/\\]lib[/\\]python3")
_IN_USE = 4 * 365
"""Days for which a release is still met in environments."""


def check_missing_interface(view: View) -> Iterable[Finding]:
    """Find which releases have the name, module or argument that an error line misses."""
    found = [
        missing
        for symptom in view.facts.symptoms
        for wanted in wanted_of(view.facts, symptom)
        for missing in find_missing(view, wanted)
        if not _is_beyond(view, missing)
    ]
    found += [m for s in view.facts.symptoms if s.id == TOLD for m in told_missing(view, s)]
    if not found:
        raise Skip("no import, attribute or argument error was pasted")
    seen: set[tuple[str, str]] = set()
    for missing in found:
        told = (missing.library, missing.what.replace(".__init__()", "()"))
        if told not in seen:
            seen.add(told)
            if fork := laid_over(view, missing.library):
                yield fork_finding(missing, fork, _history(missing, specifier_for(view, missing)))
            elif _is_hidden(view, missing):
                if missing.sure:
                    yield _hidden_finding(view, missing)
            elif _is_namesakes(view, missing):
                yield _namesake_finding(view, missing)
            elif not is_contradicted(view, missing):
                mild = missing.symptom.id == TOLD and not tells_trouble(missing.symptom)
                finding = _finding(view, missing)
                yield replace(finding, severity=Severity.WARNING) if mild else finding
            elif missing.sure:
                between = _gone_between(view, missing)
                yield _between_finding(view, missing, *between) if between else _stale_finding(view, missing)


def _gone_between(view: View, missing: Missing) -> tuple[str, str] | None:
    """The last release read that has what is missed and the next read, where what is here stands between."""
    version, versions = view.version(missing.library), missing.record.versions
    pairs = [(versions[last], versions[last + 1]) for _, last in missing.spans if last + 1 < len(versions)]
    return next((p for p in pairs if version and Version(p[0]) < version < Version(p[1])), None)


def _between_finding(view: View, missing: Missing, had: str, without: str) -> Finding:
    """A release that was not read lacks what the one read before it has and the one after it has not."""
    library, named = missing.library, view.named(missing.library)
    pins = {named: f"<={had}"}
    return Finding(
        id="INTERFACE-MISSING",
        severity=Severity.ERROR,
        summary=f"{missing.what}: {library} {had} has it and {without} no more; "
        f"{view.version_text(library)}, which stands between them, does not have it either",
        cause=f"{_history(missing, specifier_for(view, missing))} {who_asks_in_words(view, missing)}",
        evidence=(Evidence(missing.symptom.id, missing.symptom.text, missing.symptom.source),),
        remedies=(
            Remedy(f"Downgrade {named} to a release that has it.", install_commands(pins), pins),
            *other_side(view, missing),
            update_of_asker(view, missing),
        ),
        certainty=Certainty.LIKELY,
        sources=(f"wheel:{library}",),
        explains=(missing.symptom.id,),
        prior=0.79,
        fallback=True,
    )


def _is_namesakes(view: View, missing: Missing) -> bool:
    """True where a library's own code asks for a member that its own class has: the object is another's."""
    if missing.wanted.lack is not Lack.MEMBER or not asks_itself(view, missing):
        return False
    untold = view.distribution(missing.library) is None
    return untold or (not missing.sure and is_contradicted(view, missing))


def _is_beyond(view: View, missing: Missing) -> bool:
    """True when what is installed is newer than all that was read, which had what is missed: who knows."""
    version, versions = view.version(missing.library), missing.record.versions
    newest = Version(versions[-1])
    has_last = any(last == len(versions) - 1 for _, last in missing.spans)
    return version is not None and version.release[:2] > newest.release[:2] and has_last


def _told_spans(versions: Sequence[str], spans: Spans) -> str:
    """Return ranges of releases in words, `4.36.0 to 4.47.1 and from 4.48.2 on`; empty for a single one."""
    if len(spans) < 2:
        return ""
    return " and ".join(_told_span(versions, first, last) for first, last in spans)


def _told_span(versions: Sequence[str], first: int, last: int) -> str:
    if last == len(versions) - 1:
        return f"from {versions[first]} on"
    return versions[first] if first == last else f"{versions[first]} to {versions[last]}"


def _finding(view: View, missing: Missing) -> Finding:
    mixed = asks_itself(view, missing)
    if mixed and (overridden := overridden_method(missing)):
        return override_finding(view, missing, overridden)
    library, specifier = missing.library, specifier_for(view, missing)
    installed, named = view.version_text(library), view.named(library)
    distribution = view.distribution(library)
    pins = {named: specifier}
    older = _older_range(missing, specifier)
    shown = (Evidence(library, installed, distribution.source),) if installed and distribution else ()
    renamed, own = tuple(_renamed(view, missing)), is_own_code(view, missing)
    turned = Remedy(
        f"{turn_to(view, missing)} {named} to a release that has it.", install_commands(pins), pins
    )
    brought = list(brought_with_torch(view, missing))
    others = [*brought, *other_side(view, missing)]
    if brought or (others and moves_others(view, missing)):
        turned, others[0] = others[0], turned
    elsewhere = older_asker(view, missing)
    return Finding(
        id="INTERFACE-MISSING",
        severity=Severity.ERROR,
        summary=f"{missing.what}: only {library} {_having(missing, specifier)} it; {_here(view, missing)}"
        f"{_misfit(view, missing, elsewhere)}",
        cause=f"{_history(missing, specifier)} {who_asks_in_words(view, missing)}",
        evidence=(*shown, Evidence(missing.symptom.id, missing.symptom.text, missing.symptom.source)),
        remedies=(
            *(_whole(view, missing) if mixed else ()),
            *((copy_that_ran(view, elsewhere),) if elsewhere else ()),
            *(renamed if own else ()),
            turned,
            *((Remedy("Or an older one.", install_commands(older), older),) if older else ()),
            *(() if own else renamed),
            *others,
            update_of_asker(view, missing),
        ),
        certainty=Certainty.CERTAIN
        if missing.sure and (version := view.version(library)) and missing.record.knows(version)
        else Certainty.UNCERTAIN
        if missing.unnamed and not view.version(library)
        else Certainty.LIKELY,
        sources=(f"wheel:{library}",),
        explains=(missing.symptom.id,),
        prior=0.79,
        fallback=True,
    )


def _misfit(view: View, missing: Missing, elsewhere: Record | None) -> str:
    """Say which package asks, and that its release and the library's are of different times.

    `elsewhere` is that package where another copy of it asked than the one that is told.
    """
    asker = asking_package(view, missing.wanted.asker)
    if not asker or asker == missing.library:
        return ""
    told = " ".join(filter(None, (asker, view.version_text(asker))))
    if elsewhere:
        return f" ({told} does not ask for it: another copy of {asker} ran, or an older one before it)"
    side = "new" if turn_to(view, missing) == "Upgrade" else "old"
    return f" ({told}, which asks for it, is too {side} for it: incompatible versions)"


def _here(view: View, missing: Missing) -> str:
    """Return what is installed in words; where no release is told, what the message says of it."""
    library = missing.library
    newer = turn_to(view, missing) == "Downgrade"
    if installed := view.version_text(library):
        older = ", an older release" if turn_to(view, missing) == "Upgrade" else ""
        aged = ", which is newer: removed since" if newer else older
        return f"{view.named(library)} {installed} is installed{aged}"
    if missing.spans[1:]:
        return f"the installed {library} is another"
    older = ", or older" if newer and missing.spans[0][0] > 0 else ""
    how = f"newer (it was removed or renamed since){older}" if newer else "older"
    return f"the installed {library} is {how}"


def _stale_finding(view: View, missing: Missing) -> Finding:
    """The listed release has what the failing process missed: it ran another copy."""
    library = missing.library
    module = missing.module.partition(".")[0] or library.replace("-", "_")
    installed = view.version_text(library)
    distribution = view.distribution(library)
    exact = distribution.version if distribution else None
    meant = distribution.specifier if distribution and not exact else f"=={installed}"
    return Finding(
        id="INTERFACE-STALE",
        severity=Severity.ERROR,
        summary=(
            f"{missing.what}: {library} {installed} does have it, so the process that failed ran another "
            "copy, or what it stands for did not import"
        ),
        cause=(
            f"{_history(missing, specifier_for(view, missing))} Either the process had imported the former "
            f"release before the installation, or another environment, a second copy on sys.path or a fork "
            f"that shares the name stands before {library} {installed}; or its module fails as it is "
            "imported (what it needs is missing, or imports go in a circle), and a lazy package tells that "
            "as a missing name."
        ),
        evidence=(
            Evidence(library, installed or "", distribution.source if distribution else ""),
            Evidence(missing.symptom.id, missing.symptom.text, missing.symptom.source),
        ),
        remedies=(
            Remedy("Restart the kernel or process after installing, and import it alone to see what fails."),
            Remedy(
                "See which copy is imported, and reinstall it there.",
                (
                    *commands(
                        "python -c {}", f"import {module}; print({module}.__version__, {module}.__file__)"
                    ),
                    *commands("python -m pip install --force-reinstall --no-deps {}", f"{library}{meant}"),
                ),
            ),
        ),
        certainty=Certainty.UNCERTAIN,
        sources=(f"wheel:{library}",),
        explains=(missing.symptom.id,),
        prior=0.4,
        fallback=True,
    )


def _namesake_finding(view: View, missing: Missing) -> Finding:
    """The library asks for what its own class has: the object is of another class of that name."""
    library = missing.library
    told = " ".join(filter(None, (library, view.version_text(library))))
    owner, since = missing.wanted.owner, missing.record.versions[missing.spans[0][0]]
    before = {library: f"<{since}"}
    return Finding(
        id="INTERFACE-NAMESAKE",
        severity=Severity.ERROR,
        summary=(
            f"{missing.what}: {told} asks for it and its own {owner} has it, so the object is"
            f" of another {owner}, of a package written for {library} before {since} (or of the program)"
        ),
        cause=(
            f"{_history(missing, specifier_for(view, missing))} A package that brings a class of that name"
            f" ({owner}) without deriving it from {library}'s, or stands in for one of its modules, lacks"
            f" what {library} came to ask for: setfit's, sentence-transformers' or a quantiser's, say."
        ),
        evidence=(Evidence(missing.symptom.id, missing.symptom.text, missing.symptom.source),),
        remedies=(
            Remedy(f"Take {library} from before it.", install_commands(before), before),
            Remedy("Or upgrade the package whose class it is (the frames above name it)."),
        ),
        certainty=Certainty.LIKELY,
        sources=(f"wheel:{library}",),
        explains=(missing.symptom.id,),
        prior=0.75,
        fallback=True,
    )


def _is_hidden(view: View, missing: Missing) -> bool:
    """True where every release has what is missed, and no listed one shows that another copy ran."""
    unlisted = view.version(missing.library) is None or bool(loaded_file(missing.symptom.text))
    return unlisted and missing.in_all


def _apart(missing: Missing) -> str:
    """Return the whole name of a module that not every release of its package brings itself, else nothing."""
    record, path = missing.record, f"{missing.module}.{missing.name}"
    brought = places_of(record.names.get(missing.module, {}).get(missing.name, ()))
    own = path in record.names and len(brought) < len(record.versions)
    return path if own and "has no attribute" in missing.symptom.text else ""


def _reinstalled(library: str, module: str) -> Remedy:
    return Remedy(
        f"Else uninstall {library} and whatever else brings {module}, and reinstall the one that is meant.",
        (
            *commands("pip uninstall -y {}", library),
            *commands("pip install --no-cache-dir --no-deps {}", library),
        ),
    )


def _since_read(view: View, missing: Missing) -> Iterator[Remedy]:
    """Offer the releases that were read, where one from before them may still be what is installed."""
    package, first = package_facts(view, missing.library), missing.record.versions[0]
    place = place_of(package, first) if package else None
    if package and place and package.days[-1] - package.days[place] <= _IN_USE:
        pins = {missing.library: f">={first}"}
        text = f"Or what is installed is older than {first}, the first release that was read: upgrade it."
        yield Remedy(text, (*commands("pip show {}", missing.library), *install_commands(pins)), pins)


def _hidden_finding(view: View, missing: Missing) -> Finding:
    """Every release has what the failing process missed: what it imported is another thing of that name."""
    library, module = missing.library, (missing.module or missing.record.root).partition(".")[0]
    told = loaded_file(missing.symptom.text)
    lies = f"{told} was imported, which is none of its files: it" if told else "What was imported"
    apart = "" if told else _apart(missing)
    if apart:
        lies = "A package's modules come with it only where it imports them itself. Else what was imported"
    alone = f": {missing.module} alone does not bring that module, or" if apart else ", so that"
    return Finding(
        id="INTERFACE-STALE",
        severity=Severity.ERROR,
        summary=f"{missing.what}: every release of {library} that was read has it{alone} something else"
        f" bears the name {module} here" + (f": {told}" if told else ""),
        cause=f"{lies} shadows the installed {library}: a file or folder {module} of one's own (the script's"
        " folder and the working directory come first), another distribution with a module of that name (a"
        " fork, a build for another backend) laid over it, or half an installation.",
        evidence=(Evidence(missing.symptom.id, missing.symptom.text, missing.symptom.source),),
        remedies=(
            *([Remedy(f"Import it by its whole name where it is used: import {apart}")] if apart else []),
            Remedy(
                f"See which file is loaded; rename or move a file or folder {module} of your own (with its"
                " __pycache__), or start from another folder.",
                commands("python -c {}", f"import {module}; print({module}.__file__, {module}.__path__)"),
            ),
            *_since_read(view, missing),
            *([] if apart else [_reinstalled(library, module)]),
        ),
        certainty=Certainty.LIKELY if told else Certainty.UNCERTAIN,
        sources=(f"wheel:{library}", "https://docs.python.org/3/library/sys_path_init.html"),
        explains=(missing.symptom.id,),
        prior=0.7,
        fallback=True,
    )


def loaded_file(message: str) -> str:
    """Return the file that an import error names as the module's, where no installer laid it; else empty."""
    match = _LOADED.search(message)
    return match[1] if match and not _INSTALLED.search(match[1]) else ""


def _older_range(missing: Missing, specifier: str) -> dict[str, str]:
    """Pins for the earlier releases that have it, where later ones took it away and gave it back."""
    versions = list(missing.record.versions)
    older = [specifier_of(versions, [list(span)]) for span in missing.spans]
    before = next((one for one in reversed(older) if one != specifier), "")
    return {missing.library: before} if before and specifier == older[-1] else {}


def _whole(view: View, missing: Missing) -> Iterator[Remedy]:
    """Offer to lay one release whole, and a later one than that which calls what it lacks."""
    library, version = missing.library, view.version(missing.library)
    yield Remedy(
        f"Reinstall {library} whole: an update that was cut short, or a checkout beside a wheel, mixes files "
        "of two versions (a checkout: pull, and build it again).",
        commands("python -m pip install --force-reinstall --no-deps {}", library),
    )
    package, record = package_facts(view, library), missing.record
    if version is None or package is None or version >= Version(package.versions[-1]):
        return
    later = [list(span) for span in missing.spans if span[0] > record.place(version)]
    if later or not missing.spans:
        since = specifier_of(list(record.versions), later) if later else f">{version.public}"
        pins = {library: since}
        yield Remedy(f"Or take a newer {library}.", install_commands(pins), pins)


def _renamed(view: View, missing: Missing) -> Iterator[Remedy]:
    """Name what stands in the place of what is gone, where a row knows of it."""
    if missing.spans[-1][1] == len(missing.record.versions) - 1:
        return
    owner = missing.wanted.owner.removesuffix(".__init__")
    told = {f"{owner}({missing.name})", f"{owner}.{missing.name}", f"{missing.module}.{missing.name}"}
    rows = renames_of(view, missing.library, told.__contains__)
    if not rows and missing.name:
        rows = renames_of(view, missing.library, lambda old: old.endswith(f"({missing.name})"))
    for row in rows[:1]:
        yield Remedy(f"Write {row.new} in its place: it goes by that name since.")
    if not rows and missing.module and missing.name:
        yield from _moved(view, missing)


def _moved(view: View, missing: Missing) -> Iterator[Remedy]:
    """Name the module where a name that left another stands: in the release that is here, or the newest."""
    record = missing.record
    version = view.version(missing.library) or Version(record.versions[-1])
    path = f"{missing.module}.{missing.name}"
    if home := home_of(record, version, path, missing.name):
        module = home.rpartition(".")[0]
        yield Remedy(f"Import it from {module}, where it stands now: from {module} import {missing.name}")


def _having(missing: Missing, specifier: str) -> str:
    ranges = _told_spans(missing.record.versions, missing.spans)
    return f"{ranges} have" if ranges else f"{specifier} has"


def _history(missing: Missing, specifier: str) -> str:
    if ranges := _told_spans(missing.record.versions, missing.spans):
        return f"{missing.library} {ranges} have {missing.what}; the releases between do not."
    bounds = sorted(specifier.split(","), reverse=True)
    told = [f"came with {b[2:]}" if b.startswith(">=") else f"is gone from {b[1:]} on" for b in bounds if b]
    return f"In {missing.library}'s releases {missing.what} {' and '.join(told)}."


RULES = (
    Rule(
        "INTERFACE-MISSING",
        "a missing import, module or argument exists in the installed release",
        check_missing_interface,
    ),
)
