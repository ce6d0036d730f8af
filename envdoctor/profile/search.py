"""The fastest setting whose bound fits: settings in order of modelled speed, the first that fits."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from envdoctor.errors import InputError
from envdoctor.facts.quantities import GIB
from envdoctor.memory import Constants
from envdoctor.memory.layout import parameters
from envdoctor.memory.serving import utilization_bounds
from envdoctor.memory.sharding import host_bytes
from envdoctor.profile.needs import SEQUENCES, SERVER_UTILIZATION, Judge, Need, engine_of
from envdoctor.profile.options import Barred, barred, ends, training_choices
from envdoctor.profile.speed import CardSpeed, seconds_per_sample, trained_parameters
from envdoctor.profile.workload import Choice, Workload
from envdoctor.values import dataclass, replace

SHOWN = 12
OFFLOADED = (
    "start it by accelerate's launcher with FSDP in its configuration, or with ACCELERATE_USE_FSDP=true and"
    " FSDP_OFFLOAD_PARAMS=true set: otherwise nothing reduces what lies in host memory"
)
"""What a run whose parameters FSDP offloads must have (row PG-NO-BACKEND-CPU)."""
KIND = attrgetter("method", "parallel", "offload_params", "grad_ckpt", "vllm_mode", "vllm_tp")
"""What tells kinds of settings apart, of each of which the nearest miss is shown."""
SAVING = 8
"""Settings whose longest rows are sought: those that need the least for short ones, and for those asked."""
CLOSE_LENGTHS = 2
"""Lengths looked at closely, between the longest that fits by the rough bound and what cannot fit."""
FULL = 0.95
"""A bound that comes this near to the card needs no reason for not using more."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A setting that was not chosen, why, and how its modelled speed compares (above 1: faster)."""

    choice: Choice | Barred
    why: str
    speed: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the contract's object."""
        kept = self.choice.choice if isinstance(self.choice, Barred) else brief(self.choice)
        found: dict[str, Any] = {"choice": dict(kept), "why": self.why}
        return found if self.speed is None else {**found, "relative_speed": round(self.speed, 2)}


@dataclass(frozen=True, slots=True)
class Found:
    """The answer of a search. `choice` is None when nothing fits."""

    work: Workload
    choice: Choice | None
    need: Need | None
    rejected: tuple[Rejection, ...]
    considered: int = 0
    predicted: int = 0
    notes: tuple[str, ...] = ()


def find_training(work: Workload, constants: Constants, speed: CardSpeed) -> Found:
    """Return the fastest training setting that fits, and what was rejected on the way."""
    priced = [(seconds_per_sample(work.shape, c, speed), n, c) for n, c in enumerate(training_choices(work))]
    priced.sort(key=lambda entry: (entry[2].offload_optimizer, entry[0], entry[1]))  # host speed is not known
    if not priced:
        raise InputError(f"nothing to choose from: {_contradiction(work)}")
    judge = Judge(work, constants)
    fitting = list(_first_fitting(priced, judge, 1)) or list(_first_fitting(priced, judge.again(), 1))
    chosen = fitting[0] if fitting else None
    seconds = chosen[0] if chosen else None
    rejected = _rejections(priced, judge, seconds)
    need = judge.look_closer(chosen[2]) if chosen else None
    choice = _with_engine(work, chosen[2], judge, constants) if chosen else None
    return Found(
        work,
        choice,
        need,
        (*rejected, *(Rejection(b, b.why) for b in barred(work))),
        considered=len(priced),
        predicted=len(judge.seen),
        notes=tuple(_notes(work, choice, judge, constants)),
    )


def _contradiction(work: Workload) -> str:
    """Why no setting at all matches what is asked."""
    cards = len(work.cards)
    if work.global_batch and work.global_batch % cards:
        return f"--global-batch {work.global_batch} cannot be shared evenly by {cards} cards"
    if work.parallel:
        return f"--parallel {work.parallel} does not go with {cards} cards and what is installed"
    return "the method asked for needs a package that is not installed"


def step_down(work: Workload, constants: Constants, speed: CardSpeed, below: int) -> Found:
    """Return the fastest setting whose bound is lower than `below` bytes: the next after an out-of-memory."""
    smaller = replace(work, beside_bytes=max(work.beside_bytes, work.card.usable_bytes - below + 1))
    return replace(find_training(smaller, constants, speed), work=work)


Priced = tuple[float, int, Choice]


def _first_fitting(priced: Iterable[Priced], judge: Judge, count: int) -> Iterable[Priced]:
    for entry in priced:
        if count and judge.fits(entry[2]):
            count -= 1
            yield entry
            if not count:
                return


