"""Messages that compiled libraries hold: the texts of their string tables that read like a complaint.

A binary is read as it is inflated, a piece at a time; nothing of it is loaded or run. The checks of C++ put
a message together from pieces, so that one of its texts may stand for a part of a line.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from envdoctor.fetch import Fetcher
from envdoctor.harvest.index_pages import IndexFile
from envdoctor.harvest.messages import HOLE, LONGEST, Message, is_telling
from envdoctor.harvest.remote_archive import Member, RemoteZip, naming
from envdoctor.matrix.atlas import COMPILED


@dataclass(frozen=True, slots=True)
class Binaries:
    """A package whose binaries are read: from which release on, and patterns of their names in a wheel."""

    name: str
    since: str
    members: tuple[str, ...]

    @property
    def library(self) -> str:
        """What the package is part of: one library of CUDA comes as a package for each major release."""
        return re.sub(r"-cu\d{2}$", "", self.name)


BINARIES = (
    Binaries(
        "torch",
        "2.0",
        (
            "torch/lib/libc10.*",
            "torch/lib/libc10_cuda.so",
            "torch/lib/libtorch_cuda.so",
            "torch/lib/libtorch_python.*",
            "torch/lib/libtorch_cpu.*",
        ),
    ),
    Binaries("nvidia-cuda-runtime-cu11", "11.7", ("*/libcudart.so.*",)),
    Binaries("nvidia-cuda-runtime-cu12", "12.0", ("*/libcudart.so.*",)),
    Binaries("nvidia-cuda-runtime", "13.0", ("*/libcudart.so.*",)),
    Binaries("nvidia-cuda-nvcc-cu12", "12.0", ("*/bin/ptxas",)),
    Binaries("nvidia-cuda-nvcc", "13.0", ("*/bin/ptxas",)),
    Binaries("nvidia-nccl-cu12", "2.18", ("*/libnccl.so.2",)),
    Binaries("nvidia-cudnn-cu12", "8.9", ("*/libcudnn_graph.so.9", "*/libcudnn.so.8")),
    Binaries("bitsandbytes", "0.38", ("bitsandbytes/libbitsandbytes_cuda12?.so",)),
)
"""The driver's own library is on no index, and flash-attn has no wheels there."""

CARRIED = 1024
"""Bytes of a piece that are read again with the next: a text may lie across both."""
QUIET = 64 << 20
"""Bytes without a message after which there are no more: what follows is code for cards."""
_TEXT = re.compile(rb"(?<=\x00)[ -~\n\t]{14,900}(?=\x00)")
_CONVERSION = re.compile(r"%[-#0 +]{0,4}[\d*]{0,4}(?:\.[\d*]{1,4})?(?:hh?|ll?|[zjtL])?[diouxXeEfFgGcsp]")
_COMPLAINS = re.compile(
    r"(?i)\b(?:abort|allocat|already|attempt|avail|bad|before|broken|cannot|can't|corrupt|could not|deprecat|"
    r"did not|disabled|does ?n[o']t|do not|duplicate|error|exceed|expect|fail|fatal|found|got|illegal|"
    r"incompatible|incorrect|insufficient|invalid|is not|mismatch|missing|must|need|never|no longer|no such|"
    r"not (?:found|support|enabled|implemented|allowed|initialized|permitted|enough|match)|only|out of|"
    r"overflow|please|refus|requir|should|supported|terminat|time|too (?:large|small|many|few|long|old)|"
    r"unable|undefined|unexpected|uninitialized|unknown|unload|unresolved|unspecified|unsupported|"
    r"violat|was not|were not|wrong)"
)
_CODE = re.compile(r"::|->|\w\(|[{}<>;|\\]|=[^ ]|^\s|[#@]|(?:^|\s)/\w|\.(?:cc|cpp|cu|h|py)\b")
"""What signatures, paths and sources hold, and no sentence."""


def scan_binary(pieces: Iterable[bytes]) -> Iterator[Message]:
    """Yield the messages of a binary, each once, in the order of their places, until they are at an end."""
    seen, kept, quiet = set[str](), b"\x00", 0
    for piece in pieces:
        data = kept + piece
        told = {m[0].decode("ascii"): None for m in _TEXT.finditer(data)}
        new = [message for text in told if text not in seen for message in _message(text)]
        yield from new
        seen.update(told)
        kept, quiet = data[-CARRIED:], 0 if new else quiet + len(piece)
        if quiet > QUIET:
            return


def _message(text: str) -> Iterator[Message]:
    template = " ".join(_CONVERSION.sub(HOLE, text).split())[:LONGEST]
    words = template.split(" ")
    if (
        len(words) >= 3
        and is_telling(template)
        and _COMPLAINS.search(template)
        and not _CODE.search(template)
    ):
        yield Message(template, COMPILED, "", "")


def read_binaries(
    fetcher: Fetcher, source: Binaries, files: Sequence[IndexFile]
) -> Iterator[tuple[str, list[Message]]]:
    """Yield the binaries of a release with their messages, each from the wheel that packs it smallest."""
    found: dict[str, tuple[Member, RemoteZip]] = {}
    for file in _one_a_platform(files):
        with naming(file.filename):
            archive = RemoteZip(fetcher, file.url)
        for member in archive.members.values():
            stem = member.name.rpartition("/")[2].partition(".")[0]
            if any(fnmatch.fnmatchcase(member.name, pattern) for pattern in source.members) and (
                stem not in found or member.packed < found[stem][0].packed
            ):
                found[stem] = member, archive
    for member, archive in found.values():
        with naming(archive.url.rpartition("/")[2].partition("#")[0]):
            yield member.name, list(scan_binary(archive.stream(member.name)))


def _one_a_platform(files: Sequence[IndexFile]) -> Iterator[IndexFile]:
    """Yield one wheel for x86_64 Linux and one for Macs: they hold the same checks but CUDA's."""
    wheels = sorted((f for f in files if f.is_wheel), key=lambda f: f.filename)
    for marks in (("linux", "x86_64"), ("macosx", "arm64")):
        yield from [f for f in wheels if all(mark in f.filename for mark in marks)][-1:]
