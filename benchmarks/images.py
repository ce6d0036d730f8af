"""What `diagnose --image` costs on a synthetic image: `python benchmarks/images.py [--gib 10] [--gzip]`.

The layers hold hundreds of packages and large files of zeros (sparse on disk); with `--gzip` they are
compressed random blocks, so that unpacking costs what it costs.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import random
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

SITE = "usr/local/lib/python3.11/site-packages"
LAYERS, PACKAGES, SMALL = 8, 300, 15_000
"""Layers; packages in all; small files in each layer."""


def header(path: str, size: int) -> bytes:
    """Return the header of a file in a tar."""
    info = tarfile.TarInfo(path)
    info.size = size
    return info.tobuf(tarfile.PAX_FORMAT)


def layer(out: BinaryIO, number: int, large: int, packed: bool) -> None:
    """Write one layer of `large` bytes in four files, small files and packages."""
    start = out.tell()
    for place in range(SMALL):
        out.write(header(f"{SITE}/package{number}/module{place}.py", 100) + b"x = 1\n".ljust(512, b"\0"))
    for place in range(number, PACKAGES, LAYERS):
        text = f"Name: package{place}\nVersion: 1.{place}\nRequires-Dist: numpy\n\n".encode()
        text += b"text\n" * 2000
        out.write(header(f"{SITE}/package{place}-1.{place}.dist-info/METADATA", len(text)))
        out.write(text.ljust(-(-len(text) // 512) * 512, b"\0"))
    out.write(header("usr/local/bin/python3.11", 0) + header("usr/local/bin/python3", 0))
    for place in range(4):
        out.write(header(f"{SITE}/torch/lib/lib{number}-{place}.so", large // 4 // 512 * 512))
        if packed:
            block = random.Random(number).randbytes(1 << 20)
            for _ in range(large // 4 // len(block)):
                out.write(block)
            out.write(b"\0" * (large // 4 // 512 * 512 % len(block)))
        else:
            out.seek(large // 4 // 512 * 512, os.SEEK_CUR)
    out.write(b"\0" * 1024)
    assert (out.tell() - start) % 512 == 0


def write_image(path: Path, gib: float, packed: bool) -> None:
    """Write a saved image of that size."""
    names = [f"layer{number}/layer.tar" for number in range(LAYERS)]
    large = int(gib * (1 << 30) / LAYERS)
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/usr/local/bin"]}})
    manifest = json.dumps([{"Config": "config.json", "Layers": names}])
    with path.open("wb") as out:
        for name, text in (("config.json", config), ("manifest.json", manifest)):
            out.write(header(name, len(text)) + text.encode().ljust(-(-len(text) // 512) * 512, b"\0"))
        for number, name in enumerate(names):
            place = out.tell()
            out.write(b"\0" * 512)
            if packed:
                with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as inner:
                    layer(Counting(inner), number, large, True)  # type: ignore[arg-type]
            else:
                layer(out, number, large, False)
            size = out.tell() - place - 512
            out.write(b"\0" * (-size % 512))
            end = out.tell()
            out.seek(place)
            out.write(header(name, size))
            out.seek(end)
        out.write(b"\0" * 1024)


class Counting:
    """A stream that only knows how far it is."""

    def __init__(self, inner: io.BufferedIOBase) -> None:
        self._inner, self._place = inner, 0

    def write(self, data: bytes) -> int:
        """Write on."""
        self._place += len(data)
        return self._inner.write(data)

    def tell(self) -> int:
        """Return how much was written."""
        return self._place


def main() -> None:
    """Write an image, read it, and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=10)
    parser.add_argument("--gzip", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image.tar"
        write_image(path, args.gib, args.gzip)
        start = time.perf_counter()
        code = "from envdoctor.images.environment import read_image as r; import sys"
        code += "; print(len(r(sys.argv[1]).environment.distributions), 'packages')"
        subprocess.run([sys.executable, "-c", code, str(path)], check=True)
        wall = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"{path.stat().st_size / (1 << 30):.1f} GiB, {LAYERS * SMALL:,} small files: {wall:.1f} s wall, "
            f"{used.ru_utime + used.ru_stime:.1f} s CPU, {used.ru_maxrss >> 10} MiB"
        )


if __name__ == "__main__":
    main()
