"""Pins as files: constraints with reasons, requirements, and the lines that pip and uv need for an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from envdoctor.report import Format, draw
from envdoctor.solve.answer import PinSet
from envdoctor.solve.reasons import Pin
from envdoctor.solve.requests import NO_REQUIREMENT, parse_request
from envdoctor.solve.variants import INDEX_URL
from envdoctor.values import dataclass

Hashes: TypeAlias = Mapping[str, Sequence[str]]
"""The SHA-256 of every file that installs, by package."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a file opens with: the tool, the matrix, the package facts' date and the command."""

    tool: str
    matrix: str
    date: str
    command: str

    def lines(self, answer: PinSet) -> Iterator[str]:
        """Yield the comment lines."""
        target = answer.target
        cards = ", ".join(str(card) for card in target.judged_cards) or "no GPU declared"
        driver = f", driver {target.driver}" if target.driver else ""
        python = ".".join(str(part) for part in target.python)
        yield comment(f"envdoctor {self.tool}, matrix {self.matrix}, package facts of {self.date}")
        yield comment("what came out later was not read and may be newer: envdoctor matrix update reads it")
        yield comment(f"for Python {python} on {target.platform.name}; {cards}{driver}")
        yield comment(f"command: {self.command}")
        for day in sorted({day for _, day in answer.looked_up}):
            names = ", ".join(name for name, when in answer.looked_up if when == day)
            yield comment(f"read from the index on {day}: {names}")
        for note in (*answer.gaps, *answer.notes):
            yield comment(f"note: {note}")
        for one in answer.carried:
            what = "as it stands" if one.judged else "as it stands, not judged"
            yield comment(f"{what}: {one.shown} ({f'{one.source}: ' if one.source else ''}{one.why})")


def comment(text: str) -> str:
    """Return a text as one comment line, whatever line ends it holds (pip knows more of them than `\\n`)."""
    return "# " + " ".join(text.split())


def constraints_text(answer: PinSet, header: Header) -> str:
    """Return a constraints file: one pin a line, its reasons below as comments."""
    lines = [*header.lines(answer), *_index_lines(answer)]
    for pin in answer.pins:
        lines.append(f"{pin.name}=={pin.label}")
        lines.extend(f"    {comment(reason)}" for reason in pin.because)
    return "\n".join(lines) + "\n"


def asked_extras(answer: PinSet) -> dict[str, tuple[str, ...]]:
    """Return the extras that were asked for, by package."""
    return {
        request.name: request.extras
        for text in answer.asked
        if (request := parse_request(text, "request")) is not None and request.extras
    }


def requirements_text(answer: PinSet, header: Header, hashes: Hashes | None = None) -> str:
    """Return a requirements file that installs exactly the pins, with the extras asked for.

    With `hashes` an installer takes no other file, and what is not pinned goes along as a comment.
    """
    extras = asked_extras(answer)
    own = [line for line in _index_lines(answer) if line not in answer.options]
    lines = [*header.lines(answer), *answer.options, *own]
    for pin in answer.pins:
        chosen = f"[{','.join(extras[pin.name])}]" if pin.name in extras else ""
        lines.append(f"{pin.name}{chosen}=={pin.label}" + _hashed(hashes, pin))
    # for a line that is no requirement an installer would refuse the whole file: the header names it
    taken = [one for one in answer.carried if one.source and one.why != NO_REQUIREMENT]
    carried = [one.text for one in taken if one.text not in answer.options]
    lines.extend(
        " ".join(text.split()) if hashes is None else comment(f"no hash: {text}") for text in carried
    )
    return "\n".join(lines) + "\n"


def _hashed(hashes: Hashes | None, pin: Pin) -> str:
    found = hashes[pin.name] if hashes else ()
    return "".join(f" \\\n    --hash=sha256:{one}" for one in found)


def _index_lines(answer: PinSet) -> Iterator[str]:
    for index in answer.indexes:
        yield comment(
            f"{index}: builds from PyTorch's own index. pip takes each pin from wherever it is; uv asks a "
            "file's index first for all packages, so: uv pip install --index-strategy unsafe-best-match …"
        )
        yield f"--extra-index-url {INDEX_URL}{index}"


def split_text(answer: PinSet, header: Header) -> str:
    """Return two environments, each as a constraints file under its own heading, after the proof."""
    from envdoctor.solve.report import conflict_document

    told = draw(conflict_document(answer), Format.TEXT)
    proof = "".join(f"# {line}".rstrip() + "\n" for line in told.splitlines())
    parts = [
        comment(f"---- environment {number} of {len(answer.sets)}: {', '.join(one.asked)}")
        + "\n"
        + constraints_text(one, header)
        for number, one in enumerate(answer.sets, 1)
    ]
    return proof + "\n".join(parts)
