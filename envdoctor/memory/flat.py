"""What DDP copies flat: buckets of gradients, and weights that are sent at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def buckets(sizes: list[int]) -> Iterator[int]:
    """Bytes of DDP's buckets: gradients from the last on, until one is full (the first holds 1 MiB)."""
    filled, room = 0, 1 << 20
    for size in reversed(sizes):
        filled += size
        if filled >= room:
            yield filled
            filled, room = 0, 25 << 20
    if filled:
        yield filled


def coalesced(sizes: Iterable[int]) -> Iterator[int]:
    """Bytes of the flat copies in which tensors are sent: full ones of 250 MiB; one alone needs none."""
    filled = number = 0
    for size in (*sizes, 250 << 20):
        filled, number = filled + size, number + 1
        if filled >= 250 << 20:
            if number > 1:
                yield filled
            filled = number = 0
