"""Keys of training and serving files: those that the pinned release lacks, has renamed, or never had."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from envdoctor.commands import commands
from envdoctor.facts import Setting
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.profile.keys import KeyFacts, key_facts
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.key_files import KeyFile, key_files, leaf, path_of
from envdoctor.rules.view import View
from envdoctor.values import dataclass

SECTIONS = frozenset({"axolotl", "accelerate"})
"""Frameworks that hand sections on as they stand: what reads them may take more than is declared."""
SECTIONS = frozenset(
    {
        "zero_optimization",
        "offload_optimizer",
        "offload_param",
        "fp16",
        "bf16",
        "fsdp_config",
        "deepspeed_config",
    }
)
"""Sections whose keys are all known; others may hold whatever their reader wants."""
FREE = frozenset({"env", "plugins", "name", "description", "vllm", "trl", "swift", "transformers"})
"""Words that stand before a colon or a command without being a setting."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a framework's releases tell, and the release at hand (None: not told)."""

    facts: KeyFacts
    version: str | None
    inherited: bool

    def has(self, key: str) -> bool | None:
        """Whether the release at hand has the key; None where it was not read.

        Where no release is told the newest is meant, and of inherited keys any: frameworks hold what they
        inherit from back to older releases.
        """
        if self.version is None and self.inherited:
            return self.facts.span(key) is not None
        return self.facts.has(key, self.version)

    @property
    def is_certain(self) -> bool:
        """True when all keys of the release at hand are known."""
        known = self.version is not None and self.facts.position(self.version) is not None
        return known and not self.facts.may_take_more(self.version)


def check_keys(view: View) -> Iterable[Finding]:
    """Find keys that are gone from, or unknown to, the release at hand."""
    files = list(key_files(view.facts.settings, view.matrix.frameworks))
    if not files:
        raise Skip("no settings file is told")
    for file in files:
        yield from _judge_file(view, file)


def _judge_file(view: View, file: KeyFile) -> Iterator[Finding]:
    heads = {path_of(setting).partition(".")[0] for setting in file.settings}
    told = list(_told(view, file.framework.name, heads))
    unknown: dict[str, Setting] = {}
    gone: dict[str, Finding] = {}
    for setting in file.settings:
        if not told or leaf(setting) in FREE or _is_variable(setting.native_key or ""):
            continue
        key = missing_key(setting, told)
        if key is None:
            if not any(t.inherited and t.has(path_of(setting)) for t in told):
                yield from _of_a_usual_trainer(view, file.framework, setting, heads)
            if finding := _outdated(view, setting, told):
                yield finding
        elif owner := next((t for t in told if t.facts.span(key)), None):
            gone.setdefault(key, _gone(view, file.framework, owner, key, setting))
        else:
            unknown.setdefault(key, setting)
    if file.framework.scripts and sum(not _suggestion(key, told) for key in unknown) > 1:
        return  # a script's own settings stand among the framework's: their names may be anyone's
    yield from gone.values()
    for key, setting in unknown.items():
        yield from _unknown_key(file.framework, key, setting, told)


def _told(view: View, framework: str, heads: Collection[str]) -> Iterator[Told]:
    for name in view.matrix.frameworks.with_bases(framework):
        if facts := key_facts(view.matrix, name):
            version = _version(view, name)
            yield Told(facts.for_file(heads, version), version, name != framework)


def _of_a_usual_trainer(
    view: View, framework: tables.FrameworkRow, setting: Setting, heads: Collection[str]
) -> Iterator[Finding]:
    """A key of trainers that the file has no other sign of: it may be meant for the usual one."""
    facts, version = key_facts(view.matrix, framework.name), _version(view, framework.name)
    key = path_of(setting)
    if facts and (usual := facts.without_unusual(key, heads, version)):
        found = _gone(view, framework, Told(usual, version, False), key, setting)
        yield replace(found, severity=Severity.WARNING, certainty=Certainty.LIKELY)


