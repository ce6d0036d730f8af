"""Which releases have what an error misses: answers out of the recorded interfaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from envdoctor import lazy_re as re
from envdoctor.facts import Symptom
from envdoctor.facts.names import normalise
from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.interface_ranges import joined, specifier_of
from envdoctor.matrix.interface_records import (
    Record,
    Spans,
    libraries_taking,
    libraries_with,
    load_record,
    recorded_libraries,
)
from envdoctor.matrix.late_tables import holding
from envdoctor.matrix.snapshot import STACK
from envdoctor.rules.asked import Lack, Wanted
from envdoctor.rules.calendar import standing_on_none
from envdoctor.rules.import_chains import package_of
from envdoctor.rules.ranges import parse_version, range_satisfies
from envdoctor.rules.standard_modules import standard_members
from envdoctor.rules.view import View
from envdoctor.values import dataclass, replace

_SUFFIX = re.compile(r"(For[A-Z]\w{0,60}|Model|LMHeadModel|LM|Config|TextConfig|VisionConfig)$")
_MODEL = re.compile(r"(?:For[A-Z]\w{2,60}|[a-z]Model|LMHeadModel)$")
_BASE = re.compile(
    r"(?!TF|Flax)\w{2,60}Mixin|PreTrained\w{2,60}|Module|Trainer|SentenceTransformer|DiffusionPipeline"
)
"""Classes that models, tokenizers and trainers derive from."""
DISTINCT = 12
"""Letters from which the name of a member is one library's own."""
_OWN = 20
"""Letters from which it is so even where the library is not told."""
_WORD = re.compile(r"[A-Z]{1,12}(?=[A-Z][a-z])|[A-Z]?[a-z0-9]{1,24}|[A-Z]{1,12}")
_FEW = 2
"""Libraries that may be meant where none is told, above which none is named."""
_WORDS = 8
"""Words of a class's name that are looked at."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that an error line says a library lacks, and the releases that have it."""

    record: Record
    what: str
    spans: Spans
    """The releases that have it, or that take what is given."""
    wanted: Wanted
    module: str = ""
    name: str = ""
    sure: bool = True
    """False where the error line does not name the library."""
    unnamed: bool = False
    """True where it does not even name the class: that the argument came or went tells whose it is."""
    handed: bool = False
    """True where the library hands to an override more than that takes: the releases hand it less."""

    @property
    def library(self) -> str:
        """The library's distribution."""
        return self.record.library

    @property
    def symptom(self) -> Symptom:
        """The error line."""
        return self.wanted.symptom

    @property
    def in_all(self) -> bool:
        """True where no release that was read lacks it."""
        return not self.record.others(self.spans)


def find_missing(view: View, wanted: Wanted) -> list[Missing]:
    """Return what the recorded interfaces say of something that is missed."""
    match wanted.lack:
        case Lack.NAME:
            return _missing_name(view, wanted)
        case Lack.MODULE:
            return _missing_module(view, wanted, wanted.module)
        case Lack.UNDEFINED:
            return _undefined(view, wanted)
        case _:
            return _of_owners(view, wanted)


def record_of(matrix: Matrix, module: str) -> Record | None:
    """Return the record of the library that a module belongs to."""
    return load_record(matrix.folder, distribution_of(matrix, module))


def distribution_of(matrix: Matrix, module: str) -> str:
    """Return the distribution that brings a module."""
    top = module.partition(".")[0]
    if module.startswith("google.protobuf"):
        return "protobuf"
    names = (top, ".".join(module.split(".")[:2]), module)
    rows = [row for row in matrix.rows(tables.ImportNameRow) if row.module in names]
    row = max(rows, key=lambda row: len(row.module), default=None)
    return row.distribution if row else normalise(top)


def _missing_name(view: View, wanted: Wanted) -> list[Missing]:
    module, name = wanted.module, wanted.name
    record = record_of(view.matrix, module)
    if record is None:
        return []
    module = _whole_module(record, module, name)
    if (path := f"{module}.{name}") in record.names and path not in record.modules:
        always = [[0, len(record.versions) - 1]]  # a module that came and went with none of the releases
        return [Missing(record, f"{name} in {module}", always, wanted, module, name)]
    if spans := record.names.get(module, {}).get(name, ()):
        return [Missing(record, f"{name} in {module}", spans, wanted, module, name)]
    if inside := record.modules.get(path, ()):
        return [Missing(record, f"the module {module}.{name}", inside, wanted, module, name)]
    if view.version(record.library) and (spelt := spelt_as(record, name)):
        exported = record.names[record.root][spelt]
        what = f"{spelt} in {record.root}"
        return [Missing(record, what, exported, wanted, record.root, spelt, sure=False)]
    if module == record.root == "transformers" and (family := _family_spans(record, name)):
        return [Missing(record, f"{name} in {module}", family, wanted, module, name)]
    return []  # whose name cannot be imported is there itself


