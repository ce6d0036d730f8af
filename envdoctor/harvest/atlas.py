"""Reads the messages out of libraries' releases and files them by their words.

    python -m envdoctor.harvest.atlas [LIBRARY]... [--without LIBRARY==RELEASE]...

writes `matrices/releases/atlas.bin`. What was read of a release is kept in the user's cache, so that an
interrupted run goes on where it stopped; the same releases give the same bytes. What another reader told of
a release is read again. Where libraries are named, the others stay as they are filed. Where a release cannot
be read, nothing is written (exit code 3) unless `--without` leaves it out.
"""

from __future__ import annotations

import io
import json
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from packaging.version import Version

from envdoctor.errors import Unavailable
from envdoctor.fact_files import find_folder
from envdoctor.fetch import Fetcher, FetchSettings
from envdoctor.files import replace_file
from envdoctor.harvest import compiled, messages
from envdoctor.harvest.compiled import BINARIES, Binaries, read_binaries
from envdoctor.harvest.index_pages import IndexFile, read_releases
from envdoctor.harvest.interface_reader import digest_of
from envdoctor.harvest.messages import Message, scan_messages
from envdoctor.harvest.remote_archive import RemoteZip, naming, read_sdist_members
from envdoctor.harvest.unread import Releases, parse_asked, refuse, run_writer
from envdoctor.matrix.atlas import COUNTS, FILE_NAME, MAGIC, Atlas, key_of, load_atlas
from envdoctor.matrix.interface_ranges import spans_of

WHOLE = 40 << 20
"""Wheels up to this many bytes are read whole; of larger ones the Python files alone."""
BLOCK = 32
"""Entries of a block: few, for a block is unpacked for one entry."""
SAMPLED = 300
DICTIONARY = 32 << 10
"""Bytes that all blocks are packed with: of about as many entries as are sampled, from all libraries."""
_LEFT_OUT = ("/tests/", "/test/", "/testing/", "/examples/", "/benchmarks/", "/_vendor/", "/convert_")


@dataclass(frozen=True, slots=True)
class Source:
    """A library whose messages are read: from which release on, and the top folders of its files."""

    name: str
    since: str
    roots: tuple[str, ...] = ()
    parts: int = 2
    """Releases that share so many numbers count as one, and the last of them is read."""

    def wants(self, path: str) -> bool:
        """True for a file whose messages a user may meet."""
        roots = self.roots or (self.name.replace("-", "_"),)
        inside = path.startswith(tuple(f"{root}/" for root in roots))
        return inside and path.endswith(".py") and not any(part in f"/{path}" for part in _LEFT_OUT)


Files = dict[str, list[list[str]]]
"""Messages of a release by file: template, kind, function, guard."""

SOURCES = (
    Source("transformers", "4.28"),
    Source("tokenizers", "0.13"),
    Source("huggingface-hub", "0.14"),
    Source("safetensors", "0.3", parts=3),
    Source("accelerate", "0.18"),
    Source("peft", "0.3"),
    Source("trl", "0.4"),
    Source("datasets", "2.11"),
    Source("bitsandbytes", "0.38"),
    Source("deepspeed", "0.9"),
    Source("flash-attn", "2.0", ("flash_attn",)),
    Source("xformers", "0.0.20", parts=3),
    Source("triton", "2.0"),
    Source("vllm", "0.2"),
    Source("sglang", "0.3", parts=3),
    Source("llamafactory", "0.7", parts=3),
    Source("ms-swift", "2.0", ("swift",)),
    Source("axolotl", "0.4"),
    Source("unsloth", "2024.8"),
    Source("unsloth-zoo", "2024.9", ("unsloth_zoo",)),
    Source("optimum", "1.8"),
    Source("auto-gptq", "0.3", ("auto_gptq",)),
    Source("gptqmodel", "1.0"),
    Source("autoawq", "0.1", ("awq",)),
    Source("compressed-tensors", "0.5"),
    Source("liger-kernel", "0.3", ("liger_kernel",)),
    Source("torchao", "0.3"),
    Source("diffusers", "0.16"),
    Source("sentence-transformers", "2.2"),
    Source("gradio", "3.28"),
    Source("lightning", "2.0", ("lightning",)),
    Source("ray", "2.5"),
    Source("kernels", "0.1"),
    Source("mistral-common", "1.3", ("mistral_common",)),
    Source("lm-eval", "0.4", ("lm_eval",)),
    Source("timm", "0.9"),
    Source("evaluate", "0.4"),
    Source("xgrammar", "0.1"),
    Source("openai", "1.0"),
    Source("torch", "2.0"),
    Source("torchvision", "0.15"),
    Source("numpy", "1.24"),
    Source("protobuf", "3.20", ("google/protobuf",)),
    Source("pyarrow", "12.0"),
    Source("pydantic", "1.10"),
    Source("packaging", "21.3"),
)
"""The libraries whose lines stand in most reports of this field."""


