"""An image saved as one file, in docker's or OCI's layout: its configuration and its layers, first to last.

A saved image is a tar of files, of which some are tars, perhaps compressed. Layers are read where they lie:
nothing is extracted, and what unpacks to far more than it can honestly be is refused.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, BinaryIO

from envdoctor.errors import InputError
from envdoctor.images.tar import BLOCK, Broken, Source, members
from envdoctor.inputs import MEBIBYTE, parse_json
from envdoctor.values import dataclass

MAX_JSON = 8 * MEBIBYTE
MAX_LAYERS = 1000
MAX_RATIO = 200
"""How many times its size a layer may unpack to, beyond the first GiB; real ones stay below 20."""
FREE = 1 << 30
CHUNK, PIECE = 1 << 16, 1 << 18
"""Bytes of a packed layer that are read, and unpacked, at once: with larger ones a sixth of the time goes to
memory that is taken and given back for each."""
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_MANIFESTS = ("application/vnd.oci.image.manifest", "application/vnd.docker.distribution.manifest.v2")
_INDEXES = ("application/vnd.oci.image.index", "application/vnd.docker.distribution.manifest.list")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file of the archive lies: offset and size in bytes."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved image: its configuration, and its layers by their names, first to last."""

    config: Mapping[str, Any]
    layers: tuple[tuple[str, Place], ...]