def _whole_module(record: Record, module: str, name: str) -> str:
    """Return the module that has the name where a line is cut within the module's; else as it is told."""
    if module in record.modules or module in record.names:
        return module
    whole = [known for known in holding(record.names, name) if known.startswith(module)]
    return whole[0] if len(whole) == 1 else module


def spelt_as(record: Record, name: str) -> str:
    """Return the name of a library that differs from `name` in underscores and capitals alone."""
    letters = name.replace("_", "").lower()
    alike = (known for known in record.names.get(record.root, {}) if known != name)
    return next((known for known in alike if known.replace("_", "").lower() == letters), "")


def _family_spans(record: Record, name: str) -> Spans:
    """Return the releases of transformers that have the folder of a model's family: it brings its classes."""
    folders = (f"transformers.models.{module}" for module in family_modules(name))
    return next((record.modules[folder] for folder in folders if folder in record.modules), ())


def family_modules(architecture: str) -> list[str]:
    """Return the names of the modules that may hold an architecture or its config, likeliest first."""
    stem = _SUFFIX.sub("", architecture)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", stem).lower()
    flat = words.replace("_", "")
    return list(dict.fromkeys((words, flat, f"{flat}_mm", f"{words}_vl", re.sub(r"_(?=\d)", "", words))))


def _missing_module(view: View, wanted: Wanted, module: str) -> list[Missing]:
    record = record_of(view.matrix, module)
    spans = record.modules.get(module) if record else None
    if record is None or not spans or "." not in module:
        return []
    return [Missing(record, f"the module {module}", spans, wanted, module)]


def _undefined(view: View, wanted: Wanted) -> list[Missing]:
    """Return the one library that exports a class of that name: a guard kept its import from running."""
    found = []
    for library in libraries_with(view.matrix.folder, wanted.name) if wanted.name[:1].isupper() else ():
        record = load_record(view.matrix.folder, library)
        if record and (spans := record.names.get(record.root, {}).get(wanted.name)):
            what = f"{wanted.name} in {record.root}"
            found.append(Missing(record, what, spans, wanted, record.root, wanted.name))
    if len(found) > 1:
        found = [m for m in found if view.version(m.library)] or [m for m in found if m.library in STACK]
    return found if len(found) == 1 else []


def _of_owners(view: View, wanted: Wanted) -> list[Missing]:
    """Return what a library says that has a callable or class of the name: the one that fits the facts."""
    called = f"{wanted.owner}({wanted.name})" if wanted.lack is Lack.KEYWORD and wanted.owner else ""
    if called and standard_members(view, called):
        return []  # a function of Python's own that other Pythons give the keyword
    if loaded := _of_loaded(view, wanted):
        return [loaded]
    found = [
        missing
        for library in _candidates(view, wanted)
        if (record := load_record(view.matrix.folder, library)) and (missing := _of_owner(record, wanted))
    ]
    if not any(view.distribution(m.library) and not is_contradicted(view, m) for m in found):
        found = list(_of_callers(view, wanted, alone=not found)) or found
    found = _originals(view, found) or list(_of_bases(view, wanted))
    found = found or list(_of_replaced(view, wanted)) or _of_unnamed(view, wanted)
    fitting = [m for m in found if view.version(m.library) and not is_contradicted(view, m)]
    if fitting:
        return fitting[:1] if len({m.library for m in fitting}) == 1 else []
    unlisted = [m for m in found if view.version(m.library) is None]
    if len(unlisted) == len(found) <= _FEW and all(missing.unnamed for missing in found):
        return found
    return found[:1] if len({m.library for m in unlisted or found}) == 1 else []


