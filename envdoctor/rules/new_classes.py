"""An attribute that an object's class never had, where the class itself is new: who asks knows it not yet.

A library put an object of another class in the place of one that its users know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envdoctor.commands import commands, install_commands
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.interface_ranges import joined
from envdoctor.matrix.interface_records import Record, libraries_with, load_record
from envdoctor.matrix.late_tables import holding
from envdoctor.rules.asked import Lack, Wanted, wanted_of
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import day_here, day_of, told_release
from envdoctor.rules.generations import YOUNG, asking_package
from envdoctor.rules.view import View

ID = "CLASS-NEWER"


def check_new_classes(view: View) -> Iterable[Finding]:
    """Name the release that brought an object's class, where no release's class has what is asked of it."""
    wanted = [w for symptom in view.facts.symptoms for w in wanted_of(view.facts, symptom)]
    members = [one for one in wanted if one.lack is Lack.MEMBER and one.owner[:1] not in ("", ".")]
    if not members:
        raise Skip("no attribute of an object is missed")
    found = {f.summary: f for one in members for f in _findings(view, one)}
    yield from found.values()


def _findings(view: View, wanted: Wanted) -> Iterator[Finding]:
    having = libraries_with(view.matrix.folder, wanted.owner)
    listed = [library for library in having if view.distribution(library)]
    libraries = listed or [library for library in having if view.installed(library) is not False]
    record = load_record(view.matrix.folder, libraries[0]) if len(libraries) == 1 else None
    since = _since(view, record, wanted) if record else 0
    if record and since and _is_strange(view, wanted, record.library, record.versions[since]):
        yield _finding(view, wanted, record.library, record.versions[since])


def _is_strange(view: View, wanted: Wanted, library: str, since: str) -> bool:
    """True where who asks cannot have made the object: its class is private, or newer than the asker."""
    if wanted.owner.startswith("_"):
        return True
    asker = asking_package(view, wanted.asker)
    asked, came = day_here(view, asker) if asker else None, day_of(view, library, since)
    return asker != library and asked is not None and came is not None and asked < came


def _since(view: View, record: Record, wanted: Wanted) -> int:
    """Return the place of the release that brought the class; 0 where it tells nothing."""
    spans = joined(holding(record.names, wanted.owner).values())
    if not spans or spans[0][0] == 0 or wanted.name in record.members.get(wanted.owner, {}):
        return 0
    version = view.version(record.library)
    if version is not None:
        return spans[0][0] if record.has(spans, version) else 0
    days = [day_of(view, record.library, record.versions[n]) for n in (spans[0][0], -1)]
    young = days[0] is not None and days[1] is not None and days[1] - days[0] <= YOUNG
    return spans[0][0] if young else 0


def _finding(view: View, wanted: Wanted, library: str, since: str) -> Finding:
    asker = asking_package(view, wanted.asker)
    who = told_release(view, asker) if asker and asker != library else "the code that asks"
    pins = {library: f"<{since}"}
    newer = (
        Remedy(f"Or upgrade {asker}, which asks.", commands("pip install -U {}", asker)) if asker else None
    )
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{wanted.owner} came with {library} {since} and has no {wanted.name} in any release that was"
        f" read: {who} was written for another class of {library} before {since}",
        cause=f"Since {since} {library} gives an object of {wanted.owner} where it gave one of another class,"
        f" which had {wanted.name}; what reads it has to know the new one.",
        evidence=(Evidence(wanted.symptom.id, wanted.symptom.text, wanted.symptom.source),),
        remedies=(
            Remedy(f"Keep {library} below {since}.", install_commands(pins), pins),
            *((newer,) if newer and asker != library else ()),
        ),
        certainty=Certainty.LIKELY if view.version(library) else Certainty.UNCERTAIN,
        sources=(f"wheel:{library}",),
        explains=(wanted.symptom.id,),
        prior=0.6,
        fallback=True,
    )


RULES = (Rule(ID, "no object is of a class that is newer than what asks it", check_new_classes),)