@dataclass(frozen=True, slots=True)
class Harvest:
    """Reads libraries' releases from one index, keeps them in `cache`, and tells which could not be read."""

    fetcher: Fetcher
    index: str
    cache: Path
    without: Releases = frozenset()
    unread: list[str] = field(default_factory=list)

    def read_source(self, source: Source) -> dict[str, Files]:
        """Return the messages of the last release of each minor, by release and file; raises Unavailable."""
        releases = self._releases(source)
        chosen = chosen_of(releases, source.parts)
        read = partial(_messages_of, self.fetcher, source)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda v: self._kept(source.name, v, releases[v], read), chosen))
        return {version: files for version, files in zip(chosen, found, strict=True) if files}

    def read_compiled(self, source: Binaries) -> dict[str, Files]:
        """Return the messages of compiled libraries, the last release of each minor; raises Unavailable."""
        releases = self._releases(source)
        read, name = partial(_binaries_of, self.fetcher, source), f"{source.name}-compiled"
        return {v: files for v in chosen_of(releases) if (files := self._kept(name, v, releases[v], read))}

    def _releases(self, source: Source | Binaries) -> dict[str, tuple[IndexFile, ...]]:
        return {
            version: files
            for version, files in read_releases(self.fetcher, self.index, source.name).items()
            if _counts(version, source.since) and (source.name, version) not in self.without
        }

    def _kept(
        self,
        name: str,
        version: str,
        files: Sequence[IndexFile],
        read: Callable[[Sequence[IndexFile]], Files],
    ) -> Files:
        """Return a release's messages by file as they were kept, else read and keep them."""
        kept = self.cache / name / f"{version}.json"
        try:
            known: Files = json.loads(kept.read_bytes())
            return known
        except (OSError, ValueError):
            pass
        try:
            found = read(files)
        except Unavailable as error:
            self.unread.append(f"{name} {version} ({error})")
            return {}
        kept.parent.mkdir(parents=True, exist_ok=True)
        replace_file(kept, json.dumps(found, separators=(",", ":")))
        return found


def read_release(fetcher: Fetcher, index: str, source: Source, version: str) -> Files:
    """Return the messages of one release by file, read anew; raises Unavailable."""
    return _messages_of(fetcher, source, read_releases(fetcher, index, source.name).get(version, ()))


def _counts(version: str, since: str) -> bool:
    parsed = Version(version)
    return not parsed.is_prerelease and parsed >= Version(since)


def chosen_of(versions: Iterable[str], parts: int = 2) -> list[str]:
    """Keep the last release of each minor (of each that shares its first `parts` numbers), in order."""
    last: dict[tuple[int, ...], str] = {}
    for version in sorted(versions, key=Version):
        last[Version(version).release[:parts]] = version
    return list(last.values())


def _messages_of(fetcher: Fetcher, source: Source, files: Sequence[IndexFile]) -> Files:
    return {path: told for path, body in _python_files(fetcher, source, files) if (told := _messages(body))}


@lru_cache(maxsize=8192)
def _messages(body: bytes) -> list[list[str]]:
    """Return the messages of one file; most files are the same in the next release."""
    return [_row(message) for message in scan_messages(body.decode("utf-8", "replace"))]


def _binaries_of(fetcher: Fetcher, source: Binaries, files: Sequence[IndexFile]) -> Files:
    return {name: [_row(m) for m in told] for name, told in read_binaries(fetcher, source, files) if told}


def _row(message: Message) -> list[str]:
    return [message.template, message.kind, message.function, message.guard]


def _python_files(
    fetcher: Fetcher, source: Source, files: Sequence[IndexFile]
) -> Iterator[tuple[str, bytes]]:
    file = _best_file(files)
    if file is None:
        return
    with naming(file.filename):
        if not file.is_wheel:
            members = read_sdist_members(
                fetcher, file.url, lambda n: source.wants(_inside(n)), lambda _: False
            )
            yield from ((_inside(name), body) for name, body in members.items())
        elif (file.size or WHOLE + 1) <= WHOLE:
            archive = zipfile.ZipFile(io.BytesIO(fetcher.get(file.url, cap=WHOLE * 2).body))
            yield from ((n, archive.read(n)) for n in archive.namelist() if source.wants(n))
        else:
            remote = RemoteZip(fetcher, file.url)
            yield from remote.read_many([name for name in remote.members if source.wants(name)])


def _best_file(files: Sequence[IndexFile]) -> IndexFile | None:
    """Prefer a wheel that is read whole, a pure one first, then the source, then a large wheel for Linux."""
    usable = [f for f in files if not f.yanked] or list(files)
    small = [f for f in usable if f.is_wheel and (f.size or WHOLE + 1) <= WHOLE]
    if small:
        return min(small, key=lambda f: (not f.filename.endswith("none-any.whl"), "linux" not in f.filename))
    sdists = [f for f in usable if not f.is_wheel and (f.size or WHOLE + 1) <= WHOLE]
    wheels = [f for f in usable if f.is_wheel and "linux" in f.filename and "x86_64" in f.filename]
    return next(iter([*sdists[:1], *wheels[-1:]]), None)


def _inside(name: str) -> str:
    """Return a path of an sdist without the sdist's folder and `src`."""
    return name.partition("/")[2].removeprefix("src/").removeprefix("python/")


