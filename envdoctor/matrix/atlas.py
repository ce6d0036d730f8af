"""The messages of every release that was read: which line of which library said what an error line says.

One file holds an index of hashed word triples and small blocks of entries, a line each: a block is unpacked,
with the dictionary that all of them share, when a line asks for it, and of its entries those asked for are
parsed. `envdoctor.harvest.atlas` writes it.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from os.path import commonprefix
from typing import Any

from envdoctor import lazy_re as re
from envdoctor.fact_files import Folder
from envdoctor.values import dataclass

MAGIC = b"envdoctor-atlas/2\n"
COUNTS = struct.Struct("<IIII")
"""After the magic: bytes of the packed libraries and of the dictionary, numbers of entries and blocks."""
FILE_NAME = "atlas.bin"
HOLE = "\x00"
LINE = 1200
"""Characters of an error line that are looked up."""
LEAST_SHARE = 0.55
"""How much of a line its template must account for, where the template is not long by itself."""
LONG = 60
BEGUN = 12
"""Characters by which a stretch of which a text has the beginning alone is found."""
ENDS = (".", ":", "!", "?")
"""How a sentence ends: of a message of several a text may quote the first alone."""
BEGINNING = 110
"""Characters of a template that a text which quotes it may be held to have."""
WARNINGS = frozenset({"warning", "warning_once", "warn", "UserWarning", "FutureWarning"})
"""Kinds of messages that end nothing."""
COMPILED = "compiled"
"""The kind of messages that stand in a binary."""
_WORD = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a message stands: library, releases, place, and the conditions that lead to it."""

    library: str
    template: str
    kind: str
    file: str
    function: str
    guard: str
    spans: tuple[tuple[str, str], ...]
    """First and last release of each range; the last is the newest that was read where nothing ended it."""
    newest: str
    """The newest release of the library that was read."""
    letters: int
    """Letters and digits of the line that the template accounts for: how telling the match is."""
    always: bool = False
    """True where every release that was read has it: the message tells no release."""
    first: bool = False
    """True where the first release that was read has it: when it came is not known."""


@dataclass(frozen=True, eq=False)
class Atlas:
    """The atlas as it lies on disk."""

    libraries: Sequence[tuple[str, Sequence[str]]]
    hashes: Sequence[int]
    places: Sequence[int]
    starts: Sequence[int]
    """Where each block begins in the body, and where the last one ends."""
    dictionary: bytes
    body: int
    data: bytes | mmap.mmap

    def find(self, line: str) -> list[Origin]:
        """Return where a line's message stands, the most telling template first; empty when none has it."""
        text = " ".join(line[:LINE].split())
        wanted = sorted({p for triple in triples(text) for p in self._places(triple)})
        alike: dict[tuple[object, ...], list[list[object]]] = {}
        for entry in filter(None, map(self._entry, wanted)):
            if letters := accounted(str(entry[0]), text):
                alike.setdefault((letters, entry[1], entry[2] in WARNINGS), []).append(entry)
        found = [self._origin(entries, int(key[0])) for key, entries in alike.items()]  # type: ignore[call-overload]
        return sorted(dict.fromkeys(found), key=lambda origin: -origin.letters)

    def templates(self, library: str, version: str) -> Iterator[tuple[str, str]]:
        """Yield template and kind of all messages that a release of a library has."""
        names = [name for name, _ in self.libraries]
        place = self.libraries[names.index(library)][1].index(version)
        for template, number, kind, *_, spans in self.entries():
            if names[number] == library and any(first <= place <= last for first, last in spans):
                yield template, kind

    def entries(self) -> Iterator[list[Any]]:
        """Yield all entries: template, number of the library, kind, file, function, guard, spans."""
        for block in range(len(self.starts) - 1):
            yield from map(json.loads, _block(self, block))

    def _places(self, triple: int) -> Iterator[int]:
        at = bisect_left(self.hashes, triple)
        while at < len(self.hashes) and self.hashes[at] == triple:
            yield self.places[at]
            at += 1

    def _entry(self, place: int) -> list[object] | None:
        block, number = place >> 8, place & 0xFF
        entries = _block(self, block)
        return json.loads(entries[number]) if number < len(entries) else None

    def _origin(self, alike: Sequence[Sequence[object]], letters: int) -> Origin:
        """Return the place of templates that say a line equally well: the releases of all of them."""
        template, library, kind, file, function, guard, _ = alike[-1]
        name, versions = self.libraries[int(library)]  # type: ignore[call-overload]
        spans = _joined(span for entry in alike for span in entry[6])  # type: ignore[attr-defined]
        told = tuple((versions[first], versions[last]) for first, last in spans)
        place = (str(template), str(kind), str(file), str(function), str(guard))
        always = spans == [(0, len(versions) - 1)]
        return Origin(name, *place, told, versions[-1], letters, always, spans[0][0] == 0)


