"""Releases that the text itself blames: it worked with one and fails with another, or since an upgrade."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from packaging.version import Version

from envdoctor import lazy_re as re
from envdoctor.commands import install_commands, pip_install
from envdoctor.facts import REPORTED, ErrorSeen, Symptom
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.matrix.snapshot import STACK
from envdoctor.rules.calendar import askers_after, has_newer, is_recorded, package_facts
from envdoctor.rules.generations import asking_package
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.ranges import parse_version, version_satisfies
from envdoctor.rules.view import View
from envdoctor.values import dataclass, replace

ID = "RELEASE-BLAMED"
_FAILING = (
    "SYM-TOLD-FAILING",
    "SYM-TOLD-BREAKING",
    "SYM-TOLD-UPGRADED",
    "SYM-TOLD-LATEST",
    "SYM-TOLD-TO-PIN",
    "SYM-TOLD-SINCE",
    "SYM-TOLD-ABOVE",
    "SYM-TOLD-UNDER",
    "SYM-TOLD-NEWEST",
)
_SIDES = {"SYM-TOLD-ABOVE": ">", "SYM-TOLD-UNDER": "<"}
"""Lines that tell on which side of a release the one lies that is here."""
_WORKING = "SYM-TOLD-WORKING"
_WORKING_BARE = "SYM-TOLD-WORKING-BARE"
_COMPARED = ("SYM-TOLD-GOOD-BAD", "SYM-TOLD-BAD-GOOD", "SYM-TOLD-RAISED", "SYM-TOLD-FROM-TO")
"""Lines that set a release against another; the last tells by itself of no trouble."""
_NAMES = ("name", "blamed", "subject", "leading", "before", "high", "again")
_VERSIONS = ("version", "known", "fine")
_TROUBLE = re.compile(
    r"(?i)slow|regress|fail|br[eo]a?k|wors|degrad|\bdrop|increas|higher|lower|\bbug|error|crash|hang|hung|stuck|"
    r"\bnan\b|not work|n['’]t|issue|problem|\boom\b|memory|changed|wrong|garbage|gibberish|\bleak|colga|"
    r"falla|报错|失败|变成|变慢|卡|问题"
)
_LEADS = re.compile(r"(?i)\b(?:after|since|upon|once)\b.{0,200}:\s*$")
"""How a line ends that tells what came before the error below it."""
_NOT_TOLD = re.compile(
    r"(?i)\brequires?\b|\bdepends? on\b|\bbut you have\b|compiled using|"
    r"\bplease (?:install|upgrade|update)\b|\bno matching (?:distribution|wheel)\b|"
    r"\bis not compatible with this version of\b|"
    r"\bcould not find a version\b|\bfailed to (?:download|build|fetch)\b[^`\n]{0,12}`"
)
"""Sentences of installers and libraries, which blame no release for what happened."""
_DENIED = re.compile(
    r"(?i)(?:\bno[tn]?\b|n['’]t\b|\bnever\b|\bcannot\b|\bno longer\b|\bexpect\w{0,3}\b|\bshould\b|\bhow to\b)"
    r"[^.;,]{0,40}\b(?:work|run|fine|succeed)"
)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s{1,4}")
_WHOLE_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+){0,6}")
_NAME = re.compile(r"[a-z][\w-]{2,30}")
_OVER = re.compile(
    r"(?i)\b(?:fixe[sd]|solve[sd]|resolve[sd]|works? now|now works?|no (?:more )?(?:problem|issue|error)|"
    r"(?:is|are|was|were) gone|went away|disappear(?:s|ed))\b"
)
"""Words by which an upgrade is told that mended something."""
_OUTGROWN = re.compile(
    r"(?i)(?:\b(?:not |in)compatible with|n['’]t (?:work|run) with|\bn(?:o|['’])t support)\b[^.;\n]{0,20}"
    r"\b(?:latest|newer|newest|recent|current)\b|不(?:兼容|支持)最?新"
)
"""Words by which a release is told to be behind what has come since."""
_BY_YEAR = 1000
"""Majors above are years, of which a minor tells nothing."""
_RELEASES = 3
"""How many blamed packages are told."""


@dataclass(frozen=True, slots=True)
class Blame:
    """A package whose release the text blames."""

    name: str
    symptom: Symptom
    failing: str = ""
    """The release with which it fails; empty where the text only says `latest`."""
    op: str = ""
    working: str = ""
    """A release with which it worked, or that stood there before."""

    @property
    def formerly(self) -> str:
        """What the text says of the release before."""
        return "was there before" if self.symptom.id == "SYM-TOLD-RAISED" else "worked"


def blamed_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return what the text tells of releases as the answer to an error; None where it blames none."""
    blames = list(compared(view) or _blames(view))[:_RELEASES]
    if not blames:
        return None
    told = [_told(view, blame) for blame in blames]
    paired = any(blame.working and blame.failing for blame in blames)
    failed = error.kind != "said" or blames[0].failing or REPORTED in view.facts.notes
    return Finding(
        id=ID,
        severity=Severity.ERROR if failed else Severity.WARNING,
        summary=f"the text itself says that it came with {' and '.join(told)}: {error.text[:200]}",
        cause="What is called changed between releases, or this one has a bug that others do not have; which"
        " of both is not on record here. " + " ".join(_quoted(blame) for blame in blames),
        evidence=(
            Evidence("error", error.text, error.source),
            *(Evidence(b.symptom.id, b.symptom.text[:200], b.symptom.source) for b in blames),
        ),
        remedies=_remedies_of_all(view, blames, error),
        certainty=Certainty.LIKELY if paired else Certainty.UNCERTAIN,
        explains=tuple(dict.fromkeys((*error.symptoms, *(b.symptom.id for b in blames if paired)))),
        prior=0.8 if paired else 0.45,
    )