def _of_unnamed(view: View, wanted: Wanted) -> list[Missing]:
    """Return whose methods of a bare name (`__init__`) take the argument in other releases than these."""
    if wanted.lack is not Lack.KEYWORD or "." in wanted.owner:
        return []
    method, others = wanted.owner or "__init__", {*recorded_libraries(view.matrix.folder)}.difference(STACK)
    taking = libraries_taking(view.matrix.folder, method, wanted.name)  # of what is no other
    listed = [library for library in taking if view.distribution(library)]
    listed = listed or [n for n in taking if view.installed(n) is not False]
    found = []
    for library in (*listed, *sorted(filter(view.distribution, others))):
        record, version = load_record(view.matrix.folder, library), view.version(library)
        told = holding(record.keywords, wanted.name) if record else {}
        owners = {owner: spans for owner, spans in told.items() if owner.split(".")[-1] == method}
        lacking = [o for o, told in owners.items() if not (record and version and record.has(told, version))]
        if record and lacking:
            owner = min(lacking, key=lambda name: (name.startswith("_"), len(name), name))
            what = f"{wanted.name} of {owner.removesuffix('.__init__')}()"
            named = replace(wanted, owner=owner)
            found.append(
                Missing(record, what, owners[owner], named, name=wanted.name, sure=False, unnamed=True)
            )
    return _originals(view, found)


def _of_loaded(view: View, wanted: Wanted) -> Missing | None:
    """Return the releases whose from_pretrained takes what it hands on to a model's constructor in others."""
    class_, _, method = wanted.owner.partition(".")
    if wanted.lack is not Lack.KEYWORD or method not in ("", "__init__") or not _MODEL.search(class_):
        return None
    folder = view.matrix.folder
    record = load_record(folder, "transformers")
    spans = record.keywords.get("PreTrainedModel.from_pretrained", {}).get(wanted.name) if record else None
    others = set(libraries_with(folder, class_)) - {"transformers"}
    if record is None or not spans or others or wanted.name in record.keywords.get(f"{class_}.__init__", {}):
        return None
    what, asked = f"{wanted.name} of {class_}.from_pretrained()", replace(wanted, asker=None)
    found = Missing(record, what, spans, asked, name=wanted.name, sure=False)
    return None if is_contradicted(view, found) else found


def _originals(view: View, found: list[Missing]) -> list[Missing]:
    """Return what untold libraries say, without one that stands on another: it has it from there."""
    libraries = {missing.library for missing in found}
    if len(libraries) < 2 or any(view.version(library) for library in libraries):
        return found
    originals = standing_on_none(view, libraries)
    return [m for m in found if m.library in originals] or found


def _of_bases(view: View, wanted: Wanted) -> Iterator[Missing]:
    """Yield what is known of the classes that one of the user's own, or a model, derives from.

    A method of its own that takes less than what the library passes, or a member that its bases lost.
    """
    class_, _, method = wanted.owner.partition(".")
    if wanted.lack is Lack.POSITION and not method:
        yield from _of_patched(view, wanted)
        return
    recorded = class_[:1].isupper() and libraries_with(view.matrix.folder, class_)
    if wanted.lack is Lack.MEMBER:
        kin = _of_ancestors(view, wanted, recorded) if recorded else _of_kin(view, wanted)
        if first := next(kin, None):
            yield first
            return
    for library in ("torch",) if recorded else _DERIVED_FROM if class_[:1].isupper() else ():
        record = load_record(view.matrix.folder, library) if view.installed(library) is not False else None
        if record is None:
            continue
        if wanted.lack is Lack.POSITION and method:
            few = _fewer(record, method, wanted.count - 1)
            spans, what = few, f"a call of {method}() with fewer arguments"
        elif wanted.lack is Lack.KEYWORD and method not in ("", "__init__"):
            spans = _not_taking(record, method, wanted.name)
            what = f"a call of {method}() without {wanted.name}"
        elif wanted.lack is Lack.MEMBER and (
            recorded or view.distribution(library) or len(wanted.name) >= _OWN
        ):
            spans = _base_spans(record, wanted.name)
            what = f"{wanted.name} of the classes that {class_} derives from"
        else:
            continue
        if spans:
            yield Missing(record, what, spans, wanted, name=wanted.name, sure=False)


def _of_callers(view: View, wanted: Wanted, *, alone: bool) -> Iterator[Missing]:
    """Yield the library that hands an override an argument which its base class took on with it.

    One that is listed; `alone`, where nothing else is known of the owner, one that may be there, too.
    """
    class_, _, method = wanted.owner.partition(".")
    if wanted.lack not in (Lack.KEYWORD, Lack.POSITION) or not class_[:1].isupper():
        return
    if method in ("", "__init__"):
        return
    less = "with fewer arguments" if wanted.lack is Lack.POSITION else f"without {wanted.name}"
    listed = [library for library in _DERIVED_FROM if view.distribution(library)]
    able = [library for library in _DERIVED_FROM if view.installed(library) is not False]
    for library in listed or (able if alone else ()):
        record = load_record(view.matrix.folder, library)
        spans = record and (
            _handing_less(record, method, wanted) or _base_handed_less(record, class_, wanted)
        )
        if record and spans:
            what = f"a call of {method}() {less}"
            yield Missing(record, what, spans, wanted, name=wanted.name, sure=False, handed=True)
            return


