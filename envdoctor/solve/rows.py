"""The matrix for the solver: rows about distributions and the target become sets that exclude each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from functools import cache
from typing import Any

from envdoctor.facts import CudaVersion
from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.tables.conditions import ConditionRow
from envdoctor.solve.nodes import TORCH, Context, Node
from envdoctor.solve.problem import Literal, Nogood
from envdoctor.solve.variants import Build, cuda_of_label, followers
from envdoctor.solve.versions import InvalidSpecifier, satisfies, spec_mask

BITSANDBYTES = "bitsandbytes"
BINARIES = "BNB-BINARY-MISSING"
OF_TARGET = frozenset({"os", "arch", "python", "glibc", "driver"})
"""The keys of a row's conditions that ask about the target; all others without a dot are packages."""
FOLLOWER = "TORCH-FOLLOWER-"
TOOLKIT, BINDINGS = "cuda-toolkit", "cuda-bindings"
OTHER_TOOLKIT = "TORCH-OTHER-TOOLKIT"


def nogoods(context: Context, names: Set[str]) -> list[Nogood]:
    """Return what the matrix forbids among the packages `names` on the context's target."""
    among = frozenset(names)
    known = context.forbidden.get(among)
    if known is None:
        told = (
            _of_condition(context, row, among) for row, asked in _forbidding(context.matrix) if asked <= among
        )
        known = context.forbidden[among] = [nogood for nogood in told if nogood is not None]
        known += _of_pairs(context, among)
        known += _of_followers(context, among)
        known += _of_binaries(context, among)
        known += _of_toolkits(context, among)
    return known


@cache
def _forbidding(matrix: Matrix) -> list[tuple[ConditionRow, frozenset[str]]]:
    """Return the rows that forbid what is solved for, with the packages without which each is idle."""
    rows = [row for row in matrix.standing if row.solve and not row.needed and row.severity == "error"]
    asked = ([k for k, text in row.when.items() if text != "absent" and _is_package(k)] for row in rows)
    return [(row, frozenset(names)) for row, names in zip(rows, asked, strict=True)]


def _of_condition(context: Context, row: ConditionRow, names: Collection[str]) -> Nogood | None:
    if row.id in context.options.waived_rows:
        return None
    literals: list[Literal] = []
    for inside, conditions in ((True, row.when), (False, row.unless)):
        for key, text in conditions.items():
            asked = (key, text, inside, key.partition(".")[0] in names)
            if asked not in context.literals:
                context.literals[asked] = _literal(context, key, text, inside, names)
            literal = context.literals[asked]
            if literal is None:
                return None
            if isinstance(literal, Literal):
                literals.append(literal)
    return Nogood(tuple(literals), row.id) if any(one.inside for one in literals) else None


def _is_package(key: str) -> bool:
    return "." not in key and key not in OF_TARGET


def _literal(
    context: Context, key: str, text: str, inside: bool, names: Collection[str]
) -> Literal | bool | None:
    """Return a condition as a literal; True when it always holds; None when it cannot be met or told."""
    if key == "torch.cuda":
        node = context.node(TORCH) if TORCH in names else None
        return Literal(TORCH, _cuda_mask(node, text), inside) if node else None
    answer = _target_answer(context, key, text)
    if answer is not None or "." in key:
        return True if answer is inside else None
    if context.is_there(key):
        return None
    node = context.node(key) if key in names else None
    if node is None:
        return True if (text == "absent") is inside else None
    if text == "absent":
        return Literal(key, node.all, not inside)
    mask = version_mask(node, text)
    return None if mask is None else Literal(key, mask, inside)


def version_mask(node: Node, text: str) -> int | None:
    """Return the candidates that a row's specifier (`*` for any) means; None when it cannot be read."""
    if text not in node.told:
        try:
            told = node.all if text == "*" else node.expand(spec_mask(text, node.package.versions))
        except InvalidSpecifier:
            told = None
        node.told[text] = told
    return node.told[text]


def _target_answer(context: Context, key: str, text: str) -> bool | None:
    """Decide a condition on the target; None when the target does not tell."""
    target = context.target
    if key == "gpu.cc":
        if not target.judged_cards:
            return None
        return any(satisfies(str(card.capability), text) for card in target.judged_cards)
    if key == "os":
        return target.platform.os in text.split("|")
    if key == "arch":
        return target.platform.arch in text.split("|")
    versions = {
        "python": ".".join(map(str, target.python)),
        "glibc": ".".join(map(str, target.platform.libc_version))
        if target.platform.libc == "glibc"
        else None,
        "driver": str(target.driver) if target.driver else None,
    }
    told = versions.get(key)
    return satisfies(told, text) if told else None


def _cuda_mask(node: Node, text: str) -> int:
    return _builds_where(
        node, lambda build: bool(build.cuda) and (text == "*" or satisfies(str(build.cuda), text))
    )


def _builds_where(node: Node, test: Any) -> int:
    return sum(1 << bit for bit, build in enumerate(node.builds or ()) if test(build))


