"""The shipped facts of every package: versions, files and requirements, loaded one package at a time.

`envdoctor.harvest.snapshot_compile` writes the file; nothing here needs `packaging`, because versions are
sorted, specifiers are ranges over them and markers are small trees already.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, TypeAlias, TypeVar

from envdoctor import lazy_re as re
from envdoctor.errors import Unavailable
from envdoctor.fact_files import Bytes, Folder, map_file, snapshot_paths
from envdoctor.values import NamedTuple, cached_property, dataclass

T = TypeVar("T")
Majors: TypeAlias = Mapping[int, tuple[int, int]]
"""By major number: the day (from 1970-01-01) of its first release that is no pre-release, and its place."""
FIELDS = ("v", "d", "s", "y", "p", "r", "u", "R", "E", "Q", "S")
"""What is known of a package, a line each: versions, days, runs of sets of files, places of the yanked and of
pre-releases, rows of requirements and the places without, these rows, lists and requirements, specifiers."""
KIND = b"envdoctor-snapshot/"
MAGIC = KIND + b"4\n"
SDIST = -1
"""The tag of a source distribution in a `File`."""
LIMITS = "?"
"""The pseudo-extra under which stands what a release demands of others only if they are installed."""
STACK = (
    "torch",
    "torchvision",
    "torchaudio",
    "triton",
    "transformers",
    "tokenizers",
    "safetensors",
    "huggingface-hub",
    "accelerate",
    "peft",
    "trl",
    "datasets",
    "bitsandbytes",
    "deepspeed",
    "flash-attn",
    "flash-attn-4",
    "xformers",
    "vllm",
    "sglang",
    "torchao",
    "liger-kernel",
    "unsloth",
    "unsloth-zoo",
    "axolotl",
    "llamafactory",
    "ms-swift",
    "lightning",
    "sentence-transformers",
    "optimum",
    "kernels",
)
"""What is judged, and what the facts are grown from: torch, what is compiled against it, Hugging Face's
libraries, and the frameworks and servers on top."""


_MINORS = range(6, 20)


class File(NamedTuple):
    """One kind of file of a version: its wheel tag, its Requires-Python and days after the first upload."""

    tag: int
    python: int
    late: int = 0


def groups_of(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield the groups of a set of files, such as `3:17:40 3:18`: Requires-Python, tags and days late."""
    for group in text.split(" ") if text else ():
        python, tags, *late = map(int, group.split(":"))
        yield python, tags, late[0] if late else 0


class Requirement(NamedTuple):
    """A requirement: on whom, which of its specifiers, under which marker (-1: always), with which extras."""

    name: str
    spec: int
    marker: int
    extras: tuple[str, ...]


def major_of(version: str) -> int:
    """Return the first number of a version."""
    first = version.partition(".")[0]
    if first.isdecimal():
        return int(first)
    from packaging.version import Version

    return Version(version).major


