"""Leaving out candidates that cannot be in a best answer, before the engine sees them.

Two exact steps: a candidate whose demands nothing meets is impossible; one that a preferred
candidate can replace in any answer (accepted wherever it is, asking no more than it does) is needless.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from envdoctor.solve.nodes import Node
from envdoctor.solve.policy import Policy
from envdoctor.solve.problem import Part, Problem, bits_of

RIVALS = 6
"""How many of the best, and of the next better, candidates one is compared with."""

Key = tuple[str, str, tuple[str, ...], bool]
Asks = dict[Key, int]
Group = tuple[int, Asks]
"""Candidates of a package that ask for the same."""
Share = tuple[str, list[Part]]
"""A package's parts without or with one extra."""
_Common = dict[tuple[str, str], tuple[int, tuple[tuple[str, tuple[str, ...], int], ...]]]
"""By package and extra: of which candidates it is told, and what all of them demand."""


def prune(problem: Problem, policy: Policy | None) -> None:
    """Shrink a problem's candidates in place; without a policy (to explain) nothing is impossible."""
    if policy is not None:
        propagate(problem)
    accepted, shares = _accepted(problem), _shares(problem)
    for name in sorted(problem.masks):
        _drop_dominated(problem, problem.node(name), accepted[name], shares.get(name, ()), policy)
    _narrow_parts(problem)


def propagate(problem: Problem) -> None:
    """Remove impossible candidates, and what a package that must be there cannot be."""
    stood: dict[str, int] = {}
    common: _Common = {}
    while stood != problem.masks:
        moved = {name for name, mask in problem.masks.items() if stood.get(name) != mask} if stood else None
        stood = dict(problem.masks)
        _drop_impossible(problem, moved)
        _narrow_needed(problem, common)
    _narrow_parts(problem)


def _drop_impossible(problem: Problem, moved: set[str] | None) -> None:
    """Remove candidates whose demands nothing meets; only those on packages that `moved` are looked at."""
    masks = problem.masks
    for (name, extra), parts in problem.parts.items():
        for part in () if extra else parts:
            if not part.mask & masks[name] or (moved is not None and part.needs.keys().isdisjoint(moved)):
                continue
            for needed, (mask, _) in part.needs.items():
                if not mask & masks.get(needed, 0):
                    masks[name] &= ~part.mask
                    break


def _narrow_needed(problem: Problem, common: _Common) -> None:
    """Follow what every candidate of a needed package demands; those packages are needed as well.

    `common` keeps what candidates demand, as long as the same are left.
    """
    masks = problem.masks
    for root in problem.roots:
        masks[root.name] &= root.mask
    queue = list(dict.fromkeys((root.name, extra) for root in problem.roots for extra in ("", *root.extras)))
    seen = set(queue)
    while queue:
        name, extra = queue.pop()
        left, told = common.get((name, extra), (-1, ()))
        if left != masks[name]:
            left, told = common[name, extra] = masks[name], tuple(_demanded(problem, name, extra))
        for target, extras, mask in told:
            masks[target] &= mask
            for reached in ("", *extras):
                if (target, reached) not in seen:
                    seen.add((target, reached))
                    queue.append((target, reached))
    problem.sure = frozenset(name for name, _ in seen)


def _demanded(problem: Problem, name: str, extra: str) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """Yield what all candidates left of a package demand, with the union of what they accept."""
    live = [p for p in problem.parts.get((name, extra), ()) if p.mask & problem.masks[name]]
    covered = 0
    for part in live:
        covered |= part.mask
    if not live or problem.masks[name] & ~covered:
        return
    tables = [part.needs for part in live]
    for target, (mask, extras) in tables[0].items():
        if all(target in table for table in tables):
            union, shared = mask, set(extras)
            for table in tables[1:]:
                union |= table[target][0]
                shared &= set(table[target][1])
            yield target, tuple(sorted(shared)), union


