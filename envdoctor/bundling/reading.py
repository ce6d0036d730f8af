"""Reading a bundle back, from anyone: bounded in memory and time, and nothing is ever extracted."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, BinaryIO

from envdoctor.bundling.archive import MANIFEST, SCHEMA
from envdoctor.errors import InputError
from envdoctor.facts import Facts, FactsFormatError, from_json
from envdoctor.values import dataclass

MEMBER_LIMIT = 10_000
TOTAL_LIMIT = 256 << 20
RATIO_LIMIT = 200
FILE_LIMIT = 300 << 20
_RATIO_FREE = 64 << 10
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}|logs/[A-Za-z0-9][A-Za-z0-9._-]{0,120}")
_END_OF_DIRECTORY = b"PK\x05\x06"
_END_SIZE = 22
_DIRECTORY_ENTRY_SIZE = 46
_NAME_LIMIT = 400
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class BundleContents:
    """What a bundle holds: JSON terms as they were written, logs by name."""

    facts: Mapping[str, Any]
    diagnosis: Mapping[str, Any] | None = None
    smoke: Mapping[str, Any] | None = None
    report: str = ""
    logs: Mapping[str, str] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)


def read_bundle(path: Path) -> Facts:
    """Return the facts of the bundle at `path`; raises InputError in one line when it is no sound bundle."""
    contents = read_contents(path)
    try:
        return from_json(contents.facts)
    except (FactsFormatError, RecursionError) as error:
        raise InputError(f"{path}: facts.json: {error}") from None


def read_contents(path: Path) -> BundleContents:
    """Return everything in the bundle at `path`; raises InputError in one line when it is no sound bundle."""
    files = _read_files(path)
    manifest = _parse(path, files, MANIFEST)
    _check_manifest(path, manifest, files)
    if "facts.json" not in files:
        raise InputError(f"{path}: no bundle: facts.json is missing")
    return BundleContents(
        facts=_parse(path, files, "facts.json"),
        diagnosis=_parse(path, files, "diagnosis.json") if "diagnosis.json" in files else None,
        smoke=_parse(path, files, "smoke.json") if "smoke.json" in files else None,
        report=_text(path, files, "report.md") if "report.md" in files else "",
        logs={name[5:]: _text(path, files, name) for name in files if name.startswith("logs/")},
        manifest=manifest,
    )


def _read_files(path: Path) -> dict[str, bytes]:
    try:
        size = path.stat().st_size
        if not path.is_file() or size > FILE_LIMIT:
            raise InputError(f"{path}: no bundle: {'too large' if path.is_file() else 'not a file'}")
        with path.open("rb") as stream:
            count = _check_directory(path, stream, size)
            with zipfile.ZipFile(stream) as archive:
                if len(archive.infolist()) != count:
                    raise InputError(f"{path}: no bundle: its directory does not add up")
                _check_members(path, archive.infolist())
                return _read_members(path, archive)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except (
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        EOFError,
        ValueError,
        RuntimeError,
        struct.error,
    ):
        raise InputError(f"{path}: no bundle: not a sound ZIP archive") from None


def _check_directory(path: Path, stream: BinaryIO, size: int) -> int:
    # The directory is counted before zipfile builds an object for each of what may be a million entries.
    stream.seek(max(0, size - _END_SIZE))
    tail = stream.read(_END_SIZE)
    if len(tail) < _END_SIZE or not tail.startswith(_END_OF_DIRECTORY):
        raise InputError(f"{path}: no bundle: no ZIP archive, or something stands behind it")
    disk, _, here, total, length, offset, comment = struct.unpack("<4H2LH", tail[len(_END_OF_DIRECTORY) :])
    if disk or here != total or total > MEMBER_LIMIT:
        raise InputError(f"{path}: no bundle: more than {MEMBER_LIMIT:,} entries")
    sizes = range(total * _DIRECTORY_ENTRY_SIZE, total * (_DIRECTORY_ENTRY_SIZE + _NAME_LIMIT) + 1)
    if length not in sizes or comment:
        raise InputError(f"{path}: no bundle: its directory does not add up")
    if offset + length + _END_SIZE != size:
        raise InputError(f"{path}: no bundle: something stands before or after the archive")
    stream.seek(0)
    return int(total)


def _check_members(path: Path, members: list[zipfile.ZipInfo]) -> None:
    seen: set[str] = set()
    total = 0
    for member in members:
        name = member.orig_filename
        if not _NAME.fullmatch(name):
            raise InputError(f"{path}: no bundle: {name[:60]!r} is no name of a bundle's file")
        if name.lower() in seen:
            raise InputError(f"{path}: no bundle: {name[:60]!r} occurs twice")
        seen.add(name.lower())
        kind = member.external_attr >> 28
        if kind not in (0, 8) or member.flag_bits & 0x1:
            raise InputError(f"{path}: no bundle: {name[:60]!r} is no plain file")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(f"{path}: no bundle: {name[:60]!r} is packed in an unknown way")
        total += member.file_size
        if total > TOTAL_LIMIT or _is_bomb(member):
            raise InputError(f"{path}: no bundle: {name[:60]!r} unpacks to too much")


def _is_bomb(member: zipfile.ZipInfo) -> bool:
    return member.file_size > _RATIO_FREE and member.file_size > RATIO_LIMIT * max(1, member.compress_size)


def _read_members(path: Path, archive: zipfile.ZipFile) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for member in archive.infolist():
        parts: list[bytes] = []
        left = member.file_size
        with archive.open(member) as stream:
            while chunk := stream.read(min(_CHUNK, left + 1)):
                left -= len(chunk)
                if left < 0:
                    raise InputError(f"{path}: no bundle: {member.filename!r} is larger than it says")
                parts.append(chunk)
        if left:
            raise InputError(f"{path}: no bundle: {member.filename!r} is shorter than it says")
        files[member.filename] = b"".join(parts)
    return files


def _check_manifest(path: Path, manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    listed = manifest.get("files")
    if manifest.get("schema") != SCHEMA or not isinstance(listed, dict):
        raise InputError(f"{path}: no bundle: {MANIFEST} is not {SCHEMA}")
    if set(listed) != set(files) - {MANIFEST}:
        raise InputError(f"{path}: no bundle: {MANIFEST} lists other files than there are")
    for name, entry in listed.items():
        digest = entry.get("sha256") if isinstance(entry, dict) else None
        if hashlib.sha256(files[name]).hexdigest() != digest:
            raise InputError(f"{path}: {name} was changed: its SHA-256 is not the manifest's")


def _text(path: Path, files: Mapping[str, bytes], name: str) -> str:
    try:
        return files[name].decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path}: {name} is no UTF-8 text") from None


def _parse(path: Path, files: Mapping[str, bytes], name: str) -> Mapping[str, Any]:
    if name not in files:
        raise InputError(f"{path}: no bundle: {name} is missing")
    text = _text(path, files, name)
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError):
        raise InputError(f"{path}: {name} is no JSON") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: {name} is no JSON object")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result
