"""Files of training and serving settings: which framework each is written for, by its keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envdoctor.facts import Setting
from envdoctor.matrix import tables
from envdoctor.matrix.lexicon import Frameworks
from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class KeyFile:
    """The settings of one file and the framework that it is written for."""

    framework: tables.FrameworkRow
    settings: tuple[Setting, ...]


def key_files(settings: Iterable[Setting], frameworks: Frameworks) -> Iterator[KeyFile]:
    """Yield the files among the settings whose framework their keys give away."""
    by_file: dict[str, list[Setting]] = {}
    for setting in settings:
        if setting.native_key:
            by_file.setdefault(setting.source.rpartition(": ")[0], []).append(setting)
    for found in by_file.values():
        whole = any(setting.key.startswith("other.") for setting in found)
        own = [leaf(setting) for setting in found if not _is_handed_on(setting, frameworks)]
        if whole and (framework := _framework_of(own, frameworks)):
            yield KeyFile(frameworks[framework], tuple({s.native_key: s for s in found}.values()))


def _is_handed_on(setting: Setting, frameworks: Frameworks) -> bool:
    """True in a section that is named for another program, to which the file's own hands it on."""
    section, _, key = path_of(setting).partition(".")
    return bool(key and section in frameworks and frameworks[section].signature)


def _framework_of(keys: Iterable[str], frameworks: Frameworks) -> str | None:
    """Return the framework that most of its own keys name; None below two."""
    present = set(keys)
    counts = {name: len(present.intersection(row.signature)) for name, row in frameworks.items()}
    for group in (
        [name for name in counts if name != "transformers"],
        ["transformers"],
    ):  # others inherit its keys
        best = max(group, key=lambda name: counts[name])
        if counts[best] >= 2:
            return best
    return None


def leaf(setting: Setting) -> str:
    """Return the last part of a native key as Python spells it."""
    return path_of(setting).rpartition(".")[2]


def path_of(setting: Setting) -> str:
    """Return a native key with its sections as Python spells them."""
    return (setting.native_key or "").lower().replace("-", "_")
