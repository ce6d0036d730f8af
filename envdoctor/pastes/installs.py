"""What installers were asked for: exact pins of `pip install` commands, and `upgraded NAME from A to B`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.facts import INSTALLING, Distribution
from envdoctor.matrix.lexicon import PackageNames
from envdoctor.pastes.distributions import VERSION
from envdoctor.pastes.sightings import Paste, Sighting

KEPT = 24
"""How many names are told."""
CONTINUED = 12
"""Lines of a command that are read."""
_COMMAND = re.compile(r"\b(?:pip3?|uv(?: pip)?|poetry|pdm) (?:install|add|sync)\b(.{1,600})")
_PIN = re.compile(rf"(?<![\w./=-])([A-Za-z][\w.-]{{1,60}})(?:\[[\w,-]{{1,60}}\])?==({VERSION})(?![\w.*])")
_BARE = re.compile(
    r"(?<![\w./=:@-])([A-Za-z][\w.-]{1,60}(?:\[[\w,-]{1,60}\])?)(?=[\s'\"`,;)<>=!~\u3002\uff0c]|$)"
)
_OPTION = re.compile(r"\s--?[A-Za-z][\w-]*(?:[= ](?:https?://|\.{0,2}/|\w+\.(?:txt|toml)|:)\S*)?")
_ENDS = re.compile(r"[`|&;#]|&&|\s(?:and|but|then|it|in|on|to|for|with|from|i)\s")
_MOVED = re.compile(
    rf"(?i)\b(?:up|down)(?:grad|dat)\w{{1,3}}(?: of)? ([a-z][\w-]{{1,40}})(?: version)? "
    rf"(?:from v?{VERSION} )?to (?:version )?v?({VERSION})(?![\w.*])"
)
_NO_FACT = re.compile(
    r"(?i)\btry\b|\bshould\b|\bneed|\bplease\b|\bfix|\bsolv|\bhelp|\bworks?\b|\bworked\b|\brequire|\binstead\b|"
    r"\byou can\b|\bor\b|\bif\b|\bfails?\b|\bfailed\b|\bcan ?not\b|\bcan't\b|\btried\b"
)
_REFUSED = re.compile(
    r"(?i)no matching distribution|could not find a version|ResolutionImpossible|No solution found|"
    r"metadata-generation-failed|Failed building wheel|subprocess-exited-with-error"
)


def parse_installs(paste: Paste, lines: Sequence[str]) -> Iterator[Sighting]:
    """Yield the releases that installers were told to bring; none that a text asks for in two releases.

    A text in which an installer refused tells of none: what it was asked for is not there. What a traceback
    among `lines`, the text as it came, runs through is installed, the rest asked for. What commands name at
    all is told in a note.
    """
    if names := list(dict.fromkeys(name for line in _commands(lines) for name in _named(line[:600]))):
        yield Sighting("note", f"{INSTALLING}{', '.join(names[:KEPT])}")
    asked: dict[str, dict[str, str]] = {}
    for index, line in paste.loose():
        for name, version in _asked(line[:600], paste.packages):
            asked.setdefault(name, {}).setdefault(version, paste.at("", index))
    if asked and any(_REFUSED.search(line) for line in lines):
        return
    for name, found in asked.items():
        for version, source in found.items() if len(found) == 1 else ():
            runs = any(f"-packages/{name.replace('-', '_')}/" in line for line in lines)
            asked_for = Distribution(name, source, specifier=f"=={version}")
            whole = Distribution(name, source, version=version)
            yield Sighting("distribution", whole if runs and "*" not in version else asked_for, source)


def _commands(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of an installer's commands, each with those that continue it."""
    for index, line in enumerate(lines):
        if " install" in line:
            end = index
            while lines[end].rstrip().endswith("\\") and end + 1 < min(len(lines), index + CONTINUED):
                end += 1
            yield " ".join(one.rstrip().removesuffix("\\") for one in lines[index : end + 1])


def _named(line: str) -> Iterator[str]:
    """Yield what a command of an installer names, extras included."""
    match = _COMMAND.search(line)
    if match and "install" in match[0]:
        words = _OPTION.sub(" ", _ENDS.split(match[1], maxsplit=1)[0])
        yield from (one for one in _BARE.findall(words) if not one.endswith((".txt", ".whl", ".toml")))


def _asked(line: str, packages: PackageNames) -> Sequence[tuple[str, str]]:
    if not ("install" in line or "add" in line or "to" in line) or _NO_FACT.search(line):
        return ()
    found = [(name, f"{v}.*" if v.count(".") < 2 else v) for name, v in _MOVED.findall(line)]
    if match := _COMMAND.search(line):
        found += _PIN.findall(match[1])
    return [(known, version) for name, version in found if (known := packages.find(name.lower()))]
