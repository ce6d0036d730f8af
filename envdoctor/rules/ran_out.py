"""Memory that ran out: whose it was, by the sizes that torch's own message tells."""

from __future__ import annotations

from collections.abc import Iterable

from envdoctor import lazy_re as re
from envdoctor.facts import Symptom
from envdoctor.facts.quantities import GIB, parse_size
from envdoctor.findings import Certainty, Finding, Remedy, Severity
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.occupancy import LIST
from envdoctor.rules.view import View, quoted, symptoms

MESSAGE = "https://github.com/pytorch/pytorch/blob/main/c10/cuda/CUDACachingAllocator.cpp"
OUT_OF_MEMORY = "SYM-OOM-CAPACITY"
_PROCESS = re.compile(r"Process \d{1,9} has ([\d.]{1,12} [KMG]iB) memory in use")
_ALLOCATED = re.compile(r"allocated memory ([\d.]{1,12} [KMG]iB) is allocated by PyTorch")
NEIGHBOURS = 0.25
"""The share of a card from which others have a part in its running out."""


def _listed(symptom: Symptom) -> list[int]:
    """Return what each process holds, as a message lists them that does not know which is its own."""
    return [size for text in _PROCESS.findall(symptom.text) if (size := parse_size(text))]


def _own_of(symptom: Symptom) -> int:
    """Return what its own process holds: the least of those that have as much as torch allocated."""
    match = _ALLOCATED.search(symptom.text)
    allocated = (parse_size(match[1]) if match else None) or 0
    return min((size for size in _listed(symptom) if size >= allocated), default=allocated)


def check_neighbours(view: View) -> Iterable[Finding]:
    """Memory that ran out on a card of which others hold much, by the sizes in torch's own message."""
    seen = [one for one in symptoms(view, OUT_OF_MEMORY) if one.captured.get("own") or _listed(one)]
    if not seen:
        raise Skip("no message of torch tells what its own process holds of a card")
    whole, free = (parse_size(seen[-1].captured[name]) or 0 for name in ("total", "free"))
    own = parse_size(seen[-1].captured.get("own", "")) or _own_of(seen[-1])
    others = whole - free - own
    if others < NEIGHBOURS * whole:
        return
    words = f"{others / GIB:.1f} of {whole / GIB:.1f} GiB"
    yield Finding(
        id="OOM-NEIGHBOUR",
        severity=Severity.ERROR,
        summary=f"the GPU ran out of memory while other processes held {words} of it; this one had"
        f" {own / GIB:.1f} GiB",
        cause="What the card holds, less what was free and what the failing process had, is held by others:"
        " an earlier run that still lives, another person's, a server beside a training, or other ranks of"
        " the same run that all took this card.",
        evidence=quoted(seen[-1:]),
        remedies=(
            Remedy(
                "See which process holds the memory, and wait for it or stop it (another kernel, too).",
                (LIST,),
            ),
            Remedy("Take another card, where there is one (CUDA_VISIBLE_DEVICES)."),
            Remedy(
                "Where they are ranks of this run, give each a card of its own (torchrun sets LOCAL_RANK;"
                " torch.cuda.set_device(int(os.environ['LOCAL_RANK'])))."
            ),
        ),
        certainty=Certainty.LIKELY if others > own else Certainty.UNCERTAIN,
        prior=0.9 if others > own else 0.5,
        sources=(MESSAGE,),
        explains=tuple(one.id for one in view.facts.symptoms if "OOM" in one.id),
    )


RULES = (
    Rule("OOM-NEIGHBOUR", "No other process held much of a card that ran out", check_neighbours, MESSAGE),
)
