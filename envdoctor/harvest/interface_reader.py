"""Reads the interfaces of a library's releases from the index: whole small wheels, or chosen members.

    python -m envdoctor.harvest.interface_reader [LIBRARY]...

writes `matrices/releases/interfaces/<library>.json`.
"""

from __future__ import annotations

import fnmatch
import io
import json
import sys
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from envdoctor.errors import Unavailable
from envdoctor.fetch import Fetcher, FetchSettings
from envdoctor.files import replace_file
from envdoctor.harvest.index_pages import IndexFile, read_project_page
from envdoctor.harvest.interfaces import SCHEMA, Interface, encode, scan_interface
from envdoctor.harvest.remote_archive import RemoteZip, read_sdist_members
from envdoctor.matrix.load import find_folder

WHOLE = 4 << 20
"""Wheels up to this many bytes are read whole; of larger ones only the chosen members."""


@dataclass(frozen=True, slots=True)
class Library:
    """A library to scan: the oldest release that matters and the members read of large wheels."""

    name: str
    since: str
    members: tuple[str, ...] = ()
    minors: bool = False
    """Read only the first and the last release of each minor: interfaces do not change between them."""

    @property
    def root(self) -> str:
        """The name that is imported."""
        return {"ms-swift": "swift"}.get(self.name, self.name.replace("-", "_"))


LIBRARIES = (
    Library("trl", "0.4"),
    Library("peft", "0.2"),
    Library("accelerate", "0.12"),
    Library("huggingface-hub", "0.10"),
    Library("datasets", "2.0"),
    Library("tokenizers", "0.10", ("tokenizers/*.py",)),
    Library("sentence-transformers", "2.0"),
    Library("deepspeed", "0.5", minors=True),
    Library(
        "diffusers",
        "0.10",
        ("diffusers/__init__.py", "diffusers/utils/__init__.py", "diffusers/models/__init__.py"),
    ),
    Library(
        "transformers",
        "4.0",
        (
            "transformers/__init__.py",
            "transformers/*.py",
            "transformers/generation/*.py",
            "transformers/integrations/*.py",
            "transformers/utils/__init__.py",
            "transformers/utils/import_utils.py",
            "transformers/utils/generic.py",
            "transformers/models/llama/*.py",
            "transformers/models/qwen2/modeling_qwen2.py",
            "transformers/models/mistral/modeling_mistral.py",
            "transformers/models/bert/modeling_bert.py",
            "transformers/models/auto/*.py",
        ),
        minors=True,
    ),
    Library(
        "bitsandbytes",
        "0.35",
        (
            "bitsandbytes/__init__.py",
            "bitsandbytes/functional.py",
            "bitsandbytes/nn/*.py",
            "bitsandbytes/optim/__init__.py",
        ),
    ),
    Library(
        "torch",
        "1.12",
        (
            "torch/distributed/elastic/agent/server/*.py",
            "torch/distributed/algorithms/_checkpoint/*.py",
            "torch/utils/_pytree.py",
            "torch/utils/data/__init__.py",
            "torch/onnx/__init__.py",
            "torch/optim/lr_scheduler.py",
        ),
    ),
    Library("triton", "2.0", ("triton/__init__.py", "triton/language/__init__.py")),
    Library("torchvision", "0.13", ("torchvision/__init__.py", "torchvision/transforms/__init__.py")),
    Library(
        "vllm",
        "0.2",
        (
            "vllm/__init__.py",
            "vllm/sampling_params.py",
            "vllm/engine/arg_utils.py",
            "vllm/entrypoints/llm.py",
            "vllm/lora/request.py",
            "vllm/utils/__init__.py",
            "vllm/utils.py",
        ),
    ),
    Library("xformers", "0.0.16", ("xformers/ops/__init__.py", "xformers/ops/fmha/__init__.py")),
    Library("llamafactory", "0.7"),
    Library("ms-swift", "2.0", ("swift/__init__.py", "swift/llm/__init__.py", "swift/arguments/*.py")),
    Library("torchao", "0.1"),
    Library("pyarrow", "10.0", ("pyarrow/__init__.py",), minors=True),
    Library("liger-kernel", "0.1"),
)


