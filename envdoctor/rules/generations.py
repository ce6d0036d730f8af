"""Two packages of different times: one asks the other for what its release does not have.

What no recorded interface answers is at least told with both packages and the releases of one time.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence

from packaging.version import Version

from envdoctor import lazy_re as re
from envdoctor.commands import commands, install_commands, pip_install
from envdoctor.facts import Frame
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.matrix.interface_records import libraries_with, load_record, recorded_libraries
from envdoctor.matrix.late_tables import holding
from envdoctor.matrix.snapshot import STACK
from envdoctor.matrix.tables import RenameRow
from envdoctor.profile.keys import key_facts
from envdoctor.rules.asked import Lack, Wanted, wanted_of
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import (
    askers_after,
    day_of,
    newest_on,
    package_facts,
    required_by,
    told_day,
    told_release,
    users_of,
)
from envdoctor.rules.import_chains import module_of
from envdoctor.rules.interface_lookup import (
    Missing,
    distribution_of,
    find_missing,
    is_contradicted,
    specifier_for,
    spelt_as,
)
from envdoctor.rules.modules import is_root_in_folder
from envdoctor.rules.standard_modules import is_standard
from envdoctor.rules.view import View

ID = "RELEASES-APART"
YOUNG = 730
"""Days for which code that was written for the major release before is still about."""
_ANY_DAY = 1 << 20
_NAMED = 3
"""How many of the packages that may ask are named."""
_FILE = re.compile(r"\(((?:/|[A-Za-z]:\\)[^()\n]{2,300}\.py)\)")
_NUMBER = re.compile(r"\d{1,4}")


def check_generations(view: View) -> Iterable[Finding]:
    """Name the two packages of which one asks the other for something that it lacks."""
    wanted = [w for symptom in view.facts.symptoms for w in wanted_of(view.facts, symptom)]
    if not wanted:
        raise Skip("no import, attribute or argument error was pasted")
    found = {f.summary: f for w in wanted if not _has_it(view, w) and (f := _finding(view, w))}
    yield from found.values()


def _has_it(view: View, wanted: Wanted) -> bool:
    """True where the release that is listed, or every one, has what is missed: that is told elsewhere."""
    return any(
        missing.sure and (missing.in_all or is_contradicted(view, missing))
        for missing in find_missing(view, wanted)
    )


def _finding(view: View, wanted: Wanted) -> Finding | None:
    owner, asker = _owner(view, wanted), asking_package(view, wanted.asker)
    if owner == asker and wanted.lack is Lack.MEMBER and _never(view, wanted, owner):
        return None  # its own object, of its own release: one that was not set up, or was reset
    asker = "" if asker == owner else asker
    users = [] if asker or wanted.asker else users_of(view, owner)
    what = _what(view, wanted)
    if is_standard(view, wanted.module):
        return None  # which Python has the name, or whose file hides the module, is told elsewhere
    if not what or not (owner or (asker and (wanted.lack is not Lack.MEMBER or _is_of_stack(wanted, asker)))):
        return None
    here = f"{told_release(view, owner)} here" if owner else "what is called"
    asking = told_release(view, asker) if asker else "the code that asks"
    if users:
        asking += f" (of what is here, {', '.join(told_release(view, name) for name in users[:_NAMED])} may)"
    asker = asker or next(iter(users), "")
    other, never = _of_another(view, wanted, owner), _never(view, wanted, owner)
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{other.what}: {told_release(view, owner)}, which is told, has it as all of {owner}"
        f" {specifier_for(view, other)}, so what failed ran another {owner}, or has a class of that name"
        if other
        else f"{here} {what}, nor has any release of {owner} that was read: {asking} means another"
        if never and wanted.lack is not Lack.NAME
        else f"{here} {what}: {asking} was written for another version of " + (owner or "it"),
        cause="Names, arguments and members come, move and go with releases. "
        + (f"{asker} and {owner} are" if asker and owner and not users else "Who asks and who is asked are")
        + " of different times, or a half upgraded copy is imported."
        + never,
        evidence=(Evidence(wanted.symptom.id, wanted.symptom.text, wanted.symptom.source),),
        remedies=(
            *_as_told(view, other),
            *(r for r in _remedies(view, wanted, owner, asker) if not (other and owner in r.pins)),
        ),
        certainty=Certainty.UNCERTAIN,
        sources=("https://docs.python.org/3/library/exceptions.html#ImportError",),
        explains=(wanted.symptom.id,),
        prior=0.5,
        fallback=True,
    )


def _of_another(view: View, wanted: Wanted, owner: str) -> Missing | None:
    """Return the call that only other releases than the told one refuse; None where that one may, too."""
    if wanted.lack in (Lack.NAME, Lack.MODULE, Lack.MEMBER):
        return None
    told = (m for m in find_missing(view, wanted) if m.library == owner and view.version(owner))
    return next((missing for missing in told if not missing.sure and is_contradicted(view, missing)), None)


def _as_told(view: View, other: Missing | None) -> Iterator[Remedy]:
    if other:
        pins = {other.library: specifier_for(view, other)}
        yield Remedy(
            f"See which {other.library} the failing process has, and install there one that has it.",
            (*commands("python -m pip show {}", other.library), *install_commands(pins)),
            pins,
        )


def _never(view: View, wanted: Wanted, owner: str) -> str:
    """Say that no release takes an argument or has a name; none older than those read, which lack more."""
    record = load_record(view.matrix.folder, owner) if owner else None
    of_class = wanted.owner.partition(".")[0]
    if record is None or ((version := view.version(owner)) and not record.knows(version)):
        return ""
    if wanted.lack is Lack.NAME and not holding(record.names, wanted.name):
        return (
            f" No release of {owner} that was read has it under that name anywhere: it is of another"
            f" package, of a newer release, or of a fork (a project's own modified copy of {owner}, which"
            " its repository installs)."
        )
    if wanted.lack is Lack.MEMBER and wanted.name not in record.members.get(of_class, (wanted.name,)):
        return f" No release of {owner} that was read tells of {wanted.name} in its {of_class}."
    names = (wanted.owner, f"{of_class}.__init__")
    taken = [record.keywords[name] for name in names if name in record.keywords]
    if wanted.lack is not Lack.KEYWORD or not taken or wanted.name in taken[0]:
        return ""
    return (
        f" No release of {owner} that was read takes it: {wanted.name} is not an argument (parameter,"
        f" field) of {wanted.owner}, so that it is misspelt, meant for another call,"
        " or of documentation that is wrong."
    )


def _is_of_stack(wanted: Wanted, asker: str) -> bool:
    """True where a package of the stack asks an object that is none of Python's own."""
    named = wanted.owner[:1].isupper() and wanted.owner not in ("NoneType", "PosixPath", "WindowsPath")
    return named and asker in STACK and not hasattr(builtins, wanted.owner)


