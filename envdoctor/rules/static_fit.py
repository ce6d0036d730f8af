"""SGLang's share of a card against what the weights take: as its start line sets it, or its release does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from envdoctor.commands import commands
from envdoctor.facts.quantities import GIB
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.serving_fit import engine_of
from envdoctor.rules.settings_fit import OneCard, edition_of, number_of, shape_of
from envdoctor.rules.view import View

if TYPE_CHECKING:  # the memory room is imported when an engine is judged, not when rules are listed
    from envdoctor.memory import ModelShape, ServingRun
    from envdoctor.memory.serving import Verdict
    from envdoctor.memory.sglang import Usual

SOURCE = "https://docs.sglang.io/advanced_features/hyperparameter_tuning.html"
NO_MEMORY = "SYM-SGL-NOT-ENOUGH-MEMORY"
"""The engine loaded its weights and found nothing left of its share."""


def check_share(view: View) -> Iterable[Finding]:
    """Find an SGLang share that the weights fill, at any value or at the one that is set."""
    if not any(setting.framework == "sglang" for setting in view.facts.settings):
        raise Skip("SGLang is not started")
    shape, card = shape_of(view), edition_of(view)
    usual = _usual(view, shape, card)
    told = view.facts.setting("static_share")
    if told is None and usual is None:
        raise Skip("what that release of SGLang takes of a card is not known")
    share = float(told.value) if told else usual.share if usual else 0.0
    if not 0 < share <= 1:
        raise Skip("the share is none")
    from envdoctor.memory.verdicts import judge

    run = replace(engine_of(view, shape, card, share), engine="sglang", lora_slots=0)
    if usual is not None:
        run = replace(run, max_batched_tokens=usual.chunk, max_num_seqs=usual.graphs)
    verdict = judge(run, card.constants)
    if verdict.refusal:
        yield _filled(view, run, card, verdict)
    elif verdict.uncertain:
        raise Skip(verdict.uncertain)


def _usual(view: View, shape: ModelShape, card: OneCard) -> Usual | None:
    from envdoctor.memory.sglang import usual_settings

    installed = view.facts.distribution("sglang")
    return usual_settings(
        view.matrix.rows(tables.StaticShareRow),
        installed.version if installed else None,
        card.gpu.memory_total_bytes or 0,
        (number_of(view, "tp", 1), number_of(view, "pp", 1)),
        shape.latent is not None,
        number_of(view, "max_num_batched_tokens", 0) or None,
        number_of(view, "graph_batch", 0) or None,
    )


def _filled(view: View, run: ServingRun, card: OneCard, verdict: Verdict) -> Finding:
    from envdoctor.memory.sglang import describe_static

    weights = describe_static(run, card.constants).weights / GIB
    split = "" if run.tp * run.pp == 1 else f" on each of {run.tp * run.pp} cards"
    told = view.facts.setting("static_share")
    shown = Evidence(told.native_key or told.key, told.value, told.source) if told else None
    default = Evidence("mem_fraction_static", f"{run.utilization:g}", "SGLang's default")
    memory = Evidence("gpu memory", f"{card.usable / GIB:.1f} GiB ({card.gpu.name})", card.gpu.source)
    refused = next((s for s in view.facts.symptoms if s.id == NO_MEMORY), None)
    said = (Evidence(refused.id, refused.text, refused.source),) if refused else ()
    return Finding(
        id="SGLANG-SHARE-LOW" if verdict.refusal == "low" else "SGLANG-SHARE-NONE",
        severity=Severity.ERROR,
        summary=(
            f"the weights of {run.shape.name} take {weights:.1f} GiB{split}, and mem_fraction_static"
            f" {run.utilization:g} leaves nothing of this card for keys"
        ),
        cause="SGLang gives weights and keys together that share of what is free before it loads the model;"
        " where the weights fill it, it refuses to start.",
        evidence=(shown or default, memory, *said),
        remedies=tuple(_ways(run, card, verdict)),
        certainty=Certainty.LIKELY,
        sources=(SOURCE,),
        explains=(refused.id,) if refused else (),
        prior=0.93,
        follows=("MEM-WEIGHTS",),
    )


def _ways(run: ServingRun, card: OneCard, verdict: Verdict) -> Iterator[Remedy]:
    from envdoctor.memory.verdicts import least_split

    low, high = verdict.bounds
    if low < high:
        yield Remedy(
            f"Raise the share: from {low:.2f} on it holds a token, and above {high:.2f} a step may run out.",
            commands("--mem-fraction-static {}", f"{(low + high) / 2:.2f}"),
        )
    if cards := least_split(run, card.constants):
        yield Remedy(f"Split it over {cards} cards.", commands("--tp-size {}", cards))
    if not run.shape.stored:
        yield Remedy("Serve a copy of the model with quantised weights (FP8, AWQ, GPTQ).")


RULES = (Rule("SGLANG-SHARE", "SGLang's share of the card holds the model", check_share, SOURCE),)