def with_working(view: View, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings; errors about a package of which the text tells what worked, with that release."""
    worked = [blame for blame in compared(view) if _release(view, blame.name, blame.working)]
    return [_or_as_before(finding, worked) for finding in findings] if worked else list(findings)


def _or_as_before(finding: Finding, worked: Sequence[Blame]) -> Finding:
    if finding.id == ID or finding.severity is not Severity.ERROR or not finding.explains:
        return finding
    more = [
        _pinned(
            blame.name,
            f"=={blame.working}",
            f"Or go back to the {blame.name} that the text says {blame.formerly}.",
        )
        for blame in worked
        if _is_about(finding, blame.name)
        and not any(remedy.pins.get(blame.name) == f"=={blame.working}" for remedy in finding.remedies)
    ]
    return replace(finding, remedies=(*finding.remedies, *more)) if more else finding


def _is_about(finding: Finding, name: str) -> bool:
    """True where a finding names a package, whatever stands between the parts of its name."""
    said = normalise(f"{finding.summary} {' '.join(name for r in finding.remedies for name in r.pins)}")
    return name in _WHOLE_NAME.findall(said)


def compared(view: View) -> tuple[Blame, ...]:
    """Return the packages of which the text sets a release that works against one that does not."""
    symptoms = (s for kind in _COMPARED for s in view.facts.symptoms if s.id == kind)
    found: dict[str, Blame] = {}
    for blame in filter(None, map(partial(_set_apart, view), symptoms)):
        found.setdefault(blame.name, blame)
    return tuple(found.values())


def _set_apart(view: View, symptom: Symptom) -> Blame | None:
    told = symptom.captured
    bad = told.get("version") or told.get("newer") or ""
    good = told.get("known") or told.get("older") or ""
    before, after = parse_version(good), parse_version(bad)
    if before is None or after is None or before == after or _OVER.search(symptom.text):
        return None
    if symptom.id == "SYM-TOLD-FROM-TO":
        if not (_TROUBLE.search(symptom.text) or _LEADS.search(symptom.text)):
            return None
        good, bad = (good, bad) if before < after else (bad, good)
    name = _package(view, symptom) or _subject(view, symptom, good, bad) or _unread(view, symptom)
    known = bool(name) and package_facts(view, name) is not None
    if not name or (known and not (_release(view, name, good) and _release(view, name, bad))):
        return None
    return Blame(name, symptom, bad, "", good)


def _unread(view: View, symptom: Symptom) -> str:
    """Return the package that the line names by its whole name, of which no releases are on record."""
    words = (word.lower() for word in re.findall(r"[A-Za-z][\w-]{2,40}", symptom.text))
    return next((word for word in words if "-" in word and is_recorded(view, word)), "")


def _subject(view: View, symptom: Symptom, good: str, bad: str) -> str:
    """Return the one package that two bare releases are of: named in the line, or listed with one of them."""
    words = [word.replace("_", "-").lower() for word in re.findall(r"[A-Za-z][\w-]{1,30}", symptom.text)]
    words += [word.partition("-")[0] for word in words]
    named = [name for name in dict.fromkeys(words) if name in STACK]
    listed = [n for n, one in view.facts.environment.distributions.items() if one.version in (good, bad)]
    for names in (named, listed, [*view.facts.environment.distributions]):
        having = [n for n in names if _release(view, n, good) and _release(view, n, bad)]
        if len(having) == 1:
            return having[0]
    return ""


def _told(view: View, blame: Blame) -> str:
    version = blame.failing or view.version_text(blame.name) or ""
    range_ = f"{blame.op if blame.op != '==' else ''}{version}"
    told = f"{blame.name} {range_}" if version else f"a newer {blame.name}"
    return f"{told} ({blame.working} {blame.formerly})" if blame.working else told


def _quoted(blame: Blame) -> str:
    return f"It says: “{blame.symptom.text[:160].strip(' #')}”."


def _blames(view: View) -> Iterator[Blame]:
    """Yield the packages that are blamed, those with a release first."""
    worked = {name: s for s in view.facts.symptoms if s.id == _WORKING and (name := _worked(view, s))}
    found: dict[str, Blame] = {}
    for symptom in view.facts.symptoms:
        name = _package(view, symptom) if symptom.id in _FAILING else ""
        if symptom.id == "SYM-TOLD-SINCE" and _TROUBLE.search(symptom.text):
            name = _subject(view, symptom, *[_version_of(symptom)] * 2)
        if not name or _NOT_TOLD.search(symptom.text) or _is_over(symptom):
            continue
        version = _release(view, name, _version_of(symptom))
        if _version_of(symptom) and not version:
            continue
        working = _version_of(worked[name]) if name in worked else _bare(view, name, version)
        op = _SIDES.get(symptom.id) or symptom.captured.get("op", "")
        blame = Blame(name, symptom, version, op, working)
        if working and working == version:
            continue
        if name not in found or (version and not found[name].failing):
            found[name] = blame
    for name, symptom in worked.items():
        installed = view.version_text(name) or ""
        if name not in found and installed != _version_of(symptom):
            found[name] = Blame(name, symptom, installed, "", _version_of(symptom))
    yield from sorted(found.values(), key=lambda blame: (not blame.failing, not blame.working))


def _bare(view: View, name: str, failing: str) -> str:
    """Return a release before the blamed one called fine by its number alone: `4.49 was fine`."""
    told = (_version_of(s) for s in view.facts.symptoms if s.id == _WORKING_BARE)
    bad = parse_version(failing) if failing else None
    ours = ((one, parse_version(one)) for one in told if _release(view, name, one))
    return next((one for one, good in ours if good and bad and good < bad), "")


def _is_over(symptom: Symptom) -> bool:
    """True where the sentence that names the release tells that it mended what was wrong."""
    words = _version_of(symptom), symptom.captured.get("name", "")
    about = [one for one in _SENTENCE_END.split(symptom.text) if all(word in one for word in words)]
    return bool(about) and all(map(_OVER.search, about))


def _worked(view: View, symptom: Symptom) -> str:
    denied = _DENIED.search(symptom.text) or _NOT_TOLD.search(symptom.text)
    return "" if denied or symptom.captured.get("op", "")[:1] in ("<", ">") else _package(view, symptom)


def _version_of(symptom: Symptom) -> str:
    return next((symptom.captured[g] for g in _VERSIONS if symptom.captured.get(g)), "")


def _package(view: View, symptom: Symptom) -> str:
    """Return the distribution that a line names; empty where the word is none."""
    word = next((symptom.captured[g] for g in _NAMES if symptom.captured.get(g)), "").strip(".-_").lower()
    name = distribution_of(view.matrix, word.replace("-", "_")) if word else ""
    known = name in STACK or view.facts.distribution(name) or any(symptom.captured.get(g) for g in _VERSIONS)
    return name if name and known and package_facts(view, name) else ""


def _release(view: View, name: str, version: str) -> str:
    """Return a told release if the package has one of it, or may have by now; empty for another number."""
    package, told = package_facts(view, name), parse_version(version) if version else None
    if package is None or told is None:
        return ""
    minor = f"{version}."
    known = str(told) in package.position or any(v.startswith(minor) for v in package.versions)
    newest = Version(package.versions[-1])
    coming = newest < told and told.major <= newest.major + 1
    return version if known or coming or told.is_prerelease else ""


def _remedies_of_all(view: View, blames: Sequence[Blame], error: ErrorSeen) -> tuple[Remedy, ...]:
    """Return the ways out; where one blamed release asks for another of the next, that is the first."""
    pairs = ((one, other) for one in blames for other in blames if one is not other and not one.working)
    asked = [(way, one, other) for one, other in pairs for way in _as_asked(view, one, other)]
    told = {name for _, one, other in asked for name in (one.name, other.name)}
    first = (way for way, _, _ in asked)
    return (*first, *(way for b in blames if b.name not in told for way in _remedies(view, b, error)))


def _as_asked(view: View, blame: Blame, other: Blame) -> Iterator[Remedy]:
    """Offer the releases of a blamed package that the release blamed beside it asks for in its metadata."""
    package, told = package_facts(view, blame.name), parse_version(blame.failing)
    asker = package_facts(view, other.name)
    place = asker.position.get(other.failing, -1) if asker else -1
    row = asker.row_of(place) if asker and place >= 0 else -1
    wanted = asker.requirements(row, "") if asker and package and told and row >= 0 else ()
    for spec in {package.spec_text(one.spec) for one in wanted if package and one.name == blame.name}:
        if spec and told and not version_satisfies(told, spec):
            text = f"Take the {blame.name} that {other.name} {other.failing} asks for."
            yield _pinned(blame.name, spec, text)


def _remedies(view: View, blame: Blame, error: ErrorSeen) -> Iterator[Remedy]:
    name, failing = blame.name, blame.failing or view.version_text(blame.name) or ""
    told = parse_version(failing) if failing else None
    if blame.op.startswith("<") and told:
        yield _pinned(name, f"{'>=' if blame.op == '<' else '>'}{failing}", f"Raise {name}.")
        return
    if told and not blame.working and _is_outgrown(view, blame.symptom.text):
        yield _pinned(name, f">{told.public}", f"Raise {name}: it is told to be behind what has come since.")
        return
    if blame.working:
        yield _pinned(name, f"=={blame.working}", f"Take the {name} that the text says {blame.formerly}.")
    elif told:
        bound = f"<={told.public}" if blame.op == ">" else f"<{_first_of(told)}"
        yield _pinned(name, bound, f"Go back to a release of {name} from before.")
    else:
        yield Remedy(f"Downgrade {name} to the release that the asking code was written for.")
    if told and has_newer(view, name, told):
        text = f"Or take a newer {name} than {told.public}: a regression is often mended soon."
        yield Remedy(text)  # without pins: a plan goes to where it worked
    for way in _askers(view, blame, error, told):
        yield Remedy(way.text) if blame.working else way


def _first_of(told: Version) -> str:
    """Return the first release of the minor that a release belongs to, with which most changes come."""
    if told.is_postrelease or told.is_prerelease or not told.micro or told.major > _BY_YEAR:
        return told.public if not told.is_postrelease else told.base_version
    return f"{told.major}.{told.minor}"


def _is_outgrown(view: View, text: str) -> bool:
    """True where a release is told to be behind what has come since, or beside a card of the newest kind."""
    if _OUTGROWN.search(text):
        return True
    newest = max(view.matrix.rows(tables.ArchitectureRow), key=lambda row: max(row.capabilities))
    words = (newest.name.lower(), *(capability.sm for capability in newest.capabilities))
    cards = [card.row for card in view.matrix.cards.find(text) if card.row]
    return any(word in text.lower() for word in words) or any(
        row.compute_capability in newest.capabilities for row in cards
    )


def _askers(view: View, blame: Blame, error: ErrorSeen, told: Version | None) -> Iterator[Remedy]:
    """Offer the asking package's releases from after the blamed one."""
    packages = (asking_package(view, frame) for frame in reversed(error.frames))
    asker = next((p for p in packages if p and p != blame.name), "") or _named_beside(blame)
    if not asker:
        yield Remedy(
            f"Or update the code or package that calls {blame.name} to a release that knows the newer one."
        )
    elif told and (pins := askers_after(view, asker, blame.name, told.public)):
        text = f"Or upgrade {asker} to a release from after {blame.name} {told.public}."
        yield Remedy(text, install_commands(pins), pins)
    else:
        text = f"Or upgrade {asker}: a later release may know the newer {blame.name}."
        yield Remedy(text, pip_install(asker, options="-U"))


def _named_beside(blame: Blame) -> str:
    """Return the package of the stack that the sentence names beside the blamed one; empty for none."""
    words = (word.replace("_", "-") for word in _NAME.findall(blame.symptom.text.lower()))
    return next((word for word in words if word in STACK and word not in (blame.name, "torch")), "")


def _pinned(name: str, specifier: str, text: str) -> Remedy:
    pins = {name: specifier}
    return Remedy(text, install_commands(pins), pins)
