"""Finds every kind of paste in one text and gives the facts they tell together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from envdoctor import lazy_re as re
from envdoctor.facts import (
    INSTALLING,
    NOT_JUDGED,
    NOTHING_READ,
    STOPPED,
    TOLD_CAUSE,
    TOLD_WAY,
    ErrorSeen,
    Facts,
)
from envdoctor.inputs import is_dockerfile, is_program, is_requirements
from envdoctor.matrix import tables
from envdoctor.matrix.lexicon import Lexicon
from envdoctor.pastes.assemble import assemble
from envdoctor.pastes.labelled import parse_labelled
from envdoctor.pastes.prose import parse_prose
from envdoctor.pastes.rejoined import is_failure, scan_rejoined
from envdoctor.pastes.settings import key_table, unambiguous
from envdoctor.pastes.sightings import Paste, Sighting, plain_lines
from envdoctor.pastes.symptoms import Sight, scan

_KINDS_OF_CHANGE = ("fix", "feat", "doc", "docs", "chore", "refactor", "perf", "test", "build", "ci")
_CLASS = re.compile(r"(?:[a-z_]\w{0,60}\.){1,8}[A-Z]\w{1,60}:(?: |$)")
"""An exception of any name, as Python prints it: by its module."""
_PIN = "≡"
"""How `==` stands among the signs, where `=` is an assignment."""
SIGNS: Mapping[str, tuple[str, ...]] = {
    "errors": (
        *(
            "traceback (most recent call last)",
            'file "',
            ".py in ",
            "error:",
            "exception:",
            "interrupt:",
            "fault:",
        ),
        *("failure:", "timeout:", "unsupported:", "outofmemory:"),
    ),
    "nvidia_smi_q": ("nvsmi log", "gpu "),
    "nvidia_smi": (
        *("nvidia-smi", "driver version", "|", "(uuid:", ",name", ", name", "name,", "gpu_name"),
        *("driver_version", "compute_cap"),
    ),
    "nvcc": ("ompilation tools",),
    "collect_env": ("gpu ", "[pip", "[conda]", "libcudnn", "="),
    "backends": (
        *("rocm", "hip", "gfx", "amd", "mi2", "mi3", "npu", "ascend", "xpu", "intel", "mps", "apple", "mac"),
        *(" m1", " m2", " m3", " m4", "windows", "wsl", ":\\"),
    ),
    "console": (
        *("llm engine", "llm api server", "deepspeed info", "compute capability among", "cuda_version="),
        *("__version__", "version.cuda", "cuda."),
    ),
    "resolvers": ("because", "no solution found when", "version solving failed"),
    "requirements": ("[[packages]]", "lock-version", "<", ">", "~=", "!="),
    "listings": ("package", "#", "=", _PIN, "@"),
    "installers": ("name:", "version:", "already satisfied", "successfully installed", "-info", ".whl"),
    "installs": (" install", " add", " sync", "upgrad", "downgrad", "updat", "downdat"),
    "configs": (":", "="),
    "commands": ("from ", "--", "=", "vllm serve", "vllm.entrypoints", "sglang"),
    "traces": ("-packages", ".cpython-3", ":\\", "/home/", "/root/"),
    "warned": (
        *("warn", "deprecat", "will be ", "incompatible", "falling back", "setting `", "default"),
        *("we ", "you ", "not used when", "no longer", "ignor", "newly initialized", "no effect"),
        "recommended",
    ),
    "diagnosed": (
        *("because", "due to", "cause", "reason", "issue", "problem", "seems", "compatib", "conflict"),
        *("mismatch", "deprecated", "renamed", "replaced", "removed", "no longer", "missing", "require"),
        *("need", "only ", "fix", "solv", "work", "grad", "after ", "instead", "should", "recommend"),
        *("不", "因", "导致", "解决", "级"),
    ),
    "wishes": (
        *("#", "this pr", "pull request", "this patch", "test plan", "summary of changes", "how was this"),
        *(f"{kind}{mark}" for kind in _KINDS_OF_CHANGE for mark in ":!("),
        *("q:", "q1", "question:", "?"),
    ),
}
"""The readers of single kinds of text, and of each what stands in all that it reads, in lower case."""
_NO_FACT = (NOT_JUDGED, TOLD_CAUSE, TOLD_WAY, INSTALLING)
"""How notes begin that tell nothing of a machine."""
_SENTENCE = 6
"""Words of the shortest sentence, but in scripts that set no blanks."""


def parse_paste(
    text: str,
    name: str,
    lexicon: Lexicon,
    file_name: str = "",
    folder: Path | None = None,
) -> Facts:
    """Return what `text` tells: facts, settings, recognised error lines, and notes of what was unreadable.

    `name` stands before each source when several texts are read, else it is empty; `file_name` helps to
        tell a requirements file from a freeze. Nothing else is read, no network, and no file but those of
        requirements that a Dockerfile names and `folder` holds.
    """
    if text[:200].lstrip("\ufeff \t\r\n").startswith("{"):
        from envdoctor.pastes.events import event_text
        from envdoctor.pastes.own import parse_own

        if (own := parse_own(text)) is not None:
            return own
        if (said := event_text(text)) is not None:
            text, name, file_name = said, name or "issue", ""
    if file_name.lower().endswith((".json", ".jsonl")):
        from envdoctor.pastes.datasets import parse_dataset

        if data := list(parse_dataset(text, name or file_name, file_name)):
            return assemble(iter(data))  # what rows of training data say is no report of this machine
    facts = assemble(_sightings(_paste(text, name, lexicon, file_name, folder), lexicon))
    if facts.settings:
        facts = replace(facts, settings=unambiguous(facts.settings, lexicon.keys))
    told = replace(
        facts,
        errors=tuple(error for error in facts.errors if error.kind != "said"),
        warnings=(),
        notes=tuple(note for note in facts.notes if not note.startswith(_NO_FACT)),
    )
    if told == Facts(origin="paste"):
        return replace(facts, unread={name or file_name or "the paste": NOTHING_READ})
    return facts


def _paste(text: str, name: str, lexicon: Lexicon, file_name: str, folder: Path | None) -> Paste:
    lines = plain_lines(text)
    if is_program(file_name):
        from envdoctor.pastes.remarks import without_remarks

        lines = without_remarks(lines, file_name)
    return Paste(lines, name, file_name, lexicon.cards, lexicon.packages, folder)


def _sightings(paste: Paste, lexicon: Lexicon) -> Iterator[Sighting]:
    """Yield the sightings of all readers, the best informed kinds of paste first."""
    if is_dockerfile(paste.file_name):
        yield from _of_dockerfile(paste, lexicon)
    read, lines = _reader(paste), list(paste.lines)
    seen = recognised = _recognised(paste, lexicon.symptoms)
    needed = any(sight.pattern.fault for sight in seen) or any(map(_CLASS.match, lines))
    errors = list(read("errors", seen, needed=needed))
    yield from errors
    recognised = [sight for sight in recognised if not sight.pattern.fault]
    for kind in ("nvidia_smi_q", "nvidia_smi", "nvcc", "collect_env"):
        yield from read(kind)
    yield from read("backends", SIGNS["backends"])
    yield from read("console")
    yield from read("resolvers")
    for sight in recognised:
        if not sight.pattern.informs:
            paste.blank(sight.spans)
    yield from read("requirements", needed=is_requirements(paste.file_name))
    yield from read("listings")
    yield from read("installers")
    table = key_table(lexicon.keys)
    yield from read("configs", table)
    yield from read("commands", table, lexicon.frameworks)
    for sight in recognised:
        yield Sighting("symptom", sight.symptom(paste.at("", sight.line)))
    yield from parse_labelled(paste, table)
    yield from _tells(paste, recognised)
    yield from parse_prose(paste)
    yield from read("installs", lines)
    yield from read("traces")
    met = [sight.line for sight in recognised if not sight.pattern.informs]
    yield from read("wishes", [error.value for error in errors], met)
    shown = [error for error in errors if error.value.kind != "said"]
    if shown:
        yield from _of_errors(paste, lines, shown)
        if all(_says_little(error.value) for error in shown):
            from envdoctor.pastes.sentences import parse_reports, troubled_lines

            yield from (sighting for _, sighting in _told(paste, lines, lexicon))
            titles = [one for one in troubled_lines(paste, lines, seen) if one[1].startswith("# ")]
            yield from parse_reports(lines, titles)
    else:
        yield from read("warned", lines)
        yield from _of_words(paste, lines, seen, lexicon)
    if not is_program(paste.file_name):
        yield from read("diagnosed", lines)
    if paste.passed_over:
        yield Sighting("note", f"{paste.passed_over} lines in the middle were not read for loose statements")


def _of_dockerfile(paste: Paste, lexicon: Lexicon) -> Iterator[Sighting]:
    """Yield what a Dockerfile's steps and commands tell, and leave only lines that are none of its own."""
    from envdoctor.images.dockerfile import parse_instructions
    from envdoctor.pastes.commands import parse_commands
    from envdoctor.pastes.dockerfiles import own_lines, parse_dockerfile

    steps = tuple(parse_instructions("\n".join(paste.lines)))
    own = own_lines(paste.lines, steps)
    yield from parse_dockerfile(paste, steps)
    for index in own.remarks:
        paste.lines[index] = ""
    if own.instructions:
        yield from parse_commands(paste, key_table(lexicon.keys), lexicon.frameworks)
    for index in own.instructions:
        paste.lines[index] = ""


