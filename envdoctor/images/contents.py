"""What a judgement needs of an image's layers: names and small files, laid over one another in order.

A layer hides what lower ones hold by `.wh.NAME`, and a folder's all by `.wh..wh..opq`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from envdoctor import lazy_re as re
from envdoctor.errors import InputError
from envdoctor.images.archive import Saved, open_layer
from envdoctor.images.tar import Broken, Member, members

MAX_KEPT = 400_000
MAX_TEXT = 64 << 20
"""Bytes of small files that are held in all."""
MAX_BESIDE = 4
"""Layers that are read side by side at most."""
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_CONTENTS = re.compile(
    r"(?:.*/)?(?:site|dist)-packages/(?:[^/]+\.dist-info/(?:METADATA|direct_url\.json|INSTALLER)"
    r"|[^/]+\.egg-info(?:/PKG-INFO)?|torch(?:vision|audio)?/version\.py|xformers/cpp_lib\.json)"
    r"|(?:etc|usr/lib)/os-release|(?:.*/)?pyvenv\.cfg|(?:.*/)?cuda[\w.-]*/version\.(?:json|txt)"
    r"|var/lib/dpkg/status"
)
_NAMES = re.compile(
    r"(?:.*/)?bin/(?:python3?(?:\.\d+)?|nvcc)|(?:.*/)?conda-meta/[^/]+\.json"
    r"|(?:.*/)?(?:site|dist)-packages/(?:bitsandbytes/libbitsandbytes_\w+\.so|flash_attn_2_cuda[^/]*\.so)"
)
_LIMITS = {"METADATA": 1 << 16, "status": 16 << 20}
"""Bytes that are read of a file of that name; of others 64 KiB."""


@dataclass
class Tree:
    """The kept part of a file system: small files by path, other names with the target of a link."""

    texts: dict[str, bytes] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    """Links to folders or files, by path."""
    problems: list[str] = field(default_factory=list)

    def real(self, path: str) -> str:
        """Return a path with the links in it followed, as far as they are known."""
        for _ in range(40):
            parts = path.split("/")
            place = next((i for i in range(1, len(parts) + 1) if "/".join(parts[:i]) in self.links), None)
            if place is None:
                return path
            head = "/".join(parts[:place])
            path = joined(head, self.links[head], parts[place:])
        return path

    def overlay(self, upper: Tree, hidden: set[str], emptied: set[str]) -> None:
        """Lay a layer over this one."""
        for kept in (self.texts, self.names, self.links) if hidden or emptied else ():
            for path in [path for path in kept if _is_hidden(path, hidden, emptied)]:
                del kept[path]
        for path in (*upper.texts, *upper.names):
            self.links.pop(path, None)
        self.texts.update(upper.texts)
        self.names.update(upper.names)
        self.links.update(upper.links)
        self.problems.extend(upper.problems)


def joined(path: str, target: str, rest: list[str]) -> str:
    """Return where a link at `path` leads, from the root, without `.` and `..`."""
    found: list[str] = [] if target.startswith("/") else path.split("/")[:-1]
    for part in (*target.split("/"), *rest):
        if part == "..":
            found = found[:-1]
        elif part not in ("", "."):
            found.append(part)
    return "/".join(found)


def _is_hidden(path: str, hidden: set[str], emptied: set[str]) -> bool:
    end = len(path)
    if path in hidden:
        return True
    while (end := path.rfind("/", 0, end)) > 0:
        if path[:end] in hidden or path[:end] in emptied:
            return True
    return False


def read_tree(opened: Callable[[], BinaryIO], saved: Saved, name: str) -> Tree:
    """Return the kept part of all layers; raises InputError for a layer that is broken or a bomb.

    Layers are read side by side, the largest first, each by a file that `opened` gives: unpacking takes most
    of the time, and needs no interpreter.
    """
    from concurrent.futures import ThreadPoolExecutor

    budget = _Budget()
    order = sorted(range(len(saved.layers)), key=lambda number: -saved.layers[number][1].size)
    with ThreadPoolExecutor(max(1, min(MAX_BESIDE, os.cpu_count() or 1, len(order)))) as pool:
        running = {number: pool.submit(_read_layer, opened, saved, number, budget) for number in order}
    tree = Tree()
    for number in range(len(order)):
        try:
            layer = running[number].result()
        except Broken as error:
            raise InputError(
                f"{name}: layer {number + 1} ({saved.layers[number][0][:80]}): {error}"
            ) from None
        if layer is not None:
            tree.overlay(layer.upper, layer.hidden, layer.emptied)
    return tree


@dataclass
class _Layer:
    """What one layer holds, and what of lower ones it hides."""

    upper: Tree = field(default_factory=Tree)
    hidden: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)


class _Budget:
    """What all layers may hold together; over once one of them is broken."""

    def __init__(self) -> None:
        self.over = False
        self._texts = self._kept = 0

    def take(self, texts: int, kept: int) -> None:
        """Count bytes and names that are held; raises Broken beyond the limits."""
        self._texts += texts
        self._kept += kept
        if self._texts > MAX_TEXT or self._kept > MAX_KEPT:
            raise Broken("it holds more packages than an image can")


def _read_layer(opened: Callable[[], BinaryIO], saved: Saved, number: int, budget: _Budget) -> _Layer | None:
    """Return what a layer holds; None once another layer is broken."""
    found = _Layer()
    try:
        with opened() as stream:
            for member in members(open_layer(stream, saved.layers[number][1])):
                if budget.over:
                    return None
                held = _keep(member, found.upper, found.hidden, found.emptied)
                if held is not None:
                    budget.take(held, 1)
    except Broken as error:
        if "backports.zstd" not in str(error):
            budget.over = True
            raise
        found.upper.problems.append(f"layer {number + 1} is not read: {error}")
    except BaseException:
        budget.over = True
        raise
    return found


def _keep(member: Member, upper: Tree, hidden: set[str], emptied: set[str]) -> int | None:
    """Keep what is wanted of a member; return how many bytes are held of it, None where nothing is."""
    path = member.path
    folder, _, name = path.rpartition("/")
    if name.startswith(_WHITEOUT):
        if name == _OPAQUE:
            emptied.add(folder)
        else:
            hidden.add(f"{folder}/{name[4:]}" if folder else name[4:])
        return 0
    if member.kind == "link" and (path.count("/") < 4 or _NAMES.fullmatch(path)):
        upper.links[path] = member.target[:4096]
        return 0
    if member.kind in ("file", "hard") and _CONTENTS.fullmatch(path):
        data = member.read(_LIMITS.get(name, 1 << 16))
        upper.texts[path] = data
        return len(data)
    if member.kind in ("file", "hard") and _NAMES.fullmatch(path):
        upper.names[path] = ""
        return 0
    return None


def sites(tree: Tree) -> Iterator[str]:
    """Yield the folders of packages that something is installed in, each once."""
    seen = set()
    for path in tree.texts:
        match = re.match(r"((?:.*/)?(?:site|dist)-packages)/", path)
        if match and match[1] not in seen:
            seen.add(match[1])
            yield match[1]