def _of_replaced(view: View, wanted: Wanted) -> Iterator[Missing]:
    """Yield the library that calls a method of its own with an argument which what stands in its place lacks.

    A project's patched `forward`, as a rule; where the class is told, its bases tell more.
    """
    if wanted.lack is not Lack.KEYWORD or "." in wanted.owner or wanted.asker is None:
        return
    package = package_of(wanted.asker.file)
    record = record_of(view.matrix, package) if package and wanted.owner not in ("", "__init__") else None
    if record and (spans := _not_taking(record, wanted.owner, wanted.name)):
        what = f"a call of {wanted.owner}() without {wanted.name}"
        yield Missing(record, what, spans, wanted, name=wanted.name, sure=False, handed=True)


def _not_taking(record: Record, method: str, argument: str) -> Spans:
    """Return the releases in which no method of that name takes an argument; none where never one does."""
    taken = holding(record.keywords, argument).items()
    return _without(record, joined(spans for name, spans in taken if name.endswith(f".{method}")))


def _handing_less(record: Record, method: str, wanted: Wanted) -> Spans:
    """Return the releases in which no base class's method of that name takes what an override is handed."""
    told = [
        record.keywords[name]
        for name in record.keywords
        if name.endswith(f".{method}") and _BASE.fullmatch(name.partition(".")[0])
    ]
    if wanted.lack is Lack.KEYWORD:
        return _without(record, joined(entries.get(wanted.name, ()) for entries in told))
    most = wanted.count - 1
    return joined(spans for entries in told for name, spans in entries.items() if _most(name) < most)


def _base_handed_less(record: Record, class_: str, wanted: Wanted) -> Spans:
    """Return the releases in which the class that one is named after does not take an argument.

    `LlavaLlamaForCausalLM` overrides a method of LlamaForCausalLM, which hands itself what it came to take.
    """
    method = wanted.owner.rpartition(".")[2]
    bases = (class_[at:] for at, letter in enumerate(class_) if letter.isupper() and at)
    told = next((t for base in bases if (t := record.keywords.get(f"{base}.{method}"))), {})
    return _without(record, told.get(wanted.name, ())) if wanted.lack is Lack.KEYWORD else ()


def _of_patched(view: View, wanted: Wanted) -> Iterator[Missing]:
    """Yield what is known of a method whose place a function takes that bears its name: `_my_get_samples`."""
    folder, words = view.matrix.folder, wanted.owner.split("_")
    methods = (name for at in range(1, len(words)) if len(name := "_".join(words[at:])) >= DISTINCT)
    named = (
        (m, library) for m in methods for c in _PATCHED for library in libraries_with(folder, f"{c}.{m}")
    )
    for method, library in dict.fromkeys(named):
        if library not in _DERIVED_FROM or view.installed(library) is False:
            continue
        record = load_record(folder, library)
        if record and (spans := _fewer(record, method, wanted.count - 1)):
            what = f"a call of {method}() with fewer arguments"
            yield Missing(record, what, spans, wanted, sure=False)


def _fewer(record: Record, method: str, given: int) -> Spans:
    """Return the releases in which a library's own method of that name takes fewer arguments than given."""
    told = [record.keywords[name] for name in record.keywords if name.endswith(f".{method}")]
    return joined(spans for entries in told for entry, spans in entries.items() if _most(entry) < given)


def _of_kin(view: View, wanted: Wanted) -> Iterator[Missing]:
    """Yield what is known of the classes after which one is named: `GRPOTrainer` of `GRPOEnvTrainer`."""
    for base in kin_of(wanted.owner):
        for library in libraries_with(view.matrix.folder, base):
            known = library in _DERIVED_FROM and view.installed(library) is not False
            record = load_record(view.matrix.folder, library) if known else None
            if record and (spans := record.members.get(base, {}).get(wanted.name)):
                what = f"{wanted.name} of {base}, after which {wanted.owner} is named"
                yield Missing(record, what, spans, wanted, name=wanted.name, sure=False)


def _of_ancestors(view: View, wanted: Wanted, known: Sequence[str]) -> Iterator[Missing]:
    """Yield what another library says of a base that a library's class is named after: `Trainer`."""
    starts = [at for at, letter in enumerate(wanted.owner) if letter.isupper()][1:]
    for base in (wanted.owner[at:] for at in starts):
        for library in libraries_with(view.matrix.folder, base):
            if library in known or library not in _DERIVED_FROM or view.installed(library) is False:
                continue
            record = load_record(view.matrix.folder, library)
            if record and (spans := record.members.get(base, {}).get(wanted.name)):
                what = f"{wanted.name} of {base}, from which {wanted.owner} derives"
                yield Missing(record, what, spans, wanted, name=wanted.name, sure=False)