def _what(view: View, wanted: Wanted) -> str:
    match wanted.lack:
        case Lack.NAME:
            return f"has no {wanted.name} in {wanted.module}"
        case Lack.MODULE:
            whole = "." in wanted.module and not is_root_in_folder(view, wanted.module)
            return f"has no module {wanted.module}" if whole else ""
        case Lack.MEMBER:
            return f"has no {wanted.name} in {wanted.owner}"
        case Lack.KEYWORD:
            return f"does not take {wanted.name}" + (f" in {wanted.owner}()" if wanted.owner else "")
        case Lack.NEEDED:
            return f"needs {wanted.name} in {wanted.owner}()"
        case Lack.POSITION:
            return f"does not take {wanted.count} positional arguments in {wanted.owner}()"
        case _:
            return ""


def _owner(view: View, wanted: Wanted) -> str:
    """Return the distribution that is asked: of the module, the class or function, or the patch's name."""
    if wanted.module:
        name = distribution_of(view.matrix, wanted.module)
        named = _is_known(view, name) or _is_named(view, wanted.module)
        named = named or "-packages" in wanted.symptom.text or _is_elsewhere(wanted)
        return name if named else ""
    if of_module := _reached_by(view, wanted):
        return of_module
    for owner in _names_of(wanted.owner):
        having = libraries_with(view.matrix.folder, owner)
        known = _known_to_have(view, having, owner.partition(".")[0], asking_package(view, wanted.asker))
        exporting = [n for n in known if _exports(view, n, owner.partition(".")[0])] or known
        meant = [n for n in exporting if _ever_had(view, n, owner, wanted.name)]
        if not meant and (wanted.lack is Lack.POSITION or owner == wanted.owner):
            # whose class or function of that very name it is, not who has one that it is called after
            alone = wanted.lack is Lack.KEYWORD and len(having) == 1 and having[0] in STACK
            of_all = alone or wanted.lack in (Lack.POSITION, Lack.MEMBER)
            meant = [n for n in exporting if of_all or view.facts.distribution(n)]
        private = wanted.owner.startswith("_") and owner != wanted.owner
        if len(meant) == 1 and (not private or view.facts.distribution(meant[0])):
            return meant[0]  # what a class's name ends in may be a base of any library
        if exporting and wanted.lack is Lack.MEMBER:
            return ""  # who has a class of that very name; what it is called after, others may have
    words = wanted.owner.rpartition(".")[2].lower().split("_")
    return next((name for name in STACK if name in words), "")


