"""The names of graphics cards, as rows and people write them, found in a text: the longest name wins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias

from envdoctor import lazy_re as re
from envdoctor.values import NamedTuple, dataclass

if TYPE_CHECKING:
    from envdoctor.matrix.tables.lexicon import GpuRow

LONGEST = 2000
"""Characters of a text in which names are looked for."""
_RUN = re.compile(r"[a-z0-9]+")
_COUNT = re.compile(r"\d{1,3}x(?=[a-z0-9]{2})")
_COUNT_AFTER = re.compile(r"(?<=\d)x\d{1,2}\Z")
_MADE_OF = re.compile(r"(rtx|gtx|gt|titan)(a?\d.*)")
_ENDING = re.compile(r"(\d{3,4})(ti|super|d)")
_SIZE = re.compile(r"(\d{1,6})(?:g|gb|gib)")
_UNITS = frozenset({"g", "gb", "gib", "m", "mb", "mib", "k", "kb", "w", "mhz", "ms", "s", "steps", "tokens"})
_BRANDS = frozenset({"nvidia", "geforce", "tesla", "quadro"})
_SILENT = frozenset({*_BRANDS, "graphics", "gpu", "card", "r", "tm"})
_SERIES = frozenset({"rtx", "gtx", "titan", "jetson", "tegra", "grid", "nvs", "dgx", "hgx"})
_GENERATIONS = frozenset({"ada", "generation", "blackwell", "laptop", "embedded", "sff", "edition"})
"""Words of a name that people leave out, though another card may bear the name without them."""
_SAME = {"mobile": "laptop"}
_NEXT_TO_A_NUMBER = re.compile(r"[\w.:/=-]")

Words = tuple[str, ...]
Rows: TypeAlias = "tuple[GpuRow, ...]"
Brands = Mapping[int, tuple[int, frozenset[str]]]
"""By the start of a word with brands right before it: where these begin, and which they are."""


class _Word(NamedTuple):
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CardName:
    """A name found at `start` to `end` of a text, and the rows of the cards that it may mean."""

    start: int
    end: int
    rows: Rows
    words: Words
    branded: bool
    """Whether a vendor's or a series' word stands in it or before it: `Tesla`, `RTX`."""

    @property
    def row(self) -> GpuRow | None:
        """The card meant, or None where cards of unlike capability bear the name."""
        capabilities = {row.compute_capability for row in self.rows}
        return self.rows[0] if len(capabilities) == 1 else None


class CardNames:
    """The names and aliases of `[[gpu]]` rows; they are compiled when a text is first searched."""

    def __init__(self, read: Callable[[], Rows] = tuple) -> None:
        self._read = read

    @cached_property
    def _rows(self) -> Rows:
        return self._read()

    def find(self, text: str) -> tuple[CardName, ...]:
        """Return the names in a text from left to right, each the longest that begins at its place."""
        if not self._rows:
            return ()
        words = list(_words(text[:LONGEST]))
        heard = [word for word in words if word.text not in _SILENT]
        brands = _brands_before(words)
        found: list[CardName] = []
        at = 0
        while at < len(heard):
            name = self._longest(text, heard, at, brands)
            if name:
                found.append(name)
            at += len(name.words) if name else 1
        return tuple(found)

    def find_one(self, text: str) -> CardName | None:
        """Return the longest name in a text that names one card, or None."""
        return max(self.find(text), key=lambda found: sum(map(len, found.words)), default=None)

    def _longest(self, text: str, heard: Sequence[_Word], at: int, brands: Brands) -> CardName | None:
        begin, said = brands.get(heard[at].start, (heard[at].start, frozenset[str]()))
        for count in range(min(self._most_words, len(heard) - at), 0, -1):
            taken = tuple(word.text for word in heard[at : at + count])
            rows = self._by_words.get(taken) or self._by_words.get(_singular(taken))
            if rows is None or not _is_whole(text, heard[at].start, heard[at + count - 1].end, taken):
                continue
            branded = bool(said) or not _SERIES.isdisjoint(taken)
            if taken in self._need_brand and not branded and (taken[0].isdigit() or count < len(heard)):
                return None
            meant = _of_brand((*rows, *self._shortened.get(taken, ())), said)
            return CardName(begin, heard[at + count - 1].end, meant, taken, branded)
        return None

    @cached_property
    def _named(self) -> list[tuple[GpuRow, Words, list[Words]]]:
        """Each row with the words of its name and those of its aliases."""
        return [(row, _heard(row.name), [_heard(alias) for alias in row.aliases]) for row in self._rows]

    @cached_property
    def _by_words(self) -> dict[Words, Rows]:
        return _table((words, row) for row, name, aliases in self._named for words in (name, *aliases))

    @cached_property
    def _shortened(self) -> dict[Words, Rows]:
        """What is left of a name without its generation: `RTX 4000` of `RTX 4000 Ada Generation`."""
        return _table(
            (tuple(word for word in words if word not in _GENERATIONS), row)
            for row, words, _ in self._named
            if "ada" in words
        )

    @cached_property
    def _need_brand(self) -> frozenset[Words]:
        """Words that are a card's only beside a brand: `410` of `Quadro 410`, `710m` of `GeForce 710M`."""
        names = {name for _, name, _ in self._named if name and name[0][0].isdigit()}
        return frozenset(names.difference(*(aliases for _, _, aliases in self._named)))

    @cached_property
    def _most_words(self) -> int:
        return max(map(len, self._by_words), default=0)


