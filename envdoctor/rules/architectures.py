"""Model families that a library is too old to know: since which release it has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from envdoctor.commands import install_commands, pip_install
from envdoctor.facts import Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.interface_ranges import specifier_of
from envdoctor.matrix.interface_records import load_record
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import told_release
from envdoctor.rules.generations import asking_package
from envdoctor.rules.interface_lookup import family_modules
from envdoctor.rules.ranges import version_satisfies
from envdoctor.rules.view import View

_SYMPTOMS = ("SYM-MODEL-TYPE", "SYM-CONFIG-KEY", "SYM-VLLM-ARCHITECTURE", "SYM-TOKENIZER-CLASS")


def check_architectures(view: View) -> Iterable[Finding]:
    """Find the release since which a model type, architecture or tokenizer class is known."""
    seen = [s for s in view.facts.symptoms if s.id in _SYMPTOMS]
    if not seen:
        raise Skip("no unknown model was pasted")
    for symptom in seen:
        known = list(_known_since(view, symptom))
        if known and (other := _other_table(view, symptom)):
            yield _of_another(view, symptom, other)
            continue
        for library, what, specifier in known:
            version = view.version(library)
            if version is None or not version_satisfies(version, specifier):
                yield _finding(view, library, what, specifier, symptom)
                break
        if not known and symptom.id == "SYM-TOKENIZER-CLASS":
            yield _of_its_own(
                symptom, "tokenizer class", "tokenizer_class of tokenizer_config.json", "AutoTokenizer"
            )
        elif not known and _asked_of_mapping(view, symptom):
            yield _of_its_own(symptom, "model type", "model_type of config.json", "AutoConfig")


def _asked_of_mapping(view: View, symptom: Symptom) -> bool:
    """True for a model type that transformers' table of them lacks."""
    if symptom.id == "SYM-MODEL-TYPE":
        return True
    files = (f.file for e in view.facts.errors if symptom.id in e.symptoms for f in e.frames[-3:])
    return symptom.id == "SYM-CONFIG-KEY" and any("configuration_auto" in file for file in files)


def _other_table(view: View, symptom: Symptom) -> str:
    """Return the package, not transformers, in whose own table a model type was looked up in vain."""
    errors = (e for e in view.facts.errors if symptom.id in e.symptoms and e.frames)
    raiser = next((asking_package(view, error.frames[-1]) for error in errors), "")
    return raiser if symptom.id == "SYM-CONFIG-KEY" and raiser != "transformers" else ""


def _of_another(view: View, symptom: Symptom, library: str) -> Finding:
    name, told = symptom.captured.get("name", ""), view.version(library)
    since = _named_since(view, library, name) or (f">{told.public}" if told else "")
    pins = {library: since} if since else {}
    return Finding(
        id="MODEL-UNKNOWN",
        severity=Severity.ERROR,
        summary=f"{told_release(view, library)} does not know the model type {name}: its own table lacks it",
        cause=f"{library} has a table of the model types that it handles; a newer family comes with a newer"
        " release of it, whatever transformers knows.",
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            Remedy(f"Upgrade {library}.", install_commands(pins or {library: ""}), pins),
            Remedy(f"Or do without {library} for this model."),
        ),
        certainty=Certainty.LIKELY,
        sources=("https://docs.python.org/3/library/exceptions.html#KeyError",),
        explains=(symptom.id,),
        prior=0.8,
    )


def _named_since(view: View, library: str, name: str) -> str:
    """Return the releases of a library with a name or module that ends in a model type's; empty for none."""
    record = load_record(view.matrix.folder, library)
    tables = (*record.names.values(), record.modules) if record else ()
    ends = (f"_{name}", f".{name}")
    found = [spans for told in tables for key, spans in told.items() if key.lower().endswith(ends)]
    first = min((spans[0][0] for spans in found if spans), default=0)
    return f">={record.versions[first]}" if record and first else ""