def _reached_by(view: View, wanted: Wanted) -> str:
    """Return the package through whose module the asking line reaches an object: `jax.config.some_option`."""
    if wanted.lack is not Lack.MEMBER or wanted.asker is None:
        return ""
    name = re.escape(wanted.name)
    reached = re.search(rf"(?<![\w.])(\w{{2,60}})(?:\.\w{{1,60}}){{1,6}}\.{name}\b", wanted.asker.code)
    name = distribution_of(view.matrix, reached[1]) if reached else ""
    return name if name and _is_known(view, name) else ""


def _known_to_have(view: View, libraries: Sequence[str], name: str, asker: str) -> list[str]:
    """Return who may be meant by a name: what is listed, of another release at worst, before what is not.

    What is not is meant by itself, by code of one's own, and by a package that requires it.
    """
    having = [library for library in libraries if _may_have(view, library, name)]
    listed = [library for library in having if view.facts.distribution(library)]
    listed = listed or [library for library in libraries if view.facts.distribution(library)]
    return listed or [
        n
        for n in having
        if n in STACK
        and view.installed(n) is not False
        and (not asker or asker == n or n in required_by(view, asker))
    ]


def _is_elsewhere(wanted: Wanted) -> bool:
    """True where the message names the asked module's file, in another project than the code that asks."""
    root = _root_of(wanted)
    return bool(root) and wanted.asker is not None and not wanted.asker.file.startswith(root)


def _root_of(wanted: Wanted) -> str:
    """Return the folder from which the asked module is imported, as the message tells it; empty for none."""
    match = _FILE.search(wanted.symptom.text)
    top = f"/{wanted.module.partition('.')[0]}/"
    return match[1].replace("\\", "/").partition(top)[0] if match else ""


def _in_a_checkout(wanted: Wanted) -> Iterator[Remedy]:
    """Yield what to do with a module that is imported from a source tree and from no installed release."""
    root = _root_of(wanted)
    if root and "-packages" not in root:
        yield Remedy(
            f"It is imported from {root}, a source tree and no installed release: check out there the version"
            " that the asking code names; in an image, take another tag, in which both match."
        )


def _names_of(owner: str) -> Iterator[str]:
    """Yield a callable, its class, and what the class's name ends in: a class is named after its base."""
    if hasattr(builtins, owner.partition(".")[0]) or owner == "NoneType":
        return
    if owner:
        yield owner
    of_class = owner.partition(".")[0]
    for start, letter in enumerate(of_class):
        if letter.isupper():
            yield of_class[start:]


def _may_have(view: View, library: str, name: str) -> bool:
    """False where the installed release is recorded to have no class or function of that name."""
    version = view.version(library)
    record = load_record(view.matrix.folder, library) if version else None
    spans = holding(record.names, name).values() if record else ()
    return not (record and version and spans) or any(record.has(one, version) for one in spans)


def _exports(view: View, library: str, name: str) -> bool:
    record = load_record(view.matrix.folder, library)
    return record is not None and name in record.names.get(record.root, {})


def _ever_had(view: View, library: str, owner: str, name: str) -> bool:
    """True where some release's class or callable of that name has what is missed; not all have it."""
    record = load_record(view.matrix.folder, library)
    of_class = owner.partition(".")[0]
    tables = (
        (record.members.get(of_class), *map(record.keywords.get, (owner, f"{of_class}.__init__")))
        if record
        else ()
    )
    return any(name in told for told in tables if told)


def _is_known(view: View, name: str) -> bool:
    return view.facts.distribution(name) is not None or package_facts(view, name) is not None


def _is_named(view: View, module: str) -> bool:
    """True for a module whose distribution a row tells, though its releases are not on record."""
    top = module.partition(".")[0]
    return any(row.module in (top, module) for row in view.matrix.rows(tables.ImportNameRow))