def _of_brand(rows: Rows, said: frozenset[str]) -> Rows:
    """Return the rows that bear the brands said: `Quadro RTX 4000` is no `RTX 4000 Ada Generation`."""
    if "quadro" not in said:
        return rows
    return tuple(row for row in rows if "quadro" in row.name.lower()) or rows


def _singular(words: Words) -> Words:
    return (*words[:-1], words[-1].removesuffix("s"))


def _table(named: Iterable[tuple[Words, GpuRow]]) -> dict[Words, Rows]:
    table: dict[Words, dict[str, GpuRow]] = {}
    for words, row in named:
        table.setdefault(words, {})[row.id] = row
    return {words: tuple(rows.values()) for words, rows in table.items() if words}


def _heard(name: str) -> Words:
    return tuple(word.text for word in _words(name) if word.text not in _SILENT)


def _words(text: str) -> Iterator[_Word]:
    """Yield the words of a text in lower case; `RTX2080Ti` is three, `80 GB` and `80G` are `80gb`."""
    waiting: _Word | None = None
    for run in _RUN.finditer(_lower(text)):
        start = run.start()
        for part, begin, end in _parts(run[0]):
            word = _Word(part, start + begin, start + end)
            if waiting and part in _UNITS and word.start - waiting.end <= 1:
                size = _SIZE.fullmatch(waiting.text + part)
                yield _Word(f"{size[1]}gb" if size else waiting.text + part, waiting.start, word.end)
                waiting = None
                continue
            if waiting:
                yield waiting
            waiting = word if part.isdigit() else None
            if not waiting:
                yield word
    if waiting:
        yield waiting


def _lower(text: str) -> str:
    """Return the text in lower case, every character still at its place."""
    low = text.lower().replace("_", " ")
    return low if len(low) == len(text) else text.translate(_ASCII_LOWER)


_ASCII_LOWER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"} | {ord("_"): " "}


@lru_cache(maxsize=4096)
def _parts(run: str) -> tuple[tuple[str, int, int], ...]:
    """Return the words in a run of letters and digits, each with where it begins and ends; no count."""
    if run.isalpha():
        return ((_SAME.get(run, run), 0, len(run)),)
    found: list[tuple[str, int, int]] = []
    start, end = 0, len(run)
    if count := _COUNT.match(run):
        start = count.end()
    if after := _COUNT_AFTER.search(run, start):
        end = after.start()
    for pattern in (_MADE_OF, _ENDING):
        if made := pattern.fullmatch(run, start, end):
            found.append((made[1], start, made.end(1)))
            start = made.end(1)
    rest = run[start:end]
    size = _SIZE.fullmatch(rest)
    return (*found, (f"{size[1]}gb" if size else _SAME.get(rest, rest), start, end))


def _brands_before(words: Sequence[_Word]) -> Brands:
    found: dict[int, tuple[int, frozenset[str]]] = {}
    begin, end, said = 0, -9, frozenset[str]()
    for word in words:
        near = word.start - end <= 5
        if word.text in _BRANDS:
            begin, said = (begin, said) if said and near else (word.start, frozenset())
            said |= {word.text}
        elif word.text not in _SILENT:
            if said and near:
                found[word.start] = (begin, said)
            said = frozenset()
        end = word.end
    return found


def _is_whole(text: str, start: int, end: int, words: Words) -> bool:
    """Whether the name is no part of a longer word, and a bare number no part of a version or a path."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if after.isascii() and after.isalnum():
        return False
    if words[0].isdigit() and len(words) == 1 and (before != "x" and _looks_numeric(before)):
        return False
    return not (after in (".", "/") and text[end + 1 : end + 2].isalnum())


def _looks_numeric(character: str) -> bool:
    return character.isascii() and bool(_NEXT_TO_A_NUMBER.match(character))
