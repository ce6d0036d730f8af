"""What `diagnose --image` costs on a synthetic image, and whether it answers right.

    python benchmarks/images.py [--gib 10] [--packed none|gzip|zstd] [--layout docker|oci] [--bomb]

The layers hold hundreds of packages, among them ones that a later layer replaces or takes away, and large
files: of zeros (sparse on disk), or, packed, of this interpreter's own libraries, which are packed once and
written again and again, so that unpacking costs what it costs. `--gib` is the size of the archive. With
`--bomb` a last layer unpacks to a thousand times its size: it must be refused. zstd needs `backports.zstd`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

SITE = "usr/local/lib/python3.11/site-packages"
LAYERS, PACKAGES, SMALL = 8, 300, 15_000
"""Layers; packages in all; small files in each layer."""
REPLACED, GONE = range(0, 40), range(40, 60)
"""Packages of which the last layer has a newer release, and ones that it takes away."""
BLOCK = 32 << 20
ASKED = ("--gpu", "H100", "--driver", "550.54.14", "--format", "json")
WHOLE = """
import pathlib, re, sys
from envdoctor.door import main
code = main()
peak = re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]
print(peak, file=sys.stderr)
sys.exit(code)
"""
PACK: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda data: data,
    "gzip": lambda data: gzip.compress(data, 6),
    "zstd": lambda data: import_module("backports.zstd").compress(data),
}


def header(path: str, size: int) -> bytes:
    """Return the header of a file in a tar."""
    info = tarfile.TarInfo(path)
    info.size = size
    return info.tobuf(tarfile.PAX_FORMAT)


def member(path: str, data: bytes) -> bytes:
    """Return a small file as a tar holds it."""
    return header(path, len(data)) + data.ljust(-(-len(data) // 512) * 512, b"\0")


def package(place: int, version: str) -> bytes:
    """Return the metadata of an installed package."""
    text = f"Name: package{place}\nVersion: {version}\nRequires-Dist: numpy\n\n".encode() + b"text\n" * 2000
    return member(f"{SITE}/package{place}-{version}.dist-info/METADATA", text)


def small(number: int) -> bytes:
    """Return the small files of a layer."""
    parts = [member(f"{SITE}/package{number}/module{place}.py", b"x = 1\n" * 16) for place in range(SMALL)]
    parts += [package(place, f"1.{place}") for place in _of_layer(number)]
    parts += [member("usr/local/bin/python3.11", b""), member("usr/local/bin/python3", b"")]
    if number == LAYERS - 1:
        for place in (*REPLACED, *GONE):
            parts.append(member(f"{SITE}/.wh.package{place}-1.{place}.dist-info", b""))
        parts += [package(place, "2.0") for place in REPLACED]
    return b"".join(parts)


def _of_layer(number: int) -> Sequence[int]:
    return range(number, PACKAGES, LAYERS - 1) if number < LAYERS - 1 else ()


def expected() -> dict[str, str]:
    """Return what the image holds in the end."""
    first = {f"package{place}": f"1.{place}" for place in range(PACKAGES) if place not in GONE}
    return {**first, **{f"package{place}": "2.0" for place in REPLACED}}


def libraries() -> bytes:
    """Return a block of what this interpreter's libraries hold, so that it packs as real layers do."""
    block = bytearray()
    for path in sorted(Path(sysconfig.get_paths()["platlib"]).rglob("*.so*")):
        block += path.read_bytes()[: 4 << 20]
        if len(block) >= BLOCK:
            break
    return bytes(block.ljust(BLOCK, b"\1")[:BLOCK])