def asking_package(view: View, frame: Frame | None) -> str:
    """Return the distribution in whose installed files a frame stands; empty for code of one's own."""
    if frame is None:
        return ""
    package = module_of(frame.file)
    if not package:
        folders = re.split(r"[/\\\\]", frame.file)[:-1]
        below = len(folders) - folders[::-1].index("src") if "src" in folders else 0
        folders = folders[below : below + 1] if below else folders  # what lies below src is the package
        names = {name: distribution_of(view.matrix, name) for name in reversed(folders) if name}
        package = next((name for name, whose in names.items() if _is_ours(view, whose)), "")
        first = folders[0] if folders else ""
        compiled = frame.function.startswith(f"{first}.")  # Cython names the module before the function
        rowed = names.get(first, first) != first.lower().replace("_", "-")
        telling = compiled or rowed or below > 0
        likely = (name for name in names if "_" in name or (telling and name == first))
        if not package:
            ours = (one for one in likely if (rowed and one == first) or package_facts(view, names[one]))
            package = next(ours, "")
    return distribution_of(view.matrix, package) if package else ""


def _is_ours(view: View, name: str) -> bool:
    """True for what is listed or of the stack; a recorded name that no folder has tells, too."""
    known = "-" in name and name in recorded_libraries(view.matrix.folder)
    return name in STACK or known or view.facts.distribution(name) is not None


def _remedies(view: View, wanted: Wanted, owner: str, asker: str) -> Iterator[Remedy]:
    yield from _misspelt(view, wanted, owner)
    renamed = list(_renamed(view, wanted, owner))
    yield from renamed
    yield from _elsewhere(view, wanted, owner)
    yield from _in_a_checkout(wanted)
    if wanted.lack is Lack.NAME and not asker and _never(view, wanted, owner):
        yield Remedy(
            f"Install what the code's own instructions name for {wanted.name}: the package that has it, or"
            f" the project's copy of {owner} (pip install -e . in its repository, in an environment of"
            " its own)."
        )
    if wanted.lack is Lack.MEMBER and not asker and _never(view, wanted, owner):
        yield Remedy(
            f"See how the {wanted.owner} was made: code that asks for {wanted.name} means an object of"
            " another class (a wrapper of another library's, or a model's own code, which"
            " trust_remote_code=True loads)."
        )
        yield from _before_major(view, owner)
        return
    if owner and asker:
        yield from (one for one in of_one_time(view, owner, asker) if _has_module(view, wanted, one, owner))
        yield from after_it(view, owner, asker)
    elif owner:
        yield from _before_major(view, owner)
    if wanted.lack is Lack.KEYWORD:
        yield from _belongs(view, wanted)
        if not renamed:
            yield Remedy(f"Or remove {wanted.name} from the call, where no release takes it.")
    elif owner and not asker and "._" in wanted.module:
        yield Remedy(
            f"A private module is asked by {owner} itself, as a rule: uninstall and reinstall it, for files"
            " of two releases lie over one another.",
            (*commands("pip uninstall -y {}", owner), *pip_install(owner, options="--no-cache-dir")),
        )
    names = [name for name in (owner, asker) if name and not _stands_newest(view, name)]
    if owner in names and _newest_lacks(view, wanted, owner):
        names.remove(owner)
    if not names:
        lower = f"Downgrade {owner or asker} to a release that the asking code names in its requirements"
        yield Remedy(f"{lower}: the newest has it not.")
        return
    both = f"{' and '.join(names)}{' together' if names[1:] else ''}"
    yield Remedy(
        f"Upgrade {both}, or downgrade {owner or 'what it calls'} to the release that the asking code names"
        " in its requirements.",
        pip_install(*names, options="-U") if all(_is_had(view, name) for name in names) else (),
    )


def _is_had(view: View, name: str) -> bool:
    """True for what an installer has under that name; what a folder is called may be another's there."""
    return _is_known(view, name) or _is_named(view, name)


def renames_of(view: View, library: str, is_meant: Callable[[str], bool]) -> list[RenameRow]:
    """Return the rows by which such a name of a library goes by another."""
    return [row for row in view.matrix.rows(RenameRow) if row.library == library and is_meant(row.old)]


def _renamed(view: View, wanted: Wanted, owner: str) -> Iterator[Remedy]:
    """Name what an argument is called since, where a row knows it by the callable's name."""
    told = f"{wanted.owner.partition('.')[0]}({wanted.name})"
    for row in renames_of(view, owner, told.__eq__) if wanted.lack is Lack.KEYWORD else ():
        yield Remedy(f"Write {row.new} in its place: it goes by that name since {owner} {row.since}.")


