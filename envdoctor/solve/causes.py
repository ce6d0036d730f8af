"""A reason for a conflict in words, with where it comes from."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from envdoctor.facts import CudaVersion
from envdoctor.matrix import tables
from envdoctor.matrix.driver_tables import least_driver, least_driver_row
from envdoctor.matrix.snapshot import LIMITS
from envdoctor.matrix.tables.conditions import ConditionRow
from envdoctor.solve.answer import Cause
from envdoctor.solve.explain import Reason
from envdoctor.solve.goal import Goal, request_mask
from envdoctor.solve.nodes import TORCH, Node
from envdoctor.solve.problem import bits_of
from envdoctor.solve.requests import Request
from envdoctor.solve.rows import BINARIES, FOLLOWER, OTHER_TOOLKIT, conditions_of
from envdoctor.solve.undeclared import undeclared
from envdoctor.solve.versions import satisfies, version_key

SHOWN = 3
"""How many different requirements of one package on another are told one by one."""
GONE = " (the index has no such release)"
"""What is said of a requirement that no release on the index meets, whatever the target."""


def causes_of(goal: Goal, reasons: Sequence[Reason]) -> tuple[Cause, ...]:
    """Return the causes that reasons stand for: requests first, then the target, metadata and rows."""
    teller = _Teller(goal, reasons)
    order = {"request": 0, "target": 1, "metadata": 2, "row": 3}
    told = [cause for reason in reasons for cause in (teller.tell(reason), *teller.conditions(reason))]
    return tuple(sorted(dict.fromkeys(told), key=lambda cause: order[cause.kind]))


class _Teller:
    """Words for reasons; a package's candidates are narrowed to those the other reasons leave."""

    def __init__(self, goal: Goal, reasons: Sequence[Reason]) -> None:
        self.goal, self.context, self.reasons = goal, goal.context, reasons

    def tell(self, reason: Reason) -> Cause:
        """Return one reason as a cause."""
        if reason.request is not None:
            return Cause("request", self._asked(reason.request), reason.request.source)
        if reason.kind == "edge":
            return self._edge(reason)
        if reason.nogood is not None:
            return self._row(reason)
        return self._ban(reason)

    def _asked(self, request: Request) -> str:
        """Return a request in words, and that no release answers it where that is so."""
        node = self.context.known(request.name)
        if node.admits(request.spec):
            return f"{request} is asked for"
        versions = node.package.versions
        known = f"{versions[0]} to {versions[-1]} are known"
        if request.exact:
            at = bisect_left(versions, version_key(request.exact), key=version_key)
            known += f"; nearest: {' and '.join(versions[max(0, at - 1) : at + 1])}"
        return f"{request} is asked for, and {request.name} has no such release ({known})"

    def conditions(self, reason: Reason) -> Iterator[Cause]:
        """Yield what of the target a matrix row speaks of: without it the row would not hold."""
        if reason.nogood is None:
            return
        target = self.context.target
        when = conditions_of(self.context, reason.nogood.row)
        if "gpu.cc" in when:
            cards = [card for card in target.judged_cards if satisfies(str(card.capability), when["gpu.cc"])]
            yield Cause(
                "target", f"the card is {' or '.join(map(str, cards))}", cards[0].source if cards else ""
            )
        told = {"python": target.python_minor, "os": target.platform.os, "arch": target.platform.arch}
        told["driver"] = str(target.driver)
        for key in (key for key in told if key in when):
            option = {"driver": "--driver", "python": "--python-version"}.get(key, "--platform")
            yield Cause("target", f"the target's {key} is {told[key]}", option)

    def _candidates(self, name: str, but: Reason) -> int:
        """Return the candidates of a package that the requests and the other bans among the reasons leave."""
        node = self.context.known(name)
        mask = node.all
        for reason in self.reasons:
            if reason is but or reason.name != name:
                continue
            if reason.request is not None:
                mask &= request_mask(self.context, reason.request)
            elif reason.ban is not None and mask & ~reason.ban.mask:
                mask &= ~reason.ban.mask
        return mask or node.all

    def _edge(self, reason: Reason) -> Cause:
        owner, target = self.context.known(reason.name), self.context.known(reason.target)
        mask = self._candidates(reason.name, reason)
        needs = [one for one in undeclared(owner) if one.name == target.name and one.owners & mask]
        asked = self._asks(owner, target, _versions(owner, mask))
        asked |= {("needs", one.spec, ""): _versions(owner, one.owners & mask) for one in needs}
        told = sorted(asked.items(), key=lambda item: -item[1].bit_length())
        parts = [
            f"{_span(owner.package.versions, versions)} {verb} {target.name}{spec}{gone}"
            for (verb, spec, gone), versions in told[:SHOWN]
        ]
        more = f"; {len(told) - SHOWN} more" if len(told) > SHOWN else ""
        newest = owner.package.versions[max((v.bit_length() for _, v in told), default=1) - 1]
        said = {verb for verb, _, _ in asked}
        source = (
            f"{owner.name} {newest}: {'Requires-Dist' if 'requires' in said else 'its own version checks'}"
        )
        if said == {"needs"}:
            source = f"{needs[0].row}: {needs[0].source}"
        return Cause("metadata", f"{owner.name} {'; '.join(parts)}{more}", source)

    def _asks(self, owner: Node, target: Node, versions: int) -> dict[tuple[str, str, str], int]:
        """Return what versions of one package ask of another in words, and the versions that ask it."""
        asked: dict[tuple[str, str, str], int] = {}
        for row, those in owner.package.row_masks(versions).items():
            for extra in ("", LIMITS, *self._extras(owner.name)) if row >= 0 else ():
                verb = "works only with" if extra == LIMITS else "requires"
                for wanted in owner.package.requirements(row, extra):
                    if wanted.name == target.name and self.context.marker_holds(wanted.marker):
                        gone = "" if target.package.spec_mask(wanted.spec) else GONE
                        key = (verb, target.package.spec_text(wanted.spec), gone)
                        asked[key] = asked.get(key, 0) | those
        return asked

    def _extras(self, name: str) -> list[str]:
        return sorted({e for r in self.goal.requests if r.name == name for e in r.extras})

    def _row(self, reason: Reason) -> Cause:
        nogood = reason.nogood
        assert nogood is not None
        tag = nogood.row.rpartition("-CU")[2]
        cuda = f"{tag[:-1]}.{tag[-1:]}"
        if nogood.row.startswith(OTHER_TOOLKIT):
            text = f"torch's builds for CUDA {cuda} ask for the {nogood.literals[1].name} of that CUDA"
            return Cause("row", text, f"{nogood.row}: torch's wheels")
        if nogood.row.startswith(BINARIES):
            text = (
                f"bitsandbytes {self._where(nogood, 0)} has no library for CUDA {cuda}, which this torch uses"
            )
            return Cause("row", text, f"{nogood.row}: bitsandbytes' wheels")
        if nogood.row.startswith(FOLLOWER):
            text = f"{nogood.literals[0].name} is built for the CUDA of the default index's torch"
            follower = self.context.matrix.row(tables.TorchFollowerRow, nogood.row)
            return Cause("row", text, f"{nogood.row}: {follower.source if follower else ''}")
        if pair := self.context.matrix.row(tables.TorchPairRow, nogood.row):
            text = f"{pair.package} {pair.versions} is built for torch {pair.torch}"
            return Cause("row", text, f"{pair.id}: {pair.source}")
        row = self.context.matrix.row(ConditionRow, nogood.row)
        assert row is not None
        together = " with ".join(f"{key} {text}".replace(" *", "") for key, text in row.when.items())
        text = f"{together} does not work: {_first_sentence(row.cause)}"
        return Cause("row", text, f"{row.id}: {row.source}")

    def _where(self, nogood: object, place: int) -> str:
        literal = nogood.literals[place]  # type: ignore[attr-defined]
        node = self.context.known(literal.name)
        return _span(
            node.package.versions,
            _versions(node, literal.mask & self._candidates(node.name, self.reasons[0])),
        )

    def _ban(self, reason: Reason) -> Cause:
        node, ban = self.context.known(reason.name), reason.ban
        assert ban is not None
        mask = _whole_releases(node, ban.mask & self._candidates(reason.name, reason) or ban.mask)
        span = f"{reason.name} {_span(node.package.versions, _versions(node, mask))}"
        words: dict[str, Callable[[str, Node, int], Cause]] = {
            "card": self._card,
            "driver": self._driver,
            "python": self._python,
            "platform": self._platform,
            "source": self._source,
        }
        if ban.what in words:
            told = words[ban.what](span, node, mask)
            return Cause(told.kind, told.text.replace("{subject}", ban.subject), told.source)
        if ban.what == "kernels":
            row = self.context.matrix.row(tables.PackageCapabilityRow, ban.row)
            assert row is not None
            return Cause(
                "target", f"{ban.subject} cannot run {span}: {row.because}", f"{row.id}: {row.source}"
            )
        if ban.what == "constraint":
            return Cause("request", f"{ban.subject} is a constraint", ban.row)
        if ban.what == "held":
            text = f"{node.name} {ban.subject} is installed and not on record, so that it stays"
            return Cause("target", text, "installed")
        if ban.what == "newer":
            return Cause("request", f"{span} came out after the day given", "--exclude-newer")
        if ban.what == "prerelease":
            text = f"{span} is a pre-release, which installers take only when it is asked for"
            return Cause("metadata", text, f"{reason.name}: version")
        if ban.what == "yanked":
            return Cause("metadata", f"{span} was withdrawn from the index", f"{reason.name}: yanked")
        return Cause("metadata", f"what {span} requires is not known", f"{reason.name}: no readable metadata")

    def _card(self, span: str, node: Node, mask: int) -> Cause:
        build = (node.builds or [])[mask.bit_length() - 1]
        if build.arch_list is None:
            held = f"releases of the time of {build.label} hold no code for such a card"
        else:
            archs = ", ".join(build.arch_list) or "no GPU code"
            held = f"the wheel of {build.label} holds {archs}"
        return Cause("target", f"{{subject}} cannot run {span}: {held}", build.source)

    def _driver(self, span: str, node: Node, mask: int) -> Cause:
        built = [build for bit in bits_of(mask) if (build := (node.builds or [])[bit]).cuda]
        build = min(built, key=lambda build: build.cuda or CudaVersion(99, 0))
        row = least_driver_row(self.context.matrix, build.cuda) if build.cuda else None
        least = least_driver(row, self.context.target.platform.os) if row else ""
        text = f"driver {{subject}} is too old for {span}: even CUDA {build.cuda} needs {least} or newer"
        return Cause("target", text, row.source if row else "")

    def _python(self, span: str, node: Node, mask: int) -> Cause:
        newest = mask.bit_length() - 1
        bounds = sorted({bound for bound in node.pythons(node.places[newest]) if bound})
        needs = f"Python {' or '.join(bounds)}" if bounds else "another Python"
        text = f"{span} needs {needs}; the target has {self.context.target.python_minor}"
        return Cause("target", text, f"{node.name} {node.version(newest)}: Requires-Python")

    def _platform(self, span: str, node: Node, mask: int) -> Cause:
        target = self.context.target
        text = (
            f"{span} has no wheel for CPython {target.python_minor} on {target.platform.name}, nor a source"
        )
        return Cause("target", text, f"{node.name} {node.version(mask.bit_length() - 1)}: its files")

    def _source(self, span: str, node: Node, mask: int) -> Cause:
        target = self.context.target
        newest = node.places[mask.bit_length() - 1]
        wheels = any(
            versions >> newest & 1 and any(file.tag >= 0 for file in files)
            for versions, files in node.package.file_groups()
        )
        where = f" for CPython {target.python_minor} on {target.platform.name}" if wheels else ""
        text = (
            f"only a source build exists of {span}{where}, and source builds are not allowed (--allow-source)"
        )
        return Cause(
            "target" if wheels else "metadata",
            text,
            f"{node.name} {node.package.versions[newest]}: its files",
        )


def _versions(node: Node, mask: int) -> int:
    if node.name != TORCH:
        return mask
    return sum(1 << place for place in {node.places[bit] for bit in bits_of(mask)})


def _whole_releases(node: Node, mask: int) -> int:
    """Return a mask without the releases of which another build is not in it, where that leaves any."""
    other = {node.places[bit] for bit in bits_of(node.all & ~mask)} if node.builds else set()
    whole = sum(1 << bit for bit in bits_of(mask) if node.places[bit] not in other) if other else mask
    return whole or mask


def _span(versions: Sequence[str], mask: int) -> str:
    """Return `0.27.0 to 0.33.0`, `2.8.3`, or nothing for all versions."""
    if not mask:
        return ""
    low, high = (mask & -mask).bit_length() - 1, mask.bit_length() - 1
    if low == high:
        return versions[low]
    return f"{versions[low]} to {versions[high]}"


def _first_sentence(text: str) -> str:
    plain = re.sub(r"\s{0,8}\(\{[^{}]{0,80}\}\)|\s{0,8}\{[^{}]{0,80}\}", "", text)
    return re.split(r"(?<=[a-z0-9)])\.\s+(?=[A-Z])", plain)[0].rstrip(".")
