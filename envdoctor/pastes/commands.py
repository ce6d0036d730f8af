"""Shell commands and calls: `--bf16 True`, `vllm serve M --enforce-eager`, `Args(bf16=True)`."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor import lazy_re as re
from envdoctor.facts import Setting
from envdoctor.facts.quantities import parse_size
from envdoctor.matrix import tables
from envdoctor.matrix.lexicon import Frameworks
from envdoctor.pastes.platforms import parse_container
from envdoctor.pastes.settings import KeyTable, setting_sightings
from envdoctor.pastes.sightings import Paste, Sighting
from envdoctor.patterns import row_pattern

_FLAG = re.compile(
    r"(?<![\w-])--([A-Za-z][\w.-]{1,60})(?:(?:=|\s{1,4})(\"[^\"]{0,300}\"|'[^']{0,300}'|(?!-)[^\s\"'\\]{1,300}))?"
)
_KEYWORD = re.compile(
    r"(?<![\w.-])(?<!\bif )(?<!\bwhen )(?<!\bunless )"
    r"([a-z][a-z0-9]{0,30}_?\w{1,40})\s?=\s?"
    r"(\"[^\"]{0,200}\"|'[^']{0,200}'|[\w.+/-]{1,200}(?: ?(?://|\*) ?[\w.]{1,80})?)"
)
_NAMES_MODEL = re.compile(r"[\d/.-]")
"""What models' names and paths have, and the words after `vllm serve` in a sentence have not."""
_ADVICE = re.compile(
    r"(?i)\bfor example\b|\be\.g\.|\byou can\b|\bplease\b|\btry\b|\binstead\b|\bwithout\b|\brequires?\b"
)
"""Words beside which a flag is advice, not what was run."""
_SENTENCE = re.compile(
    r"\s{0,8}(?:[-*>]\s{1,3})?(?:(?i:i|we|my|when|if|with|using)|[A-Z][a-z]{1,20}) [a-z]|.{0,400}[一-鿿]"
    r"|.{1,600}[^-\s]\s(?:on|with|using|in) (?:an?|my|the|our|\d{1,2}\s?[xX*×]?|[A-Z])"
    r"[^\s=-](?:[^-]|-(?!-)){0,300}$"
)
"""A sentence with a command in it tells of more than the command."""
_QUOTED_WORDS = re.compile(r"[\"',\[\]]+")
_FROM = re.compile(r"^\s{0,8}FROM\s+(?:--platform=\S{1,40}\s+)?(\S{2,200})(?:\s+(?i:as)\s+\S+)?\s*$")
_RUN = re.compile(r"\b(?:docker|podman) run\b(.{0,1000})")
_IMAGE = re.compile(
    r"\s((?:[\w.-]{1,60}(?::\d{1,5})?/){0,3}[\w.-]{0,60}[A-Za-z][\w.-]{0,60}:[\w.+-]{1,80})(?=\s|$)"
)
_SHM = re.compile(r"--shm-size[= ](\d{1,5}\s?[gmGM][bB]?)\b")
_WITH_GPUS = re.compile(r"\s--(?:gpus|runtime|device)[= ]")
_SHARED = re.compile(r"--ipc\b|--shm-size\b|/dev/shm")
_CONTINUED = 40
"""Lines of one command that are looked through."""


def parse_commands(paste: Paste, table: KeyTable, frameworks: Frameworks) -> Iterator[Sighting]:
    """Yield the settings that flags and keyword arguments tell, and the container image of a Dockerfile."""
    framework: str | None = None
    for index, line in paste.loose():
        if "FROM " in line and (match := _FROM.match(line)):
            paste.claimed.add(index)
            yield from parse_container(match[1], paste.at("Dockerfile", index))
        if "--" in line and "[--" not in line:
            program = _program(line, frameworks)
            framework = program[0].name if program else framework
            found = list(_flags(line, table, paste.at("command line", index), framework, program))
            if found and not _SENTENCE.match(line):
                paste.claimed.add(index)
            yield from found
            yield from _container(paste, index, line)
        elif program := _program(line, frameworks):
            framework = program[0].name
            yield from _served(*program, paste.at("command line", index))
        elif "=" in line and "(" not in line[:1]:
            yield from _keywords(line, table, paste.at("", index))
        if not line.rstrip().endswith("\\"):
            framework = None


def _program(line: str, frameworks: Frameworks) -> tuple[tables.FrameworkRow, re.Match[str]] | None:
    """Return the framework that a line starts, and how."""
    for row in frameworks.values():
        if not any(word in line for word in row.words) or row.command is None:
            continue
        if match := row_pattern(row.command, case=True).search(line):
            return row, match
    return None


def _served(row: tables.FrameworkRow, match: re.Match[str], source: str) -> Iterator[Sighting]:
    if row.serves:
        yield Sighting("setting", Setting("task", "serve", source, row.name, row.name), source)
        model = match.groupdict().get("model")
        if model and _NAMES_MODEL.search(model):
            yield Sighting("setting", Setting("model", model, source, "model", row.name), source)


def _flags(
    line: str,
    table: KeyTable,
    source: str,
    framework: str | None,
    program: tuple[tables.FrameworkRow, re.Match[str]] | None,
) -> Iterator[Sighting]:
    if program:
        yield from _served(*program, source)
    if _ADVICE.search(line):
        return
    if '"--' in line or "'--" in line:
        line = _QUOTED_WORDS.sub(" ", line)
    for key, value in _FLAG.findall(line):
        yield from setting_sightings(table, key.replace("-", "_"), value or "true", source, framework)
    if match := _SHM.search(line):
        yield Sighting("host.shm_bytes", parse_size(match[1]), source)


def _container(paste: Paste, index: int, line: str) -> Iterator[Sighting]:
    """Yield the image of a container that is started, and the shared memory that it gets unasked."""
    if " run " not in line or _ADVICE.search(line):
        return
    whole = [line]
    for further in paste.lines[index + 1 : index + _CONTINUED]:
        if not whole[-1].rstrip().endswith("\\"):
            break
        whole.append(further)
    command = _RUN.search(" ".join(one.rstrip().removesuffix("\\") for one in whole))
    if command is None:
        return
    if image := _IMAGE.search(command[1]):
        yield from parse_container(image[1], paste.at("command line", index))
    if _WITH_GPUS.search(command[1]) and not _SHARED.search(command[1]):
        source = paste.at("command line", index)
        yield Sighting("setting", Setting("container_shm", "default", source), source)


def _keywords(line: str, table: KeyTable, source: str) -> Iterator[Sighting]:
    for key, value in _KEYWORD.findall(line):
        if any(row.framework != "any" for row in table.find(key)):
            yield from setting_sightings(table, key, value, source)