def missing_key(setting: Setting, told: Sequence[Told]) -> str | None:
    """Return the key or section of a setting that the releases at hand lack; None where that is not so.

    A key is followed into its sections as far as their keys are all known.
    """
    head, *below = path_of(setting).split(".")
    if below and told[0].facts.flat and any(t.facts.span(head) and t.has(head) is False for t in told):
        return head
    for spellings in _steps(setting, told[0].facts.flat):
        answers = [t.has(spelling) for t in told for spelling in spellings]
        known = any(t.facts.span(spelling) for t in told for spelling in spellings)
        if not any(answers):
            return None if None in answers and known else spellings[0]
        if not any(t.facts.knows_section(spellings[0], t.version) for t in told):
            return None
    return None


def _steps(setting: Setting, flat: bool) -> Iterator[tuple[str, ...]]:
    """Yield the keys to look up, outermost first, each with the spellings under which it may be known."""
    *sections, name = path_of(setting).split(".")
    if flat:
        yield _spellings(sections[-1] if sections else "", name)
        return
    yield from ((".".join(sections[:depth]),) for depth in range(1, len(sections) + 1))
    parent = ".".join(sections)
    yield tuple(f"{parent}.{s}" if parent else s for s in _spellings(sections[-1] if sections else "", name))


def _spellings(section: str, name: str) -> tuple[str, ...]:
    """A section `fsdp_config` takes its keys with and without `fsdp_` before them."""
    if not section.endswith("_config"):
        return (name,)
    prefix = section.removesuffix("config")
    return tuple(dict.fromkeys((name, prefix + name, name.removeprefix(prefix))))


def _is_variable(key: str) -> bool:
    """True for an environment variable, bare or in a section of them."""
    return key.isupper() or key.lower().startswith("env.")


def _version(view: View, name: str) -> str | None:
    version = view.version(name)
    return str(version) if version else None


def _gone(view: View, framework: tables.FrameworkRow, owner: Told, key: str, setting: Setting) -> Finding:
    facts, version = owner.facts, owner.version
    first, after = facts.span(key) or ("", None)
    row = _renamed(view, facts.framework, key)
    written = setting.native_key if path_of(setting).endswith(key) else key
    shown = f"{facts.framework} {version}" if version else f"the newest {facts.framework}"
    when = f"it went with {after}" if after else f"it came with {first}"
    instead = f": use {row.to}" if row and row.to else ""
    note = f" ({row.note})" if row and row.note else ""
    return Finding(
        id="SETTING-KEY-GONE",
        severity=_gone_severity(framework, version, setting.native_key or key),
        summary=f"{shown} has no key {written}{instead}{note}; {when}",
        cause=f"{key} is declared by {facts.framework} from {first} to before {after or 'now'}.",
        evidence=(Evidence(setting.native_key or key, setting.value, setting.source),),
        remedies=tuple(_key_remedies(facts, key, row, (first, after), version)),
        certainty=Certainty.CERTAIN if owner.is_certain else Certainty.LIKELY,
        rows=(row.id,) if row else (),
        sources=(row.source if row else f"wheel:{facts.framework}",),
    )


def _gone_severity(framework: tables.FrameworkRow, version: str | None, key: str) -> Severity:
    """An error where the parser stops at it; a note where it may still be read as it stands in a section."""
    if "." in key and framework.loose_sections:
        return Severity.NOTE
    return Severity.ERROR if version and framework.strict else Severity.WARNING


def _key_remedies(
    owner: KeyFacts,
    name: str,
    row: tables.RenamedRow | None,
    span: tuple[str, str | None],
    version: str | None,
) -> Iterator[Remedy]:
    if row and row.to:
        yield Remedy(f"Rename {name} to {row.to}.", commands("{}: …", row.to))
    elif row:
        yield Remedy(f"Remove {name}{': ' + row.note if row.note else ''}.")
    first, after = span
    if version:
        specifier = f">={first},<{after}" if after else f">={first}"
        yield Remedy(f"Or use a {owner.framework} that has it.", pins={owner.framework: specifier})


