"""Arguments that a parser refused: which releases know them, and whose they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.commands import commands, install_commands, pip_install
from envdoctor.facts import Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.profile.keys import KeyFacts, key_facts
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.view import View
from envdoctor.values import dataclass

_ITEM = re.compile(r"(?:^|[\s'\"\[,])--?([A-Za-z][\w-]{1,80})|'([A-Za-z_]\w{1,80})'")
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]{1,80}")
_WORD = re.compile(r"[._]")
SHOWN = 6


@dataclass(frozen=True, slots=True)
class _Refused:
    """One refused key: the facts of the framework that has it in some release, if one does."""

    key: str
    owner: KeyFacts | None
    version: str | None

    @property
    def inherited(self) -> bool:
        """True for a key of a training run that the command at hand does not make."""
        return self.owner is not None and self.owner.has(self.key, self.version) is True


def check_refused_arguments(view: View) -> Iterable[Finding]:
    """Say of each argument that a parser refused which releases have it."""
    refusals = {line for row in view.matrix.frameworks.values() for line in row.refusals}
    refusals.update(line for row in view.matrix.rows(tables.ProgramRow) for line in row.refusals)
    seen = [s for s in view.facts.symptoms if s.id in refusals and parse_keys(s.captured.get("keys", ""))]
    if not seen:
        raise Skip("no parser refused an argument")
    for symptom in {s.captured["keys"]: s for s in reversed(seen)}.values():
        strange = _strange_program(view, symptom)
        if strange:
            yield _of_program(view, *strange, symptom)
        else:
            yield _of_script(symptom) if _is_scripts(view, symptom) else _finding(view, symptom)


def _strange_program(view: View, symptom: Symptom) -> tuple[str, tuple[str, ...]] | None:
    """Return the program whose parser speaks, and what shows its options; None of scripts and frameworks."""
    program = symptom.captured.get("program", "")
    for row in view.matrix.rows(tables.ProgramRow):
        if symptom.id in row.refusals or program in row.parsers:
            return row.name, (row.help,)
    known = ((name, row.parser, row.module, *row.programs) for name, row in view.matrix.frameworks.items())
    ours = program.removesuffix("-cli") in {one for names in known for one in names if one}
    strange = program and not ours and not program.endswith(".py")
    return (program, commands("{} --help", program)) if strange else None


def _of_program(view: View, command: str, help_: tuple[str, ...], symptom: Symptom) -> Finding:
    told = parse_keys(symptom.captured["keys"])
    keys = ", ".join(f"--{key.replace('_', '-')}" for key in told[:SHOWN])
    return Finding(
        id="ARGUMENT-UNKNOWN",
        severity=Severity.ERROR,
        summary=f"{command} has no option {keys} in the release that runs, or not for this subcommand",
        cause="A parser stops at what it does not know. A project that is like another one need not have its"
        " options, and an older release lacks those that came later.",
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            *(way for key in told for way in _called_here(view, command, key)),
            Remedy("See which options it has.", help_),
            Remedy(f"Leave {keys} out, or upgrade {command} to a newer release that has it."),
        ),
        certainty=Certainty.LIKELY,
        sources=("https://docs.python.org/3/library/argparse.html",),
        explains=(symptom.id,),
        prior=0.8,
    )


def _is_scripts(view: View, symptom: Symptom) -> bool:
    """True where none of the frameworks whose parser it may be is told, and none has an argument of these."""
    frameworks, program = _frameworks(view, symptom), symptom.captured.get("program", "")
    if len(frameworks) < 2:
        return False  # the wording tells whose it is
    told = any(view.installed(name) for name in frameworks) or any(s.framework for s in view.facts.settings)
    if any(_speaks(view, name, symptom) for name in frameworks) or (told and not program.endswith(".py")):
        return False
    return not any(_look_up(view, key, frameworks).owner for key in parse_keys(symptom.captured["keys"]))


def _of_script(symptom: Symptom) -> Finding:
    """A script's own parser, whose options no release of a library decides."""
    script = symptom.captured.get("program") or "the script that was started"
    keys = ", ".join(_OPTION.findall(symptom.captured["keys"])[:SHOWN])
    keys = keys or ", ".join(parse_keys(symptom.captured["keys"])[:SHOWN])
    return Finding(
        id="ARGUMENT-UNKNOWN",
        severity=Severity.ERROR,
        summary=f"{script} does not know {keys}: its own parser has no such argument",
        cause="A script takes the options that it declares itself (for HfArgumentParser the fields of its"
        " dataclasses) and stops at others: it is of another commit than the command (a README that is newer"
        " or older), or the argument is misspelt or meant for another script.",
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            Remedy("See which arguments it has.", commands("python {} --help", script))
            if symptom.captured.get("program")
            else Remedy("See which arguments it has: start it with --help alone."),
            Remedy(f"Run script and command of one commit (git pull, git log -S), or leave {keys} out."),
        ),
        certainty=Certainty.LIKELY,
        sources=("https://docs.python.org/3/library/argparse.html",),
        explains=(symptom.id,),
        prior=0.8,
    )


