"""What hides a library: a class that overrides its method, a distribution that overwrites its files."""

from __future__ import annotations

from envdoctor import lazy_re as re
from envdoctor.commands import commands, install_commands
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.rules.asked import REMOTE, Lack
from envdoctor.rules.interface_lookup import Missing
from envdoctor.rules.view import View

_GIVEN = re.compile(r"[(,]?\s*([A-Za-z_]\w{0,60})\s*(?=[,)])")
"""What is given by position, or by its own name, in a call."""


def overridden_method(missing: Missing) -> str:
    """Return the method of its own object that a library calls otherwise than the object's class has it."""
    method = missing.wanted.owner.rpartition(".")[2]
    code = missing.wanted.asker.code if missing.wanted.asker else ""
    of_call = missing.wanted.lack in (Lack.POSITION, Lack.KEYWORD, Lack.NEEDED)
    return method if of_call and (missing.handed or f"self.{method}(" in code) else ""


def override_finding(view: View, missing: Missing, method: str) -> Finding:
    """The library calls a method of its own class, and who overrides it wrote it for another release."""
    library, record = missing.library, missing.record
    first = _handing_since(missing)
    code = missing.wanted.asker.code if missing.wanted.asker else ""
    given = _GIVEN.findall(code.partition(f"self.{method}(")[2])
    added = missing.name or (given[-1] if given else "")
    with_it = f"with {added}" if added else "with other arguments"
    taking = f"{added}=None" if added else "*args"
    since = f" since {record.versions[first]}" if first else ""
    pins = {library: f"<{record.versions[first]}"} if first else {}
    installed = view.version_text(library)
    told = f"{library} {installed}" if installed else library
    return Finding(
        id="INTERFACE-MISSING",
        severity=Severity.ERROR,
        summary=f"{missing.wanted.owner}() does not take what {told} calls it with: a class that overrides"
        f" {method} (a subclass, or a function put in its place, in the code or package that runs) is"
        f" incompatible with this version of {library}, which calls {method} {with_it}{since}",
        cause=f"{library} calls its own {method}, which takes that; what is called instead is an override"
        " that was written for another release.",
        evidence=(Evidence(missing.symptom.id, missing.symptom.text, missing.symptom.source),),
        remedies=_ways_out(view, missing, method, taking, pins),
        certainty=Certainty.LIKELY,
        sources=(f"wheel:{library}",),
        explains=(missing.symptom.id,),
        prior=0.85,
        fallback=True,
    )


def _ways_out(
    view: View, missing: Missing, method: str, taking: str, pins: dict[str, str]
) -> tuple[Remedy, ...]:
    """Return both sides: a model's own code moves by its revision alone, so the library does first."""
    remote = any(REMOTE in frame.file for error in view.facts.errors for frame in error.frames)
    verb = "Downgrade" if remote else "Or downgrade"
    whose = "the model's code (a newer revision of its files)" if remote else "the package"
    upgrade = Remedy(
        f"Upgrade {whose} whose class overrides {method} to a release of that time; in code of your own let"
        f" the override take it: def {method}(self, …, {taking}, **kwargs)."
    )
    if not pins:
        return (upgrade,)
    before = Remedy(f"{verb} (pin) {missing.library} to before it.", install_commands(pins), pins)
    return (before, upgrade) if remote else (upgrade, before)


def _handing_since(missing: Missing) -> int:
    """Return the number of the first release that hands what the override does not take; 0 for all."""
    first, last = missing.spans[-1]
    if not missing.handed:
        return first
    return last + 1 if last + 1 < len(missing.record.versions) else 0


def laid_over(view: View, library: str) -> tables.PackageTraitRow | None:
    """Return the distribution, installed or asked for, that lays its files over those of a library."""
    asked = {normalise(one.partition("[")[0]) for one in view.asked_of_installers}
    rows = (
        row
        for row in view.matrix.rows(tables.PackageTraitRow)
        if row.over == library and (not row.alike or _is_beside(view, library, row.name))
    )
    return next((row for row in rows if view.installed(row.name) or row.name in asked), None)


def _is_beside(view: View, library: str, build: str) -> bool:
    """True where a library stands beside another build of it; two names for one number may be one copy."""
    own, other = view.version(library), view.version(build)
    one = own is not None and other is not None and own.release == other.release
    return view.facts.distribution(library) is not None and (view.complete or not one)


def fork_finding(missing: Missing, row: tables.PackageTraitRow, history: str) -> Finding:
    """Two distributions share one namespace: whichever was installed last overwrote files of the other."""
    library, fork = missing.library, row.name
    return Finding(
        id="INTERFACE-STALE",
        severity=Severity.ERROR,
        summary=f"{missing.what}: {fork} (a fork or variant of {library}) installs into the same namespace"
        f" and overwrites files of {library}, so that modules of two releases are mixed",
        cause=f"{history} {fork} and {library} bring the same"
        " package; what one installs the other overwrites, and uninstalling one removes files of both.",
        evidence=(Evidence(missing.symptom.id, missing.symptom.text, missing.symptom.source),),
        remedies=(
            Remedy(
                f"Uninstall both, then reinstall the one that is meant ({library}, not {fork}), and restart.",
                (
                    *commands("pip uninstall -y {} {}", fork, library),
                    *commands("pip install --no-cache-dir {}", library),
                ),
            ),
            Remedy(f"Where {fork} is needed: keep it in an environment of its own, without {library}."),
        ),
        certainty=Certainty.LIKELY,
        rows=(row.id,),
        sources=(row.source,),
        explains=(missing.symptom.id,),
        prior=0.8,
    )