def _of_its_own(symptom: Symptom, what: str, key: str, loader: str) -> Finding:
    """Return what is to be said of a model type or tokenizer that no release of transformers has."""
    name = symptom.captured.get("name", "")
    return Finding(
        id="MODEL-UNKNOWN",
        severity=Severity.ERROR,
        summary=f"no release of transformers that was read knows the {what} {name}: it is the model's or a"
        " project's own and its code was not loaded, or it is newer than all of them",
        cause=f"{loader} looks the {key} up in a table; a project's own is added to it by importing its code"
        f" ({loader}.register), or comes as remote code in the model's repository.",
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            Remedy("Import the package that registers it before from_pretrained, or load its own class."),
            Remedy(
                "Pass trust_remote_code=True where the repository holds the code, and keep its .py files"
                " beside a local copy.",
                ("trust_remote_code=True",),
            ),
            Remedy("Upgrade transformers, if the model is new.", pip_install("transformers", options="-U")),
        ),
        certainty=Certainty.LIKELY,
        sources=("https://github.com/InternRobotics/InternManip/issues/12",),
        explains=(symptom.id,),
        prior=0.75,
    )


def _known_since(view: View, symptom: Symptom) -> Iterator[tuple[str, str, str]]:
    name = symptom.captured.get("name", "")
    if symptom.id in ("SYM-MODEL-TYPE", "SYM-CONFIG-KEY"):
        module = f"transformers.models.{name.replace('-', '_')}"
        yield from _spans(view, "transformers", ("modules", module), f"the model type {name}")
    elif symptom.id == "SYM-TOKENIZER-CLASS":
        yield from _spans(view, "transformers", ("names", "transformers", name), f"the tokenizer {name}")
    else:
        for module in family_modules(name):
            path = f"vllm.model_executor.models.{module}"
            yield from _spans(view, "vllm", ("modules", path), f"the architecture {name}")


def _spans(view: View, library: str, path: tuple[str, ...], what: str) -> Iterator[tuple[str, str, str]]:
    record = load_record(view.matrix.folder, library)
    if record is None:
        return
    kind, *rest = path
    found: Any = record.modules if kind == "modules" else record.names
    for key in rest:
        found = found.get(key) if isinstance(found, Mapping) else None
    if found:
        yield library, what, specifier_of(list(record.versions), found).partition(",<")[0]


def _finding(view: View, library: str, what: str, specifier: str, symptom: Symptom) -> Finding:
    installed = view.version_text(library)
    distribution = view.facts.distribution(library)
    shown = (Evidence(library, installed, distribution.source),) if installed and distribution else ()
    pins = {library: specifier}
    engine = next(_engines(view, symptom), None) if library == "transformers" else None
    return Finding(
        id="MODEL-UNKNOWN",
        severity=Severity.ERROR,
        summary=f"{f'{library} {installed}' if installed else library} lacks {what}: {specifier} has it",
        cause=f"Each model family comes with a release of {library}; older releases refuse its config.",
        evidence=(*shown, Evidence(symptom.id, symptom.text, symptom.source)),
        remedies=(
            *((engine,) if engine else ()),
            Remedy(f"Upgrade {library}.", install_commands(pins), pins),
        ),
        certainty=Certainty.CERTAIN if installed else Certainty.LIKELY,
        sources=(f"wheel:{library}",),
        explains=(symptom.id,),
        prior=0.9,
    )


def _engines(view: View, symptom: Symptom) -> Iterator[Remedy]:
    """Yield the upgrade of an engine that is here and has no code of its own for the model's family.

    A transformers that knows the config is not enough for it, and may be newer than it takes.
    """
    family = symptom.captured.get("name", "").replace("-", "_")
    for engine, models in _ENGINES.items():
        version = view.version(engine)
        known = _spans(view, engine, ("modules", f"{models}.{family}"), family) if version else ()
        for _, what, specifier in known:
            if version and specifier and not version_satisfies(version, specifier):
                text = (
                    f"Upgrade {engine}, whose code for {what} came then, with the transformers it asks for."
                )
                pins = {engine: specifier}
                yield Remedy(text, install_commands(pins), pins)


_ENGINES = {"vllm": "vllm.model_executor.models", "sglang": "sglang.srt.models"}
"""Engines that serve a family by a module of their own, and where these lie."""

RULES = (Rule("MODEL-UNKNOWN", "the libraries know the model's family", check_architectures),)
