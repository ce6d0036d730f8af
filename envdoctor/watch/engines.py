"""What a vLLM engine may be changed to so that it starts, the best first.

As `profile` would choose: its share of the card within the bounds that are predicted, then fewer requests at
once; a shorter longest request only where nothing else fits. One that cannot be predicted goes one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import floor
from typing import TYPE_CHECKING

from envdoctor.errors import EnvdoctorError
from envdoctor.facts import Facts
from envdoctor.facts.quantities import whole_number
from envdoctor.matrix import Matrix
from envdoctor.values import dataclass
from envdoctor.watch.moment import Header, Moment, held_by_others
from envdoctor.watch.places import Changes
from envdoctor.watch.told import framework_run

if TYPE_CHECKING:
    from envdoctor.memory import ServingRun

_LACKS_KEYS = frozenset({"SYM-NO-CACHE-BLOCKS", "SYM-KV-CACHE-SMALL", "SYM-KV-CACHE-V1"})
"""The engine's share is too small for what it should hold; more of the card may be had."""
_TAKES_TOO_MUCH = frozenset({"SYM-VLLM-FREE-MEMORY"})
_USUAL_SHARE, _USUAL_SEQUENCES = 0.9, 256
_STEP = 0.05
_LENGTH_STEP = 1024


@dataclass(frozen=True, slots=True)
class Engine:
    """What an engine was told, or takes where it is not."""

    share: float
    sequences: int
    length: int | None

    def changed_to(self, share: float, sequences: int, length: int | None = None) -> Changes:
        """Return what differs in another."""
        found = {"vllm_utilization": f"{share:g}"} if share != self.share else {}
        if sequences != self.sequences:
            found["max_num_seqs"] = str(sequences)
        return {**found, "max_model_len": str(length)} if length and length != self.length else found


def is_engine(header: Header) -> bool:
    """True for a command that starts vLLM's server."""
    return framework_run(header) == "vllm"


def refuses(facts: Facts) -> bool:
    """True where an engine says that its share of the card is too small, or more than there is."""
    return any(symptom.id in _LACKS_KEYS | _TAKES_TOO_MUCH for symptom in facts.symptoms)


def smaller_engines(
    header: Header, moment: Moment | None, facts: Facts, matrix: Matrix
) -> Iterator[tuple[Changes, int | None]]:
    """Yield the changes to go by, with the bytes of a card that the engine takes (None: not predicted)."""
    from envdoctor.rules.base import Skip

    now = engine_of_settings(facts)
    lacks = any(symptom.id in _LACKS_KEYS for symptom in facts.symptoms)
    try:
        found = list(_predicted(header, moment, facts, matrix, now, lacks))
    except (Skip, EnvdoctorError):
        found = [(changes, None) for changes in _one_step(now, lacks)]
    yield from ((changes, bound) for changes, bound in found if changes)


def engine_of_settings(facts: Facts) -> Engine:
    """Return what an engine's settings say."""

    def told(key: str) -> str:
        found = facts.setting(key)
        return found.value if found else ""

    share = told("vllm_utilization")
    return Engine(
        float(share) if share else _USUAL_SHARE,
        whole_number(told("max_num_seqs")) or _USUAL_SEQUENCES,
        whole_number(told("max_model_len")),
    )


def _one_step(now: Engine, lacks: bool) -> Iterator[Changes]:
    """Yield what is likely to help an engine that is not known here."""
    if lacks:
        yield now.changed_to(min(0.95, round(now.share + _STEP, 2)), now.sequences)
        if now.length:
            yield now.changed_to(now.share, now.sequences, now.length // 2)
    else:
        yield now.changed_to(round(now.share - _STEP, 2), max(1, now.sequences // 2))


def _predicted(
    header: Header, moment: Moment | None, facts: Facts, matrix: Matrix, now: Engine, lacks: bool
) -> Iterator[tuple[Changes, int | None]]:
    from envdoctor.memory import predict
    from envdoctor.memory.serving import describe_engine, utilization_bounds
    from envdoctor.profile.serving import HIGHEST, SEQUENCES
    from envdoctor.rules.serving_fit import engine_of
    from envdoctor.rules.settings_fit import card_of, shape_of
    from envdoctor.rules.view import View
    from envdoctor.target.cards import declare_gpus

    view = View(declare_gpus(facts, header.cards[:1], matrix), matrix)
    shape, card = shape_of(view), card_of(view)
    run = replace(engine_of(view, shape, card, now.share), beside_bytes=held_by_others(moment))
    most = HIGHEST if lacks else now.share - _STEP  # a share that ran out is not trusted twice

    def with_share(sequences: int) -> tuple[ServingRun, float]:
        tried = replace(run, max_num_seqs=sequences)
        low, high = utilization_bounds(tried, card.constants)
        share = floor(min(most, high) * 100) / 100
        return replace(tried, utilization=max(share, 0.01)), low

    counts = [now.sequences, *(count for count in SEQUENCES if count < now.sequences)]
    for count in counts:
        tried, low = with_share(count)
        if tried.utilization >= low:
            yield now.changed_to(tried.utilization, count), predict(tried, card.constants).device_bytes
    tried, _ = with_share(counts[-1])
    length = describe_engine(tried, card.constants).tokens // _LENGTH_STEP * _LENGTH_STEP
    if 0 < length < (now.length or length + 1):
        shorter = replace(tried, max_model_len=length)
        bound = predict(shorter, card.constants).device_bytes
        yield now.changed_to(tried.utilization, counts[-1], length), bound