def read_library(fetcher: Fetcher, index: str, library: Library) -> dict[str, Interface]:
    """Return the interface of each final release since `library.since`, oldest first.

    A release whose files cannot be read is left out; raises Unavailable when the index is.
    """
    page = read_project_page(fetcher, index, library.name)
    releases = page.releases() if page else {}
    wanted = [
        (v, best) for v, files in releases.items() if _counts(v, library) and (best := _best_file(files))
    ]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda item: _read_release(fetcher, item[1], library), wanted))
    return {version: interface for (version, _), interface in zip(wanted, found, strict=True) if interface}


def _counts(version: str, library: Library) -> bool:
    parsed = Version(version)
    early = parsed.is_prerelease and not Version(library.since).is_prerelease
    return not early and parsed >= Version(library.since)


def ends_of_minors(versions: Sequence[str]) -> list[str]:
    """Keep the first and the last version of each minor; `versions` are in order."""
    minors: dict[tuple[int, ...], list[str]] = {}
    for version in versions:
        minors.setdefault(Version(version).release[:2], []).append(version)
    return [version for found in minors.values() for version in dict.fromkeys((found[0], found[-1]))]


def _best_file(files: Sequence[IndexFile]) -> IndexFile | None:
    """Prefer a pure wheel, then a Linux one, then any wheel, then the source."""
    usable = [file for file in files if not file.yanked] or list(files)
    return min(usable, key=_rank, default=None)


def _rank(file: IndexFile) -> int:
    if not file.is_wheel:
        return 3
    if file.filename.endswith("-none-any.whl"):
        return 0
    return 1 if "x86_64" in file.filename and "linux" in file.filename else 2


def _read_release(fetcher: Fetcher, file: IndexFile, library: Library) -> Interface | None:
    try:
        return scan_interface(_read_files(fetcher, file, library), library.root)
    except (Unavailable, zipfile.BadZipFile):
        return None


def _read_files(fetcher: Fetcher, file: IndexFile, library: Library) -> dict[str, str | None]:
    if not file.is_wheel:
        members = read_sdist_members(fetcher, file.url, lambda name: name.endswith(".py"), lambda _: False)
        return {_without_root(name): _decoded(body) for name, body in members.items()}
    if not library.members or (file.size or WHOLE + 1) <= WHOLE:
        archive = zipfile.ZipFile(io.BytesIO(fetcher.get(file.url, cap=64 << 20).body))
        return {
            name: _decoded(archive.read(name)) if _chosen(name, library) else None
            for name in archive.namelist()
            if name.endswith(".py")
        }
    remote = RemoteZip(fetcher, file.url)
    return {
        name: _decoded(remote.read(name)) if _chosen(name, library) else None
        for name in remote.members
        if name.endswith(".py")
    }


def _chosen(name: str, library: Library) -> bool:
    if not library.members:
        return True
    return any(fnmatch.fnmatchcase(name, p) and name.count("/") == p.count("/") for p in library.members)


def _without_root(name: str) -> str:
    return name.partition("/")[2].removeprefix("src/")


def _decoded(body: bytes) -> str:
    return body.decode("utf-8", "replace")


def main(names: Sequence[str]) -> None:
    """Scan the named libraries (all when none is named) and write their generated files."""
    from envdoctor.harvest.index_settings import read_index_settings

    settings = read_index_settings()
    folder = find_folder() / "releases" / "interfaces"
    folder.mkdir(parents=True, exist_ok=True)
    with Fetcher(FetchSettings(certificates=settings.certificates, proxy=settings.proxy)) as fetcher:
        for library in LIBRARIES:
            if not names or library.name in names:
                _write(fetcher, settings.url, library, folder)


def _write(fetcher: Fetcher, index: str, library: Library, folder: Path) -> None:
    data = {
        "schema": SCHEMA,
        "library": library.name,
        "made_by": "python -m envdoctor.harvest.interface_reader",
        **encode(read_library(fetcher, index, library), {}),
    }
    text = json.dumps(data, separators=(",", ":"), sort_keys=True) + "\n"
    replace_file(folder / f"{library.name}.json", text)


if __name__ == "__main__":
    main(sys.argv[1:])