def parse_keys(text: str) -> tuple[str, ...]:
    """Return the names in a list of refused arguments: options where there are any, else quoted words."""
    options: list[str] = []
    quoted: list[str] = []
    for option, word in _ITEM.findall(text):
        (options if option else quoted).append((option or word).replace("-", "_"))
    bare = re.fullmatch(r"\s*([a-z][a-z0-9_]{2,80})\W*", text)
    return tuple(dict.fromkeys(options or quoted or ([bare[1]] if bare else ())))


def _finding(view: View, symptom: Symptom) -> Finding:
    frameworks = _frameworks(view, symptom)
    refused = [_look_up(view, key, frameworks) for key in parse_keys(symptom.captured["keys"])]
    speaks = view.installed(frameworks[0]) or _speaks(view, frameworks[0], symptom)
    owner = frameworks[0] if speaks else _owner(frameworks, refused)
    version = view.version(owner)
    told = [words for r in refused if (words := _words(r, owner))]
    return Finding(
        id="ARGUMENT-UNKNOWN",
        severity=Severity.ERROR,
        summary="; ".join(
            (f"{owner}{f' {version}' if version else ''} refuses {_named(refused)}", *told[:2])
        ),
        cause=_cause(owner, refused, told),
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=tuple(_remedies(view, owner, refused)),
        certainty=Certainty.LIKELY,
        sources=(f"wheel:{owner}",),
        explains=(symptom.id,),
        prior=0.8,
    )


def _owner(frameworks: Sequence[str], refused: Sequence[_Refused]) -> str:
    """Return whose parser it was: the first that some key is a key of, but not by inheritance."""
    having = {r.owner.framework for r in refused if r.owner}
    return next((name for name in frameworks if name in having), frameworks[0])


def _named(refused: Sequence[_Refused]) -> str:
    return ", ".join(r.key for r in refused[:SHOWN]) + (" and more" if len(refused) > SHOWN else "")


def _frameworks(view: View, symptom: Symptom) -> tuple[str, ...]:
    """Return the frameworks whose parser it may be, the likeliest first.

    Of several the installed one is meant, else the one that ever knew the key.
    """
    named = {name: row for name, row in view.matrix.frameworks.items() if symptom.id in row.refusals}
    here = [name for name in named if _speaks(view, name, symptom)]
    here += [name for name in named if view.installed(name)]
    here += [s.framework for s in view.facts.settings if s.framework in named and s.framework]
    return tuple(dict.fromkeys([*here, *named]))


def _speaks(view: View, framework: str, symptom: Symptom) -> bool:
    """True for the framework whose program the line names."""
    program = symptom.captured.get("program", "").removesuffix("-cli")
    return bool(program) and (view.matrix.frameworks[framework].parser or framework) in program


def _called_here(view: View, program: str, key: str) -> Iterator[Remedy]:
    """Yield what a program calls an option that others, or people, call by the key."""
    from difflib import get_close_matches

    rows = [row for row in view.matrix.rows(tables.OptionRow) if program in row.names]
    written = {_as_key(name) for row in rows for names in row.names.values() for name in names.split()}
    close = [] if key in written else get_close_matches(key, sorted(written), 1, 0.84)
    key = close[0] if close else key
    for row in rows:
        name = row.names[program].split()[0]
        meant = {other: names.split() for other, names in row.names.items()}
        of = [other for other, names in meant.items() if key in map(_as_key, names) and other != program]
        if (close or _as_key(name) != key) and (of or key in map(_as_key, meant[program])):
            whose = f" ({meant[of[0]][0]} is {of[0]}'s)" if of and key == _as_key(meant[of[0]][0]) else ""
            yield Remedy(f"Write {name}: so {program} calls {row.means}{whose}.")