def _outdated(view: View, setting: Setting, told: Iterable[Told]) -> Finding | None:
    """A key that still works but warns that it will go."""
    from envdoctor.rules.ranges import version_satisfies

    name = leaf(setting)
    for item in told:
        owner = item.facts.framework
        row, installed = _renamed(view, owner, name), view.version(owner)
        if row is None or row.deprecated is None or installed is None:
            continue
        if version_satisfies(installed, f">={row.deprecated}"):
            return Finding(
                id="SETTING-KEY-DEPRECATED",
                severity=Severity.NOTE,
                summary=f"{name} is now {row.to} in {owner} {installed}; {row.note}",
                cause=f"{owner} {row.deprecated} took up the new name and warns of the old one.",
                evidence=(Evidence(setting.native_key or name, setting.value, setting.source),),
                remedies=(Remedy(f"Rename {name} to {row.to}.", commands("{}: {}", row.to, setting.value)),),
                rows=(row.id,),
                sources=(row.source,),
            )
    return None


def _renamed(view: View, framework: str, key: str) -> tables.RenamedRow | None:
    rows, name = view.matrix.rows(tables.RenamedRow), key.rpartition(".")[2]
    return next((r for r in rows if r.framework == framework and r.native == name), None)


def _suggestion(key: str, told: Iterable[Told]) -> str:
    """Return the key of the releases at hand, in the same section, that is spelt nearest, or nothing."""
    import difflib

    section = key.rpartition(".")[0]
    known = {
        k
        for t in told
        for k in t.facts.fields
        if k.rpartition(".")[0] == section and t.facts.has(k, t.version) is not False
    }
    close = difflib.get_close_matches(key, sorted(known), 1, 0.84)
    return close[0] if close else ""


def _unknown_key(
    framework: tables.FrameworkRow, key: str, setting: Setting, told: Sequence[Told]
) -> Iterator[Finding]:
    """A key that no release has: an error where its parser surely stops, a note where it is passed over."""
    name = setting.native_key or ""
    parent = path_of(setting).split(".")[-2] if told[0].facts.flat and "." in name else ""
    close = _suggestion(key, told)
    whole = framework.closed and not told[0].facts.may_take_more(told[0].version)
    unread = any(t.has(key) is None for t in told)
    foreign = not told[0].facts.flat and key != path_of(setting) and "." not in key
    if (parent and parent not in SECTIONS) or (not close and (not whole or unread or foreign)):
        return  # a section that no release has is another program's: so then is the file
    refuses = framework.strict and not parent and "." not in key
    stops = refuses and bool(close) and told[0].is_certain
    hint = f"; {close} is meant?" if close else ""
    written = name if told[0].facts.flat else key
    read = f"{'that was read ' * unread}from {told[0].facts.versions[0]} on "
    yield Finding(
        id="SETTING-KEY-UNKNOWN",
        severity=Severity.ERROR
        if stops
        else Severity.WARNING
        if (refuses or close) and not unread
        else Severity.NOTE,
        summary=f"no release of {framework.name} {read}has a key {written}{hint}",
        cause="Its parser stops at unknown keys."
        if refuses
        else "Its parser passes over unknown keys in silence, so the setting has no effect.",
        evidence=(Evidence(name, setting.value, setting.source),),
        remedies=(Remedy(f"Write {close}." if close else f"Remove {written}."),),
        certainty=Certainty.CERTAIN if stops and all(t.is_certain for t in told) else Certainty.LIKELY,
        sources=(f"wheel:{framework.name}",),
    )


RULES = (
    Rule("SETTING-KEY", "keys of settings files exist in the pinned releases", check_keys, "general:fields"),
)