def write_layer(out: BinaryIO, number: int, size: int, packed: str, block: bytes) -> None:
    """Write one layer that takes about `size` bytes of the archive."""
    pack, start = PACK[packed], out.tell()
    out.write(pack(small(number)))
    times = max(1, size // len(block))
    held = BLOCK if packed != "none" else len(block)
    out.write(pack(header(f"{SITE}/torch/lib/lib{number}.so", times * held)))
    if packed == "none":
        out.seek(times * held, os.SEEK_CUR)
    else:
        for _ in range(times):
            out.write(block)
    out.write(pack(b"\0" * 1024))
    assert out.tell() > start


def write_image(path: Path, gib: float, packed: str, layout: str, bomb: bool) -> int:
    """Write a saved image of that size; return how much its layers unpack to."""
    block = PACK[packed](libraries())
    size = int(gib * (1 << 30) / LAYERS)
    config = {"architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/usr/local/bin"]}}
    names = [f"blobs/sha256/{number:064x}" for number in range(LAYERS + bomb)]
    with path.open("wb") as out:
        for name, document in documents(layout, names).items():
            out.write(member(name, json.dumps(document).encode()))
        out.write(member(f"blobs/sha256/{'c' * 64}", json.dumps(config).encode()))
        for number, name in enumerate(names):
            place = out.tell()
            out.write(b"\0" * 512)
            if number == LAYERS:
                write_bomb(out)
            else:
                write_layer(out, number, size, packed, block)
            length = out.tell() - place - 512
            out.write(b"\0" * (-length % 512))
            end = out.tell()
            out.seek(place)
            out.write(header(name, length))
            out.seek(end)
        out.write(b"\0" * 1024)
    return LAYERS * max(1, size // len(block)) * BLOCK


def documents(layout: str, layers: Sequence[str]) -> dict[str, Any]:
    """Return the documents that name the layers, by their paths."""
    config = f"blobs/sha256/{'c' * 64}"
    if layout == "docker":
        return {"manifest.json": [{"Config": config, "Layers": list(layers)}]}

    def blob(path: str, kind: str) -> dict[str, str]:
        kind = f"application/vnd.oci.image.{kind}"
        return {"mediaType": kind, "digest": f"sha256:{path.rpartition('/')[2]}"}

    manifest = f"blobs/sha256/{'d' * 64}"
    listed = {
        "config": blob(config, "config.v1+json"),
        "layers": [blob(one, "layer.v1.tar") for one in layers],
    }
    return {"index.json": {"manifests": [blob(manifest, "manifest.v1+json")]}, manifest: listed}


def write_bomb(out: BinaryIO) -> None:
    """Write a layer of 8 GiB of zeros, packed."""
    out.write(gzip.compress(header("zeros", 8 << 30)))
    zeros = gzip.compress(b"\0" * BLOCK, 9)
    for _ in range((8 << 30) // BLOCK):
        out.write(zeros)


def main() -> None:
    """Write an image, read it, and print what that took and whether the answer is right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=10)
    parser.add_argument("--packed", choices=[*PACK], default="none")
    parser.add_argument("--layout", choices=["docker", "oci"], default="docker")
    parser.add_argument("--bomb", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image.tar"
        whole = write_image(path, args.gib, args.packed, args.layout, args.bomb)
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", WHOLE, "diagnose", "--image", str(path), *ASKED],
            capture_output=True, text=True,
        )  # fmt: skip
        wall = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        if args.bomb:
            said, peak = done.stderr.strip().splitlines()[0] if not done.stdout else "TAKEN", "-"
        else:
            held = json.loads(done.stdout)["facts"]["environment"]["distributions"]
            found = {name: one["version"] for name, one in held.items()}
            peak = int(done.stderr.split()[-1]) >> 10
            said = "right" if found == expected() else "WRONG"
        print(
            f"{args.layout}, {args.packed}: {path.stat().st_size / (1 << 30):.1f} GiB of "
            f"{whole / (1 << 30):.1f}, {LAYERS * SMALL:,} small files: {wall:.1f} s wall, "
            f"{used.ru_utime + used.ru_stime:.1f} s CPU, {peak} MiB; {said}"
        )


if __name__ == "__main__":
    main()