def read_saved(stream: BinaryIO, name: str) -> Saved:
    """Return what an archive holds; raises InputError for one that is no saved image."""
    try:
        files = _files(stream)
        if "manifest.json" in files:
            return _of_docker(stream, files)
        if "index.json" in files:
            return _of_oci(stream, files)
    except (Broken, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise InputError(f"{name}: no image that can be read: {_said(error)}") from None
    raise InputError(f"{name}: no image: it holds neither manifest.json nor index.json")


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__


def _files(stream: BinaryIO) -> dict[str, Place]:
    """Return where each file of the outer archive lies; links of docker's older layout lead to files."""
    window = Window(stream, Place(0, _size(stream)))
    found: dict[str, Place] = {}
    links: dict[str, str] = {}
    for member in members(window):
        if member.kind == "file":
            found[member.path] = Place(window.position, member.size)
        elif member.kind in ("link", "hard"):
            links[member.path] = member.target
        if len(found) > 20 * MAX_LAYERS:
            raise Broken("too many files for an image")
    for path, target in links.items():
        joined = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if joined in found:
            found[path] = found[joined]
    return found


def _size(stream: BinaryIO) -> int:
    return stream.seek(0, os.SEEK_END)


def _json(stream: BinaryIO, files: Mapping[str, Place], path: str) -> Any:
    if path not in files:
        raise Broken(f"{path[:80]} is not in it")
    place = files[path]
    if place.size > MAX_JSON:
        raise Broken(f"{path[:80]} has {place.size:,} bytes")
    stream.seek(place.offset)
    return parse_json(stream.read(place.size))


def _of_docker(stream: BinaryIO, files: Mapping[str, Place]) -> Saved:
    listed = _json(stream, files, "manifest.json")
    if not isinstance(listed, list) or not listed:
        raise Broken("manifest.json lists no image")
    return _saved(_json(stream, files, listed[0]["Config"]), listed[0]["Layers"], files)


def _of_oci(stream: BinaryIO, files: Mapping[str, Place]) -> Saved:
    document = _json(stream, files, "index.json")
    for _ in range(8):
        chosen = _for_linux(document["manifests"])
        document = _json(stream, files, _blob(chosen))
        if "layers" in document:
            config = _json(stream, files, _blob(document["config"]))
            return _saved(config, [_blob(layer) for layer in document["layers"]], files)
    raise Broken("indexes within indexes")


def _for_linux(manifests: Any) -> Any:
    """Return the manifest of linux/amd64, else the first that is an image."""
    images = [one for one in manifests if _kind(one, _MANIFESTS) or _kind(one, _INDEXES)]
    wanted = [one for one in images if (one.get("platform") or {}).get("architecture") == "amd64"]
    if not images:
        raise Broken("index.json names no image")
    return (wanted or images)[0]


def _kind(entry: Mapping[str, Any], prefixes: tuple[str, ...]) -> bool:
    return str(entry.get("mediaType", "")).startswith(prefixes)


def _blob(descriptor: Mapping[str, Any]) -> str:
    algorithm, _, digest = str(descriptor["digest"]).partition(":")
    return f"blobs/{algorithm}/{digest}"


def _saved(config: Any, layers: Any, files: Mapping[str, Place]) -> Saved:
    if not isinstance(config, dict) or not isinstance(layers, list) or len(layers) > MAX_LAYERS:
        raise Broken("its configuration or list of layers is none")
    missing = [layer for layer in layers if layer not in files]
    if missing:
        raise Broken(f"the layer {str(missing[0])[:80]} is not in it")
    return Saved(config, tuple((layer, files[layer]) for layer in layers))


class Window:
    """A part of a file, read in order without copying it."""

    def __init__(self, stream: BinaryIO, place: Place) -> None:
        self._stream, self.position, self._end = stream, place.offset, place.offset + place.size
        stream.seek(place.offset)

    def read(self, size: int) -> bytes:
        """Return that many bytes, fewer at the end."""
        self._stream.seek(self.position)
        data = self._stream.read(min(size, self._end - self.position))
        self.position += len(data)
        return data

    def skip(self, size: int) -> None:
        """Pass over that many bytes; raises Broken where the file ends before."""
        if self.position + size > self._end + BLOCK:
            raise Broken("it ends too early")
        self.position = min(self.position + size, self._end)


def _inflated(window: Window) -> Iterator[bytes]:
    """Yield what gzip data unpacks to, at most `PIECE` bytes at a time."""
    engine = zlib.decompressobj(31)
    while chunk := window.read(CHUNK):
        while chunk:
            try:
                yield engine.decompress(chunk, PIECE)
            except zlib.error as error:
                raise Broken(str(error)) from None
            chunk = engine.unconsumed_tail
            if engine.eof:
                chunk, engine = engine.unused_data, zlib.decompressobj(31)
                if not chunk.startswith(GZIP):
                    chunk = b""


def _of_zstd(window: Window, module: Any) -> Iterator[bytes]:
    """Yield what zstd data unpacks to, at most `PIECE` bytes at a time; frames may follow one another."""
    engine = module.ZstdDecompressor()
    while chunk := window.read(CHUNK):
        while chunk or not engine.needs_input:
            try:
                yield engine.decompress(chunk, PIECE)
            except module.ZstdError as error:
                raise Broken(str(error)) from None
            chunk = b""
            if engine.eof:
                chunk, engine = engine.unused_data, module.ZstdDecompressor()


def _zstd() -> Any:
    """Return the module that reads zstd; raises Broken where this Python has none."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            pass
    raise Broken("it is compressed with zstd, which Python reads from 3.14 on, before with backports.zstd")


class Unpacked:
    """A compressed layer, unpacked piece by piece; raises Broken for what unpacks to too much."""

    def __init__(self, pieces: Iterator[bytes], size: int) -> None:
        self._chunks = self._counted(pieces, FREE + MAX_RATIO * size)
        self._held, self._at = b"", 0

    def _counted(self, pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
        given = 0
        for piece in pieces:
            given += len(piece)
            if given > limit:
                raise Broken(f"it unpacks to more than {limit >> 20:,} MiB")
            if piece:
                yield piece

    def read(self, size: int) -> bytes:
        """Return that many bytes, fewer at the end."""
        end = self._at + size
        if end <= len(self._held):
            data, self._at = self._held[self._at : end], end
            return data
        parts = [self._held[self._at :]]
        left = size - len(parts[0])
        while left and self._next():
            parts.append(self._held[:left])
            self._at = len(parts[-1])
            left -= self._at
        return b"".join(parts)

    def skip(self, size: int) -> None:
        """Pass over that many bytes; raises Broken where it ends before."""
        while size > len(self._held) - self._at:
            size -= len(self._held) - self._at
            if not self._next():
                if size > BLOCK:
                    raise Broken("it ends too early")
                return
        self._at += size

    def _next(self) -> bool:
        """Hold the next piece; False at the end."""
        self._held, self._at = next(self._chunks, b""), 0
        return bool(self._held)


def open_layer(stream: BinaryIO, place: Place) -> Source:
    """Return a layer's bytes, unpacked; raises Broken for a kind of compression that is not read."""
    stream.seek(place.offset)
    head = stream.read(4)
    window = Window(stream, place)
    if head.startswith(GZIP):
        return Unpacked(_inflated(window), place.size)
    if head == ZSTD:
        return Unpacked(_of_zstd(window, _zstd()), place.size)
    return window