def _narrow_parts(problem: Problem) -> None:
    reached = _reached(problem)
    names = {name for name, _ in reached}
    problem.masks = {name: mask for name, mask in problem.masks.items() if name in names}
    problem.parts = {key: parts for key, parts in problem.parts.items() if key in reached}
    for (name, _), parts in problem.parts.items():
        for part in parts:
            part.mask &= problem.masks[name]
        parts[:] = [part for part in parts if part.mask]


def _reached(problem: Problem) -> set[tuple[str, str]]:
    """Return the packages, with extras, that candidates which are left may need."""
    masks = problem.masks
    queue = [(root.name, extra) for root in problem.roots for extra in ("", *root.extras)]
    reached = set(queue)
    while queue:
        name, extra = queue.pop()
        left = masks.get(name, 0)
        live = [part.needs for part in problem.parts.get((name, extra), ()) if part.mask & left]
        plain = {needed for needs in live for needed in needs}
        more = {(n, one) for needs in live for n, (_, extras) in needs.items() if extras for one in extras}
        new = {pair for pair in (*((n, "") for n in plain), *more) if pair[0] in masks} - reached
        reached |= new
        queue.extend(new)
    return reached


def _accepted(problem: Problem) -> dict[str, set[int]]:
    """Return, for each package, the sets of candidates that something distinguishes from the others."""
    found: dict[str, set[int]] = {name: set() for name in problem.masks}
    for part in problem.every_part():
        for demand in part.demands:
            if demand.name in found:
                found[demand.name].add(demand.mask)
    for root in problem.roots:
        found[root.name].add(root.mask)
    for name, mask, _ in problem.bans:
        if name in found:
            found[name].add(~mask)
    for nogood in problem.nogoods:
        for literal in nogood.literals:
            if literal.name in found:
                found[literal.name].add(~literal.mask if literal.inside else literal.mask)
    return found


def _drop_dominated(
    problem: Problem, node: Node, accepted: set[int], shares: Iterable[Share], policy: Policy | None
) -> None:
    mask = problem.masks[node.name]
    if mask & (mask - 1) == 0:
        return
    sets = sorted({one & mask for one in accepted} - {0, mask})
    special = node.installed & mask if policy and policy.least_change else 0
    kept: list[tuple[int, int, int]] = []
    groups = _groups(problem, mask, shares)
    hard = [frozenset(key for key in asks if not key[3]) for _, asks in groups]

    @cache
    def lighter(theirs: int, ours: int) -> bool:
        return theirs == ours or (hard[theirs] <= hard[ours] and _no_more(groups[theirs][1], groups[ours][1]))

    plain = policy is None or not (node.builds or _is_priced(node, policy))
    survivors = special
    for bit, signature, group in _representatives(node, groups, sets, policy):
        if special >> bit & 1:
            continue
        rivals = kept if len(kept) <= 2 * RIVALS else kept[:RIVALS] + kept[-RIVALS:]
        for best, refused, theirs in rivals:
            if signature & refused or not lighter(theirs, group):
                continue
            if plain or _no_dearer(node, best, bit, policy):
                break
        else:
            survivors |= 1 << bit
            if not node.reserved >> bit & 1:
                kept.append((bit, ~signature, group))
    problem.masks[node.name] = survivors


def _groups(problem: Problem, mask: int, shares: Iterable[Share]) -> list[Group]:
    """Split a package's candidates by what they ask for."""
    groups: list[Group] = [(mask, {})]
    for extra, parts in shares:
        split = []
        for held, asks in groups:
            rest = held
            for part in parts:
                if held & part.mask:
                    split.append((held & part.mask, {**asks, **_asks(problem, part, extra)}))
                    rest &= ~part.mask
            if rest:
                split.append((rest, asks))
        groups = split
    return groups


