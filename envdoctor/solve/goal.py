"""What is to be solved, and what was found."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from envdoctor.errors import Unavailable
from envdoctor.matrix.snapshot import Snapshot
from envdoctor.solve.coverage import Coverage
from envdoctor.solve.nodes import Context, Options
from envdoctor.solve.policy import Cost, Policy
from envdoctor.solve.problem import Nogood
from envdoctor.solve.requests import Carried, Request
from envdoctor.solve.variants import OWN_RUNTIME
from envdoctor.target.resolve import Target
from envdoctor.values import dataclass


@dataclass(frozen=True)
class Goal:
    """A request on a context; `carried` and `options` are lines that go along unsolved."""

    context: Context
    requests: tuple[Request, ...]
    least_change: bool = False
    carried: tuple[Carried, ...] = ()
    options: tuple[str, ...] = ()
    coverage: Coverage | None = None
    avoided: tuple[Nogood, ...] = ()
    """Combinations that nothing forbids and the answer should not have."""
    notes: tuple[str, ...] = ()
    """What was read in the place of what was named."""

    def widened(self) -> Goal:
        """Return the goal on the facts that its coverage has now."""
        return self._on(self.coverage.snapshot if self.coverage else self.context.snapshot)

    def on(self, target: Target, options: Options) -> Goal:
        """Return the goal for another target, or with other options, on the facts that there are by now."""
        return self._on(self.coverage.snapshot if self.coverage else self.context.snapshot, target, options)

    def _on(self, snapshot: Snapshot, target: Target | None = None, options: Options | None = None) -> Goal:
        old = self.context
        asked = target or old.target, options or old.options
        context = Context(snapshot, old.matrix, *asked, old.installed, old)
        return replace(self, context=context, avoided=())  # other facts: other doubts

    @property
    def kept(self) -> list[str]:
        """The installed packages of known version, but for the CUDA libraries, which follow torch."""
        if not self.least_change:
            return []
        names = (name for name in sorted(self.context.installed) if not name.startswith(OWN_RUNTIME))
        chosen = (name for name in names if not self.context.is_there(name))
        nodes = ((name, self.context.node(name)) for name in chosen)
        return [name for name, node in nodes if node is not None and node.installed]

    def unrecorded(self) -> list[str]:
        """Return what is asked for and has no record of its interface, which would tell what it imports."""
        from envdoctor.matrix.interface_records import recorded_libraries

        recorded = recorded_libraries(self.context.matrix.folder)
        return sorted({one.name for one in self.requests}.difference(recorded))


@dataclass(frozen=True)
class Picks:
    """A best answer: the candidate's bit of each package, and what it costs."""

    bits: dict[str, int]
    cost: Cost
    policy: Policy
    window: int | None
    """The staleness within which it was searched for; None: any."""
    clashing: frozenset[str] = frozenset()
    """What was chosen among itself first, because it does not stand beside one another newest."""


def holding(context: Context, asked: Collection[str]) -> Options:
    """Return the options by which installed packages stay whose release is not on record, but for `asked`.

    What such a release requires is not known, and no other is what stands there.
    """
    free = {*asked, *context.options.given}
    named = (name for name in context.installed if name not in free and not name.startswith(OWN_RUNTIME))
    nodes = ((name, context.node(name)) for name in named)
    held = frozenset(name for name, node in nodes if node is not None and not node.installed)
    return replace(context.options, held=held)


def request_mask(context: Context, request: Request) -> int:
    """Return the candidates that a request's specifier admits; raises Unavailable for an unknown package."""
    node = context.node(request.name)
    if node is None:
        raise Unavailable(
            f"{request.name}: not among the package facts of {context.snapshot.date}; "
            f"`envdoctor matrix update --package {request.name}` fetches them"
        )
    return node.admits(request.spec)
