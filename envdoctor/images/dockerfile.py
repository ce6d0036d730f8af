"""A Dockerfile as instructions: lines joined, variables put in, and what its last stage stands on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from envdoctor import lazy_re as re
from envdoctor.values import dataclass

INSTRUCTIONS = frozenset(
    (
        *("ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL"),
        *("MAINTAINER", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
    )
)
"""What a Dockerfile's lines begin with; a line of another word is of something put beneath it."""
MAX_LINES, MAX_VALUE = 20_000, 20_000
_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_HEREDOC = re.compile(r"<<-?\s?[\"']?(\w{1,60})[\"']?")
_VARIABLE = re.compile(r"\\\$|\$(\w{1,100})|\$\{(\w{1,100})(?:(:?[-+])([^{}]{0,300}))?\}")
_PAIR = re.compile(r"([\w.]{1,100})=(\"(?:[^\"\\]|\\.){0,1000}\"|'[^']{0,1000}'|(?:[^\s\\]|\\.){0,1000})")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its word in capitals, what follows, its first and its last line (from 1)."""

    word: str
    text: str
    line: int
    last: int = 0


@dataclass(frozen=True, slots=True)
class Built:
    """What leads to the last stage: the image it begins with, and all instructions after that, in order."""

    base: str
    line: int
    instructions: tuple[Instruction, ...]


def parse_instructions(text: str) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile, `ONBUILD` ones left out."""
    escape = "`" if re.match(r"\s*#\s*escape\s*=\s*`", text) else "\\"
    held: list[str] = []
    start = 0
    lines = enumerate(text.splitlines()[:MAX_LINES], 1)
    for number, line in lines:
        if line.lstrip().startswith("#") or (held and not line.strip()):
            continue
        start = start or number
        goes_on = line.rstrip().endswith(escape)
        held.append(line.rstrip()[:-1] if goes_on else line)
        if goes_on:
            continue
        whole, last = " ".join(held), number
        if end := _HEREDOC.search(whole):
            body = list(_body(lines, end[1]))
            whole, last = "\n".join([_HEREDOC.sub("", whole), *body]), number + len(body) + 1
        match = _INSTRUCTION.match(whole)
        if match and match[1].upper() != "ONBUILD":
            yield Instruction(match[1].upper(), match[2].strip(), start, last)
        held, start = [], 0


def _body(lines: Iterator[tuple[int, str]], end: str) -> Iterator[str]:
    for _, line in lines:
        if line.strip() == end:
            return
        yield line


def last_stage(instructions: Sequence[Instruction]) -> Built | None:
    """Return what the last stage stands on, through stages of the same file; None without a FROM."""
    told: dict[str, str] = {}
    stages: list[tuple[str, str, int, list[Instruction]]] = []
    for one in instructions:
        if one.word == "FROM":
            base, name = _from(expanded(one.text, told))
            stages.append((base, name or str(len(stages)), one.line, []))
        elif stages:
            stages[-1][3].append(one)
        elif one.word == "ARG":
            told |= {name: value for name, value in arguments(one.text, told).items() if value}
    if not stages:
        return None
    return _traced(stages, told)


def _traced(stages: list[tuple[str, str, int, list[Instruction]]], told: Mapping[str, str]) -> Built:
    place = len(stages) - 1
    chain = [*stages[place][3]]
    while True:
        base, _, line, _ = stages[place]
        earlier = [i for i in range(place) if base in (stages[i][1], str(i))]
        if not earlier:
            globals_ = [Instruction("ARG", f"{name}={value}", 0) for name, value in told.items()]
            return Built(base, line, (*globals_, *chain))
        place = earlier[-1]
        chain = [*stages[place][3], *chain]


def _from(text: str) -> tuple[str, str]:
    words = [word for word in text.split() if not word.startswith("--")]
    named = words[2] if len(words) > 2 and words[1].upper() == "AS" else ""
    return (words[0] if words else ""), named


def expanded(text: str, told: Mapping[str, str]) -> str:
    """Put the values of known variables in; an unknown one stays as it is written."""

    def value(match: re.Match[str]) -> str:
        name, sign, word = match[1] or match[2], match[3] or "", match[4] or ""
        if name is None:
            return match[0]
        if sign.endswith("+"):
            return word if told.get(name) else ""
        return told.get(name) or (word if sign else told.get(name, match[0]))

    return _VARIABLE.sub(value, text)[:MAX_VALUE]


def arguments(text: str, told: Mapping[str, str]) -> dict[str, str]:
    """Return what `ARG` or `ENV` sets, in either of its forms; an ARG without a value has none."""
    pairs = _PAIR.findall(text)
    if pairs:
        return {name: expanded(_unquoted(value), told) for name, value in pairs}
    name, _, value = text.partition(" ")
    return {name: expanded(_unquoted(value.strip()), told)}


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text.replace("\\ ", " ")