def _shares(problem: Problem) -> dict[str, list[Share]]:
    """Return each package's parts, by extra."""
    shares: dict[str, list[Share]] = {}
    for (name, extra), parts in problem.parts.items():
        shares.setdefault(name, []).append((extra, parts))
    return shares


def _asks(problem: Problem, part: Part, extra: str) -> Asks:
    asks: Asks = {}
    for demand in part.demands:
        if demand.name in problem.masks:
            key = (extra, demand.name, demand.extras, demand.limit)
            asks[key] = asks.get(key, -1) & demand.mask & problem.masks[demand.name]
    return asks


def _representatives(
    node: Node, groups: list[Group], sets: list[int], policy: Policy | None
) -> list[tuple[int, int, int]]:
    """Return the preferred candidate of each group and acceptance pattern, most preferred first."""
    mask = sum(held for held, _ in groups)
    group_of = {bit: group for group, (held, _) in enumerate(groups) for bit in bits_of(held)}
    patterns = _patterns(node, mask, tuple(sets))
    if policy is not None and _is_priced(node, policy):
        return _cheapest(node, patterns, group_of, policy)
    apart = mask if node.builds is not None else node.reserved
    found = []
    for block, signature in patterns:
        while block:
            bit = block.bit_length() - 1
            found.append((bit, signature, group_of[bit]))
            block &= ~(1 << bit if apart >> bit & 1 else groups[group_of[bit]][0] & ~apart)
    return sorted(found, reverse=True)


def _cheapest(
    node: Node, patterns: Iterable[tuple[int, int]], group_of: Mapping[int, int], policy: Policy
) -> list[tuple[int, int, int]]:
    """Return the representatives where what stands there decides what a candidate costs."""
    found: dict[tuple[int, ...], tuple[int, int, int]] = {}
    for block, signature in patterns:
        for bit in bits_of(block):
            apart = node.builds is not None or node.reserved >> bit & 1
            key = (signature, group_of[bit], bit) if apart else (signature, group_of[bit])
            if key not in found or not _no_dearer(node, found[key][0], bit, policy):
                found[key] = (bit, signature, group_of[bit])
    return sorted(found.values(), key=lambda one: policy.cost(node, one[0]))


def _patterns(node: Node, mask: int, sets: tuple[int, ...]) -> list[tuple[int, int]]:
    """Split candidates by which of the sets they belong to."""
    known = node.patterns.get((mask, sets))
    if known is None:
        known = node.patterns[mask, sets] = _split(mask, sets)
    return known


def _split(mask: int, sets: tuple[int, ...]) -> list[tuple[int, int]]:
    """Read each candidate's column of the table of sets: of hundreds, many times as fast as splitting."""
    if not sets:
        return [(mask, 0)]
    bit = 1 << mask.bit_length()
    blocks: dict[str, int] = {}
    for column in zip(*(f"{one:0{mask.bit_length()}b}" for one in reversed(sets)), strict=True):
        bit >>= 1
        if mask & bit:
            signature = "".join(column)
            blocks[signature] = blocks.get(signature, 0) | bit
    return [(block, int(signature, 2)) for signature, block in blocks.items()]


def _no_more(theirs: Asks, asks: Asks) -> bool:
    """True when `theirs` asks nothing that `asks` does not ask at least as strictly."""
    for key, mask in theirs.items():
        ours = asks.get(key)
        if ours is None and key[3]:
            ours = asks.get((*key[:3], False))
        if ours is None or ours & ~mask:
            return False
    return True


def _no_dearer(node: Node, best: int, bit: int, policy: Policy | None) -> bool:
    """True when the better candidate costs no more, as any newer one does where nothing else counts."""
    if policy is None or not (node.builds or _is_priced(node, policy)):
        return True
    return policy.cost(node, best) <= policy.cost(node, bit)


def _is_priced(node: Node, policy: Policy | None) -> bool:
    """True when what stands there decides what a candidate costs, and not how new it is alone."""
    return policy is not None and policy.least_change and bool(node.installed)