@dataclass(frozen=True)
class Package:
    """Every version of one package, oldest first; sets of versions are bit masks over that order.

    `raw` is text, numbers with a comma between them, else items with a semicolon: most answers need little of
    it, and to read all took as long as to solve. `tables` are those that all packages share.
    """

    name: str
    raw: dict[str, str] = field(repr=False)
    tables: Mapping[str, Sequence[str]] = field(repr=False)

    @cached_property
    def versions(self) -> list[str]:
        """The versions in PEP 440 order."""
        return _items(self.raw["v"])

    @cached_property
    def position(self) -> dict[str, int]:
        """Where each version stands."""
        return {version: place for place, version in enumerate(self.versions)}

    @cached_property
    def days(self) -> list[int]:
        """Days from 1970-01-01 to each version's first upload."""
        return _numbers(self.raw["d"])

    @cached_property
    def all(self) -> int:
        """The mask of all versions."""
        return (1 << len(self.versions)) - 1

    @cached_property
    def yanked(self) -> int:
        """The versions all of whose files were withdrawn."""
        return _mask(_numbered(self.raw["y"]))

    @cached_property
    def prereleases(self) -> int:
        """Alphas, betas, candidates and development releases."""
        return _mask(_numbered(self.raw["p"]))

    @cached_property
    def finals(self) -> int:
        """The final releases that were not withdrawn."""
        return self.all & ~self.prereleases & ~self.yanked

    @cached_property
    def majors(self) -> Majors:
        """The major versions of which the day is known."""
        found: dict[int, tuple[int, int]] = {}
        days, prereleases, last = self.days, self.prereleases, ""
        for place, version in enumerate(self.versions):
            first = version.partition(".")[0]
            if first != last and days[place] and not prereleases >> place & 1:
                found.setdefault(major_of(version), (days[place], place))
                last = first
        return found

    def file_groups(self) -> Iterator[tuple[int, list[File]]]:
        """Yield the versions that share a set of file kinds, and that set."""
        for number, mask in self.file_masks(int).items():
            yield mask, self.files(number)

    def file_masks(self, told: Callable[[int], T]) -> dict[T, int]:
        """Return the versions by what is told of the number of each one's set of file kinds."""
        masks: dict[T, int] = {}
        runs = map(int, _numbered(self.raw["s"]))  # sets in order, each with how many have it in a row
        first, start, last = 0, 0, None
        for number, count in zip(runs, runs, strict=True):
            one = told(number)
            if one != last and last is not None:
                masks[last] = masks.get(last, 0) | ((1 << start - first) - 1) << first
                first = start
            start, last = start + count, one
        if last is not None:
            masks[last] = masks.get(last, 0) | ((1 << start - first) - 1) << first
        return masks

    def files(self, number: int) -> list[File]:
        """Return a set of file kinds."""
        together = self.tables["together"]
        return sorted(
            File(int(tag), python, late)
            for python, tags, late in groups_of(self.tables["sets"][number])
            for tag in together[tags].split(",")
        )

    def set_of(self, place: int) -> int:
        """Return the number of the set of file kinds of the version in that place."""
        runs = map(int, _numbered(self.raw["s"]))
        ends = ((number, place := place - count) for number, count in zip(runs, runs, strict=True))
        return next(number for number, left in ends if left < 0)

    def pythons(self, number: int) -> list[int]:
        """Return the numbers of what a set of file kinds asks of Python."""
        return [python for python, _, _ in groups_of(self.tables["sets"][number]) if python >= 0]

    def has_wheel(self, number: int) -> bool:
        """True when a set of file kinds holds a wheel for some target."""
        return any(file.tag != SDIST for file in self.files(number))

    def row_masks(self, within: int) -> dict[int, int]:
        """Return which of the versions `within` share each row of requirements (-1: unknown requirements)."""
        masks: dict[str, int] = {}
        rows = self._row_numbers
        while within:
            bit = within & -within
            row = rows[bit.bit_length() - 1]
            masks[row] = masks.get(row, 0) | bit
            within ^= bit
        return {int(row): mask for row, mask in masks.items()}

    @cached_property
    def unread(self) -> int:
        """The versions whose requirements are not known."""
        return _mask(_numbered(self.raw["u"]))

    def row_of(self, place: int) -> int:
        """Return the row of requirements of the version in that place; -1 where they are not known."""
        return int(self._row_numbers[place])

    @cached_property
    def _row_numbers(self) -> list[str]:
        return _numbered(self.raw["r"])

    def requirements(self, row: int, extra: str = "") -> list[Requirement]:
        """Return what a row requires, without extras or what one extra adds."""
        read = self.requirement if extra == LIMITS else self.wanted
        return [one for number in self.numbers(row, extra) if (one := read(number)) is not None]

    def numbers(self, row: int, extra: str = "") -> list[str]:
        """Return the numbers of what a row requires, as `wanted` (limits: `requirement`) reads them."""
        told = self._rows[row]  # lists of requirements by extra, "" first: `=4 cuda=7`
        place = 0 if not extra else told.find(f" {extra}=") + 1
        if extra and not place:
            return []
        asked = self._asked[int(told[place + len(extra) + 1 :].partition(" ")[0])]
        return asked.split(",") if asked else []

    def wanted(self, number: str) -> Requirement | None:
        """Return a requirement as it counts; None where it does not."""
        return self.requirement(number)

    def extras(self, row: int) -> frozenset[str]:
        """Return the extras that a row's markers name."""
        return frozenset(pair.rpartition("=")[0] for pair in self._rows[row].split(" ")) - {"", LIMITS}

    @cached_property
    def _rows(self) -> list[str]:
        return _items(self.raw["R"])

    @cached_property
    def _asked(self) -> list[str]:
        """The lists of requirements, each by numbers."""
        return self.raw["E"].split(";")

    @cached_property
    def _each(self) -> list[str]:
        """The single requirements."""
        return _items(self.raw["Q"])

    @cached_property
    def _requirements(self) -> dict[str, Requirement]:
        return {}

    def requirement(self, number: str) -> Requirement:
        """Return a requirement by its number, as it is stated."""
        known = self._requirements.get(number)
        if known is None:
            name, spec, marker, *extras = self._each[int(number)].split(",")
            known = Requirement(self.tables["names"][int(name)], int(spec), int(marker), tuple(extras))
            self._requirements[number] = known
        return known

    def spec_text(self, spec: int) -> str:
        """Return the specifier as it was written (sorted clauses)."""
        return self.specs[spec].partition(" ")[2]

    @cached_property
    def specs(self) -> list[str]:
        """The specifiers that others have for it, each after where what it admits begins and ends in turn."""
        return _items(self.raw["S"])

    def spec_mask(self, spec: int) -> int:
        """Return the versions that satisfy one of this package's specifiers."""
        known = self._masks.get(spec)
        if known is None:
            known = 0
            edges = self.specs[spec].partition(" ")[0]
            for edge in edges.split(",") if edges else ():
                known ^= (1 << int(edge)) - 1
            self._masks[spec] = known
        return known

    @cached_property
    def pinned_prereleases(self) -> int:
        """The pre-releases that a specifier pins exactly."""
        edges = (told.rpartition(";")[2].split(",") for told in self.raw["S"].split(" ==")[:-1])
        return (
            _mask(run[0] for run in edges if len(run) == 2 and int(run[1]) - int(run[0]) == 1)
            & self.prereleases
        )

    @cached_property
    def _masks(self) -> dict[int, int]:
        return {}

    @property
    def crawled(self) -> bool:
        """False when other packages name this one but nothing is known of its versions."""
        return bool(self.raw["v"])


