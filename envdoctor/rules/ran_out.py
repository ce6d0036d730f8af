"""Memory that ran out: whose it was, by the sizes that torch's own message tells."""

from __future__ import annotations

from collections.abc import Iterable

from envdoctor.facts.quantities import GIB, parse_size
from envdoctor.findings import Certainty, Finding, Remedy, Severity
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.occupancy import LIST
from envdoctor.rules.view import View, quoted, symptoms

MESSAGE = "https://github.com/pytorch/pytorch/blob/main/c10/cuda/CUDACachingAllocator.cpp"
OUT_OF_MEMORY = "SYM-OOM-CAPACITY"
NEIGHBOURS = 0.25
"""The share of a card from which others have a part in its running out."""


def check_neighbours(view: View) -> Iterable[Finding]:
    """Memory that ran out on a card of which others hold much, by the sizes in torch's own message."""
    seen = [one for one in symptoms(view, OUT_OF_MEMORY) if one.captured.get("own")]
    if not seen:
        raise Skip("no message of torch tells what its own process holds of a card")
    whole, free, own = (parse_size(seen[-1].captured[name]) or 0 for name in ("total", "free", "own"))
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
            Remedy("See who holds the memory, and wait for it or end it.", (LIST,)),
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
