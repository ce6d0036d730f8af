"""Records of tables in one text, of which each part is decoded when it is asked for.

A record of a large library is megabytes of JSON, of which an error line asks for a few lines.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

PLAIN, _WHOLE, _PARTS = "plain", "whole", "parts"
_SIZE = 4


def pack_tables(record: Mapping[str, Any]) -> bytes:
    """Return a record's bytes, the same for the same record: a head that tells of its texts, and these."""
    head: dict[str, dict[str, Any]] = {PLAIN: {}, _WHOLE: {}, _PARTS: {}}
    body: list[str] = []
    for name, value in sorted(record.items()):
        if not isinstance(value, Mapping) or not value:
            head[PLAIN][name] = value
        elif all(isinstance(part, Mapping) for part in value.values()):
            texts = {key: _text(part) for key, part in sorted(value.items())}
            head[_PARTS][name] = {key: len(text) for key, text in texts.items()}
            body += texts.values()
        else:
            body.append(_text(value))
            head[_WHOLE][name] = len(body[-1])
    told = _text(head).encode()
    return len(told).to_bytes(_SIZE, "little") + told + "".join(body).encode()


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def read_head(data: bytes) -> tuple[dict[str, dict[str, Any]], int]:
    """Return what opens a packed record, and where its texts begin; raises ValueError for other bytes."""
    size = int.from_bytes(data[:_SIZE], "little")
    head = json.loads(data[_SIZE : _SIZE + size])
    if not isinstance(head, dict) or head.keys() != {PLAIN, _WHOLE, _PARTS}:
        raise ValueError("not a packed record")
    return head, _SIZE + size


def read_tables(data: bytes) -> dict[str, Any]:
    """Return a packed record, whose tables decode what is asked for; raises ValueError for other bytes."""
    head, start = read_head(data)
    record: dict[str, Any] = dict(head[PLAIN])
    for name in sorted((*head[_WHOLE], *head[_PARTS])):
        if (lengths := head[_PARTS].get(name)) is not None:
            record[name] = _Parts(data, start, lengths)
            start += sum(lengths.values())
        else:
            record[name] = _Whole(data, start, head[_WHOLE][name])
            start += head[_WHOLE][name]
    return record


def holding(table: Mapping[str, Mapping[str, Any]], key: str) -> dict[str, Any]:
    """Return what the parts of a table say of a key, by part, in order; nothing else is decoded."""
    parts = table.holding(key) if isinstance(table, _Parts) else table
    return {part: table[part][key] for part in parts if key in table[part]}


class _Parts(Mapping[str, Any]):
    """A table of tables, of which each is decoded when it is asked for."""

    __slots__ = ("_data", "_ends", "_known", "_names", "_numbers")

    def __init__(self, data: bytes, start: int, lengths: Mapping[str, int]) -> None:
        self._data, self._names = data, [*lengths]
        self._ends = [*accumulate(lengths.values(), initial=start)]
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._known: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self._known:
            number = self._numbers[key]
            self._known[key] = json.loads(self._data[self._ends[number] : self._ends[number + 1]])
        return self._known[key]

    def holding(self, key: str) -> list[str]:
        """Return the parts in whose texts a key stands, in order."""
        needle, found = f"{json.dumps(key)}:".encode(), list[str]()
        place = self._data.find(needle, self._ends[0], self._ends[-1])
        while place >= 0:
            number = bisect_right(self._ends, place)
            found.append(self._names[number - 1])
            place = self._data.find(needle, self._ends[number], self._ends[-1])
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _Whole(Mapping[str, Any]):
    """A table that is decoded when anything of it is asked for."""

    __slots__ = ("_known", "_place")

    def __init__(self, data: bytes, start: int, length: int) -> None:
        self._place = data, start, length
        self._known: dict[str, Any] | None = None

    @property
    def _table(self) -> dict[str, Any]:
        if self._known is None:
            data, start, length = self._place
            self._known = json.loads(data[start : start + length])
        return self._known

    def __getitem__(self, key: str) -> Any:
        return self._table[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)
