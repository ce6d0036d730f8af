"""The Python files of one release: small wheels and sdists read whole, large wheels file by file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from envdoctor.fetch import Fetcher
from envdoctor.harvest.index_pages import IndexFile
from envdoctor.harvest.remote_archive import BadArchive, RemoteZip, read_sdist_members

WHOLE = 4 << 20
"""Wheels up to this many bytes are read whole; of larger ones only the members that are asked for."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The Python files of a release: their paths as installed, and how to read one."""

    paths: Collection[str]
    body: Callable[[str], bytes]

    def read(self, path: str) -> str:
        """Return one file's text; raises Unavailable."""
        return self.body(path).decode("utf-8", "replace")


def best_file(files: Sequence[IndexFile]) -> IndexFile | None:
    """Prefer a pure wheel, then a Linux one, then any wheel, then the source."""
    usable = [file for file in files if not file.yanked] or list(files)
    return min(usable, key=_rank, default=None)


def _rank(file: IndexFile) -> int:
    if not file.is_wheel:
        return 3
    if file.filename.endswith("-none-any.whl"):
        return 0
    return 1 if "x86_64" in file.filename and "linux" in file.filename else 2


def read_sources(fetcher: Fetcher, file: IndexFile, *, whole: bool = False) -> Sources:
    """Return the Python files of a wheel or sdist, a large wheel read `whole` too; raises Unavailable."""
    if not file.is_wheel:
        return _of_sdist(fetcher, file)
    if whole or (file.size or WHOLE + 1) <= WHOLE:
        return _of_small_wheel(fetcher, file)
    remote = RemoteZip(fetcher, file.url)
    return Sources(_python(remote.members), remote.read)


def _python(paths: Collection[str]) -> frozenset[str]:
    return frozenset(path for path in paths if path.endswith(".py"))


def _of_sdist(fetcher: Fetcher, file: IndexFile) -> Sources:
    members = read_sdist_members(fetcher, file.url, lambda name: name.endswith(".py"), lambda _: False)
    bodies = {name.partition("/")[2].removeprefix("src/"): body for name, body in members.items()}
    return Sources(bodies.keys(), bodies.__getitem__)


def _of_small_wheel(fetcher: Fetcher, file: IndexFile) -> Sources:
    try:
        archive = zipfile.ZipFile(io.BytesIO(fetcher.get(file.url, cap=64 << 20).body))
    except zipfile.BadZipFile as error:
        raise BadArchive(f"{file.filename}: {error}") from None
    return Sources(_python(archive.namelist()), archive.read)