def _rejections(priced: list[Priced], judge: Judge, seconds: float | None) -> tuple[Rejection, ...]:
    """The faster settings that do not fit: of each kind the nearest miss, then the fastest kinds first."""
    kinds: dict[object, list[tuple[float, Choice]]] = {}
    for cost, _, choice in priced:
        if seconds is not None and cost >= seconds:
            break
        need = judge.seen.get(choice)
        refused = need and (need.refusal or need.device_bytes > judge.work.room)
        if refused or choice in judge.heavy:
            kinds.setdefault(KIND(choice), []).append((cost, choice))
    least = {kind: min(_least(judge, choice) for _, choice in found) for kind, found in kinds.items()}
    nearest: list[tuple[int, float, Choice]] = []
    for kind in sorted(kinds, key=least.__getitem__):
        shown = sorted(item[0] for item in nearest)[:SHOWN]
        if not seconds and len(shown) == SHOWN and least[kind] > shown[-1]:
            break  # none of the others takes as little
        nearest.append(_nearest(judge, kinds[kind]))
    place = {kind: n for n, kind in enumerate(kinds)}
    ranked = sorted(
        nearest, key=lambda item: (item[1] if seconds else item[0], item[0], place[KIND(item[2])])
    )
    return tuple(
        Rejection(choice, why_not(judge, choice), seconds / cost if seconds else None)
        for _, cost, choice in ranked[:SHOWN]
    )


def _least(judge: Judge, choice: Choice) -> int:
    """Bytes that a setting surely takes."""
    need = judge.seen.get(choice)
    return need.device_bytes if need else judge.lasting(choice)


def _nearest(judge: Judge, found: list[tuple[float, Choice]]) -> tuple[int, float, Choice]:
    """Return the nearest miss of one kind, of equal ones the first: its bytes, its cost and itself."""
    best: tuple[int, int] | None = None
    for least, n in sorted((_least(judge, choice), n) for n, (_, choice) in enumerate(found)):
        if best and least > best[0]:
            break
        taken = judge.need(found[n][1]).device_bytes, n
        best = min(best or taken, taken)
    assert best is not None
    return best[0], *found[best[1]]


def why_not(judge: Judge, choice: Choice) -> str:
    """Say by how much a setting passes the card, where its peak falls and what it is made of."""
    need = judge.need(choice)
    if need.refusal:
        return need.refusal
    largest = max(need.prediction.components, key=lambda c: c.bytes, default=None)
    parts = f", of which {largest.name} {largest.bytes / GIB:.1f}" if largest else ""
    engine = f" and vLLM's {need.engine_bytes / GIB:.1f}" if need.engine_bytes else ""
    return (
        f"needs up to {need.device_bytes / GIB:.1f} GiB of {judge.work.room / GIB:.1f}"
        f" (peak in {need.prediction.phase}{parts}{engine})"
    )


def _with_engine(work: Workload, choice: Choice, judge: Judge, constants: Constants) -> Choice:
    """Complete a GRPO setting with vLLM's share: what its card leaves, rounded down."""
    if choice.vllm_mode is None:
        return choice
    total = work.card_bytes
    if choice.vllm_mode == "server":
        return replace(choice, vllm_utilization=SERVER_UTILIZATION, max_num_seqs=SEQUENCES)
    low, _ = utilization_bounds(engine_of(work, choice, 0.5), constants)
    need = judge.need(choice)
    spare = low + (work.room - need.device_bytes) / total
    share = max(round(low + 0.005, 2), int(min(0.9, spare) * 100) / 100)
    return replace(choice, vllm_utilization=share, max_num_seqs=SEQUENCES)


def _notes(work: Workload, choice: Choice | None, judge: Judge, constants: Constants) -> Iterable[str]:
    if choice is None:
        smallest = _smallest(work)
        yield from _longest(judge, smallest)
        yield from _what_would_do(work, smallest, constants)
        return
    yield rows_of(work)
    need = judge.need(replace(choice, vllm_utilization=None, max_num_seqs=None))
    share = need.device_bytes / work.room
    if share < FULL:
        yield f"uses at most {share:.0%} of what the card offers: {_why_no_more(work, choice, judge)}"
    if choice.offload_optimizer or choice.offload_params:
        trained = trained_parameters(work.shape, choice)
        host = host_bytes(parameters(work.shape), trained, choice.offload_optimizer, choice.offload_params)
        yield f"needs about {host / GIB:.0f} GiB of host memory over all ranks"
    if choice.parallel == "fsdp" and choice.offload_params:
        yield OFFLOADED
    yield from filter(None, (work.shape.uncertain, work.shape.unseen))


def rows_of(work: Workload) -> str:
    """For which rows a setting holds."""
    if not work.uneven:
        more = "; shorter ones among them may take more: --shortest-row N counts them"
        return f"holds for rows of {work.seq} tokens, all alike{'' if work.shortest_row else more}"
    return (
        f"holds for rows of {work.shortest_row} to {work.seq} tokens, filled up to the longest of their batch"
    )