def _reader(paste: Paste) -> Callable[..., Iterator[Sighting]]:
    """Return what reads one kind of text; its module is loaded where one of its signs stands in the paste."""
    shapes = b"\n".join(dict.fromkeys(paste.templates)).decode("utf-8", "replace").replace("==", _PIN)
    whole: list[str] = []

    def stands(sign: str) -> bool:
        """True where the sign stands: one with digits in the text, else in the shapes of its lines."""
        if not any(map(str.isdigit, sign)):
            return sign in shapes
        if not whole:
            whole.append("\n".join(paste.lines).lower())
        return sign in whole[0]

    def read(kind: str, *more: Any, needed: bool = False) -> Iterator[Sighting]:
        if needed or any(map(stands, SIGNS[kind])):
            parse = getattr(import_module(f"envdoctor.pastes.{kind}"), f"parse_{kind}")
            yield from parse(paste, *more)

    return read


def _recognised(paste: Paste, symptoms: Sequence[tables.SymptomRow]) -> list[Sight]:
    """Return the signatures met; in a file of a program's, those that are none of its own words."""
    found = [] if is_dockerfile(paste.file_name) else scan(paste.lines, symptoms, paste.templates)
    if not any(map(is_failure, found)) and not is_program(paste.file_name):
        met = {one.pattern.id for one in found}
        found += [one for one in scan_rejoined(paste.lines, symptoms) if one.pattern.id not in met]
    if not found:
        return found
    from envdoctor.pastes.sentences import is_generated
    from envdoctor.pastes.warned import informs

    found = [one for one in found if not (one.pattern.informs and is_generated(paste.lines[one.line]))]
    found = [
        one
        for one in found
        if one.pattern.informs
        or one.pattern.tells
        or not all(informs(paste.lines[index]) for index in (one.line, *one.again))
    ]
    if any("nvcc: " in one.text for one in found):
        from envdoctor.pastes.collect_env import asks_nvcc

        found = [one for one in found if not asks_nvcc(paste.lines, one.line)]
    if not is_program(paste.file_name):
        from envdoctor.pastes.moods import with_moods

        return with_moods(found, paste.lines)
    from envdoctor.pastes.remarks import reports

    return [s for s in found if s.pattern.fault != "said" and reports(s.text, paste.file_name)]


