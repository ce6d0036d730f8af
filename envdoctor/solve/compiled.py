"""What would be compiled where it is installed, although its project publishes wheels: none fits the target.

A source that was never built for this Python seldom builds: C that an older Cython wrote names fields that
CPython 3.11 took out of its structures (https://docs.python.org/3.11/whatsnew/3.11.html), a setup may need
the distutils that 3.12 has no more, PyO3 refuses a Python newer than it knows, and a newer rustc refuses what
an older one let pass. What only ever came as a source is no such case: it is mostly Python alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envdoctor import lazy_re as re
from envdoctor.solve.nodes import Node
from envdoctor.solve.python_patches import later_pythons

_CPYTHON = re.compile(r"cp3(\d+)-")


def compiled(node: Node) -> int:
    """Return the candidates of which no wheel fits the target, and whose project builds wheels."""
    if not node.context.options.allow_source:
        return 0
    package, judge = node.package, node.context.wheels.judge
    verdicts = {number: (judge(number), mask) for number, mask in package.file_masks(int).items()}
    sources = {number: mask for number, (bar, mask) in verdicts.items() if bar == "source"}
    native = sources and any(not bar and _is_native(node, number) for number, (bar, _) in verdicts.items())
    return node.expand(sum(mask for number, mask in sources.items() if native or package.has_wheel(number)))


def _is_native(node: Node, number: int) -> bool:
    """True for a set of files with a wheel for one kind of machine."""
    tags = (node.context.snapshot.tags[file.tag] for file in node.package.files(number) if file.tag >= 0)
    return any(not tag.endswith("-any") for tag in tags)


def shown_compiled(node: Node, bit: int) -> str:
    """Return what is said of a candidate that is compiled: what it has no wheel for, and which it has."""
    target, place = node.context.target, node.places[bit]
    files = node.package.files(node.package.set_of(place))
    tags = [node.context.snapshot.tags[file.tag] for file in files if file.tag >= 0]
    told = f"{node.shown(bit)} has no wheel for CPython {target.python_minor} on {target.platform.name}"
    minors = sorted({int(match[1]) for match in map(_CPYTHON.match, tags) if match})
    if not minors:
        return told
    until = " on" if any("-abi3-" in tag for tag in tags) else f" to 3.{minors[-1]}"
    return f"{told} (it has them from CPython 3.{minors[0]}{until})"


def spared(nodes: Mapping[str, Node], bits: Mapping[str, int]) -> dict[str, frozenset[str]]:
    """Return, by package compiled in an answer, the newest older release with a wheel that is to be read."""
    found: dict[str, frozenset[str]] = {}
    for name, node in nodes.items():
        if compiled(node) >> bits[name] & 1:
            package, older = node.package, (1 << node.places[bits[name]]) - 1
            ready = package.file_masks(node.context.wheels.judge).get("", 0) & package.finals
            unread = ready & package.unread & older & ~package.yanked
            found |= {name: frozenset((f"=={package.versions[unread.bit_length() - 1]}",))} if unread else {}
    return found


def notes(nodes: Mapping[str, Node], bits: Mapping[str, int]) -> Iterator[str]:
    """Yield what is built (what comes as a source alone, what is compiled), and what wants a later Python."""
    alone = sorted(
        n.shown(bits[name]) for name, n in nodes.items() if n.expand(n.source_alone) >> bits[name] & 1
    )
    if alone:
        yield f"{', '.join(alone)}: without a wheel for any machine, built from source where it is installed"
    for name, node in nodes.items():
        if compiled(node) >> bits[name] & 1:
            yield f"{shown_compiled(node, bits[name])}: it is compiled where it is installed, which may fail"
    yield from later_pythons(nodes, bits)
