"""Imports, modules, attributes and arguments that a release lacks: which releases have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from envdoctor.commands import commands
from envdoctor.facts import Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.interface_ranges import specifier_of
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.ranges import range_satisfies, version_satisfies
from envdoctor.rules.rows import install_commands
from envdoctor.rules.view import View

_DISTRIBUTIONS = {"swift": "ms-swift", "huggingface_hub": "huggingface-hub"}


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that an error line says a library lacks, and the releases that have it (PEP 440)."""

    library: str
    what: str
    specifier: str
    symptom: Symptom
    module: str = ""
    name: str = ""
    ranges: str = ""
    """All ranges of releases that have it, in words, where there are several."""
    before: str = ""
    """The specifier of the range before the one in `specifier`."""


def check_missing_interface(view: View) -> Iterable[Finding]:
    """Find which releases have the name, module or argument that an error line misses."""
    found = [missing for symptom in view.facts.symptoms for missing in find_missing(view, symptom)]
    if not found:
        raise Skip("no import, attribute or argument error was pasted")
    seen: set[tuple[str, str]] = set()
    for missing in found:
        if (missing.library, missing.what) not in seen:
            seen.add((missing.library, missing.what))
            if not _contradicted(view, missing):
                yield _finding(view, missing)
            elif view.version(missing.library) is not None:
                yield _stale_finding(view, missing)


def find_missing(view: View, symptom: Symptom) -> Iterator[Missing]:
    """Yield what the recorded interfaces say of one error line."""
    captured = symptom.captured
    if symptom.id.startswith("SYM-IMPORT-") and "module" in captured:
        yield from _missing_name(view, captured["module"], captured.get("name"), symptom)
    elif symptom.id == "SYM-NO-MODULE" and "module" in captured:
        yield from _missing_module(view, captured["module"], symptom)
    elif symptom.id == "SYM-UNEXPECTED-KWARG":
        yield from _missing_keyword(view, captured, symptom)
    elif symptom.id == "SYM-NAME-UNDEFINED":
        yield from _undefined_name(view, captured["undefined"], symptom)
    elif symptom.id == "SYM-NO-ATTRIBUTE" and "module" in captured:
        yield from _missing_attribute(view, captured["module"], captured["attribute"], symptom)


def _library(view: View, module: str) -> Mapping[str, Any]:
    top = module.partition(".")[0]
    return view.matrix.generated(f"interfaces/{_DISTRIBUTIONS.get(top, top.replace('_', '-'))}")


def _missing_name(view: View, module: str, name: str | None, symptom: Symptom) -> Iterator[Missing]:
    found = list(_missing_attribute(view, module, name, symptom)) if name else []
    yield from found or _missing_module(view, module, symptom)


def _missing_attribute(view: View, module: str, name: str, symptom: Symptom) -> Iterator[Missing]:
    data = _library(view, module)
    if spans := spans_of_name(data.get("names", {}), module, name):
        specifier = specifier_of(data["versions"], spans, _installed(view, data["library"]))
        has = told_spans(data["versions"], spans)
        older = [specifier_of(data["versions"], [span]) for span in spans]
        before = next((o for o in reversed(older) if o != specifier), "") if specifier == older[-1] else ""
        yield Missing(data["library"], f"{name} in {module}", specifier, symptom, module, name, has, before)


def spans_of_name(names: Mapping[str, Any], module: str, name: str) -> list[list[int]]:
    """Return the releases in which `module` has `name`.

    A package that exports without a list says nothing of what it dropped; where a recorded submodule defines
    the name, only the releases in which one does count.
    """
    spans: list[list[int]] = names.get(module, {}).get(name) or []
    inside = [sub for sub, known in names.items() if sub.startswith(f"{module}.") and name in known]
    below = [last for sub in inside for _, last in spans_of_name(names, sub, name)]
    if not spans or not below:
        return spans
    end = max(below)
    return [[first, min(last, end)] for first, last in spans if first <= end]


