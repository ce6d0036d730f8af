"""What each finder finds by itself: what one misses another may take, and none may be blind unseen.

`found_alone.tsv` is the record for the changed texts, and for texts drawn from the finders' own patterns:
the finder, the number of the first of some texts, how many places it finds in their copies, and a digest
of them. After a finder changed, `python tests/bundle/test_found_alone.py` writes it anew; with the NAME
of one shows its places.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest
from pattern_draws import drawn_of_package
from test_changed_texts import KNOWN, TEXTS, TOLD, copies

from envdoctor.bundling import Redactor
from envdoctor.bundling.addresses import find_addresses
from envdoctor.bundling.clouds import find_clouds
from envdoctor.bundling.columns import find_columns
from envdoctor.bundling.drawn import find_drawn
from envdoctor.bundling.hosts import find_hosts
from envdoctor.bundling.identities import find_identities
from envdoctor.bundling.labels import find_with_labels
from envdoctor.bundling.secret_formats import find_formats
from envdoctor.bundling.secret_frames import find_headers, find_private_keys, find_urls
from envdoctor.bundling.secret_search import find_encoded, find_secrets
from envdoctor.bundling.serials import find_gpu_uuids, find_serials
from envdoctor.bundling.sought import Searched
from envdoctor.bundling.spans import Span
from envdoctor.bundling.users import find_users
from envdoctor.bundling.views import View, cells, decoded, joined

RECORD = Path(__file__).with_name("found_alone.tsv")
COPIES, TOGETHER, DRAWN, SHORT = 8, 20, 12, 40


def ends_in_8(number: str) -> bool:
    return number.endswith("8")


def viewed(view: View | None) -> list[tuple[str, list[tuple[int, int]]]]:
    """Return another way to read a text, and where its halves stand in it."""
    return [(view.text, view.pieces(len(view.text) // 3, len(view.text) - 1))] if view else []


def shown(searched: Searched) -> list[str]:
    """Return what is shown of a short text."""
    if len(searched.text) > SHORT:
        return []
    redactor = Redactor(KNOWN if len(searched.text) % 3 == 0 else None, keep=("kepler",))
    redactor.learn(searched.text)
    return [redactor.redact(searched.text + f" {TOLD[1]}" * (len(searched.text) % 5 == 0))]


ALONE: dict[str, Callable[[Searched], Iterable[object]]] = {
    "addresses": lambda searched: find_addresses(searched.text, ends_in_8),
    "cells": lambda searched: viewed(cells(searched.text)),
    "clouds": find_clouds,
    "columns": find_columns,
    "decoded": lambda searched: viewed(decoded(searched.text)),
    "drawn": lambda searched: find_drawn(searched.text),
    "encoded": lambda searched: find_encoded(searched.text),
    "formats": lambda searched: (span for _, span in find_formats(searched)),
    "headers": find_headers,
    "hosts": find_hosts,
    "identities": lambda searched: find_identities(searched, ends_in_8),
    "joined": lambda searched: viewed(joined(searched.text)),
    "labels": find_with_labels,
    "private keys": lambda searched: find_private_keys(searched.text),
    "secrets": find_secrets,
    "shown": shown,
    "serials": find_serials,
    "urls": find_urls,
    "users": find_users,
    "uuids": find_gpu_uuids,
}


@cache
def searched() -> list[list[Searched]]:
    """Return the texts with their copies, and those of each pattern."""
    changed = [list(copies(text, COPIES)) for text in TEXTS]
    return [
        [Searched(one) for one in ones] for ones in (*changed, *drawn_of_package("envdoctor.bundling", DRAWN))
    ]


def found(name: str, number: int) -> list[list[Span | object]]:
    """Return what a finder finds in a text and its copies."""
    return [list(ALONE[name](text)) for text in searched()[number]]


def lines(name: str) -> list[str]:
    """Return a finder's part of the record."""
    said = []
    for first in range(0, len(searched()), TOGETHER):
        numbers = range(first, min(first + TOGETHER, len(searched())))
        places = [places for number in numbers for places in found(name, number)]
        if count := sum(map(len, places)):
            said.append(f"{name}\t{first}\t{count}\t{crc32(repr(places).encode()):08x}")
    return said


@pytest.mark.parametrize("name", ALONE)
def test_a_finder_finds_what_it_found(name: str) -> None:
    recorded = RECORD.read_text(encoding="utf-8").splitlines()
    assert lines(name) == [line for line in recorded if line.partition("\t")[0] == name]


if __name__ == "__main__":
    if sys.argv[1:]:
        for number in range(len(searched())):
            print(*(f"{number}\t{places}" for places in found(sys.argv[1], number) if places), sep="\n")
    else:
        RECORD.write_text("".join(f"{line}\n" for name in ALONE for line in lines(name)), encoding="utf-8")
