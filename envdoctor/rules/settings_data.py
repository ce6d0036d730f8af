"""Training data against what trainers want of it: turns, roles, answers, and lengths within the cap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from envdoctor.facts.quantities import whole_number
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.view import View

SOURCE = "https://github.com/hiyouga/LLaMA-Factory/blob/main/data/README.md"
_FAULTS: Mapping[str, tuple[Severity, str, str]] = {
    "structure": (
        Severity.ERROR,
        "lack the keys that the other rows have",
        "Give every row the same structure; converters stop at the first that differs.",
    ),
    "unanswered": (
        Severity.ERROR,
        "hold no answer: nothing in them is trained on",
        "Drop them, or name the answering role gpt (ShareGPT) or assistant (messages).",
    ),
    "turns": (
        Severity.WARNING,
        "do not take turns, question first and answer last: converters drop them with a log line",
        "Merge turns of one speaker, drop a trailing question.",
    ),
    "empty": (Severity.WARNING, "hold an empty text", "Drop them."),
}


def check_data(view: View) -> Iterable[Finding]:
    """Find rows that break their file's structure, unknown roles, and rows that the length cuts."""
    rows = view.facts.setting("data.rows")
    if rows is None:
        raise Skip("no training data is told")
    for fault, (severity, what, remedy) in _FAULTS.items():
        found = view.facts.setting(f"data.{fault}")
        if found is not None:
            yield Finding(
                id=f"DATA-{fault.upper()}",
                severity=severity,
                summary=f"{found.value} of {rows.value} rows {what}",
                cause="The trainers' converters read each row by its structure.",
                evidence=(Evidence(f"data.{fault}", found.value, found.source),),
                remedies=(Remedy(remedy),),
                sources=(SOURCE,),
            )
    yield from _roles(view)
    yield from _lengths(view)


def _roles(view: View) -> Iterable[Finding]:
    roles = view.facts.setting("data.roles")
    if roles is None:
        return
    yield Finding(
        id="DATA-ROLES",
        severity=Severity.ERROR,
        summary=f"roles that no converter knows: {roles.value}",
        cause="ShareGPT has human, gpt, observation, function_call, system; messages user, assistant, tool.",
        evidence=(Evidence("roles", roles.value, roles.source),),
        remedies=(Remedy("Rename them, or map them with the data set's tags (user_tag, assistant_tag)."),),
        sources=(SOURCE,),
    )


def _lengths(view: View) -> Iterable[Finding]:
    """Compare estimated tokens with the cap; an estimate only accuses where it passes the cap clearly."""
    cap = view.facts.setting("seq")
    longest, p99 = view.facts.setting("data.longest"), view.facts.setting("data.p99")
    if cap is None or longest is None or p99 is None:
        return
    told = [whole_number(setting.value) for setting in (cap, longest, p99)]
    if None in told or (told[1] or 0) <= 1.3 * (told[0] or 0):
        return
    many = (told[2] or 0) > 1.3 * (told[0] or 0)
    yield Finding(
        id="DATA-LENGTH",
        severity=Severity.WARNING if many else Severity.NOTE,
        summary=(
            f"the longest row has about {longest.value} tokens (99 in 100 have up to {p99.value}),"
            f" and the cap is {cap.value}: longer rows are cut or dropped"
        ),
        cause="Tokens are estimated from characters (four each, fewer in dense scripts).",
        evidence=(
            Evidence(cap.native_key or "length", cap.value, cap.source),
            Evidence("longest row", longest.value, longest.source),
        ),
        remedies=(
            Remedy(
                "Split or drop long rows, or raise the cap if memory allows: `envdoctor profile --seq` says."
            ),
        ),
        certainty=Certainty.LIKELY,
        sources=(SOURCE,),
    )


RULES = (
    Rule("DATA", "training data has a structure that trainers read, within the length", check_data, SOURCE),
)