def told_spans(versions: list[str], spans: list[list[int]]) -> str:
    """Return ranges of releases in words, `4.36.0 to 4.47.1 and from 4.48.2 on`; empty for a single one."""
    if len(spans) < 2:
        return ""
    return " and ".join(_told_span(versions, first, last) for first, last in spans)


def _told_span(versions: list[str], first: int, last: int) -> str:
    if last == len(versions) - 1:
        return f"from {versions[first]} on"
    return versions[first] if first == last else f"{versions[first]} to {versions[last]}"


def _missing_module(view: View, module: str, symptom: Symptom) -> Iterator[Missing]:
    data = _library(view, module)
    spans = data.get("modules", {}).get(module)
    if spans and "." in module:
        specifier = specifier_of(data["versions"], spans, _installed(view, data["library"]))
        yield Missing(data["library"], f"the module {module}", specifier, symptom, module)


def _missing_keyword(view: View, captured: Mapping[str, str], symptom: Symptom) -> Iterator[Missing]:
    keyword, function = captured.get("kwarg", ""), captured.get("function", "")
    owner = f"{captured['class']}.{function}" if captured.get("class") else function
    if owner == "__init__":
        return
    for library in _recorded(view, keyword):
        data = view.matrix.generated(f"interfaces/{library}")
        spans = data.get("keywords", {}).get(owner, {}).get(keyword)
        if spans:
            what = f"{keyword} of {owner}()"
            yield Missing(
                library,
                what,
                specifier_of(data["versions"], spans, _installed(view, data["library"])),
                symptom,
            )


def _undefined_name(view: View, name: str, symptom: Symptom) -> Iterator[Missing]:
    """Yield the one library that exports a class of that name: a guard kept its import from running."""
    if not name[:1].isupper():
        return
    owners = []
    for library in _recorded(view, name):
        data = view.matrix.generated(f"interfaces/{library}")
        top = data["library"].replace("-", "_")
        if spans := data.get("names", {}).get(top, {}).get(name):
            owners.append((data, top, spans))
    if len(owners) == 1:
        data, top, spans = owners[0]
        specifier = specifier_of(data["versions"], spans, _installed(view, data["library"]))
        yield Missing(data["library"], f"{name} in {top}", specifier, symptom, top, name)


def _installed(view: View, library: str) -> str | None:
    version = view.version(library)
    return version.public if version else None


def _recorded(view: View, word: str) -> list[str]:
    """Return the libraries whose record holds `word`; looking for it is much cheaper than reading all."""
    folder = view.matrix.folder / "releases" / "interfaces"
    quoted = f'"{word}"'.encode("utf-8", "replace")
    return [path.stem for path in sorted(folder.glob("*.json")) if quoted in path.read_bytes()]


def _contradicted(view: View, missing: Missing) -> bool:
    """True when the installed release has what is missed, so that the cause lies elsewhere."""
    version = view.version(missing.library)
    if version is not None:
        return version_satisfies(version, missing.specifier)
    distribution = view.facts.distribution(missing.library)
    if distribution is None or not distribution.specifier:
        return False
    return range_satisfies(distribution.specifier, missing.specifier) is True


def _finding(view: View, missing: Missing) -> Finding:
    library, specifier = missing.library, missing.specifier
    installed = view.version_text(library)
    have = f"{library} {installed} is installed" if installed else f"the installed {library} is another"
    distribution = view.facts.distribution(library)
    pins = {library: specifier}
    older = _older_range(missing)
    shown = (Evidence(library, installed, distribution.source),) if installed and distribution else ()
    return Finding(
        id="INTERFACE-MISSING",
        severity=Severity.ERROR,
        summary=f"{missing.what}: only {library} {_having(missing)} it; {have}",
        cause=f"{_history(view, missing)} Whatever asks for it was written for those releases.",
        evidence=(*shown, Evidence(missing.symptom.id, missing.symptom.text, missing.symptom.source)),
        remedies=(
            Remedy(f"Use a release of {library} that has it.", install_commands(pins), pins),
            *((Remedy("Or an older one.", install_commands(older), older),) if older else ()),
            *_other_side(view, missing),
            Remedy("Change or update the code that asks for it (the frame above the error names the file)."),
        ),
        certainty=Certainty.CERTAIN if view.version(library) else Certainty.LIKELY,
        sources=(f"wheel:{library}",),
        explains=(missing.symptom.id,),
        prior=0.85,
        fallback=True,
    )