def _why_no_more(work: Workload, choice: Choice, judge: Judge) -> str:
    """Why a setting leaves room: nothing faster exists, or the next larger step does not fit."""
    same = replace(choice, vllm_utilization=None, max_num_seqs=None)
    larger = [
        c
        for c in training_choices(work)
        if c.batch > choice.batch and replace(same, batch=c.batch, grad_accum=c.grad_accum) == c
    ]
    if not larger:
        return f"one micro batch already holds the global batch of {choice.global_batch}; ask for more"
    following = min(larger, key=lambda c: c.batch)
    if judge.fits(following):
        return "larger micro batches fit but are no faster by the model"
    kind = "that divides the global batch" if work.global_batch else "weighed"
    return f"the next micro batch {kind}, {following.batch}, {why_not(judge, following)}"


def _longest(judge: Judge, smallest: list[Choice]) -> Iterable[str]:
    """When nothing fits at the asked length: how long the rows may be, by the close bound of two lengths."""
    work, judges = judge.work, {judge.work.seq: judge}

    def asked(seq: int) -> Judge:
        shortest = None if work.shortest_row is None else min(work.shortest_row, seq)
        if seq not in judges:
            shorter_work = replace(work, seq=seq, shortest_row=shortest)
            judges[seq] = Judge(shorter_work, judge.constants, weights=judge.weights)
        return judges[seq]

    def shorter(choice: Choice, seq: int) -> Choice:
        return replace(choice, seq=seq, max_model_len=seq if choice.vllm_mode else None)

    def least(seq: int) -> set[int]:
        judge, found = asked(seq), list[tuple[int, int]]()
        for bound, n in sorted((judge.lasting(choice), n) for n, choice in enumerate(smallest)):
            if len(found) >= SAVING and bound > found[SAVING - 1][0]:
                break  # no other takes as little as these
            insort(found, (judge.need(shorter(smallest[n], seq)).device_bytes, n))
        return {n for _, n in found[:SAVING]}

    smallest = [smallest[n] for n in sorted(least(64) | least(work.seq))]

    def one_does(does: Callable[[Judge, Choice], bool]) -> Callable[[int], bool]:
        order = list(range(len(smallest)))  # what did at one length is asked first at the next

        def found(units: int) -> bool:
            judge = asked(units * 64)
            done = next((n for n in order if does(judge, shorter(smallest[n], units * 64))), None)
            if done is not None:
                order.remove(done)
                order.insert(0, done)
            return done is not None

        return found

    most = work.seq // 64
    low = high = 0
    if one_does(Judge.may_fit)(1):  # else no length does
        low = _last(one_does(lambda judge, choice: judge.any_fits([choice], 0)), 0, most)
        high = _last(one_does(Judge.may_fit), low, most) + 1
    for _ in range(CLOSE_LENGTHS):
        if high - low > 1:
            middle = (low + high) // 2
            settings = [shorter(choice, middle * 64) for choice in smallest]
            low, high = (middle, high) if asked(middle * 64).any_fits(settings, 1) else (low, middle)
    if low:
        yield f"nothing fits at a length of {work.seq}; {low * 64} tokens would"
    else:
        yield "nothing fits at any length: shard over more cards, quantise, offload, or take a smaller model"


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the last number below `high` for which it holds, or `low`; found by halving the interval."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _what_would_do(work: Workload, smallest: list[Choice], constants: Constants) -> Iterable[str]:
    """What would make the asked length fit: Liger, where it may be there, or more of the card."""
    if not work.stack.has("liger-kernel") and not work.stack.lacks("liger-kernel"):
        fused = [replace(c, liger=True) for c in smallest]
        if Judge(work, constants).any_fits(fused, len(fused)):
            yield "with Liger's kernels (pip install liger-kernel) it would fit as asked"
    for count in (2, 4, 8):
        if count > len(work.cards):
            wider = replace(work, cards=(work.card,) * count, global_batch=None)
            smallest = _smallest(wider)
            if Judge(wider, constants).any_fits(smallest, len(smallest)):
                yield f"{count} of this card would do"
                return


def _smallest(work: Workload) -> list[Choice]:
    """The settings that need the least of their kind: checkpointing on, one row a card, or one micro batch
    where whole gradients lie between several."""
    found = [c for c in training_choices(work, ends) if c.grad_ckpt]
    return [c for c in found if c.batch == 1 or (c.grad_accum == 1 and c.parallel == "fsdp")]


def brief(choice: Choice) -> dict[str, Any]:
    """Return what tells a rejected setting from the others."""
    if choice.task == "serve":
        return {key: getattr(choice, key) for key in ("vllm_tp", "max_model_len", "max_num_seqs", "dtype")}
    keys = ("method", "parallel", "batch", "grad_accum", "grad_ckpt", "attn", "optim")
    found = {key: getattr(choice, key) for key in keys}
    found |= {key: True for key in ("liger", "offload_optimizer", "offload_params") if getattr(choice, key)}
    if choice.vllm_mode:
        found |= {"vllm_mode": choice.vllm_mode, "vllm_tp": choice.vllm_tp, "gpus": choice.gpus}
    return found