def load_atlas(folder: Folder) -> Atlas | None:
    """Return the atlas of a matrix folder, or None where there is none or it is not what it should be."""
    return _load(os.path.join(folder, "releases", FILE_NAME))


@cache
def _load(path: str) -> Atlas | None:
    try:
        with open(path, "rb") as stream:
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        if data[: len(MAGIC)] != MAGIC:
            return None
        size, shared, count, blocks = COUNTS.unpack_from(data, len(MAGIC))
        start = len(MAGIC) + COUNTS.size
        index = start + size + shared
        libraries = [
            (name, versions) for name, versions in json.loads(zlib.decompress(data[start : start + size]))
        ]
        ends = [index + 4 * part for part in (count, 2 * count, 2 * count + blocks + 1)]
        words = memoryview(data)
        hashes, places, starts = (
            words[first:last].cast("I") for first, last in zip((index, *ends), ends, strict=False)
        )
    except (OSError, ValueError, KeyError, TypeError, struct.error, zlib.error):
        return None
    return Atlas(libraries, hashes, places, starts, data[start + size : index], ends[-1], data)


@cache
def _block(atlas: Atlas, number: int) -> list[bytes]:
    first, last = (atlas.body + atlas.starts[at] for at in (number, number + 1))
    unpacked = zlib.decompressobj(zdict=atlas.dictionary).decompress(atlas.data[first:last])
    return unpacked.split(b"\n")


def _joined(spans: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
    """Return ranges in order, those that meet or overlap as one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted((first, last) for first, last in spans):
        if joined and first <= joined[-1][1] + 1:
            first, last = joined[-1][0], max(joined.pop()[1], last)
        joined.append((first, last))
    return joined


def triples(text: str) -> set[int]:
    """Return the hashes of each three words that follow one another."""
    words = [word.lower() for word in _WORD.findall(text)]
    joined = (" ".join(words[i : i + 3]) for i in range(max(1, len(words) - 2)))
    return {zlib.crc32(words.encode()) for words in joined}


def key_of(template: str) -> int | None:
    """Return the hash under which a template is filed: the longest three words within one literal stretch.

    Its beginning decides where that has such words: a text may quote no more. None for a template that has no
    three (or, being whole, fewer) words in a row.
    """
    best = _longest_triple(template[:BEGINNING]) or _longest_triple(template)
    return zlib.crc32(best.encode()) if best else None


def _longest_triple(template: str) -> str:
    best = ""
    for stretch in template.split(HOLE):
        words = [word.lower() for word in _WORD.findall(_whole_words(stretch, template))]
        for i in range(len(words) - 2):
            best = max(best, " ".join(words[i : i + 3]), key=len)
    return best


def _whole_words(stretch: str, template: str) -> str:
    """Return a stretch without a first or last word that a hole may lengthen."""
    if HOLE not in template:
        return stretch
    return re.sub(r"^\w+|\w+$", " ", stretch)


def accounted(template: str, text: str) -> int:
    """Return how many letters of a text a template accounts for; 0 where it is not its message.

    The text may leave the message at the end of a sentence: of several lines the first alone is often quoted.
    """
    at, covered = 0, 0
    for stretch in (" ".join(part.split()) for part in template.split(HOLE)):
        found = text.find(stretch, at)
        if found < 0:
            begun = text.find(stretch[:BEGUN], at)
            quoted = commonprefix((stretch, text[begun:])) if begun >= 0 else ""  # noqa: RUF071  (letters)
            covered += letters_of(quoted)
            ended = len(quoted) >= BEGUN and (text.endswith(quoted) or quoted.rstrip().endswith(ENDS))
            return covered if covered >= LONG and ended else 0
        at = found + len(stretch)
        covered += letters_of(stretch)
    return covered if covered >= LONG or covered >= LEAST_SHARE * letters_of(text) else 0


def letters_of(text: str) -> int:
    """Return how many letters and digits a text has."""
    return sum(character.isalnum() for character in text)
