"""A model that is told of, and a transformers older than its family: what else fails there comes of that."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor import lazy_re as re
from envdoctor.commands import install_commands
from envdoctor.facts import ErrorSeen
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.interface_ranges import specifier_of
from envdoctor.matrix.interface_records import load_record
from envdoctor.rules.generations import asking_package
from envdoctor.rules.ranges import version_satisfies
from envdoctor.rules.view import View

ID = "MODEL-NEWER-THAN-LIBRARY"
LIBRARY = "transformers"
_MISFITS = re.compile(r"(?:Attribute|Type|Import|Key|Value|NotImplemented)Error$|^$")
_OF_LIBRARY = re.compile(r"\b[A-Z]\w{2,40}(?:Tokenizer(?:Fast)?|Processor|Config|Model|For[A-Z]\w{3,40})\b")
_PARTS = re.compile(r"[^a-z0-9]+")


def newer_model_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return since when transformers has the family of the model that is told, where it may be too old."""
    setting = view.facts.setting("model")
    if setting is None or not _MISFITS.search(error.exception):
        return None
    if error.frames and asking_package(view, error.frames[-1]) not in ("", LIBRARY):
        return None  # another library stopped, over something of its own
    family, since = next(_families(view, str(setting.value)), ("", ""))
    version = view.version(LIBRARY)
    if not since or (version is not None and version_satisfies(version, since)):
        return None
    if version is None and not _OF_LIBRARY.search(error.text):
        return None
    pins = {LIBRARY: since}
    told = f"{LIBRARY} {version} is older than" if version else f"{LIBRARY} may be older than"
    distribution = view.facts.distribution(LIBRARY)
    shown = (Evidence(LIBRARY, str(version), distribution.source),) if version and distribution else ()
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{told} the model {setting.value}, whose family ({family}) came with {LIBRARY}"
        f" {since.removeprefix('>=')}: {error.text[:200]}",
        cause="An older release takes the model's files for those of a family that it knows, as far as it"
        " can; its classes then lack what the model's tokenizer, processor or config asks for.",
        evidence=(
            Evidence("error", error.text, error.source),
            Evidence("model", str(setting.value), setting.source),
            *shown,
        ),
        remedies=(
            Remedy(f"Upgrade {LIBRARY} to a release that has the model.", install_commands(pins), pins),
        ),
        certainty=Certainty.LIKELY if version else Certainty.UNCERTAIN,
        sources=(f"wheel:{LIBRARY}",),
        explains=error.symptoms,
        prior=0.7 if version else 0.35,
    )


def _families(view: View, model: str) -> Iterator[tuple[str, str]]:
    """Yield the longest beginning of a model's name that is a family's module, with its releases."""
    record = load_record(view.matrix.folder, LIBRARY)
    parts = [part for part in _PARTS.split(model.rpartition("/")[2].lower()) if part]
    for end in range(len(parts), 0, -1):
        name = "_".join(parts[:end])
        for module in (name, re.sub(r"_(?=\d)", "", name)):
            spans = record.modules.get(f"{LIBRARY}.models.{module}") if record else None
            if record and spans:
                yield (
                    module,
                    specifier_of(list(record.versions), [list(span) for span in spans]).partition(",<")[0],
                )
