"""Finds every kind of paste in one text and gives the facts they tell together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from envdoctor.facts import NOT_JUDGED, NOTHING_READ, Facts
from envdoctor.images.dockerfile import is_dockerfile
from envdoctor.matrix import tables
from envdoctor.matrix.lexicon import Lexicon
from envdoctor.pastes.assemble import assemble
from envdoctor.pastes.backends import parse_backends
from envdoctor.pastes.collect_env import parse_collect_env
from envdoctor.pastes.commands import parse_commands
from envdoctor.pastes.configs import parse_configs
from envdoctor.pastes.console import parse_console
from envdoctor.pastes.datasets import parse_dataset
from envdoctor.pastes.errors import parse_errors
from envdoctor.pastes.events import event_text
from envdoctor.pastes.installers import parse_installers
from envdoctor.pastes.installs import parse_installs
from envdoctor.pastes.labelled import parse_labelled
from envdoctor.pastes.listings import parse_listings
from envdoctor.pastes.nvcc import parse_nvcc
from envdoctor.pastes.nvidia_smi import parse_nvidia_smi
from envdoctor.pastes.nvidia_smi_q import parse_nvidia_smi_q
from envdoctor.pastes.own import parse_own
from envdoctor.pastes.prose import parse_prose
from envdoctor.pastes.remarks import is_program, reports, without_remarks
from envdoctor.pastes.requirements import parse_requirements
from envdoctor.pastes.resolvers import parse_resolvers
from envdoctor.pastes.sentences import parse_sentences, parse_told
from envdoctor.pastes.settings import KeyTable, key_table
from envdoctor.pastes.sightings import Paste, Sighting
from envdoctor.pastes.symptoms import scan
from envdoctor.pastes.tells import tell_sightings
from envdoctor.pastes.text import plain_lines
from envdoctor.pastes.traces import parse_traces
from envdoctor.pastes.warned import parse_warnings
from envdoctor.pastes.wishes import parse_mended, parse_wish


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
    if (own := parse_own(text)) is not None:
        return own
    if (said := event_text(text)) is not None:
        text, name, file_name = said, name or "issue", ""
    if data := list(parse_dataset(text, name or file_name, file_name)):
        return assemble(iter(data))  # what rows of training data say is no report of this machine
    lines = without_remarks(plain_lines(text), file_name)
    paste = Paste(lines, name, file_name, lexicon.cards, folder)
    facts = assemble(_sightings(paste, lexicon.symptoms, key_table(lexicon.keys)))
    told = replace(
        facts,
        errors=tuple(error for error in facts.errors if error.kind != "said"),
        warnings=(),
        notes=tuple(note for note in facts.notes if not note.startswith(NOT_JUDGED)),
    )
    if told == Facts(origin="paste"):
        return replace(facts, unread={name or file_name or "the paste": NOTHING_READ})
    return facts


def _sightings(paste: Paste, symptoms: Sequence[tables.SymptomRow], table: KeyTable) -> Iterator[Sighting]:
    """Yield the sightings of all readers, the best informed kinds of paste first."""
    recognised = [] if is_dockerfile(paste.file_name) else scan(paste.lines, symptoms, paste.templates)
    if is_program(paste.file_name):
        recognised = [s for s in recognised if s.pattern.fault != "said" and reports(s.text, paste.file_name)]
    lines, seen = list(paste.lines), recognised
    errors = list(parse_errors(paste, recognised))
    yield from errors
    recognised = [sight for sight in recognised if not sight.pattern.fault]
    yield from parse_nvidia_smi_q(paste)
    yield from parse_nvidia_smi(paste)
    yield from parse_nvcc(paste)
    yield from parse_collect_env(paste)
    yield from parse_backends(paste)
    yield from parse_console(paste)
    if is_dockerfile(paste.file_name):
        from envdoctor.pastes.dockerfiles import parse_dockerfile

        yield from parse_dockerfile(paste)
    for sight in recognised:
        if not sight.pattern.informs:
            paste.blank(sight.spans)
    yield from parse_resolvers(paste)
    yield from parse_requirements(paste)
    yield from parse_listings(paste)
    yield from parse_installers(paste)
    yield from parse_configs(paste, table)
    yield from parse_commands(paste, table)
    for sight in recognised:
        yield Sighting("symptom", sight.symptom(paste.at("", sight.line)))
    yield from parse_labelled(paste, table)
    for sight in recognised:
        yield from tell_sightings(sight, paste.at("", sight.line))
    yield from parse_prose(paste)
    yield from parse_installs(paste, lines)
    yield from parse_traces(paste)
    yield from parse_wish(paste)
    if errors:
        yield from parse_mended(paste, lines, max(error.value.line for error in errors))
    if not errors:
        yield from parse_warnings(paste, lines)
        yield from parse_told(paste, lines, seen)
    if not errors and not is_program(paste.file_name):
        yield from parse_sentences(paste, lines)
    if paste.passed_over:
        yield Sighting("note", f"{paste.passed_over} lines in the middle were not read for loose statements")