def encode_atlas(
    found: Mapping[str, Mapping[str, Mapping[str, Sequence[Sequence[str]]]]], kept: Atlas | None = None
) -> bytes:
    """Return the atlas of messages by library, release and file; libraries not found are as they are `kept`.

    The entries of one file lie together, where they pack best; the index is in the order of the keys.
    """
    former = dict(kept.libraries) if kept else {}
    names = sorted({*found, *former})
    libraries = [(n, sorted(found[n], key=Version) if n in found else former[n]) for n in names]
    read = (
        entry
        for number, (name, versions) in enumerate(libraries)
        for entry in (_entries(found[name], versions, number) if name in found else ())
        if key_of(entry[0]) is not None
    )
    known = list(former)
    others = (
        [template, names.index(known[number]), *rest]
        for template, number, *rest in (kept.entries() if kept else ())
        if known[number] not in found
    )
    entries = sorted((*read, *others), key=lambda entry: (entry[1], entry[3], entry[4], entry[0], entry[2]))
    return _packed(libraries, entries)


def _packed(libraries: Sequence[tuple[str, Sequence[str]]], entries: Sequence[Sequence[Any]]) -> bytes:
    lines = [json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() for entry in entries]
    dictionary = b"".join(lines[:: max(1, len(lines) // SAMPLED)])[-DICTIONARY:]
    dictionary += b" " * (-len(dictionary) % 4)
    packed = []
    for start in range(0, len(lines), BLOCK):
        packer = zlib.compressobj(9, memLevel=9, zdict=dictionary)
        packed.append(packer.compress(b"\n".join(lines[start : start + BLOCK])) + packer.flush())
    starts = (0, *accumulate(map(len, packed)))
    placed = sorted((key_of(e[0]), ((i // BLOCK) << 8) | (i % BLOCK)) for i, e in enumerate(entries))
    head = zlib.compress(json.dumps(libraries).encode(), 9)
    index = b"".join(struct.pack(f"<{len(part)}I", *part) for part in (*zip(*placed, strict=True), starts))
    padding = b" " * (-(len(MAGIC) + COUNTS.size + len(head)) % 4)
    counts = COUNTS.pack(len(head) + len(padding), len(dictionary), len(entries), len(packed))
    return b"".join([MAGIC, counts, head, padding, dictionary, index, *packed])


def _entries(
    releases: Mapping[str, Mapping[str, Sequence[Sequence[str]]]], versions: Sequence[str], library: int
) -> Iterator[list[Any]]:
    """Yield one entry a template: where it stands, under what, and the releases' ranges."""
    seen: dict[tuple[str, str, str], tuple[list[int], str, str]] = {}
    for position, version in enumerate(versions):
        for file, rows in releases[version].items():
            for template, kind, function, guard in rows:
                places, _, _ = seen.get((template, kind, function), ([], "", ""))
                if not places or places[-1] != position:
                    places.append(position)
                seen[template, kind, function] = (places, file, guard)
    merged: dict[tuple[str, str], tuple[list[int], str, str, str]] = {}
    for (template, kind, function), (places, file, guard) in seen.items():
        key = (template, kind)
        if key in merged:
            both = sorted({*merged[key][0], *places})
            merged[key] = (both, *merged[key][1:])
        else:
            merged[key] = (places, file, function, guard)
    for (template, kind), (places, file, function, guard) in merged.items():
        yield [template, library, kind, file, function, guard, spans_of(places)]


def main(arguments: Sequence[str]) -> None:
    """File the messages of the named libraries (all when none is named); raises Unavailable, InputError."""
    from platformdirs import user_cache_path

    from envdoctor.harvest.index_settings import read_index_settings

    known = [source.name for source in SOURCES] + [name for b in BINARIES for name in (b.library, b.name)]
    asked = parse_asked(arguments, known, "envdoctor.harvest.atlas")
    settings = read_index_settings()
    cache = user_cache_path("envdoctor") / "atlas" / digest_of(messages, compiled)
    found: dict[str, dict[str, Files]] = {}
    with Fetcher(FetchSettings(certificates=settings.certificates, proxy=settings.proxy)) as fetcher:
        harvest = Harvest(fetcher, settings.url, cache, asked.without)
        for source in (one for one in SOURCES if asked.wants(one.name)):
            found[source.name] = harvest.read_source(source)
            sys.stderr.write(f"{source.name}: {len(found[source.name])} releases\n")
        for binaries in (one for one in BINARIES if asked.wants(one.library)):
            for version, files in harvest.read_compiled(binaries).items():
                found.setdefault(binaries.library, {}).setdefault(version, {}).update(files)
                sys.stderr.write(f"{binaries.name} {version}: {len(files)} binaries\n")
    refuse(harvest.unread, FILE_NAME)
    kept = load_atlas(find_folder()) if asked.libraries else None
    whole = encode_atlas({n: f for n, f in found.items() if f}, kept)
    replace_file(Path(find_folder(), "releases", FILE_NAME), whole)


if __name__ == "__main__":
    sys.exit(run_writer(main))
