"""Optimizers by the names that trainers take: their states, and what a step of theirs asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from envdoctor.errors import InputError, nearest
from envdoctor.memory.layout import HEAD, TABLE, Elements
from envdoctor.memory.tape import rounded

if TYPE_CHECKING:
    from envdoctor.matrix import tables

QUANTISED_FROM = 4096  # elements below which bitsandbytes keeps a state in fp32
PAGED_FROM = 100_000  # elements below which a paged state stays on the card
BLOCK = 256  # elements that share one constant of an 8-bit state


@cache
def optimizers() -> Mapping[str, tables.OptimizerRow]:
    """Return every optimizer whose memory is known, by its name."""
    from envdoctor.matrix import load_matrix, tables

    return {row.name: row for row in load_matrix().rows(tables.OptimizerRow)}


def find_optimizer(name: str) -> tables.OptimizerRow:
    """Return the optimizer of that name; raises InputError for one whose memory is not known."""
    known = optimizers()
    if name not in known:
        near = nearest(name, known) or f"; there are {', '.join(sorted(known))}"
        raise InputError(f"--optim {name}: not known{near}")
    return known[name]


def of_matrices(optimizer: tables.OptimizerRow, n: int) -> Elements | None:
    """Return the elements as a matrix whose states are kept otherwise than those of the rest, or None.

    Embeddings and the head are stepped like vectors, but for a second moment of each of their rows.
    """
    if not (optimizer.matrices and isinstance(n, Elements)):
        return None
    return n if optimizer.matrices == "rows" or n.role not in (TABLE, HEAD) else None


def state_bytes(
    optimizer: tables.OptimizerRow,
    tensors: Iterable[tuple[int, int]],
    width: int,
    embedding: int = 0,
    rank: int = 0,
) -> int:
    """Bytes of the states on the card for tensors (elements, occurrences) of `width` bytes an element.

    `embedding` is the number of elements of the embedding, which bitsandbytes keeps in 32 bits; the head of
    an untied model is as large and is not. The embedding stands first.
    """
    found = tuple(tensors)
    first = bool(embedding) and bool(found) and found[0][0] == embedding
    return sum(
        count * sum(map(rounded, state_blocks(optimizer, n, width, first and place == 0, rank)))
        for place, (n, count) in enumerate(found)
    )


def state_blocks(
    optimizer: tables.OptimizerRow, n: int, width: int, embedding: bool = False, rank: int = 0
) -> tuple[int, ...]:
    """Bytes of each tensor that the states of a weight of `n` elements of `width` bytes are kept in."""
    matrix = of_matrices(optimizer, n)
    if matrix is not None:
        return _matrix_blocks(optimizer, matrix, width, rank)
    if optimizer.paged and n >= PAGED_FROM:
        constants = optimizer.kept == "8bit" and not embedding
        return (4 * (n // BLOCK),) * optimizer.states if constants else ()
    if optimizer.kept == "8bit" and n >= QUANTISED_FROM and not embedding:
        return (n, 4 * -(-n // BLOCK)) * optimizer.states
    if optimizer.kept == "factored":
        return () if n < QUANTISED_FROM else (4 * int(n**0.5) * 2,)
    if optimizer.kept in ("8bit", "fp32"):
        return (4 * n,) * optimizer.states
    steps = (4,) if optimizer.states == 2 and not (optimizer.foreach or optimizer.matrices) else ()
    return (*steps, *(width * n,) * optimizer.states)


def _matrix_blocks(
    optimizer: tables.OptimizerRow, matrix: Elements, width: int, rank: int
) -> tuple[int, ...]:
    """Bytes of each tensor of a matrix's states, where they are of another shape than the matrix."""
    if optimizer.matrices == "momentum":
        return (width * matrix,)
    if optimizer.matrices == "rows":
        return (width * matrix, width * matrix.rows)
    small, low = sides(matrix, rank or optimizer.rank)
    basis = width * low // max(matrix.rows, matrix.columns) * small
    if optimizer.matrices == "projected" and width == 4:
        basis = 4 * small * small  # a view of all that the decomposition returned
    states = state_blocks_of(low, width, optimizer)
    return (basis, *states)


def state_blocks_of(low: int, width: int, optimizer: tables.OptimizerRow) -> tuple[int, ...]:
    """Bytes of each tensor of the states of a projected gradient of so many elements."""
    if optimizer.kept == "8bit" and low >= QUANTISED_FROM:
        return (low, 4 * -(-low // BLOCK)) * optimizer.states
    return ((4 if optimizer.kept == "8bit" else width) * low,) * optimizer.states


def sides(matrix: Elements, rank: int) -> tuple[int, int]:
    """The shorter side of a matrix, and the elements of a gradient that is projected on `rank` of it."""
    small, large = sorted((matrix.rows, matrix.columns))
    return small, min(rank, small) * large
