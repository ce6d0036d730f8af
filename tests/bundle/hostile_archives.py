"""Archives that no `bundle` wrote: each a name and bytes, by kinds of attack, with a fixed seed."""

from __future__ import annotations

import hashlib
import io
import json
import random
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator

GOOD: dict[str, bytes] = {
    "report.md": b"# report\n",
    "facts.json": json.dumps({"schema": "envdoctor.facts/1", "origin": "paste"}).encode(),
    "diagnosis.json": b'{"schema": "envdoctor.diagnosis/1"}',
    "logs/01-train.log": b"Traceback\n",
}


def manifest(files: dict[str, bytes]) -> bytes:
    listed = {n: {"sha256": hashlib.sha256(c).hexdigest(), "bytes": len(c)} for n, c in files.items()}
    return json.dumps({"schema": "envdoctor.bundle/1", "files": listed, "redactions": {}}).encode()


def pack(entries: list[tuple[zipfile.ZipInfo | str, bytes]], compress: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", compress) as archive:
        warnings.simplefilter("ignore")
        for name, content in entries:
            archive.writestr(name, content)
    return stream.getvalue()


def sound(extra: list[tuple[zipfile.ZipInfo | str, bytes]] | None = None, **changed: bytes) -> bytes:
    files = {**GOOD, **changed}
    return pack([*files.items(), ("MANIFEST.json", manifest(files)), *(extra or [])])


_BAD_NAMES = (
    "../evil", "logs/../../evil", "/etc/passwd", "C:\\evil", "..\\evil", "logs//x", "./facts.json",
    "logs/", "a/b/c",
    "~/x", "con\x00.txt", "-rf", ".bashrc", "logs/.hidden", "naïve.txt", "a b.txt", "facts.json ", "logs\\x",
    "x" * 300, "logs/" + "y" * 200, "\u202etxt.exe", "aux:", "file://x", "%2e%2e/x", "logs/a/b",
)  # fmt: skip


def _names() -> Iterator[tuple[str, bytes]]:
    for name in _BAD_NAMES:
        try:
            yield f"name {name[:20]!r}", sound([(name, b"x")])
        except (ValueError, UnicodeError):
            continue


def _kinds() -> Iterator[tuple[str, bytes]]:
    for label, mode in (
        ("symlink", 0o120777),
        ("fifo", 0o010644),
        ("device", 0o020644),
        ("folder", 0o040755),
    ):
        info = zipfile.ZipInfo("logs/02-x")
        info.external_attr = mode << 16
        yield f"a {label}", sound([(info, b"/etc/passwd")])
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        info = zipfile.ZipInfo("logs/02-x")
        info.compress_type = method
        yield f"method {method}", sound([(info, b"x" * 100)])
    for name in (*GOOD, "MANIFEST.json"):
        yield f"{name} twice", sound([(name, b"other")])
        yield f"{name} twice in capitals", sound([(name.upper(), b"other")])
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        info = zipfile.ZipInfo("logs/02-x")
        info.compress_type = method
        whole = sound([(info, b"x" * 100)])
        at = whole.rfind(b"PK\x01\x02") + 8
        yield f"a secret one of method {method}", whole[:at] + b"\x01" + whole[at + 1 :]
    for size in ((64 << 10), (64 << 10) + 1):
        yield f"{size} zeros", sound([("logs/02-x", b"\0" * size)])
    yield "a file that the manifest does not list", sound([("logs/02-more", b"x")])


def _contents() -> Iterator[tuple[str, bytes]]:
    for name in GOOD:
        without = {k: v for k, v in GOOD.items() if k != name}
        yield f"{name} listed but not there", pack([*without.items(), ("MANIFEST.json", manifest(GOOD))])
        changed = {**GOOD, name: GOOD[name] + b" "}
        yield f"{name} changed", pack([*changed.items(), ("MANIFEST.json", manifest(GOOD))])
        yield f"{name} no UTF-8", sound(**{name: b"\xff\xfe\x80 \xc3"})
    for bad in (
        b"",
        b"[]",
        b"{",
        b'{"a":1,"a":2}',
        b"null",
        b"[" * 200_000,
        b'{"schema":"x"}',
        b"1" * 6000,
        b"\xef\xbb\xbf{}",
    ):
        yield f"facts {bad[:12]!r}", sound(**{"facts.json": bad})
        files = dict(GOOD)
        yield f"manifest {bad[:12]!r}", pack([*files.items(), ("MANIFEST.json", bad)])
    for schema in ("envdoctor.bundle/2", "", None, 1, [], {}):
        text = json.loads(manifest(GOOD)) | {"schema": schema}
        yield f"schema {schema!r}", pack([*GOOD.items(), ("MANIFEST.json", json.dumps(text).encode())])
    for listed in (
        [],
        None,
        "x",
        {"facts.json": None},
        {n: {"sha256": 1} for n in GOOD},
        {n: [] for n in GOOD},
    ):
        text = json.loads(manifest(GOOD)) | {"files": listed}
        yield f"files {str(listed)[:15]}", pack([*GOOD.items(), ("MANIFEST.json", json.dumps(text).encode())])
    yield "no manifest", pack(list(GOOD.items()))
    yield "no facts", pack([("report.md", b"x"), ("MANIFEST.json", manifest({"report.md": b"x"}))])
    yield "empty archive", pack([])


def _bombs() -> Iterator[tuple[str, bytes]]:
    yield "a bomb of zeros", sound(**{"logs/01-train.log": b"\0" * (8 << 20)})
    yield "a bomb of text", sound(**{"report.md": b"a\n" * (2 << 20)})
    yield "a bomb in the facts", sound(**{"facts.json": b" " * (4 << 20) + GOOD["facts.json"]})
    yield "10,001 entries", pack([(f"logs/{i}", b"") for i in range(10_001)], zipfile.ZIP_STORED)
    whole = sound()
    for count in (65_535, 20_000, 0, 1, 6):
        yield f"a directory that claims {count}", _patched(whole, 8, struct.pack("<HH", count, count))
    yield "a directory that is longer", _patched(whole, 12, struct.pack("<L", 1 << 30))
    yield "a directory elsewhere", _patched(whole, 16, struct.pack("<L", 1))
    yield "several disks", _patched(whole, 4, struct.pack("<H", 1))
    yield "a comment", whole[:-2] + struct.pack("<H", 5) + b"hello"
    yield "something before", b"#!/bin/sh\n" + whole
    yield "something after", whole + b"trailing"
    yield "two archives", whole + whole
    lying = zlib.compress(b"\0" * (1 << 20))
    yield "a nested archive", sound(**{"report.md": lying})


def _patched(whole: bytes, offset: int, replacement: bytes) -> bytes:
    at = whole.rfind(b"PK\x05\x06") + offset
    return whole[:at] + replacement + whole[at + len(replacement) :]


def _lying_sizes() -> Iterator[tuple[str, bytes]]:
    whole = sound()
    first = whole.find(b"PK\x01\x02")
    for offset, width in ((10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (42, 4), (8, 2)):
        for value in (1, 0xFFFF, (1 << (8 * width)) - 1):
            value &= (1 << (8 * width)) - 1
            replacement = value.to_bytes(width, "little")
            at = first + offset
            if whole[at : at + width] != replacement:
                yield f"directory byte {offset} is {value}", whole[:at] + replacement + whole[at + width :]


def _noise(r: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    whole = sound()
    for i in range(count):
        cut = r.randrange(0, len(whole) - 1)
        yield f"cut {i}", whole[:cut]
        content = bytearray(whole)
        start = r.randrange(0, len(whole) - 40)
        content[start : start + 16] = r.randbytes(16)
        yield f"noise {i}", bytes(content)
        yield f"random {i}", r.randbytes(r.randrange(0, 4000))


def planned() -> list[tuple[str, bytes]]:
    """Archives that break one rule each."""
    return [*_names(), *_kinds(), *_contents(), *_bombs()]


def hostile(seed: int = 4) -> list[tuple[str, bytes]]:
    """At least 300 archives that must be refused."""
    r = random.Random(seed)
    return [*planned(), *_lying_sizes(), *_noise(r, 90)]
