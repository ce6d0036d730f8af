"""Model types that a package registers and that transformers has by now: since which release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envdoctor.commands import install_commands, pip_install
from envdoctor.facts import Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.interface_records import load_record
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import askers_after
from envdoctor.rules.generations import asking_package
from envdoctor.rules.interface_lookup import family_modules
from envdoctor.rules.view import View

ID = "MODEL-TYPE-TAKEN"
_SYMPTOM = "SYM-CONFIG-NAME-TAKEN"


def check_taken(view: View) -> Iterable[Finding]:
    """Find the release of transformers that brought the model type which a package registers too."""
    seen = [symptom for symptom in view.facts.symptoms if symptom.id == _SYMPTOM]
    if not seen:
        raise Skip("no model type was refused as taken")
    yield from {f.summary: f for s in seen if (f := _finding(view, s))}.values()


def _finding(view: View, symptom: Symptom) -> Finding | None:
    told, config = symptom.captured.get("name", ""), symptom.captured.get("config", "")
    record = load_record(view.matrix.folder, "transformers")
    names = [told.replace("-", "_")] if told else family_modules(config)
    name = next((n for n in names if record and f"transformers.models.{n}" in record.modules), "")
    if record is None or not name or (spans := record.modules[f"transformers.models.{name}"])[0][0] == 0:
        return None
    since, asker = record.versions[spans[0][0]], _registering(view, symptom)
    version = view.version_text("transformers")
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"transformers {since} and newer bring the model type {name} themselves; "
        f"{asker or 'a package'} registers it again, as it is older than that",
        cause="AutoConfig.register refuses a name that transformers has: a package that brought the model"
        " ahead of transformers has to go without since." + (f" Here is {version}." if version else ""),
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=tuple(_remedies(view, since, asker)),
        certainty=Certainty.LIKELY,
        sources=("wheel:transformers",),
        explains=(symptom.id,),
        prior=0.9,
    )


def _registering(view: View, symptom: Symptom) -> str:
    """Return the package that registers: the innermost frame's that is not transformers, or a listed one."""
    frames = [f for e in view.facts.errors if symptom.id in e.symptoms for f in e.frames]
    packages = (p for frame in reversed(frames) if (p := asking_package(view, frame)) != "transformers")
    listed = (name for name in _bringing(view) if view.facts.distribution(name))
    return next((p for p in packages if p), "") or next(listed, "")


def _bringing(view: View) -> Iterator[str]:
    return (name for name, row in view.matrix.frameworks.items() if row.registers)


def _remedies(view: View, since: str, asker: str) -> Iterator[Remedy]:
    pins = {"transformers": f"<{since}"}
    yield Remedy("Use the last transformers from before.", install_commands(pins), pins)
    package = asker or next(_bringing(view))
    if later := askers_after(view, package, "transformers", since):
        text = f"Or, where {package} registers it, raise {package} to a release from after that."
        yield Remedy(text, install_commands(later), later)
    else:
        yield Remedy(f"Or upgrade {package}.", pip_install(package, options="-U"))


RULES = (Rule(ID, "no package registers a model type that transformers has", check_taken),)