def _as_key(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def _look_up(view: View, key: str, frameworks: Sequence[str]) -> _Refused:
    """Return who has the key: now, before who had it once."""
    found = []
    for name in dict.fromkeys(b for f in frameworks for b in view.matrix.frameworks.with_bases(f)):
        facts = key_facts(view.matrix, name)
        if facts and facts.span(key):
            version = view.version(name)
            found.append(_Refused(key, facts, str(version) if version else None))
    return next((r for r in found if r.inherited), found[0] if found else _Refused(key, None, None))


def _words(refused: _Refused, owner: str) -> str:
    """Say in which releases the owner has the key; nothing of what it merely inherits or has now."""
    if refused.owner is None or refused.owner.framework != owner or (refused.inherited and refused.version):
        return ""
    first, after = refused.owner.span(refused.key) or ("", None)
    return f"{owner} has {refused.key} from {first}{f' to before {after}' if after else ' on'}"


def _cause(owner: str, refused: Sequence[_Refused], told: Sequence[str]) -> str:
    misplaced = [r for r in refused if r.inherited]
    unknown = [r for r in refused if r.owner is None]
    parts = [
        "The parser stops at what it does not know.",
        f"{'; '.join(told[:SHOWN])}." if told else "",
        f"Known to the framework, but not to the command that was run: {_named(misplaced)} (a file for"
        " training given to another command), or another installation was run."
        if misplaced
        else "",
        f"No release of {owner} that was read has {_named(unknown)}: it is of a later release or of another"
        " command, or it is misspelt."
        if unknown
        else "",
    ]
    return " ".join(part for part in parts if part)


def _remedies(view: View, owner: str, refused: Sequence[_Refused]) -> Iterator[Remedy]:
    called = [way for r in refused for way in _called_here(view, owner, r.key)]
    yield from called
    missing = [r for r in refused if r.owner and _words(r, owner)]
    for r in missing[:1]:
        first, after = r.owner.span(r.key) or ("", None) if r.owner else ("", None)
        pins = {owner: f">={first},<{after}" if after else f">={first}"}
        yield Remedy(f"Install a {owner} that has {r.key}.", install_commands(pins), pins)
    if not called and any(r.inherited for r in refused):
        yield Remedy("Give the command a file of its own with its own keys only; see which copy is run.")
    if owner == "sglang" and not called:
        for r in refused:
            if "_" in r.key:
                yield Remedy(f"Write --{r.key.replace('_', '-')}: its options have hyphens.")
    for r in refused:
        if r.owner is None and not called and (close := _nearest(view, owner, r.key)):
            option = f"--{close.replace('_', '-')}" if view.matrix.frameworks[owner].dashed else close
            yield Remedy(f"Write {option}, if that is meant.")
    update = pip_install(owner, options="-U")
    yield Remedy(f"Remove {_named(refused)}, or update {owner} to the release it was written for.", update)


def _nearest(view: View, framework: str, key: str) -> str:
    from difflib import get_close_matches

    facts = key_facts(view.matrix, framework)
    if facts is None:
        return ""
    close = get_close_matches(key, sorted(facts.fields), 1, 0.84)
    return close[0] if close else _of_same_words(key, facts.fields)


def _of_same_words(key: str, known: Iterable[str]) -> str:
    """Return the key that says all words of another, itself or by what stands under it; empty for none."""
    words = {word.rstrip("s") for word in key.split("_")}
    saying = (one for one in known if words <= {word.rstrip("s") for word in _WORD.split(one)})
    return min(saying, key=len, default="").partition(".")[0] if len(words) > 1 else ""


RULES = (
    Rule("ARGUMENT-UNKNOWN", "the parser knows every argument that it was given", check_refused_arguments),
)
