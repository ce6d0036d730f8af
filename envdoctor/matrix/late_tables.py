"""Records of tables, of which each is unpacked, and each part of it decoded, when it is asked for.

A record of a large library is megabytes of JSON, of which an error line asks for a few lines of one table.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

PLAIN, _TABLES = "plain", "tables"
_SIZE = 4


def pack_tables(record: Mapping[str, Any]) -> bytes:
    """Return a record's bytes, the same for the same record: a head that tells of its tables, and these."""
    head: dict[str, dict[str, Any]] = {PLAIN: {}, _TABLES: {}}
    body: list[bytes] = []
    for name, value in sorted(record.items()):
        if isinstance(value, Mapping) and value:
            body.append(_packed(value))
            head[_TABLES][name] = len(body[-1])
        else:
            head[PLAIN][name] = value
    told = _text(head).encode()
    rest = b"".join((len(told).to_bytes(_SIZE, "little"), told, *body))
    return zlib.crc32(rest).to_bytes(_SIZE, "little") + rest


def _packed(table: Mapping[str, Any]) -> bytes:
    """Return a table's bytes: a line with the lengths of its parts where it has such, and its text."""
    import lzma

    if all(isinstance(part, Mapping) for part in table.values()):
        parts = {key: _text(part) for key, part in sorted(table.items())}
        text = "\n".join((_text({key: len(part) for key, part in parts.items()}), "".join(parts.values())))
    else:
        text = f"\n{_text(table)}"
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def read_head(data: bytes) -> tuple[dict[str, dict[str, Any]], int]:
    """Return what opens a packed record, and where its tables begin; raises ValueError for other bytes."""
    if zlib.crc32(memoryview(data)[_SIZE:]) != int.from_bytes(data[:_SIZE], "little"):
        raise ValueError("not a packed record, or not all of one")
    begin = 2 * _SIZE
    end = begin + int.from_bytes(data[_SIZE:begin], "little")
    head = json.loads(data[begin:end])
    if not isinstance(head, dict) or head.keys() != {PLAIN, _TABLES}:
        raise ValueError("not a packed record")
    return head, end


def read_tables(data: bytes) -> dict[str, Any]:
    """Return a packed record, whose tables unpack what is asked for; raises ValueError for other bytes."""
    head, start = read_head(data)
    record: dict[str, Any] = dict(head[PLAIN])
    for name, size in sorted(head[_TABLES].items()):
        record[name] = _Table(data[start : start + size])
        start += size
    return record


def holding(table: Mapping[str, Mapping[str, Any]], key: str) -> dict[str, Any]:
    """Return what the parts of a table say of a key, by part, in order; nothing else is decoded."""
    told = table.told if isinstance(table, _Table) else table
    parts = told.holding(key) if isinstance(told, _Parts) else told
    return {part: told[part][key] for part in parts if key in told[part]}


class _Table(Mapping[str, Any]):
    """A table that is unpacked when anything of it is asked for."""

    __slots__ = ("_packed", "_told")

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._told: Mapping[str, Any] | None = None

    @property
    def told(self) -> Mapping[str, Any]:
        """What it holds."""
        if self._told is None:
            import lzma

            lengths, _, body = lzma.decompress(self._packed).partition(b"\n")
            self._told = _Parts(body, json.loads(lengths)) if lengths else json.loads(body)
        return self._told

    def __getitem__(self, key: str) -> Any:
        return self.told[key]

    def __contains__(self, key: object) -> bool:
        return key in self.told

    def __iter__(self) -> Iterator[str]:
        return iter(self.told)

    def __len__(self) -> int:
        return len(self.told)


class _Parts(Mapping[str, Any]):
    """A table of tables, of which each is decoded when it is asked for."""

    __slots__ = ("_data", "_ends", "_known", "_names", "_numbers")

    def __init__(self, data: bytes, lengths: Mapping[str, int]) -> None:
        self._data, self._names = data, [*lengths]
        self._ends = [*accumulate(lengths.values(), initial=0)]
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