def _tells(paste: Paste, recognised: Sequence[Sight]) -> Iterator[Sighting]:
    if recognised:
        from envdoctor.pastes.tells import tell_sightings

        for sight in recognised:
            yield from tell_sightings(sight, paste.at("", sight.line))


def _of_errors(paste: Paste, lines: Sequence[str], errors: Sequence[Sighting]) -> Iterator[Sighting]:
    """Yield what is said below the last error, and that a text with a title tells of it."""
    from envdoctor.pastes.wishes import parse_mended

    if lines[0].startswith("# "):
        from envdoctor.pastes.sentences import parse_titled

        yield from parse_titled(lines[0])
    yield from parse_mended(paste, lines, max(error.value.line for error in errors))


def _says_little(error: ErrorSeen) -> bool:
    """True for an error beside which a person's words count: cut off, a log's, or a run stopped by hand."""
    return error.kind in ("cut", "logged") or error.exception == STOPPED


def _told(paste: Paste, lines: Sequence[str], lexicon: Lexicon) -> list[tuple[int, Sighting]]:
    """Return the error lines that a text tells in words, each with its line; none of a program's."""
    if is_program(paste.file_name):
        return []
    from envdoctor.pastes.tellings import parse_tellings

    return list(parse_tellings(paste, lines, lexicon.tellings()))


def _of_words(
    paste: Paste, lines: Sequence[str], seen: Sequence[Sight], lexicon: Lexicon
) -> Iterator[Sighting]:
    """Yield what a text without errors tells in words."""
    said = any(sight.pattern.fault == "said" for sight in seen)
    if not said and not any(len(line.split()) >= _SENTENCE or not line.isascii() for line in lines):
        return
    from envdoctor.pastes.sentences import (
        formed_lines,
        parse_printed,
        parse_reports,
        parse_sentences,
        parse_told,
        told_lines,
        troubled_lines,
    )
    from envdoctor.pastes.wishes import parse_mended

    yield from parse_mended(paste, lines, 0)
    told = _told(paste, lines, lexicon)
    yield from (sighting for _, sighting in told)
    if told:
        from envdoctor.pastes.tellings import told_error

        first, sighting = told[0]
        yield told_error(paste, first, sighting.value.text, [one.value.id for _, one in told])
        yield from parse_reports(lines, told_lines(paste, lines))
    else:
        troubled = troubled_lines(paste, lines, seen)
        formed = [] if troubled else formed_lines(paste, lines)
        yield from parse_told(paste, lines, troubled or formed, seen)
        met = any(not sight.pattern.fault for sight in seen)
        if (troubled or met) and (reported := list(parse_reports(lines, troubled))):
            yield from parse_printed(paste, lines, seen)
            yield from reported
    if not is_program(paste.file_name):
        yield from parse_sentences(paste, lines)