def _stale_finding(view: View, missing: Missing) -> Finding:
    """The listed release has what the failing process missed: it ran another copy."""
    library = missing.library
    module = missing.module.partition(".")[0] or library.replace("-", "_")
    installed = view.version_text(library)
    distribution = view.facts.distribution(library)
    return Finding(
        id="INTERFACE-STALE",
        severity=Severity.ERROR,
        summary=(
            f"{missing.what}: {library} {installed} does have it, so the process that failed ran another copy"
        ),
        cause=(
            f"{_history(view, missing)} Either the process had imported the former release before the "
            f"installation, or another environment, a second copy on sys.path or a fork that shares the name "
            f"stands before {library} {installed}."
        ),
        evidence=(
            Evidence(library, installed or "", distribution.source if distribution else ""),
            Evidence(missing.symptom.id, missing.symptom.text, missing.symptom.source),
        ),
        remedies=(
            Remedy("Restart the kernel or process after installing."),
            Remedy(
                "See which copy is imported, and reinstall it there.",
                (
                    *commands(
                        "python -c {}", f"import {module}; print({module}.__version__, {module}.__file__)"
                    ),
                    *commands(
                        "python -m pip install --force-reinstall --no-deps {}", f"{library}=={installed}"
                    ),
                ),
            ),
        ),
        certainty=Certainty.UNCERTAIN,
        sources=(f"wheel:{library}",),
        explains=(missing.symptom.id,),
        prior=0.4,
        fallback=True,
    )


def _older_range(missing: Missing) -> dict[str, str]:
    """Pins for the earlier releases that have it, where later ones took it away and gave it back."""
    return {missing.library: missing.before} if missing.before else {}


def _other_side(view: View, missing: Missing) -> Iterator[Remedy]:
    """Offer the releases of the importing libraries that do without what is missed."""
    if not missing.module:
        return
    for library in _recorded(view, missing.module):
        data = view.matrix.generated(f"interfaces/{library}")
        asking = data.get("imports", {}).get(missing.module, {})
        spans = asking.get(missing.name) if missing.name else [s for many in asking.values() for s in many]
        if not spans or library == missing.library or not _may_be_asking(view, library, missing):
            continue
        without = releases_without(data["versions"], spans)
        if without:
            pins = {library: without}
            yield Remedy(
                f"Use a release of {library} that does not ask for it.", install_commands(pins), pins
            )


def _may_be_asking(view: View, library: str, missing: Missing) -> bool:
    """A library asks when it is listed, or when nothing is listed at all."""
    listed = view.facts.environment.distributions
    return library in listed or not (set(listed) - {missing.library, "torch"})


def releases_without(versions: list[str], spans: list[list[int]]) -> str | None:
    """Return the releases before the first that asks, or else those after the last; None when all ask."""
    first, last = min(s[0] for s in spans), max(s[1] for s in spans)
    if last < len(versions) - 1:
        return f">={versions[last + 1]}"
    return f"<{versions[first]}" if first > 0 else None


def _having(missing: Missing) -> str:
    return f"{missing.ranges} have" if missing.ranges else f"{missing.specifier} has"


def _history(view: View, missing: Missing) -> str:
    if missing.ranges:
        return f"{missing.library} {missing.ranges} have {missing.what}; the releases between do not."
    bounds = sorted(missing.specifier.split(","), reverse=True)
    told = [f"came with {b[2:]}" if b.startswith(">=") else f"is gone from {b[1:]} on" for b in bounds if b]
    return f"In {missing.library}'s releases {missing.what} {' and '.join(told)}."


RULES = (
    Rule(
        "INTERFACE-MISSING",
        "a missing import, module or argument exists in the installed release",
        check_missing_interface,
    ),
)
