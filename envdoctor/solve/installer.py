"""What a plain `pip install` would put in: the newest that its arguments admit, and what that pulls along."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from envdoctor.commands import ANY
from envdoctor.errors import EnvdoctorError
from envdoctor.facts import Facts, Observed
from envdoctor.facts.names import normalise
from envdoctor.matrix import Matrix
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.solve.nodes import Context, Node, Options
from envdoctor.solve.problem import Demand, demands_of
from envdoctor.solve.versions import spec_mask
from envdoctor.target.file_judge import FileJudge, supposed_target

PULLED = 80
"""Packages that an installation may pull along before it is given up as unforeseeable."""


class Installations:
    """What installing beside the packages of some facts leads to.

    `complete`: what is not listed is not there and is pulled along; else it may be there and fit.
    """

    def __init__(self, facts: Facts, matrix: Matrix, complete: bool) -> None:
        self._facts, self._matrix, self._complete = facts, matrix, complete

    @cached_property
    def _context(self) -> Context | None:
        try:
            snapshot, target = load_snapshot(self._matrix.folder), supposed_target(self._facts, self._matrix)
        except EnvdoctorError:
            return None
        return Context(snapshot, self._matrix, target, Options(allow_source=True), target.stack.versions)

    def foresee(self, pins: Mapping[str, str]) -> dict[str, str] | None:
        """Return the versions that installing `pins` leads to, by name.

        None where the package facts do not cover a name or nothing fits. The installer knows no card or
        driver, takes the newest, keeps what is installed where it satisfies, and minds no requirement of
        others.
        """
        if self._context is None:
            return None
        choice = _Choice(self._context, self._complete)
        for name, specifier in pins.items():
            node = self._context.node(normalise(name))
            if node is None or not choice.take(node, _admitted(node, specifier)):
                return None
        return choice.versions()

    def barred(self, pins: Mapping[str, str]) -> str:
        """Return which of `pins` comes as wheels of which none is for the machine that is told.

        Empty where all have one or come as source alone, and where the Python or the platform is not told.
        """
        told = (self._facts.host.os, self._facts.host.arch, self._facts.environment.python)
        if self._context is None or not all(isinstance(fact, Observed) for fact in told):
            return ""
        files = FileJudge(self._context.snapshot, self._context.target, allow_source=False)
        target = self._context.target
        for name, specifier in pins.items():
            node = self._context.node(normalise(name))
            if node and (mask := spec_mask("" if specifier == "*" else specifier, node.package.versions)):
                sets = node.package.file_masks(int)
                asked = [number for number, versions in sets.items() if versions & mask]
                if any(map(node.package.has_wheel, asked)) and all(map(files.judge, asked)):
                    source = any(not self._context.files.judge(number) for number in asked)
                    shown = f"{node.name}{'' if specifier in ('*', ANY) else specifier}"
                    where = f"CPython {target.python_minor} on {target.platform.name}"
                    return f"{shown} has no wheel for {where}" + (
                        ": it is built from source there" if source else ", nor a source"
                    )
        return ""


def _admitted(node: Node, specifier: str) -> int:
    text = "" if specifier == "*" else specifier
    return node.expand(spec_mask(text, node.package.versions)) & (node.installable | node.installed)


class _Choice:
    """Candidates chosen one after the other, each with what it asks for, never looked at again."""

    def __init__(self, context: Context, complete: bool) -> None:
        self._context, self._complete = context, complete
        self._chosen: dict[str, int] = {}

    def versions(self) -> dict[str, str]:
        """Return what was chosen, by name."""
        nodes = {name: self._context.node(name) for name in self._chosen}
        return {name: node.version(self._chosen[name]) for name, node in nodes.items() if node}

    def take(self, node: Node, mask: int) -> bool:
        """Choose the newest of the mask; False when none is left or too much is pulled along."""
        if not mask or len(self._chosen) > PULLED:
            return False
        if mask & node.installed:
            return True
        bit = self._chosen[node.name] = mask.bit_length() - 1
        return all(self._pull(demand) for demand in demands_of(node, bit) if not demand.limit)

    def _pull(self, demand: Demand) -> bool:
        node = self._context.node(demand.name)
        if node is None or not (self._complete or node.installed or demand.name in self._chosen):
            return True
        if demand.name in self._chosen:
            return bool(demand.mask >> self._chosen[demand.name] & 1)
        return self.take(node, demand.mask & (node.installable | node.installed))