def _items(text: str) -> list[str]:
    return text.split(";") if text else []


def _numbered(text: str) -> list[str]:
    return text.split(",") if text else []


def _numbers(text: str) -> list[int]:
    return [*map(int, _numbered(text))]


def _mask(places: Iterable[str]) -> int:
    mask = 0
    for place in places:
        mask |= 1 << int(place)
    return mask


class Tables(Mapping[str, Sequence[str]]):
    """The tables that all packages share, lines each, unpacked when first asked for."""

    def __init__(self, packed: Mapping[str, bytes]) -> None:
        self._packed = packed
        self._read: dict[str, list[str]] = {}

    def __getitem__(self, name: str) -> list[str]:
        if name not in self._read:
            text = zlib.decompress(self._packed[name]).decode()
            self._read[name] = text.split("\n") if text else []
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


@dataclass(frozen=True)
class Snapshot:
    """The package facts of one day; `package` reads one package from the file's bytes when first asked."""

    date: str
    """The day the index was read, as YYYY-MM-DD."""
    tables: Mapping[str, Sequence[str]] = field(repr=False)
    places: Mapping[str, tuple[int, int]] = field(repr=False)
    """Where in the body each package begins and ends."""
    body: Bytes = field(repr=False)
    _loaded: dict[str, Package | None] = field(default_factory=dict, repr=False)
    _pythons: dict[int, tuple[str, list[list[str]]]] = field(default_factory=dict, repr=False)

    @property
    def tags(self) -> Sequence[str]:
        """The wheel tags that files refer to by number."""
        return self.tables["tags"]

    def python(self, number: int) -> tuple[str, list[list[str]]]:
        """Return a Requires-Python and its clauses."""
        known = self._pythons.get(number)
        if known is None:
            known = self._pythons[number] = tuple(json.loads(self.tables["pythons"][number]))
        return known

    def bounded_minors(self, number: int) -> frozenset[int]:
        """Return the minors of Python 3 that a Requires-Python with an upper bound admits; else none."""
        from envdoctor.specifiers import SpecifierSet

        text = self.python(number)[0] if number >= 0 else ""
        admitted = SpecifierSet(text) if "<" in text else None
        found = frozenset(m for m in _MINORS if admitted is not None and admitted.contains(f"3.{m}.0"))
        return frozenset() if _MINORS[-1] in found else found

    def marker(self, number: int) -> Any:
        """Return a marker's tree."""
        return json.loads(self.tables["markers"][number])

    def names(self) -> Iterator[str]:
        """Yield every package that the facts cover."""
        return iter(self.places)

    def package(self, name: str) -> Package | None:
        """Return a package by normalized name, or None when nothing speaks of it."""
        if name not in self._loaded:
            self._loaded[name] = self._read(name)
        return self._loaded[name]

    def _read(self, name: str) -> Package | None:
        place = self.places.get(name)
        if place is None:
            return None
        lines = self.body[slice(*place)].decode().split("\n")
        return Package(name, dict(zip(FIELDS, lines, strict=True)), self.tables)


