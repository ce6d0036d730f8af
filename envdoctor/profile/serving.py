"""The vLLM engine to start: how many cards, which share of each, how long and how many requests."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor.facts.quantities import GIB, counted
from envdoctor.memory import Constants, ServingRun, predict
from envdoctor.memory.serving import describe_engine, utilization_bounds
from envdoctor.memory.verdicts import judge
from envdoctor.profile.needs import Need
from envdoctor.profile.search import SHOWN, Found, Rejection
from envdoctor.profile.workload import Choice, Workload
from envdoctor.values import replace

HIGHEST = 0.95
"""No share above this is chosen while one below will do: a workspace more, and the engine runs out."""
SEQUENCES = (256, 128, 64, 32, 16)


def find_serving(work: Workload, constants: Constants) -> Found:
    """Return the engine with the fewest cards that holds a request of `work.seq` tokens."""
    rejected: dict[Choice, Rejection] = {}
    for most, choice in ((most, choice) for most in (HIGHEST, 1.0) for choice in _engines(work)):
        low, share = _shares(work, choice, constants, most)
        if share >= low:
            chosen = replace(choice, vllm_utilization=share)
            return _found(work, chosen, low, constants, tuple(rejected.values()))
        rejected[choice] = Rejection(choice, _why(choice, low, share))
    nearest = list(rejected.values())[::-1][:SHOWN]  # the most cards and the fewest sequences come closest
    tried = len(rejected)
    return Found(
        work, None, None, tuple(nearest), considered=tried, predicted=tried, notes=_shorter(work, constants)
    )


def _engines(work: Workload) -> Iterator[Choice]:
    dtype = "bf16" if work.bf16 else "fp16"
    for tp in (1, 2, 4, 8):
        if tp > len(work.cards) or work.shape.heads % tp:
            continue
        cards = len(work.cards) // tp * tp  # as many engines side by side as there is room for
        for sequences in SEQUENCES:
            yield Choice(
                "serve",
                "full",
                gpus=cards,
                dtype=dtype,
                seq=work.seq,
                vllm_tp=tp,
                vllm_gpus=cards,
                max_model_len=work.seq,
                max_num_seqs=sequences,
                prefix_caching=True,
                alloc_conf=None,
            )


def _shares(work: Workload, choice: Choice, constants: Constants, most: float) -> tuple[float, float]:
    """Return the least share with which an engine starts, and the largest one, at most `most`, with room."""
    low, high = utilization_bounds(_run(work, choice, 0.5), constants)
    return low, int(min(most, high) * 100) / 100


def _run(work: Workload, choice: Choice, utilization: float) -> ServingRun:
    return ServingRun(
        work.shape,
        work.card_bytes,
        utilization,
        dtype=choice.dtype,
        max_model_len=choice.max_model_len,
        max_num_seqs=choice.max_num_seqs,
        tp=choice.vllm_tp or 1,
        beside_bytes=work.beside_bytes,
        card=work.card.name,
    )


def _found(
    work: Workload,
    choice: Choice,
    low: float,
    constants: Constants,
    rejected: tuple[Rejection, ...],
) -> Found:
    tried = len(rejected) + 1
    run = _run(work, choice, choice.vllm_utilization or low)
    engine = describe_engine(run, constants)
    tokens = engine.tokens
    together = tokens // max(1, work.seq)
    notes = [
        f"utilisations from {low:.2f} (one request of {work.seq}) to {choice.vllm_utilization:.2f} work",
        f"keys and values of {tokens:,} tokens: {together} requests of full length at once",
    ]
    beside = choice.gpus // (choice.vllm_tp or 1)
    if beside > 1:
        notes.append(
            f"{beside} engines side by side, each with keys and values of its own: data-parallel-size,"
            " or that many starts where the release has no such option"
        )
    if idle := len(work.cards) - choice.gpus:
        notes.append(
            f"{counted(idle, 'card')} of {len(work.cards)} left over: the engine splits by {choice.vllm_tp}"
        )
    if work.beside_bytes:
        notes.append(f"{work.beside_bytes / GIB:.1f} GiB of the card are left to what runs beside the engine")
    notes += filter(None, (judge(run, constants).uncertain,))
    return Found(
        work,
        choice,
        Need(predict(replace(run, beside_bytes=0), constants)),
        rejected,
        considered=tried,
        predicted=tried,
        notes=tuple(notes),
    )


def _why(choice: Choice, low: float, share: float) -> str:
    cards = counted(choice.vllm_tp or 1, "card")
    return (
        f"{choice.max_num_seqs} sequences on {cards} need a utilisation of {low:.2f},"
        f" and {max(0.0, share):.2f} is the most that leaves room beside the engine"
    )


def _shorter(work: Workload, constants: Constants) -> tuple[str, ...]:
    """The longest request that could be served, when the asked length cannot."""
    best = 0
    for length in (1 << n for n in range(8, work.seq.bit_length())):
        shorter = replace(work, seq=length)
        if find_bounds(shorter, constants):
            best = length
    if best:
        return (f"requests of {work.seq} tokens do not fit; {best} tokens would",)
    return ("nothing fits at any length: use more cards, quantised weights or a smaller model",)


def find_bounds(work: Workload, constants: Constants) -> bool:
    """True when some engine can serve one request of `work.seq` tokens."""
    for choice in _engines(work):
        low, share = _shares(work, choice, constants, 1.0)
        if share >= low:
            return True
    return False