def kin_of(class_: str) -> list[str]:
    """Return the names that are left of a class's name without some of its words, the longest first."""
    words = _WORD.findall(class_[:200])[:_WORDS]
    count = len(words)
    left = ((i, j) for i in range(count) for j in range(i + 1, count + 1) if 2 <= count - (j - i) < count)
    return ["".join((*words[:i], *words[j:])) for i, j in sorted(left, key=lambda cut: cut[1] - cut[0])]


def _base_spans(record: Record, member: str) -> Spans:
    """Return the releases whose classes that others derive from have a member with a name of its own."""
    told = holding(record.members, member) if len(member) >= DISTINCT else {}
    return joined(spans for name, spans in told.items() if _BASE.fullmatch(name))


_PATCHED = ("Trainer", "PreTrainedModel", "GenerationMixin", "Accelerator")
"""Classes whose methods other packages put functions of their own in the place of."""
_DERIVED_FROM = ("transformers", "trl", "peft", "accelerate", "sentence-transformers", "diffusers")
"""Libraries whose classes the code of models and trainers derives from."""


def _candidates(view: View, wanted: Wanted) -> list[str]:
    folder = view.matrix.folder
    if not wanted.owner:
        libraries = (name for name in recorded_libraries(folder) if view.distribution(name))
        return list(libraries) if wanted.lack is Lack.SETTER else []
    having = libraries_with(folder, wanted.owner)
    listed = [library for library in having if view.distribution(library)]
    return listed or [library for library in having if view.installed(library) is not False]


def _of_owner(record: Record, wanted: Wanted) -> Missing | None:
    owner, name = wanted.owner, wanted.name
    told = record.keywords.get(owner, {})
    match wanted.lack:
        case Lack.KEYWORD:
            spans, what = told.get(name, ()), f"{name} of {owner}()"
        case Lack.MEMBER:
            spans, what = record.members.get(owner, {}).get(name, ()), f"{name} of {owner}"
        case Lack.NEEDED:
            spans, what = _without(record, told.get(f"!{name}", ())), f"{owner}() without {name}"
        case Lack.POSITION:
            spans, what = _taking(record, told, wanted), f"{wanted.count} positional arguments of {owner}()"
        case _:
            spans, what = _settable(record, wanted), f"setting {name} of {owner or _owning(record, name)}"
    return Missing(record, what, spans, wanted, name=name, sure=False) if spans else None


def _without(record: Record, spans: Spans) -> Spans:
    return record.others(spans) if spans else ()


def _taking(record: Record, told: Mapping[str, Spans], wanted: Wanted) -> Spans:
    """Return the releases that take as many arguments by position; `self` counts where there is one."""
    given = wanted.count - (1 if "." in wanted.owner else 0)
    few = [span for entry, spans in told.items() if _most(entry) < given for span in spans]
    return _without(record, few)


def _most(entry: str) -> int:
    return int(entry[1:]) if entry.startswith("~") else 1 << 30


def _settable(record: Record, wanted: Wanted) -> Spans:
    told = holding(record.members, f"={wanted.name}")
    owners = [wanted.owner] if wanted.owner else list(told)
    return _without(record, [span for owner in owners for span in told.get(owner, ())])


def _owning(record: Record, name: str) -> str:
    return " or ".join(holding(record.members, f"={name}"))


def is_contradicted(view: View, missing: Missing) -> bool:
    """True when the installed release has what is missed, so that the cause lies elsewhere."""
    version = view.version(missing.library)
    if version is not None:
        return missing.record.knows(version) and missing.record.has(missing.spans, version)
    distribution = view.distribution(missing.library)
    if distribution is None or not distribution.specifier:
        return False
    return range_satisfies(distribution.specifier, specifier_for(view, missing)) is True


def specifier_for(view: View, missing: Missing) -> str:
    """Return the releases that have what is missed, the range nearest to what is installed (PEP 440)."""
    distribution, record = view.distribution(missing.library), missing.record
    version, versions = parse_version(distribution.told) if distribution else None, list(record.versions)
    ranges = specifier_of(versions, [list(s) for s in missing.spans], version.public if version else None)
    unread = version is not None and not record.knows(version) and not ranges.startswith(">")
    return ",".join(filter(None, (f">={versions[0]}" if unread else "", ranges)))