def parse_snapshot(data: Bytes, where: str) -> Snapshot:
    """Read a snapshot's bytes; raises Unavailable when they are not one."""
    try:
        start = data.find(b"\n", len(MAGIC))
        if not _begins(data, MAGIC) or start < 0:
            raise ValueError("not a snapshot of this version")
        date, sizes = json.loads(data[len(MAGIC) : start])
        packed = _placed(sizes, sizes.values(), start + 1)
        tables = Tables({name: data[slice(*place)] for name, place in packed.items()})
        start = max(end for _, end in packed.values())
        places = _placed(tables["packages"], map(int, tables["lengths"]), start)
        return Snapshot(date, tables, places, data)
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise Unavailable(f"{where}: the package facts cannot be read: {error}") from None


def _placed(names: Iterable[str], lengths: Iterable[int], start: int) -> dict[str, tuple[int, int]]:
    """Return where each of what lies in a row begins and ends."""
    ends = [*accumulate(lengths, initial=start)]
    return dict(zip(names, pairwise(ends), strict=True))


@cache
def load_snapshot(folder: Folder) -> Snapshot:
    """Return the newest package facts: the user's updated ones, else those of the matrix `folder`.

    Raises Unavailable when there are none.
    """
    bodies = [(path, _body_of(path)) for path in snapshot_paths(folder) if os.path.isfile(path)]
    if len(bodies) > 1:  # facts that an older or a newer envdoctor wrote stand back behind the shipped ones
        bodies = [one for one in bodies if _begins(one[1], MAGIC) or not _begins(one[1], KIND)]
    found = [parse_snapshot(body, path) for path, body in bodies]
    if not found:
        raise Unavailable(
            "the package facts are missing from this installation; run `envdoctor matrix update`"
        )
    return max(found, key=lambda snapshot: snapshot.date)


def _begins(body: Bytes, told: bytes) -> bool:
    return body[: len(told)] == told


def _body_of(path: str) -> Bytes:
    try:
        return map_file(path)
    except OSError as error:
        raise Unavailable(f"{path}: the package facts cannot be read: {error.strerror}") from None


_OLDER_MANYLINUX = {"1": (2, 5), "2010": (2, 12), "2014": (2, 17)}
_MANYLINUX = re.compile(r"manylinux(?:_(\d+)_(\d+)|(1|2010|2014))_([a-z]\w*)")


def parse_manylinux(tag: str) -> tuple[tuple[int, int], str] | None:
    """Return glibc's version and the architecture of one tag, `manylinux_2_28_x86_64`; None of any other.

    Source: https://peps.python.org/pep-0600/
    """
    match = _MANYLINUX.fullmatch(tag)
    if match is None:
        return None
    return (int(match[1]), int(match[2])) if match[1] else _OLDER_MANYLINUX[match[3]], match[4]