def _belongs(view: View, wanted: Wanted) -> Iterator[Remedy]:
    """Name the call of transformers that takes an argument which another one refused."""
    for row in view.matrix.rows(tables.TakenRow):
        if wanted.name in row.arguments:
            yield Remedy(row.remedy.replace("{name}", wanted.name))
    facts = (
        key_facts(view.matrix, "transformers") if wanted.owner.partition(".")[0].endswith("Trainer") else None
    )
    if facts and facts.span(wanted.name):
        yield Remedy(f"{wanted.name} is a field of TrainingArguments (SFTConfig, …): set it there, as args=.")


def _newest_lacks(view: View, wanted: Wanted, owner: str) -> bool:
    """True where the newest release on record has not what is missed, and an older one had."""
    told = [missing for missing in find_missing(view, wanted) if missing.library == owner]
    return bool(told) and all(one.spans[-1][1] < len(one.record.versions) - 1 for one in told)


def _stands_newest(view: View, name: str) -> bool:
    version = view.version(name)
    return version is not None and str(version) == newest_on(view, name, _ANY_DAY)


def _misspelt(view: View, wanted: Wanted, owner: str) -> Iterator[Remedy]:
    record = load_record(view.matrix.folder, owner) if wanted.lack is Lack.NAME else None
    if record and (spelt := spelt_as(record, wanted.name)):
        yield Remedy(f"It is spelt {spelt} in {owner}: ask for that.")


def _before_major(view: View, owner: str) -> Iterator[Remedy]:
    """Offer the releases before a major one that is young: code of one's own was written with those."""
    package, found = package_facts(view, owner), _NUMBER.search(view.version_text(owner) or "")
    if package is None or found is None or int(found[0]) < 2:
        return
    days = [
        day for v, day in zip(package.versions, package.days, strict=True) if v.startswith(f"{found[0]}.")
    ]
    if days and package.days[-1] - days[0] <= YOUNG:
        pins = {owner: f"<{found[0]}"}
        text = f"Or stay below {owner} {found[0]}, whose names are others than those of the releases before."
        yield Remedy(text, install_commands(pins), pins)


def _elsewhere(view: View, wanted: Wanted, owner: str) -> Iterator[Remedy]:
    """Name another library that exports what is missed here."""
    if wanted.lack is not Lack.NAME:
        return
    for library in libraries_with(view.matrix.folder, wanted.name):
        record = load_record(view.matrix.folder, library)
        if record and library != owner and wanted.name in record.names.get(record.root, {}):
            yield Remedy(f"{wanted.name} is a name of {library}: `from {record.root} import {wanted.name}`.")


def of_one_time(view: View, owner: str, asker: str) -> Iterator[Remedy]:
    """Offer the releases of the one from the day of the other, as far as versions are told."""
    for known, sought in ((asker, owner), (owner, asker)):
        version = view.version(known)
        day = (
            day_of(view, known, str(version)) or day_of(view, known, version.base_version)
            if version
            else None
        )
        fitting = newest_on(view, sought, day) if day is not None else None
        if day is not None and fitting and fitting != str(view.version(sought)):
            pins = {sought: f"=={fitting}"}
            yield Remedy(
                f"Take the {sought} of the time of {known} {version} ({told_day(day)}).",
                install_commands(pins),
                pins,
            )


def after_it(view: View, owner: str, asker: str) -> Iterator[Remedy]:
    """Offer the releases of an older asker from after the one of the owner that is here."""
    version, mine = view.version(owner), view.version(asker)
    pins = askers_after(view, asker, owner, version.public) if version else {}
    if pins and mine is not None and Version(pins[asker].removeprefix(">=")) > mine:
        text = f"Or take a {asker} from after {owner} {version}, which may know it."
        yield Remedy(text, install_commands(pins), pins)


def _has_module(view: View, wanted: Wanted, remedy: Remedy, owner: str) -> bool:
    """False where the owner's release that is offered has not even the module that is asked."""
    record = load_record(view.matrix.folder, owner) if wanted.module and owner in remedy.pins else None
    spans = record.modules.get(wanted.module) if record else None
    offered = Version(remedy.pins[owner].removeprefix("==")) if spans else None
    return record is None or offered is None or not spans or record.has(spans, offered)


RULES = (Rule(ID, "packages that call one another are of releases that know one another", check_generations),)
