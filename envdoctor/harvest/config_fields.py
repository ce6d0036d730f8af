"""Reads which keys the settings classes of each framework's releases have, from the index.

    python -m envdoctor.harvest.config_fields [FRAMEWORK]...

writes `matrices/releases/fields/<framework>.json`: the releases read, and for each key the ranges of them,
as positions in that list, whose dataclasses or pydantic classes declare it.
"""

from __future__ import annotations

import ast
import fnmatch
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from envdoctor.errors import Unavailable
from envdoctor.fetch import Fetcher, FetchSettings
from envdoctor.files import replace_file
from envdoctor.harvest.index_pages import IndexFile, read_project_page
from envdoctor.harvest.interface_reader import ends_of_minors
from envdoctor.harvest.remote_archive import RemoteZip, read_sdist_members
from envdoctor.matrix.load import find_folder

SCHEMA = "envdoctor.fields/1"


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework whose settings are classes: its distribution, the oldest release, and their files."""

    name: str
    since: str
    members: tuple[str, ...]
    classes: tuple[str, ...] = ("*",)

    def wants(self, path: str) -> bool:
        """True for a file that declares settings."""
        return any(fnmatch.fnmatchcase(path, pattern) for pattern in self.members)


FRAMEWORKS = (
    Framework("transformers", "4.36", ("transformers/training_args*.py",), ("TrainingArguments", "Seq2Seq*")),
    Framework(
        "trl",
        "0.8",
        (
            "trl/trainer/sft_config.py",
            "trl/trainer/grpo_config.py",
            "trl/trainer/base_config.py",
            "trl/trainer/model_config.py",
            "trl/scripts/utils.py",
        ),
        ("SFTConfig", "GRPOConfig", "*BaseConfig", "ModelConfig", "ScriptArguments", "DatasetMixtureConfig"),
    ),
    Framework("llamafactory", "0.7", ("llamafactory/hparams/*.py",), ("*Arguments",)),
    Framework(
        "ms-swift",
        "3.0",
        ("swift/arguments/*.py", "swift/llm/argument/*.py", "swift/*arguments.py", "swift/*args_mixin.py"),
        ("*Arguments", "*Args", "*Mixin"),
    ),
    Framework(
        "axolotl",
        "0.4",
        ("axolotl/utils/schemas/*.py", "axolotl/utils/config/models/*.py", "axolotl/integrations/*args.py"),
    ),
    Framework(
        "accelerate", "0.20", ("accelerate/commands/config/config_args.py", "accelerate/utils/dataclasses.py")
    ),
    Framework(
        "deepspeed",
        "0.12",
        ("deepspeed/runtime/zero/*config.py", "deepspeed/runtime/constants.py", "deepspeed/*constants.py"),
        ("*", "CONFIG_KEYS"),
    ),
    Framework(
        "vllm",
        "0.4",
        ("vllm/engine/arg_utils.py", "vllm/entrypoints/*cli_args.py"),
        ("EngineArgs", "AsyncEngineArgs", "*FrontendArgs"),
    ),
)


def fields_of(source: str, classes: Sequence[str]) -> Iterator[str]:
    """Yield the keys that a module's classes declare; with `CONFIG_KEYS`, those its constants name too."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any(fnmatch.fnmatchcase(node.name, c) for c in classes):
            yield from _declared(node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            named = isinstance(node.value.value, str) and node.value.value.isidentifier()
            if names and names[0].isupper() and "CONFIG_KEYS" in classes and named:
                yield str(node.value.value)


def _declared(node: ast.ClassDef) -> Iterator[str]:
    for item in node.body:
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        if not item.target.id.startswith("_"):
            yield item.target.id
            yield from _alias(item.value)


def _alias(value: ast.expr | None) -> Iterator[str]:
    """The second name of a pydantic field."""
    if isinstance(value, ast.Call):
        for keyword in value.keywords:
            if keyword.arg in ("alias", "validation_alias") and isinstance(keyword.value, ast.Constant):
                yield str(keyword.value.value)


def encode_fields(found: Mapping[str, Iterable[str]]) -> dict[str, object]:
    """Return releases in order and, for each key, the ranges `[first, last]` of positions that have it."""
    versions = sorted(found, key=Version)
    present: dict[str, list[list[int]]] = {}
    for position, version in enumerate(versions):
        for name in sorted(set(found[version])):
            ranges = present.setdefault(name, [])
            if ranges and ranges[-1][1] == position - 1:
                ranges[-1][1] = position
            else:
                ranges.append([position, position])
    return {"versions": versions, "fields": present}


def read_framework(fetcher: Fetcher, index: str, framework: Framework) -> dict[str, set[str]]:
    """Return the keys of the first and last release of each minor version; raises Unavailable."""
    page = read_project_page(fetcher, index, framework.name)
    releases = page.releases() if page else {}
    wanted = [v for v in releases if not Version(v).is_prerelease and Version(v) >= Version(framework.since)]
    chosen = ends_of_minors(sorted(wanted, key=Version))
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda v: _read_release(fetcher, releases[v], framework), chosen))
    return {version: keys for version, keys in zip(chosen, found, strict=True) if keys}


def _read_release(fetcher: Fetcher, files: Sequence[IndexFile], framework: Framework) -> set[str]:
    usable = [f for f in files if not f.yanked] or list(files)
    file = min(usable, key=lambda f: (not f.is_wheel, "x86_64" not in f.filename, f.filename))
    try:
        sources = _sources(fetcher, file, framework)
    except Unavailable:
        return set()
    return {key for source in sources for key in fields_of(source, framework.classes)}


def _sources(fetcher: Fetcher, file: IndexFile, framework: Framework) -> list[str]:
    if not file.is_wheel:
        members = read_sdist_members(
            fetcher,
            file.url,
            lambda name: framework.wants(name.partition("/")[2].removeprefix("src/")),
            lambda _: False,
        )
        return [body.decode("utf-8", "replace") for body in members.values()]
    remote = RemoteZip(fetcher, file.url)
    return [remote.read(name).decode("utf-8", "replace") for name in remote.members if framework.wants(name)]


def main(names: Sequence[str]) -> None:
    """Read the named frameworks (all when none is named) and write their generated files."""
    from envdoctor.harvest.index_settings import read_index_settings

    settings = read_index_settings()
    folder = find_folder() / "releases" / "fields"
    folder.mkdir(parents=True, exist_ok=True)
    with Fetcher(FetchSettings(certificates=settings.certificates, proxy=settings.proxy)) as fetcher:
        for framework in FRAMEWORKS:
            if not names or framework.name in names:
                _write(read_framework(fetcher, settings.url, framework), framework.name, folder)


def _write(found: Mapping[str, Iterable[str]], name: str, folder: Path) -> None:
    data = {"schema": SCHEMA, "framework": name, "made_by": "python -m envdoctor.harvest.config_fields"}
    text = json.dumps({**data, **encode_fields(found)}, separators=(",", ":"), sort_keys=True) + "\n"
    replace_file(folder / f"{name}.json", text)


if __name__ == "__main__":
    main(sys.argv[1:])
