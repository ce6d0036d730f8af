"""The candidates of one package for a target, and what rules each of the others out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache, reduce
from itertools import accumulate
from operator import or_
from typing import Any

from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.markers import decide
from envdoctor.matrix.snapshot import SDIST, Package, Snapshot
from envdoctor.matrix.tables.conditions import ConditionRow
from envdoctor.matrix.tables.extensions import FlashAttnWheelRow
from envdoctor.solve.overrides import overridden
from envdoctor.solve.ready_wheels import FLASH_ATTN, fits, rows_for, seen_by_build, versions_of
from envdoctor.solve.requests import Request
from envdoctor.solve.variants import Build, builds_of, driver_allows
from envdoctor.solve.versions import clauses, satisfies, spec_mask
from envdoctor.target.cards import Card
from envdoctor.target.file_judge import FileJudge
from envdoctor.target.resolve import Target
from envdoctor.target.wheels import platform_fits
from envdoctor.values import NamedTuple, cached_property, dataclass

TORCH = "torch"
_BUILT_FOR = {"linux": "linux", "macos": "macosx", "windows": "win"}
"""What the tag of a wheel for one system has in it."""
_READ = {"demands", "wanted", "limits", "parts", "asked", "patterns", "told", "undeclared", "shares"}
_READ |= {"builds", "places", "all", "_expanded", "days"}
"""What a node holds that hangs neither on what is installed nor on what is barred."""


@dataclass(frozen=True)
class Options:
    """What the person allows: a cut-off day (days since 1970), source builds, and per-package exceptions."""

    cutoff: int | None = None
    allow_source: bool = False
    prereleases: frozenset[str] = frozenset()
    exact: frozenset[tuple[str, str]] = frozenset()
    """Pairs of name and version pinned exactly, so that a yanked release is meant."""
    labels: frozenset[tuple[str, str]] = frozenset()
    """Versions of torch with the local label that was asked for."""
    built: frozenset[tuple[str, str]] = frozenset()
    """Other packages with the local label that was asked for: it tells the CUDA that they are built for."""
    constraints: tuple[Request, ...] = ()
    """What holds of a package if it is there at all."""
    overrides: tuple[Request, ...] = ()
    """What stands in the place of every requirement on its package (what it asks is a constraint, too)."""
    any_prerelease: bool = False
    waived: frozenset[tuple[str, str]] = frozenset()
    """Pairs of a package and another that it checks only when it uses it: what was asked for goes before."""
    waived_rows: frozenset[str] = frozenset()
    """Rows that tell of failures in use alone, before which what was asked for goes, too."""
    held: frozenset[str] = frozenset()
    """Installed packages whose release is not on record (a vendor's build): they stay as they are."""
    wished: bool = False
    """What counts as installed is only asked for: it must install as anything else must."""
    asked: frozenset[str] = frozenset()
    """What is asked for, as `rembg` and `rembg[gpu]`: it may serve, or bring it, where one is needed."""
    given: frozenset[str] = frozenset()
    """Packages that a URL or path gives: of which release, and what it requires, is not known."""


class Ban(NamedTuple):
    """Candidates that something outside the request rules out: which, and by what (`what` names the rule)."""

    what: str
    mask: int
    subject: str = ""
    row: str = ""


class Context:
    """A snapshot read for one target: which markers hold, one `Node` a package."""

    def __init__(
        self,
        snapshot: Snapshot,
        matrix: Matrix,
        target: Target,
        options: Options | None = None,
        installed: Mapping[str, str] | None = None,
        like: Context | None = None,
    ) -> None:
        """Read a snapshot; what another context on it has read already is taken over where it holds here."""
        self.matrix, self.target = matrix, target
        self.options = options or Options()
        self.installed = installed or {}
        self.environment = target.marker_environment()
        self.snapshot = overridden(snapshot, self.options.overrides, self.environment)
        self._nodes: dict[str, Node | None] = {}
        self._read: dict[str, Node] = {}
        """What was read of packages here or in a context like this one."""
        self.files = FileJudge(snapshot, target, self.options.allow_source)
        self._markers: dict[int, bool] = {-1: True}
        self.explained: Any = None
        """The last answer, explained (kept by `answer.py`)."""
        self.literals: dict[tuple[str, str, bool, bool], Any] = {}
        """Conditions of rows as the solver takes them, once read (by `rows.py`)."""
        self.forbidden: dict[frozenset[str], list[Any]] = {}
        """What rows forbid among packages, once read (by `rows.py`)."""
        if like is not None and like.files.judges_as(self.files):
            self.files, self._markers = like.files, like._markers
            if like.snapshot is self.snapshot and like.target == target and self._asks_as(like.options):
                self._read = like._read

    def _asks_as(self, other: Options) -> bool:
        """True when with other options a release asks for the same, of the same candidates."""
        own = self.options
        same = all(
            getattr(own, name) == getattr(other, name) for name in ("given", "held", "waived", "labels")
        )
        serving = _serving(self.matrix)
        return same and _standing_in(own.asked, serving) == _standing_in(other.asked, serving)

    @cached_property
    def compiling(self) -> frozenset[str]:
        """The packages whose setup compiles for a card."""
        built, by_nvcc = self.matrix.rows(tables.TorchBuildRow), self.matrix.rows(tables.CudaBuildRow)
        return frozenset((*(row.package for row in built), *(row.package for row in by_nvcc)))

    @cached_property
    def wheels(self) -> FileJudge:
        """What of files installs without a build."""
        return FileJudge(self.snapshot, self.target, allow_source=False)

    @property
    def needed(self) -> Mapping[str, Sequence[ConditionRow]]:
        """By package: the rows that say what it needs beyond its metadata."""
        return _needed(self.matrix)

    def node(self, name: str) -> Node | None:
        """Return the candidates of a package, or None when the facts do not cover it."""
        if name not in self._nodes:
            package = self.snapshot.package(name)
            known = package is not None and package.crawled
            node = Node(package, self, self._read.get(name)) if package is not None and known else None
            self._nodes[name] = node
            if node is not None:
                self._read.setdefault(name, node)
        return self._nodes[name]

    def known(self, name: str) -> Node:
        """Return the candidates of a package that the facts cover."""
        node = self.node(name)
        assert node is not None
        return node

    def stands(self, package: Package, spec: int) -> bool:
        """True when a package meets a specifier that is there without being chosen, or may meet it."""
        name = package.name
        return name in self.options.given or (
            name in self.options.held
            and satisfies(self.installed[name].partition("+")[0], package.spec_text(spec))
        )

    def is_there(self, name: str) -> bool:
        """True for a package that is not chosen, and of which more than that it is there is not known."""
        return name in self.options.given or name in self.options.held

    def marker_holds(self, number: int) -> bool:
        """True when the snapshot's marker of that number holds on the target."""
        known = self._markers.get(number)
        if known is None:
            known = self._markers[number] = decide(self.snapshot.marker(number), self.environment)
        return known


@cache
def _needed(matrix: Matrix) -> Mapping[str, Sequence[ConditionRow]]:
    found: dict[str, list[ConditionRow]] = {}
    for row in matrix.standing:
        if row.needed:
            found.setdefault(next(iter(row.when)), []).append(row)
    return found


@cache
def _serving(matrix: Matrix) -> frozenset[str]:
    """Return what rows name that may stand in for what a package needs."""
    return frozenset(name for rows in _needed(matrix).values() for row in rows for name in row.unless)


def _standing_in(asked: Set[str], serving: Set[str]) -> frozenset[str]:
    """Return what is asked for that may stand in for another package: extras, and what rows name so."""
    return frozenset(word for word in asked if "[" in word or word in serving)


class Node:
    """A package's candidates as bits: (version, build), worst first, so that a higher bit is preferred."""

    def __init__(self, package: Package, context: Context, like: Node | None = None) -> None:
        self.package, self.context = package, context
        self.demands: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        """What rows of requirements ask, once read (`problem.py` keeps them here)."""
        self.wanted: dict[str, Any] = {}
        self.limits: dict[str, Any] = {}
        """What single requirements ask, always or if there is such a package, once read (by `problem.py`)."""
        self.admitted: dict[str, int] = {}
        self.parts: dict[tuple[str, int], Sequence[tuple[int, Any]]] = {}
        """The candidates that share requirements, by extra and candidates, once read (by `problem.py`)."""
        self.asked: dict[tuple[str, int], Sequence[Any]] = {}
        """What candidates need of others, likewise (by `problem.py`)."""
        self.patterns: dict[tuple[int, tuple[int, ...]], list[tuple[int, int]]] = {}
        """Candidates split by sets that tell them apart, since searches ask again (kept by `prune.py`)."""
        self.told: dict[str, int | None] = {}
        """The candidates that specifiers of rows mean, once read (by `rows.py`)."""
        self.shares: list[tuple[int, bool, tuple[Any, ...]]] | None = None
        """How candidates are split by what they ask for beyond requirements, likewise (by `problem.py`)."""
        self.undeclared: list[Any] | None = None
        """What it needs beyond its metadata, once read (kept by `undeclared.py`)."""
        if like is not None:
            vars(self).update((name, told) for name, told in vars(like).items() if name in _READ)

    @property
    def name(self) -> str:
        """The package's normalized name."""
        return self.package.name

    @cached_property
    def builds(self) -> list[Build] | None:
        """One build a candidate for torch; None for a package whose candidates are its versions."""
        if self.name != TORCH:
            return None
        context = self.context
        found = builds_of(context.matrix, self.package.versions, context.target, context.options.labels)
        return [build for version in self.package.versions for build in found[version]]

    @cached_property
    def places(self) -> Sequence[int]:
        """The version's place of each candidate."""
        if self.builds is None:
            return range(len(self.package.versions))
        return [self.package.position[build.version] for build in self.builds]

    @cached_property
    def all(self) -> int:
        """The mask of all candidates."""
        return (1 << len(self.places)) - 1

    def expand(self, versions: int) -> int:
        """Return the candidates of a mask of versions."""
        if self.builds is None:
            return versions
        known = self._expanded.get(versions)
        if known is None:
            known = sum(1 << bit for bit, place in enumerate(self.places) if versions >> place & 1)
            self._expanded[versions] = known
        return known

    @cached_property
    def _expanded(self) -> dict[int, int]:
        return {}

    def fitting(self, row: FlashAttnWheelRow) -> int:
        """Return torch's candidates that ready wheels were built for."""
        cudas = [build.cuda for build in self.builds] if self.builds else [None] * len(self.places)
        return sum(1 << bit for bit, cuda in enumerate(cudas) if fits(row, self.version(bit), cuda))

    def version(self, bit: int) -> str:
        """Return the version of a candidate."""
        return self.package.versions[self.places[bit]]

    def shown(self, bit: int) -> str:
        """Return a candidate as `vllm 0.32.0`."""
        return f"{self.name} {self.version(bit)}"

    def row(self, bit: int) -> int:
        """Return the row of requirements of a candidate; -1 where they are not known."""
        return self.package.row_of(self.places[bit])

    def variant(self, bit: int) -> str | None:
        """Return the variant of a candidate; None for the default index."""
        return self.builds[bit].variant if self.builds else None

    @cached_property
    def days(self) -> list[int]:
        """Per version: the day from which it or a newer one was out, so that age never falls with version."""
        days = self.package.days
        rising = sorted(days)
        return days if days == rising else [*accumulate(reversed(days), min)][::-1]

    @cached_property
    def bans(self) -> list[Ban]:
        """What the target, the index and the options rule out, each with its reason."""
        found = [Ban(what, self.expand(mask)) for what, mask in self._version_bans if mask]
        return [*found, *self._further_bans()]

    def _further_bans(self) -> Iterator[Ban]:
        """Yield what rules candidates out that hangs on the card or the request."""
        if self.name in self.context.options.held:
            yield Ban("held", self.all, self.context.installed[self.name])
        yield from self._constraint_bans()
        if self.context.target.judges_hardware:
            yield from self._hardware_bans()

    def seen_by_build(self, bit: int) -> tuple[str, ...] | None:
        """Return what a candidate's build must see beyond what it asks for; None for one with a wheel."""
        context = self.context
        return seen_by_build(context.matrix, self.package, self.places[bit], context.options.allow_source)

    def admits(self, spec: str) -> int:
        """Return the candidates that a specifier admits; the local label of an exact one names a build."""
        if spec not in self.admitted:
            self.admitted[spec] = self._admits(spec)
        return self.admitted[spec]

    def _admits(self, spec: str) -> int:
        mask = self.all
        for operator, bound in clauses(spec):
            public, _, label = bound.partition("+")
            operator = "==" if label and operator == "===" else operator
            mask &= self.expand(spec_mask(f"{operator}{public}", self.package.versions))
            if label and operator == "==" and self.builds is not None:
                mask &= sum(1 << bit for bit, build in enumerate(self.builds) if build.answers(label))
        return mask

    def _constraint_bans(self) -> Iterator[Ban]:
        for one in self.context.options.constraints:
            if one.name == self.name and (mask := self.all & ~self.admits(one.spec)):
                yield Ban("constraint", mask, str(one), one.source)

    @cached_property
    def allowed(self) -> int:
        """The candidates that nothing rules out."""
        mask = self._sound
        for ban in self._further_bans():
            mask &= ~ban.mask
        return mask

    @cached_property
    def _sound(self) -> int:
        """The candidates that nothing rules out whatever the card and the request."""
        barred = 0
        for _, versions in self._version_bans:
            barred |= versions
        return self.all & ~self.expand(barred)

    @cached_property
    def installable(self) -> int:
        """The candidates on the default index that an installer, which knows of no card, may take."""
        return self._sound & ~sum(1 << bit for bit, build in enumerate(self.builds or ()) if build.variant)

    def pythons(self, place: int) -> list[str]:
        """Return what the files of a release ask of Python, as they write it."""
        numbers = self.package.pythons(self.package.set_of(place))
        return [self.context.snapshot.python(number)[0] for number in numbers]

    @cached_property
    def installed(self) -> int:
        """The candidates that are what is installed (no more than one bit; 0 when not installed)."""
        told = self.context.installed.get(self.name)
        if told is None:
            return 0
        version, _, local = told.partition("+")
        place = self.package.position.get(told, self.package.position.get(version))
        if place is None:
            return 0
        mask = self.expand(1 << place)
        if self.builds:
            exact = [
                1 << i for i, b in enumerate(self.builds) if mask >> i & 1 and b.variant == (local or None)
            ]
            return exact[0] if exact else self._default_of(mask)
        return mask

    def _default_of(self, mask: int) -> int:
        return 1 << (mask.bit_length() - 1)

    @cached_property
    def _version_bans(self) -> list[tuple[str, int]]:
        """What rules versions out, whatever the card and the request."""
        return list(self._read_version_bans())

    def _read_version_bans(self) -> Iterator[tuple[str, int]]:
        package, options, name = self.package, self.context.options, self.name
        there = 0 if options.wished else self.installed
        kept = 1 << self.places[there.bit_length() - 1] if there else 0
        files = self.context.files.bars(package, options.cutoff)
        exact = [v for n, v in options.exact if n == name and v in package.position] if options.exact else ()
        pinned = sum(1 << package.position[version] for version in exact)
        yield "yanked", package.yanked & ~pinned & ~kept
        newer = self._newer()
        yield "newer", newer & ~kept
        unasked = self._unasked_prereleases(newer)
        yield "prerelease", unasked and unasked & ~kept & ~self.package.pinned_prereleases
        built = self._ready | self.source_alone if any(mask for _, mask in files) else 0
        for what, mask in files:
            mask &= ~built if what == "source" else -1
            yield what, mask if mask & kept and self._bars_installed(what, kept) else mask & ~kept
        unread = package.unread
        barred = package.yanked | newer | sum(mask for _, mask in files) & ~built
        if not (options.allow_source and package.all & ~barred and not package.all & ~barred & ~unread):
            yield "unread", unread & ~kept & ~(pinned if options.allow_source else 0)

    @cached_property
    def _ready(self) -> int:
        """The versions whose sources fetch a ready wheel."""
        if self.name != FLASH_ATTN:
            return 0
        rows = rows_for(self.context.matrix, self.context.target)
        return reduce(or_, (versions_of(self.package, row) for row in rows), 0)

    @cached_property
    def source_alone(self) -> int:
        """The versions without a wheel for any machine, of a package that is published so: pip builds it.

        Where other releases have wheels for this system alone, something is compiled, and is no such case.
        What its setup compiles for a card is another matter: that takes a toolkit, and an hour.
        """
        package = self.package
        if not package.finals or self.name in self.context.compiling:
            return 0
        if self._tags(package.set_of(package.finals.bit_length() - 1)):
            return 0
        sets = [(self._tags(number), versions) for number, versions in package.file_masks(int).items()]
        if any(_BUILT_FOR[self.context.target.platform.os] in tag for tags, _ in sets for tag in tags):
            return 0
        return sum(versions for tags, versions in sets if not tags)

    def _tags(self, number: int) -> list[str]:
        """Return the tags of the wheels in a set of files, without those for Python 2 alone."""
        tags = (self.context.snapshot.tags[one.tag] for one in self.package.files(number) if one.tag >= 0)
        return [tag for tag in tags if not tag.startswith(("py2-", "cp2"))]

    def _bars_installed(self, what: str, kept: int) -> bool:
        """True where the installed version is of another Python, and what bars its files bars it, too.

        What has wheels for such a platform was hardly built from source.
        """
        target = self.context.target
        if what != "source" or what in target.stack.barred_by or not target.stack.barred_by:
            return what in target.stack.barred_by
        files = self.package.files(self.package.set_of(kept.bit_length() - 1))
        tags = (self.context.snapshot.tags[file.tag] for file in files if file.tag != SDIST)
        platforms = (one for tag in tags for one in tag.rpartition("-")[2].split(".") if one != "any")
        return any(platform_fits(one, target.platform) for one in platforms)

    def _unasked_prereleases(self, newer: int) -> int:
        if not self.package.prereleases:
            return 0
        finals = self.package.finals & ~newer
        options = self.context.options
        meant = options.any_prerelease or self.name in options.prereleases
        return self.package.prereleases if finals and not meant else 0

    @cached_property
    def reserved(self) -> int:
        """Pre-releases that may be picked only because another package's requirement pins them exactly."""
        unasked = self._unasked_prereleases(self._newer())
        return unasked and self.expand(unasked & self.package.pinned_prereleases) & ~self.installed

    def _newer(self) -> int:
        cutoff = self.context.options.cutoff
        if cutoff is None:
            return 0
        return sum(1 << place for place, day in enumerate(self.package.days) if day > cutoff)

    def _hardware_bans(self) -> Iterator[Ban]:
        context = self.context
        for row in context.matrix.rows(tables.PackageCapabilityRow) if context.target.cards else ():
            if row.package == self.name:
                for card in context.target.judged_cards:
                    if card.at_least(row.capability.major, row.capability.minor):
                        continue
                    mask = spec_mask(row.versions.replace("*", ""), self.package.versions)
                    yield Ban("kernels", self.expand(mask), str(card), row.id)
        if self.builds is None:
            return
        for card in context.target.judged_cards:
            yield Ban("card", self._builds_without(card), str(card))
        lacking = sum(
            1 << bit
            for bit, build in enumerate(self.builds)
            if (context.target.judged_cards or context.target.driver)
            and build.cuda
            and not driver_allows(context.matrix, build.cuda, context.target)
        )
        if lacking:
            yield Ban("driver", lacking, str(context.target.driver))

    def _builds_without(self, card: Card) -> int:
        if card.capability is None:
            return 0
        matrix, builds = self.context.matrix, self.builds or ()
        return sum(1 << bit for bit, b in enumerate(builds) if not b.runs_on(card.capability, matrix))
