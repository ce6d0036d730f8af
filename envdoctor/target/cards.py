"""The cards that an answer must hold on: named by a person, or seen and completed by the matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from envdoctor import lazy_re as re
from envdoctor.errors import InputError
from envdoctor.facts import ComputeCapability, Observed
from envdoctor.facts.quantities import GIB
from envdoctor.matrix import Matrix
from envdoctor.matrix.gpus import capability_named, complete_gpu, declared_gpu, edition_bytes
from envdoctor.values import dataclass

if TYPE_CHECKING:
    from envdoctor.facts import Facts

DRIVER_PERCENT = 1.5
"""Of the memory that NVML reports, what the driver keeps and CUDA never offers (a 24,576 MiB card offers
24,210; measured on cards of 24, 48, 80 and 141 GB)."""
_SEVERAL = re.compile(r"(\d{1,3})\s?[xX×*]\s?(?P<after>\D.*)|(?P<before>.*\S)(?:\s[xX]|\s?[×*])\s?(\d{1,3})")
_WITHOUT_MEMORY = re.compile(r"(?<![\d.])0+\s*g(i?b)?\b")


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU: its name, its compute capability and the bytes that NVML reports, where they are known."""

    name: str
    capability: ComputeCapability | None = None
    memory_bytes: int | None = field(default=None, compare=False)
    source: str = "--gpu"
    asked: str = ""
    """What a person called it."""
    note: str = field(default="", compare=False)
    """What was taken for granted, such as the smallest of the sizes it is sold in."""
    largest_bytes: int = field(default=0, compare=False)
    """The largest of the sizes it is sold in, where `memory_bytes` is the smallest of several."""

    @property
    def label(self) -> str:
        """The name it was asked for by, else its own."""
        return self.asked or self.name

    def __str__(self) -> str:
        sm = self.capability.sm if self.capability else ""
        return f"{self.label} ({sm})" if sm and self.label != sm else self.label

    @property
    def usable_bytes(self) -> int:
        """Bytes that a process can have of it, its CUDA context counted in; 0 when its size is unknown."""
        return int((self.memory_bytes or 0) * (1 - DRIVER_PERCENT / 100))

    def at_least(self, major: int, minor: int = 0) -> bool:
        """True when the capability is known and not lower."""
        return self.capability is not None and self.capability >= ComputeCapability(major, minor)


def declare_gpus(facts: Facts, names: Sequence[str], matrix: Matrix) -> Facts:
    """Return the facts with the declared cards in place of what was read; raises InputError."""
    if not names:
        return facts
    gpus = tuple(declared_gpu(matrix, name, index) for index, name in enumerate(each_card(names)))
    return replace(facts, gpus=Observed(gpus, "--gpu"))


def named_cards(names: Sequence[str], matrix: Matrix) -> tuple[Card, ...]:
    """Return the cards of names or compute capabilities (`sm_90`), called as they were asked for.

    Raises InputError for a name that the matrix does not know, and for a card without memory.
    """
    return tuple(_named(name, matrix) for name in each_card(names))


def each_card(names: Sequence[str]) -> Iterator[str]:
    """Yield the name of every single card of what people write, such as `8xH100` or `RTX 3090 x2`.

    Raises InputError for none of a card.
    """
    for name in names:
        found = _SEVERAL.fullmatch(name.strip())
        if found is None:
            yield name
            continue
        count = int(found[1] or found[4])
        if not count:
            raise InputError(f"--gpu {name}: no card")
        yield from [found["after"] or found["before"]] * count


def _named(asked: str, matrix: Matrix) -> Card:
    if _WITHOUT_MEMORY.search(asked.lower()):
        raise InputError(f"--gpu {asked}: a card without memory")
    if capability := capability_named(asked):
        return Card(capability.sm, capability)
    gpu = declared_gpu(matrix, asked)
    name = gpu.name or asked
    size, largest, note = _smallest(name, edition_bytes(matrix, gpu))
    return Card(name, gpu.compute_capability, size, asked=asked, note=note, largest_bytes=largest)


def cards_in(facts: Facts, matrix: Matrix) -> tuple[Card, ...]:
    """Return the cards that facts tell, completed by the matrix."""
    gpus = (complete_gpu(matrix, gpu) for gpu in facts.gpus.get() or ())
    return tuple(
        Card(gpu.name or (cc.sm if (cc := gpu.compute_capability) else "GPU"), gpu.compute_capability,
             gpu.memory_total_bytes, gpu.source)
        for gpu in gpus
    )  # fmt: skip


def unsized(card: Card) -> InputError:
    """Return the error for a card of unknown memory."""
    wanted = f"name it with its size, such as '{card.label} 12GB'"
    return InputError(f"--gpu {card.label}: its memory is not known; {wanted}")


def sized_cards(cards: Sequence[Card], count: int | None) -> tuple[Card, ...]:
    """Return as many of the cards as are wanted, each of known memory.

    Raises InputError when there is none, when one's memory is unknown, or when there are not so many.
    """
    if count is not None and count < 1:
        raise InputError(f"--gpus: {count} is no count")
    if not cards:
        raise InputError("no GPU is seen on this machine; name one, such as --gpu 'RTX 4090'")
    for card in cards:
        if not card.memory_bytes:
            raise unsized(card)
    if count is None or count == len(cards):
        return tuple(cards)
    if len(cards) == 1:
        return tuple(cards) * count
    if count > len(cards) or any(card.source == "--gpu" for card in cards):
        raise InputError(f"--gpus {count}: {len(cards)} cards are named or seen")
    return tuple(cards[:count])


def _smallest(name: str, sizes: tuple[int, ...]) -> tuple[int | None, int, str]:
    """Return the least of a card's sizes, the largest of several, and what was taken for granted."""
    if len(sizes) < 2:
        return (sizes[0] if sizes else None), 0, ""
    known = " and ".join(f"{round(size / GIB, 2):g}" for size in sizes)
    note = f"{name} is sold with {known} GiB: taken as the smallest; name it with its size to change that"
    return sizes[0], sizes[-1], note