def _of_pairs(context: Context, names: Collection[str]) -> Iterator[Nogood]:
    torch = context.node(TORCH) if TORCH in names else None
    if torch is None:
        return
    for row in context.matrix.rows(tables.TorchPairRow):
        node = context.node(row.package) if row.package in names else None
        if node is None or row.soft:
            continue
        versions, fitting = version_mask(node, row.versions), version_mask(torch, row.torch)
        if versions and fitting is not None:
            yield Nogood((Literal(node.name, versions), Literal(TORCH, torch.all & ~fitting)), row.id)


def _of_followers(context: Context, names: Collection[str]) -> Iterator[Nogood]:
    """Packages that are built for the CUDA of torch's release exclude its variants of another CUDA.

    What is built for a CUDA loads beside a later one of the same major, whose runtime has all that it calls.
    On aarch64, where torch's default wheels hold no CUDA before 2.11, they are built for the same CUDA. One
    that is asked for by a label (`+cu118`) is built for the CUDA that it names.
    """
    torch = context.node(TORCH) if TORCH in names else None
    if torch is None or torch.builds is None:
        return
    variants = _builds_where(torch, lambda one: bool(one.variant) and not _serves(one.cuda, one.meant))
    for name in sorted(followers(context.matrix, "default") & set(names)):
        node = context.node(name)
        own = next((cuda_of_label(label) for one, label in context.options.built if one == name), None)
        barred = _builds_where(torch, lambda one, own=own: not _serves(one.cuda, own)) if own else variants
        if node is not None and barred:
            yield Nogood((Literal(name, node.all), Literal(TORCH, barred)), FOLLOWER + name.upper())


def _of_toolkits(context: Context, names: Set[str]) -> Iterator[Nogood]:
    """Torch's variants ask for the toolkit of their own CUDA, and for bindings of its major.

    Their metadata stand on PyTorch's index alone; default builds, of three CUDAs by now, show what all ask.
    """
    torch = context.node(TORCH) if TORCH in names else None
    if torch is None:
        return
    for name in sorted({TOOLKIT, BINDINGS} & names):
        if (TORCH, name, True, True) not in context.literals:
            context.literals[TORCH, name, True, True] = [*_of_toolkit(context, torch, name)]
        yield from context.literals[TORCH, name, True, True]


def _of_toolkit(context: Context, torch: Node, name: str) -> Iterator[Nogood]:
    node, asking = context.node(name), _variants_asking(torch, name)
    if node is None or not asking:
        return
    of_cuda: dict[CudaVersion, int] = {}
    for bit, build in enumerate(torch.builds or ()):
        if asking >> bit & 1 and build.cuda:
            of_cuda[build.cuda] = of_cuda.get(build.cuda, 0) | 1 << bit
    for cuda, builds in sorted(of_cuda.items()):
        others = version_mask(node, f"!={cuda if name == TOOLKIT else cuda.major}.*")
        if others:
            literals = Literal(TORCH, builds), Literal(name, others)
            yield Nogood(literals, f"{OTHER_TOOLKIT}-{cuda.tag.upper()}")


def _variants_asking(torch: Node, name: str) -> int:
    """Return the variants of torch of whose releases the default build asks for a package."""
    package = torch.package
    asking = 0
    for row, versions in package.row_masks(package.all).items():
        if row >= 0 and any(one.name == name for one in package.requirements(row)):
            asking |= versions
    builds = enumerate(torch.builds or ())
    return sum(1 << bit for bit, one in builds if one.variant and asking >> torch.places[bit] & 1)


def _serves(cuda: CudaVersion | None, built: CudaVersion | None) -> bool:
    return cuda is not None and built is not None and cuda.major == built.major and cuda >= built


def _of_binaries(context: Context, names: Collection[str]) -> Iterator[Nogood]:
    """Releases of bitsandbytes without a library for the CUDA of torch's build, on a machine with a card.

    Only of Linux's wheels it is known what they carry.
    """
    torch, node = (context.node(n) if n in names else None for n in (TORCH, BITSANDBYTES))
    platform = context.target.platform
    if torch is None or node is None or not context.target.judged_cards or platform.os != "linux":
        return
    releases = context.matrix.generated(BITSANDBYTES).get("releases", {})
    carried = {
        place: frozenset(releases[version].get("platforms", {}).get(platform.arch, {}).get("cuda", ()))
        for place, version in enumerate(node.package.versions)
        if version in releases
    }
    for tag in sorted({_digits(build) for build in torch.builds or () if build.cuda}):
        lacking = sum(1 << place for place, tags in carried.items() if tag not in tags)
        builds = _builds_where(torch, lambda build, tag=tag: bool(build.cuda) and _digits(build) == tag)
        if lacking:
            yield Nogood((Literal(BITSANDBYTES, lacking), Literal(TORCH, builds)), f"{BINARIES}-CU{tag}")


def _digits(build: Build) -> str:
    return build.cuda.tag.removeprefix("cu") if build.cuda else ""


def conditions_of(context: Context, identity: str) -> Mapping[str, str]:
    """Return the conditions of a row by its id; none for pairs and for facts read from wheels."""
    return next((row.when for row in context.matrix.standing if row.id == identity), {})
